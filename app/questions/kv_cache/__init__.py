"""KV cache: how many sequences fit beside the weights, what takes a chip's memory, and what would make room."""

"""FLOPs per token in words: what a token costs, and how far the conventions lie apart."""

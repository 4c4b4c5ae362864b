"""Compile for TPU: what the compiler makes of a training step, without a TPU; one compiled run, or two side by side."""

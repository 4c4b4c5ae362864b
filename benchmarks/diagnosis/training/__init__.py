"""Real training jobs of the benchmark: JAX processes on this machine's cores, hurt as a case says."""

"""Reference runs for GPUs: real jobs in PyTorch and JAX, profiled by their own profilers and hurt on purpose."""

"""`python -m collectors.device.xplane` compiles the reader's kernels, so that the first trace need not."""

from collectors.device.xplane import prepare

prepare()

"""`python -m collectors.xplane` compiles the reader's kernels, so that the first trace need not."""

from collectors.xplane import prepare

prepare()

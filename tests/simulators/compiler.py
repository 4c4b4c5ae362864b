"""Whether the TPU compiler is here. In CI it must be: there the tests that need it run, and fail without it."""

import importlib.util
import os

import pytest

INSTALLED = importlib.util.find_spec("libtpu") is not None and importlib.util.find_spec("jax") is not None
needs_compiler = pytest.mark.skipif(
    not INSTALLED and not os.environ.get("CI"),
    reason="needs the TPU compiler: make tpu, or pip install 'chipledger[tpu]'",
)

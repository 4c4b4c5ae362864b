"""Runs the compiled kernels once."""

import numpy as np

from analyzers.device.critical_path.kernels import ordered, replayed, walk


def warm() -> None:
    """Compile, or load what was compiled: with arrays of the types that are given in earnest."""
    n = np.zeros(0, np.int64)
    one = np.zeros(1, np.int64)
    walk(np.zeros((0, 6), np.int64), n, n, n, n, n, n, n, n, n, n, n, one, n, n, n, n, np.zeros((4, 7), np.int64))
    replayed(ordered(one, n, n.copy()), one, n, n, n)

"""What a matrix unit pads: arithmetic on dimensions, for numbers and arrays alike.

A product m x k by k x n on a unit of S x S: the stationary operand is loaded in squares of S x S, the moving operand
in rows, eight of them (a sublane group) at a time. What does not fill them is multiplied all the same.
"""

from typing import NamedTuple

import numpy as np

SUBLANES = 8  # rows of a vector tile; bf16 packs two of them, which changes no count of FLOPs
LANES = 128  # columns of a vector tile, and of a tile in memory


class Padded(NamedTuple):
    """FLOPs of one product with its padding: as printed (A), and with the better choice of operands (B)."""

    headline: np.ndarray
    optimistic: np.ndarray


def up(value: np.ndarray | float, multiple: int) -> np.ndarray:
    """`value` rounded up to a multiple."""
    return np.ceil(np.asarray(value, dtype=float) / multiple) * multiple


def padded_flops(m: np.ndarray | float, k: np.ndarray | float, n: np.ndarray | float, side: int) -> Padded:
    """2 x padded m, k, n. A: ceil8(m) ceilS(k) ceilS(n), the right operand stationary. B: the better of A and of the
    same with the operands swapped, ceil8(n) ceilS(k) ceilS(m). The contracted dimension always pads to S.

    FLOPs are of one product; multiply by its count. Broadcasts over arrays of shape [products].
    """
    contracted = 2.0 * up(k, side)
    headline = up(m, SUBLANES) * contracted * up(n, side)
    swapped = up(n, SUBLANES) * contracted * up(m, side)
    return Padded(headline, np.minimum(headline, swapped))


def dim_efficiency(value: np.ndarray | float, multiple: int) -> np.ndarray:
    """value / value rounded up: what one dimension alone leaves of the unit, 0 to 1."""
    return np.asarray(value, dtype=float) / up(value, multiple)

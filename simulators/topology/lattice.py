"""Meshes, tori and twisted tori: built, and counted by closed forms where those are exact.

Chips are numbered with the last axis fastest. Wrapping an axis joins its last chip to its first; a twist shifts that
link along other axes as well. A wrapped axis of 2 has two links between the same chips: both ports are wired.

Closed forms, N chips, axis lengths k: diameter = sum of floor(k/2) on wrapped axes and k - 1 on others; mean hops =
N/(N-1) times the sum of floor(k^2/4)/k wrapped, (k^2-1)/(3k) not; histogram = the product over axes of the
polynomials that count ordered pairs of one axis by distance.
"""

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

AXES = ("x", "y", "z", "w", "v", "u")


@dataclass(frozen=True)
class Lattice:
    """`wraps[i]`: axis i is a ring. `twist[i]`: what going around axis i adds to the coordinates; empty without."""

    dims: tuple[int, ...]
    wraps: tuple[bool, ...]
    twist: tuple[tuple[int, ...], ...] = ()

    @property
    def chips(self) -> int:
        return prod(self.dims)

    @property
    def twisted(self) -> bool:
        return any(any(shift) for shift in self.twist)

    @property
    def transitive(self) -> bool:
        """Every chip sees the same network: all axes that have more than one chip are rings."""
        return all(w or k == 1 for k, w in zip(self.dims, self.wraps, strict=True))

    def hop_counts(self) -> np.ndarray:
        """Ordered pairs of chips by hops, exact, int64 (diameter + 1,); index 0 counts each chip with itself.

        Only where there is no twist.
        """
        if self.twisted:
            raise ValueError("a twisted torus has no closed form: search it")
        return reduce(np.convolve, [_axis_counts(k, w) for k, w in zip(self.dims, self.wraps, strict=True)])

    def coordinates(self) -> np.ndarray:
        """int32 (chips, axes)."""
        return np.stack(np.unravel_index(np.arange(self.chips), self.dims), axis=1).astype(np.int32)

    def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(links int32 (n, 2), axis of each, whether it closes a ring)."""
        at, ids = self.coordinates(), np.arange(self.chips)
        links = [np.zeros((0, 2), np.int64)]
        axis_of, closing = [np.zeros(0, int)], [np.zeros(0, bool)]
        for axis, (k, wrapped) in enumerate(zip(self.dims, self.wraps, strict=True)):
            if k == 1:
                continue
            inner = ids[at[:, axis] < k - 1]
            ends = [np.stack([inner, inner + prod(self.dims[axis + 1 :])], axis=1)]
            if wrapped:
                last = at[at[:, axis] == k - 1]
                to = last.copy()
                to[:, axis] = 0
                if self.twist:
                    to = (to + np.array(self.twist[axis])) % np.array(self.dims)
                ends.append(np.stack([self.index(last), self.index(to)], axis=1))
            links += ends
            axis_of.append(np.full(sum(map(len, ends)), axis))
            closing.append(np.repeat([False, True], [len(inner), self.chips // k * wrapped]))
        return np.concatenate(links).astype(np.int32), np.concatenate(axis_of), np.concatenate(closing)

    def index(self, at: np.ndarray) -> np.ndarray:
        """Numbers of the chips at coordinates (n, axes)."""
        return np.ravel_multi_index(tuple(at.T), self.dims)  # pyright: ignore[reportReturnType]  # of arrays, an array


def _axis_counts(k: int, wrapped: bool) -> np.ndarray:
    """Ordered pairs of one axis by distance, the chip itself included."""
    d = np.arange(k // 2 + 1 if wrapped else k, dtype=np.int64)
    if not wrapped:
        counts = 2 * (k - d)
        counts[0] = k
        return counts
    counts = np.full(len(d), 2 * k, np.int64)
    counts[0] = k
    if k % 2 == 0 and k > 0:
        counts[-1] = k  # the far side of an even ring is one chip
    return counts


def twist_of(dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
    """The shifts of a twisted torus of these axes; None where none is defined.

    k x k x 2k: going around a short axis shifts the long one by k. k x 2k x 2k: going around the short axis shifts both
    long ones by k. The axes may stand in any order.
    """
    if len(dims) != 3:
        return None
    k = min(dims)
    short = [i for i, n in enumerate(dims) if n == k]
    long = [i for i, n in enumerate(dims) if n == 2 * k]
    if len(short) + len(long) != 3 or not short or not long:
        return None
    shift = tuple(k if i in long else 0 for i in range(3))
    return tuple(shift if i in short else (0, 0, 0) for i in range(3))

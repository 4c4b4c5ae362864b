"""The opcodes that are read, and a value of the pickle as one number."""

import numpy as np

from collectors.device.memory_snapshot.keeping import part
from collectors.device.memory_snapshot.shapes import HUGE, INT, KIND_BITS, LIST, NONE, TEXT, WIDEST

REFUSED_OP = -2


def _widths():
    """Bytes of each opcode's argument; -1: a text or number whose length comes first; -2: not accepted."""
    width = np.full(256, REFUSED_OP, np.int64)
    for op in b".(]}eu)as012N" + b"\x94\x85\x86\x87\x88\x89t":
        width[op] = 0
    for op, n in zip(b"KhqMJjrG\x80\x95", (1, 1, 1, 2, 4, 4, 4, 8, 1, 8), strict=True):
        width[op] = n
    for op in b"\x8a\x8bX\x8c\x8dBC":
        width[op] = -1
    return width


WIDTH = _widths()


@part
def packed(value, kind):
    return np.int64(value) << KIND_BITS | kind


@part
def little(buf, at, n):
    """An unsigned number of n bytes, of which the lowest comes first."""
    v = np.uint64(0)
    for i in range(n):
        v |= np.uint64(buf[at + i]) << np.uint64(8 * i)
    return np.int64(v)


@part
def whole(value):
    if -WIDEST < value < WIDEST:
        return packed(value, INT)
    return packed(0, HUGE)


@part
def kind_of(value):
    return value & ((1 << KIND_BITS) - 1)


@part
def number(value):
    """A whole number as it is; NONE for whatever else."""
    return value >> KIND_BITS if kind_of(value) == INT else NONE


@part
def word(value):
    """The number of a text; -1 for whatever else."""
    return value >> KIND_BITS if kind_of(value) == TEXT else np.int64(-1)


@part
def listed(value):
    return value >> KIND_BITS if kind_of(value) == LIST else np.int64(-1)

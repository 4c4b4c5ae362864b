"""The codes of a pickle that make plain data, the bytes of what follows each, and how looking through them ends."""

import numpy as np

from runs.compiled import compiler

_compiler = compiler(__package__)
kernel = _compiler()
part = _compiler(forceinline=True)

UNKNOWN = -1  # in WIDTH: a code that no plain data needs
LONGEST_NUMBER = 9  # bytes of a whole number: 64 bits and a sign
OLDEST, NEWEST = 2, 5  # protocols
OTHER, LIST, DICT, TEXT = range(1, 5)  # kinds of values; 0 in the memo: nothing

# How it ends, and where the counters of a scan stand. TOLD: what the sentence about it needs
DONE, CUT, NO_PLAIN_CODE, PROTOCOL, CODES, CONTAINERS, DEPTH, TEXT_BYTES = range(8)
NO_VALUE, NO_LIST, NO_DICT, NO_MARK, NO_TEXT_KEYS, LONG_NUMBER, NOT_KEPT, NO_REFERENCE, FAR_PLACE = range(8, 17)
POS, TOLD, NOTED = range(3)


def _widths():
    """Bytes that follow each code: of a text and a whole number, those of its length."""
    width = np.full(256, UNKNOWN, np.int64)
    for code in b".(}])Naesut\x88\x89\x85\x86\x87\x94":
        width[code] = 0
    for code, n in zip(b"\x80\x95KMJG\x8a\x8cX\x8dqrhj", (1, 8, 1, 2, 4, 8, 1, 1, 4, 8, 1, 4, 1, 4), strict=True):
        width[code] = n
    return width


WIDTH = _widths()


@part
def little(buf, at, n):
    """An unsigned number of n bytes, of which the lowest comes first; below 0 where it needs all of 64 bits."""
    v = np.uint64(0)
    for i in range(n):
        v |= np.uint64(buf[at + i]) << np.uint64(8 * i)
    return np.int64(v)


@part
def ascii_alone(buf, at, end):
    """Whether each byte is one of ASCII."""
    every = np.uint8(0)
    for i in range(at, end):
        every |= buf[i]
    return every < 128

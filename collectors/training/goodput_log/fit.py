"""Looking at a block's bytes before pyarrow reads them as JSON: whether it may, and which keys are worth a column.

A column costs pyarrow some 40 ns an entry, filled or not, and most entries are steps and data loading: looking first
halves the time. All looks are for pairs of bytes, which numpy compares many at a time.
"""

import re
from collections.abc import Iterator

import numpy as np

from collectors.training.goodput_log import keys

_INF = re.compile(rb"Inf(?!inity)")
_SPACE = np.isin(np.arange(256), list(b" \t\r\n"))
_CLOSING = np.isin(np.arange(256), list(b"}]"))
_NEAR = 8  # spaces that are passed over one by one


class _Sign:
    """How a key is recognised by the bytes before its "_t": the eight nearest, and up to eight before them."""

    def __init__(self, key: str):
        self.key = key
        before = f'"{key}'.encode().rpartition(b"_t")[0]
        self.near, self.near_mask = _lane(before[-8:])
        self.far, self.far_mask = _lane(before[-16:-8])


def _lane(part: bytes) -> tuple[np.uint64, np.uint64]:
    """(value, mask) of the last bytes of a lane of eight."""
    value, mask = part.rjust(8, b"\0"), (b"\xff" * len(part)).rjust(8, b"\0")
    return np.uint64(int.from_bytes(value, "little")), np.uint64(int.from_bytes(mask, "little"))


_SIGNS = [_Sign(key) for key in (*keys.TIMES, keys.EVENT_TYPE)]


def fits_arrow(data: memoryview) -> bool:
    """Whether pyarrow may be given this, and reads it as Python's json does.

    It dies of a null in the place of an object, reads Inf as a number, and takes any bytes for UTF-8.
    """
    if not data or data[0] != ord("{"):
        return False
    if _stray_null(data):
        return False
    if _has(data, b"In") and _INF.search(data):
        return False
    if np.frombuffer(data, "u1").max() >= 128:
        try:
            str(data, "utf-8")
        except UnicodeDecodeError:
            return False
    return True


def _stray_null(data: memoryview) -> bool:
    """Whether "nu" follows a closing brace or bracket: in JSON it never does outside of text."""
    buffer = np.frombuffer(data, "u1")
    before = _places(data, b"nu") - 1
    for _ in range(_NEAR):  # the block begins with a brace, so this never goes beyond its beginning
        signs = buffer[before]
        if _CLOSING[signs].any():
            return True
        before = before[_SPACE[signs]] - 1
        if not before.size:
            return False
    solid = np.flatnonzero(~_SPACE[buffer])  # step by step would take as long as there are spaces
    return bool(_CLOSING[buffer[solid[np.searchsorted(solid, before, "right") - 1]]].any())


def key_places(data: memoryview) -> dict[str, np.ndarray] | None:
    """Where the keys of times and of event types stand, near enough to tell in which entry: a key that is not told of
    does not occur. None where a key may be written with escapes, so that any may occur anywhere."""
    if np.any(np.frombuffer(data, "u1") == ord("\\")) and _has(data, b"\\u"):
        return None
    places = _places(data, b"_t")
    places = places[(places >= 16) & (places <= len(data) - 2)]
    lanes = np.ndarray((max(0, len(data) - 7),), "<u8", data, strides=(1,))
    near = lanes[places - 8]
    found = {}
    for sign in _SIGNS:
        at = places[near & sign.near_mask == sign.near]
        if at.size:
            at = at[lanes[at - 16] & sign.far_mask == sign.far]
        if at.size:
            found[sign.key] = at
    return found


def _has(data: memoryview, pair: bytes) -> bool:
    """Whether two bytes stand one after another somewhere."""
    return any(same.any() for same in _same(data, pair))


def _places(data: memoryview, pair: bytes) -> np.ndarray:
    """Where they do: first at even and then at odd places."""
    return np.concatenate(
        [2 * np.flatnonzero(same) + shift for shift, same in enumerate(_same(data, pair)) if same.any()]
        or [np.zeros(0, "i8")]
    )


def _same(data: memoryview, pair: bytes) -> Iterator[np.ndarray]:
    word = int.from_bytes(pair, "little")
    for shift in (0, 1):
        yield np.frombuffer(data, "<u2", (len(data) - shift) // 2, shift) == word

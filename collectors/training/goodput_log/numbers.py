"""Whole columns of seconds, timestamps and names as numbers, exactly as `reading.textlog` makes them one by one."""

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors.reading.textlog import DATED, NS_PER_S, moment_ns, seconds_to_ns
from collectors.training.goodput_log.keys import NONE

_EXACT_S = 9.2e9  # seconds that surely fit 64 bits as ns; beyond, one by one
_NEAR = 1e-6  # ns: more than a product of a fraction of a second and 1e9 can be off
_MOMENT = 30  # characters of the longest timestamp that is read at once: to the nanosecond, in UTC
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(8)] + [~0 & (1 << 64) - 1], "u8")
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # splitmix64's
_STEP = np.uint64(0x9E3779B97F4A7C15)


def seconds_ns(seconds: np.ndarray) -> np.ndarray:
    """float64 seconds to the nearest int64 ns of their exact binary values; NONE where not finite or too large.

    Whole seconds and fraction are taken apart: for times of this century the fraction has 22 bits, and its product
    with 1e9 needs 43. Where the product may be rounded (below 2^20 s) and lies so near a half that this could matter,
    and near 64 bits' end, the exact arithmetic decides.
    """
    with np.errstate(invalid="ignore"):
        known = np.abs(seconds) < _EXACT_S
    whole = np.trunc(np.where(known, seconds, 0))
    product = (np.where(known, seconds, 0) - whole) * NS_PER_S
    nearest = np.floor(product + 0.5)
    ns = np.where(known, whole.astype("i8") * NS_PER_S + nearest.astype("i8"), NONE)
    near_half = np.abs(product - np.floor(product) - 0.5) < _NEAR
    for i in np.flatnonzero(near_half | ~known).tolist():
        one = seconds_to_ns(float(seconds[i]))
        ns[i] = NONE if one is None else one
    return ns


def stamps_ns(stamps: pa.StringArray) -> np.ndarray:
    """RFC 3339 timestamps to int64 ns since the epoch; NONE where there is none."""
    ns = np.full(len(stamps), NONE, "i8")
    known = np.flatnonzero(stamps.is_valid())
    if not known.size:
        return ns
    texts = stamps if known.size == len(stamps) else stamps.drop_null()
    lengths = pc.min_max(pc.binary_length(texts))
    # Arrow reads more than this one form, and not all as we do: anything else goes one by one.
    if lengths["min"].as_py() >= 20 and lengths["max"].as_py() <= _MOMENT and pc.all(pc.ends_with(texts, "Z")).as_py():
        try:
            ns[known] = texts.cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_numpy()
            return ns
        except pa.ArrowInvalid:
            pass
    ns[known] = [stamp_ns(text) for text in texts.to_pylist()]
    return ns


def stamp_ns(stamp: object) -> int:
    """One timestamp; NONE where it is none."""
    match = DATED.match(stamp) if isinstance(stamp, str) else None
    ns = moment_ns(match) if match else None
    return NONE if ns is None else ns


def mixed(numbers: np.ndarray) -> np.ndarray:
    """uint64 to uint64, one to one, no bit of the result without a share in each bit of the number (splitmix64)."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX_1
        numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX_2
        return numbers ^ (numbers >> np.uint64(31))


def hashes(texts: pa.StringArray) -> np.ndarray:
    """A 64-bit hash of each text, by its bytes, eight at a time; 0 where there is no text."""
    count = len(texts)
    _, offsets, data = texts.buffers()
    if not count or offsets is None or data is None or not data.size:
        return np.zeros(count, "u8")
    ends = np.frombuffer(memoryview(offsets), "i4", count + 1, texts.offset * 4).astype("i8")
    begin, length = ends[:-1], np.diff(ends)
    padded = np.zeros(data.size + 8, "u1")
    padded[: data.size] = np.frombuffer(memoryview(data), "u1")
    lanes = np.ndarray((data.size + 1,), "<u8", padded, strides=(1,))  # the eight bytes from each byte on
    result = mixed(length.astype("u8") + _STEP)
    rows = np.flatnonzero(length > 0)
    at = 0
    while rows.size:
        left = length[rows] - at
        lane = lanes[begin[rows] + at] & _MASKS[np.minimum(left, 8)]
        with np.errstate(over="ignore"):
            result[rows] = mixed((result[rows] ^ lane) + _STEP)
        at += 8
        rows = rows[left > 8]
    result[length == 0] = 0
    return result


def coded(texts: pa.StringArray) -> tuple[np.ndarray, list[str]]:
    """(a number for each text, -1 where there is none; the texts by number)."""
    encoded = texts.dictionary_encode()
    codes = encoded.indices
    if codes.null_count:
        codes = codes.fill_null(-1)
    return codes.to_numpy(), cast("list[str]", encoded.dictionary.to_pylist())  # no null is among them

"""The records of an event file, block by block, as columns: what each value's name, step, time and number are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from collectors.reading.as_far import AsFar
from collectors.training.tensorboard import codes
from collectors.training.tensorboard.scan import scan

BLOCK_BYTES = 1 << 23
MOST_VALUES = 1 << 16  # of one block of columns
_TAG_BYTES = 1 << 23  # of their names
_LAST_S = 1e10  # seconds since the epoch: what lies behind it is no time


@dataclass(frozen=True)
class Values:
    """Of each value its name (a dictionary of bytes), step, time (ns since the epoch, 0: none) and number; `places`:
    where of the file its record begins."""

    names: Any
    steps: np.ndarray
    ts_ns: np.ndarray
    numbers: np.ndarray
    places: np.ndarray


class Look:
    """A look through one file. `counted`: what was met and passed over, see `codes`; `too_long`: records that were not
    looked into."""

    def __init__(self) -> None:
        self.too_long = 0
        self.counted = np.zeros(codes.COUNTERS, np.int64)
        self.counted[codes.LOST] = -1
        self._rows = np.zeros((MOST_VALUES, codes.COLUMNS), np.int64)
        self._tags = np.zeros(_TAG_BYTES, np.uint8)
        self._offsets = np.zeros(MOST_VALUES + 1, np.int32)
        self._record, self._field = np.zeros(3, np.int64), np.zeros(5, np.int64)

    def count(self, counter: int) -> int:
        return int(self.counted[counter])

    def through(self, block: bytearray, origin: int, final: bool) -> int:
        """Looks through a block that begins at `origin` of the file. How that ends; `counted[POS]` says how far it
        came."""
        self.counted[codes.VALUES] = self.counted[codes.TAG_BYTES] = 0
        buffer = np.frombuffer(block, np.uint8)
        return int(
            scan(buffer, final, origin, self._record, self._field, self._rows, self._tags, self._offsets, self.counted)
        )

    def values(self) -> Values | None:
        """The numbers that the last look entered."""
        n = int(self.counted[codes.VALUES])
        rows = self._rows[:n]
        chosen = np.flatnonzero(rows[:, codes.FORM] != codes.TEXT)
        if not len(chosen):
            return None
        names = self._names(n)
        if len(chosen) < n:
            rows, names = rows[chosen], names.take(pa.array(chosen))
        return Values(
            names.dictionary_encode(),
            rows[:, codes.STEP].copy(),
            times_ns(rows[:, codes.WALL]),
            numbers(rows[:, codes.FORM], rows[:, codes.BITS]),
            rows[:, codes.OF].copy(),
        )

    def texts(self, block: bytearray, most: int) -> Iterator[tuple[bytes, bytes]]:
        """(name, text) of the texts that the last look entered, `most` bytes of each."""
        n = int(self.counted[codes.VALUES])
        for k in np.flatnonzero(self._rows[:n, codes.FORM] == codes.TEXT).tolist():
            at, length = (int(self._rows[k, c]) for c in (codes.AT, codes.LENGTH))
            name = self._tags[self._offsets[k] : self._offsets[k + 1]].tobytes()
            yield name, bytes(block[at : at + min(length, most)])

    def _names(self, n: int) -> Any:
        size = int(self._offsets[n])
        offsets, text = self._offsets[: n + 1].tobytes(), self._tags[:size].tobytes()
        return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def times_ns(bits: np.ndarray) -> np.ndarray:
    """Seconds since the epoch, as their bits, to the nearest ns; 0 where they are no time of a job."""
    seconds = np.ascontiguousarray(bits).view(np.float64)
    with np.errstate(invalid="ignore"):
        known = (seconds > 0) & (seconds < _LAST_S)
    seconds = np.where(known, seconds, 0.0)
    whole = np.floor(seconds)
    return whole.astype(np.int64) * 1_000_000_000 + np.rint((seconds - whole) * 1e9).astype(np.int64)


def numbers(form: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Numbers of their bits, each by its form; a whole number beyond 2^53 to the nearest that 64 bits hold."""
    low = bits.astype(np.uint32)
    found = low.view(np.float32).astype(np.float64)
    for one in np.unique(form).tolist():
        if one == codes.FLOAT:
            continue
        mine = form == one
        raw = bits[mine]
        if one == codes.DOUBLE:
            found[mine] = raw.view(np.float64)
        elif one == codes.HALF:
            found[mine] = raw.astype(np.uint16).view(np.float16)
        elif one == codes.BFLOAT:
            found[mine] = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
        elif one == codes.UNSIGNED:
            found[mine] = raw.view(np.uint64)
        else:
            found[mine] = raw
    return found


def blocks(stream: BinaryIO | AsFar, look: Look) -> Iterator[bytearray]:
    """Each block that the look has come through, up to the end of the file."""
    block, origin, ended = bytearray(), 0, False
    while True:
        how = look.through(block, origin, ended)
        came = look.count(codes.POS)
        yield block
        length = int.from_bytes(block[came : came + 8], "little") if how == codes.TOO_LONG else 0
        block, origin = block[came:], origin + came
        if how == codes.TOO_LONG:
            look.too_long += 1
            skipped = codes.HEADER + length + codes.FOOTER
            block, ended = _skip(stream, block, skipped)
            look.counted[codes.CUT] += ended
            origin += skipped
        elif how == codes.NEEDS_BYTES:
            if ended:
                return
            more = stream.read(BLOCK_BYTES)
            ended = not more
            block += more


def _skip(stream: BinaryIO | AsFar, block: bytearray, count: int) -> tuple[bytearray, bool]:
    """What was read beyond the next `count` bytes, and whether the file ends within them."""
    left = count - len(block)
    while left > 0:
        piece = stream.read(min(left, BLOCK_BYTES))
        if not piece:
            return bytearray(), True
        left -= len(piece)
    return block[count:], False

"""Reading protobuf's wire format without holding the message: windows over a file and compiled field walks.

A protobuf library wants the whole message in memory and refuses one above 2 GB. The wire format does not: it is a
list of (field, wire type, payload), so a reader can walk one level, note where the payloads lie, and come back for
them. Every length is checked against the bytes that are really there before it is used.
"""

import builtins
from collections.abc import Container, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from runs.compiled import compiler

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
DONE, MORE, FULL, BAD = 0, 1, 2, 3  # how a compiled walk ended: at the limit, at the window's end, output full, damage
_WALK_ROWS = 8192


_compiler = compiler(__package__)
kernel = _compiler()
part = _compiler(forceinline=True)  # of a kernel: a call would cost more than what it does


@part
def varint(buf, pos, stop):
    """(value, next position). Position -1: the bytes ran out; -2: more than ten bytes, so no varint."""
    if pos >= stop:
        return np.int64(0), np.int64(-1)
    value = np.int64(buf[pos])
    if value < 128:
        return value, pos + 1
    value &= 127
    for i in range(1, 10):
        if pos + i >= stop:
            return value, np.int64(-1)
        byte = np.int64(buf[pos + i])
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, pos + i + 1
    return value, np.int64(-2)


@kernel
def skip(buf, tag, pos, stop):
    """Position behind the value of the field with this tag; negative where the value is damaged or not whole."""
    kind = tag & 7
    if tag >> 3 <= 0:
        return -2
    if kind == VARINT:
        return varint(buf, pos, stop)[1]
    if kind == BYTES:
        length, pos = varint(buf, pos, stop)
        if pos < 0:
            return pos
        if length < 0 or length > stop - pos:
            return -1
        return pos + length
    if kind == FIXED64:
        return pos + 8 if pos + 8 <= stop else -1
    if kind == FIXED32:
        return pos + 4 if pos + 4 <= stop else -1
    return -2


@kernel
def index_fields(buf, pos, stop, limit, out):
    """Fills `out` with (field, wire type, payload start, payload length or value) from `pos` on.

    `stop` is where the window's bytes end, `limit` where the message ends; a payload may lie beyond `stop`.
    Returns (rows, next position, how it ended). A payload that claims to pass `limit` is entered and ends the walk.
    """
    n = 0
    while pos < limit:
        if n == out.shape[0]:
            return n, pos, FULL
        if pos >= stop:
            return n, pos, MORE
        tag, p = varint(buf, pos, stop)
        size = np.int64(0)
        if p >= 0 and tag & 7 == BYTES:
            size, p = varint(buf, p, stop)
        if p == -1 and stop < limit and stop - pos < 20:
            return n, pos, MORE
        if p < 0 or tag >> 3 <= 0 or size < 0:
            return n, pos, BAD
        out[n, 0] = tag >> 3
        out[n, 1] = tag & 7
        out[n, 2] = p
        out[n, 3] = size
        if tag & 7 == BYTES:
            n += 1
            if size > limit - p:
                return n, pos, BAD
            pos = p + size
            continue
        q = skip(buf, tag, p, stop)
        if q == -1 and stop < limit and stop - pos < 20:
            return n, pos, MORE
        if q < 0 or q > limit:
            return n, pos, BAD
        if tag & 7 == VARINT:
            out[n, 3] = varint(buf, p, stop)[0]
        else:
            out[n, 3] = q - p
        n += 1
        pos = q
    return n, pos, DONE


@kernel
def index_entries(buf, base, have, ranges, first, name_field, out):
    """Keys and names of map entries `{key, value {id, name, ..}}`: out[i] = (key, name start, name length, more).

    `ranges` are (start, length) in the file, `base` and `have` tell which part of it the buffer holds. Returns the
    first row that does not lie in it as a whole. A damaged entry has the name length -1; `more` tells whether the value
    has fields besides identifier and name.
    """
    i = first
    while i < ranges.shape[0]:
        pos = ranges[i, 0] - base
        end = pos + ranges[i, 1]
        if pos < 0 or end > have:
            return i
        key, start, length, more = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        while 0 <= pos < end:
            tag, pos = varint(buf, pos, end)
            if pos < 0:
                break
            if tag == 0x08:
                key, pos = varint(buf, pos, end)
            elif tag == 0x12:
                size, pos = varint(buf, pos, end)
                if pos < 0 or size < 0 or size > end - pos:
                    pos = -1
                    break
                inner, stop = pos, pos + size
                while 0 <= inner < stop:
                    tag, inner = varint(buf, inner, stop)
                    if inner < 0:
                        break
                    if tag >> 3 == name_field and tag & 7 == BYTES:
                        length, inner = varint(buf, inner, stop)
                        if inner < 0 or length < 0 or length > stop - inner:
                            inner = -1
                            break
                        start = inner + base
                        inner += length
                    else:
                        more |= tag >> 3 != 1
                        inner = skip(buf, tag, inner, stop)
                pos = stop if inner >= 0 else -1
            else:
                pos = skip(buf, tag, pos, end)
        out[i, 0] = key
        out[i, 1] = start
        out[i, 2] = length if pos >= 0 else -1
        out[i, 3] = more
        i += 1
    return i


class Fields(NamedTuple):
    """Fields of one level in the order of the file: number, wire type, payload start, payload length or value."""

    number: np.ndarray
    wire: np.ndarray
    start: np.ndarray
    length: np.ndarray


class Window:
    """A view of a seekable file through one buffer that is used again and again.

    Reads, unlike mapped pages, leave resident memory at the size of the buffer however long the file is.
    """

    def __init__(self, file: BinaryIO, capacity: int = 1 << 23):
        self._file = file
        self.size = file.seek(0, 2)
        self._data = np.zeros(max(1, min(capacity, self.size)), np.uint8)
        self._start = self._end = 0

    def at(self, pos: int, need: int = 1) -> tuple[np.ndarray, int, int]:
        """(buffer, file offset of its first byte, bytes in it), with `need` bytes from `pos` where the file has them.

        `need` is cut to what the file holds, so a false length can never ask for more memory than the file is long.
        """
        need = max(0, min(need, self.size - pos))
        if not (self._start <= pos and pos + need <= self._end):
            if need > len(self._data):
                self._data = np.zeros(need, np.uint8)
            self._file.seek(pos)
            want = self._data.data[: min(len(self._data), self.size - pos)]
            got = 0
            while got < len(want) and (step := self._file.readinto(want[got:])):  # type: ignore[attr-defined]
                got += step
            self._start, self._end = pos, pos + got
        return self._data, self._start, self._end - self._start

    def bytes(self, start: int, length: int) -> bytes:
        """A copy of `length` bytes from `start`, fewer where the file ends."""
        if length <= len(self._data):
            data, base, have = self.at(start, length)
            return data[start - base : min(start - base + length, have)].tobytes()
        self._file.seek(start)
        return self._file.read(max(0, min(length, self.size - start)))

    def entries(
        self, ranges: np.ndarray, name_field: int, only: Container[int] | None = None
    ) -> tuple[list[tuple[int, builtins.bytes, int]], int]:
        """Map entries at `ranges`: ((key, name, row where the value holds more than a name, else -1).., damaged ones).

        With `only`, just the entries of those keys.
        """
        out = np.zeros((len(ranges), 4), np.int64)
        found: list[tuple[int, bytes, int]] = []
        damaged = first = 0
        while first < len(ranges):
            data, base, have = self.at(int(ranges[first, 0]), int(ranges[first, 1]))
            last = index_entries(data, base, have, ranges, first, name_field, out)
            if last == first:  # the file ends in it
                return found, damaged + len(ranges) - first
            raw = data.data
            for row, (key, start, length, more) in enumerate(out[first:last].tolist(), first):
                if only is not None and key not in only:
                    continue
                if length < 0:
                    damaged += 1
                else:
                    found.append((key, bytes(raw[start - base : start - base + length]), row if more else -1))
            first = last
        return found, damaged

    def names(
        self, ranges: np.ndarray, name_field: int, only: Container[int] | None = None
    ) -> tuple[dict[int, builtins.bytes], int]:
        """({key: name} of the map entries at `ranges`, how many are damaged); of the keys in `only` if given."""
        found, damaged = self.entries(ranges, name_field, only)
        return {key: name for key, name, _ in found}, damaged

    def walk(self, start: int, end: int) -> Iterator[tuple[Fields, int | None]]:
        """The fields of the message at [start, end), some thousand at a time, as (fields, offset of damage or None).

        After damage the walk ends: what follows cannot be told from noise. A payload that passes `end` is the last
        row then, with the length it claims.
        """
        out = np.empty((_WALK_ROWS, 4), np.int64)
        pos = start
        while pos < end:
            data, base, have = self.at(pos, 20)
            rows, at, how = index_fields(data, pos - base, have, end - base, out)
            table = out[:rows].copy()
            table[:, 2] += base
            stuck = how == MORE and rows == 0 and at + base == pos
            yield Fields(*table.T), (at + base if how == BAD or stuck else None)
            if how == BAD or stuck:
                return
            pos = at + base

    def fields(self, start: int, end: int) -> tuple[Fields, int | None]:
        """All fields of the message at [start, end) at once, and the offset of damage or None."""
        parts = list(self.walk(start, end))
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0, np.int64)
        if not parts:
            return Fields(empty, empty, empty, empty), None
        joined = Fields(*(np.concatenate([getattr(p[0], c) for p in parts]) for c in Fields._fields))
        return joined, parts[-1][1]

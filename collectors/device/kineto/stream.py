"""The file as one value after another: what stands beside the events, the events in batches, and what was damaged."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from collectors.base import Lost, Source
from collectors.device.kineto.columns import (
    COUNTERS,
    DAMAGED,
    DONE,
    NEEDS_BYTES,
    NEEDS_TEXTS,
    ODD,
    POS,
    ROWS,
    STATS,
    STRAY,
    Batch,
    Stats,
    keys_of,
    new_batch,
    new_stats,
)
from collectors.device.kineto.scan import events
from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import MORE, closing, value
from errors import InputError

CHUNK = 1 << 22
BATCH_ROWS, STAT_ROWS = 1 << 16, 1 << 18
LONGEST = 1 << 26  # bytes of one value; a longer one is damage
_RESUME = re.compile(rb"\}\s*,\s*(?=\{)")
_CUT = (EOFError, zlib.error, gzip.BadGzipFile)
_BLANK = b" \t\r\n,"


class Window:
    """The bytes at hand of a file that is read once from its beginning."""

    def __init__(self, source: Source, lost: list[Lost]):
        try:
            self._file, self._lost = source.open(), lost
        except _CUT as error:
            raise InputError(f"a gzip archive that cannot be unpacked ({error})", where=source.name) from error
        self.data = b""
        self.base = 0  # where in the file they begin
        self.ended = False

    def more(self, keep: int) -> bool:
        """Drops what lies before `keep` and reads on; False where the file has ended, or the value is too long."""
        if self.ended or len(self.data) - keep > LONGEST:
            return False
        wanted, piece = max(CHUNK, len(self.data) - keep), bytearray()
        try:
            while len(piece) < wanted and (got := self._file.read1(wanted - len(piece))):  # type: ignore[attr-defined]
                piece += got  # bit by bit, which keeps what precedes a fault
        except _CUT as error:
            self._lost.append(Lost("the rest of the gzip archive", str(error), self.base + len(self.data) + len(piece)))
            self.ended = True
        self.ended |= not piece
        if piece:
            self.data = self.data[keep:] + piece
            self.base += keep
        return bool(piece)

    def close(self) -> None:
        self._file.close()


class Stream:
    """Reads one trace. `beside`: what stands beside its events, by key; `texts`: those of its events."""

    expected = "a trace of the PyTorch profiler with events under `traceEvents`"

    def __init__(self, source: Source):
        self.lost: list[Lost] = []
        self.texts = Texts()
        self.beside: dict[str, Any] = {}
        self.damaged = 0
        self.closed = False  # whether the list of events was read to its bracket
        self.counters = np.zeros(COUNTERS, np.int64)
        self._window = Window(source, self.lost)
        self._keys = keys_of(self.texts)
        # Arguments of Python frames are numbers that their nesting tells as well, and most of a trace with stacks.
        self._quiet = np.arange(self.texts.of("python_function") + 1) == self.texts.of("python_function")
        self._batch, self._stats = new_batch(BATCH_ROWS), new_stats(STAT_ROWS)
        self._pos = 0
        self._first_damage: int | None = None

    def batches(self) -> Iterator[tuple[Batch, Stats]]:
        """The events and their arguments, in the order of the file; what it gives is overwritten by the next."""
        try:
            yield from self._whole()
            yield from self._taken()
        finally:
            self._window.close()
        if self.damaged:
            self.lost.append(Lost(f"{self.damaged:,} events", "they are no JSON objects", self._first_damage))
        if odd := int(self.counters[ODD]):
            self.lost.append(Lost(f"{odd:,} values", "they are no JSON (such as `inf`, `NaN` or decimal commas)"))
        if stray := int(self.counters[STRAY]):
            self.lost.append(Lost(f"{stray:,} values among the events", "they are no JSON objects"))

    def _whole(self) -> Iterator[tuple[Batch, Stats]]:
        first = self._next()
        if first == b"[":
            self._pos += 1
            yield from self._events()
            return
        self._pos += 1
        while (at := self._next()) == b'"':
            name = self._text()
            if name is None or self._next(b" \t\r\n:") == b"":
                break
            if name == b"traceEvents" and self._window.data[self._pos : self._pos + 1] == b"[":
                self._pos += 1
                yield from self._events()
            elif not self._other(_encodable(name.decode("utf-8", "replace"))):
                break
        if at != b"}":
            self.lost.append(Lost("the end of the file", "it ends early, or is damaged", self._at))

    @property
    def _at(self) -> int:
        return self._window.base + self._pos

    def _next(self, blank: bytes = _BLANK) -> bytes:
        """The next byte that is not blank; empty at the end of the file."""
        while True:
            data = self._window.data
            while self._pos < len(data) and data[self._pos] in blank:
                self._pos += 1
            if self._pos < len(data):
                return data[self._pos : self._pos + 1]
            if not self._more():
                return b""

    def _more(self) -> bool:
        if not self._window.more(self._pos):
            return False
        self._pos = 0
        return True

    def _text(self) -> bytes | None:
        while True:
            data = self._window.data
            end = int(closing(np.frombuffer(data, np.uint8), self._pos + 1, len(data)))
            if end >= 0:
                text, self._pos = data[self._pos + 1 : end], end + 1
                return text
            if not self._more():
                return None

    def _other(self, name: str) -> bool:
        """Notes a value beside the events; whether one could be read."""
        while True:
            data = self._window.data
            *_, end = value(np.frombuffer(data, np.uint8), self._pos, len(data))
            if end >= 0:
                break
            if end != MORE or not self._more():
                return False
        raw, self._pos = data[self._pos : int(end)], int(end)
        try:
            self.beside[name] = _encodable(json.loads(raw.decode("utf-8", "replace"), strict=False))
        except (ValueError, RecursionError) as error:
            self.lost.append(Lost(f"{name!r}", f"it is no JSON ({error})", self._at - len(raw)))
        return True

    def _events(self) -> Iterator[tuple[Batch, Stats]]:
        tell = np.zeros(2, np.int64)
        while True:
            data = np.frombuffer(self._window.data, np.uint8)
            how = events(
                data,
                self._pos,
                len(data),
                self._keys,
                self._batch,
                self._stats,
                self.texts.store,
                self._quiet,
                self.counters,
                tell,
            )
            self._pos = int(self.counters[POS])
            if how == DONE:
                self.closed = True
                return
            if how == NEEDS_TEXTS:
                self.texts.grow(len(data) - self._pos)
            elif how == NEEDS_BYTES and self._more():
                continue
            elif how == NEEDS_BYTES and self._window.ended:
                if self._pos < len(self._window.data):
                    self.lost.append(Lost("the last event", "the file ends in the middle of it", self._at))
                return
            elif how in (NEEDS_BYTES, DAMAGED):
                if not self._resume():
                    return
            elif self.counters[ROWS] or self.counters[STATS]:
                yield from self._taken()
            else:  # one event has more arguments than there is room for
                self._stats = new_stats(2 * len(self._stats.kind))

    def _taken(self) -> Iterator[tuple[Batch, Stats]]:
        n, m = int(self.counters[ROWS]), int(self.counters[STATS])
        if n:
            yield Batch(*(c[:n] for c in self._batch)), Stats(*(c[:m] for c in self._stats))
        self.counters[ROWS] = self.counters[STATS] = 0

    def _resume(self) -> bool:
        """Goes on where another event may begin; False where none does any more."""
        self.damaged += 1
        self._first_damage = self._at if self._first_damage is None else self._first_damage
        self._pos += 1
        while True:
            if found := _RESUME.search(self._window.data, self._pos):
                self._pos = found.end()
                return True
            self._pos = max(self._pos, len(self._window.data) - 64)
            if not self._more():
                return False


def _encodable(value: Any) -> Any:
    """The value with what no text can hold (half a pair of surrogates) replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_encodable(v) for v in value]
    return {_encodable(k): _encodable(v) for k, v in value.items()} if isinstance(value, dict) else value

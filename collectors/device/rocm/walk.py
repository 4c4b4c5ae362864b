"""A walk through one large JSON document, piece by piece: what it holds is decoded value by value, never as a whole."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from collectors.base import Lost, Source
from collectors.device.kineto.stream import Window
from collectors.device.kineto.tokens import MORE, nested, value

RECORDS = 1 << 12  # that are decoded together
_BLANK = b" \t\r\n,"
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


class Ended(Exception):
    """The document ends, or is damaged, where more of it was expected."""


class Walk:
    """`lost`: what was damaged."""

    def __init__(self, source: Source):
        self.lost: list[Lost] = []
        self._window = Window(source, self.lost)
        self._pos = 0

    def close(self) -> None:
        self._window.close()

    @property
    def at(self) -> int:
        """Byte of the document at which the walk is."""
        return self._window.base + self._pos

    def peek(self, blank: bytes = _BLANK) -> bytes:
        """The next byte that is not blank. Raises Ended where there is none."""
        while True:
            data = self._window.data
            while self._pos < len(data) and data[self._pos] in blank:
                self._pos += 1
            if self._pos < len(data):
                return data[self._pos : self._pos + 1]
            self._more()

    def _more(self) -> None:
        if not self._window.more(self._pos):
            raise Ended
        self._pos = 0

    def members(self) -> Iterator[str]:
        """The keys of the object that opens here. Whoever takes a key takes its value too, or `skip`s it."""
        self._opened(b"{")
        while self.peek() == b'"':
            key = self._one(self.raw())
            if self.peek(b" \t\r\n:") in b"}]," or not isinstance(key, str):
                raise Ended
            yield key
        self._closed(b"}")

    def items(self) -> Iterator[bytes]:
        """The first byte of each item of the array that opens here. Whoever takes it takes the item too."""
        self._opened(b"[")
        while (first := self.peek()) not in b"]}":
            yield first
        self._closed(b"]")

    def _opened(self, bracket: bytes) -> None:
        if self.peek() != bracket:
            raise Ended
        self._pos += 1

    def _closed(self, bracket: bytes) -> None:
        if self.peek() != bracket:
            raise Ended
        self._pos += 1

    def raw(self) -> bytes:
        """The bytes of the value here. Raises Ended where it does not end, or is none."""
        self.peek()
        while True:
            data = self._window.data
            *_, end = value(np.frombuffer(data, np.uint8), self._pos, len(data))
            if end >= 0:
                found, self._pos = data[self._pos : int(end)], int(end)
                return found
            if end != MORE:
                raise Ended
            self._more()

    def value(self) -> Any:
        """The value here; None where it is no JSON, which is told."""
        at = self.at
        raw = self.raw()
        try:
            return self._decoded(raw)
        except (ValueError, RecursionError):
            self.lost.append(Lost("a value", "it is no JSON", at))
            return None

    def skip(self) -> None:
        """Passes over the value here, however long it is."""
        depth = 0
        while True:
            first = self.peek(b" \t\r\n,:")
            if first in b"]}":
                self._pos += 1
                depth -= 1
            elif not self._skipped_at_hand():
                if first in b"[{":
                    self._pos += 1
                    depth += 1
                else:
                    self.raw()
            if depth < 0:
                raise Ended
            if depth == 0:
                return

    def _skipped_at_hand(self) -> bool:
        """Passes over the value here if the bytes at hand hold all of it."""
        data = self._window.data
        *_, end = value(np.frombuffer(data, np.uint8), self._pos, len(data))
        if end >= 0:
            self._pos = int(end)
        return end >= 0

    def records(self) -> Iterator[list[dict[str, Any]]]:
        """The objects of the array that opens here, some at a time; what is no object is counted."""
        self._opened(b"[")
        odd = 0
        try:
            while self.peek() not in b"]}":
                pieces = self._pieces()
                found = self._all(pieces)
                odd += len(pieces) - len(found)
                if found:
                    yield found
            self._closed(b"]")
        finally:
            if odd:
                self.lost.append(Lost(f"{odd:,} records", "they are no JSON objects", self.at))

    def _pieces(self) -> list[bytes]:
        """The bytes of the next items, as many as are at hand."""
        pieces: list[bytes] = []
        while len(pieces) < RECORDS:
            data = self._window.data
            buffer = np.frombuffer(data, np.uint8)
            while self._pos < len(data) and data[self._pos] in _BLANK:
                self._pos += 1
            if self._pos >= len(data) or data[self._pos] in b"]}":
                break
            end = nested(buffer, self._pos, len(data)) if data[self._pos] in b"{[" else MORE
            if end < 0:
                break
            pieces.append(data[self._pos : int(end)])
            self._pos = int(end)
        return pieces or [self.raw()]

    def _all(self, pieces: list[bytes]) -> list[dict[str, Any]]:
        try:
            found = self._decoded(b"[" + b",".join(pieces) + b"]")
        except (ValueError, RecursionError):
            found = [self._one(piece) for piece in pieces]
        return [record for record in found if isinstance(record, dict)]

    def _one(self, piece: bytes) -> Any:
        try:
            return self._decoded(piece)
        except (ValueError, RecursionError):
            return None

    @staticmethod
    def _decoded(raw: bytes) -> Any:
        return _DECODER.decode(raw.decode("utf-8", "replace"))

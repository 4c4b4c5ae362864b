"""Answers of log services that are too long for one object, or were cut off: one entry after another.

Elasticsearch, Loki and CloudWatch hand out all entries within one object of JSON. One of a few megabytes is read entry
by entry, as it comes; where it ends in the middle, what came before that is told.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from collectors.base import Source
from collectors.reading import json_stream
from collectors.reading.textlog import Tally

_LISTS = {("events",), ("hits", "hits"), ("data", "result")}  # where the entries of an answer lie
_LISTED = re.compile(rb'"(?:events|hits|result)"\s*:\s*\[')
_BLANK = re.compile(r"\s*")


def is_answer(source: Source) -> bool:
    """Whether a file begins with an object that lists entries, and that does not end within its first bytes."""
    head = source.head.lstrip()
    if not _LISTED.search(head) or json_stream.first(head) is not None:
        return False
    text = _Text(BytesIO(head).read)
    with contextlib.suppress(json_stream.Ended):
        if text.peek() == "{":
            next(_object(text, ()), None)
    return text.listed


def answered(read: Callable[[int], bytes], tally: Tally) -> Iterator[tuple[int, dict]]:
    """(byte offset behind it, entry) for each entry of the answers in a file, one after another. A line of Loki's is an
    entry with `labels`, `ts` and `line`."""
    text = _Text(read)
    try:
        while text.peek() == "{":
            yield from _object(text, ())
        if text.peek():
            tally.add("pieces of text", "they are no JSON objects", text.offset)
    except json_stream.Ended:
        tally.add("the last entry", "the file ends in the middle of it, or it is no JSON", text.offset)


def _object(text: "_Text", path: tuple[str, ...]) -> Iterator[tuple[int, dict]]:
    for key in text.members():
        here = (*path, key)
        if here in _LISTS and text.peek() == "[":
            text.listed = True
            for _ in text.places():
                yield from _stream(text) if here == ("data", "result") else _entry(text)
        elif any(one[: len(here)] == here for one in _LISTS) and text.peek() == "{":
            yield from _object(text, here)
        else:
            text.value()


def _entry(text: "_Text") -> Iterator[tuple[int, dict]]:
    found = text.value()
    if isinstance(found, dict):
        inner = found.get("_source")
        yield text.offset, inner if isinstance(inner, dict) else found


def _stream(text: "_Text") -> Iterator[tuple[int, dict]]:
    """The lines of one of Loki's streams, whose labels stand before them."""
    labels: Any = None
    if text.peek() != "{":
        text.value()
        return
    for key in text.members():
        if key == "stream":
            labels = text.value()
        elif key == "values" and isinstance(labels, dict) and text.peek() == "[":
            for _ in text.places():
                pair = text.value()
                if isinstance(pair, list) and len(pair) >= 2:
                    yield text.offset, {"labels": labels, "ts": pair[0], "line": pair[1]}
        else:
            text.value()


class _Text:
    """The characters of a file, one for each byte, of which a piece is held."""

    def __init__(self, read: Callable[[int], bytes]):
        self._read, self._buffer, self._at, self._base, self._over = read, "", 0, 0, False
        self.listed = False  # whether a list of entries began

    @property
    def offset(self) -> int:
        """Bytes before what comes next."""
        return self._base + self._at

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            blank = _BLANK.match(self._buffer, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._buffer) or not self._more():
                return self._buffer[self._at : self._at + 1]

    def value(self) -> Any:
        """The next value. Raises Ended where the file ends within it, or where it is none."""
        if not self.peek():
            raise json_stream.Ended
        while (found := json_stream.value(self._buffer, self._at)) is None or found[1] == len(self._buffer):
            if not self._more():  # a number may go on behind what is held
                break
        if found is None:
            raise json_stream.Ended
        self._at = found[1]
        return found[0]

    def members(self) -> Iterator[str]:
        """Each key of an object; who asks for the next has taken the value of the one before."""
        for _ in self.places():
            key = self.value()
            if not isinstance(key, str) or self.peek() != ":":
                raise json_stream.Ended
            self._at += 1
            yield key

    def places(self) -> Iterator[None]:
        """Once for each part of an object or a list; who asks for the next has taken it."""
        self._at += 1
        while (here := self.peek()) not in ("}", "]"):
            if not here:
                raise json_stream.Ended
            yield
            if (behind := self.peek()) == ",":
                self._at += 1
            elif behind not in ("}", "]"):
                raise json_stream.Ended
        self._at += 1

    def _more(self) -> bool:
        """Whether there was more to read; what lies behind is let go of."""
        if self._over or len(self._buffer) - self._at >= json_stream.OBJECT_LIMIT:
            return False
        piece = self._read(json_stream.CHUNK).decode("latin-1")
        self._base += self._at
        self._buffer, self._at = self._buffer[self._at :] + piece, 0
        self._over = not piece
        return bool(piece)

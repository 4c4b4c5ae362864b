"""JSON of any length, walked part by part: of an answer that lists a million entries one is held at a time."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from collectors.reading import json_stream

_BLANK = re.compile(r"\s*")
_UNSURE = 200  # characters at the end of what is held in which what is wanted may begin


class JsonText:
    """The characters of a file, one for each byte, of which a piece is held."""

    def __init__(self, read: Callable[[int], bytes]):
        self._read, self._buffer, self._at, self._base, self._over = read, "", 0, 0, False
        self.told = 0  # bytes before the end of the last value

    @property
    def offset(self) -> int:
        """Bytes before what comes next."""
        return self._base + self._at

    def peek(self, passed: re.Pattern[str] = _BLANK) -> str:
        """The next character that is not blank, or not `passed`; empty at the end."""
        if passed is _BLANK and self._at < len(self._buffer) and self._buffer[self._at] > " ":
            return self._buffer[self._at]
        while True:
            blank = passed.match(self._buffer, self._at)
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
        self.told = self.offset
        return found[0]

    def pass_by(self, wanted: re.Pattern[str]) -> bool:
        """Go on behind what is `wanted`; whether there was such. Else all that was left lies behind."""
        while (found := wanted.search(self._buffer, self._at)) is None:
            self._at = max(self._at, len(self._buffer) - _UNSURE)
            if not self._more():
                self._at = len(self._buffer)
                return False
        self._at = found.end()
        return True

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

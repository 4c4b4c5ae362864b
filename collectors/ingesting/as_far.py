"""A file as far as it can be read: one that was packed and cut off gives what came before."""

import io
from typing import Any

from collectors.ingesting.unpack import BROKEN


class AsFar(io.RawIOBase):
    """`stream` up to its end, or to where it breaks off. `why`: what broke it off there; empty where nothing did."""

    def __init__(self, stream: Any):
        self._stream, self.why = stream, ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.why:
            return 0
        try:
            piece = self._stream.read1(len(buffer))
        except BROKEN as e:
            self.why = (e.strerror if isinstance(e, OSError) else "") or str(e) or type(e).__name__
            return 0
        buffer[: len(piece)] = piece
        return len(piece)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of it."""
        return (f"the rest: it cannot be read ({self.why}). Is the file complete?",) if self.why else ()

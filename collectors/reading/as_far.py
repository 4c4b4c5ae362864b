"""A file as far as it can be read: one that was packed and cut off gives what came before."""

import io
import zlib
from typing import Any

BROKEN = (OSError, EOFError, zlib.error)  # what reading a damaged or vanished file raises


class AsFar(io.RawIOBase):
    """`stream` up to its end, or to where it breaks off. `why`: what broke it off there; empty where nothing did.
    `faults`: those that end it; others are raised."""

    def __init__(self, stream: Any, faults: tuple[type[Exception], ...] = BROKEN):
        self._stream, self._faults, self.why = stream, faults, ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.why:
            return 0
        try:
            piece = self._stream.read1(len(buffer))
        except self._faults as e:
            self.why = (e.strerror if isinstance(e, OSError) else "") or str(e) or type(e).__name__
            return 0
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of it."""
        return (f"the rest: it cannot be read ({self.why}). Is the file complete?",) if self.why else ()

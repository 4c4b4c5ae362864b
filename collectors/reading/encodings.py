"""Text as UTF-8, whatever a file says at its beginning that it is written in."""

import codecs
import io
from typing import Any, BinaryIO

UTF8_MARK = codecs.BOM_UTF8
_MARKS = (  # byte-order mark, codec that reads it; the longer first, since one begins like another
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PIECE = 1 << 16


def as_utf8(stream: Any) -> BinaryIO:
    """The stream without a byte-order mark of UTF-8, translated where its mark is one of UTF-16 or UTF-32.

    `stream` is buffered and stands at its beginning. Positions in it are then those of the text handed out.
    """
    begin = bytes(stream.peek(4)[:4])
    if begin.startswith(UTF8_MARK):
        stream.read(len(UTF8_MARK))
        return stream
    for mark, codec in _MARKS:
        if begin.startswith(mark):
            return io.BufferedReader(Utf8(stream, codec))  # type: ignore[return-value]
    return stream


class Utf8(io.RawIOBase):
    """A stream as UTF-8, with U+FFFD for bytes that are none of `codec`."""

    def __init__(self, stream: BinaryIO, codec: str = "utf-8"):
        self._stream, self._decoder = stream, codecs.getincrementaldecoder(codec)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._stream.read(_PIECE)
            self._ready = self._decoder.decode(piece, final=not piece).encode("utf-8", "replace")
            if not piece:
                break
        taken, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()

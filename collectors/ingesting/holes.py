"""Logs in plain lines with holes of zeros in them.

A machine that went down leaves zeros where it had not yet written what it had made room for; a log that is cut to
nothing while a program writes on at its own place begins with as many zeros as it had bytes. What stands before a hole
in its line was cut off with it. Zeros that stand alone were printed, and say nothing.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from collectors.base import LINE_LIMIT_BYTES
from collectors.ingesting.unpack import CHUNK, SafeSource
from collectors.reading.textlog import HOLE

_NO_TEXT = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")  # what no log prints


def filled(source: SafeSource, out: Path, check: Callable[[], None] = lambda: None) -> int | None:
    """Write the lines without zeros to `out`; how many zeros there were. None, and nothing to be read, where the file
    is no text."""
    zeros, held = 0, b""  # the line that is not whole yet
    with source.open() as f, out.open("wb") as written:
        while piece := f.read(CHUNK):
            check()
            zeros += piece.count(b"\0")
            if _NO_TEXT.search(piece):
                return None
            held = _tell_whole(held + piece, written)
            if len(held) > LINE_LIMIT_BYTES:
                return None
        written.write(_without(held))
    return zeros


def _tell_whole(text: bytes, out: BinaryIO) -> bytes:
    """Write the lines that are whole; what is left of the last."""
    whole, end, rest = text.rpartition(b"\n")
    if end:
        lines = (_without(line) for line in whole.split(b"\n"))
        out.write(b"\n".join(lines) + b"\n" if b"\0" in whole else whole + b"\n")
    return HOLE + rest.rpartition(HOLE)[2].lstrip(b"\0") if HOLE in rest else rest


def _without(line: bytes) -> bytes:
    return line.rpartition(HOLE)[2].replace(b"\0", b"")

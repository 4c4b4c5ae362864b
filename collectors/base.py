"""The seam between an input format and the store: what a collector is given and what it hands back.

A collector is a module in this folder, listed once in `collectors.COLLECTORS`, with three names:

    NAME      the format's name, a short word
    HELP      one sentence: what writes such files and what they bring
    sniff(source) -> float           0 (not mine) to 1 (certainly mine), from the name and the first bytes alone
    read(source) -> Iterator[Item]   the content as rows, facts, blobs and named losses, in bounded memory
"""

import contextlib
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from collectors.reading.as_far import BROKEN, AsFar
from collectors.reading.encodings import as_utf8
from errors import InputError

HEAD_BYTES = 65536  # enough for any sniff; never the whole file
_PIECE_BYTES = 1 << 20
LINE_LIMIT_BYTES = 1 << 26  # a line of a log; one longer is no log


@dataclass(frozen=True)
class Source:
    """One input file. `name` is its path relative to what the user gave; `index` is unique within the run.

    A `.gz` file is read through transparently, and so are byte-order marks: offsets in messages are then those of the
    unpacked bytes, as UTF-8.
    """

    head_bytes = HEAD_BYTES  # a constant of the class, no field

    path: Path
    name: str
    index: int = 0

    @property
    def content(self) -> Path:
        """The file that is read: `path`, or what was taken out of it."""
        return self.path

    @property
    def parts(self) -> tuple[tuple[str, Path], ...]:
        """(name within the input, file) of all that it is made of."""
        return (("", self.path),)

    @property
    def gzipped(self) -> bool:
        with self.content.open("rb") as f:
            return f.read(2) == b"\x1f\x8b"

    def binary(self) -> BinaryIO:
        """The content byte by byte, unpacked if it was gzipped; one that was not can be sought in, whatever it
        begins with. Raises OSError, EOFError or zlib.error if broken."""
        return gzip.open(self.content, "rb") if self.gzipped else self.content.open("rb")  # type: ignore[return-value]

    def open(self) -> BinaryIO:
        """The content as `binary` gives it, with what a byte-order mark at its beginning says made UTF-8."""
        return as_utf8(self.binary())

    def as_far(self) -> BinaryIO:
        """The content as `open` gives it, for what is read record by record: of one that was packed and cut off what
        came before, so that its reader comes to an end and hands on all it gathered; `broken_off` tells of it. What is
        damaged may be wrong long before that shows, and raises as ever."""
        if not self.gzipped:
            return self.open()
        there = AsFar(self.open(), (EOFError,))
        object.__setattr__(self, "_there", there)
        return io.BufferedReader(there, _PIECE_BYTES)  # type: ignore[return-value]

    @property
    def broken_off(self) -> str:
        """Why its content ended where `as_far` read it, if that is not its end; else empty."""
        there = getattr(self, "_there", None)
        return there.why if there is not None else ""

    def text(self) -> Iterator[tuple[int, str]]:
        """(byte offset, line without its end) for each line; bytes that are not UTF-8 become U+FFFD."""
        with self.as_far() as f:
            offset = 0
            while raw := f.readline(LINE_LIMIT_BYTES):
                if len(raw) >= LINE_LIMIT_BYTES and not raw.endswith(b"\n"):
                    raise InputError(
                        f"a line longer than {LINE_LIMIT_BYTES:,} bytes at byte {offset}",
                        where=self.name,
                        expected="a text log with a line per record",
                    )
                yield offset, raw.decode("utf-8", "replace").rstrip("\r\n")
                offset += len(raw)

    @cached_property
    def head(self) -> bytes:
        """The first `head_bytes` of the content, or as many of them as can be read and unpacked."""
        head = bytearray()
        # Piece by piece, so that an archive cut short early still shows what it is.
        with contextlib.suppress(*BROKEN), self.open() as f:
            while (left := self.head_bytes - len(head)) > 0 and (piece := f.read1(left)):  # type: ignore[attr-defined]
                head += piece
        return bytes(head)


@dataclass(frozen=True)
class Rows:
    """Rows of one table, in that table's schema (`runs.schema.SCHEMAS[table].batch({...})`)."""

    table: str
    batch: pa.RecordBatch


@dataclass(frozen=True)
class Fact:
    """Something the input says of the run as a whole: chip, chips, peak_flops_per_s, model, job_name, ...

    `basis` is measured, derived, published or declared (said by a person).
    """

    name: str
    value: Any
    basis: str = "measured"


@dataclass(frozen=True)
class Blob:
    """Bytes kept with the run under `blobs/<name>` (HLO modules)."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """A part of the input that could not be read: what, at which byte, and why. Never silent."""

    what: str
    reason: str
    offset: int | None = None


Item = Rows | Fact | Blob | Lost


class Collector(Protocol):
    NAME: str
    HELP: str

    def sniff(self, source: Source) -> float: ...

    def read(self, source: Source) -> Iterator[Item]: ...


__all__ = ["Blob", "Collector", "Fact", "Item", "Lost", "Rows", "Source"]

"""The records of a Riegeli/records file, one after the other into another file, in memory bounded by a buffer.

Nothing is believed before it is checked: what a chunk says that it unpacks to is held to limits first, to what really
comes out, and to its hash at last; a chunk that breaks any of these is taken back and named.
"""

import contextlib
import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from collectors.base import Lost
from collectors.device.xplane.riegeli.chunks import (
    METADATA,
    PADDING,
    SIGNS,
    SIMPLE,
    TRANSPOSED,
    Chunk,
    Unblocked,
    body,
    chunks,
)
from errors import InputError

MAX_RECORD_BYTES = (1 << 31) - 1  # protobuf writes no message beyond it
MAX_UNPACKED_BYTES = 1 << 35  # of a file: 32 GiB
MAX_RATIO = 500  # unpacked bytes for one packed byte; profiles reach 10 to 60
RATIO_FREE_BYTES = 1 << 23  # below this size no ratio does harm
MOST_CHUNKS, MOST_RECORDS = 200_000, 200_000  # of a file; continuous profiling writes one record in four chunks
_MAX_SIZES_BYTES = 1 << 24  # of the sizes of a chunk's records
_PIECE = 1 << 20
_CODECS = {b"\0": None, b"b": "brotli", b"z": "zstd", b"s": "snappy"}
_SNAPPY_RATIO = 32  # no snappy stream unpacks to more: three bytes stand for at most 64


class Damaged(Exception):
    """A chunk cannot be read, and why."""


class Record(NamedTuple):
    """Where a record lies in the file that it was written to."""

    start: int
    end: int


def unpack(file: BinaryIO, out: BinaryIO, name: str) -> Iterator[Record | Lost]:
    """Writes every record of a file to `out`, one behind the other, and says where; and what is lost.

    Raises InputError where the whole unpacks to more than MAX_UNPACKED_BYTES, or where `out` has no room.
    """
    size = file.seek(0, 2)
    done = records = 0
    for number, chunk in enumerate(chunks(file, size)):
        if number >= MOST_CHUNKS and (at := chunk.offset if isinstance(chunk, Lost) else chunk.start) is not None:
            yield Lost(f"{size - at:,} bytes of the profile", f"they lie behind the first {MOST_CHUNKS:,} chunks", at)
            return
        if isinstance(chunk, Lost):
            yield chunk
            continue
        if chunk.kind in (SIGNS, PADDING, METADATA):
            continue
        out.seek(done)
        records += chunk.records
        try:
            if records > MOST_RECORDS:
                raise Damaged(f"more than {MOST_RECORDS:,} records are said to be in the file")
            sizes = _records(file, chunk, out, name, MAX_UNPACKED_BYTES - done)
        except Damaged as why:
            many = f"{chunk.records:,} records" if chunk.records != 1 else "a record"
            yield Lost(f"{many} of the profile ({chunk.decoded:,} bytes)", str(why), chunk.start)
            out.truncate(done)
            continue
        for length in sizes:
            yield Record(done, done + length)
            done += length


def _records(file: BinaryIO, chunk: Chunk, out: BinaryIO, name: str, room: int) -> list[int]:
    """Writes a chunk's records; their sizes. Raises Damaged."""
    if chunk.kind != SIMPLE:
        kind = "transposed" if chunk.kind == TRANSPOSED else f"of the unknown kind {chunk.kind!r}"
        raise Damaged(f"they are in a chunk that is {kind}, which cannot be read: write them without `transpose`")
    _bounded(chunk)
    if chunk.decoded > room:
        raise InputError(
            f"unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB", where=name, advice="Profile fewer steps"
        )
    data = body(file, chunk)
    codec = data.read(1)
    if codec not in _CODECS:
        raise Damaged(f"compressed in an unknown way ({codec!r})")
    sizes = _sizes(data, chunk, _CODECS[codec])
    written = 0
    for piece in _unpacked(data, data.left, _CODECS[codec], chunk.decoded):
        with _room(name):
            out.write(piece)
        written += len(piece)
    if written != chunk.decoded:
        raise Damaged(f"they unpack to {written:,} bytes, not to the {chunk.decoded:,} that are said")
    if data.hash() != chunk.data_hash:
        raise Damaged("their bytes are not those that were written: the hash does not fit")
    return sizes


def _bounded(chunk: Chunk) -> None:
    if chunk.decoded > RATIO_FREE_BYTES and chunk.decoded > MAX_RATIO * chunk.size:
        raise Damaged(f"{chunk.size:,} bytes are said to unpack to them: out of all proportion")
    if chunk.records > chunk.end - chunk.start:
        raise Damaged("more records are said than fit")


@contextlib.contextmanager
def _room(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"no room to unpack it ({error.strerror})", where=name) from error


def _sizes(data: Unblocked, chunk: Chunk, codec: str | None) -> list[int]:
    """The size of each record."""
    packed = _varint(data)
    if packed > min(data.left, _MAX_SIZES_BYTES):
        raise Damaged("the sizes of its records are damaged")
    most = min(10 * chunk.records, _MAX_SIZES_BYTES)
    raw = io.BytesIO(b"".join(_unpacked(data, packed, codec, most, exact=False)))
    sizes = [_varint(raw) for _ in range(chunk.records)]
    if raw.read(1) or sum(sizes) != chunk.decoded:
        raise Damaged("the sizes of its records are damaged")
    if max(sizes, default=0) > MAX_RECORD_BYTES:
        raise Damaged("a record of 2 GiB or more, which is no profile")
    return sizes


def _unpacked(data: Unblocked, size: int, codec: str | None, most: int, exact: bool = True) -> Iterator[bytes]:
    """What the next `size` bytes unpack to, piece by piece: `most` bytes, or where not `exact` no more than these."""
    part = _Part(data, size)
    said = size if codec is None else _varint(part)
    if said > most or (exact and said != most):
        raise Damaged(f"they are said to unpack to {said:,} bytes, and to {most:,}")
    if codec == "snappy":
        yield _snappy(part.read(), said)
        return
    try:
        with contextlib.ExitStack() as stack:
            stream: Any = part
            if codec is not None:
                stream = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(part, "r"), cast(Any, codec)))
            while said > 0 and (piece := stream.read(min(said, _PIECE))):
                said -= len(piece)
                yield piece
            if said or (codec is not None and stream.read(1)):
                raise Damaged("they do not unpack to what is said")
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"they cannot be unpacked ({' '.join(str(error).split())[:120]})") from error
    while part.left and part.read(_PIECE):  # what was left unread belongs to it all the same
        pass


def _snappy(packed: bytes, said: int) -> bytes:
    if said > _SNAPPY_RATIO * len(packed):
        raise Damaged("no snappy stream unpacks to so much")
    try:
        return pa.Codec("snappy").decompress(packed, said, asbytes=True)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise Damaged("they cannot be unpacked (snappy)") from error


class _Part(io.RawIOBase):
    """The next bytes of a stream as a stream of their own."""

    def __init__(self, data: Unblocked, size: int):
        self._data, self.left = data, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        taken = self._data.read(self.left if size is None or size < 0 else min(size, self.left))
        self.left -= len(taken)
        return taken


def _varint(data: io.RawIOBase | io.BytesIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = data.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
    raise Damaged("a length in it is damaged")

"""Where the chunks of a Riegeli/records file lie, and their bytes without the headers that interrupt them.

At every multiple of 64 KiB a block header stands amid whatever is there: what chunk it interrupts, by which a reader
finds its way again after damage.
"""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from collectors.base import Lost
from collectors.device.xplane.highway import Highway, highway

BLOCK, BLOCK_HEADER = 1 << 16, 24
CHUNK_HEADER = 40
_USABLE = BLOCK - BLOCK_HEADER
_PIECE = 1 << 20
PADDING, METADATA, SIMPLE, TRANSPOSED, SIGNS = b"p", b"m", b"r", b"t", b"s"


@dataclass(frozen=True)
class Chunk:
    """A chunk whose header is whole. `start`, `end`: in the file. `size`: bytes of its data, without block headers.
    `decoded`: bytes of all its records together."""

    start: int
    end: int
    kind: bytes
    records: int
    size: int
    decoded: int
    data_hash: int


class Unblocked(io.RawIOBase):
    """The bytes of a file from `start` on without its block headers, at most `size` of them, hashed as read."""

    def __init__(self, file: BinaryIO, start: int, size: int, hashed: bool = True):
        self._file, self.at, self.left = file, start, size
        self._hash = Highway() if hashed else None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer where the file or the data ends."""
        size = self.left if size is None or size < 0 else min(size, self.left)
        parts, need = [], size
        while need:
            if self.at % BLOCK < BLOCK_HEADER:
                self.at += BLOCK_HEADER - self.at % BLOCK
            self._file.seek(self.at)
            part = self._file.read(min(need, BLOCK - self.at % BLOCK))
            if not part:
                break
            parts.append(part)
            need -= len(part)
            self.at += len(part)
        data = b"".join(parts)
        self.left = 0 if need else self.left - len(data)
        if self._hash:
            self._hash.add(data)
        return data

    def hash(self) -> int:
        """The hash of all of it; what was not read yet is passed over."""
        assert self._hash is not None
        while self.left and self.read(_PIECE):
            pass
        return self._hash.value()


def chunk_end(start: int, size: int, records: int) -> int:
    """Where a chunk ends: behind its data, with the block headers in it, and with room for a number for each record."""
    whole = CHUNK_HEADER + size
    headers = (whole + (start + _USABLE - 1) % BLOCK) // _USABLE
    least = start + records
    left = BLOCK - 1 - (least + BLOCK - 1) % BLOCK
    return max(start + whole + headers * BLOCK_HEADER, least + max(0, left - (_USABLE - 1)))


def chunks(file: BinaryIO, size: int) -> Iterator[Chunk | Lost]:
    """Every chunk in order, and what is lost where a header is damaged or the file ends in a chunk."""
    at = 0
    while at < size:
        found = _chunk(file, at, size)
        if found is not None and found.end <= size:
            yield found
            at = found.end
            continue
        next_at = _next(file, at, size)
        if found is not None and next_at is None:
            why = "the file ends in it; a job that was killed leaves that"
        else:
            why = "the header of a chunk is damaged" if found is None else "a chunk is longer than what follows it"
        yield Lost(f"{(next_at or size) - at:,} bytes of the profile", why, at)
        at = size if next_at is None else next_at


def _chunk(file: BinaryIO, at: int, size: int) -> Chunk | None:
    """The chunk that begins at a place, as its header tells; None where that is damaged."""
    head = Unblocked(file, at, CHUNK_HEADER, hashed=False).read()
    if len(head) < CHUNK_HEADER or highway(head[8:]) != int.from_bytes(head[:8], "little"):
        return None
    _, length, data_hash, kind, decoded = struct.unpack("<5Q", head)
    if length > size:  # else sums of it would need more than 64 bits
        return Chunk(at, size + 1, head[24:25], kind >> 8, length, decoded, data_hash)
    return Chunk(at, chunk_end(at, length, kind >> 8), head[24:25], kind >> 8, length, decoded, data_hash)


def body(file: BinaryIO, chunk: Chunk) -> Unblocked:
    """The data of a chunk."""
    head = Unblocked(file, chunk.start, CHUNK_HEADER, hashed=False)
    head.read()
    return Unblocked(file, head.at, chunk.size)


def _next(file: BinaryIO, at: int, size: int) -> int | None:
    """Where the next chunk behind `at` begins, by the block headers; None where none tells."""
    for block in range(at - at % BLOCK + BLOCK, size, BLOCK):
        file.seek(block)
        head = file.read(BLOCK_HEADER)
        if len(head) < BLOCK_HEADER or highway(head[8:]) != int.from_bytes(head[:8], "little"):
            continue
        before, after = struct.unpack("<QQ", head[8:])
        begin = block if before == 0 else block + after
        if at < begin < size and _chunk(file, begin, size) is not None:
            return begin
    return None

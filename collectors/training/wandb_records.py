"""Records of a run's `.wandb` file, the transaction log that W&B's client writes: LevelDB's log format with a header.

    file     7 bytes (`:W&B`, 0xBEE1 little-endian, version 0), counted as part of the first block
    block    32 KiB; fewer than 7 bytes at its end are left empty
    piece    CRC-32 (zlib's, of the type and the data), 2 bytes of length, 1 of type: 1 whole, 2 first, 3 middle, 4 last
A record is the data of one whole piece, or of a first to a last one: a Protobuf message.
A piece whose sum or length is wrong is damaged: nothing tells where the next one begins, so that the rest of its block
is passed over. A process that was killed leaves its last record cut off, which is no damage.
"""

import struct
import zlib
from collections.abc import Iterator

from collectors.base import Source
from collectors.reading.textlog import Tally
from errors import InputError

MAGIC = b":W&B"
HEADER = MAGIC + b"\xe1\xbe\x00"
BLOCK = 1 << 15
LARGEST = 1 << 26  # bytes of one record: history, console and metrics have some thousands
_PIECE = struct.Struct("<IHB")
_DAMAGE, _WHOLE, _FIRST, _MIDDLE, _LAST = range(5)
_SUM_OF_TYPE = {kind: zlib.crc32(bytes([kind])) for kind in (_WHOLE, _FIRST, _MIDDLE, _LAST)}
DAMAGED = "their sum or length is wrong: the rest of their block of 32 KiB is passed over"
CUT = "the file ends in the middle of it: the process was killed while it wrote, or still runs"


def records(source: Source, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """(byte offset, data) of each record. Raises InputError where the file is none of these."""
    with source.as_far() as f:
        head = f.read(len(HEADER))
        if head != HEADER:
            raise InputError(
                "a transaction log of W&B of another version" if head.startswith(MAGIC) else "no log of W&B",
                where=source.name,
                expected="a run-<id>.wandb as clients of W&B write it since 2020 (header :W&B, version 0)",
                advice="Export the run's history as CSV, and give that.",
            )
        yield from _Assembly(tally).records(_pieces(f.read, tally))


class _Assembly:
    """Records put together of their pieces."""

    def __init__(self, tally: Tally):
        self._tally = tally
        self._parts: list[bytes] = []
        self._bytes = self._begin = 0

    def records(self, pieces: Iterator[tuple[int, int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for offset, kind, data in pieces:
            if kind in (_DAMAGE, _WHOLE, _FIRST):
                if self._parts:
                    self._tally.add("records", "their end is missing", self._begin)
                self._parts, self._bytes, self._begin = [], 0, offset
                if kind == _DAMAGE:
                    continue
            elif not self._parts:
                self._tally.add("pieces of records", "the beginning of their record is missing", offset)
                continue
            self._bytes += len(data)
            if self._bytes > LARGEST:
                self._tally.add("records", f"longer than {LARGEST:,} bytes", self._begin)
                self._parts = []
            elif kind == _WHOLE:
                yield offset, data
            else:
                self._parts.append(data)
            if kind == _LAST and self._parts:
                data, self._parts = b"".join(self._parts), []
                yield self._begin, data
        if self._parts:
            self._tally.add("the last record", CUT, self._begin)


def _pieces(read, tally: Tally) -> Iterator[tuple[int, int, bytes]]:
    """(byte offset, type, data) of each piece, block by block, and where some are damaged; `read` begins behind the
    header."""
    base, at = 0, len(HEADER)
    block = bytes(at) + read(BLOCK - at)
    while len(block) > at:
        while at + _PIECE.size <= len(block):
            told, length, kind = _PIECE.unpack_from(block, at)
            begin, end = at + _PIECE.size, at + _PIECE.size + length
            if end > len(block) and len(block) < BLOCK and end <= BLOCK:
                tally.add("the last record", CUT, base + at)
                return
            data = block[begin:end]
            if not kind and not block[at:].strip(b"\0"):
                break  # room that was set aside and never written to
            if end > len(block) or zlib.crc32(data, _SUM_OF_TYPE.get(kind, 0)) != told or kind not in _SUM_OF_TYPE:
                tally.add("records", DAMAGED, base + at)
                yield base + at, _DAMAGE, b""
                break
            yield base + at, kind, data
            at = end
        else:
            if len(block) - at > 0 and len(block) < BLOCK:
                tally.add("the last record", CUT, base + at)
        base, at = base + BLOCK, 0
        block = read(BLOCK)

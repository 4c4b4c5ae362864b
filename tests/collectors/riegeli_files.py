"""Riegeli/records files for tests, written from the published description of the format, apart from the reader."""

import struct
from collections.abc import Sequence

import pyarrow as pa

from collectors.device.xplane.highway import highway

BLOCK, BLOCK_HEADER, USABLE = 1 << 16, 24, (1 << 16) - 24
_CODECS = {"none": (0, None), "brotli": (98, "brotli"), "zstd": (122, "zstd"), "snappy": (115, "snappy")}


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def simple_data(records: Sequence[bytes], codec: str = "brotli") -> bytes:
    """The data of a simple chunk."""
    number, name = _CODECS[codec]
    sizes, values = b"".join(varint(len(r)) for r in records), b"".join(records)
    if name is not None:
        sizes, values = (varint(len(b)) + pa.Codec(name).compress(b, asbytes=True) for b in (sizes, values))
    return bytes([number]) + varint(len(sizes)) + sizes + values


def _end(begin: int, size: int, records: int) -> int:
    """Where a chunk ends, byte by byte: the formula of the reader is another."""
    at, left = begin, 40 + size
    while left:
        if at % BLOCK == 0:
            at += BLOCK_HEADER
        step = min(left, BLOCK - at % BLOCK)
        at, left = at + step, left - step
    at = max(at, begin + records)
    while 0 < at % BLOCK <= BLOCK_HEADER:
        at += 1
    return at


class File:
    """A file in the making, chunk by chunk."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.chunk(b"s", b"")

    def chunk(self, kind: bytes, data: bytes, records: int = 0, decoded: int = 0, **wrong: int) -> "File":
        """Puts a chunk; `wrong` header fields (size, hash) stand in place of the right ones, under a right hash."""
        rest = struct.pack(
            "<QQQQ",
            wrong.get("size", len(data)),
            wrong.get("hash", highway(data)),
            kind[0] | records << 8,
            decoded,
        )
        begin, end = len(self.data), _end(len(self.data), len(data), records)
        whole = struct.pack("<Q", highway(rest)) + rest + data
        while len(self.data) < end:
            if len(self.data) % BLOCK == 0:
                distances = struct.pack("<QQ", len(self.data) - begin, end - len(self.data))
                self.data += struct.pack("<Q", highway(distances)) + distances
            step = min(end - len(self.data), BLOCK - len(self.data) % BLOCK)
            self.data += whole[:step].ljust(step, b"\0")
            whole = whole[step:]
        return self

    def records(self, *records: bytes, codec: str = "brotli") -> "File":
        return self.chunk(b"r", simple_data(records, codec), len(records), sum(map(len, records)))

    def padded(self) -> bytes:
        """The file filled up to a multiple of 64 KiB, as XProf's is, so that another may be put behind it."""
        if left := -len(self.data) % BLOCK:
            self.chunk(b"p", bytes(max(0, left - 40)))
            if len(self.data) % BLOCK:  # no room was left for a header in this block
                self.chunk(b"p", bytes(BLOCK - len(self.data) % BLOCK - 40))
        return bytes(self.data)


def continuous(spaces: Sequence[bytes], codec: str = "brotli") -> bytes:
    """What continuous profiling leaves: a whole file for each space, one behind the other."""
    return b"".join(File().records(space, codec=codec).padded() for space in spaces)

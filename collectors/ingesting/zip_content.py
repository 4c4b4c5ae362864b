"""The content of a zip's members, unpacked no further than is asked for.

`zipfile` does so for deflate alone: of bzip2 and LZMA it unpacks whatever the packed bytes of one read hold, gigabytes
of two kilobytes, and only then cuts off what is more than the list of members states.
"""

import bz2
import contextlib
import copy
import lzma
import zipfile
import zlib
from collections.abc import Callable, Generator
from typing import IO, Any

_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LZMA_HEAD, _LZMA_PROPERTIES = 4, 5  # bytes: a version and the length of what follows; letters and the dictionary
_LEAST_DICTIONARY = 1 << 12


@contextlib.contextmanager
def content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Generator[Callable[[int], bytes]]:
    """What reads a member. Raises what `zipfile` does for one that is damaged, or packed in a way that is not known."""
    if member.compress_type in _BOUNDED:
        with archive.open(member) as f:
            yield f.read
        return
    with archive.open(_as_stored(member)) as packed, _unpacking(member, packed) as f:
        yield _Checked(f, member).read


def _as_stored(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The member as though its packed bytes were its content, of which no sum is known."""
    found: Any = copy.copy(member)
    found.compress_type, found.file_size, found.CRC = zipfile.ZIP_STORED, member.compress_size, None
    return found


def _unpacking(member: zipfile.ZipInfo, packed: IO[bytes]) -> contextlib.AbstractContextManager[IO[bytes]]:
    if member.compress_type == zipfile.ZIP_BZIP2:
        return bz2.BZ2File(packed)
    if member.compress_type == zipfile.ZIP_LZMA:
        return lzma.LZMAFile(packed, format=lzma.FORMAT_RAW, filters=[_lzma(packed, member.file_size)])
    raise NotImplementedError(f"its compression method {member.compress_type} is not known")


def _lzma(packed: IO[bytes], n_bytes: int) -> dict[str, int]:
    """How a member was packed. Its dictionary, memory that is had at once, need be no longer than the member."""
    head = packed.read(_LZMA_HEAD)
    told = packed.read(int.from_bytes(head[2:], "little"))
    if len(head) != _LZMA_HEAD or len(told) != _LZMA_PROPERTIES:
        raise zipfile.BadZipFile("what begins one of its files is not LZMA's")
    letters, dictionary = told[0], int.from_bytes(told[1:], "little")
    size = max(min(dictionary, n_bytes), _LEAST_DICTIONARY)
    return {
        "id": lzma.FILTER_LZMA1,
        "dict_size": size,
        "lc": letters % 9,
        "lp": letters // 9 % 5,
        "pb": letters // 45,
    }


class _Checked:
    """As many bytes as the list of members states, with the sum that it states."""

    def __init__(self, file: IO[bytes], member: zipfile.ZipInfo):
        self._file, self._member, self._left, self._sum = file, member, member.file_size, 0

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        self._sum = zlib.crc32(data, self._sum)
        if not data and self._left:
            raise EOFError
        if not self._left and self._sum != self._member.CRC:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {self._member.filename!r}")
        return data

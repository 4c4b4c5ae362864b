"""Archives and compressed files, opened within limits: what a stranger packed cannot fill the disk or leave its folder.

Members go to numbered files, so their names never reach the file system; names that try to go elsewhere are refused all
the same, because an archive that holds one was made to do harm.
"""

import gzip
import hashlib
import io
import itertools
import lzma
import re
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self

from collectors.base import Source
from collectors.ingesting.zip_content import content
from collectors.reading.as_far import BROKEN
from errors import InputError
from errors import format as fmt

MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 1 << 35  # of one archive
MAX_RATIO = 200  # unpacked bytes for one packed byte; logs and traces reach 10 to 50
RATIO_FREE_BYTES = 1 << 23  # below this size no ratio does harm
MAX_HEADER_BYTES = 1 << 25  # of a tar, beside the content of its members: 3,300 for each of MAX_MEMBERS
MAX_LIST_BYTES = 1 << 23  # of a zip's members
ENCRYPTED = 1  # bit of a zip member's flags
BACKSLASHED = (0, 6, 10, 14)  # systems by which a zip was made: DOS, OS/2 and Windows, whose files have no \ in a name
UNIX_MODE = 16  # bits of a zip member's attributes that stand below its mode
CHUNK = 1 << 20

_BROKEN_ARCHIVE = (
    *BROKEN,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    tarfile.TarError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
    OverflowError,
    lzma.LZMAError,
)
_ARCHIVE_NAME = re.compile(r"\.(?:zip|tar|tgz|tar\.gz|tar\.bz2|tar\.xz|tar\.zst|7z|rar)$", re.IGNORECASE)
_DRIVE = re.compile(r"^[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class SafeSource(Source):
    """A Source that refuses a gzip stream which unpacks out of all proportion, and knows how far it was read."""

    def binary(self) -> BinaryIO:
        raw = self.content.open("rb")
        object.__setattr__(self, "_raw", raw)
        return io.BufferedReader(_Inflater(raw, self.name), CHUNK) if self.gzipped else raw  # type: ignore[arg-type,return-value]

    @property
    def size(self) -> int:
        """Bytes as they lie there. Raises OSError where they cannot be seen."""
        return sum(file.stat().st_size for _, file in self.parts)

    def bytes_read(self) -> int:
        """Bytes of the file on disk that were read so far; 0 if it was never opened."""
        raw = getattr(self, "_raw", None)
        if raw is None:
            return 0
        return self.content.stat().st_size if raw.closed else raw.tell()


def unpacked_digest(source: SafeSource, check: Callable[[], None] = lambda: None) -> str:
    """The SHA-256 of what a gzipped file holds; empty where it cannot be unpacked to its end. `check` may raise."""
    digest = hashlib.sha256()
    for piece in _pieces(source):
        check()
        if piece is None:
            return ""
        digest.update(piece)
    return digest.hexdigest()


def _pieces(source: SafeSource) -> Iterator[bytes | None]:
    """What a file holds; None where it breaks off."""
    try:
        with source.binary() as f:
            while piece := f.read(CHUNK):
                yield piece
    except (*BROKEN, InputError):
        yield None


class _Inflater(io.RawIOBase):
    def __init__(self, raw: BinaryIO, name: str):
        self._raw, self._name = raw, name
        self._gzip = gzip.GzipFile(fileobj=raw)
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        piece = self._gzip.read1(len(buffer))  # what there is, so that a stream cut short gives all it has
        count = len(piece)
        buffer[:count] = piece
        self._unpacked += count
        if self._unpacked > RATIO_FREE_BYTES and self._unpacked > MAX_RATIO * self._raw.tell():
            raise InputError(
                f"unpacks to more than {MAX_RATIO} times its size ({self._unpacked:,} bytes and more)",
                where=self._name,
                advice="No log or profile does; unpack it yourself if it is one.",
            )
        return count

    def close(self) -> None:
        if not self.closed:
            self._gzip.close()
            self._raw.close()
        super().close()


def archive_kind(source: Source) -> str | None:
    """`zip`, `tar` (also gzipped), or None for anything else; by content, whatever the name."""
    if source.head.startswith((b"PK\x03\x04", b"PK\x05\x06")) and not source.gzipped:
        return "zip"
    return "tar" if source.head[257:262] == b"ustar" else None


def unpack(
    source: SafeSource, kind: str, folder: Path, check: Callable[[], None], note: Callable[[str], None]
) -> list[tuple[Path, str]]:
    """(file, name) of every regular member below `folder`, names below the archive's own.

    `check` is called between chunks and may raise. `note` is told what has no content of its own: links, devices,
    sparse files. Raises InputError for a broken archive, an unsafe name, an archive within, or more than the limits
    above; what was unpacked by then is left in `folder` for the caller to remove.
    """
    members = _zip_members if kind == "zip" else _tar_members
    unpacked: list[tuple[Path, str]] = []
    bare: list[str] = []  # members without a content of their own
    total = 0
    try:
        for number, (name, read) in enumerate(members(source, bare, note)):
            path = folder / str(number)
            with path.open("wb") as out:
                while chunk := read(CHUNK):
                    check()
                    total += len(chunk)
                    _limit(source.name, total <= MAX_UNPACKED_BYTES, f"holds more than {MAX_UNPACKED_BYTES:,} bytes")
                    out.write(chunk)
            if _ARCHIVE_NAME.search(name) or archive_kind(Source(path, name)):
                raise InputError(
                    f"an archive within an archive: {name!r}", where=source.name, advice="Unpack the outer one first."
                )
            unpacked.append((path, f"{source.name}/{name}"))
    except _BROKEN_ARCHIVE as e:
        reason = str(e) or type(e).__name__
        raise InputError(f"cannot be unpacked ({reason})", where=source.name, expected=f"a whole {kind} archive") from e
    if bare:
        told = fmt.count(len(bare), "link, device or sparse file", "links, devices or sparse files")
        note(f"{source.name}: {told} in it left out ({bare[0][:80]!r} first): pack the files themselves")
    return unpacked


class _Forward:
    """A tar's bytes, read once from front to end. Of what is no member's content (names, further headers, maps of
    sparse files) MAX_HEADER_BYTES are read: `tarfile` keeps all of that in memory, whatever size it claims."""

    def __init__(self, raw: BinaryIO, name: str):
        self._raw, self._name, self._at, self._header_bytes = raw, name, 0, 0
        self.content = False  # whether a member's content is being read
        self.over = False  # whether the last read came to the end of all bytes

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = 0) -> int:
        if whence or to < self._at:
            raise tarfile.StreamError("the archive goes back")
        while self._at < to and (skipped := self._raw.read(min(CHUNK, to - self._at))):
            self._at += len(skipped)
        return self._at

    def read(self, size: int = -1) -> bytes:
        if not self.content:
            self._header_bytes += size
            _limit(
                self._name,
                size >= 0 and self._header_bytes <= MAX_HEADER_BYTES,
                f"holds more than {MAX_HEADER_BYTES:,} bytes beside its files",
            )
        data = self._raw.read(size)
        self._at += len(data)
        self.over = not data
        return data

    def more(self) -> bool:
        """Whether anything but zeros stands next."""
        try:
            return bool(self._raw.read(CHUNK).strip(b"\0"))
        except BROKEN:  # behind the end of all that was packed
            return False


class _Header(tarfile.TarInfo):
    """A member's header. `tarfile` takes one that is damaged or cut off, once there was a good one, for the end of the
    archive: whatever stands behind it would be missing without a word."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]  # its name there is the module's
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as e:  # pyright: ignore[reportAttributeAccessIssue]  # not in the stubs
            raise tarfile.ReadError(f"a damaged header at byte {archive.offset:,}: {e}") from e


class _Directory:
    """A zip's bytes. Its list of members is read in one piece and kept in memory: not one beyond MAX_LIST_BYTES."""

    def __init__(self, raw: BinaryIO, name: str):
        self._raw, self._name = raw, name
        self.seek, self.tell, self.seekable = raw.seek, raw.tell, raw.seekable

    def read(self, size: int = -1) -> bytes:
        _limit(self._name, size <= MAX_LIST_BYTES, f"lists its files in more than {MAX_LIST_BYTES:,} bytes")
        return self._raw.read(size)


def _zip_members(
    source: SafeSource, bare: list[str], note: Callable[[str], None]
) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    with source.path.open("rb") as f, zipfile.ZipFile(_Directory(f, source.name)) as archive:  # type: ignore[arg-type]
        infos = archive.infolist()
        _limit(source.name, len(infos) <= MAX_MEMBERS, f"holds more than {MAX_MEMBERS:,} files")
        # no more is unpacked than the size that the directory states, so these sums bind
        whole = sum(i.file_size for i in infos), source.path.stat().st_size
        for size, packed in (whole, *((i.file_size, i.compress_size) for i in infos)):
            fair = size <= RATIO_FREE_BYTES or size <= MAX_RATIO * packed
            _limit(source.name, fair and size <= MAX_UNPACKED_BYTES, f"unpacks to {size:,} bytes from {packed:,}")
        for info in infos:
            info.filename = _slashed(info)
            _refuse_unsafe(source.name, info.filename)
        for info in infos:
            if stat.S_ISLNK(info.external_attr >> UNIX_MODE):  # its content is the name of another file
                bare.append(info.filename)
            elif not (info.is_dir() or _hidden(info.filename)):
                if info.flag_bits & ENCRYPTED:
                    what = f"its file {info.filename[:200]!r} is encrypted"
                    raise InputError(what, where=source.name, advice="Unpack it with its password first.")
                with content(archive, info) as read:
                    yield info.filename, read


def _slashed(member: zipfile.ZipInfo) -> str:
    """Its name with its folders, which some programs of Windows write with backslashes against the format's rule. An
    old name in letters of another page may hold that byte too: as its end it is no folder's where there is content."""
    name = member.filename
    if member.create_system not in BACKSLASHED or "/" in name or (name.endswith("\\") and member.file_size):
        return name
    return name.replace("\\", "/")


def _tar_members(
    source: SafeSource, bare: list[str], note: Callable[[str], None]
) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    # Read as a stream, once: the guard on the gzip stream then sees every byte.
    with source.binary() as f:
        stream = _Forward(f, source.name)
        archive = tarfile.TarFile(fileobj=stream, mode="r", tarinfo=_Header)  # type: ignore[arg-type]
        for count in itertools.count():
            stream.content = False
            info = archive.next()
            archive.members.clear()  # pyright: ignore[reportAttributeAccessIssue]  # not in the stubs; each has the headers of all, which nobody asks for again
            if info is None:
                if stream.over:
                    note(f"{source.name}: it ends without the mark of its end: files may be missing behind the last")
                elif stream.more():
                    note(f"{source.name}: what stands behind its end was not read: is it several archives in one file?")
                return
            _limit(source.name, count < MAX_MEMBERS, f"holds more than {MAX_MEMBERS:,} files")
            _refuse_unsafe(source.name, info.name)
            # Links and devices have no content of their own; a sparse file may claim any size.
            if info.isdir() or _hidden(info.name):
                continue
            if not info.isreg() or info.issparse():
                bare.append(info.name)
            else:
                member = archive.extractfile(info)
                stream.content = True
                if member is not None:
                    yield info.name.removeprefix("./"), member.read


def _limit(archive: str, kept: bool, what: str) -> None:
    if not kept:
        raise InputError(what, where=archive, advice="Unpack it yourself and give the files that matter.")


def _refuse_unsafe(archive: str, name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or _DRIVE.match(name) or len(name) > 1024 or _CONTROL.search(name):
        raise InputError(
            f"the member name {name[:200]!r} is not safe",
            where=archive,
            expected="names below the archive, without control characters",
        )


def _hidden(name: str) -> bool:
    return any(part.startswith(".") and part != "." or part == "__MACOSX" for part in name.split("/"))

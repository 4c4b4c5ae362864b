"""What a backup is made of: its list, and files that are copied, hashed and held against it."""

import contextlib
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errors import InputError
from errors import format as fmt

LIST, STORE, REGISTRY = "backup.json", "store", "registry.db"
SPARE_BYTES = 1 << 26  # left free beside a backup
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Entry:
    """A file of a backup. `mtime_ns`: when it was last written in the store, by which the next backup knows it."""

    bytes: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, kw_only=True)
class Backup:
    """One backup. `number` counts on, whatever the clock says. `damaged`: what was damaged in the store by then, a
    sentence each. `copied_bytes`: of files that were not in the backup before."""

    name: str
    number: int
    made_ns: int
    runs: int
    files: dict[str, Entry] = field(repr=False)
    damaged: tuple[str, ...] = ()
    copied_bytes: int = 0

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """What commands tell of it: all but its files, which are counted."""
        return {**vars(self), "files": len(self.files), "bytes": self.bytes, "damaged": list(self.damaged)}


def files_below(root: Path, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """(path below the root, what it is) of every plain file below `name`; what vanishes meanwhile is passed over."""
    top = root / name
    walked: Iterable[tuple[str, list[str], list[str]]] = os.walk(top)  # which follows no links
    if top.is_symlink() or not top.is_dir():
        walked = [(str(root), [], [name])]
    for folder, folders, files in walked:
        folders.sort()
        for file in sorted(files):
            with contextlib.suppress(FileNotFoundError):
                path = Path(folder) / file
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix(), path.stat()


def copied(source: Path, target: Path) -> tuple[int, str, str]:
    """(bytes, SHA-256, CRC-32) of what was copied; it is on disk when this returns."""
    digest, crc, length = hashlib.sha256(), 0, 0
    with source.open("rb") as f, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while piece := f.read(_PIECE_BYTES):
            digest.update(piece)
            crc, length = zlib.crc32(piece, crc), length + len(piece)
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    return length, digest.hexdigest(), f"{crc:08x}"


def hashed(path: Path) -> tuple[int, str]:
    with path.open("rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
        return f.tell(), digest


def names(folder: Path) -> list[str]:
    return os.listdir(folder)


def checksum_of(told: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(told, sort_keys=True).encode()):08x}"


def as_json(made: Backup) -> str:
    files = {path: vars(entry) for path, entry in made.files.items()}
    told = {**vars(made), "files": files, "damaged": list(made.damaged)}
    del told["name"]  # it is the folder's
    return json.dumps({**told, "crc32": checksum_of(told)}, indent=0, sort_keys=True)


def room(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes + SPARE_BYTES > free:
        raise InputError(
            f"{fmt.size(n_bytes)} do not fit: {fmt.size(free)} are free there",
            where=str(folder.parent.parent if folder.name == STORE else folder),
            advice="Remove old backups (`--keep`), or name a folder on another disk.",
        )


@contextlib.contextmanager
def writing_to(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise InputError(
            f"cannot be written ({e.strerror or e})",
            where=str(path),
            advice="Is there room, and may this user write there?",
        ) from e

"""Files as they lie with whoever sends them: which there are, under which names they go, and what they hold."""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from errors import InputError

READ_BYTES = 1 << 20
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, kw_only=True)
class Local:
    """A file to be sent. `name`: the path that it gets on the server; `sha256`: of its content when it was read."""

    path: Path
    name: str
    n_bytes: int
    sha256: str = ""


def found(paths: Iterable[Path]) -> list[Local]:
    """The files of paths; those below a folder keep its name. Of several paths with one name the later ones get a
    number in front. Raises InputError for what is not there, is no file, or holds none."""
    taken: set[str] = set()
    files: list[Local] = []
    for number, path in enumerate(paths, 1):
        below = _below(path)
        if not below:
            raise InputError("there is no file in it", where=str(path))
        names = {name for name, _ in below}
        front = f"{number}/" if names & taken else ""
        for name, one in below:
            taken.add(front + name)
            files.append(Local(path=one, name=front + name, n_bytes=_size(one)))
    return sorted(files, key=lambda f: f.name)


def hashed(file: Local, tell: Callable[[int], None]) -> Local:
    """With its SHA-256. `tell` hears of each block. Raises InputError."""
    sha, n_bytes = hashlib.sha256(), 0
    try:
        with file.path.open("rb") as f:
            while block := f.read(READ_BYTES):
                sha.update(block)
                n_bytes += len(block)
                tell(len(block))
    except OSError as e:
        raise InputError(f"cannot be read ({e.strerror})", where=str(file.path)) from e
    return Local(path=file.path, name=file.name, n_bytes=n_bytes, sha256=sha.hexdigest())


def key_of(files: Iterable[Local]) -> str:
    """What names all that is sent: the same for the same files, whoever sends them from wherever."""
    lines = sorted(f"{f.sha256} {f.n_bytes} {f.name}\n" for f in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _below(path: Path) -> list[tuple[str, Path]]:
    """(name, file) of a path."""
    if not path.is_dir():
        if not path.is_file():
            what = "is no plain file" if path.exists() else "there is no such file or folder"
            raise InputError(what, where=str(path))
        return [(_plain(path.name), path)]
    top = path.resolve().name
    listed = []
    for folder, folders, names in os.walk(path, onerror=_unreadable):
        folders.sort()
        whole = (Path(folder) / name for name in sorted(names))
        listed += [(_plain(f"{top}/{p.relative_to(path).as_posix()}"), p) for p in whole if p.is_file()]
    return listed


def _unreadable(error: OSError) -> None:
    raise InputError(f"cannot be read ({error.strerror})", where=str(error.filename)) from error


def _plain(name: str) -> str:
    """A name that is no text, as one."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as e:
        raise InputError(f"cannot be read ({e.strerror})", where=str(path)) from e

"""Files as they lie with whoever sends them: which there are, under which names they go, and what they hold."""

import hashlib
import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from app.serve.upload_names import clean_name
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


class _Places:
    """Where the files that were named so far come to lie on a server."""

    def __init__(self) -> None:
        self._files: set[Path] = set()
        self._folders: set[Path] = set()

    def free(self, name: str) -> bool:
        """Whether no file lies there, and none would have to be a folder too."""
        place = clean_name(name)
        return not (place in self._files or place in self._folders or self._files.intersection(place.parents))

    def take(self, name: str) -> None:
        place = clean_name(name)
        self._files.add(place)
        self._folders.update(place.parents)


def found(paths: Iterable[Path]) -> list[Local]:
    """The files of paths, each with a place of its own on the server; those below a folder keep its name. Of several
    paths with one name the later ones get a number in front. Raises InputError for what is not there, is no file, or
    holds none, and for a name that no file there can have."""
    places, files = _Places(), []
    for number, path in enumerate(paths, 1):
        below = _below(path)
        if not below:
            raise InputError("there is no file in it", where=str(path))
        fronts = itertools.chain([""], (f"{n}/" for n in itertools.count(number)))
        front = next(front for front in fronts if all(places.free(front + name) for name, _ in below))
        for name, one in below:
            own = _own(front + name, places)
            places.take(own)
            files.append(Local(path=one, name=own, n_bytes=_size(one)))
    return sorted(files, key=lambda f: f.name)


def _own(name: str, places: _Places) -> str:
    """A name that no file of the same folder has: two that differ in bytes that are no text may be written alike."""
    return next(one for n in itertools.count(1) if places.free(one := f"{n}/{name}" if n > 1 else name))


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

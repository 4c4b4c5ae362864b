"""The SHA-256 of large files, begun in a thread while what reads them is still loaded: hashing needs no lock of
Python's, and loading code hardly anything else."""

import contextlib
import hashlib
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

LEAST_BYTES = 1 << 24  # a smaller file is hashed sooner than anything is loaded
State = tuple[int, ...]
_begun: dict[tuple[Path, State], Future[str]] = {}


def state_of(path: Path) -> State:
    """What a file is, without reading it. Raises OSError."""
    told = path.stat()
    return told.st_size, told.st_mtime_ns, told.st_ino


def begin(paths: Iterable[Path]) -> None:
    """Begin to hash those of these paths that are large files, each once."""
    found: list[tuple[Path, Future[str]]] = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size >= LEAST_BYTES and (key := (path, state_of(path))) not in _begun:
                found.append((path, _begun.setdefault(key, Future())))
    if found:
        threading.Thread(target=_take_all, args=(found,), name="hashing", daemon=True).start()


def begun(path: Path, state: State) -> Future[str] | None:
    """The digest of a file that was begun when it was as it is now, once; it may end with an error."""
    return _begun.pop((path, state), None)


def _take_all(found: list[tuple[Path, Future[str]]]) -> None:
    for path, future in found:
        try:
            with path.open("rb") as file:
                future.set_result(hashlib.file_digest(file, "sha256").hexdigest())
        except Exception as error:  # whoever waits for it hashes the file then
            future.set_exception(error)

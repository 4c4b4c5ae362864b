"""The SHA-256 of large files, begun in a thread while what reads them is still loaded: hashing needs no lock of
Python's, and loading code hardly anything else."""

import contextlib
import hashlib
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

LEAST_BYTES = 1 << 24  # a smaller file is hashed sooner than anything is loaded
PIECE_BYTES = 1 << 24
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
            future.set_result(_digest(path))
        except Exception as error:  # whoever waits for it hashes the file then
            future.set_exception(error)


def _digest(path: Path) -> str:
    """In few large pieces: after each this thread waits for Python's lock, which who loads code keeps for 5 ms."""
    digest, piece = hashlib.sha256(), memoryview(bytearray(PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        while n_bytes := file.readinto(piece):
            digest.update(piece[:n_bytes])
    return digest.hexdigest()

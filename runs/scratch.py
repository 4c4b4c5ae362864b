"""Folders that belong to a process while it lives: each is held by a lock that ends with it, however that ends.

A process id would not tell: another container on the same volume counts its own.

    <store>/partial/<random>/lock   held by its owner
    <store>/partial/<random>/...    what the owner writes
    <store>/partial.lock            held for a moment by who makes a folder, and by who sweeps
"""

import contextlib
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, Self

LOCK = "lock"
_MADE = re.compile(r"[0-9a-f]{32}")
UNLOCKED_AGE_S = 86_400.0  # a folder without a lock, of an earlier version or a file system without, is left this long


class Held:
    """A folder that nobody sweeps until `end`, or the end of its process."""

    def __init__(self, folder: Path, lock: BinaryIO):
        self.folder, self._lock = folder, lock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        unlock(self._lock)
        self._lock.close()


class Scratch:
    """The folders below `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._gate = folder.with_name(folder.name + ".lock")

    def hold(self) -> Held:
        """A new folder. Raises OSError where none can be made."""
        with self._gate.open("ab") as gate:
            _lock(gate, fcntl.LOCK_SH)  # a folder is never seen before its lock is held
            try:
                return self._hold()
            finally:
                unlock(gate)

    def _hold(self) -> Held:
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(mode=0o700)
        try:
            lock = (folder / LOCK).open("ab")
        except OSError:  # a disk that is full
            folder.rmdir()
            raise
        _lock(lock, fcntl.LOCK_EX)
        return Held(folder, lock)

    def sweep(self, rescue: Callable[[Path], None]) -> None:
        """Remove the folders whose owners are gone, each after `rescue` has looked at it. A folder that is held, or
        of which that cannot be told, stays; so does all where nothing can be written, or somebody sweeps already."""
        with contextlib.suppress(OSError), self._gate.open("ab") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                self._sweep(rescue)
            finally:
                unlock(gate)

    def _sweep(self, rescue: Callable[[Path], None]) -> None:
        for folder in [p for p in self.folder.iterdir() if p.is_dir()]:
            # who makes such a folder locks it before the gate is free: without a lock it was being removed
            with abandoned(folder / LOCK, folder, unlocked=True if _MADE.fullmatch(folder.name) else None) as gone:
                if gone:
                    rescue(folder)
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def abandoned(lock: Path, what: Path, unlocked: bool | None = None) -> Generator[bool]:
    """Whether the owner of `what` is gone: `lock` can be had, and is held within. Without a lock `unlocked` counts, or
    where that is not given, whether nobody touched it for UNLOCKED_AGE_S."""
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        yield _long_untouched(what) if unlocked is None else unlocked
        return
    except OSError:
        yield False
        return
    try:
        yield _had(file, what, unlocked)
    finally:
        unlock(file)
        os.close(file)


def _had(file: int, what: Path, unlocked: bool | None) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return _long_untouched(what) if unlocked is None else unlocked
    return True


def _long_untouched(what: Path) -> bool:
    return time.time() - touched(what) > UNLOCKED_AGE_S


def touched(what: Path) -> float:
    """When anything in a folder was last changed, in seconds since the epoch."""
    times = [time.time()]
    with contextlib.suppress(OSError):
        times = [p.lstat().st_mtime for p in (what, *what.rglob("*"))]
    return max(times)


def long_unseen(mark: Path, most_s: float) -> bool:
    """Whether nobody looked for longer than that: the clock was or is wrong, or the store lay unused, and nothing can
    be told to be old. Notes that somebody looks now, as the time of the file `mark`."""
    now_ns = time.time_ns()
    with contextlib.suppress(OSError):
        seen_ns = mark.stat().st_mtime_ns if mark.exists() else now_ns
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(mark, ns=(now_ns, now_ns))
        return abs(now_ns - seen_ns) > most_s * 1e9
    return True


def unlock(file: IO[Any] | int) -> None:
    """Let go of a lock before its file is closed. Closing alone lets go of it only once no process has the file: one
    that another thread starts has it too, until it is another program, and the lock would look held that long."""
    with contextlib.suppress(OSError, ValueError):
        fcntl.flock(file, fcntl.LOCK_UN)


def _lock(file: BinaryIO, how: int) -> None:
    """Lock a file where the file system can; where it cannot, the folder's age is what protects it."""
    with contextlib.suppress(OSError):
        fcntl.flock(file, how)

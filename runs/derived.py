"""What is worked out from a run's tables and kept on disk, so that memory need not hold it.

    <store>/derived/<run_id>/<key>/      one answer's files; the folder's time is when it was last asked for

It is made below `partial/` and renamed into place: of two who make it at once one wins, and none sees half of it.
All of it may be deleted at any time: who asks next makes it anew. So it is where it is damaged, and what was not asked
for longest goes where all of it takes more than `most_bytes`.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from runs.durable import PRIVATE, sync
from runs.scratch import Held, Scratch

FOLDER = "derived"
OF_THIS_PROCESS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM))
MOST_BYTES = 24 << 30
A = TypeVar("A")


class DamagedError(Exception):
    """What was kept is not what was written: it is made anew."""


class Derived:
    """What is kept of the run in `folder`. `hold`: gives a folder in which it is made."""

    def __init__(self, root: Path, run_id: str, most_bytes: int = MOST_BYTES):
        self._root, self._folder, self._most = root / FOLDER, root / FOLDER / run_id, most_bytes
        self._scratch = Scratch(root / "partial")

    def get(self, key: str, read: Callable[[Path], A], make: Callable[[Path], None]) -> A | None:
        """What `read` makes of the files that `make` wrote, now or before; None where the store cannot be written.
        `read` raises DamagedError or OSError for files that are not what was written. `key`: a file's name."""
        there = self._folder / key
        try:
            found = self._read(there, read)
        except OSError:  # it is there, and cannot be opened now
            return None
        if found is not None:
            return found
        try:
            with self._scratch.hold() as held:
                self._make(held, there, make)
            found = self._read(there, read)
        except OSError:  # a disk that is full, or that cannot be written
            return None
        self._make_room(there)
        return found

    def _read(self, there: Path, read: Callable[[Path], A]) -> A | None:
        """None where it is not there; what is damaged is taken away. Raises OSError where this process may open no
        more files or has no room for a map: that is no damage."""
        if not os.path.isdir(there):
            return None
        try:
            found = read(there)
        except (DamagedError, OSError) as e:
            if isinstance(e, OSError) and e.errno in OF_THIS_PROCESS:
                raise
            shutil.rmtree(there, ignore_errors=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(there)
        return found

    def _make(self, held: Held, there: Path, make: Callable[[Path], None]) -> None:
        folder = held.folder / "made"
        folder.mkdir(mode=PRIVATE)
        make(folder)
        for path in folder.iterdir():
            sync(path)  # else a power cut might leave the names and lengths, and not what is in them
        sync(folder)
        there.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        try:
            folder.rename(there)
        except OSError:
            if not os.path.isdir(there):  # else another was faster
                raise

    def _make_room(self, newest: Path) -> None:
        """Take away what was not asked for longest."""
        kept = sorted(self._root.glob("*/*"), key=_asked_ns)
        sizes = [_bytes(path) for path in kept]
        total = sum(sizes)
        for path, size in zip(kept, sizes, strict=True):
            if total <= self._most:
                return
            if path != newest:
                shutil.rmtree(path, ignore_errors=True)
                total -= size


def forget(root: Path, run_id: str) -> None:
    """Take away all that is kept of a run; nothing where it cannot be done, for it is only in the way."""
    shutil.rmtree(root / FOLDER / run_id, ignore_errors=True)


def _asked_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _bytes(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0

"""Files of runs that were fetched: kept below a limit of bytes, what was not used for longest going first.

    <local>/runs/<run_id>/<path>           the file, once it is here whole
    <local>/cached/runs/<run_id>/<path>    its slip: the time of it is when the file was last used

A slip is locked alone by who fetches its file, so that of two who need it one asks the network, and together by those
who read it: what can be locked alone is read by nobody and may go. Locks end with their process.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from errors import InputError
from runs.durable import PRIVATE, writing
from runs.integrity import Mark
from runs.objects.base import PIECE_BYTES, DifferentError, MissingError
from runs.objects.keys import RUNS
from runs.scratch import Scratch, unlock

FOLDER = "cached"
RESTS_S = 60.0  # a file that was used so shortly ago stays: who was given its path opens it yet
AT_ONCE = 4  # pieces of one file are fetched
Piece = Callable[[int, int], bytes]  # from a byte, up to another


class Cache:
    """The files fetched below `root`. `most_bytes` may be passed for a moment by what is read at this moment, and by
    one file that is larger by itself."""

    def __init__(self, root: Path, most_bytes: int):
        self.root, self.most_bytes = root, most_bytes
        self._slips, self._scratch = root / FOLDER, Scratch(root / "partial")
        self._told: dict[str, float] = {}  # when this process last told that it uses a file

    def file(self, relative: str, known: Mark, piece: Piece) -> Path:
        """The path of a file, fetched where it is not here. Raises DifferentError where what comes is not what was
        written, and MissingError where it is not there; then nothing of it is kept."""
        path = self.root / relative
        if not _is(path, known):
            with self._slip(relative, fcntl.LOCK_EX):
                if not _is(path, known):  # else another fetched it meanwhile
                    self._room_for(known.bytes, relative)
                    self._fetch(path, known, piece)
        self._use(relative)
        return path

    @contextlib.contextmanager
    def reading(self, relative: str, known: Mark, piece: Piece) -> Generator[Path]:
        """As `file`, and the file does not go within it."""
        while True:
            path = self.file(relative, known, piece)
            with self._slip(relative, fcntl.LOCK_SH):
                if _is(path, known):
                    yield path
                    return

    def drop(self, relative: str) -> None:
        """Take a file away that is not what it should be."""
        (self.root / relative).unlink(missing_ok=True)

    def bytes(self) -> int:
        """Of all files that were fetched."""
        return sum(size for _, size, _ in self._kept())

    def adopt(self, relative: str) -> None:
        """A file that was written here may go like one that was fetched."""
        with self._slip(relative, fcntl.LOCK_SH):
            self._use(relative)

    def trim(self) -> None:
        """Take away what is more than may be kept."""
        self._room_for(0, "")

    def forget(self, run_id: str) -> None:
        shutil.rmtree(self._slips / RUNS / run_id, ignore_errors=True)

    def _fetch(self, path: Path, known: Mark, piece: Piece) -> None:
        run = self.root.joinpath(*path.relative_to(self.root).parts[:2])
        try:
            with self._scratch.hold() as held:
                partial = held.folder / "file"
                with partial.open("xb") as file:
                    whole(known, piece, functools.partial(_write, file.fileno()))
                for folder in reversed(path.relative_to(run).parents[:-1]):  # never that of the run: it may be gone
                    with contextlib.suppress(FileExistsError):
                        (run / folder).mkdir(mode=PRIVATE)
                partial.replace(path)
        except OSError as e:
            if not run.is_dir():
                raise MissingError(str(path)) from e
            raise InputError(
                f"cannot be kept here ({e.strerror or type(e).__name__})",
                where=str(path),
                advice="Is the disk of the cache full? --cache names another folder.",
            ) from e

    def _use(self, relative: str) -> None:
        """Tell that a file is used now: to others at most every few seconds."""
        now = time.monotonic()
        if now - self._told.get(relative, float("-inf")) < RESTS_S / 6:
            return
        with contextlib.suppress(OSError):
            os.utime(self._slips / relative)
            self._told[relative] = now

    def _room_for(self, coming: int, relative: str) -> None:
        """Take away what was not used for longest, and is not read now."""
        kept, now = list(self._kept()), time.time()
        kept = sorted((0.0 if _is_yet_to_be(used_s, now) else used_s, size, name) for used_s, size, name in kept)
        total = sum(size for _, size, _ in kept) + coming
        for used_s, size, name in kept:
            if total <= self.most_bytes or now - used_s < RESTS_S:
                return
            if name != relative and self._took(name):
                total -= size

    def _took(self, relative: str) -> bool:
        """Whether a file was taken away: nobody reads it."""
        slip = self._slips / relative
        try:
            file = slip.open("rb")
        except OSError:
            return False
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            try:
                used_s, now = file_time(slip), time.time()
                if now - used_s < RESTS_S and not _is_yet_to_be(used_s, now):  # somebody began to use it
                    return False
                (self.root / relative).unlink(missing_ok=True)
                slip.unlink(missing_ok=True)
            finally:
                unlock(file)
        self._told.pop(relative, None)
        return True

    def _kept(self) -> Iterator[tuple[float, int, str]]:
        """(when it was last used, bytes, path) of each file."""
        root = str(self._slips)
        for folder, _, files in os.walk(root):
            for file in files:
                relative = f"{folder[len(root) + 1 :]}/{file}"
                with contextlib.suppress(OSError):
                    used_s = os.stat(f"{root}/{relative}").st_mtime
                    yield used_s, os.stat(self.root / relative).st_size, relative

    @contextlib.contextmanager
    def _slip(self, relative: str, how: int) -> Generator[None]:
        """With the slip of a file locked, and there."""
        slip = self._slips / relative
        while True:
            with writing(slip):
                slip.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
                file = slip.open("ab")
            with file:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(file, how)
                if not _same(file.fileno(), slip):  # it was taken away before the lock was had
                    continue
                try:
                    yield
                    return
                finally:
                    unlock(file)


def _is_yet_to_be(used_s: float, now_s: float) -> bool:
    """Whether a time was noted by a clock that was wrong."""
    return used_s - now_s > RESTS_S


def file_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _same(file: int, path: Path) -> bool:
    try:
        return os.fstat(file).st_ino == path.stat().st_ino
    except OSError:
        return False


def _is(path: Path, known: Mark) -> bool:
    """Whether a file of that length is here; its content is read through before it is used."""
    try:
        return path.stat().st_size == known.bytes
    except OSError:
        return False


def whole(known: Mark, piece: Piece, take: Callable[[bytes], None]) -> None:
    """Fetch a file piece by piece, several at once, and hold it to its mark. Raises DifferentError where it is another,
    and MissingError where it is not there."""
    starts = range(0, known.bytes, PIECE_BYTES)

    def got(start: int) -> bytes:
        end = min(start + PIECE_BYTES, known.bytes)
        data = piece(start, end)
        if len(data) != end - start:
            raise DifferentError(f"is shorter than the {known.bytes:,} bytes that were written")
        return data

    crc = 0
    with ThreadPoolExecutor(min(AT_ONCE, max(len(starts), 1))) as pool:
        for window in range(0, len(starts), AT_ONCE):
            for data in pool.map(got, starts[window : window + AT_ONCE]):
                crc = zlib.crc32(data, crc)
                take(data)
    if f"{crc:08x}" != known.crc32:
        raise DifferentError("is not what was written (its checksum differs)")


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

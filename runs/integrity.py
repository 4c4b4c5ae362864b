"""Whether the files of a run are what was written: their lengths by a look, their content by a checksum.

CRC-32 finds every flipped bit and every burst of up to 32 bits, at the speed of memory. It is no seal against somebody
who means to deceive.
"""

import contextlib
import functools
import os
import stat
import zlib
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import InputError

AGAIN = "Nothing is concluded from it; `chipledger ingest --again` with the same inputs reads the run anew."
TABLES = "tables/"
_PIECE_BYTES = 1 << 22
ELSEWHERE: dict[Path, Callable[[Any], "Files"]] = {}
"""By the folder of a store whose runs lie elsewhere (`runs/objects/`): what gives the files of a `Run` that is found
there."""


@dataclass(frozen=True)
class Mark:
    """What a file was when the run was written; `crc32`: eight hexadecimal digits."""

    bytes: int
    crc32: str


def mark(path: Path) -> Mark:
    """The mark of a file as it lies there. Raises OSError where it cannot be read."""
    crc, length = 0, 0
    piece = bytearray(_PIECE_BYTES)
    view = memoryview(piece)
    with path.open("rb", buffering=0) as f:
        while count := f.readinto(piece):
            crc, length = zlib.crc32(view[:count], crc), length + count
    return Mark(length, f"{crc:08x}")


class Files:
    """The files of the run in `folder`. `marks`: what each was, by its path below the folder; None in place of a mark:
    the file belongs to the run, and what it was is not known, as of runs written before there were marks. `moved` says
    whether the run was taken away or replaced since its marks were read: then none of its files is damaged."""

    def __init__(self, folder: Path, marks: Mapping[str, Mark | None], moved: Callable[[], str] = str):
        self.folder, self.marks, self._moved = folder, marks, moved

    def whole(self, relative: str) -> Path | None:
        """The path of a file as it was written; None where the run never had it.

        Its content is read through before it is first used, and again where it was touched. Raises InputError where it
        is missing or another.
        """
        if relative not in self.marks:
            return None
        problem = self._fault(relative) or self._changed(relative)
        if problem:
            raise self.error(relative, problem)
        return self.folder / relative

    @contextlib.contextmanager
    def held(self, relative: str) -> Generator[Path | None]:
        """As `whole`; the file stays within it, where files of this run may go to make room."""
        yield self.whole(relative)

    def state(self, below: str) -> tuple[Hashable, ...]:
        """The folder, and what tells that a file whose path begins with `below` was touched, or is missing."""
        found: list[Hashable] = [str(self.folder)]
        for relative in sorted(r for r in self.marks if r.startswith(below)):
            try:
                found.append((relative, touched(self.folder / relative)))
            except OSError:
                found.append((relative, None))
        return tuple(found)

    def place(self) -> dict[str, Any]:
        """Where they lie, as plain values, where that is not their folder alone."""
        return {}

    def gone(self) -> InputError | None:
        """What became of the run since; None where it is still the same."""
        moved = self._moved()
        return InputError(moved, where=self.folder.name, advice="Ask again.") if moved else None

    def error(self, relative: str, problem: str) -> InputError:
        return self.gone() or InputError(problem, where=f"{self.folder.name}/{relative}", advice=AGAIN)

    def look(self) -> Iterator[InputError]:
        """What is missing, and tables of another length than was written: for lists of thousands of runs. Nothing
        is read, and of blobs, of which there may be hundreds, the names alone are looked at."""
        there = set(self._names())
        for relative in sorted(self.marks):
            if problem := self._fault(relative) if relative not in there or relative.startswith(TABLES) else "":
                yield self.error(relative, problem)

    def _names(self) -> Iterator[str]:
        root = str(self.folder)
        for folder, _, files in os.walk(root):
            below = folder[len(root) + 1 :]
            yield from (f"{below}/{file}" if below else file for file in files)

    def verify(self) -> Iterator[InputError]:
        """What is missing or another than was written: every file is read through."""
        for relative in sorted(self.marks):
            if problem := self._fault(relative) or self._changed(relative, anew=True):
                yield self.error(relative, problem)

    def verify_there(self) -> Iterator[InputError]:
        """As `verify`, of what lies in the store itself, whatever was fetched from it."""
        yield from self.verify()

    def bytes_there(self) -> int | None:
        """Bytes of the run's files where they lie elsewhere; None: they lie in its folder."""
        return None

    @property
    def unmarked(self) -> list[str]:
        """Files of which nobody knows what they were."""
        return [relative for relative, known in self.marks.items() if known is None]

    def _fault(self, relative: str) -> str:
        known = self.marks[relative]
        try:
            told = os.stat(f"{self.folder}/{relative}")
        except FileNotFoundError:
            return "is missing"
        except OSError as e:
            return f"cannot be read ({e.strerror})"
        if not stat.S_ISREG(told.st_mode):
            return "is no file"
        if known is not None and told.st_size != known.bytes:
            return f"is {told.st_size:,} bytes long, {known.bytes:,} were written"
        return ""

    def _changed(self, relative: str, anew: bool = False) -> str:
        path, known = self.folder / relative, self.marks[relative]
        if known is None:
            return ""
        try:
            there = mark(path) if anew else _kept(str(path), touched(path))
        except OSError as e:
            return f"cannot be read ({e.strerror})"
        return "" if there == known else "is not what was written (its checksum differs)"


def touched(path: Path) -> tuple[int, ...]:
    """What tells that a file was touched, without reading it."""
    told = os.stat(path)
    return told.st_mtime_ns, told.st_ctime_ns, told.st_size, told.st_ino, told.st_dev


@functools.lru_cache(maxsize=100_000)
def _kept(path: str, state: tuple[int, ...]) -> Mark:
    """The mark of a file in this state: read once a process, however often it is asked for."""
    return mark(Path(path))

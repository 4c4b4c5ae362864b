"""Files of buckets, and how a worker has them for as long as it reads them: ranges of each to a folder of its own."""

import contextlib
import hashlib
import os
import platform
import stat
import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from errors import InputError
from runs.objects.pieces import Pieces, opener
from runs.scratch import Scratch
from runs.spread.engine import EngineError

AT_ONCE = 8  # small files would else each be waited for
Opener = Callable[[str, int], Pieces]
_openers: dict[str, Opener] = {}  # by scheme: what each bucket is asked through, with its credentials


@dataclass(frozen=True, kw_only=True)
class FarFile:
    """A file as a listing told it. `scheme` and `place`: `s3` and `bucket/key`; `name`: below what was asked for."""

    scheme: str
    place: str
    name: str
    bytes: int

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}"


class FarError(EngineError):
    """What lies in a bucket cannot be had: no fault of what a file holds, and no reason to leave it out."""


def changed(url: str) -> FarError:
    return FarError(
        "was written to between two looks at it, and nothing is stored",
        where=url,
        advice="Ingest it again once nobody writes there.",
    )


def brought(files: Sequence[tuple[FarFile, Path]]) -> list[str]:
    """Fetch each file to its path, several at a time. Their SHA-256. Raises FarError."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: _brought(*one), files))


def _brought(file: FarFile, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        if file.scheme not in _openers:
            _openers[file.scheme] = opener(file.scheme)
        with _openers[file.scheme](file.place, file.bytes) as pieces, path.open("xb") as out:
            while piece := pieces.read():
                digest.update(piece)
                out.write(piece)
    except InputError as e:
        _openers.pop(file.scheme, None)  # credentials that have expired may be others by the next time
        what = f"{e.what} (read by the machine {platform.node()})"
        raise FarError(what, where=e.where or file.url, expected=e.expected, advice=e.advice) from e
    except OSError as e:
        raise _unkept(path, e) from e
    return digest.hexdigest()


@contextlib.contextmanager
def scratch() -> Generator[Path]:
    """A folder of this machine for what is fetched, below $TMPDIR. One whose process was killed goes with the next."""
    above = Path(tempfile.gettempdir()) / f"chipledger-{os.getuid()}"
    folder = above / "fetched"
    try:
        above.mkdir(mode=0o700, exist_ok=True)
        told = above.lstat()
        if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid():
            raise FarError("belongs to another user", where=str(above), advice="Give workers another $TMPDIR.")
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = Scratch(folder)
        kept.sweep(lambda left: None)
        held = kept.hold()
    except OSError as e:
        raise _unkept(folder, e) from e
    with held:
        yield held.folder


def _unkept(path: Path, error: OSError) -> FarError:
    return FarError(
        f"what is fetched cannot be kept on the machine {platform.node()} ({error.strerror or type(error).__name__})",
        where=str(path.parent),
        advice="Is the disk full? $TMPDIR of a worker names another folder; it needs room for the files of one task.",
    )

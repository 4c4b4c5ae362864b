"""Writing that survives a kill and a power cut, and that others cannot read."""

import contextlib
import os
import re
import stat
import uuid
from collections.abc import Generator
from pathlib import Path

from errors import InputError

PRIVATE = 0o700  # of a folder; a file of its own keeps what that leaves it
HALF = re.compile(r"\..+\.[0-9a-f]{32}")  # what `write_whole` calls a file that it has not written to its end


def keep_private(path: Path) -> None:
    """Take from others what they may do with a file or folder of ours; nothing where it is not there or not ours."""
    with contextlib.suppress(OSError):
        told = path.stat()
        if told.st_uid == os.geteuid() and told.st_mode & ~PRIVATE & 0o777:
            path.chmod(stat.S_IMODE(told.st_mode) & PRIVATE)


@contextlib.contextmanager
def writing(path: Path) -> Generator[None]:
    """What is written within it; a disk that refuses becomes an InputError that names `path`."""
    try:
        yield
    except OSError as e:
        raise InputError(f"cannot be written ({e.strerror or e})", where=str(path), advice="Is the disk full?") from e


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file, so that at any moment there is the old one or the new one, whole."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # a process id is another's too, in its container
    try:
        with partial.open("wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
            f.flush()
            os.fsync(f.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, whole or not at all; it is on disk when this returns."""
    with path.open("ab", buffering=0) as f:
        end, data = f.seek(0, os.SEEK_END), (line + "\n").encode()
        try:
            while data:
                data = data[f.write(data) :]
            os.fsync(f.fileno())
        except OSError:  # a full disk takes the half of it, and the next line would go on there
            with contextlib.suppress(OSError):
                f.truncate(end)
            raise


def sync(path: Path) -> None:
    """Have the disk hold what was written to a file, or the names in a folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

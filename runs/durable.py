"""Writing that survives a kill and a power cut."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from errors import InputError


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What is written within it; a disk that refuses becomes an InputError that names `path`."""
    try:
        yield
    except OSError as e:
        raise InputError(f"cannot be written ({e.strerror or e})", where=str(path),
                         advice="Is the disk full?") from e  # fmt: skip


def write_whole(path: Path, text: str) -> None:
    """Replace a file, so that at any moment there is the old one or the new one, whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    partial.replace(path)
    sync(path.parent)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file; it is on disk when this returns."""
    with path.open("a", encoding="utf-8") as f:
        f.write(line + "\n")
        f.flush()
        os.fsync(f.fileno())


def sync(path: Path) -> None:
    """Have the disk hold what was written to a file, or the names in a folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

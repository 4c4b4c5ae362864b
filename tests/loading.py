"""Which test files a worker loads first.

All workers collect the same files in the same order at the same moment. Where none was loaded before, as in a fresh
clone, each would compile all of them, with what their asserts tell: most of a minute of a processor, all together. So
each begins elsewhere, and comes to what others have compiled and kept meanwhile.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest


def turned(files: Sequence[Path], number: int, workers: int) -> list[Path]:
    """The files from the part on that the worker of this number begins with, then those before it."""
    first = len(files) * number // workers
    return [*files[first:], *files[:first]]


def found(paths: Iterable[str | Path], left_out: Callable[[Path], bool]) -> list[Path]:
    """Test files below folders, without those that are left out. One that is named by itself is loaded soon enough."""
    return sorted(file for path in map(Path, paths) for file in path.rglob("test_*.py") if not left_out(file))


def load(files: Iterable[Path], root: Path) -> None:
    """As collecting them does, which tells of what fails here."""
    for file in files:
        name = ".".join(file.resolve().relative_to(root).with_suffix("").parts)
        try:
            importlib.import_module(name)
        except (Exception, pytest.skip.Exception):
            continue

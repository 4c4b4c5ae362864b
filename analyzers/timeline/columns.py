"""Columns that grow while a timeline is made: in memory, or as flat files of a folder, a number after the other."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Ranges = Sequence[tuple[int, int]]
Where = Mapping[str, tuple[str, int, int]]  # of each column in a file: its type, where it begins, how many values
ALIGNED = 64  # bytes, at whose multiples columns begin
PIECE = 1 << 24  # bytes that are copied at once


class Readable(Protocol):
    """Columns to be read."""

    def take(self, name: str, ranges: Ranges) -> Values:
        """The values from a to b, of each range, joined."""
        ...

    def length(self, name: str) -> int: ...


class Columns(Readable, Protocol):
    """Those that grow. A column begins with its first values, of which it has the type."""

    def add(self, name: str, values: Values) -> None:
        """Append; of the type that the column has."""
        ...


class InMemory:
    """Columns of arrays."""

    def __init__(self):
        self._parts: dict[str, list[Values]] = {}
        self._lengths: dict[str, int] = {}

    def add(self, name: str, values: Values) -> None:
        self._parts.setdefault(name, []).append(values)
        self._lengths[name] = self._lengths.get(name, 0) + len(values)

    def whole(self, name: str) -> Values:
        """All that was added."""
        parts = self._parts[name]
        if len(parts) > 1:
            self._parts[name] = parts = [np.concatenate(parts)]
        return parts[0]

    def take(self, name: str, ranges: Ranges) -> Values:
        whole = self.whole(name)
        return whole[slice(*ranges[0])] if len(ranges) == 1 else np.concatenate([whole[a:b] for a, b in ranges])

    def length(self, name: str) -> int:
        return self._lengths.get(name, 0)

    @property
    def held_bytes(self) -> int:
        return sum(values.nbytes for parts in self._parts.values() for values in parts)


class InFiles:
    """Columns as files `NAME.column`. Raises OSError where the disk refuses."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._files: dict[str, BinaryIO] = {}
        self.kinds: dict[str, np.dtype[Any]] = {}
        self._lengths: dict[str, int] = {}

    def add(self, name: str, values: Values) -> None:
        if name not in self._files:
            self._files[name] = path_of(self.folder, name).open("w+b", buffering=0)
            self.kinds[name], self._lengths[name] = values.dtype, 0
        left = values.astype(self.kinds[name], copy=False).tobytes() if len(values) else b""
        self._lengths[name] += len(values)
        view = memoryview(left)
        while len(view):
            view = view[self._files[name].write(view) or 0 :]

    def take(self, name: str, ranges: Ranges) -> Values:
        return _taken(self._files[name].fileno(), self.kinds[name], 0, ranges)

    def length(self, name: str) -> int:
        return self._lengths.get(name, 0)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class InOne:
    """Columns that were joined to one file, to be read. Raises OSError where it is shorter than it was."""

    def __init__(self, path: Path, where: Where):
        self._file, self._where = path.open("rb", buffering=0), where

    def take(self, name: str, ranges: Ranges) -> Values:
        kind, at, _ = self._where[name]
        return _taken(self._file.fileno(), np.dtype(kind), at, ranges)

    def length(self, name: str) -> int:
        return self._where[name][2] if name in self._where else 0

    def close(self) -> None:
        self._file.close()


def _taken(file: int, kind: np.dtype[Any], begin: int, ranges: Ranges) -> Values:
    """Values of a column that begins at a byte of a file."""
    found = np.empty(sum(b - a for a, b in ranges), kind)
    if not len(found):
        return found
    view, at = found.view(np.uint8).data, 0
    for a, b in ranges:
        offset, end = begin + a * kind.itemsize, at + (b - a) * kind.itemsize
        while at < end:
            got = os.preadv(file, [view[at:end]], offset)
            if not got:
                raise OSError("a column ends early")
            at, offset = at + got, offset + got
    return found


def joined(into: InFiles, path: Path) -> dict[str, tuple[str, int, int]]:
    """Put the columns' files into one; where each lies in it."""
    into.close()
    found: dict[str, tuple[str, int, int]] = {}
    with path.open("wb") as whole:
        for name, kind in into.kinds.items():
            whole.write(bytes(-whole.tell() % ALIGNED))
            found[name] = kind.name, whole.tell(), into.length(name)
            column = path_of(into.folder, name)
            with column.open("rb") as file:
                shutil.copyfileobj(file, whole, PIECE)
            column.unlink()
    return found


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.column"


def fitting(low: int, high: int) -> np.dtype[Any]:
    """The type of numbers from `low` to `high`: 32 bits where they do."""
    return np.dtype(np.int32 if low >= -(1 << 31) and high < 1 << 31 else np.int64)

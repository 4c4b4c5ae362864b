"""Columns that grow while a timeline is made: in memory, or as flat files of a folder, a number after the other."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Ranges = Sequence[tuple[int, int]]


class Columns(Protocol):
    """A column begins with its first values, of which it has the type."""

    def add(self, name: str, values: Values) -> None:
        """Append; of the type that the column has."""
        ...

    def take(self, name: str, ranges: Ranges) -> Values:
        """The values from a to b, of each range, joined."""
        ...

    def length(self, name: str) -> int: ...


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
        kind, file = self.kinds[name], self._files[name].fileno()
        found = np.empty(sum(b - a for a, b in ranges), kind)
        if not len(found):
            return found
        view, at = found.view(np.uint8).data, 0
        for a, b in ranges:
            offset, end = a * kind.itemsize, at + (b - a) * kind.itemsize
            while at < end:
                got = os.preadv(file, [view[at:end]], offset)
                if not got:
                    raise OSError(f"{name} ends early")
                at, offset = at + got, offset + got
        return found

    def length(self, name: str) -> int:
        return self._lengths.get(name, 0)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.column"


def fitting(low: int, high: int) -> np.dtype[Any]:
    """The type of numbers from `low` to `high`: 32 bits where they do."""
    return np.dtype(np.int32 if low >= -(1 << 31) and high < 1 << 31 else np.int64)

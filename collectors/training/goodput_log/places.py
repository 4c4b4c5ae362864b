"""Where in a block each entry begins, found out only when some entry must be looked at whole."""

from functools import cached_property

import numpy as np

from collectors.reading import json_stream
from collectors.reading.textlog import Tally


class Unread(Exception):
    """An entry that pyarrow reads and Python's json does not: objects are too deep in one another."""


class Places:
    """The entries of a block: its bytes, where they begin in the file, what stands between most entries, how many."""

    def __init__(self, data: memoryview, begin: int, separator: bytes, count: int):
        self.data, self.begin, self.separator, self.count = data, begin, separator, count
        self._entries: dict[int, dict] = {}

    def entry(self, i: int) -> dict:
        """An entry by its number. Raises Unread where only pyarrow reads it."""
        if i not in self._entries:
            end = self.starts[i + 1] if i + 1 < self.count else None
            found = json_stream.first(bytes(self.data[self.starts[i] : end]))
            if found is None:
                raise Unread
            self._entries[i] = found[0]
        return self._entries[i]

    def offset(self, i: int) -> int:
        return self.begin + int(self.starts[i])

    def entries_at(self, places: np.ndarray) -> np.ndarray:
        """The numbers of the entries in which these bytes lie, each once."""
        return np.unique(np.searchsorted(self.starts, places, "right") - 1)

    @cached_property
    def starts(self) -> np.ndarray:
        pivot = max(0, self.separator.find(b"\n"))
        data = np.frombuffer(self.data, "u1")
        places = np.flatnonzero(data == self.separator[pivot]) - pivot
        places = places[(places >= 0) & (places <= len(data) - len(self.separator))]
        for i, byte in enumerate(self.separator):
            places = places[data[places + i] == byte]
        starts = np.r_[0, places + self.separator.index(b"{")]
        if len(starts) == self.count:  # each piece holds an entry or more: so each holds one
            return starts
        pieces = iter((bytes(self.data), b""))
        walk = json_stream.Walk("", Tally()).objects(lambda _: next(pieces))
        return np.array([at for at, _ in walk], "i8")

"""Columns of whole numbers by the number of their row: a join of tables without a database that runs anything."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from collectors.reading.sqlite import NULL


class Keyed:
    """Rows by their number; of rows with the same number the first counts."""

    def __init__(self, parts: Iterable[Mapping[str, np.ndarray]], key: str, columns: Sequence[str]):
        pieces: dict[str, list[np.ndarray]] = {name: [] for name in (key, *columns)}
        for part in parts:
            for name, kept in pieces.items():
                kept.append(part[name])
        joined = {name: _joined(kept) for name, kept in pieces.items()}
        keys = joined.pop(key)
        if len(keys) and not (np.diff(keys) > 0).all():
            order = np.argsort(keys, kind="stable")
            keys, joined = keys[order], {name: values[order] for name, values in joined.items()}
        self._keys, self._columns = keys, joined

    def __len__(self) -> int:
        return len(self._keys)

    def all(self, column: str) -> np.ndarray:
        """A column in the order of the numbers."""
        return self._columns[column]

    def place(self, keys: np.ndarray) -> np.ndarray:
        """Place of each number among the rows, -1 where there is none."""
        if not len(self._keys):
            return np.full(len(keys), -1, np.int64)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where((self._keys[at] == keys) & (keys != NULL), at, -1)

    def of(self, column: str, keys: np.ndarray) -> np.ndarray:
        """What the rows of these numbers tell in a column; NULL where there is no such row."""
        at = self.place(keys)
        told = self._columns[column]
        return np.where(at >= 0, told[np.maximum(at, 0)], NULL) if len(told) else np.full(len(keys), NULL)


def _joined(pieces: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

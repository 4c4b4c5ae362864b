"""Rows of unknown number, kept in a few large pieces.

Each piece is so large that the system takes it back whole when it is given up. Many small ones would leave holes behind
that nothing fills, which for traces of millions of kernels is as much memory as the rows themselves.
"""

from collections.abc import Iterator

import numpy as np

_ROWS = 1 << 19  # of a piece: 32 MB and more of most rows; what is not filled takes no memory


class Chunks:
    """Rows of one type, in the order in which they were added."""

    def __init__(self, kind: np.dtype, rows: int = _ROWS) -> None:
        self.kind, self._room = kind, rows
        self._whole: list[np.ndarray] = []
        self._open = np.empty(0, kind)
        self._filled = 0

    def append(self, rows: np.ndarray) -> None:
        """Adds rows."""
        done = 0
        while done < len(rows):
            if self._filled == len(self._open):
                self._close()
                self._open, self._filled = np.empty(self._room, self.kind), 0
            part = rows[done : done + len(self._open) - self._filled]
            self._open[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            done += len(part)

    def _close(self) -> None:
        if self._filled:
            self._whole.append(self._open[: self._filled])
        self._open, self._filled = np.empty(0, self.kind), 0

    def __iter__(self) -> Iterator[np.ndarray]:
        yield from self._whole
        if self._filled:
            yield self._open[: self._filled]

    def __len__(self) -> int:
        """How many pieces."""
        return len(self._whole) + bool(self._filled)

    def pop(self) -> np.ndarray:
        """The last piece, which is given up."""
        self._close()
        return self._whole.pop()

    def drained(self) -> np.ndarray:
        """All rows as one array; each piece is given up once it is copied, so that memory never holds all twice."""
        if len(self) == 1:
            return self.pop()
        out = np.empty(sum(map(len, self)), self.kind)
        end = len(out)
        while self:
            part = self.pop()
            out[end - len(part) : end] = part
            end -= len(part)
        return out

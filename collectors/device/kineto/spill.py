"""Rows of events that may be more than memory should hold: beyond a number they lie in a temporary file.

They come out in pieces that follow one another in time; within a piece they may be in any order.
"""

import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from collectors.device.kineto.span import HOUR_NS, TEN_DAYS_NS

KEPT_ROWS = 1 << 18  # in memory at once: 19 MB, and as much again while they are sorted
_SAMPLED = 1 << 9  # every so many rows, by which the pieces are cut


def low(start: np.ndarray) -> int:
    """The first time, but for those far before the middle one, and for 0 where all others are far from it."""
    middle = int(np.median(start))
    near = start[np.abs(start - middle) < TEN_DAYS_NS]
    known = near[near != 0]
    return int((known if len(known) and known.min() > HOUR_NS else near).min(initial=middle))


class Spill:
    """Rows with a field `start`."""

    def __init__(self, kind: np.dtype, kept_rows: int = KEPT_ROWS) -> None:
        self.kind, self._most = kind, kept_rows
        self._parts: list[np.ndarray] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._samples: list[np.ndarray] = []
        self.lows: list[int] = []  # the first time of each addition, but for those far from its other times
        self.rows = 0

    def add(self, rows: np.ndarray) -> None:
        """Adds rows in any order."""
        self._parts.append(rows)
        self._held += len(rows)
        self.rows += len(rows)
        self._samples.append(rows["start"][::_SAMPLED].copy())
        self.lows.append(low(rows["start"]))
        if self._held > self._most:
            self._write()

    def starts(self) -> np.ndarray:
        """A sample of the starts, sorted."""
        return np.sort(np.concatenate(self._samples)) if self._samples else np.zeros(0, np.int64)

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="chipledger-")  # noqa: SIM115 - open until all rows are asked for
        for part in self._parts:
            self._file.write(part.data)
        self._parts, self._held = [], 0

    def pieces(self) -> Iterator[np.ndarray]:
        """The rows, given up as they are handed out."""
        if self._file is None:
            rows = np.concatenate(self._parts) if self._parts else np.zeros(0, self.kind)
            self._parts = []
            if len(rows):
                yield rows
            return
        self._write()
        yield from self._from_file(self._file)
        self._file.close()

    def _from_file(self, file: IO[bytes]) -> Iterator[np.ndarray]:
        """Cuts the file into files by time, then reads one after another."""
        count = self.rows // (self._most // 2) + 1
        samples = self.starts()
        edges = np.unique(samples[(np.arange(1, count) * len(samples)) // count])
        with tempfile.TemporaryDirectory(prefix="chipledger-") as folder:
            names = [f"{folder}/{n}" for n in range(len(edges) + 1)]
            file.seek(0)
            size = self.kind.itemsize * (1 << 17)
            while raw := file.read(size):
                rows = np.frombuffer(raw, self.kind)
                which = np.searchsorted(edges, rows["start"], "right")
                for n in np.unique(which).tolist():
                    with open(names[n], "ab") as out:
                        out.write(rows[which == n].data)
            file.truncate(0)
            for name in names:
                try:
                    rows = np.fromfile(name, self.kind)
                except FileNotFoundError:
                    continue
                yield rows

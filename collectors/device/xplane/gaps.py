"""Whether the profiler lost operations: runs of programs in which no operation began."""

from collections.abc import Iterator

import numpy as np

from collectors.base import Lost

MISSING_SHARE = 0.01  # of program time without operations, before it is worth a word
_CELL_PS = 1_000_000  # starts of operations are kept to the microsecond,
_MOST_CELLS = 1 << 20  # and coarser where there are more of them than this on one device


def _distinct(cells: np.ndarray) -> np.ndarray:
    """The values, rising, each once; quick where they are nearly so already."""
    cells = np.sort(cells, kind="stable")
    return cells[np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))] if len(cells) else cells


class Starts:
    """When operations of a device began, in cells of time, in whatever order they come."""

    def __init__(self) -> None:
        self.cell_ps = _CELL_PS
        self._parts: list[np.ndarray] = []
        self._count = 0

    def add(self, start: np.ndarray) -> None:
        cells = start // self.cell_ps
        cells = cells[np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))]
        self._parts.append(cells)
        self._count += len(cells)
        while self._count > _MOST_CELLS:
            cells = _distinct(np.concatenate(self._parts))
            if len(cells) > _MOST_CELLS // 2:
                cells = _distinct(cells // 2)
                self.cell_ps *= 2
            self._parts, self._count = [cells], len(cells)

    def within(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Whether an operation began in each stretch [start, end)."""
        cells = _distinct(np.concatenate(self._parts or [np.zeros(0, np.int64)]))
        after = np.searchsorted(cells, (end - 1) // self.cell_ps, "right")
        return np.searchsorted(cells, start // self.cell_ps, "left") < after


class ProgramRuns:
    """Runs of programs and starts of operations by device, from lines in any order."""

    def __init__(self) -> None:
        self._runs: dict[int, list[np.ndarray]] = {}
        self._starts: dict[int, Starts] = {}

    def ran(self, device: int, start: np.ndarray, end: np.ndarray) -> None:
        """Enters runs of programs, ps."""
        self._runs.setdefault(device, []).append(np.stack([start, end], axis=1))

    def showed(self, device: int, start: np.ndarray) -> None:
        """Enters starts of operations, ps."""
        self._starts.setdefault(device, Starts()).add(start)

    def missing(self) -> Iterator[Lost]:
        """A loss for each device with runs that show no operation, where they hold over 1 % of the program time."""
        for device, parts in self._runs.items():
            start, end = np.concatenate(parts).T
            empty = ~self._starts.get(device, Starts()).within(start, end)
            length = (end - start).astype(float)
            if length.sum() and length[empty].sum() > MISSING_SHARE * length.sum():
                yield Lost(
                    f"operations of device {device}",
                    f"{empty.sum()} of {len(start)} program runs ({length[empty].sum() / 1e12:.3f} s) show none: "
                    "the profiler's buffer was full; profile a shorter time",
                )

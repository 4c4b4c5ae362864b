"""The lives of blocks of device memory as arrays, and what was held after each event of the history."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from runs.tables import Tables, int_column

BEFORE = -1  # of `alloc`: held when the history begins
_COLUMNS = ["device", "bytes", "alloc_event", "free_event", "alloc_ns", "free_ns", "stack"]


@dataclass(frozen=True)
class Blocks:
    """The blocks of one device of one snapshot. `alloc`, `free`: positions in the history (`events` where nothing freed
    it); `ns`: of the beginning and of the end, -1 where not told; `stack`: -1 where not recorded."""

    capture: int
    device: int
    host: str
    bytes: np.ndarray
    alloc: np.ndarray
    free: np.ndarray
    alloc_ns: np.ndarray
    free_ns: np.ndarray
    stack: np.ndarray

    @cached_property
    def events(self) -> int:
        """Positions of the history, up to the last that begins or ends a block."""
        return int(max(self.alloc.max(initial=-1), np.where(self.free < _NEVER, self.free, -1).max(initial=-1))) + 1

    @cached_property
    def level(self) -> np.ndarray:
        """Bytes held before the first event, and after each."""
        change = np.zeros(self.events + 1, np.int64)
        np.add.at(change, self.alloc + 1, self.bytes)
        ended = self.free < _NEVER
        np.subtract.at(change, self.free[ended] + 1, self.bytes[ended])
        return np.cumsum(change)

    @cached_property
    def peak(self) -> int:
        """The first place in `level` where most is held."""
        return int(self.level.argmax())

    @property
    def most(self) -> int:
        """Bytes held at the peak."""
        return int(self.level[self.peak])

    def held(self, place: int) -> np.ndarray:
        """Which blocks are held at a place in `level`."""
        return (self.alloc < place) & (self.free >= place)

    def ns(self, place: int) -> int | None:
        """When a place in `level` was: the time of its event, or of the last before it that is told."""
        pairs = (self.alloc, self.alloc_ns), (self.free, self.free_ns)
        times = [ns[(at < place) & (ns >= 0)].max(initial=-1) for at, ns in pairs]
        return int(max(times)) if max(times) >= 0 else self._first_ns

    @cached_property
    def _first_ns(self) -> int | None:
        told = np.r_[self.alloc_ns[self.alloc_ns >= 0], self.free_ns[self.free_ns >= 0]]
        return int(told.min()) if len(told) else None

    @property
    def recorded(self) -> bool:
        """Whether anything happened while history was recorded."""
        return self.events > 0


_NEVER = np.int64(1 << 62)


def histories(tables: Tables) -> Iterator[Blocks]:
    """Each device of each snapshot, one snapshot at a time: a job's ranks together may be more than fits."""
    captures = tables.arrow("allocations", ["capture"])["capture"].unique().to_pylist()
    for capture in sorted(c for c in captures if c is not None):
        yield from _of_capture(tables, capture)


def _of_capture(tables: Tables, capture: int) -> Iterator[Blocks]:
    table = tables.arrow("allocations", [*_COLUMNS, "host"], [("capture", "==", capture)])
    column = {name: int_column(table, name) for name in _COLUMNS}
    column["free_event"] = np.where(column["free_event"] < 0, _NEVER, column["free_event"])
    hosts = table["host"]
    for device in np.unique(column["device"]).tolist():
        rows = np.flatnonzero(column["device"] == device)
        mine = {name: values[rows] for name, values in column.items()}
        yield Blocks(
            capture=capture,
            device=device,
            host=str(hosts[int(rows[0])].as_py() or ""),
            bytes=mine["bytes"],
            alloc=mine["alloc_event"],
            free=mine["free_event"],
            alloc_ns=mine["alloc_ns"],
            free_ns=mine["free_ns"],
            stack=mine["stack"],
        )

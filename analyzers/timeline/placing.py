"""Events put into rows of their lanes, and written in their order: some lanes at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.clock import Clock
from analyzers.timeline.columns import Columns, Ranges, Readable, fitting
from analyzers.timeline.gathered import OPTIONAL, chunks, merged
from analyzers.timeline.kernels import CODES
from analyzers.timeline.progress import PLACING, tell
from analyzers.timeline.pyramid import CHUNK, Ints, rows, starts_of, union, wholes

Numbers = tuple[Any, ...]
"""What `Row` says of a lane beside the lane, in its order; the first row is counted from that of the first lane."""


@dataclass(frozen=True)
class Source:
    """Events that were put down together. `numbers`: of each of their names, the timeline's."""

    columns: Readable
    numbers: NDArray[np.int32]


@dataclass(frozen=True)
class Stretches:
    """Where the events of some lanes lie. `told`: as `PutDown` says, with the number of the lane among `lanes`;
    `source`: in which source each stretch lies."""

    lanes: int
    told: dict[str, Ints]
    source: Ints

    def among(self, low: int, high: int) -> "Stretches":
        """Those of the lanes from `low` to below `high`."""
        mine = np.flatnonzero((self.told["lane"] >= low) & (self.told["lane"] < high))
        told = {name: values[mine] for name, values in self.told.items()}
        return Stretches(high - low, told | {"lane": told["lane"] - low}, self.source[mine])

    @property
    def sizes(self) -> Ints:
        """How many events each lane has."""
        found = np.zeros(self.lanes, np.int64)
        np.add.at(found, self.told["lane"], self.told["size"])
        return found


class Placing:
    """The events of lanes, put into rows. `ranges`: as `PutDown` says, of all that was put down; `into`: gets their
    columns, in order of row and start."""

    def __init__(
        self,
        stretches: Stretches,
        sources: Sequence[Source],
        clock: Clock,
        ranges: dict[str, tuple[int, int]],
        into: Columns,
    ):
        self._of, self._sources, self._clock, self._ranges, self._into = stretches, sources, clock, ranges, into
        self._order = np.lexsort((stretches.told["turn"], stretches.told["lane"]))
        self._row = 0
        self.kinds: set[int] = set()

    def placed(self) -> list[Numbers]:
        """What is said of each lane."""
        told: list[Numbers] = []
        sizes = self._of.sizes
        self._into.add("first", np.zeros(1, np.int64))
        for a, b in chunks(sizes, CHUNK):
            tell(PLACING, self._into.length("code"), int(sizes.sum()))
            told.extend(self._some(a, b))
        return told

    def _some(self, a: int, b: int) -> list[Numbers]:
        """The lanes from `a` to below `b`."""
        low, high = np.searchsorted(self._of.told["lane"][self._order], [a, b])
        which = self._order[low:high]
        of = {name: values[which] for name, values in self._of.told.items()}
        where, size = list(self._runs(self._of.source[which], of["at"], of["size"])), of["size"]

        def column(name: str) -> NDArray[Any]:
            return np.concatenate([source.columns.take(name, ranges) for source, ranges in where])

        def spread(name: str) -> Ints:
            return np.repeat(of[name], size)

        lane = np.repeat(of["lane"] - a, size)
        per_ns = spread("per_ns")
        since = np.repeat(self._clock.since(of["base_ns"], of["dated"] > 0), size)
        start = self._clock.ticks(column("start"), since, per_ns)
        end = self._clock.ticks(column("end"), since, per_ns)
        together = spread("together") > 0
        row, first = _rows(lane, start, end - start, column("number") if together.any() else lane, together, b - a)
        row += first[lane]
        order = np.lexsort((start, row))
        told = self._told(lane, start, end, code := column("code"), first)
        kind = column("kind")
        self.kinds.update(np.flatnonzero(np.bincount(kind)).tolist())
        name = np.concatenate([source.numbers[source.columns.take("name", ranges)] for source, ranges in where])
        self._write(order, {"start": start, "dur": end - start, "code": code, "kind": kind, "name": name})
        self._write_narrow(order, {name: column(name) for name in OPTIONAL} | {"capture": spread("capture")})
        begun = self._into.length("code") - len(order)
        self._into.add("first", begun + starts_of(row[order], 1, int(first[-1]) + 1))
        self._row += int(first[-1])
        return told

    def _runs(self, source: Ints, at: Ints, size: Ints) -> Iterator[tuple[Source, Ranges]]:
        """Stretches that follow one another in one source, as ranges of it."""
        opens = np.flatnonzero(np.diff(source, prepend=-1))
        for a, b in zip(opens, [*opens[1:], len(source)], strict=True):
            yield self._sources[source[a]], merged(at[a:b], size[a:b])

    def _write(self, order: Ints, columns: dict[str, NDArray[Any]]) -> None:
        for name, values in columns.items():
            self._into.add(name, values[order])

    def _write_narrow(self, order: Ints, columns: dict[str, Ints]) -> None:
        for name, values in columns.items():
            low, high = self._ranges[name]
            if low != high:
                self._into.add(name, values[order].astype(fitting(low, high)))

    def _told(self, lane: Ints, start: Ints, end: Ints, code: NDArray[np.uint8], first: Ints) -> list[Numbers]:
        count = len(first) - 1
        begins, ends = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        busy = union(lane, start, end, count).tolist()
        np.minimum.at(begins, lane, start)
        np.maximum.at(ends, lane, end)
        depth, by_code = np.diff(first), _by_code(lane, code, end - start, count)
        events = np.bincount(lane, minlength=count)
        before, after = (self._row + first[:-1], depth, events), (begins, ends)
        return list(zip(*(v.tolist() for v in before), busy, *(v.tolist() for v in after), by_code, strict=True))


def _by_code(lane: Ints, code: NDArray[np.uint8], dur: Ints, count: int) -> list[tuple[tuple[int, int], ...]]:
    """Of each lane (account, ticks of it), of the accounts that its events are of."""
    used = np.flatnonzero(np.bincount(code, minlength=CODES))
    at = np.zeros(CODES, np.int64)
    at[used] = np.arange(len(used))
    cell = lane * len(used) + at[code]
    ticks = wholes(cell, dur, count * len(used))
    there = np.bincount(cell, minlength=len(ticks)).reshape(count, -1) > 0
    return [
        tuple((int(used[n]), ticks[row * len(used) + n]) for n in np.flatnonzero(some).tolist())
        for row, some in enumerate(there)
    ]


def _rows(
    lane: Ints, start: Ints, dur: Ints, number: Ints, together: NDArray[np.bool_], count: int
) -> tuple[Ints, Ints]:
    """(row of each event within its lane, the first row of each lane of these, and one more)."""
    row = np.empty(len(lane), dtype=np.int64)
    single = np.flatnonzero(~together)
    order, told = rows(lane[single], start[single], dur[single])
    row[single[order]] = told
    shared = np.flatnonzero(together)
    if len(shared):
        row[shared] = _of_wholes(lane[shared], number[shared], start[shared], dur[shared])
    depth = np.zeros(count, dtype=np.int64)
    np.maximum.at(depth, lane, row + 1)
    return row, np.concatenate([[0], np.cumsum(depth)])


def _of_wholes(lane: Ints, whole: Ints, start: Ints, dur: Ints) -> Ints:
    """The row of each of several events that stand in one."""
    _, group = np.unique(np.stack([lane, whole]), axis=1, return_inverse=True)
    group = group.ravel()
    begin, end = np.full(int(group.max()) + 1, np.iinfo(np.int64).max), np.zeros(int(group.max()) + 1, np.int64)
    of = np.zeros(len(begin), np.int64)
    np.minimum.at(begin, group, start)
    np.maximum.at(end, group, start + dur)
    of[group] = lane
    order, told = rows(of, begin, end - begin)
    row = np.empty(len(begin), np.int64)
    row[order] = told
    return row[group]

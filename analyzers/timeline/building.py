"""A timeline made: lanes one after another, so that no more than the largest of them is in memory.

gathered    every event is put down as it is read (`gathered.py`)
placed      lane by lane: its events get rows and are written in their order
levels      are summed from what was written, some rows at a time (`pyramid.py`)
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.time.history import natural_key
from analyzers.timeline.booked import ACCOUNT, strips
from analyzers.timeline.columns import Columns, fitting
from analyzers.timeline.gathered import OPTIONAL, Gathered, chunks, gathered, merged
from analyzers.timeline.kernels import CODES
from analyzers.timeline.lanes import GROUPS, PS_PER_NS, ROLES, Lane, parts
from analyzers.timeline.progress import PLACING, tell
from analyzers.timeline.pyramid import CHUNK, Ints, Made, levels, rows, starts_of, wholes
from analyzers.timeline.record import Row
from analyzers.timeline.traced import traced
from errors import QuestionError
from runs.tables import Tables

EVENTS = ("op_events", "requests", "iterations", "steps", "lifecycle")
LONGEST_NS = (1 << 62) // PS_PER_NS  # beyond, some 53 days, times are whole nanoseconds


@dataclass(frozen=True)
class Clock:
    """Ticks since `origin_ns`, `per_ns` to a nanosecond, of which the first is `begin`."""

    origin_ns: int
    per_ns: int
    begin: int
    dated: bool

    def since(self, base_ns: Ints, dated: NDArray[np.bool_]) -> Ints:
        """Ticks from the origin to the base of stretches; those without a time of day begin with the first."""
        away = np.where(dated | (self.origin_ns <= 0), base_ns - self.origin_ns, 0)
        return away * self.per_ns

    def ticks(self, times: Ints, since: Ints, per_ns: Ints) -> Ints:
        """Times of stretches, each `per_ns` to a nanosecond since so many ticks."""
        odd = per_ns != self.per_ns  # either is 1
        if odd.any():
            times = np.where(odd, times * self.per_ns // per_ns, times)
        return since + times - self.begin


@dataclass(frozen=True, kw_only=True)
class Built:
    """What of a timeline is no column. `same`: columns that are not written, for all their values are one."""

    lanes: tuple[Row, ...]
    made: Made
    clock: Clock
    names: tuple[str, ...]
    stored: int
    strips: int
    notes: tuple[str, ...]
    same: dict[str, int]
    kinds: tuple[int, ...]


def build(tables: Tables, facts: Facts, put_down: Columns, into: Columns) -> Built:
    """Write the columns of a run's timeline. Raises QuestionError where nothing of it has a place in time."""
    lost = Counter[str]()
    every = chain(strips(tables, facts), parts(tables, facts, lost), traced(tables))
    found = gathered(every, put_down, sum(tables.rows(name) for name in EVENTS))
    if not found.lanes:
        raise QuestionError(
            "nothing of this run has a place in time",
            expected="a profile, steps or lifecycle entries with times, or requests",
        )
    lost["events"] = tables.rows("op_events") - found.traced
    clock = _clock(found)
    placing = Placing(found, clock, into)
    lanes = placing.placed()
    beside = sum(row.events for row in lanes if row.lane.role == ACCOUNT)
    return Built(
        lanes=tuple(lanes),
        made=levels(into, into.take("first", [(0, into.length("first"))])),
        clock=clock,
        names=tuple(found.names),
        stored=int(found.told("size").sum()) - beside + lost.total(),
        strips=beside,
        notes=_notes(found, lost, clock),
        same={name: low for name, (low, high) in found.ranges.items() if low == high},
        kinds=tuple(sorted(placing.kinds)),
    )


def _clock(found: Gathered) -> Clock:
    base, per_ns, dated = found.told("base_ns"), found.told("per_ns"), found.told("dated") > 0
    some = dated if dated.any() else ~dated
    origin = int((base + found.told("begin") // per_ns)[some].min())
    last = int((base + found.told("end") // per_ns)[some].max())
    rough = Clock(origin, PS_PER_NS if last - origin < LONGEST_NS else 1, 0, bool(dated.any()))
    begin = int(rough.ticks(found.told("begin"), rough.since(base, dated), per_ns).min())
    return replace(rough, begin=min(begin // rough.per_ns * rough.per_ns, 0))  # undated beside dated ones


class Placing:
    """The events of every lane, put into rows. `into`: gets their columns, in order of row and start."""

    def __init__(self, found: Gathered, clock: Clock, into: Columns):
        self._found, self._clock, self._into = found, clock, into
        self._lanes = sorted(found.lanes, key=_place)
        place = np.empty(len(self._lanes), np.int64)
        place[[found.lanes[lane] for lane in self._lanes]] = np.arange(len(self._lanes))
        self._lane = place[found.told("lane")]
        self._order = np.lexsort((found.told("turn"), self._lane))
        self._row = 0
        self.kinds: set[int] = set()

    def placed(self) -> list[Row]:
        told: list[Row] = []
        sizes = np.zeros(len(self._lanes), np.int64)
        np.add.at(sizes, self._lane, self._found.told("size"))
        self._into.add("first", np.zeros(1, np.int64))
        for a, b in chunks(sizes, CHUNK):
            tell(PLACING, self._into.length("code"), int(sizes.sum()))
            told.extend(self._some(a, b))
        return told

    def _some(self, a: int, b: int) -> list[Row]:
        """The lanes from `a` to below `b`."""
        low, high = np.searchsorted(self._lane[self._order], [a, b])
        which = self._order[low:high]
        size = self._found.told("size")[which]
        ranges = merged(self._found.told("at")[which], size)

        def column(name: str) -> NDArray[Any]:
            return self._found.columns.take(name, ranges)

        def spread(name: str) -> Ints:
            return np.repeat(self._found.told(name)[which], size)

        lane = np.repeat(self._lane[which] - a, size)
        per_ns = spread("per_ns")
        since = self._clock.since(self._found.told("base_ns")[which], self._found.told("dated")[which] > 0)
        since = np.repeat(since, size)
        start = self._clock.ticks(column("start"), since, per_ns)
        end = self._clock.ticks(column("end"), since, per_ns)
        together = spread("together") > 0
        row, first = _rows(lane, start, end - start, column("number") if together.any() else lane, together, b - a)
        row += first[lane]
        order = np.lexsort((start, row))
        told = self._told(a, lane, start, end, code := column("code"), first)
        kind = column("kind")
        self.kinds.update(np.flatnonzero(np.bincount(kind)).tolist())
        self._write(order, {"start": start, "dur": end - start, "code": code, "kind": kind, "name": column("name")})
        self._write_narrow(order, {name: column(name) for name in OPTIONAL} | {"capture": spread("capture")})
        begun = self._into.length("code") - len(order)
        self._into.add("first", begun + starts_of(row[order], 1, int(first[-1]) + 1))
        self._row += int(first[-1])
        return told

    def _write(self, order: Ints, columns: dict[str, NDArray[Any]]) -> None:
        for name, values in columns.items():
            self._into.add(name, values[order])

    def _write_narrow(self, order: Ints, columns: dict[str, Ints]) -> None:
        for name, values in columns.items():
            low, high = self._found.ranges[name]
            if low != high:
                self._into.add(name, values[order].astype(fitting(low, high)))

    def _told(self, a: int, lane: Ints, start: Ints, end: Ints, code: NDArray[np.uint8], first: Ints) -> list[Row]:
        count = len(first) - 1
        begins, ends = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        busy = wholes(lane, end - start, count)
        np.minimum.at(begins, lane, start)
        np.maximum.at(ends, lane, end)
        depth, by_code = np.diff(first), _by_code(lane, code, end - start, count)
        events = np.bincount(lane, minlength=count)
        before, after = (self._row + first[:-1], depth, events), (begins, ends)
        some = zip(*(v.tolist() for v in before), busy, *(v.tolist() for v in after), by_code, strict=True)
        return [Row(self._lanes[a + n], *numbers) for n, numbers in enumerate(some)]


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


def _place(lane: Lane) -> tuple[Any, ...]:
    role = -1 if lane.role == ACCOUNT else ROLES.index(lane.role) if lane.role in ROLES else len(ROLES)
    device = -1 if lane.device is None else lane.device
    return GROUPS.index(lane.group), natural_key(lane.host), device, role, natural_key(lane.line)


def _notes(found: Gathered, lost: Counter[str], clock: Clock) -> tuple[str, ...]:
    said: list[str] = []
    if found.backwards:
        said.append(f"{found.backwards:,} events end before they begin: they are drawn as instants.")
    for what, count in lost.items():
        if count:
            why = "no operation, capture or time that the run holds" if what == "events" else "no begin or no end"
            said.append(f"{count:,} {what} are not drawn: they have {why}.")
    if clock.dated and not found.told("dated").all():
        said.append("Some captures have no time of day: they stand at the beginning.")
    return tuple(said)

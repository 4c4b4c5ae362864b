"""Where on a timeline something is: times of day, steps, and events by name, as ticks."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analyzers.timeline import Row, Timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import JOB, PS_PER_NS
from analyzers.timeline.pyramid import Ints
from analyzers.timeline.selection import met
from errors import QuestionError
from errors import format as fmt
from runs.tables import Tables, frame

EACH_ITS_OWN: Mapping[str, int] = MappingProxyType({})
KEPT = "step"  # what the job's lane calls a step that was not taken again


@dataclass(frozen=True)
class Stretch:
    """From `start` to `end`, in ticks; `event`: the one that is meant, if any."""

    start: int
    end: int
    event: int | None = None


def tick_of(of: Timeline, ns: int) -> int:
    """A time of day as a tick."""
    return (ns - of.origin_ns) * PS_PER_NS // of.tick_ps


def row_of(of: Timeline, event: int) -> int:
    """The row that an event stands in."""
    return int(np.searchsorted(of.tiles.first, event, side="right")) - 1


def lane_at(of: Timeline, row: int) -> int:
    """The number of the lane that a row is of."""
    return bisect_right(of.lanes, row, key=lambda lane: lane.first_row) - 1


def between(of: Timeline, start_ns: int, end_ns: int) -> Stretch:
    """Raises QuestionError for times none of which the timeline reaches."""
    start, end = tick_of(of, start_ns), tick_of(of, end_ns)
    if end < start:
        raise QuestionError(
            f"a stretch that ends {start_ns - end_ns:,} ns before it begins", expected="from_ns <= to_ns"
        )
    if end < 0 or start > of.span:
        last = of.origin_ns + of.span * of.tick_ps // PS_PER_NS
        shown = (fmt.date(t) if of.dated else f"{t:,}" for t in (of.origin_ns, last))
        told = f"a time from {' to '.join(shown)}{'' if of.dated else ' ns'}"
        raise QuestionError("nothing of this run lies at that time", expected=told)
    return Stretch(max(start, 0), min(end, of.span))


def step(
    of: Timeline, tables: Tables, number: int, last: int | None = None, ahead_ns: Mapping[str, int] = EACH_ITS_OWN
) -> Stretch:
    """A step, or those up to `last`: as the job took them, else as devices did. Of one that was taken again that which
    was kept. `ahead_ns`: by how much clocks of hosts are ahead, where they are aligned. Raises QuestionError for one
    that is not there."""
    found = _of_job(of, number, last) or _of_devices(of, tables, number, last, ahead_ns)
    if found is None:
        raise QuestionError(f"no step {number:,} with a time in this run", expected=_told(of, tables, number))
    return found


def _of_job(of: Timeline, number: int, last: int | None) -> Stretch | None:
    for lane in of.lanes:
        if lane.lane.group == JOB and lane.lane.role == "step":
            events = _events(of, lane)
            numbers = of.number[events]
            mine = events[(numbers >= number) & (numbers <= (number if last is None else last))]
            kept = mine[np.isin(of.name[mine], [n for n, name in enumerate(of.names) if name == KEPT])]
            mine = kept if len(kept) else mine[-1:]
            if len(mine):
                ends = of.tiles.start[mine] + of.tiles.dur[mine]
                return Stretch(int(of.tiles.start[mine].min()), int(ends.max()), int(mine[0]))
    return None


def _events(of: Timeline, lane: Row) -> Ints:
    return np.arange(int(of.tiles.first[lane.first_row]), int(of.tiles.first[lane.first_row + lane.rows]))


def _of_devices(
    of: Timeline, tables: Tables, number: int, last: int | None, ahead_ns: Mapping[str, int]
) -> Stretch | None:
    """By profiles: the earliest, and those of other hosts that meet it or one another."""
    where = [("step", ">=", number), ("step", "<=", number if last is None else last)]
    rows = frame(tables, "steps", ["start_ns", "dur_ns", "capture"], where).dropna()
    if not len(rows):
        return None
    start_ns = rows["start_ns"].to_numpy(dtype=np.int64) - _ahead_ns(tables, rows["capture"], ahead_ns)
    start_ns += of.origin_ns * undated(of, tables, rows["capture"].to_numpy(dtype=np.int64))
    rows = rows.assign(start_ns=start_ns).sort_values("start_ns")
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    end = start + np.maximum(rows["dur_ns"].to_numpy(dtype=np.int64), 0)
    reach = np.maximum.accumulate(end)
    if last is None and (apart := np.flatnonzero(start[1:] > reach[:-1])).size:
        reach = reach[: int(apart[0]) + 1]
    return between(of, int(start[0]), int(reach[-1]))


def undated(of: Timeline, tables: Tables, captures: Ints) -> NDArray[np.bool_]:
    """Which of these captures have no time of day while the timeline has one: they stand at its beginning, and what
    tables tell of them counts from there."""
    told = frame(tables, "captures", ["capture", "start_ns"])
    known = told.loc[told["start_ns"].fillna(0) > 0, "capture"].dropna().to_numpy(dtype=np.int64)
    return ~np.isin(captures, known) if of.dated else np.zeros(len(captures), bool)


def _ahead_ns(tables: Tables, captures: pd.Series, ahead_ns: Mapping[str, int]) -> Ints:
    """Of each of these captures."""
    if not ahead_ns:
        return np.zeros(len(captures), np.int64)
    told = frame(tables, "captures", ["capture", "host"])
    host = dict(zip(told["capture"].tolist(), told["host"].tolist(), strict=True))
    return np.array([ahead_ns.get(str(host.get(one)), 0) for one in captures.tolist()], np.int64)


def steps_with_times(of: Timeline, tables: Tables) -> Ints:
    """The numbers of steps that a timeline can look at, in order."""
    known = [of.number[_events(of, one)] for one in of.lanes if (one.lane.group, one.lane.role) == (JOB, "step")]
    rows = frame(tables, "steps", ["step", "start_ns", "dur_ns", "capture"]).dropna()
    steps = np.unique(np.concatenate([*known, rows["step"].to_numpy(dtype=np.int64)]))
    return steps[steps >= 0]


def _told(of: Timeline, tables: Tables, number: int) -> str:
    """Which steps there are, with the nearest to one that is not."""
    steps = steps_with_times(of, tables)
    if not len(steps):
        return "a run whose steps have times: none of this one has"
    nearest = int(steps[np.argmin(np.abs(steps - number))])
    return f"one from {int(steps[0]):,} to {int(steps[-1]):,}, such as {nearest:,}, the nearest"


def named(of: Timeline, text: str, within: Stretch | None, rows: set[int] | None) -> Stretch | None:
    """The longest event of this name, or else of one that holds it, in a stretch and some rows; None where none is."""
    wanted = text.casefold()
    names = [name.casefold() for name in of.names]
    for those in ([name == wanted for name in names], [wanted in name for name in names]):
        which = np.array(those, dtype=bool)
        if which.any() and (event := _longest(of, within, rows, which)) is not None:
            begin = int(of.tiles.start[event])
            alone = Stretch(begin, begin + int(of.tiles.dur[event]), event)
            return alone if within is None else replace(within, event=event)
    return None


def _longest(of: Timeline, within: Stretch | None, rows: set[int] | None, which: np.ndarray | None) -> int | None:
    """The event of which most lies in the stretch; before all others one that begins or ends with it."""
    start, end = (0, of.span + 1) if within is None else (within.start, max(within.end, within.start + 1))
    best, most = None, (-1, -1)
    for lane in of.lanes:
        if lane.lane.role == ACCOUNT:
            continue
        for row in range(lane.first_row, lane.first_row + lane.rows):
            if rows is not None and row not in rows:
                continue
            a, b = met(of.tiles, row, start, end)
            events = np.arange(a, b) if which is None else a + np.flatnonzero(which[of.name[a:b]])
            if not len(events):
                continue
            begin, finish = of.tiles.start[events], of.tiles.start[events] + of.tiles.dur[events]
            inside = np.minimum(finish, end) - np.maximum(begin, start)
            edges = (begin == start).astype(np.int64) + (finish == end) if within else np.zeros(len(events), np.int64)
            at = int(np.lexsort((inside, edges))[-1])
            if (score := (int(edges[at]), int(inside[at]))) > most:
                best, most = int(events[at]), score
    return best


def longest_in(of: Timeline, within: Stretch, rows: set[int]) -> int | None:
    """The event of these rows that begins or ends with a stretch, else that of which most lies in it."""
    return _longest(of, within, rows, None)

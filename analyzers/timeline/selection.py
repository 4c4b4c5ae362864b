"""What a stretch of a timeline holds: time by account, and of each lane its events and the time that they cover.

Time by account is that of strips: of the devices' among the chosen rows, else of the job's, else of all devices' (of a
run that has none, of the job's). Devices' strips and the job's tell of the same time and are never added together.

No event of a row meets another, so that those that meet a stretch follow one another, and at most the first and the
last of them reach beyond it. Where they are many, the bins of a level that lie within it are added instead, and what is
beside them is counted by its events: the same number, to the tick.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.timeline import Row, Timeline
from analyzers.timeline.booked import ACCOUNT
from analyzers.timeline.lanes import CODES, DEVICE
from analyzers.timeline.pyramid import Level, Pyramid, union

FEW = 1 << 16  # events of a row that are added one by one
BINS = 1_024  # of a level, about so many in a stretch
CHUNK = 1 << 20  # events at once
LOW = 26  # bits of a duration that are summed apart, so that sums of floats stay whole numbers


@dataclass(frozen=True)
class OfLane:
    """Of the chosen rows of a lane, the events that meet the stretch, and the ticks of it that at least one of them
    covers: nested ones cover nothing more."""

    lane: Row
    events: int
    busy_ticks: int


@dataclass(frozen=True)
class Selection:
    """`ticks`: of the strips that count, by code, only those with some; `titles`: as strips call them; `lanes`: without
    strips."""

    start: int
    end: int
    ticks: dict[int, int]
    titles: dict[int, str]
    lanes: tuple[OfLane, ...]

    @property
    def events(self) -> int:
        return sum(lane.events for lane in self.lanes)


def selection(
    of: Timeline, chosen: Sequence[int], start: int, end: int, ahead: Sequence[int] | None = None, last: int = 0
) -> Selection:
    """What rows hold from `start` to before `end`, in ticks; to the end of the timeline with what is at its last.
    `ahead`: of each lane, by how many ticks its clock is ahead: as much later the stretch lies by that clock. `last`:
    where the timeline ends then."""
    rows = sorted(set(chosen))
    asked, end = end, end + (end == (of.span if ahead is None else last))
    ticks: dict[int, int] = {}
    titles: dict[int, str] = {}
    by = defaultdict(int, {} if ahead is None else zip(of.lanes, ahead, strict=True))
    for lane, mine in _strips(of, rows):
        for row in mine:
            for code, held in _by_code(of.tiles, row, start + by[lane], end + by[lane]).items():
                ticks[code] = ticks.get(code, 0) + held
            titles |= _titles(of, row, start + by[lane], end + by[lane])
    lanes = tuple(_of_lane(of.tiles, lane, mine, start + by[lane], end + by[lane]) for lane, mine in _by_lane(of, rows))
    return Selection(start, asked, ticks, titles, lanes)


def _strips(of: Timeline, chosen: list[int]) -> list[tuple[Row, list[int]]]:
    """The strips that count, with their rows."""
    strips = [lane for lane in of.lanes if lane.lane.role == ACCOUNT]
    devices = [lane for lane in strips if lane.lane.group == DEVICE]
    rows = set(chosen)
    for some in (devices, strips):
        found = [(lane, [row for row in _rows(lane) if row in rows]) for lane in some]
        if any(mine for _, mine in found):
            return found
    return [(lane, list(_rows(lane))) for lane in devices or strips]


def _rows(lane: Row) -> range:
    return range(lane.first_row, lane.first_row + lane.rows)


def _by_lane(of: Timeline, rows: list[int]) -> Iterable[tuple[Row, list[int]]]:
    """The chosen rows of each lane that is no strip."""
    at = np.array(rows, dtype=np.int64)
    for lane in of.lanes:
        low, high = np.searchsorted(at, [lane.first_row, lane.first_row + lane.rows])
        if low < high and lane.lane.role != ACCOUNT:
            yield lane, rows[int(low) : int(high)]


def _of_lane(of: Pyramid, lane: Row, rows: list[int], start: int, end: int) -> OfLane:
    found = [met(of, row, start, end) for row in rows]
    return OfLane(lane, sum(b - a for a, b in found), covered_once(of, rows, start, end))


def covered_once(of: Pyramid, rows: Sequence[int], start: int, end: int) -> int:
    """Ticks from `start` to `end` that events of these rows cover, of any of them."""
    if len(rows) == 1:
        return covered(of, rows[0], start, end)
    found = [(a, b) for a, b in (met(of, row, start, end) for row in rows) if a < b]
    if not found or any(_fills(of, a, b, start, end) for a, b in found):
        return max(end - start, 0) if found else 0
    count = sum(b - a for a, b in found)
    if count > max(CHUNK, 4 * len(rows)) and end - start > 1:  # at most two of each row reach out of a half
        middle = (start + end) // 2
        return covered_once(of, rows, start, middle) + covered_once(of, rows, middle, end)
    begin = np.concatenate([of.start[a:b] for a, b in found])
    over = np.minimum(begin + np.concatenate([of.dur[a:b] for a, b in found]), end)
    return int(union(np.zeros(count, np.int64), np.maximum(begin, start), over, 1)[0])


def _fills(of: Pyramid, a: int, b: int, start: int, end: int) -> bool:
    """Whether these events are one that covers the whole stretch."""
    return b - a == 1 and int(of.start[a]) <= start and int(of.start[a]) + int(of.dur[a]) >= end


def met(of: Pyramid, row: int, start: int, end: int) -> tuple[int, int]:
    """From which to which event of a row something lies from `start` to before `end`; one of no length where it is."""
    low, high = int(of.first[row]), int(of.first[row + 1])
    a, b = (low + int(n) for n in np.searchsorted(of.start[low:high], [start, end]))
    if a > low and int(of.start[a - 1]) + int(of.dur[a - 1]) > start:
        a -= 1
    return a, max(a, b)


def covered(of: Pyramid, row: int, start: int, end: int) -> int:
    """Ticks from `start` to `end` that the events of a row cover."""
    a, b = met(of, row, start, end)
    if b - a <= FEW or (level := _level(of, start, end)) is None:
        return int(of.dur[a:b].sum()) - _beyond(of, a, b, start, end)
    low, high = -(-start >> level.shift), end >> level.shift  # bins that lie within
    begin, finish = low << level.shift, high << level.shift
    inside = _binned(level, row, low, high) + _long(of, level.shift, row, begin, finish)
    return _one_by_one(of, row, start, begin) + inside + _one_by_one(of, row, finish, end)


def _one_by_one(of: Pyramid, row: int, start: int, end: int) -> int:
    a, b = met(of, row, start, end)
    return int(of.dur[a:b].sum()) - _beyond(of, a, b, start, end) if end > start else 0


def _beyond(of: Pyramid, a: int, b: int, start: int, end: int) -> int:
    """Ticks by which the first and the last of some events reach out of the stretch."""
    if a >= b:
        return 0
    return max(start - int(of.start[a]), 0) + max(int(of.start[b - 1]) + int(of.dur[b - 1]) - end, 0)


def _level(of: Pyramid, start: int, end: int) -> Level | None:
    """The level with about BINS bins in the stretch; None where the finest has fewer."""
    wide = [level for level in of.levels if (end - start) >> level.shift >= BINS]
    return wide[-1] if wide else None


def _binned(level: Level, row: int, low: int, high: int) -> int:
    mine = slice(int(level.first[row]), int(level.first[row + 1]))
    a, b = np.searchsorted(level.bins[mine], [low, high])
    return int(level.busy[mine][a:b].sum())


def _long(of: Pyramid, shift: int, row: int, start: int, end: int) -> int:
    """What events that stand in a level as themselves cover."""
    long = next(one for one in reversed(of.longs) if one.shift <= shift)
    mine = long.events[int(long.first[row]) : int(long.first[row + 1])]
    begin = of.start[mine]
    some = mine[max(int(np.searchsorted(begin, start)) - 1, 0) : int(np.searchsorted(begin, end))]
    some = some[of.dur[some] >> shift > 0]
    inside = np.minimum(of.start[some] + of.dur[some], end) - np.maximum(of.start[some], start)
    return int(np.maximum(inside, 0).sum())


def _by_code(of: Pyramid, row: int, start: int, end: int) -> dict[int, int]:
    """Ticks of each code that a row holds from `start` to `end`."""
    first, last = met(of, row, start, end)
    sums = [0] * len(CODES)
    for a in range(first, last, CHUNK):
        b = min(a + CHUNK, last)
        dur, code = np.asarray(of.dur[a:b]), np.asarray(of.code[a:b])
        low = np.bincount(code, dur & ((1 << LOW) - 1), len(CODES))
        high = np.bincount(code, dur >> LOW, len(CODES))
        sums = [s + (int(h) << LOW) + int(rest) for s, h, rest in zip(sums, high, low, strict=True)]
    if last > first:
        sums[int(of.code[first])] -= max(start - int(of.start[first]), 0)
        sums[int(of.code[last - 1])] -= max(int(of.start[last - 1]) + int(of.dur[last - 1]) - end, 0)
    return {code: held for code, held in enumerate(sums) if held > 0}


def _titles(of: Timeline, row: int, start: int, end: int) -> dict[int, str]:
    """What a strip calls its accounts."""
    a, b = met(of.tiles, row, start, end)
    codes, first = np.unique(of.tiles.code[a:b], return_index=True)
    return {int(code): of.names[int(of.name[a + at])] for code, at in zip(codes, first, strict=True)}

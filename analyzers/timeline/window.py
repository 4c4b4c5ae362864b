"""What of a timeline a window shows: at most some marks for each pixel of each row, whatever the events are."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.pyramid import Ints, Level, Long, Pyramid

RAW_MOST = 60_000  # events that are drawn as they are; where a window holds more, the finest level is drawn


@dataclass(frozen=True)
class Marks:
    """What is drawn, in order of row and start. `row`: which of the rows that were asked for. `start`, `end`: in ticks.
    `share`: of the mark's width that is covered, in 255ths. `count`: events in it. `event`: the event that it is, or
    the longest of those in it. `shift`: bins of 2^shift ticks; None where all are events."""

    row: NDArray[np.int32]
    start: Ints
    end: Ints
    code: NDArray[np.uint8]
    share: NDArray[np.uint8]
    count: Ints
    event: Ints
    shift: int | None


def window(of: Pyramid, rows: Ints, start: int, end: int, pixels: int, ahead: Ints | None = None) -> Marks:
    """The marks of these rows from `start` to `end`, where `pixels` are as wide as that. `ahead`: of each row, by how
    many ticks its clock is ahead: its marks stand earlier by as much."""
    begins = [start + int(n) for n in ahead] if ahead is not None else [start] * len(rows)
    found = _shown(of, _Asked(rows, begins, end - start), pixels)
    return found if ahead is None else _earlier(found, ahead)


def _earlier(found: Marks, ahead: Ints) -> Marks:
    by = ahead[found.row]
    return replace(found, start=found.start - by, end=found.end - by)


@dataclass(frozen=True)
class _Asked:
    """A window: of each row where it begins by that row's own clock, and how many ticks it is wide."""

    rows: Ints
    begins: list[int]
    span: int

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return ((int(row), a, a + self.span) for row, a in zip(self.rows, self.begins, strict=True))


def _shown(of: Pyramid, asked: _Asked, pixels: int) -> Marks:
    wide = max(asked.span // max(pixels, 1), 1)
    fitting = sum(1 << level.shift <= wide for level in of.levels)
    if fitting:
        found = _found(of, fitting - 1, asked)
        finest = wide.bit_length() - 1
        if (
            found.level.shift < finest
            and fitting < len(of.levels)
            and found.marks > _most(len(asked.rows), asked.span, finest)
        ):
            found = _found(of, fitting, asked)  # one between the two was left out, and here it would count
        return _binned(of, found)
    shown = [_events(of, *one) for one in asked]
    if of.levels and sum(b - a for a, b in shown) > RAW_MOST:
        return _binned(of, _found(of, 0, asked))
    return _as_they_are(of, shown)


def _most(rows: int, span: int, shift: int) -> int:
    """Marks that bins of this size could give: in each of them its short events, and a long one that begins in it."""
    return 2 * rows * ((span >> shift) + 2)


def _at(column: NDArray[Any], low: int, high: int, value: int, side: Literal["left", "right"]) -> int:
    """Where a value stands in a stretch of a column that is in order. It is looked up in the column's own type: of
    another the whole stretch would be read and copied."""
    info = np.iinfo(column.dtype)
    if value < info.min or value > info.max:
        return low if value < info.min else high
    return low + int(np.searchsorted(column[low:high], column.dtype.type(value), side=side))


def _events(of: Pyramid, row: int, start: int, end: int) -> tuple[int, int]:
    """From which to which event of a row the window holds something."""
    low, high = int(of.first[row]), int(of.first[row + 1])
    begun = _at(of.start, low, high, end, "left")
    at = _at(of.start, low, high, start, "right") - 1
    if at >= low and of.dur[at] == 0 and of.start[at] == start:  # several of no length at one instant
        at = _at(of.start, low, high, start, "left")
    if at >= low and of.start[at] + of.dur[at] <= start and of.start[at] < start:
        at += 1
    return max(at, low), max(begun, max(at, low))


def _as_they_are(of: Pyramid, found: list[tuple[int, int]]) -> Marks:
    event = _ranges(found)
    row = np.repeat(np.arange(len(found), dtype=np.int32), [b - a for a, b in found])
    begin = of.start[event]
    return Marks(
        row,
        begin,
        begin + of.dur[event],
        of.code[event],
        np.full(len(event), 255, np.uint8),
        np.ones(len(event), np.int64),
        event,
        None,
    )


def _ranges(found: list[tuple[int, int]]) -> Ints:
    return np.concatenate([np.arange(a, b) for a, b in found]) if found else np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Found:
    """Of each row from which to which bin of a level the window holds, and its long events."""

    level: Level
    bins: list[tuple[int, int]]
    events: list[Ints]

    @property
    def marks(self) -> int:
        return sum(b - a for a, b in self.bins) + sum(map(len, self.events))


def _found(of: Pyramid, number: int, asked: _Asked) -> _Found:
    level = of.levels[number]
    long = next(one for one in reversed(of.longs) if one.shift <= level.shift)
    bins: list[tuple[int, int]] = []
    for row, start, end in asked:
        low, high = int(level.first[row]), int(level.first[row + 1])
        a, b = (_at(level.bins, low, high, at, "left") for at in (start >> level.shift, -(-end >> level.shift)))
        bins.append((a, b))
    return _Found(level, bins, [_long_events(of, long, level.shift, *one) for one in asked])


def _long_events(of: Pyramid, long: Long, shift: int, row: int, start: int, end: int) -> Ints:
    """By number, as they stand in the row: their times are not read to find them."""
    low, high = int(of.first[row]), int(of.first[row + 1])
    mine = int(long.first[row]), int(long.first[row + 1])
    begun, ended = _at(of.start, low, high, start, "right"), _at(of.start, low, high, end, "left")
    a = max(_at(long.events, *mine, begun, "left") - 1, mine[0])
    some = long.events[a : _at(long.events, *mine, ended, "left")].astype(np.int64)
    return some[(of.dur[some] >> shift > 0) & (of.start[some] + of.dur[some] > start)]


def _binned(of: Pyramid, found: _Found) -> Marks:
    """Bins and long events, in order of row and begin."""
    level, shift = found.level, found.level.shift
    bins, events = _ranges(found.bins), np.concatenate([np.zeros(0, np.int64), *found.events])
    every = np.arange(len(found.bins), dtype=np.int32)
    row = np.concatenate(
        [np.repeat(every, [b - a for a, b in found.bins]), np.repeat(every, [len(some) for some in found.events])]
    )
    begin = np.concatenate([level.bins[bins].astype(np.int64) << shift, of.start[events]])
    width = np.concatenate([np.full(len(bins), 1 << shift), of.dur[events]])
    order = np.lexsort((begin, row))
    columns: list[NDArray[Any]] = [
        row,
        begin,
        begin + width,
        np.concatenate([level.code[bins], of.code[events]]),
        np.concatenate([_shares(level.busy[bins], shift), np.full(len(events), 255)]).astype(np.uint8),
        np.concatenate([level.count[bins].astype(np.int64), np.ones(len(events), np.int64)]),
        np.concatenate([level.longest[bins].astype(np.int64), events]),
    ]
    row, begin, end, code, share, count, event = (column[order] for column in columns)
    return Marks(row, begin, end, code, share, count, event, shift)


def _shares(busy: Ints, shift: int) -> Ints:
    """At least 1 where a bin holds anything: what is short is not nothing."""
    return np.maximum(busy.astype(np.float64) * (255 / (1 << shift)), 1).astype(np.int64)

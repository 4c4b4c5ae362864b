"""What of a timeline a window shows: at most some marks for each pixel of each row, whatever the events are."""

from dataclasses import dataclass
from typing import Any

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


def window(of: Pyramid, rows: Ints, start: int, end: int, pixels: int) -> Marks:
    """The marks of these rows from `start` to `end`, where `pixels` are as wide as that."""
    wide = max((end - start) // max(pixels, 1), 1)
    fitting = [level for level in of.levels if 1 << level.shift <= wide]
    if fitting:
        return _binned(of, fitting[-1], rows, start, end)
    found = [_events(of, row, start, end) for row in rows]
    if of.levels and sum(b - a for a, b in found) > RAW_MOST:
        return _binned(of, of.levels[0], rows, start, end)
    return _as_they_are(of, found)


def _events(of: Pyramid, row: int, start: int, end: int) -> tuple[int, int]:
    """From which to which event of a row the window holds something."""
    low, high = int(of.first[row]), int(of.first[row + 1])
    begun = low + int(np.searchsorted(of.start[low:high], end, side="left"))
    at = low + int(np.searchsorted(of.start[low:high], start, side="right")) - 1
    while at > low and of.dur[at] == 0 and of.start[at] == start:  # several of no length at one instant
        at -= 1
    if at >= low and of.start[at] + of.dur[at] <= start and of.start[at] < start:
        at += 1
    return max(at, low), max(begun, max(at, low))


def _as_they_are(of: Pyramid, found: list[tuple[int, int]]) -> Marks:
    event = np.concatenate([np.arange(a, b) for a, b in found]) if found else np.zeros(0, np.int64)
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


def _binned(of: Pyramid, level: Level, rows: Ints, start: int, end: int) -> Marks:
    long = next(one for one in reversed(of.longs) if one.shift <= level.shift)
    parts: list[tuple[NDArray[Any], ...]] = []
    for number, row in enumerate(rows):
        events = _long_events(of, long, level.shift, row, start, end)
        low, high = int(level.first[row]), int(level.first[row + 1])
        a, b = low + np.searchsorted(level.bins[low:high], [start >> level.shift, -(-end >> level.shift)])
        bins = np.arange(a, b)
        begin = np.concatenate([level.bins[bins] << level.shift, of.start[events]])
        width = np.concatenate([np.full(len(bins), 1 << level.shift), of.dur[events]])
        order = np.argsort(begin, kind="stable")
        columns: tuple[NDArray[Any], ...] = (
            begin,
            begin + width,
            np.concatenate([level.code[bins], of.code[events]]),
            np.concatenate([_shares(level.busy[bins], level.shift), np.full(len(events), 255)]),
            np.concatenate([level.count[bins], np.ones(len(events), np.int64)]),
            np.concatenate([level.longest[bins], events]),
        )
        parts.append((np.full(len(order), number), *(c[order] for c in columns)))
    whole = [np.concatenate(c) for c in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 7
    row_, begin, finish, code, share, count, event = whole
    return Marks(
        row_.astype(np.int32),
        begin,
        finish,
        code.astype(np.uint8),
        share.astype(np.uint8),
        count,
        event,
        level.shift,
    )


def _long_events(of: Pyramid, long: Long, shift: int, row: int, start: int, end: int) -> Ints:
    mine = long.events[int(long.first[row]) : int(long.first[row + 1])]
    a = max(int(np.searchsorted(of.start[mine], start, side="right")) - 1, 0)
    b = int(np.searchsorted(of.start[mine], end, side="left"))
    some = mine[a:b]
    return some[(of.dur[some] >> shift > 0) & (of.start[some] + of.dur[some] > start)]


def _shares(busy: Ints, shift: int) -> Ints:
    """At least 1 where a bin holds anything: what is short is not nothing."""
    return np.maximum(busy.astype(np.float64) * (255 / (1 << shift)), 1).astype(np.int64)

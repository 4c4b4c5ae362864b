"""Events as levels of bins, so that any stretch of time is drawn from as much as a screen shows of it.

An event lies in a row of its lane in which no other meets it (`rows`); events are kept in order of row and start. Level
k has bins of w = 2^k ticks. An event as long as a bin or longer stands in a level as itself; the shorter ones, each of
which meets at most two bins, are summed bin by bin:

    busy     ticks of a bin that its events cover       count    events that begin in it
    code     what most of that time is of               longest  the longest of its events

so that of every level   sum of busy + sum of durations of those that stand as themselves = sum of all durations.

The finest level is the first of which bins and long events together are at most half as many as the events are; below
it the events themselves are drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.kernels import CODES, fill_bins, rows_of

Ints = NDArray[np.int64]
LEAST_EVENTS = 20_000  # fewer are drawn as they are at any width
EVERY = 4  # levels between two that list their long events


@dataclass(frozen=True)
class Level:
    """Bins of 2^shift ticks, in order of row and bin. `first`: of each row, and one more, where its bins begin."""

    shift: int
    bins: Ints
    busy: Ints
    count: Ints
    code: NDArray[np.uint8]
    longest: Ints
    first: Ints


@dataclass(frozen=True)
class Long:
    """Events of at least 2^shift ticks, by number. `first`: of each row, and one more, where its events begin."""

    shift: int
    events: Ints
    first: Ints


@dataclass(frozen=True)
class Pyramid:
    """Events in order of row and start, in ticks since the timeline's origin. `first`: of each row, and one more, where
    its events begin; `order`: which of the events that were given each of them is."""

    start: Ints
    dur: Ints
    code: NDArray[np.uint8]
    first: Ints
    order: Ints
    levels: tuple[Level, ...]
    longs: tuple[Long, ...]

    @property
    def rows(self) -> int:
        return len(self.first) - 1

    def sums(self) -> Iterator[tuple[int, int, int]]:
        """(shift, events, busy ticks) that each level tells of: the same of all."""
        for level in self.levels:
            long = self.dur >> level.shift > 0
            yield (
                level.shift,
                int(level.count.sum()) + int(long.sum()),
                int(level.busy.sum()) + int(self.dur[long].sum()),
            )


def rows(lane: Ints, start: Ints, dur: Ints) -> tuple[Ints, Ints]:
    """(order of the events by lane and start, the row of each of them within its lane)."""
    order = np.lexsort((-dur, start, lane))
    row = np.empty(len(order), dtype=np.int64)
    rows_of(lane[order], start[order], start[order] + dur[order], row)
    return order, row


def pyramid(row: Ints, start: Ints, dur: Ints, code: NDArray[np.uint8], count: int) -> Pyramid:
    """Of events, none of a row over another; `row`: from 0 to `count` - 1. `start`: at least 0, `dur` too."""
    if len(code) and int(code.max()) >= CODES:
        raise ValueError(f"more than {CODES} accounts")
    order = np.lexsort((start, row))
    row, start, dur, code = row[order], start[order], dur[order], code[order]
    levels = tuple(_levels(row, start, dur, code, count))
    marks = [levels[k].shift for k in range(0, len(levels), EVERY)]
    longs = tuple(_long(shift, row, dur, count) for shift in marks)
    return Pyramid(start, dur, code, _first(row, count), order, levels, longs)


def _levels(row: Ints, start: Ints, dur: Ints, code: NDArray[np.uint8], count: int) -> Iterator[Level]:
    if len(start) < LEAST_EVENTS:
        return
    last = int((start + dur).max())
    none = np.zeros(0, np.int64)
    begun = False
    for shift in range(int(np.median(dur)).bit_length(), last.bit_length() + 1):  # finer ones hold most as themselves
        size = int(fill_bins(row, start, dur, code, shift, none, none, none, none, none.astype(np.uint8), none))
        if not begun and size + int((dur >> shift > 0).sum()) > len(start) // 2:
            continue
        begun = True
        yield _level(row, start, dur, code, shift, size, count)


def _level(row: Ints, start: Ints, dur: Ints, code: NDArray[np.uint8], shift: int, size: int, count: int) -> Level:
    into, bins, busy, counts, longest = (np.empty(max(size, 1), dtype=np.int64) for _ in range(5))
    top = np.empty(max(size, 1), dtype=np.uint8)
    fill_bins(row, start, dur, code, shift, into, bins, busy, counts, top, longest)
    return Level(shift, bins[:size], busy[:size], counts[:size], top[:size], longest[:size], _first(into[:size], count))


def _long(shift: int, row: Ints, dur: Ints, count: int) -> Long:
    events = np.flatnonzero(dur >> shift > 0)
    return Long(shift, events, _first(row[events], count))


def _first(row: Ints, count: int) -> Ints:
    """Where each row begins, of rows in order."""
    return np.searchsorted(row, np.arange(count + 1)).astype(np.int64)

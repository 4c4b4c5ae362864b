"""Events as levels of bins, so that any stretch of time is drawn from as much as a screen shows of it.

An event lies in a row of its lane in which no other meets it (`rows`); events are kept in order of row and start. Level
k has bins of w = 2^k ticks. An event as long as a bin or longer stands in a level as itself; the shorter ones, each of
which meets at most two bins, are summed bin by bin:

    busy     ticks of a bin that its events cover       count    events that begin in it
    code     what most of that time is of               longest  the longest of its events
    kind     the same by kinds (`kinds.py`)

so that of every level   sum of busy + sum of durations of those that stand as themselves = sum of all durations.

The finest level is the first of which bins and long events together are at most half as many as the events are, one of
each row counted in neither; below it the events themselves are drawn. One that has more than two thirds of the marks of
the level before is left out, never two in a row: `window.py` draws from its neighbours.

Columns may be memory maps: whoever reads a stretch of them touches no more than that. Whole numbers may be of 32 bits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline.columns import Columns, InMemory, Readable, fitting
from analyzers.timeline.kernels import CODES, count_bins, fill_bins, lengths_of, rows_of
from analyzers.timeline.progress import SUMMING, tell

Ints = NDArray[np.int64]
LEAST_EVENTS = 20_000  # fewer are drawn as they are at any width
EVERY = 4  # shifts at least between two levels that list their long events
WORTH = 2 / 3  # a level with more than this share of the marks of the one before is left out
CHUNK = 1 << 20  # events that are worked on at once, or one row
BITS = 64
HALF = 26  # bits of a number of ticks that are summed apart
BINS, LONG = ("bins", "busy", "count", "code", "kind", "longest", "first"), ("events", "first")
EVENTS = ("start", "dur", "code", "kind")


@dataclass(frozen=True)
class Level:
    """Bins of 2^shift ticks, in order of row and bin. `first`: of each row, and one more, where its bins begin."""

    shift: int
    bins: Ints
    busy: Ints
    count: Ints
    code: NDArray[np.uint8]
    kind: NDArray[np.uint8]
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
    its events begin; `told`: (shift, events, busy ticks) of each level, summed as it was made."""

    start: Ints
    dur: Ints
    code: NDArray[np.uint8]
    kind: NDArray[np.uint8]
    first: Ints
    levels: tuple[Level, ...]
    longs: tuple[Long, ...]
    told: tuple[tuple[int, int, int], ...]

    @property
    def rows(self) -> int:
        return len(self.first) - 1

    def by_kind(self) -> "Pyramid":
        """The same where `code` tells of kinds."""
        return replace(self, code=self.kind, levels=tuple(replace(one, code=one.kind) for one in self.levels))

    def sums(self) -> Iterator[tuple[int, int, int]]:
        """(shift, events, busy ticks) that each level tells of: the same of all."""
        return iter(self.told)


@dataclass(frozen=True)
class Made:
    """Levels whose columns are written: `levels`, `longs`: their shifts; `told`: see `Pyramid`."""

    levels: tuple[int, ...] = ()
    longs: tuple[int, ...] = ()
    told: tuple[tuple[int, int, int], ...] = ()


def rows(lane: Ints, start: Ints, dur: Ints) -> tuple[Ints, Ints]:
    """(order of the events by lane and start, the row of each of them within its lane)."""
    order = np.lexsort((-dur, start, lane))
    row = np.empty(len(order), dtype=np.int64)
    rows_of(lane[order], start[order], start[order] + dur[order], row)
    return order, row


def whole(ticks: Ints) -> int:
    """Their sum, which may have more bits than each of them: of picoseconds 64 hold 106 days."""
    return (int((ticks >> HALF).sum()) << HALF) + int((ticks & ((1 << HALF) - 1)).sum())


def wholes(cell: Ints, ticks: Ints, count: int) -> list[int]:
    """The sum of each of `count` cells."""
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, cell, ticks >> HALF)
    np.add.at(low, cell, ticks & ((1 << HALF) - 1))
    return [(h << HALF) + n for h, n in zip(high.tolist(), low.tolist(), strict=True)]


def union(cell: Ints, start: Ints, end: Ints, count: int) -> Ints:
    """Ticks that at least one event covers, of each of `count` cells."""
    begin, order = start[np.lexsort((start, cell))], np.lexsort((end, cell))
    of, over = cell[order], end[order]
    last = np.diff(of, append=-1) != 0
    upto = np.where(last, over, np.minimum(over, np.append(begin[1:], 0)))  # as many have ended as begun: a gap follows
    ticks = np.zeros(count, np.int64)
    np.add.at(ticks, of, upto - begin)
    return ticks


def pyramid(
    row: Ints, start: Ints, dur: Ints, code: NDArray[np.uint8], count: int, kind: NDArray[np.uint8] | None = None
) -> Pyramid:
    """Of events, none of a row over another; `row`: from 0 to `count` - 1. `start`: at least 0, `dur` too. `kind`: None
    where no event is an operation."""
    if len(code) and int(code.max()) >= CODES:
        raise ValueError(f"more than {CODES} accounts")
    order = np.lexsort((start, row))
    columns = InMemory()
    for name, values in (("start", start), ("dur", dur), ("code", code), ("kind", code if kind is None else kind)):
        columns.add(name, values[order])
    columns.add("first", starts_of(row[order], 0, count + 1))
    made = levels(columns, columns.whole("first"))
    return assembled(columns.whole, made)


def assembled(column: Callable[[str], NDArray[Any]], made: Made) -> Pyramid:
    """`column`: one that was written, by its name."""
    found = [Level(shift, *(column(f"level{shift}-{name}") for name in BINS)) for shift in made.levels]
    longs = [Long(shift, *(column(f"long{shift}-{name}") for name in LONG)) for shift in made.longs]
    start, dur, code, kind = (column(name) for name in EVENTS)
    return Pyramid(start, dur, code, kind, column("first"), tuple(found), tuple(longs), made.told)


def starts_of(row: Ints, low: int, high: int) -> Ints:
    """Where the rows from `low` to below `high` begin, of rows in order."""
    return np.searchsorted(row, np.arange(low, high)).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What rows would be as levels. `sizes`: of each piece of them (`_pieces`), how many bins of each width; `lengths`:
    how many events have each number of bits; `last`: the last end; `rows`: those that have events."""

    sizes: Ints
    lengths: Ints
    last: int
    rows: int
    events: int


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which levels are made of a timeline, `shifts` and `longs` as of `Made`, and the most that their numbers are:
    `last` end of its events, and how many `events` they are."""

    shifts: tuple[int, ...]
    longs: tuple[int, ...]
    last: int
    events: int


def levels(columns: Columns, first: Ints) -> Made:
    """Sum the events, which are written, into levels beside them. `first`: where the events of each row begin."""
    if int(first[-1]) < LEAST_EVENTS:
        return Made()
    found = counted(columns, first)
    which = chosen([found])
    return made_of(which, [filled(columns, first, found, which, columns)])


def counted(columns: Readable, first: Ints) -> Counted:
    """Of the events that are written, or of some rows of them."""
    pieces = list(_pieces(first))
    sizes, lengths, last = np.zeros((len(pieces), BITS), np.int64), np.zeros(BITS + 1, np.int64), 0
    for n, piece in enumerate(pieces):
        tell(SUMMING, int(first[piece[0]]) // 2, int(first[-1]))
        row, start, dur = _events(columns, first, piece)
        lengths_of(dur, lengths)
        count_bins(row, start, dur, sizes[n])
        last = max(last, int((start + dur).max(initial=0)))
    rows = int((np.diff(first) > 0).sum())
    return Counted(sizes=sizes, lengths=lengths, last=last, rows=rows, events=int(first[-1]))


def chosen(parts: Sequence[Counted]) -> Chosen:
    """The levels of all of these together."""
    events, rows = sum(part.events for part in parts), sum(part.rows for part in parts)
    last = max(part.last for part in parts)
    long = events - np.cumsum(sum(part.lengths for part in parts))  # at [s]: events of at least 2^s ticks
    bins = sum(part.sizes.sum(axis=0) for part in parts)
    shifts = _worth(bins + long[:BITS] - rows, events - rows, last.bit_length())  # each row keeps a mark at any width
    longs: list[int] = []
    for shift in shifts:
        if not longs or shift >= longs[-1] + EVERY:
            longs.append(shift)
    return Chosen(shifts=tuple(shifts), longs=tuple(longs), last=last, events=events)


Sums = list[tuple[int, int]]
"""Of each level (events, busy ticks)."""


def made_of(which: Chosen, sums: Sequence[Sums]) -> Made:
    """Of the sums of all rows, however they were parted."""
    every = ([sum(of) for of in zip(*one, strict=True)] for one in zip(*sums, strict=True))
    told = tuple((s, events, busy) for s, (events, busy) in zip(which.shifts, every, strict=True))
    return Made(which.shifts, which.longs, told)


def _pieces(first: Ints) -> Iterator[tuple[int, int]]:
    """From which to which row are worked on together."""
    row, count = 0, len(first) - 1
    while row < count:
        upto = int(np.searchsorted(first, first[row] + CHUNK, side="right")) - 1
        upto = max(upto, row + 1)
        yield row, upto
        row = upto


def _events(columns: Readable, first: Ints, piece: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """(row, start, dur) of the events of some rows."""
    a, b = piece
    span = [(int(first[a]), int(first[b]))]
    row = np.repeat(np.arange(a, b), np.diff(first[a : b + 1]))
    return row, columns.take("start", span), columns.take("dur", span)


def _worth(marks: Ints, events: int, highest: int) -> list[int]:
    """Which levels are made. `marks`: bins and long events of each, and `events`, beyond one of each row."""
    found: list[int] = []
    for shift in range(highest + 1):
        if not found and marks[shift] > events // 2:
            continue
        if found and found[-1] == shift - 1 and marks[shift] > WORTH * marks[shift - 1]:
            continue
        found.append(shift)
    return found


def filled(columns: Readable, first: Ints, found: Counted, which: Chosen, into: Columns, begun: int = 0) -> Sums:
    """Write the levels of some rows; their sums. `begun`: how many events lie in the rows before them."""
    number = fitting(0, which.events)
    for name in (*(f"level{s}-first" for s in which.shifts), *(f"long{s}-first" for s in which.longs)):
        into.add(name, np.zeros(1, number))
    sums = {shift: (0, 0) for shift in which.shifts}
    for n, piece in enumerate(_pieces(first)):
        row, start, dur = _events(columns, first, piece)
        at = int(first[piece[0]])
        code, kind = (columns.take(name, [(at, int(first[piece[1]]))]) for name in ("code", "kind"))
        tell(SUMMING, (int(first[-1]) + at) // 2, int(first[-1]))
        for shift in which.shifts:
            long = np.flatnonzero(dur >> shift)
            level = _level((row, start, dur), code, kind, shift, int(found.sizes[n, shift]))
            kinds = fitting(0, which.last >> shift), fitting(0, 1 << shift), number
            _write(into, f"level{shift}", level, begun + at, piece, kinds)
            events, busy = int(level["count"].sum()) + len(long), whole(level["busy"]) + whole(dur[long])
            sums[shift] = sums[shift][0] + events, sums[shift][1] + busy
            if shift in which.longs:
                _write_long(into, f"long{shift}", row[long], long + begun + at, piece, number)
    return list(sums.values())


def _level(
    events: tuple[Ints, Ints, Ints], code: NDArray[np.uint8], kind: NDArray[np.uint8], shift: int, size: int
) -> dict[str, NDArray[Any]]:
    into, bins, busy, counts, longest = (np.empty(max(size, 1), dtype=np.int64) for _ in range(5))
    top, most = (np.empty(max(size, 1), dtype=np.uint8) for _ in range(2))
    fill_bins(*events, code, kind, shift, into, bins, busy, counts, top, most, longest)
    found = {"into": into, "bins": bins, "busy": busy, "count": counts, "code": top, "kind": most, "longest": longest}
    return {name: values[:size] for name, values in found.items()}


def _write(
    columns: Columns,
    name: str,
    level: dict[str, NDArray[Any]],
    at: int,
    piece: tuple[int, int],
    kinds: Sequence[np.dtype[Any]],
) -> None:
    bins, busy, number = kinds
    begun = columns.length(f"{name}-bins")
    columns.add(f"{name}-bins", level["bins"].astype(bins))
    columns.add(f"{name}-busy", level["busy"].astype(busy))
    columns.add(f"{name}-count", level["count"].astype(number))
    columns.add(f"{name}-code", level["code"])
    columns.add(f"{name}-kind", level["kind"])
    columns.add(f"{name}-longest", (level["longest"] + at).astype(number))
    columns.add(f"{name}-first", (begun + starts_of(level["into"], piece[0] + 1, piece[1] + 1)).astype(number))


def _write_long(
    columns: Columns, name: str, row: Ints, events: Ints, piece: tuple[int, int], number: np.dtype[Any]
) -> None:
    begun = columns.length(f"{name}-events")
    columns.add(f"{name}-events", events.astype(number))
    columns.add(f"{name}-first", (begun + starts_of(row, piece[0] + 1, piece[1] + 1)).astype(number))

"""Which events of a timeline are written: those of some rows that a window meets, each of them whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.timeline import Row, Timeline
from analyzers.timeline.pyramid import Ints
from app.questions.timeline.words import title
from app.timeline.perfetto.options import END, FARTHEST, FROM, LANES, MOST, ROWS, START, TO
from app.timeline.ranges import ranges_of
from app.words import short
from errors import QuestionError
from errors.nearest import did_you_mean

BINS = 4096  # of a window that holds too much, to say how much of it would do
AT_ONCE = 1 << 20  # events that are looked at together
PS_PER_S = 1e12


@dataclass(frozen=True)
class Chosen:
    """`rows`: in order; `first`, `last`: of each the first event that is written, and the one after the last; `start`,
    `end`: the window in ticks, its end not in it."""

    rows: Ints
    first: Ints
    last: Ints
    start: int
    end: int

    @property
    def events(self) -> int:
        return int((self.last - self.first).sum())


def ticks(of: Timeline, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the command line asked for in seconds, as the API asks for it."""
    per_s = PS_PER_S / of.tick_ps
    start, end = given.get(FROM.name), given.get(TO.name)
    found = {name: value for name, value in given.items() if name not in (FROM.name, TO.name)}
    found[START.name] = None if start is None else max(min(round(start * per_s), FARTHEST), -FARTHEST)
    found[END.name] = None if end is None else max(min(round(end * per_s), FARTHEST), -FARTHEST)
    return found


def choose(of: Timeline, given: Mapping[str, Any]) -> Chosen:
    """`given`: by the names of options, in ticks. Raises QuestionError for a window without width, rows or lanes that
    are not there, and more events than were allowed."""
    start, end = given.get(START.name), given.get(END.name)
    start, end = 0 if start is None else start, of.span + 1 if end is None else end
    if end <= start:
        raise QuestionError(
            f"a window from {start:,} to {end:,} ticks",
            expected="an end after the start",
            advice=f"The timeline reaches from 0 to {of.span:,} ticks of {of.tick_ps:,} ps.",
        )
    found = _met(of, _rows(of, given.get(ROWS.name), given.get(LANES.name) or ()), start, end)
    most = int(given.get(MOST.name) or MOST.default)
    if found.events > most:
        raise _too_many(of, found, most)
    return found


def _met(of: Timeline, rows: Ints, start: int, end: int) -> Chosen:
    tiles = of.tiles
    first, last = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for n, row in enumerate(rows):
        low, high = int(tiles.first[row]), int(tiles.first[row + 1])
        at, beyond = low + np.searchsorted(tiles.start[low:high], [start, end])
        if at > low and tiles.start[at - 1] + tiles.dur[at - 1] > start:  # the one that reaches into the window
            at -= 1
        first[n], last[n] = at, max(at, beyond)
    return Chosen(rows, first, last, start, end)


def _too_many(of: Timeline, found: Chosen, most: int) -> QuestionError:
    end = _fitting(of, found, most)
    seconds = of.tick_ps / PS_PER_S
    enough = f"To {end * seconds:.15g} s ({END.name}={end}) there are no more than that. " if end is not None else ""
    return QuestionError(
        f"{found.events:,} events in this window and these rows",
        expected=f"at most {most:,}",
        advice=f"{enough}Choose a shorter window, fewer rows or lanes, or {MOST.name}={found.events}.",
    )


def _fitting(of: Timeline, found: Chosen, most: int) -> int | None:
    """An end of the window before which some events begin, and no more than so many; None where no stretch that is
    looked at is short enough."""
    start = max(found.start, 0)
    wide = max(-(-(min(found.end, of.span + 1) - start) // BINS), 1)
    counts = np.zeros(BINS, np.int64)
    for a, b in zip(found.first, found.last, strict=True):
        for at in range(int(a), int(b), AT_ONCE):
            stretch = np.maximum(of.tiles.start[at : min(at + AT_ONCE, int(b))] - start, 0) // wide
            counts += np.bincount(np.minimum(stretch, BINS - 1), minlength=BINS)
    begun = np.cumsum(counts)
    fit = int(np.searchsorted(begun, most, side="right"))
    return start + fit * wide if fit and begun[fit - 1] else None


def _rows(of: Timeline, rows: str | None, lanes: Sequence[str]) -> Ints:
    if rows is None and not lanes:
        return np.arange(of.tiles.rows, dtype=np.int64)
    chosen = np.zeros(of.tiles.rows, bool)
    for low, high in () if rows is None else ranges_of(rows, of.tiles.rows):
        chosen[low : high + 1] = True
    for text in lanes:
        for lane in _lanes(of, text):
            chosen[lane.first_row : lane.first_row + lane.rows] = True
    return np.flatnonzero(chosen)


def _lanes(of: Timeline, text: str) -> list[Row]:
    """Those that are called so; where none is, those whose title holds it."""
    wanted = text.strip().casefold()
    called = [lane for lane in of.lanes if wanted in {name.casefold() for name in _names(lane)}]
    found = called or [
        lane for lane in of.lanes if wanted and wanted in "\n".join((*_names(lane)[1:], lane.lane.line)).casefold()
    ]
    if not found:
        known = places(of)
        some = ", ".join(short(name, 40) for name in known[:8])
        raise QuestionError(
            f"no lane {text[:60]!r}",
            expected=f"part of a lane's title, or such as {some}",
            advice=did_you_mean(text[:60], known),
        )
    return found


def places(of: Timeline) -> list[str]:
    """What lanes may be called by: groups, hosts and devices."""
    names = [_names(lane)[:-1] for lane in of.lanes]
    return list(dict.fromkeys(name for part in zip(*names, strict=True) for name in part if name))


def _names(row: Row) -> tuple[str, ...]:
    lane = row.lane
    place = lane.host if lane.device is None else f"{lane.host}/{lane.device}"
    return lane.group, lane.host, place, title(lane)

"""Streams of steps: what one host wrote in one format into one input, in the order in which the job took them.

Nothing is trusted to be in order. Rows of a stream stand as they were written, or by their times of day, whichever
makes the step numbers drop less often: an export that begins with its newest line is turned round, and a clock that
went back is not read as steps taken again. What one stream tells twice (two hosts that share a log without a prefix)
is counted once.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyzers.time.source_clocks import apart
from analyzers.time.whole_seconds import laid_end_to_end, whole_seconds

NS_PER_S = 1_000_000_000
UNTIMED = np.iinfo(np.int64).min
SAME_STEP = 0.5  # a step marked again within this share of a usual step is the same one, told twice
BACK_NS = 2 * NS_PER_S  # times of day are often printed to the second: smaller steps back are rounding
FEW_BACK = 0.01  # a clock goes back now and then; in a larger share of rows, two clocks write one log
ANOTHER_CLOCK_NS, MOST_CLOCKS = 900 * NS_PER_S, 16  # how far back, and how often, a file shows that it holds several
FINE, LEAST_ROWS = 4, 20  # rows of one host in a row, at most, where several hosts share a log; rows that show it


@dataclass(frozen=True)
class Stream:
    """Columns of equal length, in the order of the job: `row` (position in the table), `place` (in the
    input, where known), `step`, `start_ns` and `end_ns`
    (UNTIMED where no time of day is known), `fresh` (its input says that a new attempt begins here) and `announced`
    (the same where the step number did not drop: nothing but the input's word tells of it).

    `usual_ns`: the median step.
    """

    source: str
    host: str
    format: str
    row: np.ndarray
    place: np.ndarray
    step: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    fresh: np.ndarray
    announced: np.ndarray
    usual_ns: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def timed(self) -> bool:
        return bool(len(self)) and bool((self.start_ns != UNTIMED).all())

    @property
    def name(self) -> str:
        return f"{self.host} in {self.source}" if self.host and self.source else self.host or self.source

    def at(self, chosen: np.ndarray) -> "Stream":
        """Those rows, in that order."""
        columns = ("row", "place", "step", "start_ns", "end_ns", "fresh", "announced")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    def moved(self, ns: int) -> "Stream":
        """The same by a clock that shows `ns` more."""
        return replace(self, start_ns=self.start_ns + ns, end_ns=self.end_ns + ns) if ns else self


def natural_key(name: str) -> list:
    """Sorts `attempt_2` before `attempt_10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def streams(
    rows: pd.DataFrame, again: Counter | None = None, starts: np.ndarray | None = None
) -> tuple[list[Stream], list[str]]:
    """The streams among rows of `steps`, in natural order of their names, and what had to be put right in sentences.

    Rows without a duration are marks: steps of which only the start is told. `again` counts, by stream, the rows that
    tell a step once more. `starts`: of the job, after which a step is told anew.
    """
    code, keys = _keys(rows)
    told = _Told.of(rows)
    order = np.argsort(code, kind="stable") if len(keys) > 1 else np.arange(len(rows))
    bounds = np.searchsorted(code[order], np.arange(len(keys) + 1))
    found, notes = [], []
    for k in sorted(range(len(keys)), key=lambda k: [natural_key(part) for part in (keys[k][1], keys[k][2])]):
        for mine in _by_clock(told, order[bounds[k] : bounds[k + 1]]):
            one, doubled, said = _one(told, mine, keys[k], starts)
            found.append(one)
            notes += said
            if again is not None:
                again[one.name] += doubled
    return found, notes


def _keys(rows: pd.DataFrame) -> tuple[np.ndarray, list[tuple[str, str, str]]]:
    """For each row the number of its stream, and the format, source and host of each; "" where one is not told."""
    code, names = np.zeros(len(rows), dtype=np.int64), [()]
    for name in ("format", "source", "host"):
        column = rows[name].astype("category").cat
        part = column.codes.to_numpy(dtype=np.int64)
        words = [*(str(w) for w in column.categories), ""]
        code, there = pd.factorize(code * len(words) + np.where(part < 0, len(words) - 1, part))
        names = [(*names[k // len(words)], words[k % len(words)]) for k in there.tolist()]
    return code, names


class _Told(NamedTuple):
    """What rows of `steps` say, each column taken out once for all streams, of which there may be ten thousand."""

    step: np.ndarray  # -1: not told
    start: np.ndarray  # UNTIMED: not told
    took: np.ndarray  # -1: not told
    place: np.ndarray
    attempt: np.ndarray
    logged: np.ndarray  # UNTIMED: not told
    numbered: np.ndarray
    lasting: np.ndarray
    placed: np.ndarray

    @classmethod
    def of(cls, rows: pd.DataFrame) -> "_Told":
        def told(name: str, unknown: int) -> np.ndarray:
            return rows[name].to_numpy(dtype=np.int64, na_value=unknown)

        return cls(
            step=told("step", -1),
            start=told("start_ns", UNTIMED),
            took=told("dur_ns", -1),
            place=told("order", -1),
            attempt=told("attempt", 0),
            logged=told("logged_ns", UNTIMED),
            numbered=rows["step"].notna().to_numpy(),
            lasting=rows["dur_ns"].notna().to_numpy(),
            placed=rows["order"].notna().to_numpy(),
        )

    def at(self, mine: np.ndarray) -> "_Told":
        return _Told(*(column[mine] for column in self))


def _by_clock(told: _Told, mine: np.ndarray) -> list[np.ndarray]:
    """The rows of each host where one file holds the logs of several, one behind the other and by other clocks: where
    the step number and the clock both go back, and what follows is what went before by a clock that is off by half
    hours. No restart goes back in time."""
    part = told.at(mine)
    if not (part.placed.all() and (part.start != UNTIMED).all() and part.numbered.all()):
        return [mine]
    order = np.argsort(part.place, kind="stable")
    mine, step, start = mine[order], part.step[order], part.start[order]
    back = np.flatnonzero((np.diff(step) < 0) & (np.diff(start) < -ANOTHER_CLOCK_NS)) + 1
    if not 0 < len(back) <= MOST_CLOCKS:
        return [mine]
    usual = _usual(step, start, part.took[order])
    cuts = [0]
    for at in back.tolist():
        if apart(step[:at], start[:at], step[at:], start[at:], usual) is not None:
            cuts.append(at)
    return np.split(mine, cuts[1:])


def _one(
    told: _Told, mine: np.ndarray, key: tuple[str, str, str], starts: np.ndarray | None
) -> tuple[Stream, int, list[str]]:
    part = told.at(mine)
    one = _as_written(part, mine, *key)
    if not one.timed:
        one, doubled = _once(one, _in_turns(one.step))
        return one, doubled, []
    if starts is not None and len(starts):
        following = np.append(starts, np.iinfo(np.int64).max)[np.searchsorted(starts, one.start_ns, side="right")]
        one = replace(one, end_ns=np.minimum(one.end_ns, following))
    by_time = np.lexsort((one.step, one.end_ns))
    turned = _drops(one.step[by_time]) < _drops(one.step)
    one = _counted_anew(one.at(by_time)) if turned else one
    one, doubled = _once(one, _while_running(one))
    one, more = _once(one, _in_turns(one.step))
    rounded = bool(part.lasting.all()) and whole_seconds(part.logged[part.logged != UNTIMED])
    one, notes = _onward(one, rounded)
    return one, doubled + more, notes


def _as_written(part: _Told, mine: np.ndarray, form: str, source: str, host: str) -> Stream:
    """The rows at `mine` in the order in which they were written; without places, by attempt as they stand."""
    placed = bool(part.placed.all())
    by = part.place if placed else part.attempt
    if (np.diff(by) < 0).any():
        order = np.argsort(by, kind="stable")
        part, mine, by = part.at(order), mine[order], by[order]
    step, took, attempt = part.step, part.took, part.attempt
    start = _laid_beside(part.start, took, attempt)
    usual = _usual(step, start, took)
    lasts = np.where(took >= 0, took, int(SAME_STEP * usual))
    end = np.where(start == UNTIMED, UNTIMED, start + np.maximum(lasts, 1))
    fresh = np.diff(attempt, prepend=attempt[:1]) > 0
    announced = fresh & (np.diff(step, prepend=step[:1]) > 0)
    written = by if placed else mine
    return Stream(source, host, form, mine, written, step, start, end, fresh, announced, usual)


def _counted_anew(one: Stream) -> Stream:
    """A stream whose lines stood in another order: attempts counted along them mean nothing. A new one begins where the
    step number drops after a pause."""
    pause = one.start_ns[1:] - one.end_ns[:-1] > max(BACK_NS, one.usual_ns)
    fresh = np.append(False, (np.diff(one.step) <= 0) & pause)[: len(one)]
    return replace(one, fresh=fresh, announced=np.zeros(len(one), dtype=bool))


def _laid_beside(start: np.ndarray, took: np.ndarray, attempt: np.ndarray) -> np.ndarray:
    """Starts; where most rows are timed, those of the others end to end with the timed row before them, or, at the
    beginning of an attempt, with the one after."""
    known = start != UNTIMED
    if known.all() or 2 * known.sum() < len(start):
        return start
    laid = np.cumsum(np.maximum(took, 0)) - np.maximum(took, 0)
    place, timed = np.arange(len(start)), np.flatnonzero(known)
    after = np.searchsorted(timed, place)
    before, after = timed[np.maximum(after - 1, 0)], timed[np.minimum(after, len(timed) - 1)]
    beside = np.where((before < place) & (attempt[before] == attempt), before, after)
    return np.where(known, start, start[beside] + laid - laid[beside])


def _usual(step: np.ndarray, start: np.ndarray, took: np.ndarray) -> int:
    """The median duration, or, of marks, the median time between one step and the next; 0 where neither is known."""
    if (took > 0).any():
        return int(np.median(took[took > 0]))
    order = np.lexsort((step, start))
    gap, up = np.diff(start[order]), np.diff(step[order])
    told = (up == 1) & (gap > 0) & (start[order][:-1] != UNTIMED)
    return int(np.median(gap[told])) if told.any() else 0


def _drops(step: np.ndarray) -> int:
    return int((np.diff(step) < 0).sum())


def _once(one: Stream, take: np.ndarray | None) -> tuple[Stream, int]:
    """The first row of each take, and how many others there were; what one of them says of a new attempt holds, and the
    longest that one of them says it took."""
    if take is None:
        return one, 0
    _, first, of = np.unique(take, return_index=True, return_inverse=True)
    if len(first) == len(one):
        return one, 0
    fresh = np.zeros(len(first), dtype=bool)
    np.logical_or.at(fresh, of, one.fresh)
    longest = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(longest, of, one.end_ns - one.start_ns)
    one = replace(one, fresh=fresh[of], end_ns=one.start_ns + longest[of])
    return one.at(np.sort(first)), len(take) - len(first)


def _while_running(one: Stream) -> np.ndarray | None:
    """The take that each row tells of: one that names a step which, by the times of day, was still being taken tells
    of the same, since nobody takes a step twice at once. None where each row is of another."""
    if (np.diff(one.step) > 0).all():
        return None
    order = np.lexsort((one.start_ns, one.step))
    until = np.maximum(one.end_ns, one.start_ns + int(SAME_STEP * one.usual_ns))[order]  # some are printed as 0.000 s
    same = (np.diff(one.step[order]) == 0) & (one.start_ns[order][1:] < until[:-1])
    take = np.empty(len(one), dtype=np.int64)
    take[order] = np.cumsum(np.concatenate(([True], ~same)))
    return take


def _in_turns(step: np.ndarray) -> np.ndarray | None:
    """The take that each row tells of, where several hosts wrote their lines in turns and most steps stand there as
    often as there are hosts; else None. A restart makes the number drop once; hosts that take turns, every few rows."""
    falls = int((np.diff(step) <= 0).sum())
    if len(step) < LEAST_ROWS or falls * FINE < len(step):
        return None
    _, which, count = np.unique(step, return_inverse=True, return_counts=True)
    times, often = np.unique(count, return_counts=True)
    hosts = int(times[np.argmax(often * times)])
    if hosts < 2:
        return None
    nth = pd.Series(which).groupby(which).cumcount().to_numpy() // hosts
    return which * (int(nth.max()) + 1) + nth


def _onward(one: Stream, rounded: bool) -> tuple[Stream, list[str]]:
    """The stream with times that never go back: rounding (`rounded`: to whole seconds) is ironed out; where its clock
    was put back, all that follows is moved on by the least that keeps steps from overlapping, and a single time far
    ahead is drawn in."""
    start, took = one.start_ns, one.end_ns - one.start_ns
    back = np.flatnonzero(np.diff(start) < -max(BACK_NS, one.usual_ns)) + 1
    notes: list[str] = []
    if 0 < len(back) <= max(1, FEW_BACK * len(one)):
        start = start.copy()
        for i in back.tolist():
            if i >= 2 and start[i - 2] <= start[i]:
                notes.append(
                    f"{_of(one)}step {one.step[i - 1]} names a time later than the steps after it do: it is "
                    "taken to begin with the next."
                )
                start[i - 1] = start[i]
                continue
            ahead = int(start[i - 1] + max(took[i - 1], one.usual_ns) - start[i])
            start[i:] += ahead
            notes.append(
                f"{_of(one)}the clock goes back at step {one.step[i]}: what follows was moved on by "
                f"{spoken(ahead)}, the least that lets it follow."
            )
    if rounded:
        start = laid_end_to_end(start, took, one.fresh)
    onward = np.maximum.accumulate(start)
    if (onward == one.start_ns).all():
        return one, notes
    return replace(one, start_ns=onward, end_ns=onward + took), notes


def _of(one: Stream) -> str:
    return f"{one.name}: " if one.name else ""


def spoken(ns: int) -> str:
    """A stretch of time as a note says it: `7 h`, `1 h 30 min`, `42 s`."""
    whole = round(abs(ns) / NS_PER_S)
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    said = [f"{amount:,} {unit}" for amount, unit in parts if amount]
    return " ".join(said[:2]) or f"{abs(ns) / NS_PER_S:.2g} s"

"""What is counted once: runs of one input, and runs of one job that tell of the same time.

    one input     every input file of a run is among those of another: that other one counts (of two made of the same
                  files the one stored last). Files are known by their content.
    one job       runs that name one job, on the same chips and as many, are attempts, or tell of it twice. Of an
                  instant that several tell of, the one that tells of the longest time counts (of equal ones the one
                  stored last); attempts after one another are all counted.

Runs that name no job and share no input are taken to be different: two names alike prove nothing. Snapshots of a live
run that a newer one replaced are not listed to begin with.

Of very many runs few share anything: which ones may is found out of numbers, and only these are looked at one by one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzers.fleet.chosen import Chosen
from analyzers.fleet.laying import job_of
from analyzers.intervals import Spans, joined, overlap_with, spans, union

MOST_JUDGED = 8  # sets of runs, of which it is kept who is told again
SIEVE = 1 << 20  # most numbers are told apart from a few others by their last bits
SPARE = 1_000  # jobs that are kept though nobody asks about their runs
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Twice:
    """What is told twice among runs. `again`: of each slot whether another run counts in the place of its own, as its
    inputs are all among that one's. `taken`: of each slot whether another run of the job tells some of its time, which
    is, sorted and without overlaps, `elsewhere`."""

    again: np.ndarray
    taken: np.ndarray
    elsewhere: Mapping[int, Spans]


def told_twice(runs: Chosen) -> Twice:
    again = runs.flags(_told_again(_Files(runs)))
    elsewhere = _told_elsewhere(runs.only(~again[runs.slots]))
    return Twice(again, runs.flags(list(elsewhere)), elsewhere)


class _Files:
    """Which inputs some runs were made of, run after run: `slot` and `file` of each."""

    def __init__(self, runs: Chosen):
        self.runs = runs
        parts = [(b, b.mine[b.columns.files.row]) for b in runs.as_stored]
        self.slot = np.concatenate([_NONE, *(b.slots[b.columns.files.row[mine]] for b, mine in parts)])
        self.file = np.concatenate([_NONE, *(b.columns.files["file"][mine] for b, mine in parts)])
        self.stamp = np.concatenate([_NONE, *(b.columns.of["stamp"][b.columns.files.row[mine]] for b, mine in parts)])

    @cached_property
    def _ordered(self) -> np.ndarray:
        return np.sort(self.file)

    @cached_property
    def shared(self) -> np.ndarray:
        """Of each, whether it is that of another run too."""
        return _among(self.file, _more_than_once(self._ordered))

    @cached_property
    def _by_file(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.file, kind="stable")
        return self.file[order], self.slot[order]

    def holders(self, file: int) -> np.ndarray:
        files, slots = self._by_file
        return slots[files.searchsorted(file) : files.searchsorted(file, side="right")]

    def rarest(self, items: np.ndarray) -> np.ndarray:
        """Of each run whose items these are, in their order, its input that the fewest runs have."""
        files, file = self._ordered, self.file[items]
        many = files.searchsorted(file, side="right") - files.searchsorted(file)
        order = np.lexsort((file, many, self.slot[items]))
        return file[order[np.flatnonzero(np.diff(self.slot[items][order], prepend=-1))]]

    def of(self, slot: int) -> frozenset[int]:
        return frozenset(self.file[self.slot.searchsorted(slot) : self.slot.searchsorted(slot, side="right")].tolist())

    def widest(self, files: frozenset[int]) -> int:
        """Of the runs that hold all of these the one that counts."""
        rarest, *others = sorted((self.holders(file) for file in sorted(files)), key=len)
        for holders in others:
            rarest = rarest[np.isin(rarest, holders, assume_unique=True)]
        many = self.slot.searchsorted(rarest, side="right") - self.slot.searchsorted(rarest)
        told = ((self.runs.run(slot), slot) for slot in rarest[many == many.max()].tolist())
        return max((run.created_ns, run.run_id, slot) for run, slot in told)[2]


def _told_again(files: _Files) -> list[int]:
    if not files.shared.any():
        return []
    first = np.flatnonzero(np.diff(files.slot, prepend=-1))
    suspects = np.repeat(np.logical_and.reduceat(files.shared, first), np.diff(first, append=len(files.slot)))
    if not suspects.any():
        return []
    rests_on = _among(files.file, np.unique(files.rarest(np.flatnonzero(suspects))))
    judged = files.runs.judged.again
    key = files.slot[suspects].tobytes(), files.stamp[suspects].tobytes(), files.stamp[rests_on].tobytes()
    if (found := judged.get(key)) is None:
        while len(judged) >= MOST_JUDGED:
            judged.pop(next(iter(judged)), None)
        found = judged[key] = _judged(files, np.unique(files.slot[suspects]).tolist())
    return found


def _judged(files: _Files, suspects: list[int]) -> list[int]:
    sets = {slot: files.of(slot) for slot in suspects}
    widest = {one: files.widest(one) for one in set(sets.values())}
    return [slot for slot in suspects if widest[sets[slot]] != slot]


def _told_elsewhere(runs: Chosen) -> dict[int, Spans]:
    found: dict[int, Spans] = {}
    judged, used = runs.judged.jobs, set[tuple[int, ...]]()
    for slots in _of_one_job(runs):
        key = tuple(runs.stamp(slot) for slot in slots)
        if (told := judged.get(key)) is None:
            told = judged[key] = _of_job(runs, slots)
        used.add(key)
        found |= told
    if len(judged) > 2 * len(used) + SPARE:
        for key in judged.keys() - used:
            judged.pop(key, None)
    return found


def _of_one_job(runs: Chosen) -> Iterator[list[int]]:
    """The runs of each job of which some may tell of the same time, as slots."""
    job = runs.known("job")
    there = _among(job, _more_than_once(np.sort(job[job != 0])))
    slots, job, first, last = (told[there] for told in (runs.slots, job, runs.known("from_ns"), runs.known("to_ns")))
    order = np.lexsort((first, job))
    slots, job, first, last = (told[order] for told in (slots, job, first, last))
    groups: dict[object, list[int]] = {}
    for slot in slots[_among(job, np.unique(job[_overlapping(job, first, last)]))].tolist():
        groups.setdefault(job_of(runs.run(slot)), []).append(slot)
    return iter(groups.values())


def _more_than_once(ordered: np.ndarray) -> np.ndarray:
    """The numbers that are there more than once, each once and in their order."""
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return again[np.append(True, again[1:] != again[:-1])] if len(again) else again


def _among(values: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Of each value whether it is one of some others, which are in order."""
    sieve = np.zeros(SIEVE, dtype=bool)
    sieve[some & (SIEVE - 1)] = True
    found = sieve[values & (SIEVE - 1)]
    may = np.flatnonzero(found)
    if len(may):
        found[may] = some[np.minimum(some.searchsorted(values[may]), len(some) - 1)] == values[may]
    return found


def _overlapping(job: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Of each run (of each job in order of their beginnings) whether one of its job before it ends after it begins."""
    if not len(job):
        return np.zeros(0, dtype=bool)
    ends = np.sort(last)
    group = np.cumsum(np.diff(job, prepend=job[0]) != 0) * (len(ends) + 1)
    latest = np.maximum.accumulate(group + ends.searchsorted(last) + 1)
    return np.append(False, latest[:-1]) > group + ends.searchsorted(first, side="right")


def _of_job(runs: Chosen, slots: list[int]) -> dict[int, Spans]:
    held = {slot: runs.held(slot) for slot in slots}
    taken, told = spans(), dict[int, Spans]()

    def order(slot: int) -> tuple[int, int, str]:
        own, run = held[slot], runs.run(slot)
        return -int((own.end - own.start).sum()), -run.created_ns, run.run_id

    for slot in sorted(slots, key=order):
        own = spans(held[slot].start, held[slot].end)
        if len(taken.start) and int(overlap_with(taken, own).sum()):
            told[slot] = taken
        taken = union(joined([taken, own]))
    return told


def free_share(taken: Spans, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which share of each [start, end) is not in `taken`."""
    width = np.maximum(end - start, 1)
    return 1.0 - overlap_with(taken, Spans(start, end)) / width

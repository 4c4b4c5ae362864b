"""What is counted once: runs of one input, and runs of one job that tell of the same time.

    one input     every input file of a run is among those of another: that other one counts (of two made of the same
                  files the one stored last). Files are known by their content.
    one job       runs that name one job, on the same chips and as many, are attempts, or tell of it twice. Of an
                  instant that several tell of, the one that tells of the longest time counts (of equal ones the one
                  stored last); attempts after one another are all counted.

Runs that name no job and share no input are taken to be different: two names alike prove nothing. Snapshots of a live
run that a newer one replaced are not listed to begin with.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.fleet.base import FleetRun
from analyzers.intervals import Spans, joined, overlap_with, spans, union


@dataclass(frozen=True)
class Twice:
    """What is told twice among runs: `again` as `told_again` has it, `elsewhere` as `told_elsewhere`."""

    again: Mapping[str, str]
    elsewhere: Mapping[str, Spans]


def told_twice(runs: Sequence[FleetRun]) -> Twice:
    again = told_again(runs)
    return Twice(again, told_elsewhere([r for r in runs if r.run_id not in again]))


def told_again(runs: Sequence[FleetRun]) -> dict[str, str]:
    """Of each run whose inputs are all among those of another: which one is counted in its place."""
    alike: dict[frozenset[str], list[FleetRun]] = {}
    for run in runs:
        if run.spent is not None and run.spent.inputs:
            alike.setdefault(frozenset(run.spent.inputs), []).append(run)
    newest = {files: max(mine, key=lambda r: (r.created_ns, r.run_id)) for files, mine in alike.items()}
    holders: dict[str, set[frozenset[str]]] = {}
    for files in newest:
        for file in files:
            holders.setdefault(file, set()).add(files)
    told: dict[str, str] = {}
    for files, mine in alike.items():
        wider = max(_holding_all(files, holders), key=lambda s: (len(s), newest[s].created_ns, newest[s].run_id))
        told |= {run.run_id: newest[wider].run_id for run in mine if run is not newest[wider]}
    return told


def _holding_all(files: Iterable[str], holders: dict[str, set[frozenset[str]]]) -> set[frozenset[str]]:
    return set.intersection(*sorted((holders[file] for file in files), key=len))


def told_elsewhere(runs: Sequence[FleetRun]) -> dict[str, Spans]:
    """Of each run some of whose time another run of its job tells: that time, sorted and without overlaps."""
    jobs: dict[tuple[str, str, int | None], list[FleetRun]] = {}
    for run in runs:
        if run.job and run.spent is not None and run.spent.held:
            jobs.setdefault((run.job, run.chip, run.chips), []).append(run)
    told: dict[str, Spans] = {}
    for mine in jobs.values():
        if len(mine) > 1:
            told |= _of_job(mine)
    return told


def _of_job(runs: Sequence[FleetRun]) -> dict[str, Spans]:
    taken, told = spans(), dict[str, Spans]()
    for run in sorted(runs, key=lambda r: (-_length(r), -r.created_ns, r.run_id)):
        assert run.spent is not None
        own = spans(*zip(*run.spent.held, strict=True))
        if len(taken.start) and int(overlap_with(taken, own).sum()):
            told[run.run_id] = taken
        taken = union(joined([taken, own]))
    return told


def _length(run: FleetRun) -> int:
    return sum(b - a for a, b in run.spent.held) if run.spent else 0


def free_share(taken: Spans, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which share of each [start, end) is not in `taken`."""
    width = np.maximum(end - start, 1)
    return 1.0 - overlap_with(taken, Spans(start, end)) / width

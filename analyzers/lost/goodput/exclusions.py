"""Goodput with times left out, by the rules of ml-goodput-measurement 0.2.3.

It is a walk of its own there: what is excluded is taken from each step and each phase that it overlaps, and the total
shrinks by the sum of those overlaps, not by the time excluded. Custom events count by overlap, checkpoints not at all.
"""

from dataclasses import dataclass

import numpy as np

from analyzers.lost.goodput.buckets import ASYNC, CUSTOM
from analyzers.lost.goodput.entries import Entries, code_of
from analyzers.lost.goodput.library import Steps, Sums, closed, custom_events, neighbours, overlaps, segmented


@dataclass(frozen=True)
class Excluding:
    """Sums of the walk, what it left out in s, and the time of each productive step that is left, by step number."""

    sums: Sums
    excluded_s: float
    steps: dict[int, float]


class _Cut:
    """Takes excluded time from intervals and adds up what was taken."""

    def __init__(self, exclusions: list[tuple[float, float]]):
        self._exclusions = exclusions
        self.taken_s = 0.0

    def overlap(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        out = np.zeros(len(start))
        for begin, until in self._exclusions:
            out += np.maximum(np.minimum(end, until) - np.maximum(start, begin), 0.0)
        self.taken_s += float(out.sum())
        return out

    def left(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Seconds of each interval that are not excluded."""
        return np.maximum(end - start - self.overlap(start, end), 0.0)


def merged(exclusions: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Exclusions in s since the epoch, sorted and merged; those that end before they begin are passed over."""
    out: list[list[float]] = []
    for start, end in sorted((a / 1e9, b / 1e9) for a, b in exclusions if a < b):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return [(a, b) for a, b in out]


def walk_excluding(log: Entries, exclusions: list[tuple[float, float]]) -> Excluding:
    """The walk with `exclusions` (as `merged` gives them) left out."""
    cut, steps = _Cut(exclusions), segmented(log)
    badput: dict[str, float | dict[str, float]] = {}
    for bucket, kind in (
        ("tpu_initialization", "accelerator_initialization"),
        ("training_prep", "training_preparation"),
    ):
        badput[bucket] = float(cut.left(*closed(log, kind)[1:]).sum())
    badput |= _loading(log, steps, cut)
    if not len(steps.number):
        return Excluding(Sums(0.0, badput, 0, 0), cut.taken_s, {})
    productive, taken, max_step, more = _segments(log, steps, cut)
    badput |= more
    badput["infrastructure_recovery_from_disruption"] = _recovery(log, steps, cut)
    ends = log.at(code_of("job", end=True))
    if len(ends):
        here = steps.opens[-2] + int(steps.number[steps.opens[-2] :].argmax())
        productive += float(cut.left(steps.at_s[here : here + 1], log.time_s[ends[-1:]])[0])
        max_step = int(steps.number[here])
    return Excluding(Sums(productive, badput, max_step, len(steps.disruptions)), cut.taken_s, taken)


def _loading(log: Entries, steps: Steps, cut: _Cut) -> dict[str, float]:
    """The first load after the start and after each disruption is synchronous."""
    pos, start, end = closed(log, "data_loading")
    took = cut.left(start, end)
    bounds = np.concatenate(([0], np.searchsorted(pos, steps.pos[steps.disruptions]), [len(pos)]))
    sync = float(took[bounds[:-1][np.diff(bounds) > 0]].sum())
    return {"data_loading_sync": sync, ASYNC: float(took.sum()) - sync}


def _recovery(log: Entries, steps: Steps, cut: _Cut) -> float:
    starts = log.at(code_of("job"))
    if not len(starts) or not len(steps.disruptions):
        return 0.0
    latest = np.searchsorted(starts, steps.pos[steps.disruptions], side="right") - 1
    known = latest >= 0
    end, start = log.time_s[starts][latest[known]], steps.at_s[steps.disruptions[known] - 1]
    later = end > start
    return float(cut.left(start[later], end[later]).sum())


def _segments(
    log: Entries, steps: Steps, cut: _Cut
) -> tuple[float, dict[int, float], int, dict[str, float | dict[str, float]]]:
    """(productive, time of each productive step, last of them, start-up, waste and custom events)."""
    count, limit = len(steps.opens) - 1, steps.limit
    here = neighbours(steps)
    start, end = steps.at_s[here - 1], steps.at_s[here]
    excluded, mine = cut.overlap(start, end), steps.segment[here]
    lost = steps.number[here] > limit[mine]
    wasted = np.maximum(end - start - excluded, 0.0)[lost].sum()
    good = ~lost & (steps.number[here] == steps.number[here - 1] + 1)
    here, mine, start, end, excluded = here[good], mine[good], start[good], end[good], excluded[good]
    events = custom_events(log)
    inside, by_name = overlaps(events, start, end)
    left = np.maximum(end - start - inside - excluded, 0.0)
    is_first = steps.number[here - 1] == np.minimum.reduceat(steps.number, steps.opens[:-1])[mine]
    total, first = np.bincount(mine, left, count), np.bincount(mine[is_first], left[is_first], count)
    others = np.bincount(mine, minlength=count) - 1
    rest = np.bincount(mine[~is_first], left[~is_first], count)
    usual = np.divide(rest, others, out=first.astype(float), where=others > 0)
    startup = np.maximum(first - usual, 0.0)
    taken = np.where(is_first, np.minimum(first, usual)[mine], left)
    custom = dict(zip(events.names, by_name.tolist(), strict=True)) if len(here) else {}
    more = {"program_startup": float(startup.sum()), "wasted_progress_from_disruption": float(wasted), CUSTOM: custom}
    last = np.flatnonzero(np.diff(mine, append=count)) if len(here) else here
    max_step = int((steps.number[here[last]] - 1).max(initial=0))
    return (
        float((total - startup).sum()),
        dict(zip((steps.number[here] - 1).tolist(), taken.tolist(), strict=True)),
        max_step,
        more,
    )

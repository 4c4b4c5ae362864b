"""A metric over the runs of a job, in order, and where it changed for good: how much, and between which two.

change   after / before - 1 of the levels on either side; of what is a share itself (MFU, goodput) after - before
drift    where no single change is told: whether it moved all the same, from the first third of the runs to the last
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from analyzers.history_of_metric.change_points import LEAST, change_points
from analyzers.history_of_metric.drift import Drift, drift
from errors import QuestionError


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place of the history: a run, or all runs of one value of a tag. `value`: their mean; `low`, `high`: of a
    single run, between which its value lies by its own scatter, None where that tells nothing."""

    label: str
    runs: tuple[str, ...]
    at_ns: int
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def unknown(self) -> float:
        """By how much it may be more."""
        return 0.0 if self.high is None else self.high - self.value

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "runs": list(self.runs)}


@dataclass(frozen=True, kw_only=True)
class Change:
    """From the last point of a level to the first of the next. `before`, `after`: the two levels; `change`, `low`,
    `high`: shares, or points as a share; `chance`: how likely chance alone shows as much, at most."""

    last: Point
    first: Point
    before: float
    after: float
    change: float
    low: float
    high: float
    chance: float

    def to_dict(self) -> dict[str, Any]:
        ends = {"last_before": self.last.label, "first_after": self.first.label}
        runs = {"run_before": self.last.runs[-1], "run_after": self.first.runs[0]}
        told = ("before", "after", "change", "low", "high", "chance")
        return {**ends, **runs, **{name: getattr(self, name) for name in told}}


@dataclass(frozen=True, kw_only=True)
class HistoryResult:
    """`points` in order; `changes` in order; `drift`: None where there is none or a change is told; `why`: what was
    left out, and why no verdict is given where none is."""

    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    judged: bool
    why: tuple[str, ...] = ()
    drift: Drift | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "points": [p.to_dict() for p in self.points],
            "changes": [c.to_dict() for c in self.changes],
            "drift": self.drift and self.drift.to_dict(),
            "judged": self.judged,
            "why": list(self.why),
        }


def history(points: Sequence[Point], *, of_shares: bool, bounded: bool = False) -> HistoryResult:
    """`of_shares`: the metric is a share itself, so that changes are told in points. `bounded`: it is a value at least
    and `high` at most: what lies within that is no change. Raises QuestionError without a point."""
    kept = [p for p in points if math.isfinite(p.value) and (of_shares or p.value > 0)]
    why = (f"{len(points) - len(kept):,} values that are no amounts are left out",) if len(kept) < len(points) else ()
    if not kept:
        raise QuestionError("none of these runs tells it", expected="runs that do")
    if len(kept) < LEAST:
        lacks = f"{len(kept):,} runs are too few to tell a change: {LEAST} are needed"
        return HistoryResult(points=tuple(kept), changes=(), judged=False, why=(*why, lacks))
    values = np.array([p.value for p in kept])
    values = values if of_shares else np.log(values)
    found = change_points(values)
    moved = None if found else drift(values)
    changes = [
        Change(
            last=kept[c.at - 1],
            first=kept[c.at],
            before=c.before,
            after=c.after,
            change=c.change,
            low=c.low,
            high=c.high,
            chance=c.chance,
        )
        for c in found
    ]
    if not of_shares:
        changes = [_as_shares(c) for c in changes]
        moved = moved and _drift_as_shares(moved)
    if bounded:
        changes, moved, lacks = _beyond_unknown(kept, [c.at for c in found], changes, moved)
        why = (*why, *lacks)
    return HistoryResult(points=tuple(kept), changes=tuple(changes), judged=True, why=why, drift=moved)


def _beyond_unknown(
    points: Sequence[Point], cuts: Sequence[int], changes: Sequence[Change], moved: Drift | None
) -> tuple[list[Change], Drift | None, tuple[str, ...]]:
    """Those that are more than what may be the metric's besides, with it in their ranges; what is said of others."""
    more, ends = np.array([p.unknown for p in points]), [0, *cuts, len(points)]
    mean = [float(more[a:b].mean()) for a, b in pairwise(ends)]
    told = [
        replace(c, low=c.low - before, high=c.high + after)
        for c, before, after in zip(changes, mean[:-1], mean[1:], strict=True)
        if _apart(c, before, after)
    ]
    third = len(points) // 3
    kept = moved if moved and _apart(moved, float(more[:third].mean()), float(more[-third:].mean())) else None
    count = len(changes) - len(told) + (moved is not None and kept is None)
    what = "1 change is" if count == 1 else f"{count:,} changes are"
    return told, kept, (f"{what} not told: so much may be of collectives that were not compared",) if count else ()


def _apart(moved: Change | Drift, before: float, after: float) -> bool:
    """Whether it moved whatever part of these is its own."""
    return moved.before + before < moved.after or moved.after + after < moved.before


def _as_shares(c: Change) -> Change:
    """Out of logarithms."""
    ends = {name: math.expm1(getattr(c, name)) for name in ("change", "low", "high")}
    return replace(c, before=math.exp(c.before), after=math.exp(c.after), **ends)


def _drift_as_shares(d: Drift) -> Drift:
    return replace(d, before=math.exp(d.before), after=math.exp(d.after), change=math.expm1(d.change))

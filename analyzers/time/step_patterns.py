"""What the durations of steps alone tell: that they grow, that every n-th is longer, that many are at no one distance,
or that they changed for good.

Only kept, plausible steps are looked at, without the first of an attempt and without those that hung. A pattern is told
where it stands clear of the scatter of neighbouring steps and costs a floor of the time (`LEAST_SHARE`). Of several the
costliest is told; where steps grow, their changes of level are of that and no pattern of their own.

    usual      steps as they would be without it: the quickest stretch; of growing steps where their line begins,
               or what the quickest take
    excess     seconds beyond that, summed over steps of the pattern
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analyzers.time.step_changes import CHANGE_SHARE, SHORTEST, StepChanges, changes_of

LEAST_SHARE = 0.02  # of the time of the steps looked at
CLEAR = 5.0  # robust deviations by which a step is a longer one
SAME_GAP = 0.8  # of longer steps: so many must follow the one before at the same distance
LONGEST = 0.3  # of the longest: from there on a step is among the longest
LEAST_TIMES = 4  # longer steps of a period, at least
MANY = 8  # longer steps at no one distance, at least: a few are what any machine has now and then
HALF_AGAIN = 0.5  # of the steps around them: such steps are longer by so much at least
IRREGULAR_SHARE = 0.05  # of the time of the steps looked at: what they must cost
MOST_PATTERNS = 3
BUCKETS = 200  # growing is judged of medians of so many stretches at the most
GROWING_Z = 4.4  # standard deviations of Kendall's test: steps in any order look so once in 100,000 times
RISING = 0.8  # of all pairs of steps: of two changes of level two thirds rise, and a few more by chance
AS_WELL = 1.25  # median distance from a line over that from the levels of stretches, at the most
QUICKEST = 0.05  # of the steps: what they take is usual where a line begins below it, before the growth did
GROWN = 0.1  # of the usual step, from the first to the last: a smaller growth is not told


@dataclass(frozen=True, kw_only=True)
class StepPattern:
    """`kind`: growing, periodic, irregular or changed (for some time, or for good). `first_step` to `last_step`: where;
    `every`: of a period, in steps; `times`: how many steps are longer, of those at no one distance.

    `usual_s`: a step without it; `slow_s`: one with it (of growing steps the last). `excess_s`: seconds of wall time
    beyond the usual, summed over its steps.
    """

    kind: str
    first_step: int
    last_step: int
    every: int | None
    usual_s: float
    slow_s: float
    excess_s: float
    times: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def step_pattern(changes: StepChanges) -> StepPattern | None:
    """The pattern that steps show; None where they show none that is worth telling."""
    rows = changes.rows
    if len(rows) < 2 * SHORTEST:
        return None
    step, dur = rows["step"].to_numpy(dtype=np.int64), rows["dur_s"].to_numpy(dtype=float)
    level = rows["level_s"].to_numpy(dtype=float)
    longer = _periodic(step, dur, level) or _irregular(step, dur, level)
    found = (_growing(step, dur, level) or _changed(changes), longer)
    worth = [f for f in found if f is not None and f.excess_s >= LEAST_SHARE * float(dur.sum())]
    return max(worth, key=lambda f: f.excess_s, default=None)


def step_patterns(changes: StepChanges) -> list[StepPattern]:
    """All patterns that steps show, the costliest first: each is taken off before the next is looked for."""
    found: list[StepPattern] = []
    while len(found) < MOST_PATTERNS and (pattern := step_pattern(changes)) is not None:
        if any(_place(pattern) == _place(one) for one in found):
            break  # what was taken off is no part of it: it would be told again and again
        found.append(pattern)
        changes = changes_of(_without(changes.rows, pattern))
    return found


def _place(pattern: StepPattern) -> tuple[str, int, int, int | None]:
    return pattern.kind, pattern.first_step, pattern.last_step, pattern.every


def _without(rows: pd.DataFrame, pattern: StepPattern) -> pd.DataFrame:
    """The steps as they would be without the pattern."""
    step, dur = rows["step"].to_numpy(dtype=np.int64), rows["dur_s"].to_numpy(dtype=float)
    level = rows["level_s"].to_numpy(dtype=float)
    here = (step >= pattern.first_step) & (step <= pattern.last_step)
    if pattern.kind == "periodic":
        here &= (step - pattern.first_step) % (pattern.every or 1) == 0
        less = np.where(here, np.maximum(dur - level, 0.0), 0.0)
    elif pattern.kind == "irregular":
        less = np.where(dur > (1 + HALF_AGAIN) * level, dur - level, 0.0)
    elif pattern.kind == "changed":
        less = np.where(here, np.maximum(level - pattern.usual_s, 0.0), 0.0)
    else:
        grown = np.clip((step - pattern.first_step) / max(pattern.last_step - pattern.first_step, 1), 0, 1)
        less = grown * (pattern.slow_s - pattern.usual_s)
    return rows.drop(columns="level_s").assign(dur_s=np.maximum(dur - less, 0.0))


def _growing(step: np.ndarray, dur: np.ndarray, level: np.ndarray) -> StepPattern | None:
    """A line through medians, by Theil and Sen, that fits at least as well as stretches of one level each do, or steps
    of which nearly any two rise: many levels lie near to whatever grows."""
    parts = np.array_split(np.arange(len(dur)), min(BUCKETS, len(dur)))
    at = np.array([p.mean() for p in parts])
    middle = np.array([np.median(dur[p]) for p in parts])
    slope, intercept, z, rising = _line(at, middle)
    if z < GROWING_Z:
        return None
    fit = intercept + slope * np.arange(len(dur))
    usual, last = max(float(fit[0]), float(np.quantile(middle, QUICKEST))), float(fit[-1])
    apart = np.median(np.abs(dur - fit)), np.median(np.abs(dur - level))
    if usual <= 0 or last - usual < GROWN * usual or (apart[0] > AS_WELL * apart[1] and rising < RISING):
        return None
    beyond = np.maximum(fit - usual, 0)
    return StepPattern(
        kind="growing",
        first_step=int(step[max(int((beyond > 0).argmax()) - 1, 0) :].min()),
        last_step=int(step.max()),
        every=None,
        usual_s=usual,
        slow_s=last,
        excess_s=float(beyond.sum()),
    )


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float, float]:
    """Slope and intercept by Theil and Sen, by how many standard deviations more pairs rise than chance has rise (Mann
    and Kendall), and how many more of all pairs rise than fall (Kendall's tau). `scipy.stats` has them, and takes
    half a second to load."""
    i, j = np.triu_indices(len(x), 1)
    rise = y[j] - y[i]
    slope = float(np.median(rise / (x[j] - x[i])))
    n = len(x)
    more = float(np.sign(rise).sum())
    z = more / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return slope, float(np.median(y) - slope * np.median(x)), z, more / len(rise)


def _periodic(step: np.ndarray, dur: np.ndarray, level: np.ndarray) -> StepPattern | None:
    """Longer steps that follow one another at one distance: all that stand clear, or else the longest among them."""
    beyond = dur - level
    spread = _spread(dur, beyond)
    for least in (CLEAR * spread, max(CLEAR * spread, LONGEST * float(beyond.max()))):
        longer = np.flatnonzero(beyond > least)
        every = _distance(step[longer])
        if every is None:
            continue
        others = np.ones(len(dur), dtype=bool)
        others[longer] = False
        return StepPattern(
            kind="periodic",
            first_step=int(step[longer].min()),
            last_step=int(step[longer].max()),
            every=every,
            usual_s=float(np.median(dur[others])),
            slow_s=float(np.median(dur[longer])),
            excess_s=float(beyond[longer].sum()),
        )
    return None


def _spread(dur: np.ndarray, beyond: np.ndarray) -> float:
    """By how much steps scatter around the level of their stretch: robust, in seconds."""
    return 1.4826 * float(np.median(np.abs(beyond))) + 0.005 * float(np.median(dur))


def _irregular(step: np.ndarray, dur: np.ndarray, level: np.ndarray) -> StepPattern | None:
    """Steps that are far longer than those around them, again and again, at no one distance."""
    beyond = dur - level
    longer = (beyond > CLEAR * _spread(dur, beyond)) & (beyond > HALF_AGAIN * level)
    excess_s = float(beyond[longer].sum())
    if longer.sum() < MANY or excess_s < IRREGULAR_SHARE * float(dur.sum()):
        return None
    return StepPattern(
        kind="irregular",
        first_step=int(step[longer].min()),
        last_step=int(step[longer].max()),
        every=None,
        usual_s=float(np.median(dur[~longer])),
        slow_s=float(np.median(dur[longer])),
        excess_s=excess_s,
        times=int(longer.sum()),
    )


def _distance(step: np.ndarray) -> int | None:
    """At which distance these steps follow one another; None where they follow at many, or are few."""
    if len(step) < LEAST_TIMES:
        return None
    gaps, counts = np.unique(np.diff(step), return_counts=True)
    every = int(gaps[counts.argmax()])
    return every if every >= 2 and counts.max() >= SAME_GAP * (len(step) - 1) else None


def _changed(changes: StepChanges) -> StepPattern | None:
    """The stretch between changes that cost most beyond the quickest; of one in which a job that had ended began anew,
    the run that cost most, since both have steps of one number."""
    quickest, rows = changes.quickest_s, changes.rows
    if len(changes.stretches) < 2 or quickest is None:
        return None
    step, level = rows["step"].to_numpy(dtype=np.int64), rows["level_s"].to_numpy(dtype=float)
    ends = changes.stretches["steps"].to_numpy(dtype=np.int64).cumsum()
    begins = np.union1d(np.append(0, ends[:-1]), np.flatnonzero(np.diff(step) <= 0) + 1)
    beyond = np.add.reduceat(np.maximum(rows["dur_s"].to_numpy(dtype=float) - quickest, 0.0), begins)
    beyond[level[begins] <= quickest * (1 + CHANGE_SHARE)] = 0.0
    worst = int(beyond.argmax())
    if not beyond[worst]:
        return None
    return StepPattern(
        kind="changed",
        first_step=int(step[begins[worst]]),
        last_step=int(step[np.append(begins, len(step))[worst + 1] - 1]),
        every=None,
        usual_s=quickest,
        slow_s=float(level[begins[worst]]),
        excess_s=float(beyond[worst]),
    )

"""Whether a step takes longer in one run than in another, and by how much, told from its own scatter.

Steps hang together: a busy host, a warm clock or a slow disk lasts for many of them, so that n steps are worth fewer
than n: n (1 - r) / (1 + r) where neighbours correlate by r, or what blocks show. Of each run the settled steps are cut
into blocks of b neighbours, for b = 1, 2, 4, ... as long as LEAST_BLOCKS blocks are left, and the variance of the mean
is the largest that any b, or r, shows:

    v = max over b of  var(means of blocks of b) / (number of blocks),  times (1 + UNSURE / n worth)^2

With means A and B, variances vA and vB of the two, degrees of freedom f by Welch and Satterthwaite from the blocks at
the b that decided:

    change = B / A - 1
    error  = sqrt((vB / B^2 + vA / A^2) + BETWEEN^2) x B / A
    range  = change -+ t(f, 1 - ALPHA / 2) x error
    told   : the range does not hold 0, and |change| >= FLOOR
    detectable = (t(f, 1 - ALPHA / 2) + t(f, 0.95)) x error, at least FLOOR: what 95 of 100 such pairs would show

ALPHA is 0.5 %: of 200 pairs that do not differ one is called different. BETWEEN is what two starts of one job differ by
though nothing was changed; where several runs of a kind are known their own spread is larger or smaller, and says so.

A step is its time less the pauses in it that the job recorded (saves, evaluations, custom events): what those take is
no time of a step, here as in goodput. Steps that are no usual ones are set apart and counted: the first of an attempt,
those that cannot be true, those that a profiler watched (where at least as many and LEAST_STEPS others are known),
those before the pace settled, and of what is left stalls, which take longer than the median by ten robust deviations
and by half of itself. What stalls cost beyond a usual step is told beside (`stalls_s`), a step on average. Where more
than STALLS_SHARE of the steps of a run take so long they are how it runs, and no stalls: they count as steps, in the
runs beside it too (`stalls_alike`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from analyzers.base import Facts
from analyzers.time.job_past import steps_taken
from analyzers.time.step_changes import changes_of
from analyzers.time.steps_alone import alone_ns
from errors import QuestionError
from errors import format as fmt
from runs.tables import Tables, frame

ALPHA = 0.005
POWER = 0.95
FLOOR = 0.005
BETWEEN = 0.001
LEAST_STEPS, LEAST_BLOCKS = 20, 8
FEW_APART, FAR = 5, 0.1  # steps, and the least share between the slowest of one and the quickest of the other
UNSURE = 4.0  # of few steps the scatter itself is not sure: measured on steps of real runs (benchmarks/pairs)
LEAST_WORTH = 6  # independent steps: of fewer no scatter can be told
STALL_DEVIATIONS, STALL_SHARE = 10.0, 0.5
STALLS_SHARE = 0.12  # of all steps: what more of them do is no stall, but how the job runs
WARM_SHARE = 0.2  # of all steps: a slow beginning that is longer is no warming up
STALLS = "stalls"
ROUNDING = 1e-9  # of a step: scatter below it is that of numbers, not of steps
ROBUST = 1.4826  # deviations of a normal scatter by its median absolute deviation

Floats = NDArray[np.float64]
NONE: NDArray[np.int64] = np.zeros(0, np.int64)


@dataclass(frozen=True)
class StepTimes:
    """Settled steps of a run in order: number and seconds. `apart`: how many were set apart, by why; `stalls_s`: what
    stalls took beyond a usual step, a step on average; `moved`: steps at which the pace changed for good; `profiled`:
    steps that a profiler watched, stalls left out, and `profiled_s`, what they took on average; `watched`: how many of
    the settled ones a profiler watched, where they could not be set apart; `with_stalls`: number and seconds with the
    stalls that were set apart; `stalls_kept`: whether so many steps stall that none was."""

    step: NDArray[np.int64]
    seconds: Floats
    apart: Mapping[str, int]
    stalls_s: float
    moved: tuple[int, ...] = ()
    profiled: NDArray[np.int64] = field(default_factory=lambda: NONE)
    profiled_s: float = 0.0
    watched: int = 0
    with_stalls: tuple[NDArray[np.int64], Floats] | None = None
    stalls_kept: bool = False

    @property
    def mean_s(self) -> float:
        return float(self.seconds.mean())

    @property
    def accounted(self) -> NDArray[np.int64]:
        """Numbers of the steps that a profile tells accounts of: those that it watched, where they were set apart."""
        return self.profiled if len(self.profiled) else self.step


@dataclass(frozen=True)
class Change:
    """B against A, as shares of A. `told`: whether it is more than chance; `why`: what lacks where it has no range."""

    a: float
    b: float
    change: float
    low: float | None
    high: float | None
    detectable: float | None
    told: bool
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "a_s": self.a,
            "b_s": self.b,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "detectable": self.detectable,
        }


def step_times(tables: Tables, facts: Facts) -> StepTimes | None:
    """None where no input tells how long a kept step took."""
    past = steps_taken(tables, facts)
    rows = past.rows.assign(dur_ns=alone_ns(tables, facts, past))
    rows = rows[rows["kept"].astype(bool) & rows["dur_ns"].notna()]
    traced = frame(tables, "steps", ["step", "capture"])
    seen = traced.loc[traced["capture"].notna(), "step"]
    found = settled(
        rows["step"].to_numpy(dtype=np.int64),
        rows["dur_ns"].to_numpy(dtype=float) / 1e9,
        rows["first"].to_numpy(dtype=bool),
        ((rows["implausible"] != "") | (rows["hung_ns"] > 0)).to_numpy(dtype=bool),
        rows["step"].isin(seen).to_numpy(dtype=bool),
    )
    return found and replace(found, watched=int(np.isin(found.step, seen.dropna().to_numpy(dtype=np.int64)).sum()))


def settled(
    step: NDArray[np.int64],
    seconds: Floats,
    first: NDArray[np.bool_],
    odd: NDArray[np.bool_],
    profiled: NDArray[np.bool_] | None = None,
) -> StepTimes | None:
    """Usual steps, and what was set apart. None where none is left."""
    usual = ~first & ~odd
    apart = {"first of an attempt": int((first & ~odd).sum()), "cannot be true or hung": int(odd.sum())}
    traced, traced_s = NONE, np.zeros(0)
    if profiled is not None and (usual & ~profiled).sum() >= max(LEAST_STEPS, (usual & profiled).sum()):
        traced, traced_s = step[usual & profiled], seconds[usual & profiled]
        apart["profiled"] = len(traced)
        usual &= ~profiled
    step, seconds = step[usual], seconds[usual]
    if not len(step):
        return None
    if len(traced):
        slow, _ = _stalls(traced_s)
        traced, traced_s = traced[~slow], traced_s[~slow]
    warm = _warm(step, seconds)
    step, seconds = step[warm:], seconds[warm:]
    stalled, middle = _stalls(seconds)
    stalls_s = float((seconds[stalled] - middle).sum()) / len(seconds)
    whole = (step, seconds) if stalled.any() else None
    step, seconds = step[~stalled], seconds[~stalled]
    apart |= {STALLS: int(stalled.sum()), "before the pace settled": warm}
    return StepTimes(
        step,
        seconds,
        {k: n for k, n in apart.items() if n},
        stalls_s,
        _moved(step, seconds),
        traced,
        float(traced_s.mean()) if len(traced) else 0.0,
        with_stalls=whole,
        stalls_kept=whole is None and bool((seconds > _usual(seconds)[1]).any()),
    )


def stalls_alike(*of: StepTimes) -> tuple[StepTimes, ...]:
    """Runs that are compared, their stalls set apart in all of them or in none: where they are how one runs, those of
    the others are steps as well. Two runs that stall alike would else differ by all that stalls cost."""
    return tuple(stalling(t) for t in of) if any(t.stalls_kept for t in of) else of


def stalling(times: StepTimes) -> StepTimes:
    """The same with its stalls as steps."""
    if times.with_stalls is None:
        return times
    step, seconds = times.with_stalls
    apart = {why: n for why, n in times.apart.items() if why != STALLS}
    return replace(times, step=step, seconds=seconds, apart=apart, stalls_s=0.0, with_stalls=None)


def _stalls(seconds: Floats) -> tuple[NDArray[np.bool_], float]:
    """Which steps stall, none where they are too many to be stalls, and the median."""
    middle, limit = _usual(seconds)
    stalled = seconds > limit
    return (stalled & False if stalled.mean() > STALLS_SHARE else stalled), middle


def _usual(seconds: Floats) -> tuple[float, float]:
    """The median, and what a usual step takes at the most."""
    middle = float(np.median(seconds))
    spread = ROBUST * float(np.median(np.abs(seconds - middle)))
    return middle, middle + max(STALL_DEVIATIONS * spread, STALL_SHARE * middle)


def _warm(step: NDArray[np.int64], seconds: Floats) -> int:
    """How many steps at the beginning are slower than what follows. None counts for more than the slowest usual one:
    many in a row are a pace, however slow, and one alone is none."""
    found = _stretches(step, np.minimum(seconds, _usual(seconds)[1]))
    if len(found) < 2:
        return 0
    warm = int(found["steps"].iloc[0])
    slower = float(found["median_s"].iloc[0]) > float(found["median_s"].iloc[1])
    return warm if slower and warm <= WARM_SHARE * len(step) else 0


def _moved(step: NDArray[np.int64], seconds: Floats) -> tuple[int, ...]:
    """The steps at which the pace changed for good."""
    return tuple(_stretches(step, seconds)["first_step"].astype(int).tolist()[1:])


def _stretches(step: NDArray[np.int64], seconds: Floats) -> pd.DataFrame:
    """Stretches of one pace; none where most steps take no time."""
    timed = step if np.median(seconds) > 0 else NONE
    return changes_of(pd.DataFrame({"step": timed, "start_ns": 0, "dur_s": seconds[: len(timed)]})).stretches


def compare(a: StepTimes, b: StepTimes, floor: float = FLOOR) -> Change:
    """How much longer a step takes in B than in A."""
    a, b = stalls_alike(a, b)
    return change_of(a.seconds, b.seconds, floor, "step")


def change_of_exact(a: float, b: float, floor: float = FLOOR) -> Change:
    """B against A where nothing scatters: a compiler's bound, a model."""
    change = _share(a, b, "step")
    return Change(a, b, change, change, change, floor, abs(change) >= floor)


def change_beside_exact(a: Floats | float, b: Floats | float, floor: float = FLOOR) -> Change:
    """B against A where one of them is exact: only the other scatters."""
    mean_a, mean_b = float(np.mean(a)), float(np.mean(b))
    change = _share(mean_a, mean_b, "step")
    values = np.atleast_1d(np.asarray(b if np.ndim(a) == 0 else a, dtype=float))
    if why := _too_little(values, values, "step"):
        return Change(mean_a, mean_b, change, None, None, None, False, why)
    v, freedom = variance_of_mean(values)
    error = math.sqrt(v) / float(values.mean()) * mean_b / mean_a
    reach, power = (float(stdtrit(freedom, q)) * error for q in (1 - ALPHA / 2, POWER))
    told = abs(change) > max(reach, floor)
    return Change(mean_a, mean_b, change, change - reach, change + reach, max(reach + power, floor), told)


def _share(a: float, b: float, what: str) -> float:
    """Raises QuestionError where either takes no time."""
    if not (a > 0 and b > 0):
        raise QuestionError(
            f"{what}s that take {min(a, b):g} s on average, of which no share can be told",
            expected="times above 0 in both runs",
        )
    return b / a - 1


def change_of(a: Floats, b: Floats, floor: float = FLOOR, what: str = "value") -> Change:
    """B against A, from values that hang together in their order."""
    mean_a, mean_b = float(a.mean()), float(b.mean())
    change = _share(mean_a, mean_b, what)
    if why := _too_little(a, b, what):
        return _apart(a, b, change) or Change(mean_a, mean_b, change, None, None, None, False, why)
    (va, fa), (vb, fb) = variance_of_mean(a), variance_of_mean(b)
    ra, rb = va / mean_a**2, vb / mean_b**2
    freedom = (ra + rb) ** 2 / (ra**2 / fa + rb**2 / fb) if ra + rb else math.inf
    error = math.sqrt(ra + rb + BETWEEN**2) * mean_b / mean_a
    reach = float(stdtrit(min(freedom, 1e6), 1 - ALPHA / 2)) * error
    seen = reach + float(stdtrit(min(freedom, 1e6), POWER)) * error
    told = abs(change) > max(reach, floor)
    return Change(mean_a, mean_b, change, change - reach, change + reach, max(seen, floor), told)


def _too_little(a: Floats, b: Floats, what: str) -> str:
    """Why the scatter of these values tells no range; empty where it does."""
    short = min(len(a), len(b))
    if short < LEAST_STEPS:
        few_of = f"{fmt.count(short, f'settled {what}')} {'is' if short == 1 else 'are'} too few"
        return f"{few_of}: {LEAST_STEPS} are needed"
    if (few := min(worth(a), worth(b))) < LEAST_WORTH:
        return f"{what}s hang together so much that {short} are worth {few:.0f}: {LEAST_WORTH} are needed"
    return ""


def _apart(a: Floats, b: Floats, change: float) -> Change | None:
    """Where every value of the one is beyond every value of the other by far, no scatter is needed: the range is that
    of the nearest and the farthest two."""
    if min(len(a), len(b)) < FEW_APART or not a.min() > 0:
        return None
    low, high = float(b.min() / a.max()) - 1, float(b.max() / a.min()) - 1
    if not (low > FAR or high < -FAR):
        return None
    return Change(float(a.mean()), float(b.mean()), change, low, high, None, True)


def worth(values: Floats) -> float:
    """How many independent steps these are worth, were each like the one before it by as much as they show:
    n (1 - r) / (1 + r). The correlation r of neighbours is taken as high as a short series may hide (Marriott and Pope
    1954: by (1 + 3 r) / n; and half a deviation of its own scatter)."""
    n, d = len(values), values - values.mean()
    whole = float(d @ d)
    if whole <= n * (ROUNDING * float(values.mean())) ** 2:
        return float(n)  # all alike but for rounding: nothing hangs together
    r = float(d[1:] @ d[:-1]) / whole
    r = max(r, 0.0)
    r = min(r + (1 + 3 * r) / n + 0.5 * math.sqrt((1 - r * r) / n), 0.999)
    return n * (1 - r) / (1 + r)


def variance_of_mean(values: Floats) -> tuple[float, float]:
    """(variance of the mean, its degrees of freedom): the largest that any length of block shows, or that the
    correlation of neighbours makes of it."""
    few = max(worth(values), 1.5)
    best, freedom = float(values.var(ddof=1)) / (few - 1), few - 1
    size = 1
    while (count := len(values) // size) >= LEAST_BLOCKS or size == 1:
        means = values[: count * size].reshape(count, size).mean(axis=1)
        v = float(means.var(ddof=1)) / count if count > 1 else 0.0
        if v > best:
            best, freedom = v, float(count - 1)
        size *= 2
    return best * (1 + UNSURE / few) ** 2, freedom

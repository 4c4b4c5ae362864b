"""Whether one job kept less of its time than another, or held more for a step, for a reason, told from the stretches of
time that each lost.

A stretch is time held and not kept, from one kept step to the next: a stop with what it took back and what followed, a
save, a start. Were the two jobs alike, each stretch could as well have befallen the other. So with stretches d of a job
that held its chips for H, and goodput G = 1 - sum of d / H,

    v      = sum of (d / H)^2,  or what the scatter of its loss over PARTS equal parts of H shows, whichever is more
    error  = sqrt(vA + vB + (the largest d / H of both)^2 + BETWEEN^2)
    range  = GB - GA -+ z(1 - ALPHA / 2) x error

Which of two jobs alike a stretch befalls is chance, and its sign in the sum is that of a coin: a sum of such signs goes
beyond z times its error hardly ever, whatever the stretches cost, as long as they do not come together. The largest is
counted once more, for one that neither showed. Of fewer than LEAST stretches of either nothing is told.

What is held a kept step is over goodput what a step itself takes: its range is that of goodput, as shares of the lower
of both, with that of steps. Where chips or steps differ so much that B would hold more even had it lost nothing and A
twice as much, or less the other way round, no stretches are needed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from analyzers.base import Facts
from analyzers.difference.step_time import ALPHA, BETWEEN, variance_of_mean
from analyzers.time.calendar import CODE, Calendar
from analyzers.time.job_past import job_past
from runs.tables import Tables

LEAST, PARTS = 8, 64
LITTLE = 1e-9  # of all time: kept steps take no less
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LostTime:
    """`stretches_s`: seconds of each stretch of time held and not kept, in order; `held_s`: all time held; `by_part`:
    the share lost of each of PARTS equal parts of it."""

    stretches_s: Floats
    held_s: float
    by_part: Floats


def lost_time(tables: Tables, facts: Facts) -> LostTime | None:
    """None where no input tells when which step was taken."""
    _, days = job_past(tables, facts)
    if days is None or not len(days.steps):
        return None
    return _of(days)


def _of(days: Calendar) -> LostTime | None:
    edges, labels = days.painting.edges, days.painting.label
    seconds = np.diff(edges) / 1e9
    held = (labels != CODE["outside"]) & (seconds > 0)
    seconds, lost = seconds[held], labels[held] != CODE["kept"]
    if not len(seconds):
        return None
    bounds = np.flatnonzero(np.diff(lost.astype(np.int8)) != 0) + 1  # neighbours alike are one stretch
    begins = np.concatenate(([0], bounds))
    lengths = np.add.reduceat(seconds, begins)
    return LostTime(lengths[lost[begins]], float(seconds.sum()), _by_part(seconds, lost))


def _by_part(seconds: Floats, lost: NDArray[np.bool_]) -> Floats:
    at = np.concatenate(([0.0], np.cumsum(seconds)))
    so_far = np.concatenate(([0.0], np.cumsum(seconds * lost)))
    cuts = np.linspace(0.0, at[-1], PARTS + 1)
    return np.diff(np.interp(cuts, at, so_far)) / (at[-1] / PARTS)


def goodput_range(a: LostTime, b: LostTime, change: float) -> tuple[float, float] | str:
    """Between which B's goodput less A's lies, as shares; why that cannot be told."""
    reach = _reach(a, b)
    return reach if isinstance(reach, str) else (change - reach, change + reach)


def held_range(a: LostTime, b: LostTime, change: float, steps: float) -> tuple[float, float] | str:
    """Between which B's chip time held a kept step over A's, less 1, lies; why that cannot be told. `steps`: by which
    share the time of the steps themselves may be off."""
    reach, kept = _reach(a, b), 1 - max(_lost_share(of) for of in (a, b))
    found = [ends for ends in [_whatever_was_lost(a, b, change, steps)] if not ends[0] <= 0 <= ends[1]]
    if not isinstance(reach, str):
        off = math.hypot(reach / max(kept, LITTLE), steps) * (1 + change)
        found.append((change - off, change + off))
    elif not found:
        return reach
    return min(found, key=lambda ends: ends[1] - ends[0])


def _whatever_was_lost(a: LostTime, b: LostTime, change: float, steps: float) -> tuple[float, float]:
    """Were nothing lost of the one, and twice as much of the other."""
    lost_a, lost_b = _lost_share(a), _lost_share(b)
    low = (1 + change) * (1 - steps) * (1 - lost_b) / (1 + lost_a) - 1
    high = (1 + change) * (1 + steps) * (1 + lost_b) / max(1 - lost_a, LITTLE) - 1
    return low, high


def _lost_share(of: LostTime) -> float:
    return float(of.stretches_s.sum()) / of.held_s


def _reach(a: LostTime, b: LostTime) -> float | str:
    """How far the lost shares of both may be apart by chance; why that cannot be told."""
    few = min(len(a.stretches_s), len(b.stretches_s))
    if few < LEAST:
        return f"{few} stretches of lost time are too few to tell their scatter: {LEAST} of each job are needed"
    largest = max(float(of.stretches_s.max()) / of.held_s for of in (a, b))
    error = math.sqrt(_variance(a) + _variance(b) + largest**2 + BETWEEN**2)
    return float(ndtri(1 - ALPHA / 2)) * error


def _variance(of: LostTime) -> float:
    by_event = float(np.square(of.stretches_s / of.held_s).sum())
    return max(by_event, variance_of_mean(of.by_part)[0])

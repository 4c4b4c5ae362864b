"""Whether a metric drifts over many runs: it moves from the first third to the last, with no single place where it did.

rest     what a curve of degree DEGREE leaves of the values: their scatter, which hangs together from run to run
sure     a t of the straight slope by that scatter, over as many runs as count as independent, leaves less than ALPHA to
         chance, and the middles of the first and the last third differ by FLOOR or more, the way that the slope goes

A drift that bends is one all the same, and its bend is no scatter: so more than a straight line is taken off.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from analyzers.history_of_metric.change_points import ALPHA, FLOOR, LEAST, NOISE, Floats, independent, without_outliers

DEGREE = 3
LEAST_FREEDOM = 4.0  # of what a smooth drift leaves, neighbours are alike: that is its bend, not few runs


@dataclass(frozen=True, kw_only=True)
class Drift:
    """`before`, `after`: middles of the first and the last third of the runs; `change`: between them, in the unit of
    the values, or a share; `chance`: how likely chance alone shows such a slope."""

    before: float
    after: float
    change: float
    chance: float

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def drift(values: Floats) -> Drift | None:
    """None where it is not sure, or there are fewer values than LEAST."""
    n = len(values)
    if n < LEAST:
        return None
    y, x = without_outliers(values), np.linspace(-1.0, 1.0, n)
    line, curve = (np.polynomial.Legendre.fit(x, y, degree, domain=[-1, 1]) for degree in (1, DEGREE))
    rest, slope = np.asarray(y - curve(x), dtype=np.float64), float(line.coef[1])
    counts = independent(rest, DEGREE + 1)
    deviation = max(math.sqrt(float(rest @ rest) / (n - DEGREE - 1)), NOISE)
    error = deviation / math.sqrt(float(x @ x) * counts / n)
    chance = 2 * float(stdtr(max(counts - DEGREE - 1, LEAST_FREEDOM), -abs(slope) / error))
    before, after = (float(np.median(part)) for part in (y[: n // 3], y[-(n // 3) :]))
    change = after - before
    if chance >= ALPHA or abs(change) < FLOOR or change * slope <= 0:
        return None
    return Drift(before=before, after=after, change=change, chance=chance)

"""Whether a metric drifts over many runs: it moves from the first third to the last, with no single place where it did.

rest     what a curve of degree DEGREE leaves of the values: their scatter, which hangs together from run to run
sure     a t of the straight slope by that scatter, over as many runs as count as independent, leaves less than ALPHA to
         chance, and the middles of the first and the last third differ by FLOOR or more, the way that the slope goes

A drift that bends is one all the same, and its bend is no scatter: so more than a straight line is taken off. So is one
that jumps once on its way, or jumps and goes on at another pace: where it is not sure beside a curve, a curve with the
one jump that leaves least is taken off, then one with a jump and a turn, and its chance is that by the number of places
where the jump could have been.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from analyzers.history_of_metric.change_points import (
    ALPHA,
    FLOOR,
    LEAST,
    NOISE,
    SHORTEST,
    Floats,
    independent,
    without_outliers,
)

DEGREE = 3
WITH_JUMP = 2 * DEGREE + 3  # numbers that a curve takes with a jump, whose place is looked for
WITH_TURN = WITH_JUMP + 2  # and with another pace from there on
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
    slope, curve = float(np.polynomial.Legendre.fit(x, y, 1, domain=[-1, 1]).coef[1]), _curve(x)
    rest = y - curve @ (curve.T @ y)
    chance = _chance(rest, x, slope, DEGREE + 1)
    for less, taken in ((_less_a_jump, WITH_JUMP), (_less_a_turn, WITH_TURN)):
        if chance >= ALPHA:
            chance = _chance(less(rest, curve), x, slope, taken) * (n - 2 * SHORTEST + 1)
    before, after = (float(np.median(part)) for part in (y[: n // 3], y[-(n // 3) :]))
    change = after - before
    if chance >= ALPHA or abs(change) < FLOOR or change * slope <= 0:
        return None
    return Drift(before=before, after=after, change=change, chance=chance)


def _curve(x: Floats) -> Floats:
    """Columns that span all curves of DEGREE, at right angles and of length 1."""
    return np.linalg.qr(np.polynomial.legendre.legvander(x, DEGREE))[0]


def _less_a_jump(rest: Floats, curve: Floats) -> Floats:
    """What curve and one jump leave, the jump where that is least. `rest`: what the curve leaves alone."""
    n = len(rest)
    places = np.arange(SHORTEST, n - SHORTEST + 1)
    after = np.cumsum(np.c_[rest, curve][::-1], axis=0)[::-1][places]  # sums from each place on
    own = n - places - (after[:, 1:] ** 2).sum(axis=1)  # of each jump, what no curve is
    best = int(np.argmax(after[:, 0] ** 2 / own))
    jump = (np.arange(n) >= places[best]) - curve @ after[best, 1:]
    return rest - after[best, 0] / own[best] * jump


def _less_a_turn(rest: Floats, curve: Floats) -> Floats:
    """What curve, one jump and another slope from there on leave, the place where that is least."""
    n = len(rest)
    x, places = np.linspace(-1.0, 1.0, n), np.arange(SHORTEST, n - SHORTEST + 1)
    sums, moments = (
        np.cumsum(columns[::-1], axis=0)[::-1][places]
        for columns in (np.c_[rest, curve, x], np.c_[rest, curve, x] * x[:, None])
    )
    at, size = x[places], (n - places).astype(float)
    hinges = moments - at[:, None] * sums  # of (x - at) from each place on: with rest, with the curve, with x
    steps, far = sums[:, 1:-1], sums[:, -1] - at * size
    alike = size - (steps**2).sum(axis=1)
    both = far - (steps * hinges[:, 1:-1]).sum(axis=1)
    turned = hinges[:, -1] - at * far - (hinges[:, 1:-1] ** 2).sum(axis=1)
    a, b = sums[:, 0], hinges[:, 0]
    whole = alike * turned - both**2
    jump, turn = (a * turned - b * both) / whole, (b * alike - a * both) / whole
    best = int(np.argmax(jump * a + turn * b))
    after = np.arange(n) >= places[best]
    found = jump[best] * after + turn[best] * np.where(after, x - at[best], 0.0)
    return rest - (found - curve @ (curve.T @ found))


def _chance(rest: Floats, x: Floats, slope: float, taken: int) -> float:
    """How likely chance alone shows such a slope beside this scatter, of which so many numbers were taken off."""
    n, counts = len(rest), independent(rest, taken)
    deviation = max(math.sqrt(float(rest @ rest) / max(n - taken, 1)), NOISE)
    error = deviation / math.sqrt(float(x @ x) * counts / n)
    return 2 * float(stdtr(max(counts - taken, LEAST_FREEDOM), -abs(slope) / error))

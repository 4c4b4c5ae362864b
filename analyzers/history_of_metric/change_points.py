"""Where a metric changed for good over many runs, by how much, and how sure that is.

Values of runs in order, y (logarithms where a change is told as a share). Scatter hangs together from run to run, since
machines, networks and neighbours stay as they are for days, so n runs count for fewer.

    outliers   a value further than CLIP deviations from the median of five around it counts as if it lay there
    levels     for one change, two, three ... the places that leave the least squared deviations (`ruptures`, optimal
               partitioning), with SHORTEST runs or more between two
    told       the most changes, up to MOST, of which each is sure: of four levels one or two changes leave the others
               in the scatter, and are not sure where all three are
    drift      three changes or more must leave less than a curve of degree DEGREE does: of what moves all the while
               many levels look sure, and none of them is one
    order      where all of these are sure, the values in another order must hardly ever show as much (`shuffles`):
               a few odd runs side by side are a level by any t, and no rarity among very many runs

A change is sure where it is FLOOR or more, and where a t of the two levels beside it, with the number of runs that
count as independent, times the number of places where it could have been (Bonferroni), leaves less than ALPHA to
chance. So the penalty of one more change is that t: it grows with the scatter, with how much runs hang together, and
with the logarithm of their number. The order of the values may leave as much to chance.

The correlation of neighbours, r, is taken of what the levels leave, and higher by what taking so many levels off hides
(Marriott and Pope 1954) and by half a deviation of its own scatter: n (1 - r) / (1 + r) runs are independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from analyzers.history_of_metric.shuffles import chance_of_order

LEAST, SHORTEST = 12, 3  # runs of a history, and on either side of a change
AROUND, CLIP = 5, 3.0
MOST = 12  # changes
MANY, DEGREE = 3, 5  # changes that may be a drift in pieces; degree of a curve that a drift follows
ALPHA, RANGE = 0.005, 0.99  # of each change; what the range of one holds
NOISE, FLOOR = 0.001, 0.005  # as in comparisons of two: what two starts differ by, and the least change that is told
ROBUST = 1.4826  # deviations of a normal scatter by its median absolute deviation
MOST_R = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """`at`: the first run of the new level. `before`, `after`: levels of the stretches on either side, in the unit of
    the values; `change`, `low`, `high`: of the level, in theirs too. `chance`: how likely chance alone shows as much
    anywhere in such a series, at most."""

    at: int
    before: float
    after: float
    change: float
    low: float
    high: float
    chance: float


def change_points(values: Floats) -> tuple[ChangePoint, ...]:
    """In order. Empty where nothing changed, or there are fewer values than LEAST."""
    if len(values) < LEAST:
        return ()
    y, told = without_outliers(values), list[ChangePoint]()
    for count in range(1, min(MOST, len(y) // SHORTEST - 1) + 1):
        found = _tested(y, _best(y, count))
        if all(map(_sure, found)) and (count < MANY or not _drifts(y, found)):
            found = _in_any_order(values, told, found)
            told = found if all(map(_sure, found)) else told
    return tuple(told)


def _drifts(y: Floats, found: Sequence[ChangePoint]) -> bool:
    """Whether a curve leaves as little scatter as these levels, each by the numbers that it takes."""
    bounds, x = [0, *(c.at for c in found), len(y)], np.linspace(-1.0, 1.0, len(y))
    levels = sum(float(((part := y[a:b]) - part.mean()) @ (part - part.mean())) for a, b in pairwise(bounds))
    rest = y - np.polynomial.Legendre.fit(x, y, DEGREE, domain=[-1, 1])(x)
    freedom = max(len(y) - 2 * len(found) - 1, 1)
    return levels / freedom >= float(rest @ rest) / (len(y) - DEGREE - 1)


def _in_any_order(values: Floats, told: Sequence[ChangePoint], found: Sequence[ChangePoint]) -> list[ChangePoint]:
    """These changes, each by chance as likely at least as that another order of the values shows as many more than
    are told."""
    more = len(found) - len(told)
    chance = chance_of_order(values, [c.at for c in told], more, shortest=SHORTEST, noise=NOISE)
    return [replace(c, chance=max(c.chance, chance)) for c in found]


def _sure(point: ChangePoint) -> bool:
    return point.chance < ALPHA and abs(point.change) >= FLOOR


def without_outliers(values: Floats) -> Floats:
    around = np.lib.stride_tricks.sliding_window_view(np.pad(values, AROUND // 2, mode="reflect"), AROUND)
    middle = np.median(around, axis=1)
    apart = ROBUST * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2)
    reach = CLIP * max(apart, NOISE)
    return np.clip(values, middle - reach, middle + reach)


def _best(y: Floats, count: int) -> list[int]:
    """So many changes as leave the least squared deviations."""
    import ruptures  # late: only who asks for a history pays for it

    found = (
        ruptures.KernelCPD(kernel="linear", min_size=SHORTEST)
        .fit((y - np.median(y)).reshape(-1, 1))
        .predict(n_bkps=count)
    )
    return [int(k) for k in (found or [])[:-1]]


def independent(rest: Floats, levels: int) -> float:
    """How many independent values these residuals are worth: n (1 - r) / (1 + r). The correlation r of neighbours is
    taken as much higher as taking off so many levels makes it look lower (Marriott and Pope 1954, for each level)."""
    n, whole = len(rest), float(rest @ rest)
    r = max(float(rest[1:] @ rest[:-1]) / whole, 0.0) if whole > n * (NOISE / 10) ** 2 else 0.0
    r += (1 + 3 * r) * levels / n + 0.5 * math.sqrt((1 - r * r) / n)
    r = min(r, MOST_R)
    return n * (1 - r) / (1 + r)


def _tested(y: Floats, cuts: list[int]) -> list[ChangePoint]:
    bounds = [0, *cuts, len(y)]
    levels = [float(y[a:b].mean()) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    rest = y - np.repeat(levels, np.diff(bounds))
    counts = independent(rest, len(levels))
    deviation = max(math.sqrt(float(rest @ rest) / max(len(y) - len(levels), 1)), NOISE)
    share, freedom = counts / len(y), max(counts - len(levels), 1.0)
    places = len(y) - 2 * SHORTEST + 1
    found = []
    for k, at in enumerate(cuts):
        change = levels[k + 1] - levels[k]
        sizes = [max((bounds[j + 1] - bounds[j]) * share, 1.0) for j in (k, k + 1)]
        error = deviation * math.sqrt(1 / sizes[0] + 1 / sizes[1])
        chance = min(2 * float(stdtr(freedom, -abs(change) / error)) * places, 1.0)
        reach = float(stdtrit(freedom, (1 + RANGE) / 2)) * error
        found.append(
            ChangePoint(
                at=at,
                before=levels[k],
                after=levels[k + 1],
                change=change,
                low=change - reach,
                high=change + reach,
                chance=chance,
            )
        )
    return found

"""Runs that no other beats in two figures at once, and values of which lines of one product or quotient are drawn.

a run is on the front   no other is as good in both figures and better in one (Pareto)
iso-line of a product   y = c / x;  of a quotient   y = c x
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyzers.several.against import Better

MOST_LINES = 5
Numbers = Sequence[float] | NDArray[np.float64]


def front(x: Numbers, y: Numbers, x_better: Better, y_better: Better) -> tuple[int, ...]:
    """Which points no other beats, from the best x on; alike ones are all on it. Empty where either figure has no
    better direction."""
    if not x_better or not y_better or not len(x):
        return ()
    a = np.array(x, float) * (1 if x_better == "less" else -1)  # both: the less the better
    b = np.array(y, float) * (1 if y_better == "less" else -1)
    order = np.lexsort((b, a))
    kept, best, at = list[int](), np.inf, np.nan
    for n in order:
        if b[n] < best or (b[n] == best and a[n] == at):
            kept.append(int(n))
            best, at = b[n], a[n]
    return tuple(kept)


def iso_values(made: Numbers) -> tuple[float, ...]:
    """Round values between the least and the greatest of what the points make: 1, 2 or 5 of a power of ten, thinned to
    MOST_LINES; of points that make all the same, that alone."""
    some = np.array([v for v in made if np.isfinite(v) and v > 0], float)
    if not len(some):
        return ()
    low, high = float(some.min()), float(some.max())
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    found = [m * 10.0**p for p in powers for m in (1, 2, 5) if low * 0.999 <= m * 10.0**p <= high * 1.001]
    if not found:
        return (float(np.sqrt(low * high)),)
    return tuple(found[:: -(-len(found) // MOST_LINES)])


def iso_line(value: float, x: NDArray[np.float64], product: bool) -> NDArray[np.float64]:
    """y along x, which is above 0."""
    return value / x if product else value * x

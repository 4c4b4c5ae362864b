"""How much work between two saves keeps the most of it, where failures come at random (J. T. Daly, A higher order
estimate of the optimum checkpoint interval, 2006): M (1 + W(-e^(-1 - C/M))), with W Lambert's function, C how long a
save blocks and M the mean time to failure. To first order that is sqrt(2 C M) - 2C/3; it is no longer than M.
"""

import math

_SMALL = 0.03  # sqrt(2 C/M) below which it is taken from its series: there its logarithm cancels
_SERIES = (1.0, -1 / 3, 1 / 36, 1 / 270, 1 / 4320, -1 / 17010)  # in powers of s = sqrt(2 C/M)
_LARGE = 30.0  # C/M from which it is M to all digits


def best_interval_s(save_s: float, mttf_s: float) -> float:
    """Seconds of work between two saves, to 1e-10 of it."""
    return _share(save_s / mttf_s) * mttf_s


def _share(save: float) -> float:
    """The interval in units of the mean time to failure, where (1 - x) e^(x + save) = 1. From the right Newton's
    steps come down to it, since what is solved is convex."""
    s = math.sqrt(2 * save)
    if s < _SMALL:
        return sum(a * s ** (k + 1) for k, a in enumerate(_SERIES))
    if save > _LARGE:
        return 1.0
    x = -math.expm1(-1 - save)
    for _ in range(100):
        less = (-x - math.log1p(-x) - save) * (1 - x) / x
        x -= less
        if less <= 1e-15 * x:
            break
    return x

"""Mean time to failure of what fails at random: its rate with an interval, and the checks that this view holds.

Interruptions counted over a fixed time T are taken as a Poisson process. With n of them the rate is n / T; its exact
two-sided interval (Garwood, 1936) is [chi2(a/2; 2n), chi2(1 - a/2; 2n + 2)] / 2T, and MTTF is its inverse.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv, ndtr  # scipy.stats has these by name, and takes half a second to load

CONFIDENCE = 0.95
LEAST = 8
"""Events below which neither trend nor distribution is tested: such a test would find nothing."""

# Kolmogorov's distance from an exponential whose mean is estimated from the same values: upper points of Stephens'
# D* = (D - 0.2/n) (sqrt n + 0.26 + 0.5/sqrt n) (JASA 69, 1974).
_STEPHENS = ((0.15, 0.926), (0.10, 0.990), (0.05, 1.094), (0.025, 1.190), (0.01, 1.308))


@dataclass(frozen=True)
class Mttf:
    """`count` events in `exposure_s` seconds: their mean time and its two-sided 95 % interval, seconds.

    `mean_s` and `high_s` are None where nothing happened: then only that it is longer than `low_s` can be said. All
    are None without exposure.
    """

    count: int
    exposure_s: float | None
    mean_s: float | None
    low_s: float | None
    high_s: float | None

    def to_dict(self) -> dict[str, float | None]:
        return {"mean": self.mean_s, "low": self.low_s, "high": self.high_s}


def mttf(count: int, exposure_s: float | None, confidence: float = CONFIDENCE) -> Mttf:
    """Mean time to failure from a count and the time in which it was counted."""
    if not exposure_s or exposure_s <= 0:
        return Mttf(count, exposure_s, None, None, None)
    least, most = rate_interval(count, confidence)
    return Mttf(
        count,
        exposure_s,
        mean_s=exposure_s / count if count else None,
        low_s=exposure_s / most,
        high_s=exposure_s / least if least else None,
    )


def rate_interval(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Least and greatest expected count (Poisson mean) that `count` events are compatible with, by Garwood."""
    alpha = 1 - confidence
    low = float(gammaincinv(count, alpha / 2)) if count else 0.0  # half of chi2's quantile at twice as many degrees
    return low, float(gammaincinv(count + 1, 1 - alpha / 2))


@dataclass(frozen=True)
class Spread:
    """Whether times between interruptions look exponential. `word`: yes, no or too_few.

    `p_low`, `p_high`: between which the p-value lies, from a table of six points (0 and 1 at its ends).
    `variation`: standard deviation over mean; 1 for an exponential, less where they come at even steps, more where they
    come in bursts.
    """

    word: str
    distance: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    variation: float | None = None


def exponential(gaps_s: np.ndarray) -> Spread:
    """Stephens' form of the Kolmogorov-Smirnov test for an exponential with unknown mean, at 5 %."""
    n = len(gaps_s)
    if n < LEAST or not (gaps_s > 0).any():
        return Spread("too_few")
    said = 1 - np.exp(-np.sort(gaps_s) / gaps_s.mean())
    rank = np.arange(n)
    distance = float(max((said - rank / n).max(), ((rank + 1) / n - said).max()))
    star = (distance - 0.2 / n) * (np.sqrt(n) + 0.26 + 0.5 / np.sqrt(n))
    beyond = [p for p, point in _STEPHENS if star > point]
    within = [p for p, point in _STEPHENS if star <= point]
    return Spread(
        word="no" if beyond and beyond[-1] <= 1 - CONFIDENCE + 1e-12 else "yes",
        distance=distance,
        p_low=within[0] if within else 0.0,
        p_high=beyond[-1] if beyond else 1.0,
        variation=float(gaps_s.std(ddof=1) / gaps_s.mean()),
    )


_AT_THE_END = 1e-9  # of the exposure: as near as sums of seconds come


@dataclass(frozen=True)
class Trend:
    """Laplace's test. `word`: none, more (they came faster and faster), fewer, or too_few. `score` is standard normal
    where the rate is constant."""

    word: str
    score: float | None = None
    p: float | None = None


def trend(times_s: np.ndarray, exposure_s: float) -> Trend:
    """Laplace's test of times in [0, exposure_s) against a constant rate: U = (mean/T - 1/2) sqrt(12 n), at 5 %.

    One that ended the exposure, as the last stop of a job that did not come back, was not drawn from that time: the
    others count.
    """
    times_s = times_s[times_s < exposure_s * (1 - _AT_THE_END)]
    n = len(times_s)
    if n < LEAST or exposure_s <= 0:
        return Trend("too_few")
    score = float((times_s.mean() / exposure_s - 0.5) * np.sqrt(12 * n))
    p = float(2 * ndtr(-abs(score)))
    return Trend("none" if p >= 1 - CONFIDENCE else "more" if score > 0 else "fewer", score, p)


@dataclass(frozen=True)
class Lemons:
    """Which hosts failed improbably often. Arrays are parallel to the counts that were asked about.

    `p`: probability of so many or more on one host, if all `hosts` were alike; `p_holm`: the same, corrected for
    having looked at all of them (Holm, 1979). `needed`: failures on one host that would stand out; None where no
    number could, because there is one host only.
    """

    expected: float
    p: np.ndarray
    p_holm: np.ndarray
    lemon: np.ndarray
    needed: int | None


def lemons(counts: np.ndarray, hosts: int) -> Lemons:
    """Test each host's failures against a Poisson count of the mean over all `hosts`, those without any included."""
    counts = np.asarray(counts, dtype=np.int64)
    hosts = max(hosts, len(counts), 1)
    total = int(counts.sum())
    expected = total / hosts
    if hosts < 2:
        ones = np.ones(len(counts))
        return Lemons(expected, ones, ones, np.zeros(len(counts), dtype=bool), None)
    p = _tail(counts, expected)
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * (hosts - np.arange(len(p)))), 1.0)
    return Lemons(expected, p, corrected, corrected < 1 - CONFIDENCE, _needed(expected, hosts))


def _needed(expected: float, hosts: int) -> int:
    """The least count whose tail, times all hosts, is below 5 %: what the worst host must have."""
    least = int(expected) + 1
    while _tail(np.array([least]), expected)[0] > (1 - CONFIDENCE) / hosts:
        least += 1
    return least


def _tail(counts: np.ndarray, expected: float) -> np.ndarray:
    """Probability of so many or more of a Poisson count with this mean."""
    return np.where(counts > 0, gammainc(np.maximum(counts, 1), expected), 1.0)


def as_json(checked: Spread | Trend) -> dict[str, Any]:
    """The fields of a check, for the JSON answer."""
    return dict(vars(checked))

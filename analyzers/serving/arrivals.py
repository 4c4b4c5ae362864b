"""How evenly requests arrive: gaps between them, counts in windows, and what a Poisson process would give instead.

CV                    standard deviation of the gaps by their mean (of all gaps: divided by their number, not by one
                      less); 1 for a Poisson process, 0 for a metronome
index of dispersion   variance of the counts in windows of one length by their mean; 1 for a Poisson process at any
                      length, and growing with the length where the rate itself drifts
lag correlation       of each gap with the next; 0 for a Poisson process, -1 where short and long take turns
range of chance       where 99 of 100 Poisson processes of the same mean rate would lie
"""

from dataclasses import dataclass

import numpy as np

CHANCE = 0.99  # a range that holds so large a share of Poisson processes
LEAST_WINDOWS = 10  # fewer say nothing of a variance
CV_SLACK, DISPERSION_SLACK = 0.10, 1.5  # what no queue would notice, however sure it is that it is there
LEAST_GAPS = 30
SURE = 2.576  # standard deviations: 99 of 100 lie within
TAKE_TURNS = 0.25  # gaps so strongly against the one before halve the variance of counts


@dataclass(frozen=True)
class Window:
    """Counts in windows of one length, the last part of one left out.

    `dispersion` None: fewer than LEAST_WINDOWS. `chance_low`, `chance_high`: its range of chance. `chance_peak_per_s`:
    the rate that the busiest of so many windows of a Poisson process stays at or below, 99 times in 100.
    `empty_share`: windows without a request.
    """

    window_s: float
    windows: int
    mean_per_s: float
    peak_per_s: float
    peak_at_s: float
    peak_to_mean: float
    empty_share: float
    dispersion: float | None
    chance_low: float | None
    chance_high: float | None
    chance_peak_per_s: float

    @property
    def beyond_chance(self) -> bool:
        """Whether counts vary more than chance explains, and enough to matter."""
        return self.dispersion is not None and self.dispersion > max(self.chance_high, DISPERSION_SLACK)

    @property
    def below_chance(self) -> bool:
        """Whether counts vary less than chance explains, and enough to matter."""
        return self.dispersion is not None and self.dispersion < min(self.chance_low, 1 / DISPERSION_SLACK)


def window(times_s: np.ndarray, window_s: float) -> Window | None:
    """Counts of sorted arrival times from the first on; None where not even one whole window passed."""
    from scipy.special import chdtri  # late: a page about training never needs it

    since = times_s - times_s[0]
    windows = int(since[-1] // window_s)
    if windows < 1:
        return None
    index = np.floor_divide(since, window_s).astype(np.int64)
    index = index[index < windows]
    starts = np.flatnonzero(np.diff(index, prepend=-1))  # of each run of one index: empty windows cost no memory
    counts = np.diff(np.append(starts, len(index)))
    mean = len(index) / windows
    dispersion = low = high = None
    if windows >= LEAST_WINDOWS:
        freedom = windows - 1
        dispersion = float((counts.astype(float) ** 2).sum() / windows - mean**2) / mean
        tail = (1 - CHANCE) / 2
        low, high = (float(chdtri(freedom, share)) / freedom for share in (1 - tail, tail))
    busiest = int(np.argmax(counts))
    return Window(
        window_s=window_s,
        windows=windows,
        mean_per_s=mean / window_s,
        peak_per_s=float(counts[busiest]) / window_s,
        peak_at_s=float(index[starts[busiest]] * window_s),
        peak_to_mean=float(counts[busiest]) / mean,
        empty_share=1 - len(counts) / windows,
        dispersion=dispersion,
        chance_low=low,
        chance_high=high,
        chance_peak_per_s=chance_peak(mean, windows) / window_s,
    )


def chance_peak(mean: float, windows: int) -> float:
    """The count that the busiest of so many windows of a Poisson process, each `mean` on average, stays at or below,
    99 times in 100."""
    from scipy.special import pdtrik

    return float(np.ceil(pdtrik(CHANCE ** (1 / windows), mean)))


def chance_dip(mean: float, windows: int) -> float:
    """The count that the emptiest of so many windows of a Poisson process keeps to, 99 times in 100."""
    from scipy.special import pdtrik

    least = pdtrik(1 - CHANCE ** (1 / windows), mean)
    return float(max(np.floor(least), 0.0)) if np.isfinite(least) else 0.0


@dataclass(frozen=True)
class Gaps:
    """Gaps between arrivals, s. `cv` None: all came at once. `zero_share`: gaps of exactly nothing. `lag`: the
    correlation of each gap with the next, 0 where all are alike."""

    gaps: int
    mean: float
    std: float
    cv: float | None
    p50: float
    p99: float
    max: float
    zero_share: float
    lag: float = 0.0

    @property
    def slack(self) -> float:
        """How far a CV lies from 1 by chance alone, or too little to matter."""
        return max(CV_SLACK, SURE / np.sqrt(self.gaps))


def gaps(times_s: np.ndarray) -> Gaps | None:
    """Of sorted arrival times; None where there are fewer than two."""
    between = np.diff(times_s).round(9)  # inputs are kept in whole nanoseconds: what is less is of the sums here
    if not len(between):
        return None
    alike = between.min() == between.max()
    mean = float(between[0] if alike else between.mean())
    std = 0.0 if alike else float(between.std())
    p50, p99 = np.percentile(between, [50, 99])
    return Gaps(
        gaps=len(between),
        mean=mean,
        std=std,
        cv=std / mean if mean > 0 else None,
        p50=float(p50),
        p99=float(p99),
        max=float(between.max()),
        zero_share=float((between == 0).mean()),
        lag=_lag(between - mean),
    )


def _lag(apart: np.ndarray) -> float:
    power = float(apart @ apart)
    return float(apart[:-1] @ apart[1:]) / power if power > 0 else 0.0


def shape(between: Gaps | None, windows: list[Window]) -> str:
    """What the arrivals are like: `poisson`, `bursty` (gaps vary more than chance), `drifting` (gaps look like chance,
    counts do not: the rate changes), `even` (gaps vary less: a paced client), `paced` (gaps vary as much as chance or
    more, but the counts over time less: pairs at even times), `at_once`, or `unknown` (too few).

    The CV of n gaps of a Poisson process has a standard deviation of 1/sqrt(n), and so has their lag correlation.
    """
    if between is not None and between.cv is None:
        return "at_once"
    if between is None or between.gaps < LEAST_GAPS:
        return "unknown"
    slack = between.slack
    judged = [w for w in windows if w.dispersion is not None]
    varied = any(w.beyond_chance for w in judged)
    turns = between.lag < -max(TAKE_TURNS, SURE / np.sqrt(between.gaps))
    level = turns or bool(judged and judged[-1].below_chance)
    if between.cv > 1 + slack and (varied or not level):
        return "bursty"
    if between.cv < 1 - slack and not varied:
        return "even"
    if level:
        return "paced"
    return "drifting" if varied else "poisson"


def in_flight(arrival_s: np.ndarray, e2e_s: np.ndarray) -> tuple[float, int, np.ndarray, np.ndarray]:
    """(mean over time, peak, times, requests in flight from each of them on) of requests with known times.

    The mean is Little's: the sum of their times by the time from the first arrival to the last answer.
    """
    ends = arrival_s + e2e_s
    times = np.concatenate([arrival_s, ends])
    steps = np.concatenate([np.ones(len(arrival_s), np.int64), -np.ones(len(ends), np.int64)])
    order = np.lexsort((steps, times))  # at one moment answers leave before others arrive
    times, level = times[order], np.cumsum(steps[order])
    span = float(ends.max() - arrival_s.min())
    return float(e2e_s.sum()) / span if span > 0 else 0.0, int(level.max()), times, level

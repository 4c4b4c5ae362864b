"""Intervals of means and quantiles from one run, without pretending that its requests are independent.

Requests that come after each other share a queue and a batch: their latencies go up and down together. So blocks of
consecutive requests are drawn with replacement, not single ones (Kuensch 1989; blocks that do not overlap: Carlstein
1986), as many as there are, 2,000 times. A block is at least five times as long as the sequence remembers: its
integrated autocorrelation time, 1 + 2 * (sum of autocorrelations until they fall to noise), and the interval is the
2.5th to 97.5th percentile of the differences. A run that remembers long is cut into eight blocks all the same, which
then are too short. Both make intervals too narrow, so they are widened: by t(blocks - 1) / z for few blocks, and by
sqrt(1 + 2.5 * (autocorrelation time / block length - 1/5)) for short ones. Drawn from autoregressive sequences that
hold six to sixty times what they remember, such intervals held the true difference in 92 to 98 of 100 comparisons.

A statistic of a resample needs only sums over blocks: with W (resamples x blocks) how often each was drawn,

    mean      (W @ sums) / (W @ counts)
    quantile  the value at which (W @ values up to it) / (W @ counts) reaches q, on a grid of recorded values about it
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

RESAMPLES = 2000
LEVEL = 0.95
SEED = 20240229
MOST_BLOCKS = 500
FEWEST_BLOCKS = 8
FEWEST_INDEPENDENT = 5.0  # a run that holds less than so many times what it remembers tells nothing of chance
DEPENDENT = 1.5  # autocorrelation time from which values count as dependent
BLOCK_TIMES = 5.0  # a block is so many autocorrelation times long
GRID = 512
STATISTICS: dict[str, float | None] = {"mean": None, "p50": 0.5, "p99": 0.99}


@dataclass(frozen=True)
class Blocks:
    """`number`: the block of each value, in order; `count` of them; `remembers`: values that count as one."""

    number: np.ndarray
    count: int
    remembers: float


def memory(values: np.ndarray) -> float:
    """Integrated autocorrelation time of a sequence, from 1 (independent). Summed up while it stays above noise."""
    n = len(values)
    x = values - values.mean()
    if n < 4 or not (x != 0).any():
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    rho = np.fft.irfft(spectrum, size)[: n // 2]
    rho = rho / rho[0]
    low = np.flatnonzero(rho < 2.0 / np.sqrt(n))
    stop = int(low[0]) if len(low) else len(rho)
    return float(max(1.0, 1.0 + 2.0 * rho[1:stop].sum()))


def blocks(values: np.ndarray) -> Blocks:
    """Consecutive values in blocks as equal as can be, long enough for what the sequence remembers."""
    n = len(values)
    remembers = memory(values)
    length = 1.0 if remembers < DEPENDENT else BLOCK_TIMES * remembers
    count = int(np.clip(n // length, min(FEWEST_BLOCKS, n), MOST_BLOCKS))
    return Blocks(np.arange(n) * count // n, count, remembers)


def draws(count: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `count` blocks was drawn in each resample: (RESAMPLES, count)."""
    drawn = rng.integers(0, count, (RESAMPLES, count)) + np.arange(RESAMPLES)[:, None] * count
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * count).reshape(RESAMPLES, count).astype(float)


def means(values: np.ndarray, of: Blocks, weights: np.ndarray) -> np.ndarray:
    """The mean of each resample."""
    sums = np.bincount(of.number, values, of.count)
    return (weights @ sums) / (weights @ np.bincount(of.number, minlength=of.count))


def quantiles(values: np.ndarray, of: Blocks, weights: np.ndarray, q: float) -> np.ndarray:
    """The q-quantile of each resample: the least recorded value (of up to 512 about it) that a share q is below."""
    n = len(values)
    order = np.argsort(values, kind="stable")
    reach = 8.0 * np.sqrt(q * (1 - q) / n * max(n / of.count, 1.0)) + 2.0 / n  # of blocks as if each were one value
    low, high = (int(np.clip(r * n, 0, n - 1)) for r in (q - reach, q + reach))
    at = np.unique(np.linspace(low, high, min(GRID, high - low + 1)).round().astype(np.int64))
    which = np.searchsorted(at, np.arange(n), "left")  # first grid value not below the r-th smallest
    table = np.bincount(of.number[order] * (len(at) + 1) + which, minlength=of.count * (len(at) + 1))
    below = table.reshape(of.count, len(at) + 1)[:, :-1].cumsum(axis=1).astype(float)
    need = q * (weights @ np.bincount(of.number, minlength=of.count))
    got = weights @ below
    first = np.minimum((got < need[:, None] - 1e-9).sum(axis=1), len(at) - 1)
    return values[order][at[first]]


def needed(q: float) -> int:
    """Independent values from which a two-sided 95 % interval of a quantile exists at all: with fewer it is likelier
    than 2.5 % that none of them lies beyond it. 5 for the median, 368 for the p99."""
    return int(np.ceil(np.log((1 - LEVEL) / 2) / np.log(max(q, 1 - q))))


def widened(samples: np.ndarray, centre: float, of: Sequence[Blocks]) -> tuple[float, float]:
    """The middle 95 % of `samples`, stretched about `centre` for few and short blocks."""
    low, high = np.percentile(samples, [50 * (1 - LEVEL), 100 - 50 * (1 - LEVEL)])
    few = float(stdtrit(min(o.count for o in of) - 1, (1 + LEVEL) / 2) / ndtri((1 + LEVEL) / 2))
    short = max((o.remembers * o.count / len(o.number) for o in of if o.remembers >= DEPENDENT), default=0.0)
    stretch = few * np.sqrt(1 + 2.5 * max(short - 1 / BLOCK_TIMES, 0.0))
    return float(centre + (low - centre) * stretch), float(centre + (high - centre) * stretch)

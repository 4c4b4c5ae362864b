"""Intervals: what resamples are made of, and that they hold the truth as often as they say."""

import numpy as np
import pytest
from scipy.signal import lfilter

from analyzers.serving import bootstrap
from analyzers.serving.ab import _differences
from analyzers.serving.bootstrap import RESAMPLES, Blocks, blocks, draws, means, memory, needed, quantiles, widened

TRIALS = 200


def autoregressive(n: int, phi: float, rng: np.random.Generator) -> np.ndarray:
    """A sequence whose autocorrelation time is (1 + phi) / (1 - phi), log-normal values."""
    x = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 2000))[2000:] * np.sqrt(1 - phi**2)
    return np.exp(0.5 * x)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8, 0.9])
def test_memory_is_the_autocorrelation_time(phi):
    rng = np.random.default_rng(1)
    found = [memory(lfilter([1.0], [1.0, -phi], rng.normal(size=20_000))) for _ in range(5)]
    assert np.mean(found) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)


def test_constant_values_remember_nothing():
    assert memory(np.full(50, 3.0)) == 1.0
    assert blocks(np.full(50, 3.0)).count == 50


def test_every_resample_draws_as_many_blocks_as_there_are():
    weights = draws(37, np.random.default_rng(0))
    assert weights.shape == (RESAMPLES, 37) and (weights.sum(axis=1) == 37).all()
    assert weights.mean() == pytest.approx(1) and weights.var() == pytest.approx(36 / 37, rel=0.05)


@pytest.mark.parametrize("count", [60, 12])
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_statistics_of_resamples_are_those_of_the_drawn_values(count, q):
    rng = np.random.default_rng(2)
    values = rng.lognormal(size=240)
    cut = Blocks(np.arange(240) * count // 240, count, 1.0)
    weights = draws(count, rng)
    mean, quantile = means(values, cut, weights), quantiles(values, cut, weights, q)
    for r in range(0, RESAMPLES, 97):
        drawn = np.sort(np.repeat(values, weights[r].astype(int)[cut.number]))
        assert mean[r] == pytest.approx(drawn.mean())
        assert quantile[r] == pytest.approx(drawn[int(np.ceil(q * len(drawn) - 1e-9)) - 1])


def test_the_interval_of_a_mean_is_that_of_the_books():
    """Of independent values: mean -/+ t * s / sqrt(n)."""
    rng = np.random.default_rng(3)
    values = rng.normal(10, 2, 400)
    cut = blocks(values)
    low, high = widened(means(values, cut, draws(cut.count, rng)), values.mean(), [cut])
    half = 1.966 * values.std(ddof=1) / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.12 * half)


@pytest.mark.parametrize(("q", "n"), [(0.5, 6), (0.9, 36), (0.99, 368)])
def test_values_that_an_interval_of_a_quantile_needs(q, n):
    assert needed(q) == n
    assert q**n <= 0.025 < q ** (n - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "n"), [(0.0, 400), (0.8, 1000), (0.97, 600)])
def test_intervals_hold_the_truth_as_often_as_they_say(monkeypatch, phi, n):
    """Two runs of the same sequence: the true difference of any statistic is 0."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 400)
    rng = np.random.default_rng(4)
    held: dict[str, list[bool]] = {}
    for trial in range(TRIALS):
        both = (autoregressive(n, phi, rng) for _ in range(2))
        for d in _differences("ttft_s", *both, False, np.random.default_rng(trial)):
            if d.low is not None:
                held.setdefault(d.statistic, []).append(d.low <= 0 <= d.high)
    assert len(held["mean"]) > 0.8 * TRIALS
    for name, hits in held.items():  # binomial of 200 at 95 %: 0.91 to 0.985 in 99 of 100
        assert np.mean(hits) >= 0.89, (name, np.mean(hits))
    assert ("p99" in held) == (phi == 0.0)


def test_pairs_see_what_independent_samples_cannot():
    """A tenth less in each of 400 requests that differ a hundredfold among themselves."""
    rng = np.random.default_rng(5)
    x = rng.lognormal(0, 1.5, 400)
    y = x * 0.9 * rng.lognormal(0, 0.05, 400)
    paired = _differences("ttft_s", x, y, True, np.random.default_rng(0))[0]
    apart = _differences("ttft_s", x, rng.permutation(y), False, np.random.default_rng(0))[0]
    assert paired.clear and paired.better == "B" and paired.ratio_high < 1
    assert not apart.clear and apart.times_more > 1


def test_the_number_of_requests_that_would_tell():
    """Half widths shrink with the root of n. Of two means of 400 that are 0.1 apart, spread by 1, half the interval is
    1.96 * sqrt(2 / 400) = 0.139: (0.139 / 0.1) squared times as many make it 0.1."""
    rng = np.random.default_rng(6)
    x, y = ((v - v.mean()) / v.std() for v in rng.normal(size=(2, 400)))
    mean = _differences("ttft_s", x + 10, y + 10.1, False, rng)[0]
    assert not mean.clear and mean.times_more == pytest.approx(1.96**2 * (2 / 400) / 0.01, rel=0.15)
    far = _differences("ttft_s", x + 10, y + 10.0001, False, rng)[0]
    assert far.times_more is None  # a million times as many: hopeless

"""Patterns of steps that are known: found with their place and cost, and none where there is none."""

import numpy as np
import pytest
from scipy import stats

from analyzers.time import steps
from analyzers.time.step_patterns import _line
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.conftest import seeds

S = 10**9
CHIPS = 4


def job(seconds: np.ndarray):
    """The answer about a job of these steps, one after another, the first of them its start."""
    ns = np.round(np.concatenate([[30.0], seconds]) * S).astype(np.int64)
    start = 1_767_571_200 * S + np.concatenate([[0], np.cumsum(ns)[:-1]])
    rows = {"step": list(range(len(ns))), "start_ns": start, "dur_ns": ns, "host": ["vm"] * len(ns)}
    tables = MemoryTables({"steps": {**rows, "source": ["log"] * len(ns)}})
    return steps.analyze(tables, facts_of({"chips": CHIPS}), {})


def noisy(rng: np.random.Generator, count: int) -> np.ndarray:
    return 1.0 + np.abs(rng.normal(0, rng.choice([0.001, 0.01, 0.03]), count))


@pytest.mark.parametrize("seed", seeds(100))
def test_steps_of_one_kind_have_none(seed):
    rng = np.random.default_rng(seed)
    took = noisy(rng, int(rng.integers(12, 400)))
    if seed % 3 == 1:  # heavy tails: a longer step now and then
        took += np.where(rng.random(len(took)) < 0.05, rng.exponential(0.5, len(took)), 0)
    if seed % 3 == 2:  # a slow walk that leads nowhere
        took += np.convolve(rng.normal(0, 0.002, len(took)), np.ones(5) / 5, "same")
    assert job(took).pattern is None


@pytest.mark.parametrize("seed", seeds(50))
def test_growing_steps_are_told_with_what_they_cost(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(30, 300))
    grown = rng.uniform(0.3, 3.0) * np.arange(count) / count
    found = job(noisy(rng, count) + grown)
    assert found.pattern.kind == "growing" and found.pattern.last_step == count
    assert found.excess_chip_seconds == pytest.approx(grown.sum() * CHIPS, rel=0.2)


@pytest.mark.parametrize("seed", seeds(50))
def test_every_nth_step_is_told_with_its_distance(seed):
    rng = np.random.default_rng(seed)
    every, count = int(rng.integers(3, 20)), int(rng.integers(100, 300))
    first, extra = int(rng.integers(every)), rng.uniform(0.4, 3.0)
    took = noisy(rng, count)
    took[first::every] += extra
    found = job(took)
    assert (found.pattern.kind, found.pattern.every, found.pattern.first_step) == ("periodic", every, first + 1)
    assert found.excess_chip_seconds == pytest.approx(extra * len(took[first::every]) * CHIPS, rel=0.15)


@pytest.mark.parametrize("seed", seeds(50))
def test_steps_that_are_far_longer_at_no_one_distance_are_told_with_how_many_they_are(seed):
    """One step in seven took four to six times as long, a third of the time, and nothing was told of it."""
    rng = np.random.default_rng(seed)
    longer = np.cumsum(rng.integers(3, 12, int(rng.integers(12, 40))))
    took, extra = noisy(rng, longer[-1] + 5), rng.uniform(3.0, 5.0)
    took[longer] += extra
    found = job(took)
    assert (found.pattern.kind, found.pattern.every, found.pattern.times) == ("irregular", None, len(longer))
    assert (found.pattern.first_step, found.pattern.last_step) == (longer[0] + 1, longer[-1] + 1)
    assert found.excess_chip_seconds == pytest.approx(extra * len(longer) * CHIPS, rel=0.05)


@pytest.mark.parametrize("seed", seeds(50))
def test_a_change_for_good_is_told_where_it_begins(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(40, 300))
    at, extra = int(rng.integers(12, count - count // 5)), rng.uniform(0.2, 2.0)
    took = noisy(rng, count)
    took[at:] += extra
    found = job(took)
    assert found.pattern.kind == "changed" and abs(found.pattern.first_step - at - 1) <= 1
    assert found.pattern.last_step == count
    assert found.excess_chip_seconds == pytest.approx(extra * (count - at) * CHIPS, rel=0.1)


def test_what_costs_less_than_the_floor_is_not_told():
    took = np.ones(200)
    took[100:] += 0.03
    assert job(took).pattern is None


def test_too_few_steps_tell_none():
    assert job(np.linspace(1, 5, 11)).pattern is None


@pytest.mark.parametrize("count", [12, 50, 200])
def test_the_line_and_its_chance_are_those_of_scipy(count):
    x, y = np.arange(count) * 1.5, np.random.default_rng(count).normal(size=count).cumsum()
    slope, intercept, z, rising = _line(x, y)
    assert (slope, intercept) == pytest.approx(stats.theilslopes(y, x)[:2])
    assert rising == pytest.approx(stats.kendalltau(x, y).statistic)
    assert abs(z) == pytest.approx(stats.norm.isf(stats.kendalltau(x, y, method="asymptotic").pvalue / 2), rel=1e-6)


@pytest.mark.parametrize(("changes", "kind"), [((), "growing"), (((13, 1.0), (26, 1.0)), "changed")])
def test_what_grows_while_other_jobs_come_and_go_grows_and_what_was_slowed_twice_changed(changes, kind):
    told = []
    for seed in range(20):
        rng, noise = np.random.default_rng(seed), np.zeros(40)
        for n in range(1, 40):
            noise[n] = 0.8 * noise[n - 1] + rng.normal(0, 0.06)
        stairs = 1 + sum(((np.arange(40) >= at) * more for at, more in changes), np.zeros(40))
        level = stairs if changes else np.linspace(1, 4, 40)
        pattern = job(level * np.exp(noise)).pattern
        told.append(pattern and pattern.kind)
    assert told.count(kind) >= 18, told

"""Mean time to failure, its interval, and the checks beside it, against tables, oracles and simulation."""

import math
import statistics

import numpy as np
import pytest
from scipy.stats import binom, poisson

from analyzers.lost.mttf import LEAST, exponential, lemons, mttf, rate_interval, trend
from catalog.fleets import fleets, mttf_s

DAY_S = 86_400


@pytest.mark.parametrize(
    ("count", "low", "high"),  # Garwood's table of exact 95 % limits of a Poisson mean
    [
        (0, 0.0, 3.6889),
        (1, 0.0253, 5.5716),
        (2, 0.2422, 7.2247),
        (5, 1.6235, 11.6683),
        (10, 4.7954, 18.3904),
        (20, 12.2165, 30.8884),
        (50, 37.111, 65.919),
        (100, 81.364, 121.627),
    ],
)
def test_the_interval_is_garwoods(count, low, high):
    found = rate_interval(count)
    assert found == pytest.approx((low, high), abs=1e-3)
    assert poisson.cdf(count, found[1]) == pytest.approx(0.025)  # what the limits are defined by
    assert poisson.sf(count - 1, found[0]) == pytest.approx(0.025 if count else 1.0)


def test_the_llama_3_job():
    m = mttf(466, 54 * DAY_S)
    assert m.mean_s / 3600 == pytest.approx(2.781115879828326)
    assert (m.low_s / 3600, m.high_s / 3600) == pytest.approx((2.5397, 3.0520), abs=1e-4)
    assert mttf(419, 54 * DAY_S).mean_s / 3600 == pytest.approx(3.0930787589498805)
    per_gpu_h = 16_384 * mttf(419, 54 * DAY_S).mean_s / 3600
    assert per_gpu_h == pytest.approx(50677.00238663484) and per_gpu_h / 8766 == pytest.approx(5.781086286405983)


@pytest.mark.parametrize(
    ("gpus", "rate", "hours"),
    [
        (1024, 6.5, 28.8462),
        (1024, 2.34, 80.1282),
        (4096, 6.5, 7.2115),
        (4096, 2.34, 20.0321),
        (16384, 6.5, 1.8029),
        (16384, 2.34, 5.008),
        (100000, 6.5, 0.2954),
        (100000, 2.34, 0.8205),
        (131072, 6.5, 0.2254),
        (131072, 2.34, 0.626),
    ],
)
def test_mttf_of_a_job_from_a_rate_per_node(gpus, rate, hours):
    assert mttf_s(gpus // 8, rate) / 3600 == pytest.approx(hours, abs=6e-5)


def test_rate_and_mttf_are_each_others_inverse_for_a_published_fleet():
    llama = fleets()[0]
    assert mttf_s(llama.nodes, llama.per_1000_node_days) == pytest.approx(mttf(419, 54 * DAY_S).mean_s)


def test_nothing_happened_is_a_lower_bound_alone():
    m = mttf(0, 1000.0)
    assert m.mean_s is None and m.high_s is None
    assert m.low_s == pytest.approx(1000 / -math.log(0.025))
    assert mttf(3, None).to_dict() == {"mean": None, "low": None, "high": None}
    assert mttf(3, 0.0).low_s is None


def test_the_interval_covers_the_truth():
    rng = np.random.default_rng(3)
    counts = rng.poisson(6.0, 4000)
    known = {n: rate_interval(int(n)) for n in np.unique(counts)}
    covered = np.mean([known[n][0] <= 6.0 <= known[n][1] for n in counts])
    assert 0.95 <= covered <= 0.99  # exact intervals are never too narrow


def test_random_times_pass_as_exponential_and_others_do_not():
    rng = np.random.default_rng(5)
    for n in (8, 60, 466):
        wrong = np.mean([exponential(rng.exponential(2.0, n)).word == "no" for _ in range(1500)])
        assert 0.03 < wrong < 0.07, n  # the test is one at 5 %
    even = exponential(rng.normal(100, 5, 60))
    assert even.word == "no" and even.p_high == 0.01 and even.variation < 0.1
    bursts = exponential(np.concatenate((rng.exponential(1, 50), rng.exponential(500, 10))))
    assert bursts.word == "no" and bursts.variation > 2
    assert exponential(np.ones(LEAST - 1)).word == "too_few"
    assert exponential(np.zeros(20)).word == "too_few"


def test_a_stop_that_ended_the_record_tells_of_no_trend():
    rng = np.random.default_rng(3)
    last = [np.cumsum(rng.exponential(1, 9)) for _ in range(4000)]
    said = [trend(times, float(times[-1])).word for times in last]
    assert 0.015 < np.mean([word == "more" for word in said]) < 0.035  # 2.5 % either way; with the last one it was 7 %
    hourly = np.arange(1, 10) * 3600.0
    assert trend(hourly, 9 * 3600.0).score == pytest.approx(0)


def test_the_trend_of_a_constant_rate_is_none():
    rng = np.random.default_rng(7)
    wrong = np.mean([trend(rng.uniform(0, 1, 40), 1.0).word != "none" for _ in range(2000)])
    assert 0.03 < wrong < 0.07
    assert trend(np.sqrt(rng.uniform(0, 1, 100)), 1.0).word == "more"
    assert trend(rng.uniform(0, 1, 100) ** 2, 1.0).word == "fewer"
    assert trend(np.array([0.5] * 12), 1.0).score == pytest.approx(0)
    assert trend(np.arange(LEAST - 1) / 10, 1.0).word == "too_few"


def test_lemons_are_found_and_others_are_not():
    found = lemons(np.array([14, 3, 1, 1]), 2048)
    assert found.lemon.tolist() == [True, True, False, False]
    assert found.expected == pytest.approx(19 / 2048)
    exact = binom.sf(2, 19, 1 / 2048) * 2047  # 3 of 19 on one of 2,048, the second to be looked at
    assert found.p_holm[1] == pytest.approx(exact, rel=0.2)
    assert lemons(np.array([5]), 1).needed is None and not lemons(np.array([5]), 1).lemon.any()


def test_a_host_stands_out_from_the_number_on_that_is_said():
    rest = np.ones(40, dtype=int)
    for hosts in (64, 2048):
        needed = lemons(np.append(rest, 3), hosts).needed
        assert lemons(np.append(rest, needed + 1), hosts).lemon[-1]
        assert not lemons(np.append(rest, needed - 2), hosts).lemon[-1]


def test_false_lemons_are_as_rare_as_said():
    rng = np.random.default_rng(11)
    false = 0
    for _ in range(400):
        counts = np.bincount(rng.integers(0, 512, 200), minlength=512)
        false += bool(lemons(counts[counts > 0], 512).lemon.any())
    assert false / 400 <= 0.07


@pytest.mark.parametrize("seed", range(12))
def test_the_distance_from_an_exponential_and_its_p_by_the_definition(seed):
    """The greatest gap between the steps of the values and 1 - exp(-t / mean), on both sides of each step; p between
    the points of Stephens' table."""
    gaps = np.random.default_rng(seed).gamma(0.5 + 0.25 * seed, 3.0, 9 + 5 * seed)
    n, mean, found = len(gaps), statistics.fmean(gaps), exponential(gaps)
    distance = max(
        abs((gaps < t if before else gaps <= t).sum() / n - (1 - math.exp(-t / mean)))
        for t in gaps
        for before in (True, False)
    )
    assert found.distance == pytest.approx(distance)
    assert found.variation == pytest.approx(statistics.stdev(gaps) / mean)
    star = (distance - 0.2 / n) * (math.sqrt(n) + 0.26 + 0.5 / math.sqrt(n))
    low, high = next(
        (low, high)
        for point, low, high in (
            (0.926, 0.15, 1.0),
            (0.990, 0.10, 0.15),
            (1.094, 0.05, 0.10),
            (1.190, 0.025, 0.05),
            (1.308, 0.01, 0.025),
            (math.inf, 0.0, 0.01),
        )
        if star <= point
    )
    assert (found.p_low, found.p_high) == (low, high)
    assert found.word == ("no" if high <= 0.05 else "yes")


@pytest.mark.parametrize(
    ("at", "word", "score", "p"),
    [(0.75, "more", 3.0, 0.0026998), (0.25, "fewer", -3.0, 0.0026998), (0.65, "none", 1.8, 0.0718606)],
)
def test_laplaces_score_and_p_from_a_table_of_the_normal(at, word, score, p):
    """Twelve events: sqrt(12 n) is 12."""
    found = trend(np.array([at * 50.0] * 12), 50.0)
    assert (found.word, found.score) == (word, pytest.approx(score))
    assert found.p == pytest.approx(p, rel=1e-4)
    assert trend(np.array([0.75] * 12), 0.0).word == "too_few"
    assert trend(np.array([0.95] * LEAST), 1.0).word == "more"  # so many are enough


@pytest.mark.parametrize(("counts", "hosts"), [((14, 3, 1, 1), 2048), ((1, 5, 2, 4, 3), 40), ((7,), 8), ((2, 2), 2)])
def test_lemons_by_the_sum_of_poisson_terms(counts, hosts):
    mean = sum(counts) / hosts

    def tail(n):
        return 1 - math.fsum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(n))

    found = lemons(np.array(counts), hosts)
    assert found.p == pytest.approx([tail(n) for n in counts], rel=1e-6, abs=1e-14)
    least, held = 0.0, {}
    for place, n in enumerate(
        sorted(counts, reverse=True)
    ):  # Holm: the k-th smallest times what is left, never falling
        least = max(least, tail(n) * (hosts - place))
        held[n] = held.get(n, min(least, 1.0))
    assert found.p_holm == pytest.approx([held[n] for n in counts], rel=1e-6, abs=1e-12)
    assert found.needed == next(n for n in range(int(mean) + 1, 99) if tail(n) <= 0.05 / hosts)
    quiet = lemons(np.zeros(3, dtype=int), 3)
    assert quiet.p.tolist() == [1, 1, 1] and quiet.needed == 1  # where nothing fails, the first failure stands out


def test_gaps_of_nothing_among_others_and_of_less_than_a_second_are_tested():
    """Two failures at once, and a clock of seconds: only where no time passed at all there is nothing to test."""
    found = exponential(np.array([0.0, *[0.5] * 8]))
    assert found.word == "no"
    assert found.distance == pytest.approx(1 - math.exp(-9 / 8) - 1 / 9)  # just before the eight steps: mean 4/9
    assert mttf(2, 0.5).mean_s == 0.25 and mttf(2, -0.5).mean_s is None

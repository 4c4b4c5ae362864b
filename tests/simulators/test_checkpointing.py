"""Intervals and goodput against published formulas, independent arithmetic and a table computed elsewhere."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from simulators.checkpointing import (
    FIRST_ORDER_LIMIT,
    Job,
    curve,
    daly_interval_s,
    daly_s,
    ettr,
    failures_per_1000_node_days,
    first_order_goodput,
    first_order_holds,
    goodput,
    mttf_of_nodes_s,
    optimal_s,
    wall_s,
    with_mttf,
    young_s,
)

# C, M, R: Young, Daly, best, first order at Young, exact at Young, Daly, best, wall time of 1e6 s at Daly's interval.
# Computed independently by numerical minimisation; the best interval of a flat optimum is good to about 1e-4 there.
TABLE = (
    (60, 10800, 300, 1138.420, 1098.771, 1098.776, 0.866813, 0.873597, 0.873653, 0.873653, 1144619.1),
    (30, 10737.9, 600, 802.667, 782.791, 782.793, 0.869372, 0.876697, 0.876717, 0.876717, 1140618.5),
    (5, 10737.9, 120, 327.687, 324.362, 324.370, 0.958308, 0.959014, 0.959015, 0.959015, 1042736.3),
    (300, 86400, 900, 7200.000, 7001.389, 7001.404, 0.906250, 0.909414, 0.909442, 0.909442, 1099574.9),
    (120, 1800, 300, 657.267, 579.701, 579.822, 0.468185, 0.572338, 0.573810, 0.573810, 1742737.0),
)


@pytest.mark.parametrize("row", TABLE)
def test_the_table(row):
    c, m, r, young, daly, best, first, *exact, wall = row
    job = Job(save_s=c, mttf_s=m, restart_s=r)
    assert young_s(job) == pytest.approx(young, abs=5e-4)
    assert daly_s(job) == pytest.approx(daly, abs=5e-4)
    assert optimal_s(job) == pytest.approx(best, rel=3e-5)
    assert first_order_goodput(job, young_s(job)) == pytest.approx(first, abs=5e-7)
    for at, share in zip((young_s(job), daly_s(job), optimal_s(job)), exact, strict=True):
        assert float(goodput(job, at)) == pytest.approx(share, abs=5e-7)
    assert wall_s(job, daly_s(job), 1e6) == pytest.approx(wall, abs=0.06)


@settings(deadline=None)
@given(st.floats(1e-9, 1.0), st.floats(1e-3, 1e9))
def test_the_best_interval_solves_its_equation_to_1e_10(part, mttf):
    """e^(x + c) (1 - x) = 1 for x = tau/M: checked with 50 digits, one Newton step from the answer."""
    getcontext().prec = 50
    job = Job(save_s=part * mttf, mttf_s=mttf)
    x = Decimal(optimal_s(job)) / Decimal(job.mttf_s)
    c = Decimal(job.save_s) / Decimal(job.mttf_s)
    step = (x + c + (1 - x).ln()) / (1 - 1 / (1 - x))
    assert abs(step / x) < Decimal("1e-10")


@settings(deadline=None)
@given(st.floats(1e-6, 0.9), st.floats(0, 3), st.floats(0, 3), st.floats(0.01, 1), st.floats(0.02, 50))
def test_no_interval_is_better_than_the_best(save, restart, wait, blocked, factor):
    job = Job(save_s=save, mttf_s=1.0, restart_s=restart, wait_s=wait, blocked_s=save * blocked)
    best = optimal_s(job)
    other = max(best * factor, job.shortest_s)
    assert float(goodput(job, best)) >= float(goodput(job, other)) - 1e-12
    assert 0 <= float(goodput(job, best)) < 1


def test_daly_for_saves_that_take_twice_the_mttf():
    assert daly_interval_s(20.0, 10.0) == 10.0
    assert daly_interval_s(25.0, 10.0) == 10.0
    assert daly_interval_s(19.999999, 10.0) == pytest.approx(math.sqrt(400) * (1 + 1 / 3 + 1 / 9) - 20, rel=1e-6)


def test_bloom():
    """A save of 40 s, a week between failures, 105.22 s an iteration: a save about every 66 iterations."""
    job = Job(save_s=40, mttf_s=7 * 86400)
    assert round(young_s(job) / 105.22) == 66


def test_a_background_save_costs_its_blocking_part_and_what_is_not_yet_safe():
    sync = Job(save_s=6, mttf_s=1800, restart_s=300, wait_s=200)
    job = Job(save_s=60, mttf_s=1800, restart_s=300, wait_s=200, blocked_s=6)
    assert float(goodput(job, 200)) == pytest.approx(float(goodput(sync, 200)) * math.exp(-54 / 1800))
    assert optimal_s(job) == pytest.approx(optimal_s(sync))
    slow = Job(save_s=500, mttf_s=1800, blocked_s=1)
    assert optimal_s(slow) == 499  # the next save waits for the one before


def test_waiting_scales_the_time_between_failures():
    """Nothing can fail while it waits: a cycle is longer by the wait, whatever the interval."""
    job = Job(save_s=60, mttf_s=10800, restart_s=300)
    waits = Job(save_s=60, mttf_s=10800, restart_s=300, wait_s=1080)
    assert float(goodput(waits, 900)) == pytest.approx(float(goodput(job, 900)) / 1.1)


@settings(deadline=None)
@given(st.floats(-4, -1), st.floats(-3, -1.1), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(0.05, 1))
def test_where_the_first_order_form_holds_it_is_within_two_points(tau, save, restart, wait, blocked):
    tau = 10**tau
    save = tau * 10**save
    job = Job(save_s=save, mttf_s=1.0, restart_s=restart, wait_s=wait, blocked_s=blocked * save)
    if first_order_holds(job, tau):
        assert abs(first_order_goodput(job, tau) - float(goodput(job, tau))) < 0.02


def test_the_first_order_form_says_where_it_fails():
    assert first_order_holds(Job(save_s=5, mttf_s=10737.9, restart_s=120), 327)
    failing = Job(save_s=120, mttf_s=1800, restart_s=300)
    assert not first_order_holds(failing, young_s(failing))
    assert first_order_goodput(failing, young_s(failing)) < float(goodput(failing, young_s(failing))) - 0.1
    assert FIRST_ORDER_LIMIT < 0.2


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
def test_mean_time_to_failure_of_nodes_of_eight(gpus, rate, hours):
    assert mttf_of_nodes_s(gpus / 8, rate) / 3600 == pytest.approx(hours, abs=5e-5)


def test_the_rate_of_a_published_fleet():
    """419 failures on 16,384 accelerators, eight to a node, in 54 days."""
    rate = failures_per_1000_node_days(419, 16384 / 8, 54)
    assert rate == pytest.approx(3.788700810185185, rel=1e-12)
    assert mttf_of_nodes_s(16384 / 8, rate) / 3600 == pytest.approx(3.0930787589498805, rel=1e-12)
    per_gpu_h = mttf_of_nodes_s(1, rate) / 3600 * 8
    assert per_gpu_h == pytest.approx(50677.00238663484, rel=1e-12)
    assert per_gpu_h / 24 / 365.25 == pytest.approx(5.781086286405983, rel=1e-12)


@pytest.mark.parametrize(
    ("nodes", "rate", "interval_min", "restart_min", "share"),
    [
        (2048, 6.5, 60, 5, 0.6764),
        (2048, 6.5, 10, 5, 0.9076),
        (12500, 6.5, 2, 2, 0.8307),
        (12500, 2.34, 2, 2, 0.9391),
        (12500, 6.5, 60, 5, -0.9748),
    ],
)
def test_effective_training_time(nodes, rate, interval_min, restart_min, share):
    assert ettr(nodes, rate / 1000, restart_min * 60, interval_min * 60) == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"save_s": 0, "mttf_s": 5}, "time of a save is 0 s"),
        ({"save_s": -1, "mttf_s": 5}, "time of a save is -1 s"),
        ({"save_s": 1, "mttf_s": 0}, "mean time to failure is 0 s"),
        ({"save_s": math.nan, "mttf_s": 5}, "nan"),
        ({"save_s": 1, "mttf_s": math.inf}, "inf"),
        ({"save_s": 1, "mttf_s": 5, "restart_s": -3}, "restart is -3 s"),
        ({"save_s": 1, "mttf_s": 5, "wait_s": -3}, "wait for machines is -3 s"),
        ({"save_s": 6, "mttf_s": 5}, "a failure comes every 5 s"),
        ({"save_s": 1, "mttf_s": 5, "blocked_s": 2}, "blocks for 2 s of its 1 s"),
        ({"save_s": 1, "mttf_s": 5, "blocked_s": 0}, "blocking part of a save is 0 s"),
    ],
)
def test_what_cannot_be_is_refused_kindly(numbers, said):
    with pytest.raises(QuestionError, match=said):
        Job(**numbers)


def test_rates_that_cannot_be():
    for nodes, rate in ((0, 1), (math.nan, 1), (8, 0), (8, -1), (8, math.inf)):
        with pytest.raises(QuestionError):
            mttf_of_nodes_s(nodes, rate)


def test_nothing_overflows():
    job = Job(save_s=1, mttf_s=1e-0, restart_s=1e12, wait_s=1e12)
    assert float(goodput(job, 1.0)) == 0.0
    assert wall_s(job, 1.0, 1.0) == math.inf
    assert float(goodput(Job(save_s=1e-9, mttf_s=1.0), 1e12)) == 0.0


def test_the_curve_holds_the_best_and_the_interval_in_use():
    job = Job(save_s=60, mttf_s=10800, restart_s=300)
    tau, share = curve(job, interval_s=36000)
    assert tau[0] < optimal_s(job) < 36000 < tau[-1]
    assert np.all(np.diff(tau) > 0)
    assert share.max() == pytest.approx(float(goodput(job, optimal_s(job))), abs=1e-4)
    assert with_mttf(job, 30).mttf_s == 60

"""Failures drawn one by one against the closed forms; spares, elastic training and two tiers against arithmetic. Lives
with two tiers are drawn in `test_training_lives`."""

import math

import numpy as np
import pytest

from errors import QuestionError
from simulators.checkpointing import Job, first_order_goodput, goodput, optimal_s, young_s
from simulators.cures import ALL, Measured, cures
from simulators.failures import simulate
from simulators.recovery import (
    elastic_first_order,
    elastic_goodput,
    missing_share,
    spare_is_free,
    spares_enough,
    spares_needed,
    wait_for_gain,
)
from simulators.two_tier import Local, best_two_tier, two_tier_first_order, two_tier_goodput

JOBS = (
    (Job(save_s=60, mttf_s=10800, restart_s=300), 1098.771),
    (Job(save_s=120, mttf_s=1800, restart_s=300), 579.701),
    (Job(save_s=120, mttf_s=1800, restart_s=300, wait_s=900), 400.0),
    (Job(save_s=60, mttf_s=1800, restart_s=300, wait_s=200, blocked_s=6), 200.0),
    (Job(save_s=60, mttf_s=300, restart_s=200, blocked_s=60), 90.0),
)


@pytest.mark.parametrize(("job", "interval"), JOBS)
def test_the_closed_form_is_what_a_simulation_finds(job, interval):
    drawn = simulate(job, interval, failures=1_000_000, seed=7)
    assert drawn.standard_error < 5e-4
    assert abs(drawn.goodput - float(goodput(job, interval))) < 4 * drawn.standard_error


@pytest.mark.parametrize(("job", "interval", "found"), [(*JOBS[0], 0.8751838), (*JOBS[1], 0.5742435)])
def test_a_simulation_made_elsewhere(job, interval, found):
    """Its own noise is some 0.0015, to judge by its distance from the exact value."""
    assert simulate(job, interval, failures=1_000_000).goodput == pytest.approx(found, abs=0.002)
    first = {10800: 0.8667467306798116, 1800: 0.4653020433491747}[int(job.mttf_s)]
    assert first_order_goodput(job, interval) == pytest.approx(first, abs=2e-6)


def test_a_simulation_repeats_itself():
    one = simulate(*JOBS[0], failures=1_000_000, seed=3)
    assert simulate(*JOBS[0], failures=1_000_000, seed=3) == one
    assert simulate(*JOBS[0], failures=1_000_000, seed=4) != one


def test_failures_that_come_in_bursts_cost_less_at_the_same_mean():
    """Weibull, shape below 1: long quiet stretches. The mean time stays, so that the two can be compared."""
    job, interval = JOBS[0]
    bursts = simulate(job, interval, failures=400_000, shape=0.6)
    even = simulate(job, interval, failures=400_000, shape=3.0)
    middle = float(goodput(job, interval))
    assert even.goodput < middle < bursts.goodput
    assert simulate(job, interval, failures=400_000, shape=1.0).goodput == pytest.approx(middle, abs=1e-3)


def test_what_cannot_be_drawn():
    job, interval = JOBS[0]
    for bad in ({"failures": 1}, {"failures": 10**9}, {"shape": 0.0}, {"shape": math.nan}):
        with pytest.raises(QuestionError):
            simulate(job, interval, **bad)
    with pytest.raises(QuestionError):
        simulate(job, 0.0)


def test_two_tiers_that_are_one():
    """All failures go back to the last save of either kind, and both cost the same: one tier."""
    job = Job(save_s=60, mttf_s=1800, restart_s=300, wait_s=200)
    same = Local(save_s=60, restart_s=300, share=1.0)
    for n in (1, 2, 9):
        assert two_tier_goodput(job, same, 100, n) == pytest.approx(float(goodput(job, 100)), rel=1e-12)
    useless = Local(save_s=60, restart_s=300, share=0.0)
    assert two_tier_goodput(job, useless, 100, 1) == pytest.approx(float(goodput(job, 100)), rel=1e-12)


def test_two_tiers_to_first_order():
    """0.95694 is a loss of 465 s in 10,800: 1 s each minute, 10 s each hour, 0.9 (30 + 20) + 0.1 (1,800 + 300) s."""
    job = Job(save_s=10, mttf_s=10800, restart_s=300)
    local = Local(save_s=1, restart_s=20, share=0.9)
    assert two_tier_first_order(job, local, 60, 3600) == pytest.approx(0.9569444444444445, rel=1e-12)
    lost_s = 1 / 60 * 10800 + 10 / 3600 * 10800 + 0.9 * 50 + 0.1 * 2100
    assert lost_s == pytest.approx(465) and 1 - lost_s / 10800 == pytest.approx(0.9569444444444445)
    assert young_s(job) == pytest.approx(464.75800154489, rel=1e-12)
    assert first_order_goodput(job, young_s(job)) == pytest.approx(0.9291890739310287, rel=1e-12)
    assert two_tier_goodput(job, local, 60, 60) == pytest.approx(0.9569444444444445, abs=2e-3)


def test_the_best_of_two_tiers_is_no_worse_than_its_neighbours():
    job, local = Job(save_s=30, mttf_s=7200, restart_s=200), Local(save_s=2, restart_s=60, share=0.8)
    interval, n, share = best_two_tier(job, local)
    assert share == pytest.approx(two_tier_goodput(job, local, interval, n))
    assert share > float(goodput(job, optimal_s(job)))
    for other, count in ((interval * 1.05, n), (interval / 1.05, n), (interval, n + 1), (interval, max(n - 1, 1))):
        assert two_tier_goodput(job, local, other, count) <= share + 1e-9


def test_tiers_that_cannot_be():
    for bad in ({"save_s": 0.0}, {"restart_s": -1.0}, {"share": 1.2}, {"share": math.nan}):
        with pytest.raises(QuestionError):
            Local(**{"save_s": 1.0, "restart_s": 1.0, "share": 0.5} | bad)


@pytest.mark.parametrize(("spares", "p"), [(0, 0.0), (10, 0.22586), (16, 0.81227), (20, 0.969), (24, 0.9973)])
def test_spares(spares, p):
    """2,048 nodes, 6.5 failures per 1,000 node-days, a day to repair one."""
    assert spares_enough(spares, 2048 * 6.5 / 1000, 1.0) == pytest.approx(p, abs=6e-6)


def test_a_failing_node_finds_a_spare_if_others_left_one():
    mean = 13.312
    for spares in (1, 5, 20):
        by_hand = sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(spares))
        assert spare_is_free(spares, mean, 1.0) == pytest.approx(by_hand, rel=1e-9)
    needed = spares_needed(mean, 1.0, 0.99)
    assert spare_is_free(needed, mean, 1.0) >= 0.99 > spare_is_free(needed - 1, mean, 1.0)


def test_elastic_to_first_order():
    """Failures every 3 h that cost 600 s of waiting, or 1/16 of it and a pause of 30 s."""
    assert elastic_first_order(10800, 600, 1, 0) == pytest.approx(0.9444444444444444, rel=1e-12)
    assert elastic_first_order(10800, 600, 16, 30) == pytest.approx(0.99375, rel=1e-12)


def test_elastic_by_its_own_parts():
    job = Job(save_s=10, mttf_s=3000, restart_s=120, wait_s=600)
    running = Job(save_s=10, mttf_s=3000, restart_s=120)  # two pauses of 60 s
    expected = float(goodput(running, 200)) * (1 - 600 / (3000 * 48))
    assert elastic_goodput(job, 200, 48, 60) == pytest.approx(expected)
    two = Job(save_s=10, mttf_s=3000, restart_s=120, wait_s=6000)  # one of two at most is away: a = 2, B = 2/3
    assert elastic_goodput(two, 200, 2, 60) == pytest.approx(float(goodput(running, 200)) * (1 - 2 * (1 / 3) / 2))
    with pytest.raises(QuestionError, match="1 slice"):
        elastic_goodput(job, 200, 1, 60)


def drawn_elastic(job: Job, interval_s: float, slices: int, resume_s: float, seed: int = 0) -> float:
    """Failures one by one: each takes a slice away for the wait unless it is the last, and costs two pauses; what was
    saved is kept, at the throughput of the slices that were there."""
    kept = now = 0.0
    away: list[float] = []  # when each comes back
    for clock in np.random.default_rng(seed).exponential(job.mttf_s, 60_000).tolist():
        at = now + 2 * resume_s
        while at + interval_s + job.save_s <= now + clock:
            away = [back for back in away if back > at]
            lost = sum(min(back, at + interval_s) - at for back in away)
            kept += interval_s - lost / slices
            at += interval_s + job.save_s
        now += clock
        away = [back for back in away if back > now]
        if len(away) < slices - 1:
            away.append(now + job.wait_s)
    return kept / now


@pytest.mark.parametrize(("slices", "waits"), [(2, 0.1), (2, 1.5), (2, 4.0), (3, 2.0), (8, 3.0), (48, 1.5)])
def test_elastic_training_is_what_failures_drawn_one_by_one_give(slices, waits):
    job = Job(save_s=60, mttf_s=10800, restart_s=300, wait_s=waits * 10800)
    interval = optimal_s(job)
    found = elastic_goodput(job, interval, slices, 300)
    assert found == pytest.approx(drawn_elastic(job, interval, slices, 300), abs=0.025)
    assert found > 0.5 / slices and (waits < 1 or found > float(goodput(job, interval)))


@pytest.mark.parametrize(
    ("waits", "slices", "missing"),
    [
        (0.0, 2, 0.0),
        (1.5, 2, 0.3),
        (0.5, 48, 0.5 / 48),
        (1e6, 2, 0.5),
        (1e12, 4, 0.75),
        (1e-9, 1000, 1e-12),
        (3.0, 10**9, 3e-9),
        (1e8, 10**6, 1 - 1e-6),
    ],
)
def test_what_is_missing_is_never_more_than_all_but_one(waits, slices, missing):
    assert missing_share(waits, slices) == pytest.approx(missing, rel=1e-5, abs=1e-15)


def test_the_wait_from_which_elastic_training_gains_as_claimed():
    job = Job(save_s=10, mttf_s=3004.8, restart_s=120)
    wait = wait_for_gain(job, 48, 60, 0.15)
    at = Job(save_s=10, mttf_s=3004.8, restart_s=120, wait_s=wait)
    best = optimal_s(at)
    assert elastic_goodput(at, best, 48, 60) - float(goodput(at, best)) == pytest.approx(0.15, abs=1e-6)
    assert wait_for_gain(Job(save_s=1, mttf_s=1e7), 2, 60, 0.9) is None


def measured(**more) -> Measured:
    job = Job(save_s=6, mttf_s=9700, restart_s=193, wait_s=290)
    return Measured(
        **{
            "job": job,
            "interval_s": 970.0,
            "mttf_low_s": 8800,
            "mttf_high_s": 10700,
            "span_s": 4.6e6,
            "chips": 16384,
            "parts": {"accelerator_initialization": 75, "checkpoint_restore": 60, "program_startup": 58},
            "usd_per_chip_hour": 2.0,
            "slices": 128,
            "nodes": 2048,
        }
        | more
    )


def test_every_cure_is_offered_or_left_out_with_a_reason():
    for case in (measured(), measured(slices=None, parts={}, interval_s=None), Measured(job=Job(save_s=1, mttf_s=100))):
        found = cures(case)
        assert {c.name for c in found.offered} | {name for name, _ in found.left_out} == set(ALL)
        assert all(why for _, why in found.left_out)
        assert [c.gain for c in found.offered] == sorted((c.gain for c in found.offered), reverse=True)
        assert all(c.low <= c.gain <= c.high for c in found.offered)


def test_the_gain_of_the_best_interval_by_hand():
    case = measured()
    gain = next(c for c in cures(case).offered if c.name == "best_interval")
    by_hand = float(goodput(case.job, optimal_s(case.job))) - float(goodput(case.job, 970.0))
    assert gain.gain == pytest.approx(by_hand)
    assert gain.seconds == pytest.approx(by_hand * 4.6e6)
    assert gain.chip_hours == pytest.approx(by_hand * 4.6e6 * 16384 / 3600)
    assert gain.usd == pytest.approx(gain.chip_hours * 2)


def test_a_cure_by_drawing_its_failures():
    """A compile cache that saves 80 % of 58 s: the same failures with shorter restarts."""
    case = measured()
    gain = next(c for c in cures(case).offered if c.name == "compile_cache")
    without = simulate(case.job, 970.0, failures=1_000_000, seed=2)
    job = Job(save_s=6, mttf_s=9700, restart_s=193 - 0.8 * 58, wait_s=290)
    with_it = simulate(job, 970.0, failures=1_000_000, seed=2)
    assert with_it.goodput - without.goodput == pytest.approx(gain.gain, rel=0.05)


def test_cures_that_cannot_help_say_why():
    why = dict(cures(measured(interval_s=optimal_s(measured().job), slices=1, nodes=10)).left_out)
    assert why["best_interval"] == "the job saves at its best interval"
    assert "one slice" in why["elastic_training"]
    assert "spare nodes for a job of 10" in why["hot_spares"]
    assert (
        "background already"
        in dict(cures(Measured(job=Job(save_s=60, mttf_s=9000, blocked_s=5))).left_out)["asynchronous_saves"]
    )

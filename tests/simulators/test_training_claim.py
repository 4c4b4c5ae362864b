"""The claim of 15 % from elastic training: its band of assumptions against lives drawn one by one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simulators.checkpointing import Job, optimal_s
from simulators.recovery import wait_for_gain
from simulators.training.claim import (
    CHIPS,
    GAIN,
    MTTF_CHIP_H,
    RESTART_S,
    RESUME_S,
    SAVE_S,
    SLICES,
    WAITS_S,
    failing_where,
    gains,
)
from simulators.training.lives import Life, live

JOB = Job(save_s=SAVE_S, mttf_s=1e4, restart_s=RESTART_S)
OF_CHIP = [3600 * h for h in MTTF_CHIP_H]
FOUND = gains(JOB, CHIPS, SLICES, RESUME_S, OF_CHIP, WAITS_S)


def test_failure_rates_are_those_that_two_clusters_published():
    """2.34 and 6.5 failures per 1,000 node-days, four chips to a node: a chip fails every 41,026 h or 14,769 h."""
    assert pytest.approx((41_025.64, 14_769.23), abs=0.01) == MTTF_CHIP_H


@pytest.mark.parametrize("row", range(len(MTTF_CHIP_H)))
@pytest.mark.parametrize("column", range(len(WAITS_S)))
def test_the_gain_is_that_of_lives_of_both_jobs(row, column):
    job = replace(JOB, mttf_s=OF_CHIP[row] / CHIPS, wait_s=WAITS_S[column])
    whole = Life(job=job, interval_s=optimal_s(job), span_s=120 * job.mttf_s)
    drawn = [live(x, 60).goodput.mean() for x in (whole, replace(whole, slices=SLICES, resume_s=RESUME_S))]
    assert FOUND.whole[row, column] == pytest.approx(drawn[0], abs=0.015)
    assert FOUND.points[row, column] == pytest.approx(drawn[1] - drawn[0], abs=0.03)


def test_where_the_claim_holds_and_where_it_does_not():
    """At the lower of the published rates from 10.5 min on, at the higher one from 4.4 min on. Both pauses together are
    a restart here, so that with g of the time kept without waits it gains g (1 - a/48 - 1/(1 + a)), a = wait/M."""
    assert FOUND.holds().tolist() == [[False, False, True], [True, True, True]]
    for row, of_chip in enumerate(OF_CHIP):
        wait = wait_for_gain(replace(JOB, mttf_s=of_chip / CHIPS), SLICES, RESUME_S, GAIN)
        short, long_ = (gains(JOB, CHIPS, SLICES, RESUME_S, [of_chip], [wait * f]).points[0, 0] for f in (0.97, 1.03))
        assert short < GAIN < long_ and wait == pytest.approx((633, 267)[row], abs=1)
        mttf_s, a = of_chip / CHIPS, wait / (of_chip / CHIPS)
        tau = max((SAVE_S * x for x in range(2, 80)), key=lambda t: t / math.expm1((t + SAVE_S) / mttf_s))
        kept = tau / (mttf_s * math.exp(RESTART_S / mttf_s) * math.expm1((tau + SAVE_S) / mttf_s))
        assert kept * (1 - a / SLICES - 1 / (1 + a)) == pytest.approx(GAIN, abs=2e-4)


def test_as_a_ratio_it_holds_sooner_than_in_points():
    assert (FOUND.ratio > FOUND.points).all()
    assert np.allclose(FOUND.ratio, FOUND.elastic / FOUND.whole - 1)


def test_rates_at_which_it_holds_end_where_the_gain_does():
    tried = np.geomspace(3600e3, 3600e6, 301).tolist()
    for wait_s in (600.0, 1200.0, 90_000.0):
        job = replace(JOB, wait_s=wait_s)
        least, most = failing_where(job, CHIPS, SLICES, RESUME_S, tried)
        inside = [s for s in tried if least <= s <= most]
        assert gains(job, CHIPS, SLICES, RESUME_S, inside, [wait_s]).holds().all()
        beyond = [s for s in tried if not least <= s <= most]
        assert beyond and not gains(job, CHIPS, SLICES, RESUME_S, beyond, [wait_s]).holds().any()
    assert failing_where(JOB, CHIPS, SLICES, RESUME_S, tried) is None  # without a wait a restart costs as much


def test_a_longer_pause_never_gains_more():
    short, longer = (gains(JOB, CHIPS, SLICES, s, OF_CHIP, WAITS_S) for s in (10.0, 300.0))
    assert (short.points > longer.points).all() and (short.whole == longer.whole).all()


def test_the_wait_that_two_slices_need_is_found_where_the_gain_goes_on_to_rise():
    job, resume_s = Job(save_s=7, mttf_s=270, restart_s=16), 29.0
    wait_s = wait_for_gain(job, 2, resume_s, 0.15)
    found = gains(job, 1, 2, resume_s, [job.mttf_s], [0.5 * wait_s, 0.99 * wait_s, wait_s, 1.01 * wait_s]).points[0]
    assert wait_s > 2**0.5 * job.mttf_s and found[2] == pytest.approx(0.15, abs=1e-6)
    assert list(found >= 0.15 + 1e-9) == [False, False, False, True]

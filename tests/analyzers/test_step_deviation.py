"""The ideal step, deviations and spikes, against arithmetic done by hand."""

import numpy as np
import pytest

from analyzers.lost.goodput.step_deviation import are_spikes, ideal_step_s, library_ideal_s, spikes


def test_the_ideal_step_leaves_out_what_is_far_from_the_median():
    times = np.array([3.0, 3.1, 2.9, 3.0, 30.0, 0.2])
    assert ideal_step_s(times) == pytest.approx(3.0)
    assert library_ideal_s(times, 1.0) == pytest.approx((3 + 3.1 + 2.9 + 3) / 4)
    assert ideal_step_s(times[:0]) is None and library_ideal_s(np.array([0.4]), 1.0) is None


def test_a_slower_phase_is_no_row_of_spikes_but_a_long_step_in_it_is_one():
    times = np.r_[np.full(60, 3.0), np.full(60, 4.0), np.full(60, 3.0)]
    assert not are_spikes(times).any()
    times[[30, 90]] = 5.0
    assert np.flatnonzero(are_spikes(times)).tolist() == [30, 90]


def test_noise_is_hardly_ever_a_spike():
    times = np.random.default_rng(1).normal(3, 0.2, 20_000)
    assert are_spikes(times).mean() < 0.002


def test_the_first_slow_step_of_a_short_job_is_a_spike():
    assert are_spikes(np.array([18.0, 3, 3, 3])).tolist() == [True, False, False, False]
    assert are_spikes(np.array([3.0])).tolist() == [False]


def test_spikiness_takes_the_last_hundred_and_the_thousand_before_them():
    short = np.arange(99.0)
    assert spikes(short).interval_s == spikes(short).cumulative_s == short.mean()
    long = np.r_[np.full(1000, 2.0), np.arange(100.0)]
    assert spikes(long).interval_s == pytest.approx(89.1)
    assert spikes(long).cumulative_s == pytest.approx(87.1)
    assert spikes(long[:0]).interval_s == 0

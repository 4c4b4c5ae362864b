"""From rates and lives to days: bands against draws, days against tokens counted, short lives against whole ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import QuestionError
from simulators.checkpointing import Job, goodput, optimal_s
from simulators.training.end_to_end import MANY, Band, both, end_to_end, kept, length_s, sure
from simulators.training.lives import Life, live
from simulators.two_tier import Local

DAY_S = 86_400.0
JOB = Job(save_s=30, mttf_s=10_000, restart_s=300, wait_s=600)
RATE = Band(low=8e6, likely=1e7, high=1.1e7)


def test_of_two_bands_the_product_holds_nine_of_ten_draws():
    """Log-normal quantities whose ends are their 5th and 95th percentile."""
    a, b = Band(low=0.8, likely=1.0, high=1.25), Band(low=4.5, likely=5.0, high=5 / 0.9)
    rng, at = np.random.default_rng(1), 1.6448536269514722
    drawn = [x.likely * np.exp(rng.standard_normal(400_000) * math.log(x.high / x.likely) / at) for x in (a, b)]
    found = both(a, b)
    assert np.percentile(drawn[0] * drawn[1], (5, 50, 95)) == pytest.approx(
        (found.low, found.likely, found.high), rel=3e-3
    )


@given(*[st.floats(1e-3, 1e3)] * 2, *[st.floats(1, 10)] * 4)
def test_a_product_of_bands_is_wider_than_either_and_narrower_than_all_luck_at_once(x, y, a, b, c, d):
    first, second = Band(low=x / a, likely=x, high=x * b), Band(low=y / c, likely=y, high=y * d)
    found = both(first, second)
    assert found == both(second, first)
    assert first.low * second.low * (1 - 1e-9) <= found.low <= min(first.low * y, x * second.low) * (1 + 1e-9)
    assert max(first.high * y, x * second.high) * (1 - 1e-9) <= found.high <= first.high * second.high * (1 + 1e-9)
    same = both(first, sure(1.0))
    assert (same.low, same.likely, same.high) == pytest.approx((first.low, first.likely, first.high))


def test_days_are_those_in_which_the_tokens_that_count_are_counted():
    share = Band(low=0.8, likely=0.9, high=0.95)
    told = end_to_end(RATE, share, 1e12, usd_per_hour=5000.0)
    done = day = 0.0
    while done < 1e12:
        done, day = done + told.tokens_per_day.likely, day + 1
    assert day - 1 < told.days.likely <= day
    assert told.tokens_per_day.likely == pytest.approx(1e7 * 0.9 * DAY_S)
    assert told.usd.likely == pytest.approx(told.days.likely * 24 * 5000)
    assert told.days.low == pytest.approx(1e12 / told.tokens_per_day.high)
    assert told.days.high == pytest.approx(1e12 / told.tokens_per_day.low)
    assert told.usd.high / told.usd.low == pytest.approx(told.days.high / told.days.low)
    bare = end_to_end(RATE, share, None, usd_per_hour=1.0)
    assert bare.days is None and bare.usd is None and end_to_end(RATE, share, 1e12).usd is None


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"slices": 8, "resume_s": 60.0},
        {"local": Local(save_s=2, restart_s=40, share=0.8), "saves_per_remote": 6},
    ],
)
def test_a_shorter_life_tells_how_far_long_ones_lie_apart(more):
    life = Life(job=JOB, interval_s=optimal_s(JOB), span_s=500 * JOB.mttf_s, **more)
    whole, found = live(life, 400, seed=5), kept(life, 400)
    assert life.failures > 4 * MANY and found.likely == pytest.approx(whole.goodput.mean(), abs=4e-3)
    assert found.high - found.low == pytest.approx(whole.range[1] - whole.range[0], rel=0.25)


def test_a_short_life_is_drawn_as_it_is():
    life = Life(job=JOB, interval_s=optimal_s(JOB), span_s=2 * JOB.mttf_s)
    found, whole = kept(life), live(life, 200)
    assert (found.low, found.high) == pytest.approx(whole.range)
    assert found.likely == pytest.approx(whole.goodput.mean())
    never = kept(Life(job=Job(save_s=1, mttf_s=1e9), interval_s=4e4, span_s=3600.0))
    assert (never.low, never.likely, never.high) == (1.0, 1.0, 1.0)


def test_a_job_is_as_long_as_its_work_over_its_goodput():
    life = Life(job=JOB, interval_s=500, span_s=1.0)
    assert length_s(life, 1e6) == pytest.approx(300 + 1e6 / float(goodput(JOB, 500)))
    spares = Life(job=JOB, interval_s=500, span_s=1.0, spares=3, repair_s=1e6)
    assert length_s(spares, 1e6) == length_s(life, 1e6)
    with pytest.raises(QuestionError, match="Fewer chips"):
        length_s(Life(job=Job(save_s=1, mttf_s=10, restart_s=100), interval_s=5, span_s=1), 1.0)
    with pytest.raises(QuestionError, match="no more than"):
        length_s(life, 1e12)


@settings(deadline=None)
@given(st.floats(1e-4, 0.5), st.floats(0, 0.5), st.floats(0, 2), st.floats(0.1, 400), st.integers(0, 3))
def test_a_band_of_lives_is_in_order_and_a_share(save, restart, wait, span, spares):
    job = Job(save_s=save, mttf_s=1.0, restart_s=restart, wait_s=wait)
    more = {"spares": spares, "repair_s": 2.0} if spares else {}
    found = kept(Life(job=job, interval_s=optimal_s(job), span_s=span if spares == 0 else span / 10, **more), 10)
    assert 0 <= found.low <= found.likely <= found.high <= 1

"""Days and dollars of a training job against worked examples, and against time counted out second by second."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import chip, model
from catalog.flops import flops_per_token
from catalog.published import published
from simulators.training import rates
from simulators.training.cost import DAY_S, Held, Work, chips_for, cost, flops_per_developer, kept_share_for
from simulators.training.rates import LEAST_RUNS, class_of, counted, peak_flops_per_s, utilisation

WORKED = [  # FLOPs a token, tokens, chips, peak, MFU, goodput, price; hours, days, dollars
    ((4.2e11, 15e12, 8960, 459e12, 0.4, 1.0, 1.0), (1063.7936, 44.3247, 9_531_590.4)),
    ((4.2e11, 15e12, 8960, 459e12, 0.4, 0.9, 1.0), (1181.9929, 49.2497, 10_590_656.0)),
    ((2.523956e12, 15.6e12, 16384, 989e12, 0.40445, 0.9, 1.0), (1854.3013, 77.2626, 30_380_872.1)),
    ((2.5045e11, 14.8e12, 2048, 989e12, 0.3908, 1.0, 2.0), (1300.7668, 54.1986, 5_327_940.9)),
    ((1.92e11, 1e12, 4096, 197e12, 0.6226, 0.95, 1.0), (111.748, 4.6562, 457_719.9)),
    ((1.92e11, 1e12, 256, 197e12, 0.6686, 0.98, 1.0), (1613.9872, 67.2495, 413_180.7)),
]


@pytest.mark.parametrize(("asked", "expected"), WORKED)
def test_worked_examples(asked, expected):
    flops, tokens, chips, peak, mfu, goodput, price = asked
    held = Held(chips=chips, peak_flops_per_s=peak, mfu=mfu, goodput=goodput, usd_per_chip_hour=price)
    found = cost(Work(flops_per_token=flops, tokens=tokens), held)
    hours, days, usd = expected  # rounded to four places, dollars to one
    assert (found.hours, found.days) == pytest.approx((hours, days), rel=0, abs=5.1e-5)
    assert found.usd == pytest.approx(usd, rel=0, abs=0.051)
    assert found.usd_per_million_tokens == pytest.approx(found.usd / (tokens / 1e6))


def test_tokens_counted_out_second_by_second():
    work, held = Work(flops_per_token=3e9, tokens=5e7), Held(chips=3, peak_flops_per_s=2e11, mfu=0.3, goodput=0.5)
    done = seconds = 0.0
    while done < work.tokens:
        kept = seconds % 2 < 1  # every other second is lost
        done += kept * held.chips * cost(work, held).tokens_per_s_per_chip
        seconds += 1
    assert seconds / 3600 == pytest.approx(cost(work, held).hours, abs=2 / 3600)
    assert cost(work, held).usd is None


@given(
    st.floats(1e6, 1e13), st.floats(1e6, 1e15), st.floats(60, 1e9), st.floats(1e10, 1e16), st.sampled_from([1, 4, 8])
)
def test_the_fewest_chips_meet_a_deadline_and_a_host_less_does_not(flops, tokens, seconds, rate, whole):
    work = Work(flops_per_token=flops, tokens=tokens)
    chips = chips_for(work, seconds, rate, whole)
    held = Held(chips=chips, peak_flops_per_s=rate, mfu=1.0)
    assert chips % whole == 0 and cost(work, held).days * DAY_S <= seconds * (1 + 1e-9)
    if chips > whole:
        assert cost(work, replace(held, chips=chips - whole)).days * DAY_S > seconds * (1 - 1e-9)


@given(st.floats(1e6, 1e13), st.floats(1e6, 1e15), st.integers(1, 10**6), st.floats(1e10, 1e16), st.floats(0.01, 1))
def test_along_a_line_of_equal_time_the_work_takes_as_long(flops, tokens, chips, peak, mfu):
    work = Work(flops_per_token=flops, tokens=tokens)
    seconds = cost(work, Held(chips=chips, peak_flops_per_s=peak, mfu=mfu)).hours * 3600
    assert kept_share_for(work, seconds, chips, peak) == pytest.approx(mfu)
    twice = Held(
        chips=2 * chips, peak_flops_per_s=peak, mfu=kept_share_for(work, seconds, 2 * chips, peak) / 0.5, goodput=0.5
    )
    assert cost(work, twice).hours * 3600 == pytest.approx(seconds)


def test_flops_per_developer_are_those_of_a_month_counted_out():
    """Two jobs of 3 and 5 EFLOP/s kept, one of them for half a month, over four who share them."""
    month_s = (365 * 3 + 366) / 4 / 12 * DAY_S
    by_hand = (3e18 * month_s + 5e18 * month_s / 2) / 4
    assert flops_per_developer(3e18, 4) + flops_per_developer(5e18, 4) / 2 == pytest.approx(by_hand)


def test_rates_are_those_of_the_published_rows():
    v6e, llama = chip("TPU v6e"), model("llama3.1-70b")
    found = utilisation(v6e, "bf16", llama)
    mine = [r for r in published() if (r.chip, r.precision, r.model_class) == ("TPU v6e", "bf16", "dense")]
    assert found is not None and found.alike and {r.run.id for r in found.runs} <= {r.id for r in mine}
    assert found.low < found.likely < found.high
    one = next(r for r in found.runs if r.causal and r.run.tokens_per_s_per_chip)
    tokens_per_s, flops = one.run.tokens_per_s_per_chip, flops_per_token(model(one.run.model), one.run.seq).total
    assert one.mfu == pytest.approx(tokens_per_s * flops / 918e12)
    assert found.likely == pytest.approx(float(np.median([r.mfu for r in found.runs])))


def test_a_rate_printed_without_causal_mask_is_counted_with_it():
    both = [r for r in counted() if r.causal and r.run.convention == "noncausal" and r.run.flops_per_s_per_chip]
    assert both
    for r in both:
        peak = peak_flops_per_s(chip(r.run.chip), r.run.precision)
        assert r.mfu < r.run.flops_per_s_per_chip / peak * (1 + 1e-2)


def test_every_range_rests_on_enough_runs_and_none_is_above_the_peak():
    for name in ("TPU v5p", "TPU 7x", "H100 SXM", "GB200"):
        for precision in rates.PEAKS:
            for named in ("llama3.1-8b", "deepseek3"):
                found = utilisation(chip(name), precision, model(named))
                if found is not None:
                    assert len(found.runs) >= LEAST_RUNS and 0 < found.low <= found.likely <= found.high <= 1
                    kinds = {r.run.model_class for r in found.runs}
                    assert not found.alike or kinds == {class_of(model(named))}
    assert utilisation(chip("TPU v2"), "bf16", model("llama3.1-8b")) is None


def test_recomputation_and_fine_tuning_are_no_rate():
    used = {r.run.id for r in counted()}
    left = [r for r in published() if r.task != "pretraining" or r.convention in ("hardware_full_remat", "lora")]
    assert left and not used & {r.id for r in left}
    assert all(math.isfinite(r.mfu) for r in counted())

"""The critical batch size: the rule it stands for, its sources at what they measured, and how it grows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.training.critical_batch import COARSE, critical_batch

TOKENS = st.floats(1e9, 1e14)


def test_at_the_critical_batch_twice_the_tokens_are_taken():
    band = critical_batch(2e12)
    assert band.more_tokens(band.high)[0] == pytest.approx(1) and band.more_tokens(band.low)[1] == pytest.approx(1)
    assert band.largest(0.2) == pytest.approx((band.low / 5, band.high / 5))


def test_two_studies_that_share_nothing_agree_within_a_fifth():
    """Models, data, context, schedule and definition differ; from ten billion to twenty trillion tokens."""
    for tokens in (1e10, 1e11, 1e12, 2e13):
        first, second, *_ = (e.tokens for e in critical_batch(tokens).estimates)
        assert 0.8 < second / first < 1.25


def test_a_chinchilla_model_of_a_billion_parameters():
    """Zhang et al. write one fit by parameters too, 93.20 (N / 10^6)^0.47 sequences of 512 tokens at D = 20 N."""
    by_parameters = 5 * 512 * 93.20 * (1200.0**0.47)
    [by_tokens, *_] = critical_batch(20 * 1.2e9).estimates
    assert by_tokens.tokens == pytest.approx(by_parameters, rel=0.01)


def test_where_it_was_seen_to_stop_growing_the_band_is_wide():
    few, many = critical_batch(1e11), critical_batch(1.5e13)
    assert len(few.estimates) == 2 and len(many.estimates) == 3
    assert many.low * COARSE == pytest.approx(5 * 4096 * 4096)
    assert many.high / many.low > few.high / few.low


@given(TOKENS, st.floats(1, 1e10))
def test_the_band_holds_every_estimate_and_says_where_a_batch_is(tokens, batch):
    band = critical_batch(tokens)
    assert all(band.low < e.tokens < band.high for e in band.estimates)
    least, most = band.more_tokens(batch)
    assert 0 < least < most and math.isfinite(most)
    assert {"below": most < 1, "within": least <= 1 <= most, "beyond": least > 1}[band.place(batch)]


@given(TOKENS)
def test_more_tokens_bear_no_smaller_batch(tokens):
    more, fewer = critical_batch(2 * tokens), critical_batch(tokens)
    assert more.high >= fewer.high and more.low >= fewer.low
    assert all(b.tokens >= a.tokens for a, b in zip(fewer.estimates, more.estimates, strict=False))

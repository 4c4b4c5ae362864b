"""Numbers as a person reads them: never further from the value than the digits shown allow."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import format as fmt

amounts = st.floats(1e-6, 1e12)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12400, "12,400"),
        (12447.9, "12,400"),
        (459.2, "459"),
        (0.0319, "0.0319"),
        (0, "0"),
        (999.6, "1,000"),
        (1.005, "1.00"),
        (None, "–"),
        (math.nan, "–"),
        (99.95, "100"),
        (-3.14159, "-3.14"),
    ],
)
def test_number(value, text):
    assert fmt.number(value) == text


@given(amounts)
def test_a_number_shown_is_within_half_a_percent(value):
    assert float(fmt.number(value).replace(",", "")) == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8040, "2 h 14 min"),
        (5.123, "5.12 s"),
        (0.0123, "12.3 ms"),
        (4.5e-6, "4.50 µs"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (86400, "1 d"),
        (273600, "3 d 4 h"),
        (3599.9, "1 h"),
        (59.99, "1 min"),
        (0, "0 s"),
        (None, "–"),
        (-90, "−1 min 30 s"),
    ],
)
def test_duration(seconds, text):
    assert fmt.duration(seconds) == text


UNITS = {"d": 86400, "h": 3600, "min": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


@given(st.floats(1e-8, 1e9))
def test_a_duration_shown_reads_back(seconds):
    parts = re.findall(r"([\d.,]+) (\w+)", fmt.duration(seconds))
    assert 1 <= len(parts) <= 2
    total = sum(float(n.replace(",", "")) * UNITS[u] for n, u in parts)
    assert total == pytest.approx(seconds, rel=0.03)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.61, "61.0 %"), (1, "100 %"), (0, "0 %"), (0.9996, "> 99.9 %"), (0.00001, "< 0.1 %"), (0.00353, "0.353 %")],
)
def test_share(value, text):
    assert fmt.share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.99966, "100 %"),
        (1.0, "100 %"),
        (1.25, "120 %"),
        (0.061, "6.1 %"),
        (-0.38, "38 %"),
        (-0.99966, "> 99.9 %"),
        (0.0, "0 %"),
        (-0.0002, "< 0.1 %"),
    ],
)
def test_a_change_may_be_all_of_it_and_more(value, text):
    """A step that took 250 ms and takes 500 was `> 99.9 %` slower, in a range of 95 to 110 %."""
    assert fmt.change(value, 2) == text


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_nothing_is_nothing(value):
    assert (fmt.share(value) == "100 %") == (value * 100 >= 100)
    assert (fmt.share(value) == "0 %") == (value == 0)
    assert fmt.whole_share(value) != "100 %" or value > 0.99
    assert fmt.whole_share(value) != "0 %" or value == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12400 * 3600, "12,400 chip-hours"),
        (42.1, "42.1 chip-seconds"),
        (1, "1.00 chip-second"),
        (3600, "1.00 chip-hour"),
    ],
)
def test_chip_time(value, text):
    assert fmt.chip_time(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(14217, "$14,200"), (3.4, "$3.40"), (0.0123, "$0.0123"), (0, "$0"), (None, "–")]
)
def test_usd(value, text):
    assert fmt.usd(value) == text


def test_rates_sizes_counts_and_dates():
    assert fmt.flops_rate(459e12) == "459 TFLOP/s"
    assert fmt.flops_rate(1.1e15) == "1.10 PFLOP/s"
    assert fmt.size(20 << 30) == "21.5 GB"
    assert fmt.size(12) == "12 bytes"
    assert fmt.count(1, "step") == "1 step"
    assert fmt.count(2000, "step") == "2,000 steps"
    assert fmt.date(1_767_571_200_000_000_000) == "2026-01-05 00:00 UTC"
    assert fmt.date(10**30) == "–"


@given(amounts)
def test_upwards_is_never_less_and_is_shown_as_it_is(value):
    enough = fmt.upwards(value)
    assert value * (1 - 1e-11) <= enough <= value * 1.01
    assert float(fmt.number(enough).replace(",", "")) == pytest.approx(enough, rel=1e-9)

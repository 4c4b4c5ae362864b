"""Tables as a person reads them: heads in words with units, three digits, numbers that stay numbers."""

import json

import numpy as np
import pandas as pd
import pytest

from app.components.column_words import head
from app.components.columns import Like, as_read, measure, scale


def shown(key: str, values, **given):
    frame, config = as_read(pd.DataFrame({key: values}), given)
    return frame[key].tolist(), config[key]["label"], config[key].get("type_config", {}).get("format")


@pytest.mark.parametrize(
    ("key", "values", "label", "cells"),
    [
        ("fetch_s", [0.0021, 0.004, 0.0], "Fetch (ms)", [2.1, 4.0, 0.0]),
        ("dur_s", [7200.0, 36000.0], "Duration (h)", [2.0, 10.0]),
        ("self_seconds", [3.0, 5000.0], "Own time (s)", [3.0, 5000.0]),
        ("padded_flops", [3.8e11, 1.9e12], "Padded TFLOPs", [0.38, 1.9]),
        ("flops_per_s", [4.0e12, 5e12], "Rate (TFLOP/s)", [4.0, 5.0]),
        ("busbw_bytes_per_s", [310e6], "Bus bandwidth (MB/s)", [310.0]),
        ("bytes", [12, 900], "Size (bytes)", [12.0, 900.0]),
        ("memory_bytes", [41_355_712], "Memory (MB)", [41.355712]),
        ("padded_share", [0.126, 0.5], "Padded (%)", [12.6, 50.0]),
        ("share_idle", [0.25], "Share idle (%)", [25.0]),
        ("usd", [42_467_328.0], "Cost ($)", [42_467_328.0]),
        ("ttft_p99_s", [38.2], "Time to first token, 99th percentile (s)", [38.2]),
        ("tokens_per_s_per_chip", [96.09], "Tokens/s per chip", [96.09]),
        ("request_rate_per_s", [2.07], "Request rate (1/s)", [2.07]),
        ("lost_steps", [13, 4], "Lost steps", [13, 4]),
        ("Held (s)", [12.5], "Held (s)", [12.5]),
        ("offset_s", [-0.002, 0.003], "Offset (ms)", [-2.0, 3.0]),
    ],
)
def test_a_key_says_its_head_and_its_unit(key, values, label, cells):
    found, said, _ = shown(key, values)
    assert said == label and found == pytest.approx(cells)


def test_what_is_nearly_nothing_has_no_exponent_and_no_minus():
    cells, _, style = shown("difference_s", [160.0, -4.76e-7, 0.0, 2e-17])
    assert cells == [160.0, 0.0, 0.0, 0.0] and style == "%,.3g"
    assert not any(np.signbit(c) for c in cells)


def test_nothing_is_nothing_and_never_a_word():
    cells, _, _ = shown("wait_s", [None, float("nan"), float("inf"), 1.0])
    assert [c if c == c else None for c in cells] == [None, None, None, 1.0]
    assert pd.isna(shown("host", ["a", None])[0][1])
    assert shown("lag_s", pd.array([None, None], "Float64"))[1] == "Lag (s)"


def test_a_count_of_nanoseconds_since_1970_is_a_time_of_day_and_a_short_one_a_duration():
    cells, label, _ = shown("start_ns", pd.array([1_795_177_003_289_923_429, None], "Int64"))
    assert label == "Start (UTC)" and cells[0].year == 2026 and pd.isna(cells[1])
    assert shown("gap_ns", [1500, 2500])[1] == "Gap (µs)"


def test_ranks_are_no_amounts():
    assert shown("rank", [8147])[2] == "%d" and shown("tokens", [8147])[2] == "%,d"


def test_what_a_page_wants_holds():
    frame, config = as_read(
        pd.DataFrame({"Bytes": [2e9], "share": [0.5]}),
        {
            "Bytes": Like("bytes", "Of elements.", "Size"),
            "share": {"type_config": {"format": "percent"}, "label": None},
        },
    )
    assert frame["Bytes"].tolist() == [2.0] and config["Bytes"]["label"] == "Size (GB)"
    assert config["Bytes"]["help"] == "Of elements."
    assert frame["share"].tolist() == [0.5] and config["share"]["label"] == "Share"


def test_the_order_of_values_is_kept_and_the_rows_given_are_left_as_they_are():
    chance = np.random.default_rng(5)
    rows = pd.DataFrame({"wait_s": chance.lognormal(-8, 4, 500), "bytes": chance.integers(0, 1 << 40, 500)})
    before = rows.copy()
    frame, _ = as_read(rows, {})
    assert rows.equals(before)
    assert frame["bytes"].rank().equals(rows["bytes"].rank())
    big = rows["wait_s"] > 1e-6 * 1e-3  # what is shown as 0 is a millionth of the unit
    assert frame["wait_s"][big].rank().equals(rows["wait_s"][big].rank())


def test_the_unit_is_that_of_the_median():
    told = measure("wait_s")
    assert told is not None
    assert scale(np.array([1e-3, 2e-3, 5e3]), told.scales) == (1e-3, "ms")
    assert scale(np.array([0.0, np.nan]), told.scales) == (1.0, "s")


def test_columns_of_the_same_name_and_lists_stand():
    twice = pd.DataFrame([[1, 2]], columns=["a_s", "a_s"])
    assert as_read(twice, {})[0].equals(twice)
    frame, config = as_read(pd.DataFrame({"calls": [["a", "b"], []]}), {})
    assert frame["calls"][0] == ["a", "b"] and config["calls"]["label"] == "Calls"
    json.dumps(config)


@pytest.mark.parametrize("key", ["", "_", "a__b", "<b>x</b>", "ünder_s", "_s", "seconds", "%"])
def test_an_odd_key_has_a_head(key):
    assert isinstance(head(key), str)

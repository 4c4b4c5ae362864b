"""Published runs: every row is well formed, and its chip, model and convention are those of the catalogue."""

import re

import pytest

from catalog import MARKS, chips, models
from catalog.flops import NAMES as CONVENTIONS
from catalog.published import published

ROWS = published()
SOURCE = r"@[0-9a-f]{6,}|arXiv:\d{4}\.\d{5}|training_results_v\d|cloud\.google\.com/blog"


def test_there_are_many_and_each_has_a_source_a_mark_and_a_figure():
    assert len(ROWS) > 300 and len({r.id for r in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.mark in MARKS and row.printed
        assert re.search(SOURCE, row.source), row.source


def test_names_are_those_of_the_catalogue():
    assert {r.chip for r in ROWS} <= set(chips())
    assert {r.convention for r in ROWS if r.convention} <= set(CONVENTIONS)
    known = {r.model for r in ROWS} & set(models())
    assert len(known) >= 12
    for row in ROWS:
        if row.model in known:
            assert (row.model_class == "moe") == any(f.experts for f in models()[row.model].feedforward)


def test_figures_are_plausible_and_keep_their_digits():
    for row in ROWS:
        assert row.chips >= 1 and (row.seq or 1) >= 1 and (row.parameters or 1) >= 1
        if row.mfu is not None:
            assert 0.05 < row.mfu < 0.8
        peak = chips()[row.chip].value("fp4_flops_per_s") or chips()[row.chip].value("fp8_flops_per_s") or 0
        highest = max(peak, chips()[row.chip].value("bf16_flops_per_s"))
        if row.flops_per_s_per_chip:
            assert row.flops_per_s_per_chip < highest
    row = next(r for r in ROWS if r.printed.get("mfu_percent") == "61.10")
    assert row.unit("mfu_percent") == pytest.approx(0.01) and row.unit("tflops_per_s") == 1.0
    assert row.flops_per_s_per_chip == 120e12 and row.mfu == pytest.approx(0.611)
    assert row.claimed_peak_flops_per_s == 197e12


def test_what_was_computed_is_not_called_printed():
    for row in ROWS:
        assert (row.mark == "derived") <= bool(row.derived)


FIELD = (  # model, chips, TFLOP/s and utilisation as printed
    ("16B", 256, "120", "61.10"),
    ("16B", 4096, "111", "56.56"),
    ("32B", 256, "132", "66.86"),
    ("32B", 4096, "123", "62.26"),
    ("64B", 256, "118", "59.90"),
    ("64B", 4096, "105", "53.29"),
    ("128B", 256, "110", "56.06"),
    ("128B", 4096, "100", "50.86"),
    ("32B", 50944, "88", "44.67"),
    ("32B", 50944, "104.4", "52.99"),
)


@pytest.mark.parametrize("size, held, rate, mfu", FIELD)
def test_the_rows_that_people_ask_about_are_there(size, held, rate, mfu):
    (row,) = [
        r
        for r in ROWS
        if (r.model, r.chip, r.chips) == (f"MaxText default {size}", "TPU v5e", held)
        and r.printed["tflops_per_s"] == rate
    ]
    assert row.printed["mfu_percent"] == mfu and row.convention == "noncausal"
    assert row.mfu == pytest.approx(row.flops_per_s_per_chip / 197e12, rel=0.01)


def test_what_a_source_prints_wrongly_is_told_beside_what_must_hold():
    (row,) = [r for r in ROWS if r.parallelism.get("context") == 16]
    product = 1
    for size in row.parallelism.values():
        product *= size
    assert product == row.chips == 16384 and "prints DP 4" in row.note and "8,192" in row.note

"""Published runs checked against their own figures, and the likes of a run."""

from dataclasses import replace

import pytest

from analyzers.flops.published import likes, review, reviewed
from catalog.published import published

BY_ID = {r.run.id: r for r in reviewed()}


def test_utilisation_is_the_rate_over_the_peak_of_the_precision():
    row = next(r for r in reviewed() if r.run.chip == "TPU v5e" and r.run.printed.get("mfu_percent") == "61.10")
    assert row.utilisation == pytest.approx(120 / 197) and row.bf16_utilisation == row.utilisation
    assert not row.contradictions
    low = next(r for r in reviewed() if r.run.chip == "TPU 7x" and r.run.precision == "fp8")
    assert low.utilisation * 2 == pytest.approx(low.bf16_utilisation)


def test_known_mistakes_of_print_are_flagged():
    wrong = {
        (r.run.model, r.run.chip, r.run.printed.get("mfu_percent")): r.contradictions
        for r in reviewed()
        if r.contradictions
    }
    (share,) = wrong["llama3.1-405b", "TPU v6e", "38.55"]
    assert share.startswith("38.55 %") and "35.18 % (non-causal)" in share
    (peak,) = wrong["llama3.1-405b", "B200", "67.96"]
    assert "2,237" in peak and "33.98 %" in peak
    (emfu,) = wrong["MaxText default 32B", "TPU v5e", "52.99"]
    assert "INT8, it is 26.56 %" in emfu  # called EMFU: divided by the BF16 peak
    assert {m for m, *_ in wrong} == {"llama3.1-405b", "llama3.1-70b", "gpt-oss-120b", "MaxText default 32B"}
    assert len(wrong) <= len([r for r in reviewed() if r.contradictions]) < 15


def test_rounding_in_print_is_no_contradiction():
    row = next(r for r in published() if r.printed.get("mfu_percent") == "41")  # 400 of 989 are 40.4
    assert not review(row).contradictions
    assert review(replace(row, printed={**row.printed, "mfu_percent": "45"})).contradictions
    off = next(r for r in published() if r.chip == "TPU v5p" and "mfu_percent" in r.printed)
    off = replace(off, printed={**off.printed, "tflops_per_s": "249", "mfu_percent": "64.05"})
    assert "54.25 %" in review(off).contradictions[0]


def test_what_was_derived_from_tokens_is_not_held_against_them():
    derived = [r for r in reviewed() if "tflops_per_s" in r.run.derived]
    assert derived and not any(r.contradictions for r in derived)


def test_likes_share_the_convention_and_the_nearest_comes_first():
    near = likes(reviewed(), convention="causal", chip="TPU v6e", chips_held=512, size=175e9)
    assert {r.run.convention for r in near} == {"causal"}
    assert near[0].run.chip == "TPU v6e" and near[0].run.model == "gpt3-175b"
    chips = [r.run.chip == "TPU v6e" for r in near]
    assert chips == sorted(chips, reverse=True)
    assert likes(reviewed(), convention="6n", chip=None, chips_held=None, size=None) == []

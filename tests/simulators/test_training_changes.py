"""Errors by kind of change: the file tells those that the model has, and nine of ten pairs lie within."""

import math
from dataclasses import replace

import pytest

from benchmarks.training_changes import HELD_BACK, told, tried
from benchmarks.training_fit import Fit, fittable
from simulators.training.backtest import by_source
from simulators.training.changes import LEAST_PAIRS, Setup, changes_file, differences, kind_of, past, setup
from simulators.training.efficiency import fitted_file, kind

ONE = Setup(chip="H100 SXM", chips=512, tokens=4e6, seq=8192, precision="bf16", cut=(8, 4, 1, 1), remat="none")


@pytest.fixture(scope="module")
def pairs():
    """Every pair, predicted by shares that were fitted without the source of what is predicted."""
    kept = fitted_file()[HELD_BACK]
    assert set(kept) == {source for source, _ in by_source(fittable())}
    return tried({source: Fit(values) for source, values in kept.items()})


def test_the_file_tells_the_errors_that_there_are(pairs):
    """Fails where the model of a step changed: `python -m benchmarks.training_changes --write`."""
    written, now = changes_file(), told(pairs)
    assert written["kinds"].keys() == now["kinds"].keys() and written["fitted"] == fitted_file()["fitted"]
    for what, of in now["kinds"].items():
        for name, errors in of.items():
            assert written["kinds"][what][name] == pytest.approx(errors, rel=2e-3), (what, name)


def test_nine_of_ten_pairs_lie_in_the_band_of_their_kind(pairs):
    inside = [b.low <= math.exp(-p.error) * 1.001 and math.exp(-p.error) <= b.high * 1.001 for p, b in banded(pairs)]
    assert len(inside) > 1500 and sum(inside) >= 0.9 * len(inside)
    written = changes_file()
    assert written["inside_bands_of_other_sources"] >= 0.9 and min(written["by_source"].values()) > 0.7


def banded(pairs):
    return [(p, past(p.differ, p.experts)) for p in pairs]


def test_pairs_are_of_one_model_and_differ_in_what_they_say(pairs):
    for p in pairs[::17]:
        assert p.start.run.model == p.end.run.model and p.differ == differences(setup(p.start), setup(p.end)) != ()
        assert p.start.source == p.end.source or "maker" in p.differ
        assert kind(p.start.run.chip) != kind(p.end.run.chip) or "maker" not in p.differ


def test_an_error_by_hand(pairs):
    """Llama-3.1-405B from 8,192 to 16,384 H100, as printed: useful maths by FLOPs, the rest by the model."""
    (p,) = [
        p
        for p in pairs
        if "2407.21783" in p.start.source and p.end.run.chips == 16_384 and p.differ == ("chips", "batch")
    ]
    by = Fit(fitted_file()[HELD_BACK][p.end.source])
    old, new = (c.predicted_s(by.efficiency(c)) for c in (p.start, p.end))
    useful = [c.work.flops_per_token * c.run.global_batch_tokens / c.run.chips / 989.4e12 for c in (p.start, p.end)]
    predicted = useful[1] + (p.start.step_s - useful[0]) * (new - useful[1]) / (old - useful[0])
    assert math.exp(p.error) == pytest.approx(predicted / p.end.step_s, rel=1e-4) and abs(p.error) < 0.05


@pytest.mark.parametrize(
    ("change", "differ", "kind"),
    [
        ({}, (), "several"),
        ({"chip": "H200 SXM"}, ("chip",), "chip"),
        ({"chip": "TPU v5p"}, ("maker",), "maker"),
        ({"chip": "TPU v5p", "precision": "fp8"}, ("maker", "precision"), "maker"),
        ({"chips": 1024}, ("chips", "batch"), "scaled"),
        ({"chips": 1024, "tokens": 8e6}, ("chips",), "chips"),
        ({"chips": 1024, "tokens": 8e6, "cut": (8, 8, 1, 1)}, ("chips", "layout"), "chips"),
        ({"chip": "H200 SXM", "cut": (4, 4, 1, 1)}, ("chip", "layout"), "chip"),
        ({"tokens": 5e6}, ("batch",), "batch"),
        ({"seq": 4096}, ("batch",), "batch"),
        ({"cut": (8, 8, 1, 1)}, ("layout",), "layout"),
        ({"cut": None}, (), "several"),
        ({"precision": "fp8"}, ("precision",), "precision"),
        ({"precision": "fp16"}, (), "several"),
        ({"remat": "full"}, ("remat",), "remat"),
        ({"precision": "fp8", "cut": (8, 8, 1, 1)}, ("layout", "precision"), "several"),
    ],
)
def test_what_differs(change, differ, kind):
    other = replace(ONE, **change)
    assert differences(ONE, other) == differences(other, ONE) == differ and kind_of(differ) == kind


def test_where_too_few_pairs_tell_the_band_is_the_widest():
    kinds = changes_file()["kinds"]
    widest = max(e["high"] for both in kinds.values() for e in both.values() if e["pairs"] >= LEAST_PAIRS)
    for differ, experts in ((("layout",), False), (("remat",), False), (("batch",), True)):
        found = past(differ, experts)
        assert not found.own and found.high == widest and found.pairs >= LEAST_PAIRS
    assert past(("chips",), False).own and past(("chips",), False).high < 1.2 < widest


def test_bands_are_the_same_both_ways():
    for both in changes_file()["kinds"].values():
        for e in both.values():
            assert e["low"] * e["high"] == pytest.approx(1, rel=1e-3) and e["median"] <= e["ninth_tenth"]

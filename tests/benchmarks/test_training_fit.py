"""What is held back is held back: neither a source's prediction nor its band knows its own steps."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import training_fit
from benchmarks.training_fit import Held, _band, _quantile, _softened
from benchmarks.training_usual import EXPECTED, NAMES, USUAL
from simulators.training.backtest import cases
from simulators.training.efficiency import fitted_file

SOURCES = ("arXiv", "gpu-recipes", "mlcommons")


@pytest.fixture(scope="module")
def known():
    return [case for case in cases() if any(name in case.source for name in SOURCES)]


def test_a_sources_own_steps_change_neither_its_prediction_nor_its_band(known, monkeypatch):
    monkeypatch.setattr(training_fit, "PRIORS", (0.5, 2.0))
    source = "mlcommons/training_results_v5.0"
    slower = [replace(c, step_s=2 * c.step_s) if c.source == source else c for c in known]
    before, after = Held(known), Held(slower)
    apart = frozenset({source})
    assert after.prior(apart) == before.prior(apart) and after.bands(apart) == before.bands(apart)
    assert after.errors(source) == pytest.approx(before.errors(source) - np.log(2), abs=1e-12)
    other = "arXiv:2407.21783 table 4"
    assert after.errors(other) != pytest.approx(before.errors(other), abs=1e-3)  # which is fitted to it


def test_a_band_holds_nine_of_ten_and_more_where_sources_are_few():
    errors = np.random.default_rng(0).normal(0, 0.1, 2000)
    same = np.ones_like(errors)
    many, few = _band(errors, same, 10_000), _band(errors, same, 4)
    inside = np.mean((np.exp(-errors) >= many["low"]) & (np.exp(-errors) <= many["high"]))
    assert inside == pytest.approx(0.9, abs=0.005)
    assert few["low"] < many["low"] and few["high"] > many["high"]
    assert np.log(few["high"]) / np.log(many["high"]) == pytest.approx(2.3534 / 1.6449 * np.sqrt(5 / 4), rel=3e-3)


def test_a_quantile_of_equal_weights_is_that_of_the_values():
    values = np.random.default_rng(1).normal(size=501)
    for part in (0.05, 0.5, 0.95):
        assert _quantile(values, np.ones(501), part) == pytest.approx(np.quantile(values, part), abs=0.02)
    assert _quantile(np.array([1.0, 2.0, 3.0]), np.array([1e-9, 1.0, 1e-9]), 0.5) == pytest.approx(2.0)


def test_large_errors_count_as_their_absolute_value():
    small, large = _softened(np.array([1e-4])), _softened(np.array([-0.8, -1.6]))
    assert small[0] == pytest.approx(1e-4, rel=1e-3)
    assert large[1] ** 2 / large[0] ** 2 == pytest.approx(2, rel=0.1) and (large < 0).all()


def test_what_is_usual_of_a_tpus_products_is_what_its_compiler_expects():
    """As the fit that was written found it in the bundled compiled programs."""
    rows = {row["run"]: row["compiler"] for row in fitted_file()["compiled"] if row["what"].startswith("share")}
    by_family = {
        family: rows[f"compiled-llama3.1-8b-{chip}"] for family, chip in (("tpu128", "v5p"), ("tpu256", "v6e"))
    }
    assert by_family == EXPECTED
    usual = dict(zip(NAMES, np.exp(USUAL), strict=True))
    assert usual["products.tpu256.bf16"] == pytest.approx(0.6644) and usual["products.hopper.bf16"] == pytest.approx(
        0.75
    )
    assert usual["products.tpu256.fp8"] / usual["products.tpu256.bf16"] == pytest.approx(0.6 / 0.75)

"""Calibration finds the shares that made a run, tells its error, and widens its band where it knows nothing."""

from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from errors import QuestionError
from simulators.serving.calibrate import ANOTHER_CHIP, ANOTHER_MODEL, METRICS, Measured, calibrate, errors
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import poisson

SETUP = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), max_sequences=64, token_budget=1024)
TRUTH = Efficiency(bandwidth=0.66, compute=0.41, step_s=3.1e-3, sequence_s=2.4e-5)


def measured(efficiency=TRUTH, requests=160, noise=0.0, seed=2) -> Measured:
    """A run that the model itself made, its times blurred."""
    rng = np.random.default_rng(seed)
    traffic = replace(poisson(12, requests, 10, 10, seed=seed), prompt=rng.integers(50, 2500, requests),
                      output=rng.integers(20, 300, requests))  # fmt: skip
    rows = simulate(SETUP, traffic, efficiency, record=False).requests
    blur = np.exp(rng.normal(0, noise, (2, requests)))
    return Measured(traffic, rows["ttft_s"].to_numpy() * blur[0], rows["tpot_s"].to_numpy() * blur[1], "made")


@pytest.fixture(scope="module")
def found():
    return calibrate(SETUP, measured())


def test_what_made_the_run_is_found_again(found):
    """Not each share by itself: slow memory looks like a long own time of steps. But reading prompts, and times."""
    assert found.efficiency.compute == pytest.approx(TRUTH.compute, rel=0.05)
    assert found.efficiency.basis == "calibrated on made"
    assert max(abs(e) for e in found.errors.values()) < 0.03
    assert set(found.errors) == set(METRICS) and found.requests == 160
    other = poisson(8, 200, 900, 150, seed=7)  # another load, which the fit has not seen
    made, told = (simulate(SETUP, other, e).requests for e in (TRUTH, found.efficiency))
    assert told["tpot_s"].mean() == pytest.approx(made["tpot_s"].mean(), rel=0.05)
    assert told["ttft_s"].mean() == pytest.approx(made["ttft_s"].mean(), rel=0.06)


def test_errors_are_of_the_half_that_the_fit_did_not_see():
    run = measured(noise=0.05)
    half = np.arange(160) % 2 == 0
    worse = Measured(run.traffic, np.where(half, run.ttft_s, 2 * run.ttft_s), run.tpot_s, "made")
    found = calibrate(SETUP, worse, half)
    assert found.errors["ttft_mean"] == pytest.approx(-0.5, abs=0.1)
    assert abs(found.fitted["ttft_mean"]) < 0.1
    low, high = found.intervals["ttft_mean"]
    assert low < 1 < high or 0.8 < low < 1.2  # measured is about twice what is simulated


def test_errors_by_hand():
    run = Measured(poisson(1, 4, 1, 1), np.array([1.0, 2, 3, 4]), np.array([1.0, 1, 1, 2]))
    rows = simulate(SETUP, poisson(1, 4, 1, 1)).requests.assign(ttft_s=[2.0, 2, 9, 4], tpot_s=[1.0, 1, 9, 2])
    told = errors(rows, run, np.array([True, True, False, True]))
    assert told["ttft_mean"] == pytest.approx(8 / 7 - 1) and told["tpot_mean"] == 0
    assert told["ttft_p99"] == pytest.approx(np.percentile([2, 2, 4], 99) / np.percentile([1, 2, 4], 99) - 1)


def test_the_band_is_wider_where_nothing_was_calibrated(found):
    def width(setup, traffic=None):
        outcome = simulate(setup, traffic or measured().traffic, found.for_setup(setup)[0])
        band, notes = found.band(outcome)
        return band["tpot_mean"][1] - band["tpot_mean"][0], " ".join(notes)

    same, notes = width(SETUP)
    assert notes == "" and same < 0.05
    other, notes = width(replace(SETUP, chip=chip("h200")))
    assert other == pytest.approx(same + 2 * ANOTHER_CHIP, abs=1e-9) and "H200 SXM" in notes
    bigger, notes = width(Setup(model=model("qwen3-8b"), chip=chip("h100"), max_sequences=64, token_budget=1024))
    assert bigger == pytest.approx(same + 2 * ANOTHER_MODEL["tpot"], abs=1e-9) and "qwen3-8b" not in notes
    crowded = poisson(1000, 2000, 500, 200)
    wide, notes = width(replace(SETUP, max_sequences=256), crowded)
    assert wide == pytest.approx(same + 2 * ANOTHER_MODEL["tpot"], abs=1e-9) and "run at a time" in notes


def test_links_that_the_run_did_not_use_are_assumed(found):
    pair = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), chips=2)
    efficiency, notes = found.for_setup(pair)
    assert efficiency.communication == TYPICAL.communication and "links is assumed" in notes[0]
    assert found.for_setup(SETUP) == (found.efficiency, [])


def test_too_few_requests_are_refused():
    with pytest.raises(QuestionError, match="30 requests with a time"):
        calibrate(SETUP, measured(requests=30))
    run = measured()
    with pytest.raises(QuestionError, match="at least 20 in each half"):
        calibrate(SETUP, run, np.arange(160) < 5)


def test_json_holds_no_nan(found):
    told = found.to_dict()
    flat = [*told["errors_held_out"].values(), *told["errors_fitted"].values(),
            *(v for pair in told["measured_by_simulated"].values() for v in pair)]  # fmt: skip
    assert np.isfinite(flat).all() and told["simulations"] > 5

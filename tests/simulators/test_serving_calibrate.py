"""Calibration finds the shares that made a run, tells its error, and widens its band where it knows nothing."""

from dataclasses import replace

import numpy as np
import pytest

from catalog import chip, model
from errors import QuestionError
from simulators.serving.calibrate import (
    ALTERNATE,
    ANOTHER_CHIP,
    ANOTHER_MODEL,
    BY_REPLICA,
    FARTHER,
    IN_TIME,
    METRICS,
    Measured,
    at_a_time,
    calibrate,
    errors,
    served,
)
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import poisson

SETUP = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), max_sequences=64, token_budget=1024)
TRUTH = Efficiency(bandwidth=0.66, compute=0.41, step_s=3.1e-3, sequence_s=2.4e-5)


def measured(efficiency=TRUTH, requests=160, noise=0.0, seed=2) -> Measured:
    """A run that the model itself made, its times blurred."""
    rng = np.random.default_rng(seed)
    traffic = replace(
        poisson(12, requests, 10, 10, seed=seed),
        prompt=rng.integers(50, 2500, requests),
        output=rng.integers(20, 300, requests),
    )
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
    assert max(abs(e) for e in found.splits[ALTERNATE].values()) < 0.03
    assert set(found.errors) == set(METRICS) and found.requests == 160
    assert found.errors == found.splits[found.worst] and set(found.splits) == {ALTERNATE, IN_TIME}
    assert max(abs(e) for e in found.errors.values()) < 0.12  # of 80 requests, the other 80 seen
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


def test_a_run_that_changes_is_told_by_the_worst_split():
    """The second half takes 1.4 times as long: requests that alternate hardly show it, halves of the time do."""
    run = measured()
    late = np.arange(160) >= 80
    slower = Measured(run.traffic, run.ttft_s * np.where(late, 1.4, 1), run.tpot_s * np.where(late, 1.4, 1), "made")
    found = calibrate(SETUP, slower)
    assert found.worst == IN_TIME and found.errors["tpot_mean"] == pytest.approx(1 / 1.4 - 1, abs=0.08)
    assert abs(found.splits[ALTERNATE]["tpot_mean"]) < 0.15
    told = found.to_dict()
    assert told["errors_held_out"] == told["errors_by_split"][IN_TIME] and told["worst_split"] == IN_TIME
    assert found.intervals["tpot_mean"][1] > 0.3


def test_each_replica_serves_what_it_had():
    """Three quarters go to one of two replicas: by turns nothing of it would be found."""
    pair, rng = replace(SETUP, chips=2, tensor=1, replicas=2), np.random.default_rng(5)
    traffic = replace(
        poisson(60, 240, 10, 10, seed=5), prompt=rng.integers(50, 2500, 240), output=rng.integers(20, 300, 240)
    )
    uneven = Measured(traffic, np.zeros(240), np.zeros(240), "made", (rng.random(240) < 0.25).astype(int))
    rows, _ = served(pair, uneven, TRUTH)
    alone = simulate(SETUP, traffic.only(np.flatnonzero(uneven.replica == 0)), TRUTH).requests
    assert np.allclose(rows["tpot_s"][uneven.replica == 0], alone["tpot_s"])
    run = replace(uneven, ttft_s=rows["ttft_s"].to_numpy(), tpot_s=rows["tpot_s"].to_numpy())
    found = calibrate(pair, run)
    assert set(found.splits) == {ALTERNATE, IN_TIME, BY_REPLICA}
    assert max(abs(e) for e in found.splits[BY_REPLICA].values()) < 0.1
    blind = calibrate(pair, replace(run, replica=None))
    assert abs(blind.errors["tpot_mean"]) > abs(found.errors["tpot_mean"]) and BY_REPLICA not in blind.splits


def test_the_band_is_wider_the_farther_the_load_is(found):
    def told(traffic):
        band, notes = found.band(simulate(SETUP, traffic, found.efficiency))
        return band["tpot_mean"][1], " ".join(notes)

    near, notes = told(measured().traffic)
    assert notes == ""
    longest = measured().traffic.prompt.max()
    double, notes = told(poisson(3, 60, int(2 * longest), 200))
    assert double == pytest.approx(near + FARTHER["tpot"], rel=0.02) and "Prompts have up to" in notes
    four, _ = told(poisson(1, 60, int(4 * longest), 200))
    assert four >= double + 0.9 * FARTHER["tpot"]
    alone, notes = told(poisson(0.01, 40, 500, 100))
    away = np.log2(found.fewest)
    assert found.fewest > 2 and alone == pytest.approx(near + away * FARTHER["tpot"]) and "at a time" in notes


def test_requests_at_a_time_by_hand():
    steps = simulate(SETUP, poisson(1, 3, 10, 10)).steps.iloc[:3].assign(running=[4, 1, 2], dur_s=[5.0, 1.0, 4.0])
    assert [at_a_time(steps, share) for share in (0.05, 0.1, 0.5, 0.51)] == [1, 1, 2, 4]


def test_links_that_the_run_did_not_use_are_assumed(found):
    pair = Setup(model=model("llama-3.1-8b"), chip=chip("h100"), chips=2)
    efficiency, notes = found.for_setup(pair)
    assert efficiency.communication == TYPICAL.communication and "links is assumed" in notes[0]
    assert found.for_setup(SETUP) == (found.efficiency, [])


def test_answers_that_came_all_at_once_tell_no_time(found):
    """One time per token of 0 left the fit where its search begins, and one of a microsecond drove every share to its
    bound: both were told as calibrated. Times of 0 throughout gave errors without end."""
    run = measured()
    tpot = run.tpot_s.copy()
    tpot[[50, 81]] = 0.0, 1e-6
    made = calibrate(SETUP, replace(run, tpot_s=tpot))
    assert made.efficiency.compute == pytest.approx(found.efficiency.compute, rel=0.05)
    assert max(abs(e) for e in made.errors.values()) < 0.12
    assert any(n.startswith("2 of 160 requests are left out") for n in made.notes) and not found.notes
    for times in ({"ttft_s": run.ttft_s * 0}, {"tpot_s": run.tpot_s * 0}):
        with pytest.raises(QuestionError, match="0 requests with a time"):
            calibrate(SETUP, replace(run, **times))


def test_too_few_requests_are_refused():
    with pytest.raises(QuestionError, match="30 requests with a time"):
        calibrate(SETUP, measured(requests=30))
    run = measured()
    with pytest.raises(QuestionError, match="at least 20 in each half"):
        calibrate(SETUP, run, np.arange(160) < 5)


def test_json_holds_no_nan(found):
    told = found.to_dict()
    flat = [
        *told["errors_held_out"].values(),
        *told["errors_fitted"].values(),
        *(v for pair in told["measured_by_simulated"].values() for v in pair),
    ]
    assert np.isfinite(flat).all() and told["simulations"] > 5


@pytest.mark.parametrize("silent", [0, 3])
def test_whether_a_client_saw_the_header_of_an_answer_is_found(silent):
    """gpt-oss answers begin with three tokens that a chat endpoint takes off and /v1/completions does not."""
    setup = Setup(
        model=model("gpt-oss-20b"),
        chip=chip("RTX 4090"),
        weights_precision="mxfp4",
        max_sequences=16,
        token_budget=2048,
    )
    rng = np.random.default_rng(4)
    traffic = replace(
        poisson(4, 60, 10, 10, seed=4), prompt=rng.integers(50, 2500, 60), output=rng.integers(20, 90, 60)
    )
    rows = simulate(replace(setup, silent_tokens=silent), traffic, TRUTH, record=False).requests
    seen = Measured(traffic, rows["ttft_s"].to_numpy(), rows["tpot_s"].to_numpy(), "made")
    found = calibrate(setup, seen, np.arange(60) % 2 == 0)
    assert found.setup.silent_tokens == silent
    assert max(abs(found.errors[m]) for m in ("ttft_mean", "tpot_mean")) < 0.02
    assert any("header" in note for note in found.notes) == (silent > 0)
    told = found.for_setup(setup)[1]  # of a planner, which reckons with the first token generated
    assert any("that its client saw" in note for note in told) == (silent > 0)

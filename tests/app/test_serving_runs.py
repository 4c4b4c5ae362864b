"""Runs that a simulation is held to: one load of several, no sample of one, and one of the store unasked."""

from dataclasses import replace

import numpy as np
import pytest

from app.whatif.serving import SERVING
from app.whatif.serving.answers import fit
from app.whatif.serving.inputs import measured, run_setup, traffic
from app.whatif.serving.load import load_of
from app.whatif.serving_plan import SERVING_PLAN
from app.whatif.serving_plan.answers import find
from app.whatif.serving_plan.asked import Asked
from catalog import chip, model
from errors import QuestionError
from simulators.serving.efficiency import Efficiency
from simulators.serving.engine import simulate
from simulators.serving.setup import Setup
from simulators.serving.traffic import poisson
from tests.app import made_runs
from tests.app.commands import asked_by

S = 1_000_000_000
START_NS = 1_767_571_200 * S
SETUP = Setup(model=model("llama-3.1-8b"), chip=chip("h100"))
TRUTH = Efficiency(bandwidth=0.5, compute=0.3, step_s=4e-3, sequence_s=2e-5)
FACTS = {"model": "llama-3.1-8b", "chip": "h100", "chips": 1}


def served(loads: dict[str, float], counted: dict[str, int] | None = None, requests: int = 60) -> dict:
    """Loads of these rates (requests per second), an hour apart, as the model serves them by TRUTH. `counted`: of
    loads of which the tool counts more requests than it keeps."""
    columns: dict[str, list] = {
        n: [] for n in ("id", "stage", "arrival_ns", "ttft_ns", "e2e_ns", "prompt_tokens", "output_tokens", "status")
    }
    for n, (name, rate) in enumerate(loads.items()):
        rows = simulate(SETUP, poisson(rate, requests, 300, 24, seed=n), TRUTH, record=False).requests
        arrival = START_NS + 3600 * n * S + np.round(rows["arrival_s"] * S).astype(np.int64)
        columns["id"] += [f"{name} {i}" for i in range(requests)]
        columns["stage"] += [name] * requests
        columns["arrival_ns"] += arrival.tolist()
        columns["ttft_ns"] += np.round(rows["ttft_s"] * S).astype(np.int64).tolist()
        columns["e2e_ns"] += np.round((rows["last_token_s"] - rows["arrival_s"]) * S).astype(np.int64).tolist()
        columns["prompt_tokens"] += [300] * requests
        columns["output_tokens"] += [24] * requests
        columns["status"] += ["completed"] * requests
    names = list(loads)
    stages = {
        "stage": names,
        "tool": ["guidellm"] * len(names),
        "order": [*range(len(names))],
        "completed": [(counted or {}).get(n, requests) for n in names],
        "failed": [0] * len(names),
        "duration_s": [requests / r for r in loads.values()],
        "source": ["a"] * len(names),
    }
    return {"requests": columns, "stages": stages}


def stored(place, tables: dict, name: str = "sweep", **facts):
    return made_runs.write(place.store, name, tables, FACTS | facts, kind="serving")


def args_of(*more: str, of=SERVING):
    return asked_by(of, *more)


def test_one_load_of_several_counts_and_is_named(place):
    run = stored(place, served({"slow": 2.0, "fast": 20.0}))
    for args, name, rate in ((args_of(), "fast", 20.0), (args_of("--stage", "slow"), "slow", 2.0)):
        load = load_of(run, args.stage)
        assert load.stage == name and f"2 loads: {name} counts" in load.notes[0]
        seen, asked = measured(load), traffic(args, run)
        for each in (seen.traffic, asked):
            assert len(each) == 60 and each.arrival_s[0] == 0
            assert len(each) / each.arrival_s[-1] == pytest.approx(rate, rel=0.35)
            assert f"load {name}" in each.name
        assert np.isfinite(seen.ttft_s).all() and any("2 loads" in n for n in asked.notes)
    with pytest.raises(QuestionError, match="no load 'none'") as e:
        load_of(run, "none")
    assert "slow, fast" in str(e.value)
    assert load_of(stored(place, served({"only": 2.0}), "one")).notes == ()


def test_a_sample_of_requests_is_not_served_again(place):
    run = stored(place, served({"slow": 2.0, "fast": 20.0}, {"fast": 900}))
    assert load_of(run).stage == "slow", "the load that is kept whole"
    with pytest.raises(QuestionError, match="60 of the 900 requests") as e:
        measured(load_of(run, "fast"))
    assert "keeps every request" in str(e.value)
    alone = stored(place, served({"fast": 20.0}, {"fast": 900}), "alone")
    for ask in (lambda: load_of(alone), lambda: traffic(args_of(), alone)):
        with pytest.raises(QuestionError, match="a sample"):
            ask()


def test_a_fit_is_to_one_load_and_says_which(place):
    run = stored(place, served({"slow": 2.0, "fast": 20.0}))
    ran = run_setup(args_of(), run)
    made = fit(run, ran, "slow")
    assert (made.name, made.requests) == ("sweep, load slow", 60) and "as asked" in made.notes[0]
    assert fit(run, ran, "slow") is made
    for of, asked in ((SERVING, ["--rate", "1", "--input", "9", "--output", "9"]), (SERVING_PLAN, [])):
        more = [
            "--model",
            "llama-3.1-8b",
            *(
                ["--on", "h100", "--rate", "1", "--input", "9", "--output", "9"]
                if of is SERVING_PLAN
                else ["--chip", "h100", "--chips", "1", *asked]
            ),
        ]
        with pytest.raises(QuestionError, match="--stage names a load of no run"):
            of.answer(args_of(*more, "--stage", "slow", of=of), place)


def test_a_stored_run_of_the_same_chip_and_model_is_fitted_unasked(place):
    stored(place, served({"only": 8.0}), "ours")
    stored(place, served({"only": 8.0}), "of another model", model="qwen3-8b")
    asked = Asked(model="llama-3.1-8b", on="h100", input=300, output=24, rate=5.0, formats="bf16")
    plain, told = find(asked), find(asked, runs=place.store.listing()[0])
    assert any(n.startswith("H100 SXM is calibrated on ours (") for n in told.notes)
    assert not any("another model" in n or n.startswith("Uncalibrated") for n in told.notes)
    assert any(n.startswith("Uncalibrated") for n in plain.notes)
    assert told.bands[0].basis == "calibrated on ours" and "assumed" in plain.bands[0].basis
    assert told.plan.choices[0].rate_per_replica < plain.plan.choices[0].rate_per_replica, "TRUTH is the slower"


def test_a_stored_run_that_cannot_be_used_is_named_and_the_plan_is_made(place):
    stored(place, served({"only": 8.0}, {"only": 500}), "sampled")
    asked = Asked(model="llama-3.1-8b", on="h100", input=300, output=24, rate=5.0, formats="bf16")
    told = find(asked, runs=place.store.listing()[0])
    assert any("The run sampled is of this model on H100 SXM, but cannot be used" in n for n in told.notes)
    assert told.plan.best is not None


@pytest.mark.parametrize(("name", "tokens"), [("output", 1_000_000), ("input", 1_000_000), ("output", 20_001)])
def test_requests_too_long_to_be_simulated_in_thousands_are_refused_at_once(monkeypatch, name, tokens):
    monkeypatch.setattr("app.whatif.serving_plan.answers.plan", lambda *_, **__: pytest.fail("it was planned"))
    asked = replace(Asked(model="llama-3.1-8b", on="h100", input=300, output=24, rate=1.0), **{name: tokens})
    with pytest.raises(QuestionError, match=f"--{name} {tokens:,} tokens .* longer than a plan can simulate"):
        find(asked)

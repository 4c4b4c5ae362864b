"""What a job recorded beside its steps is no time of a step in a comparison: saves, evaluations and custom events."""

import numpy as np
import pytest

from analyzers.difference.step_time import StepTimes, step_times
from app.comparing.answer import Compared
from app.comparing.gates import FAILED, PASSED, gate
from app.comparing.sides import compare_jobs
from runs.run import Run
from runs.store import Store
from tests.app.made_runs import PEAK, START_NS, S, write


def marked(
    store: Store,
    name: str,
    every: int,
    kind: str = "checkpoint_save",
    *,
    step_s: float = 20.0,
    told: bool = True,
    rates: dict[str, list[float]] | None = None,
) -> Run:
    """400 steps that goodput entries mark, and a pause of this kind after every so many of them. `told`: whether the
    job recorded it. `rates`: more columns of `steps`."""
    took = step_s + np.random.default_rng(every).normal(0, 0.1, 400)
    pauses = np.where(np.arange(400) % every == every - 1, 15.0, 0.0)
    starts = START_NS + (np.cumsum([80.0, *(took + pauses)]) * S).astype(int)
    begins = (starts[:-1] + (took * S).astype(int))[pauses > 0].tolist()
    ends = starts[1:][pauses > 0].tolist()
    source = ["goodput.jsonl"]
    life = {"kind": ["job"], "start_ns": [START_NS], "end_ns": [int(starts[-1])], "detail": [None]}
    if told:
        life["kind"] += [kind] * len(begins)
        life["start_ns"] += begins
        life["end_ns"] += ends
        life["detail"] += ["benchmark"] * len(begins)
    order = list(range(len(life["kind"])))
    steps = {"step": list(range(400)), "start_ns": starts[:-1].tolist(), "order": list(range(400)), **(rates or {})}
    tables = {
        "steps": {**steps, "source": source * 400},
        "lifecycle": {**life, "order": order, "source": source * len(order)},
    }
    return write(store, name, tables, {"chip": "TPU v5p", "chips": 4, "peak_flops_per_s": PEAK, "every": every})


def times(run: Run) -> StepTimes:
    found = step_times(run.tables, run.manifest.facts)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["checkpoint_save", "eval", "custom"])
def test_more_pauses_make_no_step_slower(place, kind):
    rare, often = (marked(place.store, n, every, kind) for n, every in (("rare", 50), ("often", 5)))
    found = compare_jobs(rare, often, place)
    assert found.step is not None and not found.told and abs(found.step.change) < 0.005
    assert gate("step_time>+1%").look(Compared(rare, often, place).sides).outcome == PASSED
    assert times(rare).apart == times(often).apart == {"first of an attempt": 1}


def test_steps_that_are_slower_beside_their_pauses_are_seen(place):
    a, b = marked(place.store, "a", 5), marked(place.store, "b", 50, step_s=21.0)
    judged = gate("step_time>+1%").look(Compared(a, b, place).sides)
    assert judged.outcome == FAILED and judged.change == pytest.approx(0.05, abs=0.003)


def test_what_no_job_recorded_stays_in_its_steps(place):
    often = times(marked(place.store, "often", 5, told=False))
    assert often.mean_s == pytest.approx(20 + 15 / 5, abs=0.1)


def test_an_event_that_holds_whole_steps_takes_none_of_their_time(place):
    run = marked(place.store, "wrapped", 400, "custom")
    tables = {n: run.tables.arrow(n) for n in ("steps", "lifecycle")}
    wrapped = {c: [*tables["lifecycle"][c].to_pylist()] for c in ("kind", "start_ns", "end_ns", "detail")}
    wrapped["start_ns"][1], wrapped["end_ns"][1] = tables["steps"]["start_ns"].to_pylist()[10::80][:2]
    steps = {c: tables["steps"][c].to_pylist() for c in ("step", "start_ns", "order", "source")}
    life = {**wrapped, "order": [0, 1], "source": ["goodput.jsonl"] * 2}
    found = times(write(place.store, "in it", {"steps": steps, "lifecycle": life}, {"chip": "TPU v5p", "chips": 4}))
    assert found.seconds.min() > 19 and len(found.step) >= 398


def test_rates_of_a_step_are_those_of_its_own_time(place):
    """Tokens as a log prints them for the step alone, and FLOPs that do not change."""
    rates = {"tokens_per_s_per_chip": [500.0] * 400, "model_flops_per_chip": [0.4 * PEAK * 20] * 400}
    rare, often = (marked(place.store, n, every, rates=rates) for n, every in (("rare", 50), ("often", 5)))
    sides = Compared(rare, often, place).sides
    for text in ("tokens_per_s<-1%", "mfu<-1"):
        judged = gate(text).look(sides)
        assert judged.outcome == PASSED and judged.change == pytest.approx(0.0, abs=0.005), judged.why

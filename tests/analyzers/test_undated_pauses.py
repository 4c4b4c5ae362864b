"""Logs that date nothing, but tell how long evaluations and saves took: these are none of what was not held."""

import pandas as pd
import pytest

from analyzers.lost import goodput
from analyzers.time import ledger
from analyzers.time.undated_pauses import undated_pauses_s
from runs.run import facts_of
from runs.tables import MemoryTables

S = 1_000_000_000


def tables(*told: tuple[str, float, str], dated: bool = False) -> MemoryTables:
    """Ten steps of 4 s, and numbers: (name, value, source)."""
    steps = {"step": list(range(10)), "dur_ns": [4 * S] * 10, "order": list(range(10)), "attempt": [0] * 10}
    if dated:
        steps["start_ns"] = [1_767_571_200 * S + n * 4 * S for n in range(10)]
    names, values, sources = zip(*told, strict=True)
    scalars = {"name": list(names), "value": list(values), "source": list(sources), "step": [5] * len(told)}
    return MemoryTables({"steps": {**steps, "source": ["a.log"] * 10}, "scalars": scalars})


EVALUATED = (("eval_runtime", 6.0, "a.log"), ("eval_g0_runtime", 4.0, "a.log"), ("eval_loss", 2.0, "a.log"))
RL = (("timing_s/testing", 10.0, "a.log"), ("timing_s/save_checkpoint", 10.0, "a.log"), ("timing_s/gen", 3.0, "a.log"))


@pytest.mark.parametrize(
    ("told", "eval_s", "save_s"),
    [
        (EVALUATED, 10.0, 0.0),
        (RL, 10.0, 10.0),
        ((*EVALUATED, ("eval_runtime", 9.0, "trainer_state.json")), 10.0, 0.0),  # the same, told by another file
        ((("eval_runtime", float("nan"), "a.log"), ("eval_runtime", -3.0, "a.log")), 0.0, 0.0),
        ((("train_runtime", 50.0, "a.log"), ("eval_samples_per_second", 3.0, "a.log")), 0.0, 0.0),
    ],
)
def test_what_evaluations_and_saves_took_is_time_that_was_held(told, eval_s, save_s):
    """A job that evaluated for a fifth of its time was told as one of which all went into steps."""
    found = tables(*told)
    book = ledger.analyze(found, facts_of({"chips": 8}), {}).ledger
    assert book.chip_seconds == pytest.approx(8 * (40 + eval_s + save_s))
    assert [a.chip_seconds for n in ("eval", "checkpoint_save") if (a := book.find(n))] == [
        pytest.approx(8 * s) for s in (eval_s, save_s) if s
    ]
    share = goodput.analyze(found, facts_of({"chips": 8}), {})
    assert share.goodput_share == pytest.approx(40 / (40 + eval_s + save_s))
    assert sum(share.badput_s["custom_badput_events"].values()) == eval_s
    assert share.badput_s["unproductive_checkpoint_save_time"] == save_s
    assert any("dates none of them" in note for note in share.notes) is (eval_s + save_s > 0)


def test_a_job_whose_steps_have_times_of_day_tells_its_pauses_itself():
    book = ledger.analyze(tables(*EVALUATED, dated=True), facts_of({"chips": 8}), {}).ledger
    assert book.chip_seconds == pytest.approx(8 * 40) and book.find("eval") is None
    assert undated_pauses_s(MemoryTables({}), pd.Series([3])) == {}


def evaluated(*told: tuple[str, list[int]], logs: tuple[tuple[str, int, int], ...]) -> MemoryTables:
    """Evaluations of 6 s at some steps by each input, and logs that tell of steps of 4 s from one number to another."""
    steps = [(n, name) for name, low, high in logs for n in range(low, high)]
    evals = [(at, name) for name, places in told for at in places]
    return MemoryTables(
        {
            "steps": {
                "step": [n for n, _ in steps],
                "dur_ns": [4 * S] * len(steps),
                "order": list(range(len(steps))),
                "attempt": [0] * len(steps),
                "source": [name for _, name in steps],
            },
            "scalars": {
                "name": ["eval_runtime"] * len(evals),
                "value": [6.0] * len(evals),
                "source": [name for _, name in evals],
                "step": [at for at, _ in evals],
            },
        }
    )


@pytest.mark.parametrize(
    ("told", "logs", "count"),
    [
        # the state tells of the time before the job was resumed too, of whose steps nothing tells
        ((("state.json", list(range(10, 101, 10))), ("b.log", [60, 70, 80, 90, 100])), (("b.log", 52, 101),), 5),
        ((("a.log", [10, 20, 30]), ("b.log", [40, 50])), (("a.log", 1, 32), ("b.log", 32, 51)), 5),  # two attempts
        ((("a.log", [0, 10, 20]),), (("a.log", 2, 21),), 3),  # one before the first step
        ((("a.log", [10, 20, 30]), ("state.json", [10, 20, 30])), (("a.log", 2, 31),), 3),
    ],
)
def test_pauses_are_those_of_the_steps_that_were_taken_each_once(told, logs, count):
    found = evaluated(*told, logs=logs)
    book = ledger.analyze(found, facts_of({"chips": 8}), {}).ledger
    evals = book.find("eval")
    assert evals is not None and evals.chip_seconds == pytest.approx(8 * 6 * count)
    share = goodput.analyze(found, facts_of({"chips": 8}), {})
    assert sum(share.badput_s["custom_badput_events"].values()) == 6 * count

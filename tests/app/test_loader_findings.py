"""What is said of a loader: that it stalls only where stalls are what is lost, and for what they take."""

from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from analyzers.device.input import InputResult
from analyzers.findings.base import Seen
from analyzers.findings.rules.input import of_stalls, stalling, waited
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.input import INPUT
from app.workspace import workspace
from collectors.ingest import ingest
from runs.run import facts_of
from runs.schema import SCHEMAS
from tests.collectors.kineto_traces import event, kernel, launch, trace

S, EPOCH = 1_000_000_000, 1_767_571_200_000_000_000
STEPS, CHIPS = 100, 4


def found(tmp_path, fetch_s):
    """The findings about a job of steps that compute for a second after a fetch of this long."""
    place = workspace(str(tmp_path / "store"))
    starts = [EPOCH + int(sum(1 + f for f in fetch_s[:n]) * S) for n in range(len(fetch_s))]
    end = starts[-1] + int((1 + fetch_s[-1]) * S)
    told = [
        ("job", EPOCH - S, end),
        *(("data_loading", at, at + int(f * S)) for at, f in zip(starts, fetch_s, strict=True)),
    ]
    tables = {
        "steps": {"step": list(range(len(starts))), "start_ns": starts, "attempt": [0] * len(starts)},
        "lifecycle": {
            "kind": [kind for kind, _, _ in told],
            "start_ns": [a for _, a, _ in told],
            "end_ns": [b for *_, b in told],
        },
    }
    with place.store.writer() as writer:
        for name, columns in tables.items():
            count = len(next(iter(columns.values())))
            more = {"source": ["goodput.jsonl"] * count, "order": list(range(count))}
            writer.rows(name, SCHEMAS[name].batch(columns | more))
        source = {"name": "goodput.jsonl", "sha256": "0" * 64, "bytes": 1, "collector": "goodput_log"}
        run = writer.commit(
            run_id="0" * 64, name="job", kind="training", facts=facts_of({"chips": CHIPS}), sources=[source]
        )
    return {f.cause: f for f in ask(FINDINGS, run, {}, place.registry).findings}


@pytest.mark.parametrize("usual_s", [0.0, 0.01])
def test_stalls_are_worth_what_they_take_beyond_a_usual_fetch(tmp_path, usual_s):
    stalls = {40: 6.0, 41: 5.0, 60: 7.0}
    told = found(tmp_path, [stalls.get(n, usual_s) for n in range(STEPS)])
    assert set(told) == {"loader_stalls"}
    gain = told["loader_stalls"].gain
    assert gain.likely == pytest.approx(CHIPS * sum(s - usual_s for s in stalls.values()), rel=0.02)
    assert "in 3 steps between 40 and 60, 7.00 s at the longest" in told["loader_stalls"].title


def test_of_what_a_profile_saw_a_single_longer_fetch_is_the_lesser_part():
    fetch = [0.05] * STEPS
    fetch[40] = 0.5
    rows = pd.DataFrame({"step": range(STEPS), "kept": True, "fetch_s": fetch, "devices": CHIPS})
    seen = cast(InputResult, SimpleNamespace(rows=rows))
    long = stalling(seen)
    assert long.to_dict() == {40: 0.5}
    assert of_stalls(seen, long) == pytest.approx(0.45 / (98 * 0.05 + 0.5))
    assert of_stalls(cast(InputResult, SimpleNamespace(rows=rows.assign(devices=0))), long) == 1.0


@pytest.mark.parametrize("devices", [CHIPS, CHIPS // 2, 1])
def test_devices_without_a_profile_wait_for_input_as_those_that_have_one(devices):
    rows = pd.DataFrame({"step": range(STEPS), "usual": True, "fetch_s": 0.05, "devices": devices, "waited_s": 0.05})
    saw = cast(InputResult, SimpleNamespace(rows=rows, waited_s=0.05 * devices * STEPS))
    seen = cast(Seen, SimpleNamespace(chips=CHIPS, amount=lambda name: 0.05 * devices * STEPS))
    assert waited(seen, saw) == pytest.approx(0.05 * CHIPS * STEPS)


def test_one_stall_is_told_by_its_step(tmp_path):
    told = found(tmp_path, [8.0 if n == 40 else 0.001 for n in range(STEPS)])
    assert "stalls in step 40, 8.00 s" in told["loader_stalls"].title


def test_neither_stalls_nor_usual_fetches_below_the_floor_are_told(tmp_path):
    assert not found(tmp_path, [1.5 if n == 40 else 0.015 for n in range(STEPS)])


@pytest.mark.parametrize(("fetch_us", "told"), [(40_000, True), (500, False)])
def test_a_profile_without_steps_tells_of_its_loader_all_the_same(tmp_path, fetch_us, told):
    """Six batches of 60 ms of computing, each after a fetch in which the device does nothing."""
    events, at = [], 0
    for n in range(6):
        fetch = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        events.append(event("user_annotation", fetch, at, fetch_us))
        at += fetch_us
        events += [launch(at, 5, n + 1), kernel("k", at + 10, 60_000, n + 1)]
        at += 60_010
    path, place = tmp_path / "trace.json", workspace(str(tmp_path / "store"))
    path.write_bytes(trace(events))
    run = place.store.get(ingest([path], place.store).run_id)
    found = ask(FINDINGS, run, {}, place.registry)
    gains = {f.cause: f.gain.likely for f in found.findings}
    assert gains == ({"slow_loader": pytest.approx(5 * 0.04, rel=0.01)} if told else {})
    untold = {cause for gap in found.not_told for cause in gap.causes}
    assert not untold & {"slow_loader", "loader_stalls"}
    said = INPUT.verdict(ask(INPUT, run, {}, place.registry))
    assert ("36 % of the time between their operations" in said) == told and "step" not in said

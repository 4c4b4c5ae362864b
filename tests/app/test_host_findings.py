"""What hosts do to their devices: a finding gives back no more than the ledger says that devices were idle for it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.parts import StepParts
from analyzers.findings.rules.host import KINDS, _spent, _uneven
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.ledger import LEDGER
from collectors.ingest import ingest
from runs.store import Store
from tests.collectors.kineto_traces import kernel, launch, op, step, trace

CASES = Path(__file__).parents[1] / "benchmarks" / "selection" / "cases"
IDLE_US = 200


def job(folder, ranks, beside_us):
    """A run without a known peak, in which each device is idle in each step while its host is in operators, and
    computes while it is in others for `beside_us`."""
    files = []
    for rank in range(ranks):
        events = []
        for n in range(3):
            at, begun = 1000 * n, 1000 * n + IDLE_US
            events += [step(n, at, 990), op("aten::a", at, IDLE_US), launch(begun - 3, 1, 2 * n + 1)]
            events += [kernel("k", begun, 980 - IDLE_US, 2 * n + 1), op("aten::b", begun + 1, beside_us)]
        info = {"rank": rank, "world_size": ranks, "backend": "nccl"}
        files.append(folder / f"rank-{rank}.json")
        files[-1].write_bytes(trace(events, distributedInfo=info))
    store = Store(folder / "store")
    run = store.get(ingest(files, store).run_id)
    assert run is not None
    return run


@pytest.mark.parametrize(("ranks", "beside_us"), [(1, 250), (1, 1), (2, 1), (4, 1)])
def test_launching_gives_back_what_devices_were_idle_for_it(place, tmp_path, ranks, beside_us):
    told = ask(FINDINGS, job(tmp_path, ranks, beside_us), {}, place.registry)
    (found,) = (f for f in told.findings if f.cause == "launch_bound")
    (idle,) = (e.value for e in found.evidence if e.name == "devices idle meanwhile")
    assert idle == pytest.approx(ranks * 3 * IDLE_US * 1e-6, rel=0.05)
    assert found.gain.likely == pytest.approx(idle, rel=0.05)


def test_what_an_evaluation_compiles_is_given_back_once(place, tmp_path):
    """Four of six steps, not the first, evaluate for 600 of 1,000 microseconds, and compile in 400 of them."""
    events = []
    for n in range(6):
        at, idle_us = 1000 * n, 600 if 0 < n < 5 else 0
        events += [
            step(n, at, 990),
            launch(at + idle_us + 2, 1, n + 1),
            kernel("k", at + idle_us + 5, 980 - idle_us, n + 1),
        ]
        events += [op("evaluation", at + 1, 600), op("torchdynamo", at + 100, 400)] if idle_us else []
    path, store = tmp_path / "rank.json", Store(tmp_path / "store")
    path.write_bytes(trace(events))
    told = ask(FINDINGS, store.get(ingest([path], store).run_id), {}, place.registry)
    gains = {f.cause: f.gain.likely for f in told.findings}
    assert gains == {
        "recompilation": pytest.approx(4 * 400e-6, rel=0.05),
        "evaluation": pytest.approx(4 * 200e-6, rel=0.05),
    }


def test_what_hosts_do_with_rows_of_padding_is_of_the_padding(place):
    """A real job of which no calls were profiled: hosts fill rows that hold nothing as they fill others."""
    run = place.store.get(ingest([CASES / "case-042"], place.store).run_id)
    (found,) = ask(FINDINGS, run, {}, place.registry).findings
    executed, needed = (e.value for e in found.evidence)
    idle = ask(LEDGER, run, {}, place.registry).ledger.amount("idle_host_code")
    assert found.cause == "batch_padding" and idle > 0
    assert found.draws["idle_host_code"] == pytest.approx(idle * (1 - needed / executed), rel=0.05)


def unjudged(chips: int, **amounts: float) -> SimpleNamespace:
    """A job of which too few steps are profiled to tell which rank is late."""
    said = lambda *names: sum(amounts.get(name, 0.0) for name in names)  # noqa: E731
    return SimpleNamespace(chips=chips, amount=said, answer=lambda question, of: None)


@pytest.mark.parametrize(("waited", "uneven"), [(0.0, False), (0.4, False), (0.6, True), (4.0, True)])
def test_host_code_that_others_wait_for_is_not_told_as_code_of_all(waited, uneven):
    assert _uneven(unjudged(4, straggler_wait=waited), 1.0) == uneven


@pytest.mark.parametrize(
    ("cause", "all_wait"), [("garbage_collection", True), ("logging", True), ("launch_bound", False)]
)
def test_what_one_host_does_and_all_wait_for_is_of_all_and_launching_beside_devices_is_not(cause, all_wait):
    """Of four ranks one is idle for as long as its host works, 1 s in all."""
    kind = next(k for k in KINDS if k.cause == cause)
    rows = pd.DataFrame({"step": range(4), "start_ns": range(4), "dur_s": 1.0})
    held = StepParts(rows, pd.DataFrame({kind.work: [0.25] * 4}), np.zeros(4), np.zeros(4), False)
    assert _spent(unjudged(4), held, kind, 1.0) == (4.0 if all_wait else 1.0)

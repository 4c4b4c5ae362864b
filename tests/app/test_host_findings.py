"""What hosts do to their devices: a finding gives back no more than the ledger says that devices were idle for it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analyzers.findings.base import Band
from analyzers.findings.parts import StepParts
from analyzers.findings.rules.host import KINDS, _beside_copies, _in_turn, _some_of, _spent, _uneven
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.ledger import LEDGER
from collectors.ingest import ingest
from runs.store import Store
from runs.tables import MemoryTables
from tests.collectors.kineto_traces import collective, kernel, launch, op, step, trace

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


@pytest.mark.parametrize(("steps", "why"), [(0, "no step is marked"), (1, "none is a usual one"), (3, "")])
def test_of_a_profile_with_one_step_it_is_not_said_that_none_is_marked(place, tmp_path, steps, why):
    """Of three spells of 1,000 µs a device is idle for 500 while its host launches, and so many are marked as steps."""
    events = [step(n, 1000 * n, 990) for n in range(steps)]
    for n in range(3):
        at = 1000 * n + 500
        events += [op("aten::a", at - 500, 500), launch(at - 3, 1, n + 1), kernel("k", at, 490, n + 1)]
    path, store = tmp_path / "rank.json", Store(tmp_path / "store")
    path.write_bytes(trace(events))
    told = ask(FINDINGS, store.get(ingest([path], store).run_id), {}, place.registry)
    (said,) = [gap.why for gap in told.not_told if "launch_bound" in gap.causes] or [""]
    assert why in said and (why != "") == (said != "")
    assert {f.cause for f in told.findings} == ({"launch_bound"} if steps == 3 else set())


@pytest.mark.parametrize("where", [0, 3, None])
def test_code_that_runs_in_one_step_is_not_told_as_that_of_each(place, tmp_path, where):
    """Of eight steps that compute for 80 ms a device is idle for 640 in one of them, or for 80 in each."""
    events, at = [], 0
    for n in range(8):
        idle = (80_000 if where is None else 640_000 * (n == where)) + 50
        events += [step(n, at, idle + 80_000), launch(at + 1, 2, 2 * n + 1), kernel("first", at + 5, 20, 2 * n + 1)]
        events += [launch(at + idle - 5, 2, 2 * n + 2), kernel("k", at + idle, 80_000, 2 * n + 2)]
        at += idle + 80_000
    path, store = tmp_path / "rank.json", Store(tmp_path / "store")
    path.write_bytes(trace(events))
    told = ask(FINDINGS, store.get(ingest([path], store).run_id), {}, place.registry)
    found = {f.cause: f for f in told.findings}
    assert ("host_overhead" in found) == (where != 0)
    if where == 0:
        (why,) = (gap.why for gap in told.not_told if "host_overhead" in gap.causes)
        assert "in step 0, the first of a profile" in why
    else:
        assert ("Nearly all of that is in step 3." in found["host_overhead"].title) == (where == 3)
        assert found["host_overhead"].where.steps == ((3,) if where else None)


def test_launching_beside_a_device_that_works_gives_nothing_back(place, tmp_path):
    """Two ranks whose hosts do nothing but launch, an operator every 100 µs, and whose devices work in 40 of them."""
    files = []
    for rank in range(2):
        events = []
        for n in range(6):
            events.append(step(n, 1000 * n, 1000))
            for k in range(10):
                at, call = 1000 * n + 100 * k, 10 * n + k + 1
                events += [op("aten::a", at, 100), launch(at + 60, 4, call), kernel("k", at + 65, 40, call)]
        files.append(tmp_path / f"rank-{rank}.json")
        files[-1].write_bytes(trace(events, distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"}))
    store = Store(tmp_path / "store")
    told = ask(FINDINGS, store.get(ingest(files, store).run_id), {}, place.registry)
    (found,) = (f for f in told.findings if f.cause == "launch_bound")
    assert found.gain.likely == pytest.approx(0.6 * told.whole, rel=0.02)


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


def test_an_evaluation_that_first_waits_for_steps_before_it_is_no_longer_than_its_own_work(place, tmp_path):
    """Steps of 100 µs, each launched at once; after the 8th and the 16th the host evaluates for 40 µs, and before that
    waits for all that it has launched."""
    events, call, mark, free = [], 0, 0, 10
    for n in range(24):
        begun = mark
        call, free = call + 1, max(free, mark + 5) + 100
        events += [launch(mark + 1, 1, call), kernel("k", free - 100, 98, call)]
        mark += 8
        if n % 8 == 7:
            call, free = call + 1, free + 40
            events += [launch(mark + 2, 1, call), kernel("validate", free - 40, 38, call)]
            events.append(op("evaluate", mark, free - mark))
            mark = free
        events.append(step(n, begun, mark - begun))
    path, store = tmp_path / "rank.json", Store(tmp_path / "store")
    path.write_bytes(trace(events))
    told = ask(FINDINGS, store.get(ingest([path], store).run_id), {}, place.registry)
    (gain,) = (f.gain.likely for f in told.findings if f.cause == "evaluation")
    assert gain == pytest.approx(3 * 40e-6, rel=0.1)


@pytest.mark.parametrize("name", ["save_checkpoint", "send_results"])
def test_copies_of_a_save_are_told_with_the_save(place, tmp_path, name):
    """In the 8th of 12 steps of 100 ms a host works for 300 ms, in 120 of which its device copies to it."""
    events, at = [], 0
    for n in range(12):
        took = 100_000
        events += [launch(at + 10, 1, n + 1), kernel("k", at + 20, 99_900, n + 1)]
        if n == 7:
            took += 300_000
            events.append(op(name, at + 100_000, 300_000))
            for k in range(10):
                begun = at + 110_000 + 12_000 * k
                events.append(launch(begun, 5, 100 + k, "cudaMemcpyAsync"))
                copy = kernel("Memcpy DtoH (Device -> Pageable)", begun + 10, 12_000 - 20, 100 + k)
                events.append(copy | {"cat": "gpu_memcpy"})
        events.append(step(n, at, took))
        at += took
    path, store = tmp_path / "rank.json", Store(tmp_path / "store")
    path.write_bytes(trace(events))
    told = ask(FINDINGS, store.get(ingest([path], store).run_id), {}, place.registry)
    found = {f.cause: f for f in told.findings}
    if name == "save_checkpoint":
        assert "device_to_host" not in found and found["slow_checkpoint"].where.steps == (7,)
        assert found["slow_checkpoint"].gain.high == pytest.approx(0.3, rel=0.02)
        assert "in step 7" in found["slow_checkpoint"].title
    else:
        assert "slow_checkpoint" not in found and found["device_to_host"].gain.likely == pytest.approx(0.108, rel=0.02)


@pytest.mark.parametrize(("name", "cause"), [("wandb.log", "logging"), ("my own code", "slow_rank")])
def test_a_rank_that_is_late_as_it_logs_is_no_slow_machine(place, tmp_path, name, cause):
    """In each of 24 steps of 1,000 µs the host of the first of three ranks is at it for 400, and the others wait."""
    size = {"Group size": 3}
    files = []
    for rank in range(3):
        events = []
        for n in range(24):
            at, late = 1000 * n, 0 if rank else 400
            events += [step(n, at, 1000), launch(at + late + 1, 2, 2 * n + 1)]
            events += [kernel("k", at + late + 5, 500 + rank, 2 * n + 1), launch(at + late + 10, 2, 2 * n + 2)]
            begun = at + late + 510 + rank
            events.append(collective("allreduce", begun, at + 990 - begun, 2 * n + 2, "[0, 1, 2]", **size))
            events += [] if rank else [op(name, at, late)]
        files.append(tmp_path / f"rank-{rank}.json")
        files[-1].write_bytes(trace(events, distributedInfo={"rank": rank, "world_size": 3, "backend": "nccl"}))
    store = Store(tmp_path / "store")
    told = ask(FINDINGS, store.get(ingest(files, store).run_id), {}, place.registry)
    (found,) = told.findings
    assert (found.cause, found.where.ranks) == (cause, (0,))
    assert found.gain.likely == pytest.approx(0.4 * told.whole, rel=0.1)
    assert ("logs or sends metrics" in found.title) == (cause == "logging")


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
    return SimpleNamespace(chips=chips, amount=said, answer=lambda question, of: None, tables=MemoryTables({}))


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


def half_profiled(seed: int, others_s: float) -> SimpleNamespace:
    """Forty steps of two ranks, of which one has a profile: its host runs 80 ms of code in each, the other's as long
    on the average as is told, both give or take a tenth. All meet once a step, and moving data takes 5 ms or so."""
    rng = np.random.default_rng(seed)
    mine, other = (s * (1 + 0.15 * rng.standard_normal(40)) for s in (0.08, others_s))
    inside = np.maximum(other - mine, 0) + 0.005 * (1 + 0.2 * rng.random(40))
    answers = {"overlap": SimpleNamespace(steps=pd.DataFrame({"step": range(40), "communication_s": inside}))}
    return SimpleNamespace(
        chips=2,
        amount=lambda *names: 40 * 0.08,
        answer=lambda question, of: answers.get(question),
        tables=MemoryTables({"captures": {"host": ["vm/0"], "devices": [1]}}),
    )


def test_code_of_one_profiled_host_is_of_all_where_its_device_waits_for_the_others():
    for others_s in (0.0, 0.04):  # the other waits, and nothing tells
        assert {_some_of(half_profiled(seed, others_s)) for seed in range(40)} == {("vm/0",)}
    assert [_some_of(half_profiled(seed, 0.08)) for seed in range(40)].count(()) >= 36
    whole = half_profiled(0, 0.0)
    whole.tables = MemoryTables({"captures": {"host": ["vm/0", "vm/1"], "devices": [1, 1]}})
    assert _some_of(whole) == ()


@pytest.mark.parametrize(("code", "beside"), [(1.0, True), (1.9, True), (2.1, False)])
def test_code_without_a_name_beside_more_copying_may_be_of_it(code, beside):
    copies = SimpleNamespace(cause="device_to_host", likely=4.0)
    seen = SimpleNamespace(tables=MemoryTables({}))
    assert _beside_copies(seen, [copies], Band.within(code, 0.1)) is beside
    assert not _beside_copies(seen, [SimpleNamespace(cause="logging", likely=4.0)], Band.within(code, 0.1))


@pytest.mark.parametrize(
    ("verdict", "cause", "scatter_s", "fetches_s", "in_turn"),
    [
        ("persistent", "input", 0.08, 0.0, True),
        ("persistent", "input", 0.08, 0.05, False),  # a loader that now takes longer, now less
        ("persistent", "input", 0.01, 0.0, False),  # all run the same code
        ("persistent", "launch", 0.08, 0.0, False),  # the late rank's own
        ("none", "input", 0.08, 0.0, False),
    ],
)
def test_code_of_now_one_host_now_another_is_no_code_of_all(verdict, cause, scatter_s, fetches_s, in_turn):
    """Two ranks, 40 steps: 80 ms of code in each on one of them, beside one that is 100 ms late for another reason."""
    now, then = (s * np.where(np.arange(40) % 2, 1, -1) for s in (scatter_s, fetches_s))
    ranks = pd.DataFrame([{"rank": "1", "cause": cause}])
    found = SimpleNamespace(verdict=verdict, ranks=ranks, steps=pd.DataFrame({"apart_s": 0.1 + now}))
    fed = SimpleNamespace(rows=pd.DataFrame({"fetch_s": 0.1 + then}))
    answers = {"stragglers": found, "input": fed}
    seen = SimpleNamespace(chips=2, amount=lambda *names: 40 * 0.08, answer=lambda question, of: answers[question])
    assert _in_turn(seen) is in_turn

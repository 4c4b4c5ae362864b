"""Several processes of a host in one profile, as Nsight Systems records all that a launcher starts: what one of them
did is not told of the devices of others."""

import json

import pytest

from analyzers import timeline
from analyzers.device import input as input_question
from analyzers.device import operations, overlap
from analyzers.device.critical_path import critical_path
from analyzers.device.launches import launches
from analyzers.findings.parts import FETCH, step_parts
from analyzers.time import ledger
from collectors.ingest import ingest
from errors.options import parse_options
from runs.run import facts_of
from runs.store import Store
from tests.collectors.nsys_exports import Export

MS = 1_000_000
STEPS, STEP, FETCHED, COMPUTED = 6, 100 * MS, 40 * MS, 50 * MS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two processes with a device each, of which one waits for its loader in each step, the other runs code of its
    own meanwhile."""
    folder, export = tmp_path_factory.mktemp("processes"), Export()
    for device, pid in enumerate((10, 20)):
        export.put("TARGET_INFO_CUDA_DEVICE", (device, 0, pid, f"GPU-{device}", 132))
        for n in range(STEPS):
            at = STEP * (n + 1) + device * MS
            export.range(f"step {n}", at, at + STEP, pid=pid)
            if not device:
                export.range("data_loading", at, at + FETCHED, pid=pid)
            export.ran("gemm", at + FETCHED + 1000, COMPUTED, n + 1, pid=pid, lag=500)
    export.write(folder / "report1.sqlite")
    store = Store(folder / "store")
    return store.find(ingest([folder / "report1.sqlite"], store).run_id)


def ask(run, question, **options):
    result = question.analyze(run.tables, facts_of({}), parse_options(question.OPTIONS, options))
    json.dumps(result.to_dict(), allow_nan=False)
    return result


def accounts(account, found=None):
    found = {} if found is None else found
    found[account["name"]] = account["chip_seconds"]
    for child in account["children"]:
        accounts(child, found)
    return found


def test_a_fetch_is_waited_for_by_the_devices_of_its_own_process(run):
    fetched = STEPS * FETCHED / 1e9
    for question in (overlap, launches):
        told = {row["device"]: row["input_wait_s"] for row in ask(run, question).to_dict()["devices"]}
        assert told == pytest.approx({0: fetched, 1: 0.0}), question.__name__
    told = accounts(ask(run, ledger).to_dict()["account"])
    assert told["input_wait"] == pytest.approx(fetched)
    assert told["idle_host_code"] == pytest.approx(fetched + STEPS * 2 * 10 * MS / 1e9, rel=1e-3)
    told = ask(run, input_question)
    assert told.waited_s == pytest.approx(fetched)
    assert told.usual_waited_share == pytest.approx(FETCHED / STEP / 2, rel=1e-3)


def test_steps_and_fetches_of_each_process_are_looked_at_by_themselves(run):
    assert ask(run, operations).device_steps == 2 * STEPS
    parts = step_parts(run.tables, facts_of({})).parts
    assert parts[FETCH].tolist() == pytest.approx([FETCHED / 1e9] * len(parts))


def test_a_thread_waits_for_no_thread_of_another_process(run):
    """While the one process fetched, the other launched nothing: that was taken for a hand-over."""
    told = {row["device"]: row for row in ask(run, critical_path).to_dict()["devices"]}
    assert told[0]["input_wait_s"] == pytest.approx(STEPS * FETCHED / 1e9)
    assert told[1]["input_wait_s"] < FETCHED / 1e9 < told[1]["host_code_s"]


def test_what_holds_up_several_devices_of_a_process_is_drawn_once(tmp_path):
    export = Export()
    for n, pid in enumerate((10, 20)):
        export.range("step 0", MS, 9 * MS, pid=pid).range("data_loading", MS + n, 2 * MS, pid=pid)
        for device in (0, 1):
            export.put("TARGET_INFO_CUDA_DEVICE", (2 * n + device, device, pid, f"GPU-{n}{device}", 132))
            export.ran("gemm", 3 * MS, MS, 1 + device, pid=pid, device=device)
    export.write(tmp_path / "report1.sqlite")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "report1.sqlite"], store).run_id)
    assert run.tables.rows("lifecycle") == 4
    (job,) = [lane for lane in ask(run, timeline).to_dict()["lanes"] if lane["group"] == "job"]
    assert job["events"] == 2


def test_what_each_process_does_in_a_step_is_not_added_up(tmp_path):
    """Four log one after another: the slowest of them, not all of them together, holds up the others."""
    export = Export()
    for device in range(4):
        pid = 10 + device
        export.put("TARGET_INFO_CUDA_DEVICE", (device, 0, pid, f"GPU-{device}", 132))
        for n in range(STEPS):
            at = STEP * (n + 1) + device * 1000
            export.range(f"step {n}", at, at + STEP, pid=pid)
            export.range("log metrics", at + device * 10 * MS, at + (device * 10 + 5 + device) * MS, pid=pid)
            export.ran("gemm", at + COMPUTED, FETCHED, n + 1, pid=pid)
    export.write(tmp_path / "report1.sqlite")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "report1.sqlite"], store).run_id)
    told = step_parts(run.tables, facts_of({})).parts
    assert told["logging"].tolist() == pytest.approx([0.008] * len(told))


def test_what_a_device_waits_for_at_the_end_is_told_by_its_own_process(tmp_path):
    """The one saves behind its last kernel, and the other was told to save as well."""
    export = Export()
    for device, pid in enumerate((10, 20)):
        export.put("TARGET_INFO_CUDA_DEVICE", (device, 0, pid, f"GPU-{device}", 132))
        for n in range(STEPS):
            at = STEP * (n + 1) + device * 1000
            export.range(f"step {n}", at, at + STEP, pid=pid)
            export.ran("gemm", at + FETCHED, COMPUTED, n + 1, pid=pid, lag=500)
            if not device:
                export.range("save checkpoint", at + FETCHED + COMPUTED + MS, at + STEP - MS, pid=pid)
    export.write(tmp_path / "report1.sqlite")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "report1.sqlite"], store).run_id)
    for question in (critical_path, launches):
        told = {row["device"]: row["checkpointing_s"] for row in ask(run, question).to_dict()["devices"]}
        assert told == pytest.approx({0: STEPS * 8 * MS / 1e9, 1: 0.0}), question.__name__


def test_what_a_late_process_does_in_a_step_is_told_in_that_step(tmp_path):
    """Stages of a pipeline take a step one after another: the last begins it when the first is nearly done, and logs at
    its end when the first takes the next."""
    export, late = Export(), 60 * MS
    for device in range(2):
        pid = 10 + device
        export.put("TARGET_INFO_CUDA_DEVICE", (device, 0, pid, f"GPU-{device}", 132))
        for n in range(STEPS):
            at = STEP * (n + 1) + device * late
            export.range(f"step {n}", at, at + STEP, pid=pid)
            export.ran("gemm", at + MS, COMPUTED, n + 1, pid=pid, lag=500)
            if n == 3:
                export.range("log metrics", at + 80 * MS, at + 95 * MS, pid=pid)
    export.write(tmp_path / "report1.sqlite")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "report1.sqlite"], store).run_id)
    told = step_parts(run.tables, facts_of({}))
    assert told.steps_with("logging", 0.001) == [3]
    assert told.of("logging")[3] == pytest.approx(0.015)


def test_what_devices_of_one_process_wait_for_is_told_by_the_thread_that_hands_on_what_to_launch(tmp_path):
    """XLA launches to each device by a thread of its own, which may show marks as well: what the thread of Python did
    behind the last of them was told of no device."""
    export = Export()
    for device in (0, 1):
        export.put("TARGET_INFO_CUDA_DEVICE", (device, device, 10, f"GPU-{device}", 132))
        for n in range(STEPS):
            at = STEP * (n + 1)
            export.range(f"step {n}", at + FETCHED, at + FETCHED + MS, tid=2 + device)
            export.ran("gemm", at + FETCHED, COMPUTED, 2 * n + device + 1, tid=2 + device, lag=500, device=device)
    for n in range(STEPS):
        at = STEP * (n + 1)
        export.range(f"step {n}", at, at + STEP)
        export.range("save checkpoint", at + FETCHED + COMPUTED + MS, at + STEP - MS)
    export.write(tmp_path / "report1.sqlite")
    store = Store(tmp_path / "store")
    run = store.find(ingest([tmp_path / "report1.sqlite"], store).run_id)
    for question in (critical_path, launches):
        told = {row["device"]: row["checkpointing_s"] for row in ask(run, question).to_dict()["devices"]}
        assert told == pytest.approx({n: 8 * MS / 1e9 for n in (0, 1)}), question.__name__

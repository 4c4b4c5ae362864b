"""Profiles in which several processes lie: each counts its steps, sequences and streams for itself."""

from collections import Counter
from time import process_time
from types import SimpleNamespace

import numpy as np
import pytest

from collectors.base import Source
from collectors.device import nsys
from collectors.device.kineto.marks import devices_by_process
from collectors.device.rocm import rocpd
from tests.collectors.nsys_exports import BASE, COLLECTIVE, Export, payload
from tests.collectors.reading import read, source_of
from tests.collectors.rocm_files import BOOT, GUID, Process, write_rocpd

MS = 1_000_000


@pytest.fixture
def got(tmp_path):
    def reading(export: Export):
        return read(nsys, source_of(tmp_path, export.data(tmp_path), "report1.sqlite"))

    return reading


@pytest.fixture
def of_amd(tmp_path):
    def reading(*processes: Process):
        path = write_rocpd(tmp_path / "made_results.db", *processes)
        return read(rocpd, Source(path, path.name))

    return reading


def pair(*devices: int) -> Export:
    """An export of processes 10 and 20, each with its device."""
    export = Export()
    for device, pid in zip(devices, (10, 20), strict=True):
        export.put("TARGET_INFO_CUDA_DEVICE", (device, 0, pid, f"GPU-{device}", 132))
    return export


def of_amd_pair() -> list[Process]:
    found = [Process(pid=908), Process(pid=909, guid=GUID.replace("3f2a", "3f2b"))]
    for process in found:
        process.agent(0, "CPU")
        process.agent(2)
    return found


def steps(result, since):
    return [(s["step"], s["start_ns"] - since, s["dur_ns"]) for s in result.rows.get("steps", [])]


def own_ns(result):
    return {o["op"]: o["self_ns"] for o in result.rows["ops"] if o["role"] == "compute"}


def test_the_backward_pass_is_of_the_module_of_its_own_process(got):
    export = pair(0, 1)
    for pid, module, late in ((10, "attention", 0), (20, "mlp", 200)):
        at = MS + late
        export.range(module, at, at + 100_000, pid=pid)
        export.range("aten::mm, seq = 5, op_id = 1, sizes = [[8, 4], [4, 2]]", at + 1000, at + 50_000, pid=pid)
        export.ran("forward_gemm", at + 10_000, 5000, 1, pid=pid)
        at += MS
        export.range("MmBackward0, seq = 5, op_id = 10", at + 1000, at + 80_000, pid=pid, tid=2)
        export.ran("backward_gemm", at + 10_000, 5000, 2, pid=pid, tid=2)
    told = {(o["device"], o["direction"], o["module"]) for o in got(export).rows["ops"] if o["role"] == "compute"}
    assert {(device, module) for device, _, module in told} == {(0, "attention"), (1, "mlp")}
    assert {direction for _, direction, _ in told} == {None, "backward"}


def test_what_is_launched_is_of_a_step_of_its_own_process(got):
    export = pair(0, 1)
    for pid, late in ((10, 0), (20, 300_000)):
        for n in range(4):
            at = MS * (n + 1) + late
            export.range(f"step {n}", at, at + MS, pid=pid)
            for k in range(10):
                export.ran(
                    "ncclDevKernel_AllReduce_Sum_f32(x)", at + 1000 + 99_000 * k, 50_000, 10 * n + k + 1, pid=pid
                )
    counted = Counter((c["device"], c["step"]) for c in got(export).rows["collectives"])
    assert counted == {(device, step): 10 for device in (0, 1) for step in range(4)}


def test_steps_without_a_number_are_counted_by_time_and_process(got, of_amd):
    export = pair(0, 1)
    for pid in (20, 10):
        for n in (2, 0, 3, 1):  # exports of today hold rows in no order
            at = MS * (n + 1) + pid
            export.range("train_step", at, at + 900_000, pid=pid)
            export.ran("gemm", at + 1000, 800_000, n + 1, pid=pid)
    result = got(export)
    assert steps(result, BASE) == [(n, MS * (n + 1) + pid, 900_000) for n in range(4) for pid in (10, 20)]
    assert "ProfilerStep" in {o["op"] for o in result.rows["ops"]}
    both = of_amd_pair()
    for late, process in enumerate(both):
        for n in (1, 0, 2):
            process.range("step", BOOT + MS * (n + 1) + late, 900_000)
            process.ran("gemm", BOOT + MS * (n + 1) + 1000, 800_000, n + 1)
    assert [n for n, *_ in steps(of_amd(*both), BOOT)] == [0, 0, 1, 1, 2, 2]


def test_marks_are_no_steps(got, of_amd):
    export, process = Export(), of_amd_pair()[0]
    for n in range(4):
        at = MS * (n + 1)
        export.range(f"iteration {n}", at, at + 900_000).range(f"step {n + 100}", at + 500_000, None, kind=34)
        export.ran("gemm", at + 1000, 800_000, n + 1)
        process.range(f"iteration {n}", BOOT + at, 900_000)
        process.mark(f"step {n + 100}", BOOT + at + 500_000)
        process.ran("gemm", BOOT + at + 1000, 800_000, n + 1)
    for result, since in ((got(export), BASE), (of_amd(process), BOOT)):
        assert steps(result, since) == [(n, MS * (n + 1), 900_000) for n in range(4)]


def test_what_shares_a_device_and_a_stream_number_takes_its_own_time(got, of_amd):
    export = pair(0, 0)
    export.ran("one", 1000, 1000, 1, pid=10, stream=7).ran("other", 1200, 400, 1, pid=20, stream=7)
    assert own_ns(got(export)) == {"one": 1000, "other": 400}
    both = of_amd_pair()
    both[0].ran("one", BOOT + 1000, 1000, 1)
    both[1].ran("other", BOOT + 1200, 400, 1)
    assert own_ns(of_amd(*both)) == {"one": 1000, "other": 400}


def test_fields_that_two_processes_name_differently_are_not_read(got):
    def bytes_of(export):
        call = payload(COLLECTIVE, "<QQ", 77, 4096)
        export.range("ncclAllReduce", 1000, 1500, payload=call)
        export.ran("ncclDevKernel_AllReduce_Sum_f32(x)", 1400, 500, 1, lag=100)
        return [c["bytes"] for c in got(export).rows["collectives"]]

    turned = ((1, COLLECTIVE, 0, None, 22, "Message size [bytes]", 0),)
    turned += ((1, COLLECTIVE, 1, None, 18, "NCCL communicator ID", 8),)
    assert bytes_of(Export().nccl_fields()) == [4096]
    assert bytes_of(Export().nccl_fields().put("NVTX_PAYLOAD_SCHEMA_ENTRIES", *turned)) == [None]


def of_devices(result):
    return {(s["device"], s["step"]) for s in result.rows["steps"]}, len(result.rows["steps"])


def test_steps_are_those_of_the_devices_that_their_process_drives(got, of_amd):
    """As one report of eight processes has them: taken for all devices' they were eight times as many."""
    export, both = pair(0, 1), of_amd_pair()
    both[1].agent(3, index=1)
    export.ran("a little at the start", 500, 100, 1, pid=20, device=7)
    for late, (pid, process) in enumerate(zip((10, 20), both, strict=True)):
        for n in range(4):
            at = MS * (n + 1) + 100_000 * late
            export.range(f"step {n}", at, at + 900_000, pid=pid)
            export.ran("gemm", at + 1000, 800_000, n + 2, pid=pid)
            process.range(f"step {n}", BOOT + at, 900_000)
            process.ran("gemm", BOOT + at + 1000, 800_000, n + 2, agent=2 + (process is both[1]))
    for result in (got(export), of_amd(*both)):
        of_work = {o["device"] for o in result.rows["ops"] if o["op"] == "gemm"}
        assert len(of_work) == 2
        assert of_devices(result) == ({(device, n) for device in of_work for n in range(4)}, 8)


@pytest.mark.parametrize("marking", [(10,), (10, 30)])
def test_devices_of_a_process_without_marks_take_the_steps_of_the_others(got, marking):
    """As where one rank alone has ranges: what others launch is numbered by them. Such a device had no steps at all."""
    export = pair(0, 1)
    for n in range(4):
        at = MS * (n + 1)
        for pid in marking:
            export.range(f"step {n}", at + 10 * pid, at + 900_000, pid=pid)
        for pid in (10, 20):
            export.ran("gemm", at + 1000, 700_000, n + 2, pid=pid)
    assert of_devices(got(export)) == ({(device, n) for device in (0, 1) for n in range(4)}, 8)


def test_steps_of_a_process_that_drives_nothing_are_no_other_processes(got):
    """Taken for all devices' each of them had twice as many."""
    export = pair(0, 1)
    for pid in (10, 20, 30):
        for n in range(4):
            at = MS * (n + 1) + 1000 * pid
            export.range(f"step {n}", at, at + 900_000, pid=pid)
            if pid != 30:
                export.ran("gemm", at + 1000, 800_000, n + 2, pid=pid)
    result = got(export)
    assert of_devices(result) == ({(device, n) for device in (0, 1) for n in range(4)}, 8)
    assert "4 steps: their process launches nothing, and others drive all devices" in result.reasons()


def test_a_device_of_which_nobody_knows_who_drives_it_takes_the_steps_of_all(got):
    export = pair(0, 1)
    export.put("TARGET_INFO_CUDA_DEVICE", (2, 0, 30, "GPU-2", 132))
    for n in range(4):
        at = MS * (n + 1)
        for pid in (10, 20):
            export.range(f"step {n}", at, at + 900_000, pid=pid)
            export.ran("gemm", at + 1000, 800_000, n + 2, pid=pid)
        export.kernel("gemm", at + 2000, 500_000, 900 + n, pid=30)
    assert of_devices(got(export)) == ({(device, n) for device in range(3) for n in range(4)}, 12)


def test_steps_that_one_process_marks_for_those_that_launch_are_taken_by_all_devices(got):
    export = pair(0, 1)
    for n in range(4):
        at = MS * (n + 1)
        export.range(f"step {n}", at, at + 900_000, pid=30)
        for pid in (10, 20):
            export.ran("gemm", at + 1000, 700_000, n + 2, pid=pid)
    assert of_devices(got(export)) == ({(device, n) for device in (0, 1) for n in range(4)}, 8)


def test_steps_of_one_process_are_taken_by_all_of_its_devices(got):
    export = Export()
    for n in range(3):
        at = MS * (n + 1)
        export.range(f"step {n}", at, at + 900_000)
        export.ran("gemm", at + 1000, 700_000, 2 * n + 1).ran("gemm", at + 1000, 800_000, 2 * n + 2, device=1)
    assert of_devices(got(export)) == ({(None, n) for n in range(3)}, 3)


def test_steps_that_a_process_marks_ahead_of_its_device_are_told_by_what_its_device_ran(got):
    export = pair(0, 1)
    for pid in (10, 20):
        for n in range(4):
            export.range(f"step {n}", MS + 10_000 * n, MS + 10_000 * (n + 1), pid=pid)
            export.launch(MS + 10_000 * n + 10, 5, n + 1, pid=pid)
            export.kernel("gemm", 2 * MS + 500_000 * n, 400_000, n + 1, pid=pid)
    rows = got(export).rows["steps"]
    assert {(s["device"], s["step"], s["start_ns"] - BASE, s["dur_ns"]) for s in rows} == {
        (device, n, 2 * MS + 500_000 * n, 500_000 if n < 3 else 400_000) for device in (0, 1) for n in range(4)
    }


def test_workers_of_a_loader_are_no_training_loop(got):
    """They fetch ahead of it: what the device waited for is not told by what they do all the time."""
    export = Export()
    for n in range(3):
        at = MS * (n + 1)
        export.range(f"step {n}", at, at + MS)
        export.range("fetch", at, at + 1000).range("fetch", at, at + 900_000, pid=30).range(
            "fetch", at, at + MS, pid=31
        )
        export.ran("gemm", at + 500_000, 400_000, n + 1)
    result = got(export)
    rows = [(f["start_ns"] - BASE, f["end_ns"] - f["start_ns"], f["device"]) for f in result.rows["lifecycle"]]
    assert rows == [(MS * (n + 1), 1000, None) for n in range(3)]
    assert "6 fetches: their process launches nothing" in result.reasons()


def test_fetches_are_told_where_nothing_tells_who_launches(got):
    export = Export().range("fetch", MS, MS + 1000).kernel("gemm", MS + 2000, 1000, 1)
    assert len(got(export).rows["lifecycle"]) == 1


def test_devices_of_processes_that_mark_no_steps_take_those_of_one_that_does(got):
    """As where the first rank alone opens ranges: those of the others had none."""
    export = pair(0, 1)
    for late, pid in enumerate((10, 20)):
        for n in range(3):
            export.ran("gemm", MS * (n + 1) + 1000 + 100_000 * late, 700_000, n + 1, pid=pid)
    for n in range(3):
        export.range(f"step {n}", MS * (n + 1), 900_000 + MS * (n + 1), pid=10)
    assert of_devices(got(export)) == ({(device, n) for device in (0, 1) for n in range(3)}, 6)


def test_steps_that_only_a_process_without_devices_marks_are_told_by_what_devices_ran(got):
    export = pair(0, 1)
    for n in range(3):
        export.range(f"step {n}", MS + 10_000 * n, MS + 10_000 * (n + 1), pid=30)
        for pid in (10, 20):
            export.launch(MS + 10_000 * n + 10, 5, n + 1, pid=pid)
            export.kernel("gemm", 2 * MS + 500_000 * n, 400_000, n + 1, pid=pid)
    rows = got(export).rows["steps"]
    assert {(s["device"], s["step"], s["start_ns"] - BASE, s["dur_ns"]) for s in rows} == {
        (device, n, 2 * MS + 500_000 * n, 500_000 if n < 2 else 400_000) for device in (0, 1) for n in range(3)
    }


def test_marks_of_a_process_that_launches_nothing_are_no_more_steps_of_those_that_do(got):
    export = pair(0, 1)
    for late, pid in enumerate((10, 20, 30)):
        for n in range(3):
            at = MS * (n + 1) + 10 * late
            export.range(f"step {n}", at, at + 900_000, pid=pid)
            if pid != 30:
                export.ran("gemm", at + 1000, 700_000, n + 1, pid=pid)
    assert of_devices(got(export)) == ({(device, n) for device in (0, 1) for n in range(3)}, 6)


def test_a_device_of_which_nobody_tells_what_was_launched_takes_the_steps_of_the_others(got):
    export = pair(0, 1)
    for late, pid in enumerate((10, 20)):
        for n in range(3):
            at = MS * (n + 1) + 100_000 * late
            export.range(f"step {n}", at, at + 900_000, pid=pid)
            export.ran("gemm", at + 1000, 700_000, n + 1, pid=pid)
    export.kernel("gemm", MS + 2000, 700_000, 99, pid=20, device=2)
    assert of_devices(got(export)) == ({(device, n) for device in (0, 1, 2) for n in range(3)}, 9)


def of_processes(owner, number):
    """Kernels, each of its process and on its device."""
    events = np.zeros(len(owner), [("row", np.int64)])
    events["row"] = number
    numbers = np.arange(int(max(number, default=0)) + 1)
    return SimpleNamespace(events=events, number=numbers, kernels=lambda: np.ones(len(owner), bool))


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_devices_are_found_by_process_as_one_by_one(processes):
    rng = np.random.default_rng(processes)
    owner, number, step = rng.integers(-1, processes, 400), rng.integers(0, 5, 400), rng.integers(-1, 2, 400)
    wanted = {}
    for one, device, n in zip(owner.tolist(), number.tolist(), step.tolist(), strict=True):
        if one >= 0 and n >= 0:
            wanted.setdefault(one * 1000, set()).add(device)
    found = devices_by_process(of_processes(owner, number), np.where(owner < 0, -1, owner * 1000), step)
    assert found == ({} if processes == 1 else {one: sorted(those) for one, those in wanted.items()})
    assert devices_by_process(of_processes([], []), np.zeros(0, np.int64), np.zeros(0, np.int64)) == {}


@pytest.mark.parametrize("processes", [1, 8])
def test_whose_a_device_is_takes_no_longer_than_some_sorts(processes):
    owner = np.random.default_rng(0).integers(0, processes, 300_000)
    devices, begun = of_processes(owner, owner), process_time()
    np.argsort(owner + owner[::-1], kind="stable")
    sort_s, begun = process_time() - begun, process_time()
    devices_by_process(devices, owner, owner * 0)
    assert process_time() - begun < 10 * max(sort_s, 0.01)

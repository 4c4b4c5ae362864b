"""Which call launched what: rows of `launches`, looked at by hand."""

import pytest

from collectors.base import Rows, Source
from collectors.device import kineto
from tests.collectors import kineto_traces as made


def launches(tmp_path, *events):
    """Rows of `launches` as dicts, and names of what they launched by event number."""
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(made.trace(events))
    rows: dict[str, list] = {}
    for item in kineto.read(Source(path, path.name)):
        if isinstance(item, Rows):
            rows.setdefault(item.table, []).extend(item.batch.to_pylist())
    ops = {o["op_id"]: o["op"] for o in rows["ops"]}
    return rows.get("launches", []), {e["event"]: (ops[e["op_id"]], e["start_ps"]) for e in rows["op_events"]}


def test_each_execution_has_its_call(tmp_path):
    rows, events = launches(
        tmp_path,
        made.launch(10, 4, 1),
        made.launch(20, 5.5, 2, "cudaMemcpyAsync", tid=9),
        made.kernel("add", 16, 3, 1),
        made.event("gpu_memcpy", "Memcpy HtoD", 30, 2, 0, 7, device=0, stream=7, correlation=2),
    )
    assert [(r["call"], r["device"], r["graph"]) for r in rows] == [
        ("cudaLaunchKernel", 0, False),
        ("cudaMemcpyAsync", 0, False),
    ]
    assert [r["call_dur_ps"] for r in rows] == [4_000_000, 5_500_000]
    for row, (name, ts) in zip(rows, (("add", 16), ("Memcpy HtoD", 30)), strict=True):
        told, start_ps = events[row["event"]]
        assert name in told
        assert start_ps - row["call_start_ps"] == (ts - {16: 10, 30: 20}[ts]) * 10**6
        assert events[row["call_event"]][1] == row["call_start_ps"]
    assert rows[0]["line"] != rows[1]["line"]


def test_a_graph_has_a_row_for_each_of_its_executions(tmp_path):
    rows, _ = launches(
        tmp_path, made.launch(10, 4, 5, "cudaGraphLaunch"), *(made.kernel(f"k{n}", 20 + n, 1, 5) for n in range(3))
    )
    assert [(r["graph"], r["call_start_ps"]) for r in rows] == [(True, 0)] * 3
    assert len({r["event"] for r in rows}) == 3 and len({r["call_event"] for r in rows}) == 1


@pytest.mark.parametrize("number", [0, 3])
def test_what_was_launched_outside_the_trace_has_no_row(tmp_path, number):
    rows, events = launches(
        tmp_path, made.launch(10, 4, 7), made.kernel("add", 16, 3, number), made.op("aten::a", 0, 99)
    )
    assert rows == [] and any(name == "add" for name, _ in events.values())


def test_a_call_that_is_written_after_what_it_launched(tmp_path):
    rows, _ = launches(tmp_path, made.kernel("add", 16, 3, 1), made.launch(10, 4, 1))
    assert [r["call"] for r in rows] == ["cudaLaunchKernel"]


def test_calls_of_two_processes_with_one_number_in_a_file_are_joined_once(tmp_path):
    """Ranks that were merged into one file: which of two calls it was is taken from neither twice."""
    rows, _ = launches(tmp_path, made.launch(10, 4, 1), made.launch(12, 4, 1, tid=2), made.kernel("add", 20, 3, 1))
    assert len(rows) == 1


def test_an_accelerator_that_is_no_gpu_has_kernels_calls_and_collectives(tmp_path):
    """MTIA as Kineto has it: calls of its runtime, events of its control processor, and HCCL's collectives with what
    is told of those of NCCL. Later releases write `runtime` and `kernel`."""
    told = made.collective("allreduce", 30, 5, 2)["args"] | {"stream": 3}
    for call, kernel in (("mtia_runtime", "mtia_ccp_events"), ("runtime", "kernel")):
        path = tmp_path / f"{call}.pt.trace.json"
        events = [
            made.step(1, 0, 50),
            made.event(call, "runFunction - job_prep_and_submit_for_execution", 5, 3, correlation=1),
            made.event(call, "runFunction - job_prep_and_submit_for_execution", 20, 3, correlation=2),
            made.event(kernel, "addmm_fc_0", 10, 8, 0, 3, device=0, stream=3, correlation=1),
            made.event(kernel, "hccl::allreduce", 30, 5, 0, 3) | {"args": told},
        ]
        path.write_bytes(made.trace(events, deviceProperties=[], distributedInfo={"backend": "hccl", "rank": 0}))
        rows: dict[str, list] = {}
        for item in kineto.read(Source(path, path.name)):
            if isinstance(item, Rows):
                rows.setdefault(item.table, []).extend(item.batch.to_pylist())
        assert len(rows["launches"]) == 2 and {r["device"] for r in rows["launches"]} == {0}
        assert {o["op"]: o["role"] for o in rows["ops"] if o["device"] == 0}["addmm_fc_0"] == "compute"
        (one,) = rows["collectives"]
        assert (one["kind"], one["op"], one["bytes"]) == ("all-reduce", "hccl:all-reduce default_pg", 2048.0)

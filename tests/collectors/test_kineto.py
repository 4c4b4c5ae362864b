"""Traces of the PyTorch profiler: which are known, where their times lie, and what becomes of every event."""

import gzip
import json
from collections import Counter

import pytest

from collectors.device import kineto, viewer
from collectors.ingesting.recognise import WHOLLY
from errors import InputError
from tests.collectors.kineto_traces import BASE, event, kernel, launch, op, step, trace
from tests.collectors.reading import read, source_of

MEMORY = (
    '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5.0, '
    '"args": {"Total Allocated": 4096, "Total Reserved": 8192, "Bytes": 4096, "Device Id": 0, "Device Type": 1}}'
)


def got(tmp_path, events, name="trace.pt.trace.json", **beside):
    return read(kineto, source_of(tmp_path, trace(events, **beside), name))


def events_of(result):
    """(operation, device, start, duration) of every stored event, ns since the start of the capture."""
    ops = {row["op_id"]: row for row in result.rows["ops"]}
    return [
        (ops[e["op_id"]]["op"], e["device"], e["start_ps"] / 1000, e["dur_ps"] / 1000) for e in result.rows["op_events"]
    ]


def test_a_trace_is_known_by_what_it_holds(tmp_path):
    whole = trace([kernel("k", 1, 1, 1)])
    assert kineto.sniff(source_of(tmp_path, whole)) > 0.9
    assert kineto.sniff(source_of(tmp_path, gzip.compress(whole))) > 0.9
    assert kineto.sniff(source_of(tmp_path, json.dumps([kernel("k", 1, 1, 1)]))) > 0.8
    assert kineto.sniff(source_of(tmp_path, whole)) == WHOLLY  # no reader that comes later is loaded to be asked
    far = trace([kernel("k", 1, 1, 1)], distributedInfo={"pg_config": ["x" * 200_000]})
    assert b"traceEvents" not in source_of(tmp_path, far).head and kineto.sniff(source_of(tmp_path, far)) > 0.9


@pytest.mark.parametrize(
    "other",
    [
        '{"traceEvents": [{"ph": "X", "cat": "blink", "name": "paint", "ts": 1, "dur": 1}]}',
        '[{"cat": "task:execute", "ph": "X", "ts": 1, "dur": 1, "name": "f", "pid": "", "tid": "worker:1"}]',
        '{"schema": "1.0.1", "nodes": []}',
        "{}",
        "",
    ],
)
def test_other_json_is_left_to_others(tmp_path, other):
    assert kineto.sniff(source_of(tmp_path, other)) == 0


def test_a_trace_of_jax_is_left_to_another_reader(tmp_path):
    source = source_of(
        tmp_path,
        '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M","pid":3,'
        '"name":"process_name","args":{"name":"/device:TPU:0"}},{"ph":"M","name":"/device:TPU:0"}]}',
    )
    assert kineto.sniff(source) == 0 and viewer.sniff(source) > 0.5


def test_times_keep_their_nanoseconds(tmp_path):
    result = got(tmp_path, [kernel("a", 1428625731622.250, 18.112, 1), kernel("b", 1428625731622.251, 0.001, 2)])
    assert events_of(result) == [("a", 0, 0, 18112), ("b", 0, 1, 1)]
    assert result.column("captures", "start_ns") == [BASE + 1_428_625_731_622_250]
    assert result.column("captures", "stop_ns") == [BASE + 1_428_625_731_622_250 + 18_112]


def test_microseconds_since_1970_are_no_floats(tmp_path):
    told = [
        '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1669783687389324.123, "dur": 3}',
        '{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1669783687389324124e-0, "dur": 3e-3}',
        '{"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": "1669783687389325", "dur": "2"}',
    ]
    result = got(tmp_path, told[:1] + told[2:])
    assert result.column("captures", "start_ns") == [1_669_783_687_389_324_123]
    assert events_of(result) == [("a", 0, 0, 3000), ("c", 0, 877, 2000)]


def test_a_trace_without_a_date_says_so(tmp_path):
    result = got(tmp_path, [kernel("a", 10, 1, 1)], baseTimeNanoseconds=0)
    assert "the time of day" in result.reasons()


def test_what_stands_behind_the_events_counts_too(tmp_path):
    data = b'{"schemaVersion": 1, "traceEvents": [' + json.dumps(kernel("a", 10, 1, 1)).encode()
    data += b'], "baseTimeNanoseconds": %d, "distributedInfo": {"rank": 3, "world_size": 4}}' % BASE
    result = read(kineto, source_of(tmp_path, data))
    assert result.column("captures", "process") == [3] and result.column("captures", "start_ns") == [BASE + 10_000]
    assert result.facts["chips"] == 4


def test_every_event_is_stored_or_told(tmp_path):
    events = [
        kernel("k", 1, 1, 1),
        kernel("nested", 1.2, 0.1, 2),
        event("gpu_user_annotation", "ProfilerStep#1", 1, 3, 0, 7),
        op("aten::mm", 0, 1),
        MEMORY,
        '{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9}',
        '{"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"}',
        '{"ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1, "cat": "ac2g", "name": "ac2g", "bp": "e"}',
        '{"ph": "M", "name": "process_name", "pid": 1, "ts": 0, "args": {"name": "python"}}',
        '{"ph": "C", "name": "counter", "pid": 1, "ts": 0, "args": {"x": 1}}',
        '{"ph": "X", "cat": "kernel", "name": "backwards", "pid": 0, "tid": 7, "ts": 1, "dur": -1}',
        '{"ph": "X", "cat": "kernel", "name": "timeless", "pid": 0, "tid": 7, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "far", "pid": 0, "tid": 7, "ts": 1000000000000000000, "dur": 1}',
        '{"ph": "X", "cat": "kernel", "name": "late", "pid": 0, "tid": 7, "ts": 3000000000000, "dur": 1}',
    ]
    result = got(tmp_path, events)
    assert Counter(e[0] for e in events_of(result)) == Counter(
        ["k", "nested", "ProfilerStep#1", "aten::mm", "Record Window End"]
    )
    assert result.column("memory", "kind") == ["bytes_in_use"]
    told = Counter(lost.what.partition(" ")[2] for lost in result.lost)
    assert "1 events: their duration is negative" in result.reasons()
    assert "2 events: their time or duration is missing, or no number of a calendar" in result.reasons()
    assert "1 events: their time is far from all others" in result.reasons()
    assert "2 arrows between events and 1 names of rows" in result.reasons()
    assert told["events of phase 'C'"] == 1


def test_arguments_are_kept_with_their_events(tmp_path):
    made = kernel("k", 1, 1, 5, grid=[132, 1, 1], est=0.25, kind="Dispatch Kernel")
    result = got(tmp_path, [made, event("python_function", "f", 1, 1, Python_id=3)])
    stats = {s["name"]: (s["int_value"], s["float_value"], s["text_value"]) for s in result.rows["event_stats"]}
    assert stats == {
        "device": (0, None, None),
        "stream": (7, None, None),
        "correlation": (5, None, None),
        "grid": (None, None, "[132, 1, 1]"),
        "est": (None, 0.25, None),
        "kind": (None, None, "Dispatch Kernel"),
    }


def test_kernels_that_overlap_and_nest_are_all_kept(tmp_path):
    result = got(tmp_path, [kernel("outer", 0, 10, 1), kernel("inner", 2, 3, 2), kernel("across", 8, 5, 3)])
    assert len(result.rows["op_events"]) == 3
    own = {row["op"]: row["self_ns"] for row in result.rows["ops"]}
    assert own == {"outer": 5000, "inner": 3000, "across": 5000}  # what lies within another is not the other's own


def test_threads_are_named_as_the_trace_names_them(tmp_path):
    named = '{"ph": "M", "name": "thread_name", "pid": 1, "tid": 25, "ts": 0, "args": {"name": "thread 25 (python3)"}}'
    result = got(tmp_path, [op("a", 1, 1, tid=25), op("b", 1, 1, tid=26), kernel("k", 1, 1, 1), named])
    assert {row["op"]: row["line"] for row in result.rows["ops"]} == {
        "a": "thread 25 (python3)",
        "b": "thread 26",
        "k": "stream 7",
    }


def test_memory_is_what_the_allocator_had_handed_out(tmp_path):
    properties = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80_000}]
    result = got(tmp_path, [MEMORY, kernel("k", 1, 1, 1)], deviceProperties=properties)
    rows = [(r["kind"], r["device"], r["bytes"], r["ts_ns"]) for r in result.rows["memory"]]
    assert rows == [("bytes_in_use", 0, 4096, BASE + 5000), ("bytes_available", 0, 75_904, BASE + 5000)]
    assert result.facts["chip"] == "NVIDIA H100 80GB HBM3"


def test_memory_of_the_host_is_of_no_device(tmp_path):
    result = got(tmp_path, [MEMORY.replace('"Device Type": 1', '"Device Type": 0'), kernel("k", 1, 1, 1)])
    assert [(r["device"], r["name"]) for r in result.rows["memory"]] == [(None, "PyTorch, host")]


def test_changes_of_memory_without_its_level_are_told(tmp_path):
    result = got(tmp_path, [MEMORY.replace('"Total Allocated": 4096, ', ""), kernel("k", 1, 1, 1)])
    assert "memory" not in result.rows
    assert "1 memory events: they tell what was taken, not how much is in use" in result.reasons()


def test_an_unnamed_gpu_is_known_by_what_it_shows(tmp_path):
    shown = {"id": 0, "name": "", "totalGlobalMem": 206141652992, "computeMajor": 9, "computeMinor": 4, "numSms": 304}
    result = got(tmp_path, [kernel("k", 1, 1, 1)], deviceProperties=[shown], roctracer_version=4.1)
    assert result.facts["chip"] == "MI300X"


@pytest.mark.parametrize(
    ("name", "info", "host", "rank"),
    [
        ("node-3_812.1758927066581847260.pt.trace.json", {"rank": 5, "world_size": 8}, "node-3/5", 5),
        ("node-3_812.1758927066581847260.pt.trace.json.gz", {}, "node-3/812", None),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json", {}, "rank 34", 34),
        ("logs/rank_2/trace.json", {}, "rank 2", 2),
        ("trace.json", {}, "trace", None),
        ("rank3.json", {"rank": 0}, "rank 3", 3),
        ("sampled_rank-1.json", {"rank": 0, "backend": "nccl"}, "rank 0", 0),
    ],
)
def test_whose_trace_it_is(tmp_path, name, info, host, rank):
    result = got(tmp_path, [op("a", 1, 1)], name, distributedInfo=info)
    assert result.column("captures", "host") == [host] and result.column("captures", "process") == [rank]


def test_a_name_that_contradicts_the_trace_is_told(tmp_path):
    result = got(tmp_path, [kernel("k", 1, 1, 1)], "rank-1.json", distributedInfo={"rank": 0, "backend": "nccl"})
    assert "it is 1, where the trace says 0" in result.reasons()


def test_a_process_without_a_device_has_no_chips(tmp_path):
    result = got(tmp_path, [op("a", 1, 1), step(1, 0, 5)], distributedInfo={"rank": 0, "world_size": 300})
    assert result.column("captures", "devices") == [None] and "chips" not in result.facts


def test_ranks_merged_into_one_file_are_devices_of_their_own(tmp_path):
    events = [kernel("k", 1, 1, 1, rank=0), kernel("k", 1, 2, 2, rank=1)]
    result = got(tmp_path, events)
    assert sorted((e[1], e[3]) for e in events_of(result)) == [(0, 1000), (1, 2000)]


def test_early_traces_spell_things_otherwise(tmp_path):
    events = [
        event("Operator", "aten::mm", 0, 10, tid="25", External_id=2),
        event("Runtime", "cudaLaunchKernel", 2, 1, tid="25", correlation=9),
        event("Kernel", "gemm", 4, 3, 0, "stream 7", device=0, stream=7, correlation=9),
        event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 8, 1, 0, "stream 7", device=0, stream=7, correlation=10),
    ]
    result = got(tmp_path, events)
    device = {row["op"]: (row["line"], row["category"]) for row in result.rows["ops"] if row["device"] == 0}
    assert device == {
        "aten::mm": ("stream 7", "matmul"),
        "Memcpy HtoD (Pageable -> Device)": ("stream 7", "copy"),
    }


def test_a_trace_without_events_is_refused(tmp_path):
    with pytest.raises(InputError, match="no event that can be read"):
        got(tmp_path, [])


def test_several_ranks_are_one_run(tmp_path):
    from collectors.ingest import ingest
    from runs.store import Store

    for rank in range(2):
        data = trace([kernel("k", 1, 1 + rank, 1), launch(0, 1, 1)], distributedInfo={"rank": rank, "world_size": 2})
        (tmp_path / f"rank-{rank}.json.gz").write_bytes(gzip.compress(data))
    store = Store(tmp_path / "store")
    files = [tmp_path / f"rank-{rank}.json.gz" for rank in range(2)]
    run = store.get(ingest(files, store).run_id)
    assert run is not None
    assert set(run.tables.arrow("captures", ["host"])["host"].to_pylist()) == {"rank 0", "rank 1"}
    assert run.manifest.facts["chips"].value == 2

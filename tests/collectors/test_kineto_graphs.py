"""Kernels of graphs get the operators and modules in which they were captured, and only where it is that graph."""

import itertools
import random
from dataclasses import dataclass

import pytest

from collectors.device import kineto
from collectors.ingest import ingest
from collectors.ingesting.captures import with_captures
from collectors.ingesting.unpack import SafeSource
from runs.store import Store
from tests.collectors.kineto_traces import event, frame, kernel, launch, op, trace
from tests.collectors.reading import read, source_of
from tests.conftest import seeds

MM = {"dims": [[128, 64], [64, 32]], "types": ["c10::BFloat16", "c10::BFloat16"]}
FLOPS = 2 * 128 * 64 * 32


@pytest.fixture
def got(tmp_path):
    def reading(*events, **beside):
        return read(kineto, source_of(tmp_path, trace(list(events), **beside), "trace.json"))

    return reading


def captured(*nodes, at=0.0, number=1000, module="nn.Module: Linear_0", tid=1, dims=None):
    """A capture of nodes (operator, kernel's name or None where the launch does not tell it)."""
    shapes = {**MM, **({"dims": dims} if dims else {})}
    yield launch(at, 1, number, "cudaStreamBeginCapture", tid=tid)
    yield frame(module, at + 2, 10 * len(nodes), tid=tid)
    for n, (name, told) in enumerate(nodes):
        start = at + 3 + 10 * n
        yield op(name, start, 5, tid=tid, **(shapes if name == "aten::mm" else {}))
        call = "cudaMemcpyAsync" if name == "aten::copy_" else "cudaLaunchKernel"
        made = launch(start + 1, 1, number + 1 + n, call, tid=tid)
        if told:
            made["args"]["kernel"] = told
        yield made
    yield launch(at + 10 * len(nodes) + 5, 1, number + 900, "cudaStreamEndCapture", tid=tid)


def replayed(*names, at=500.0, number=5, streams=(7,)):
    """A launch of a graph, and what it executes."""
    yield launch(at, 2, number, "cudaGraphLaunch")
    for n, name in enumerate(names):
        start, stream = at + 10 + 2 * n, streams[n % len(streams)]
        if name == "Memcpy":
            copy = {"device": 0, "stream": stream, "correlation": number}
            yield event("gpu_memcpy", "Memcpy DtoD", start, 1, 0, stream, **copy)
        else:
            yield kernel(name, start, 1, number, stream)


def device_ops(result):
    """Operations of devices, as (name, scope, count)."""
    return sorted((o["op"], o["scope"], o["count"]) for o in result.rows["ops"] if o["device"] is not None)


NODES = (("aten::mm", None), ("aten::add", None), ("aten::copy_", None), ("aten::mul", None))
RAN = ("gemm", "add_kernel", "Memcpy", "mul_kernel")


def test_executions_are_of_the_operators_that_were_captured(got):
    result = got(*captured(*NODES), *replayed(*RAN), *replayed(*RAN, at=700, number=6))
    names = ("Memcpy DtoD", "aten::add", "aten::mm", "aten::mul")
    assert device_ops(result) == [(name, "Linear_0", 2) for name in names]
    assert {o["direction"] for o in result.rows["ops"] if o["device"] is not None} == {"forward"}
    assert sum((o["flops"] or 0) * o["count"] for o in result.rows["ops"]) == 2 * FLOPS  # once for each run
    assert all(row["graph"] for row in result.rows["launches"]) and len(result.rows["launches"]) == 8
    assert "graphs" not in result.reasons()


@pytest.mark.parametrize(
    "events",
    [
        (*captured(*NODES), *replayed(*RAN, "more")),
        (*captured(*NODES), *replayed(RAN[0], RAN[1], "kernel", RAN[3])),  # a copy was captured there
        (*captured(*NODES), *replayed("add_kernel", *RAN[1:])),  # nothing multiplies
        (*captured(*NODES), *replayed(*RAN, streams=(7, 8))),  # which branch came first nobody tells
        (*captured(*NODES, at=2000), *replayed(*RAN)),  # captured after it ran
        (*captured(*NODES[:3]), *replayed(*RAN[:3])),  # so few are many graphs
        (*captured(*[("aten::add", None)] * 5), *replayed(*["mul_kernel"] * 5)),  # any graph of five is like it
        (*captured(*((n, "other" if n == "aten::mul" else None) for n, _ in NODES)), *replayed(*RAN)),
        (*captured(*NODES), *captured(*NODES, at=5, number=3000, tid=2), *replayed(*RAN)),  # at once
        tuple(e for e in (*captured(*NODES), *replayed(*RAN)) if "EndCapture" not in e["name"]),
    ],
    ids=["count", "copies", "products", "streams", "later", "few", "like any", "names", "at once", "no end"],
)
def test_what_may_be_another_graph_stays_the_graphs_own(got, events):
    result = got(*events)
    assert {scope for _, scope, _ in device_ops(result)} == {None}
    assert {o["module"] for o in result.rows["ops"] if o["device"] is not None} == {"cudaGraphLaunch"}
    assert "were launched as 1 graphs, whose capture the trace does not show" in result.reasons()


def test_names_of_kernels_tell_small_graphs_and_those_of_several_streams(got):
    nodes = (("aten::mm", "gemm"), ("aten::add", "add_kernel"))
    result = got(*captured(*nodes), *replayed("gemm", "add_kernel", streams=(7, 8)))
    assert device_ops(result) == [("aten::add", "Linear_0", 1), ("aten::mm", "Linear_0", 1)]


def test_copies_that_rocm_executes_as_kernels_are_copies(got):
    nodes = (("aten::mm", "gemm"), ("aten::copy_", None))
    result = got(*captured(*nodes), *replayed("gemm", "__amd_rocclr_copyBuffer"))
    assert {scope for _, scope, _ in device_ops(result)} == {"Linear_0"}


def test_of_captures_that_differ_what_they_agree_on_is_told(got):
    other = captured(*NODES, at=200, number=3000, dims=[[64, 64], [64, 32]])
    result = got(*captured(*NODES), *other, *replayed(*RAN))
    assert ("aten::mm", "Linear_0", 1) in device_ops(result)
    assert not any(o["flops"] for o in result.rows["ops"])  # of which shape, nobody knows
    other = captured(*NODES, at=200, number=3000, module="nn.Module: Linear_1")
    result = got(*captured(*NODES), *other, *replayed(*RAN))
    assert ("aten::mm", None, 1) in device_ops(result)


def test_what_is_executed_while_a_stream_is_captured_is_no_node(got):
    eager = (launch(8, 0.5, 77, tid=3), kernel("eager", 60, 1, 77), launch(9, 0.5, 78, "cudaEventRecord", tid=3))
    result = got(*captured(*NODES), *eager, *replayed(*RAN))
    assert ("aten::mm", "Linear_0", 1) in device_ops(result) and ("eager", None, 1) in device_ops(result)


@pytest.mark.parametrize("seed", seeds(15))
def test_each_of_many_graphs_has_its_own_operators(got, seed):
    rng = random.Random(seed)
    numbers, at, events, expected = itertools.count(1, 2000), 0.0, [], {}
    for graph in range(rng.randint(1, 5)):
        nodes = [(f"op{graph}.{n}", f"k{graph}.{n}") for n in range(rng.randint(1, 9))]
        events += captured(*nodes, at=at, number=next(numbers), module=f"nn.Module: Block_{graph}")
        at += 200
        for run in range(rng.randint(0, 3)):
            events += replayed(*(k for _, k in nodes), at=10_000 + 1000 * graph + 100 * run, number=next(numbers))
            expected |= {(name, f"Block_{graph}", run + 1): None for name, _ in nodes}
            for name, _ in nodes:
                expected.pop((name, f"Block_{graph}", run), None)
    rng.shuffle(events)
    events.append(kernel("alone", 1, 1, 0))
    assert device_ops(got(*events)) == sorted([*expected, ("alone", None, 1)], key=str)


@dataclass(frozen=True)
class _Job:
    source: SafeSource
    collector: object = kineto
    digest: str = ""


@pytest.mark.parametrize(
    ("trace_name", "capture", "beside"),
    [
        ("a/run.json", "a/graph_capture.json", True),
        ("a/run.json", "a/capture_traces/rank_0.json", True),
        ("a/run_rank_0.json", "a/capture_traces/rank_0.1.json", True),
        ("a/run_rank_1.json", "a/capture_traces/rank_0.1.json", False),
        ("a/b/run.json", "a/graph_capture.json", False),
    ],
)
def test_whose_capture_lies_beside_a_trace(tmp_path, trace_name, capture, beside):
    jobs = [_Job(SafeSource(tmp_path / name, name)) for name in (trace_name, capture)]
    found = with_captures(jobs)
    assert (len(getattr(found[0].source, "captures", ())) == 1) is beside and found[1] is jobs[1]


@pytest.mark.parametrize("whole", [True, False])
def test_a_capture_that_was_recorded_apart(tmp_path, whole):
    folder = tmp_path / "job"
    (folder / "capture_traces").mkdir(parents=True)
    told = {"distributedInfo": {"rank": 0, "world_size": 1}}
    apart = trace([*captured(*NODES), kernel("eager", 60, 1, 77)], **told)
    (folder / "capture_traces" / "rank_0.json").write_bytes(apart if whole else apart[:-40] + b"}")
    others = [op(f"shift{n}", 0.5 * n, 0.25) for n in range(9)]  # numbers of texts and calls are others here
    (folder / "run.json").write_bytes(trace([*others, *replayed(*RAN), kernel("eager", 900, 1, 0)], **told))
    store = Store(tmp_path / "store")
    run = store.get(ingest([folder], store).run_id)
    assert run is not None
    rows = [o for o in run.tables.arrow("ops").to_pylist() if o["device"] is not None and o["op"] != "eager"]
    assert sorted(o["op"] for o in rows) == ["Memcpy DtoD", "aten::add", "aten::mm", "aten::mul"]
    assert {o["scope"] for o in rows} == {"Linear_0"}
    assert sum((o["flops"] or 0) for o in rows) == FLOPS

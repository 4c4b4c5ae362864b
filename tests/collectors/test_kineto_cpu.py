"""A trace of a machine without a device: what its CPU executed stands in for one, and nothing was launched."""

import random

import pytest

from collectors.device import kineto
from collectors.device.kineto.spill import Spill
from tests.collectors.kineto_traces import event, frame, kernel, launch, op, step, trace
from tests.collectors.reading import read, source_of
from tests.conftest import seeds

GLOO = {"distributedInfo": {"rank": 1, "world_size": 2, "backend": "gloo", "pg_count": 1}}
MM = {"dims": [[8, 4], [4, 2]], "types": ["float", "float"]}


@pytest.fixture
def got(tmp_path):
    def reading(*events, **beside):
        told = {"deviceProperties": [], **GLOO, **beside}
        return read(kineto, source_of(tmp_path, trace(list(events), **told), "rank-1.json"))

    return reading


def executed(result):
    """(operation, start in us, duration in us) of what device 0 executed, in order of start."""
    ops = {o["op_id"]: o for o in result.rows.get("ops", []) if o["device"] == 0}
    rows = [e for e in result.rows["op_events"] if e["device"] == 0]
    return sorted((e["start_ps"] / 1e6, ops[e["op_id"]]["op"], e["dur_ps"] / 1e6) for e in rows)


def test_the_innermost_operators_are_executed_with_their_flops(got):
    inner = op("aten::mm", 2, 6, **MM)
    result = got(frame("nn.Module: Linear_0", 0, 20), op("aten::linear", 0, 12), inner, op("aten::resolve_conj", 3, 1))
    assert executed(result) == [(2, "aten::mm", 6)]
    (made,) = (o for o in result.rows["ops"] if o["device"] == 0)
    assert made["flops"] == 2 * 8 * 4 * 2 and made["category"] == "matmul" and made["scope"] == "Linear_0"
    assert "launches" not in result.rows and "launch" not in result.reasons()


def test_what_only_views_a_tensor_computes_nothing(got):
    calls = (
        "aten::view",
        "aten::empty_strided",
        "aten::t",
        "aten::unsqueeze_",
        "detach",
        "c10d::allreduce_",
        "aten::to",
    )
    result = got(*(op(name, 10 * n, 5) for n, name in enumerate(calls)), op("aten::copy_", 90, 5))
    assert executed(result) == [(90, "aten::copy_", 5)]


def test_messages_are_collectives_of_all_ranks(got):
    sent = event("user_annotation", "gloo:all_reduce", 30, 9, tid=5, Input_Dims=[[256]], Input_type=["float"])
    result = got(op("aten::mm", 2, 6, **MM), sent, step(3, 0, 50))
    assert executed(result)[-1] == (30, "gloo:all-reduce", 9)
    (row,) = result.rows["collectives"]
    assert (row["kind"], row["group"], row["rank"], row["bytes"], row["dtype"]) == ("all-reduce", "0,1", 1, 1024, "f32")
    assert row["step"] == 3 and {o["line"] for o in result.rows["ops"] if o["device"] == 0} == {"thread 1", "thread 5"}


@pytest.mark.parametrize(
    "beside",
    [
        {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]},  # it has one, and was not asked what that did
        {"deviceProperties": None},
        {"distributedInfo": {"rank": 1, "backend": "nccl"}},
    ],
)
def test_where_there_may_be_a_device_nothing_stands_in_for_it(got, beside):
    result = got(op("aten::mm", 2, 6, **MM), **beside)
    assert not [e for e in result.rows["op_events"] if e["device"] is not None]


def test_a_trace_with_kernels_has_its_device(got):
    result = got(op("aten::mm", 2, 6, **MM), launch(3, 1, 7), kernel("gemm", 20, 5, 7))
    assert executed(result) == [(18, "aten::mm", 5)] and len(result.rows["launches"]) == 1


def test_a_process_that_only_sends_messages_is_no_device(got):
    sent = event("user_annotation", "gloo:all_reduce", 30, 9, tid=5)
    result = got(op("aten::empty", 2, 6), sent)
    assert not [e for e in result.rows["op_events"] if e["device"] is not None]


def tree(rng, start, end, tid, depth=0):
    """Operators within operators."""
    at = start
    while end - at > 4 and rng.random() < 0.85:
        begin = at + rng.randint(0, 2)
        at = min(end, begin + rng.randint(2, max(3, (end - start) // 2)))
        if at <= begin:
            return
        yield op(rng.choice(("aten::a", "aten::view", "aten::b")), begin, at - begin, tid=tid)
        yield from tree(rng, begin, at, tid, depth + 1) if depth < 4 else ()


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("kept", [1 << 18, 8])
def test_each_operator_that_holds_no_other_is_executed_once(got, seed, kept, monkeypatch):
    rng = random.Random(seed)
    events = [e for tid in (1, 2) for e in tree(rng, 0, 300, tid)]
    work = [e for e in events if e["name"] != "aten::view"]

    def holds(a, b):
        inside = a["ts"] <= b["ts"] and b["ts"] + b["dur"] <= a["ts"] + a["dur"]
        longer = a["dur"] > b["dur"] or (a["dur"] == b["dur"] and events.index(a) < events.index(b))
        return a is not b and a["tid"] == b["tid"] and inside and longer

    wanted = sorted((e["ts"], e["name"], e["dur"]) for e in work if not any(holds(e, other) for other in work))
    first = min((e["ts"] for e in events), default=0)
    monkeypatch.setattr(Spill.__init__, "__defaults__", (kept,))  # few rows in memory: pieces are cut by time
    if work:
        result = got(*events)
        assert executed(result) == [(ts - first, name, dur) for ts, name, dur in wanted]
        assert result.rows["captures"][0]["devices"] == 1
        assert sum(e["device"] is None for e in result.rows["op_events"]) == len(events)
        assert len({e["event"] for e in result.rows["op_events"]}) == len(result.rows["op_events"])


def test_what_prepares_an_operator_is_part_of_it(got):
    """`addmm` copies its bias before it multiplies: its time and FLOPs are its own all the same."""
    whole = op("aten::addmm", 2, 60, dims=[[4], [8, 4], [4, 2]], types=["float"] * 3)
    sums = [op("aten::sum", 70, 20), op("aten::fill_", 72, 1)]
    copies = [op("aten::to", 100, 9), op("aten::_to_copy", 101, 7), op("aten::copy_", 102, 5)]
    node = [op("AddmmBackward0", 120, 30), op("aten::copy_", 125, 5), op("ViewBackward0", 160, 5)]
    result = got(op("aten::linear", 0, 65), whole, op("aten::copy_", 4, 1), *sums, *copies, *node)
    assert executed(result) == [
        (2, "aten::addmm", 60),
        (70, "aten::sum", 20),
        (102, "aten::copy_", 5),
        (125, "aten::copy_", 5),
    ]
    assert [o["flops"] for o in result.rows["ops"] if o["op"] == "aten::addmm" and o["device"] == 0] == [128]


def in_words(events, holds):
    """What runs, by the definition: an operator that holds none but what prepares, and of what prepares the innermost
    that lies in no such operator."""

    def prepares(e):
        return e["name"] in ("aten::copy_", "aten::zeros")

    works = [e for e in events if not prepares(e) and not any(holds(e, o) for o in events if not prepares(o))]
    whole = [e for e in works if e["name"].startswith("aten::")]
    inner = [e for e in events if (prepares(e) or e in works) and not any(holds(e, o) for o in events)]
    return whole + [e for e in inner if e not in whole and not any(holds(w, e) for w in whole)]


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("kept", [1 << 18, 8])
def test_operators_are_whole_however_deep_and_wherever_pieces_are_cut(got, seed, kept, monkeypatch):
    rng = random.Random(seed)
    names = ("aten::a", "aten::copy_", "aten::zeros", "own::op", "aten::view")

    def nested(start, end, tid, depth=0):
        at = start
        while end - at > 4 and rng.random() < 0.9:
            begin = at + rng.randint(1, 2)
            at = min(end - 1, begin + rng.randint(2, max(3, (end - start) // 2)))
            if at <= begin:
                return
            yield op(rng.choice(names), begin, at - begin, tid=tid)
            yield from nested(begin, at, tid, depth + 1) if depth < 4 else ()

    events = [e for tid in (1, 2) for e in nested(0, 300, tid)]

    def holds(a, b):
        inside = a["ts"] <= b["ts"] and b["ts"] + b["dur"] <= a["ts"] + a["dur"]
        return a is not b and a["tid"] == b["tid"] and inside

    first = min((e["ts"] for e in events), default=0)
    wanted = in_words([e for e in events if e["name"] != "aten::view"], holds)
    monkeypatch.setattr(Spill.__init__, "__defaults__", (kept,))
    if wanted:
        told = sorted((e["ts"] - first, e["name"], e["dur"]) for e in wanted)
        assert executed(got(*events)) == told

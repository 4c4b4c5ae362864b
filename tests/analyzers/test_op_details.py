"""What is known of operations besides: one execution by hand, what they are called, what is wasted and repeated."""

import random

import numpy as np
import pytest

from analyzers.device import operations as ops
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.op_tables import PEAK, V5P, ask_with, op_tables
from tests.conftest import seeds

MS = 1e6


def timed(op, ms, **more):
    return {"op": op, "total_ns": ms * MS, "self_ns": ms * MS, **more}


def events(rows):
    """Columns of `op_events` of (op_id, ps)."""
    n = len(rows)
    fixed = {"capture": [0] * n, "device": [0] * n, "event": [*range(n)], "start_ps": [10**9 * i for i in range(n)]}
    return {"op_events": {**fixed, "op_id": [op for op, _ in rows], "dur_ps": [ps for _, ps in rows]}}


def stats(rows):
    """Columns of `op_stats` of (op_id, name, text)."""
    names = ("op_id", "name", "text_value")
    return {
        "op_stats": {"capture": [0] * len(rows), **dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))}
    }


@pytest.mark.parametrize("by", ops.BY)
@pytest.mark.parametrize("seed", seeds(25))
def test_one_execution_is_that_of_the_events(seed, by):
    rng = random.Random(seed)
    drawn = [(rng.randint(0, 5), rng.randint(0, 10**10)) for _ in range(rng.randint(1, 60))]
    ran = sorted({op for op, _ in drawn})
    of_op = {op: [ps for o, ps in drawn if o == op] for op in ran}
    rows = [
        timed(
            name := rng.choice("xyz"),
            sum(of_op[op]) / 1e9,
            count=len(of_op[op]),
            category=rng.choice(["copy", "fusion"]),
            module=rng.choice(["f", "g"]),
            source={"x": "a", "y": "b", "z": None}[name],
        )
        for op in ran
    ]
    result = ask_with(ops, rows, V5P, events([(ran.index(op), ps) for op, ps in drawn]), by=by)
    keys = ("module", "op") if by == "op" else (by,)
    for row in result.rows.to_dict("records"):
        mine = [i for i, r in enumerate(rows) if all((r[k] or "") == (row[k] or "") for k in keys)]
        took = [ps / 1e12 for i in mine for ps in of_op[ran[i]]]
        told = [row[f"{name}_execution_seconds"] for name in ("mean", "least", "longest")]
        assert told == pytest.approx([np.mean(took), min(took), max(took)], rel=1e-9, abs=1e-15)


def test_numbers_of_operations_may_be_any():
    rows = [timed("a", 3, count=2), timed("b", 1)]
    far = op_tables(rows)["ops"] | {"op_id": [1 << 60, None]}
    tables = MemoryTables({"ops": far, **events([(1 << 60, 10**9), (1 << 60, 2 * 10**9), (5, 1)])})
    told = ops.analyze(tables, facts_of(V5P), parse_options(ops.OPTIONS, {})).to_dict()["rows"]
    assert [r["longest_execution_seconds"] for r in told] == [pytest.approx(0.002), None]


def test_nothing_that_ran_has_no_executions():
    compiled = {**V5P, "outcome": "compiled"}
    rows = [{"op": "dot", "device": None, "flops": PEAK, "bytes": 1.0, "category": "matmul", "count": 2, "cycles": 5.0}]
    rows = [{**r, "total_ns": None, "self_ns": None} for r in rows]
    for clock in ({}, {"clock_hz": 1e9}):
        (row,) = ask_with(ops, rows, compiled, **clock).to_dict()["rows"]
        assert row["mean_execution_seconds"] is None and row["least_execution_seconds"] is None
    assert ask_with(ops, rows, compiled).to_dict()["rows"][0]["wasted_seconds"] is None


def test_what_it_is_called_is_that_of_the_longest():
    rows = [
        timed("aten::mm", 1, scope="net/a", shape="f32[2]"),
        timed("aten::mm", 5, scope="net/b", shape="f32[2]", direction="recompute"),
    ]
    told = [(0, "kernel", "small"), (1, "kernel", "large"), (1, "launch shape", "4x1x1 blocks of 32x1x1")]
    told += [(0, "launched by", "torch"), (1, "tf_op", "jit(f)/mul:"), (1, "hlo", "%x = f32[2] multiply(%a)")]
    (row,) = ask_with(ops, rows, V5P, stats(told)).to_dict()["rows"]
    assert (row["scope"], row["kernel"], row["launch_shape"]) == ("net/b", "large", "4x1x1 blocks of 32x1x1")
    assert (row["framework_op"], row["hlo"]) == ("jit(f)/mul", "%x = f32[2] multiply(%a)")
    assert row["recomputed_share"] == pytest.approx(5 / 6)
    (grouped,) = ask_with(ops, rows, V5P, stats(told), by="category").to_dict()["rows"]
    assert grouped["kernel"] is None and grouped["recomputed_share"] == pytest.approx(5 / 6)


def test_where_no_pass_is_told_nothing_is_said_of_repeating():
    (row,) = ask_with(ops, [timed("x", 1)], V5P).to_dict()["rows"]
    assert row["recomputed_share"] is None and row["scope"] is None and row["framework_op"] is None


def test_waste_is_of_what_has_a_roof():
    rows = [
        timed("dot", 10, category="matmul", flops=PEAK * 0.004, bytes=1.0),
        timed("call", 10, category="custom-call"),
        timed("ar", 10, category="collective", flops=1.0, bytes=1.0),
    ]
    told = {r["op"]: r["wasted_seconds"] for r in ask_with(ops, rows, V5P).to_dict()["rows"]}
    assert told == {"dot": pytest.approx(0.006), "call": None, "ar": None}

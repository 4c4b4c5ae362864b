"""What profiles of GPUs tell: kernels that fill memory, devices captured apart, allocators of hosts, no steps."""

import json

import pytest

from analyzers.device import input as input_question
from analyzers.device import memory, overlap, roofline
from analyzers.device import operations as ops
from analyzers.time import ledger, steps
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.device_rows import EPOCH, device_tables
from tests.analyzers.op_tables import PEAK, V5P, WIDE, ask_with

GB = 10**9


def ask(question, tables, facts=None, **options):
    result = question.analyze(tables, facts_of(facts or {}), parse_options(question.OPTIONS, options))
    json.dumps(result.to_dict(), allow_nan=False)
    return result


# --- several kernels for one operation --------------------------------------------------------------------------------

FILLED = [
    {"op": "attention.2", "category": "copy", "count": 10, "self_ns": 1e6, "total_ns": 1e6},
    {
        "op": "attention.2",
        "category": "custom-call",
        "count": 5,
        "self_ns": 9e6,
        "total_ns": 9e6,
        "flops": 0.0,
        "bytes": 1e6,
    },
    {"op": "dot.1", "category": "matmul", "count": 5, "self_ns": 10e6, "total_ns": 10e6},
]


@pytest.mark.parametrize("rows", [FILLED, FILLED[::-1]])
def test_a_kernel_that_fills_memory_does_not_relabel_its_operation(rows):
    result = ask_with(ops, rows, V5P)
    by_op = {r["op"]: r for r in result.to_dict()["rows"]}
    assert by_op["attention.2"]["category"] == "custom-call" and by_op["attention.2"]["share"] == pytest.approx(0.5)
    assert by_op["attention.2"]["count"] == 5
    shares = {r["category"]: r["share"] for r in result.to_dict()["by_category"]}
    assert shares == pytest.approx({"matmul": 0.5, "custom-call": 0.45, "copy": 0.05})
    assert len(ask_with(ops, rows, V5P, by="category").rows) == 3


# --- above the roof ---------------------------------------------------------------------------------------------------

ABOVE = {"op": "cached", "flops": 0.0, "bytes": WIDE * 1e-3, "count": 10, "self_ns": 5e6, "total_ns": 5e6}
BELOW = {"op": "usual", "flops": PEAK * 1e-3, "bytes": 0.0, "count": 10, "self_ns": 20e6, "total_ns": 20e6}


def test_operations_above_their_roof_are_marked():
    result = ask_with(roofline, [ABOVE, BELOW], V5P)
    bound = {p["op"]: (p["bound"], p["roof_share"]) for p in result.to_dict()["points"]}
    assert bound["cached"] == ("above", pytest.approx(2.0)) and bound["usual"] == ("compute", pytest.approx(0.5))
    assert result.time_by_bound["above"] == pytest.approx(5e-3) and result.time_by_bound["memory"] == 0
    assert any("beyond the specified roof, at up to 2 times" in n for n in result.notes)


def test_what_is_above_its_roof_raises_no_other_share():
    result = ask_with(ops, [ABOVE, BELOW], V5P)
    above = {r["op"]: r["above_seconds"] for r in result.to_dict()["rows"]}
    assert above == {"cached": pytest.approx(5e-3), "usual": 0}
    (row,) = result.to_dict()["by_category"]
    assert (row["above_seconds"], row["roof_share"]) == (pytest.approx(5e-3), pytest.approx(0.5))
    assert any("beyond the specified roof" in n for n in result.notes)


def test_a_little_above_is_at_the_roof():
    near = {**ABOVE, "self_ns": 9.8e6, "total_ns": 9.8e6}
    assert ask_with(roofline, [near], V5P).points["bound"].tolist() == ["memory"]


# --- devices that were captured at different times --------------------------------------------------------------------


def apart():
    """Two devices of one host; each takes step 0, 1 and 2 in a stretch of its own, 20 and 25 ns long."""
    begun = {0: (0, 20), 1: (5000, 25)}
    work = [
        ("h", d, "compute", "fusion", [(at + n * dur, at + n * dur + 10) for n in range(3)])
        for d, (at, dur) in begun.items()
    ]
    taken = [(n, d, EPOCH + at + n * dur, dur) for d, (at, dur) in begun.items() for n in range(3)]
    columns = {name: [t[i] for t in taken] for i, name in enumerate(("step", "device", "start_ns", "dur_ns"))}
    return device_tables(work, extra={"steps": columns | {"host": ["h"] * 6, "capture": [0] * 6}}, stop_ns=6000)


def test_a_step_lasts_as_long_as_on_its_slowest_device():
    result = ask(steps, apart())
    assert (result.steps, result.median_step_s) == (3, pytest.approx(25e-9))
    assert result.rows["kept"].all() and len(result.rows) == 3
    assert sorted(zip(result.hosts["host"], result.hosts["dur_s"] * 1e9, strict=True)) == [
        *[("h/0", pytest.approx(20))] * 3,
        *[("h/1", pytest.approx(25))] * 3,
    ]


def test_each_device_is_looked_at_while_it_took_steps():
    result = ask(overlap, apart())
    assert dict(zip(result.devices["device"], result.devices["window_s"] * 1e9, strict=True)) == pytest.approx(
        {0: 60, 1: 75}
    )
    assert result.totals["idle_s"] == pytest.approx(75e-9)
    assert result.steps["devices"].tolist() == [2, 2, 2]
    account = ask(ledger, apart(), {"chips": 2, "chip": "v5p"}).ledger
    assert account.amount("productive") == pytest.approx(135e-9)


def test_a_step_of_one_device_does_not_reach_to_that_of_another():
    assert ask(input_question, apart()).fed_step_s == pytest.approx(22.5e-9)  # of both devices
    rows = [{"host": "h", "device": d, "total_ns": 30.0, "self_ns": 30.0} for d in (0, 1)]
    columns = {"step": [0, 0, 1], "device": [0, 1, None], "capture": [0] * 3, "start_ns": [0] * 3, "dur_ns": [20] * 3}
    assert ask_with(ops, rows, V5P, {"steps": columns}).device_steps == 4


# --- a profile without steps ------------------------------------------------------------------------------------------


def test_a_profile_without_steps_claims_no_kept_ones():
    tables = device_tables([("h", 0, "compute", "fusion", [(0, 40)])], stop_ns=100)
    result = ask(ledger, tables, {"chips": 1, "chip": "v5p"})
    assert result.ledger.find("productive") is None
    assert result.ledger.amount("profiled") == pytest.approx(result.ledger.chip_seconds) == pytest.approx(100e-9)
    assert result.ledger.amount("device_idle") == pytest.approx(60e-9)
    assert any("shows no step" in n for n in result.notes) and not any("taken as kept" in n for n in result.notes)


def test_a_device_that_took_no_step_kept_none():
    work = [("h", 0, "compute", "fusion", [(0, 40)]), ("h", 1, "compute", "copy", [(0, 10)])]
    one = {"step": [0], "host": ["h"], "start_ns": [EPOCH], "dur_ns": [50], "capture": [0], "device": [0]}
    account = ask(ledger, device_tables(work, extra={"steps": one}, stop_ns=100), {"chips": 2, "chip": "v5p"}).ledger
    assert account.amount("productive") == pytest.approx(50e-9)
    assert account.chip_seconds == pytest.approx(200e-9)


# --- memory -----------------------------------------------------------------------------------------------------------


def samples(*rows):
    """`memory` from (allocator, device, bytes in use, bytes available) rows."""
    columns: dict[str, list] = {n: [] for n in ("capture", "host", "device", "ts_ns", "kind", "bytes", "name")}
    for at, (name, device, used, free) in enumerate(rows):
        for kind, size in (("bytes_in_use", used), ("bytes_available", free)):
            for column, value in zip(columns, (0, "h", device, at, kind, size, name), strict=True):
                columns[column].append(value)
    return MemoryTables({"memory": columns})


@pytest.mark.parametrize("name", ["gpu_host_bfc", "cpu", "cuda_pinned"])
def test_the_limit_is_the_devices_not_the_hosts(name):
    tables = samples(("GPU_0_bfc", 0, 6 * GB, 9 * GB), (name, None, 20 * GB, 48 * GB))
    result = ask(memory, tables)
    assert (result.peak_bytes, result.limit_bytes) == (6 * GB, 15 * GB)
    assert result.devices["allocator"].tolist() == ["GPU_0_bfc"] == result.samples["allocator"].unique().tolist()


def test_the_limit_is_that_of_the_fullest_device():
    tables = samples(("GPU_0_bfc", 0, 6 * GB, 9 * GB), ("GPU_1_bfc", 1, GB, 79 * GB))
    assert ask(memory, tables).limit_bytes == 15 * GB

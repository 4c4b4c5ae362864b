"""A compiled step: bytes, FLOPs, cycles, collectives and bounds against arithmetic done by hand."""

import json

import pytest

from analyzers.compiled import compiled
from analyzers.device import roofline
from analyzers.time import ledger
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

FACTS = {
    "outcome": "compiled",
    "fits": True,
    "rule": "one layer, times 32",
    "chip": "v6e",
    "chips": 16,
    "slices": 1,
    "devices_per_chip": 1,
    "topology": "v6e:4x4",
    "parallelism": {"data": 4, "model": 4},
    "precision": "bf16",
    "seq": 1024,
    "global_batch": 16,
    "layers": 32,
}
TABLES = {
    "ops": {
        "role": ["compute", "compute", "compute", "async", "compute"],
        "op": ["fusion.1", "dot.2", "copy.3", "copy-start.4", "while.5"],
        "category": ["fusion", "matmul", "copy", "copy", "control"],
        "count": [32, 32, 1, 8, 1],
        "flops": [1e9, 4e11, 0.0, 0.0, 9e13],
        "bytes": [2e8, 1e8, 1e6, 7e6, 1e12],
        "cycles": [1e5, 4e5, None, None, None],
        "source": ["a.py:1"] * 5,
        "shape": ["bf16[8,128]{1,0:T(8,128)}"] * 5,
    },
    "program_collectives": {
        "kind": ["all-reduce", "all-reduce", "all-gather", "permute"],
        "axis": ["model", "model", "data", None],
        "bytes": [8e6, 4e6, 1e6, 5e5],
        "count": [64, 2, 32, 1],
        "group_size": [4, 4, 4, None],
        "asynchronous": [False, False, True, False],
    },
    "modules": {"capture": [0], "program": [0], "name": ["step"], "flops": [1.3e13]},
    "matmuls": {
        "capture": [0, 0],
        "program": [0, 0],
        "op": ["dot.1", "dot.2"],
        "m": [64, 256],
        "k": [128, 256],
        "n": [256, 300],
        "batch": [1, 2],
        "count": [3, 1],
    },
    "memory": {
        "kind": ["arguments", "outputs", "temporaries", "code", "peak", "bytes_limit", "argument", "argument"],
        "bytes": [1000, 0, 5000, 100, 6000, 9000, 400, 500],
        "padded_bytes": [1300, 0, 5000, 100, 6400, 9000, 800, 500],
        "name": [None] * 6 + ["params/w", "params/b"],
        "shape": [None] * 6 + ["bf16[100,2]", "f32[125]"],
        "program": [0] * 8,
    },
}


def asked(tables=None, **facts):
    return compiled.analyze(MemoryTables(TABLES if tables is None else tables), facts_of({**FACTS, **facts}), {})


def test_flops_and_cycles_are_summed_over_executions_without_loops_and_copies():
    result = asked()
    assert result.flops_per_chip == 32 * (1e9 + 4e11)
    assert result.estimated_cycles == 32 * (1e5 + 4e5)
    assert result.cycles_flops_share == 1.0
    assert list(result.ops["op"]) == ["dot.2", "fusion.1", "copy.3"]
    assert list(result.ops["cycles_share"].dropna()) == [0.8, 0.2]


def test_bounds_are_the_three_fractions():
    result = asked()
    parts = {p.name: p.seconds for p in result.bounds.parts}
    assert parts["compute"] == pytest.approx(32 * 4.01e11 / 918e12)
    beside = 8 * 7e6  # fetched into on-chip memory while other work ran
    assert parts["memory"] == pytest.approx((32 * 3e8 + 1e6 + beside) / 1638e9)
    leaving = 2 * 3 / 4 * (8e6 * 64 + 4e6 * 2) + 3 * 1e6 * 32 + 5e5
    assert parts["network"] == pytest.approx(leaving / (4 * 100e9))
    assert result.floor.bound_by == "compute"
    in_turn = 32 * max(1e9 / 918e12, 2e8 / 1638e9) + 32 * max(4e11 / 918e12, 1e8 / 1638e9) + 1e6 / 1638e9
    assert result.floor.roof_s == pytest.approx(in_turn)
    assert result.floor.memory_s == pytest.approx(32 * 2e8 / 1638e9 + 1e6 / 1638e9)
    uncovered = (leaving - 3 * 1e6 * 32) / (4 * 100e9)  # the all-gather runs beside operations
    assert result.floor.seconds == pytest.approx(in_turn + result.floor.padding_s + uncovered)
    assert result.tokens_per_s_bound == pytest.approx(16 * 1024 / result.floor.seconds)


def test_the_least_time_of_a_step_is_one_number_wherever_it_is_told():
    """A collective with traffic of its own in memory, and a buffer that nobody fills, are no operations at a roof."""
    ops = {name: [*rows, rows[2], rows[2]] for name, rows in TABLES["ops"].items()}
    ops["op"][-2:], ops["category"][-2:] = ["all-reduce.6", "custom-call.7"], ["collective", "custom-call"]
    ops["bytes"][-2:] = [1e10, 4e9]
    tables, facts = MemoryTables({**TABLES, "ops": ops}), facts_of(FACTS)
    told = compiled.analyze(tables, facts, {})
    assert told.floor.seconds == asked().floor.seconds
    book = ledger.analyze(tables, facts, {"usd_per_chip_hour": None}).ledger
    assert book.chip_seconds == pytest.approx(16 * told.to_dict()["seconds_bound"], rel=1e-12)
    at_roofs = roofline.analyze(tables, facts, parse_options(roofline.OPTIONS, {})).to_dict()["roof_seconds"]
    assert at_roofs == pytest.approx(told.to_dict()["roof_seconds"], rel=1e-12)
    assert sum(told.to_dict()["floor"][f"{p}_s"] for p in ("compute", "memory")) == pytest.approx(at_roofs)


def test_what_is_held_at_the_peak_adds_up_to_no_more_than_the_peak():
    """Of 5,000 bytes of temporaries 3,000 are alive when the program is at its fullest."""
    memory = {**TABLES["memory"], "padded_bytes": [1300, 0, 5000, 100, 4300, 9000, 800, 500]}
    held = asked({**TABLES, "memory": memory}).bytes_per_chip
    assert (held["temporaries"], held["temporaries_laid_out"]) == (3000, 5000)
    assert held["arguments"] + held["outputs"] + held["temporaries"] == held["peak"] == 4300


def test_collectives_are_grouped_by_kind_and_axis():
    rows = asked().to_dict()["collectives"]
    assert rows == [
        {"kind": "all-reduce", "axis": "model", "bytes": 8e6 * 64 + 4e6 * 2, "count": 66},
        {"kind": "all-gather", "axis": "data", "bytes": 32e6, "count": 32},
        {"kind": "permute", "axis": None, "bytes": 5e5, "count": 1},
    ]


def test_bytes_are_padded_and_the_padding_is_told():
    said = asked().to_dict()
    assert said["bytes_per_chip"] == {
        "arguments": 1300,
        "outputs": 0,
        "temporaries": 5000,
        "code": 100,
        "temporaries_laid_out": 5000,
        "peak": 6400,
        "limit": 9000,
    }
    assert said["padding"]["argument_bytes"] == 900 and said["padding"]["argument_padded_bytes"] == 1300
    assert said["padding"]["argument_tax"] == pytest.approx(1300 / 900 - 1)
    assert [(a["name"], a["tax"]) for a in said["padding"]["arguments"]] == [("params/w", 1.0)]


def test_matmul_padding_is_that_of_the_chips_matrix_unit():
    useful = 2 * (64 * 128 * 256 * 3 + 256 * 256 * 300 * 2)
    padded = 2 * (64 * 256 * 256 * 3 + 256 * 256 * 512 * 2)
    tax = asked().to_dict()["padding"]["matmuls"]
    assert tax["mxu"] == 256 and tax["tax"] == pytest.approx(padded / useful - 1)
    assert 0 <= tax["tax_optimistic"] <= tax["tax"]
    assert asked(chip="v5e").matmul_tax.mxu == 128


def test_a_chip_of_two_devices_holds_and_computes_twice_that_of_one():
    one, two = asked(chip="tpu7x"), asked(chip="tpu7x", devices_per_chip=2)
    assert one.bytes_per_chip["peak"] == 6400 and two.bytes_per_chip["peak"] == 12800
    assert two.bytes_per_chip["limit"] == 18000
    assert two.flops_per_chip == 2 * one.flops_per_chip
    assert two.estimated_cycles == one.estimated_cycles
    # groups of four devices are two chips: 2 (2-1)/2 B for each all-reduce, 2 x (2-1) B for each all-gather
    permute = 0.0  # two devices may be those of one chip
    network = next(p for p in two.bounds.parts if p.name == "network")
    assert network.amount == pytest.approx(1 * (8e6 * 64 + 4e6 * 2) + 2 * 1e6 * 32 + permute)


def test_slices_talk_over_the_data_centre_network():
    result = asked(slices=2, chips=32, parallelism={"data": 8, "model": 4})
    parts = {p.name: p for p in result.bounds.parts}
    gathers = asked(
        slices=2,
        parallelism={"data": 8, "model": 4},
        tables={
            **TABLES,
            "program_collectives": {
                "kind": ["all-reduce"],
                "axis": ["data"],
                "bytes": [1e6],
                "count": [3],
                "group_size": [8],
            },
        },
    )
    # two slices with four chips each: 2 (4-1)/4 over the links, then 2 (2-1)/2 of a quarter each between slices
    row = gathers.network.iloc[0]
    assert row["ici_bytes"] == pytest.approx(3e6 * 1.5) and row["dcn_bytes"] == pytest.approx(3e6 * 1.0 / 4)
    # all-gather over data, groups of four as the program says: two chips of each slice, one shard from the other side
    assert parts["dcn"].amount == pytest.approx(32 * 1e6 * 1)
    assert parts["dcn"].rate == 12.5e9


def test_out_of_memory_is_an_answer():
    result = asked(
        {},
        outcome="out_of_memory",
        fits=False,
        message="Used 40G of 31G hbm",
        needed_bytes=40 << 30,
        limit_bytes=31 << 30,
    )
    said = result.to_dict()
    assert said["fits"] is False and said["bytes_per_chip"]["peak"] == 40 << 30
    assert said["bytes_per_chip"]["limit"] == 31 << 30
    assert said["flops_per_chip"] is None and said["seconds_bound"] is None and said["bound_by"] is None
    assert said["collectives"] == [] and said["message"] == "Used 40G of 31G hbm"
    assert any("what it would compute nothing is known" in n for n in said["notes"])


def test_an_unknown_chip_has_bytes_but_no_bound():
    said = asked(chip="my own chip").to_dict()
    assert said["flops_per_chip"] == 32 * 4.01e11 and said["seconds_bound"] is None
    assert any("not in the catalogue" in n for n in said["notes"])


def test_fits_is_peak_against_limit_where_nobody_says():
    assert asked(fits=None).fits is True
    small = {**TABLES, "memory": {**TABLES["memory"], "padded_bytes": [1300, 0, 5000, 100, 6400, 6000, 800, 500]}}
    assert asked(small, fits=None).fits is False


def test_what_the_compiler_cannot_tell_is_not_summed():
    ops = {**TABLES["ops"], "flops": [-1.0, 4e11, 0.0, 0.0, 0.0], "cycles": [-1.0, 4e5, None, None, None]}
    result = asked({**TABLES, "ops": ops})
    assert result.flops_per_chip == 32 * 4e11 and result.estimated_cycles == 32 * 4e5
    assert "The compiler estimates no cycles for 2 of 3 operations." in result.notes


KERNEL = {
    **{"role": ["compute"], "op": ["kernel.1"], "category": ["custom-call"], "count": [32], "flops": [0.0]},
    **{"bytes": [2e8], "cycles": [None], "source": ["a.py:1"], "shape": ["bf16[8,128]{1,0}"]},
}


def test_a_program_of_kernels_that_nobody_looks_into_computes_no_one_knows_what():
    tables = {**TABLES, "ops": KERNEL, "matmuls": {}}
    result = asked(tables)
    assert result.flops_per_chip is None and result.floor is None
    assert {p.name: p.seconds is None for p in result.bounds.parts} == {
        "compute": True,
        "memory": False,
        "network": False,
    }
    assert any(n.startswith("Of 1 custom call nobody tells the FLOPs") for n in result.notes)
    with pytest.raises(QuestionError, match="nobody tells how much this program computes"):
        ledger.analyze(MemoryTables(tables), facts_of(FACTS), {"usd_per_chip_hour": None})


def test_a_kernel_beside_known_work_is_told_of_and_left_out():
    ops = {column: [*TABLES["ops"][column], *KERNEL[column]] for column in KERNEL}
    result, without = asked({**TABLES, "ops": ops}), asked()
    assert result.flops_per_chip == without.flops_per_chip and result.floor.seconds == without.floor.seconds
    assert any("custom call nobody tells" in n for n in result.notes)
    assert not any("custom call" in n for n in without.notes)
    told = {**ops, "flops": [*TABLES["ops"]["flops"], 1e9]}
    assert not any("custom call" in n for n in asked({**TABLES, "ops": told}).notes)


def test_a_program_that_only_moves_data_has_a_least_time():
    ops = {**KERNEL, "category": ["copy"]}
    result = asked({"ops": ops})
    assert result.flops_per_chip == 0 and result.floor.seconds == pytest.approx(32 * 2e8 / 1638e9)
    assert result.floor.bound_by == "memory"


def test_json_is_exact_and_has_no_nan():
    said = json.loads(json.dumps(asked().to_dict(), allow_nan=False))
    assert {
        "fits",
        "bytes_per_chip",
        "flops_per_chip",
        "estimated_cycles",
        "collectives",
        "padding",
        "seconds_bound",
    } <= set(said)
    json.dumps(asked({}, outcome="out_of_memory").to_dict(), allow_nan=False)


def test_a_measured_run_is_no_compiled_one():
    with pytest.raises(QuestionError, match="no compiled program"):
        compiled.analyze(MemoryTables({}), facts_of({"chip": "v6e"}), {})

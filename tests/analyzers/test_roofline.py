"""The roofline: operations of known rates, devices against chips, what was reached, compiled programs."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.device import operations, roofline
from analyzers.device.counters import counters, together
from analyzers.device.memory_spaces import hbm_of
from analyzers.device.roofs import Rate, Roof, bound_s, spec_roof
from catalog import chip
from errors import QuestionError
from errors.options import parse_options
from runs.run import FactValue, facts_of
from runs.tables import MemoryTables
from tests.analyzers.op_tables import PEAK, V5P, WIDE, ask_with, op_tables

MS = 1e6


def ask(rows, facts=V5P, more=None, **options):
    return ask_with(roofline, rows, facts, more, **options)


def matmul(ms: float, flops: float, moved: float = 1e9, **more) -> dict:
    cost = {"flops": flops, "bytes": moved}
    return {"op": "dot.1", "category": "matmul", "total_ns": ms * MS, "self_ns": ms * MS, **cost, **more}


def copy(ms: float, moved: float, **more) -> dict:
    cost = {"flops": 0.0, "bytes": moved}
    return {"op": "copy.1", "category": "copy", "total_ns": ms * MS, "self_ns": ms * MS, **cost, **more}


def test_a_matmul_at_half_peak_and_a_copy_at_full_bandwidth():
    # 459 TFLOP/s and 2765 GB/s: 4.59e12 FLOPs take 10 ms at peak, 27.65e9 bytes 10 ms at full bandwidth
    result = ask([matmul(20, PEAK * 0.010), copy(10, WIDE * 0.010)])
    dot, moved = result.points.to_dict("records")
    assert (dot["op"], dot["bound"], dot["binds"]) == ("dot.1", "compute", "compute")
    assert dot["roof_share"] == pytest.approx(0.5)
    assert dot["flops_per_s"] == pytest.approx(PEAK / 2)
    assert dot["flops_per_byte"] == pytest.approx(4590)
    assert (moved["op"], moved["bound"], moved["flops_per_byte"]) == ("copy.1", "memory", 0.0)
    assert moved["roof_share"] == pytest.approx(1) and moved["bytes_per_s"] == pytest.approx(WIDE)
    assert result.device_seconds == pytest.approx(0.030) and result.roof_seconds == pytest.approx(0.020)
    assert result.time_by_bound["compute"] == pytest.approx(0.020)
    assert result.time_by_bound["memory"] == pytest.approx(0.010)
    assert result.whole["flops_per_s"] == pytest.approx(PEAK * 0.010 / 0.030)


def test_a_product_is_held_against_the_peak_of_the_format_that_it_ran_in():
    """H100: 989.4 TFLOP/s in BF16 and 1,978.9 in FP8, in which 1,100 are no impossible rate."""
    facts, done = {"chip": "H100 SXM"}, 1.1e15 * 0.010
    rows = [matmul(10, done, op="aten::_scaled_mm", count=9, **{"total_ns": 90 * MS, "self_ns": 90 * MS})]
    rows.append(matmul(10, 989.4e12 * 0.005, op="aten::mm"))
    ran = {"capture": [0] * 3, "program": [0] * 3, "op": ["aten::_scaled_mm"] * 2 + ["aten::mm"]}
    more = {"matmuls": {**ran, "dtype": ["f8e4m3fn", "f8e5m2", "bf16"]}}
    for question in (roofline, operations):
        result = ask_with(question, rows, facts, more)
        table = result.points if question is roofline else result.rows
        shares = dict(zip(table["op"], table["roof_share"], strict=True))
        assert shares == {"aten::_scaled_mm": pytest.approx(1100 / 1978.9), "aten::mm": pytest.approx(0.5)}
        assert not any("beyond the specified roof" in n for n in result.notes)
        assert any(n.startswith("Products in FP8 are held against 2 times the peak") for n in result.notes)
    reached = ask_with(roofline, rows, facts, more, roof="reached")
    assert reached.roof.flops.per_s == pytest.approx(1.1e15 * 989.4 / 1978.9)
    assert "aten::_scaled_mm, in FP8 at 2 times that" in reached.roof.flops.source
    asked = ask_with(roofline, rows, facts, more, precision="fp8").points.set_index("op")["roof_share"]
    assert asked["aten::mm"] == pytest.approx(0.5 * 989.4 / 1978.9)  # as it was asked


def test_products_inside_a_fusion_are_held_against_their_own_peak():
    """As a TPU runs them: the profile shows the fusion, its program what is in it."""
    rows = [matmul(10, 3.0e15 * 0.010, op="fusion.1"), matmul(10, 1e15 * 0.010, op="fusion.2")]
    ran = {"capture": [0] * 3, "program": [0] * 3, "op": ["dot.1", "dot.2", "dot.3"]}
    ran |= {"within": ["fusion.1", "fusion.2", None], "dtype": ["f8e4m3fn", "bf16", "f8e4m3fn"]}
    table = ask_with(roofline, rows, {"chip": "TPU 7x"}, {"matmuls": ran}).points
    shares = dict(zip(table["op"], table["roof_share"], strict=True))
    half = chip("TPU 7x").need("bf16_flops_per_s") / 2  # of a chip that shows as two devices
    fp8 = chip("TPU 7x").need("fp8_flops_per_s") / 2
    assert shares == {"fusion.1": pytest.approx(3.0e15 / fp8), "fusion.2": pytest.approx(1e15 / half)}


def test_what_the_hardware_counted_is_told_of_steps_alone():
    tensor, clock = "GPU 1 Tensor Active", "GPU 1 GPC Clock Frequency"
    samples = [(50, tensor, 10.0, "%"), (110, tensor, 30.0, "%"), (190, tensor, 50.0, "%"), (200, tensor, 99.0, "%")]
    samples += [(120, clock, 1980.0, "MHz"), (120, "loss", 3.0, None), (120, "cpu load", 7.0, "%")]
    samples += [(130, "GPU 1 Unallocated Warps", 80.0, "%"), (130, "GPU 0 DRAM Read Bandwidth", -1.0, "%")]
    columns = dict(zip(("ts_ns", "name", "value", "unit"), map(list, zip(*samples, strict=True)), strict=True))
    steps = {"capture": [0], "step": [1], "start_ns": [100], "dur_ns": [100]}
    result = ask([matmul(20, 1e12)], more={"scalars": columns, "steps": steps})
    told = [(c["device"], c["counter"], c["mean_share"], c["highest_share"], c["samples"]) for c in result.counters]
    assert told == [(1, "Tensor Active", 0.4, 0.5, 2), (1, "Unallocated Warps", 0.8, 0.8, 1)]
    assert "By its own counters GPU 1 was in use, in the mean of 2 samples: Tensor Active 40 %." in result.notes
    everywhere = ask([matmul(20, 1e12)], more={"scalars": columns})
    assert everywhere.counters[0]["samples"] == 4
    assert ask([matmul(20, 1e12)]).counters == ()


@pytest.mark.parametrize("asked", [{"line": "async"}, {"device": 0}], ids=["line", "device"])
def test_counters_are_no_answer_on_operations_that_were_asked_for(asked):
    columns = {"ts_ns": [1], "name": ["GPU 1 Tensor Active"], "value": [10.0], "unit": ["%"]}
    with pytest.raises(QuestionError, match="no operation"):
        ask([matmul(20, 1e12, device=1)], more={"scalars": columns}, **asked)


def test_what_counters_of_two_hosts_tell_is_not_added_up():
    """Both number their GPUs from 0, and each has steps of its own."""
    tensor = "GPU 0 Tensor Active"
    samples = [(110, tensor, 90.0, "%", "a.sqlite"), (150, tensor, 70.0, "%", "a.sqlite")]
    samples += [(120, tensor, 10.0, "%", "b.sqlite"), (320, tensor, 20.0, "%", "b.sqlite")]
    names = ("ts_ns", "name", "value", "unit", "source")
    columns = dict(zip(names, map(list, zip(*samples, strict=True)), strict=True))
    captures = {"capture": [0, 1], "host": ["node-2", "node-10"], "source": ["a.sqlite", "b.sqlite"]}
    steps = {"capture": [0, 1], "host": ["node-2", "node-10"], "step": [1, 1], "start_ns": [100, 300]}
    more = {"scalars": columns, "captures": captures, "steps": {**steps, "dur_ns": [100, 100]}}
    result = ask([matmul(20, 1e12)], more=more)
    told = [(c["host"], c["device"], c["mean_share"], c["samples"]) for c in result.counters]
    assert told == [("node-2", 0, pytest.approx(0.8), 2), ("node-10", 0, 0.2, 1)]
    assert "By its own counters GPU 0 of node-10 was in use, in the mean of 1 sample: Tensor Active 20 %." in (
        result.notes
    )
    unplaced = ask([matmul(20, 1e12)], more={"scalars": columns})
    assert [(c["host"], c["samples"]) for c in unplaced.counters] == [("a.sqlite", 2), ("b.sqlite", 2)]
    captures = {**captures, "host": ["node", "node0"]}
    assert [c["host"] for c in ask([matmul(20, 1e12)], more={**more, "captures": captures}).counters] == [
        "node",
        "node0",
    ]


def test_counters_say_themselves_whose_they_are_and_for_whom_they_worked():
    tensor = 'GPU 0 tensor pipe active{host="n-2",%s}'
    names = [
        tensor % 'mig="1g.10gb 3"',
        tensor % 'pod="ml/dram-test"',
        'GPU 0 kernels{pod="ml/dram-test"}',
        "GPU 1 HBM",
    ]
    columns = {"ts_ns": [None] * 4, "name": names, "value": [50.0, 20.0, 90.0, 3.0], "unit": ["%"] * 4}
    columns["source"] = ["all.prom"] * 4
    result = ask([matmul(20, 1e12)], more={"scalars": columns})
    assert [(c["host"], c["device"], c["counter"], c["mean_share"]) for c in result.counters] == [
        ("all.prom", 0, "kernels of pod ml/dram-test", 0.9),
        ("all.prom", 1, "HBM", 0.03),
        ("n-2", 0, "tensor pipe active of MIG 1g.10gb 3", 0.5),
        ("n-2", 0, "tensor pipe active of pod ml/dram-test", 0.2),
    ]
    assert sum("By its own counters" in note for note in result.notes) == 2
    steps = {"step": [1], "start_ns": [100], "dur_ns": [100]}  # of a log: no profile
    dated = columns | {"ts_ns": [99, 100, None, 199]}
    inside = ask([matmul(20, 1e12)], more={"scalars": dated, "steps": steps}).counters
    assert [(c["device"], c["mean_share"]) for c in inside] == [(1, 0.03), (0, 0.2)]


def test_a_sample_that_two_files_tell_counts_once():
    columns = {
        "ts_ns": [1, 2, 1, 3],
        "name": ['GPU 0 HBM{host="a"}'] * 4,
        "value": [2.0, 3.0, 2.0, 4.0],
        "unit": ["%"] * 4,
    }
    columns["source"] = ["a.prom", "a.prom", "b.json", "b.json"]
    (row,) = counters(MemoryTables({"scalars": columns}))
    assert (row["samples"], row["mean_share"]) == (3, pytest.approx(0.03))


def test_many_devices_in_one_sentence():
    rows = [(n, name, 10.0 * n) for n in range(3) for name in ("tensor pipe active", "video decoder")]
    names = [f"GPU {n} {name}" for n, name, _ in rows] + [f"GPU {n} DRAM active" for n in range(3)]
    columns = {"ts_ns": [1] * 9, "name": names, "value": [value for *_, value in rows] + [5.0] * 3, "unit": ["%"] * 9}
    assert together(counters(MemoryTables({"scalars": columns}))) == [
        "By their own counters 3 GPUs were in use, in the mean of 1 sample each: "
        "DRAM active 5 %, tensor pipe active 10 % (0 to 20 %)."
    ]
    assert together([]) == []


@pytest.mark.parametrize(
    ("held", "said"),
    [(4, "4 GPUs were in use, in"), (2, "4 GPUs were in use, more than the 2 of this run"), (None, "8 GPUs were")],
)
def test_devices_that_two_monitors_name_otherwise_are_not_those_of_others(held, said):
    """The host of each GPU has a name of its own in the cloud; two of the GPUs are of another pod."""
    pods = [f'"node-1",pod="{"train" if n < 2 else "eval"}"' for n in range(4)]
    names = [f"GPU {n} tensor pipe active{{host={pod}}}" for n, pod in enumerate(pods)]
    names += [f'GPU {n} any kernel active{{host="gke-7f"}}' for n in range(4)]
    columns = {"ts_ns": [1] * 8, "name": names, "value": [50.0] * 8, "unit": ["%"] * 8, "source": ["a"] * 8}
    [told] = together(counters(MemoryTables({"scalars": columns})), held)
    assert told.startswith(f"By their own counters {said}")


def test_what_a_monitor_samples_once_a_minute_is_told_of_the_time_of_the_steps():
    """None of its samples lies in a profiled step; those of before and after the job are none of its."""
    duty = [f'TPU 0 duty cycle{{host="node-{n}"}}' for n in "ab"]
    samples = [(50, duty[0], 1.0), (150, duty[0], 60.0), (250, duty[0], 80.0), (450, duty[0], 2.0)]
    samples += [(150, duty[1], 20.0), (150, duty[1], 20.0), (150, 'Duty cycle{Chip="3"}', 9.0)]  # two lists overlap
    columns = dict(zip(("ts_ns", "name", "value"), map(list, zip(*samples, strict=True)), strict=True))
    columns |= {"unit": ["%"] * 7, "source": ["metrics.json"] * 7}
    steps = {"capture": [0, None], "host": ["vm", None], "start_ns": [390, 100], "dur_ns": [10, 290]}
    result = ask([matmul(20, 1e12)], more={"scalars": columns, "steps": steps})
    told = [(c["kind"], c["host"], c["device"], c["counter"], c["mean_share"], c["samples"]) for c in result.counters]
    assert told == [
        ("TPU", "metrics.json", 3, "Duty cycle", 0.09, 1),
        ("TPU", "node-a", 0, "duty cycle", pytest.approx(0.7), 2),
        ("TPU", "node-b", 0, "duty cycle", 0.2, 1),
    ]
    said = "By its own counters TPU 0 of node-a was in use, in the mean of 2 samples: duty cycle 70 %."
    assert said in result.notes
    assert together(list(result.counters[1:])) == [
        "By their own counters 2 TPUs were in use, in the mean of up to 2 samples each: duty cycle 45 % (20 to 70 %)."
    ]
    assert together([]) == []
    streamed = {
        "ts_ns": [None] * 3,
        "name": ['Duty cycle{Chip="3"}'] * 3,
        "value": [50.0, 50.0, 80.0],
        "unit": ["%"] * 3,
    }
    [one] = ask([matmul(20, 1e12)], more={"scalars": streamed}).counters
    assert (one["samples"], one["mean_share"]) == (3, pytest.approx(0.6))
    begun = {"start_ns": [100, 200], "dur_ns": [None, None]}  # as a goodput log tells of steps
    told = ask([matmul(20, 1e12)], more={"scalars": columns, "steps": begun}).counters
    assert [(c["host"], c["samples"]) for c in told] == [("metrics.json", 1), ("node-a", 1), ("node-b", 1)]


def test_of_many_devices_the_first_have_a_sentence_of_their_own():
    names = [f"GPU {n} Tensor Active" for n in range(19)]
    columns = {"ts_ns": [1] * 19, "name": names, "value": [50.0] * 19, "unit": ["%"] * 19}
    result = ask([matmul(20, 1e12)], more={"scalars": columns})
    assert len(result.counters) == 19 and sum("By its own counters" in note for note in result.notes) == 16
    assert "Counters of 3 more GPUs stand in the answer as JSON." in result.notes


def test_of_very_many_counters_those_that_tell_of_units_are_kept():
    names = [f"GPU {n % 8} Counter {n:03}" for n in range(400)] + [f"GPU {n} Tensor Active" for n in range(8)]
    columns = {"ts_ns": [1] * 408, "name": names, "value": [50.0] * 408, "unit": ["%"] * 408}
    told = ask([matmul(20, 1e12)], more={"scalars": columns}).counters
    assert len(told) == 256 and sum(c["counter"] == "Tensor Active" for c in told) == 8


def test_the_answer_is_the_contract_and_fits_json():
    waits = {"op": "all-reduce.1", "category": "collective", "self_ns": 5 * MS, "total_ns": 5 * MS, "flops": -1.0}
    said = ask([matmul(20, 1e12), copy(10, 1e9), waits]).to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    wanted = {
        "peak_flops_per_s",
        "hbm_bytes_per_s",
        "ridge_flops_per_byte",
        "counters",
        "roofs",
        "points",
        "time_by_bound",
        "device_seconds",
        "roof_seconds",
    }
    assert wanted <= set(said)
    assert {"name", "flops_per_s", "bytes_per_s", "basis", "source"} <= set(said["roofs"][0])
    assert said["ridge_flops_per_byte"] == pytest.approx(PEAK / WIDE)
    assert sum(said["time_by_bound"].values()) == pytest.approx(said["device_seconds"])
    assert said["gain_seconds"] == pytest.approx(said["device_seconds"] - said["roof_seconds"])
    assert sum(p["share"] for p in said["points"]) == pytest.approx(1)
    assert ask([matmul(20, 1e12), copy(10, 1e9)], top=1).to_dict()["points"][0]["op"] == "dot.1"


def test_what_has_no_roof_of_the_device_keeps_its_time():
    rows = [
        {"op": "all-reduce.1", "category": "collective", "flops": 1e6, "bytes": 1e15},
        {"op": "copy-done.3", "category": "copy", "flops": 0.0, "bytes": 1e15},
        {"op": "copy-start.3", "category": "copy", "flops": 0.0, "bytes": 1e15},
        {"op": "copy.9", "category": "copy", "flops": 0.0, "bytes": 1e15, "shape": "f32[8]{0:T(128)S(5)}"},
        {"op": "infeed.1", "category": "infeed", "flops": 0.0, "bytes": 1e15},
        {"op": "send.1", "category": "host", "flops": 0.0, "bytes": 1e15},
        {"op": "kernel", "category": "custom-call", "flops": 0.0, "bytes": 1e6},
        {"op": "while.1", "category": "control", "flops": None, "bytes": None},
        {"op": "odd", "category": "fusion", "flops": -1.0, "bytes": 1e6},
        {"op": "nothing", "category": "fusion", "flops": 0.0, "bytes": 0.0},
    ]
    result = ask([{**r, "self_ns": MS, "total_ns": MS} for r in rows])
    bound = dict(zip(result.points["op"], result.points["bound"], strict=True))
    assert bound == {
        "all-reduce.1": "communication",
        "copy-done.3": "asynchronous",
        "copy-start.3": "asynchronous",
        "copy.9": "host",
        "infeed.1": "host",
        "send.1": "host",
        "kernel": "unknown",
        "while.1": "unknown",
        "odd": "unknown",
        "nothing": "unknown",
    }
    assert result.points["roof_seconds"].isna().all() and result.points["roof_share"].isna().all()
    assert result.points.loc[result.points["op"] == "copy-done.3", "bytes_per_s"].isna().all()
    assert result.roof_seconds is None and result.device_seconds == pytest.approx(0.010)
    assert any("negative FLOPs or bytes" in n for n in result.notes)
    assert any("Custom calls" in n for n in result.notes)


def test_far_below_both_roofs_is_neither_and_near_moves_the_line():
    rows = [matmul(100, PEAK * 0.005)]
    assert ask(rows).points["bound"].tolist() == ["neither"]
    assert ask(rows, near=0.04).points["bound"].tolist() == ["compute"]
    for wrong in ({"near": 0}, {"near": 2}, {"top": -1}):
        with pytest.raises(QuestionError):
            ask(rows, **wrong)


def test_two_devices_a_chip_have_half_of_its_peaks_each():
    half, whole = chip("TPU 7x"), {"chip": "TPU 7x", "chips": 1}
    peak, width = half.need("bf16_flops_per_s") / 2, half.need("hbm_bytes_per_s") / 2
    rows = [matmul(10, peak * 0.010, device=d) for d in (0, 1)]
    result = ask(rows, whole)
    assert result.roof.flops.per_s == peak and result.roof.bytes.per_s == width
    assert result.devices == 2
    assert result.points["roof_share"].tolist() == [pytest.approx(1)]  # of two devices together as of each
    assert result.points["flops_per_s"].tolist() == [pytest.approx(peak)]
    declared = ask(rows, whole | {"peak_flops_per_s": peak, "devices_per_chip": 2})
    assert declared.roof.flops.per_s == peak / 2 and declared.roof.flops.basis == "declared"


def traced(flops=None, moved=None) -> dict:
    return {"captures": {"capture": [0], "host": ["h"], "peak_flops_per_s": [flops], "peak_hbm_bytes_per_s": [moved]}}


def test_where_the_specified_roof_comes_from():
    facts = {"chip": "TPU v5p"}
    assert ask([matmul(1, 1e9)], facts, traced(458e12, 2764e9)).roof.flops == Rate(
        458e12, "measured", "peak that the trace states, 458 TFLOP/s"
    )
    assert ask([matmul(1, 1e9)], facts, traced(458e12, 2764e9)).roof.bytes.per_s == 2764e9
    assert ask([matmul(1, 1e9)], facts, traced(458e12), peak_flops_per_s=1e15).roof.flops.basis == "declared"
    assert ask([matmul(1, 1e9)], facts | {"peak_flops_per_s": 400e12}, traced(458e12)).roof.flops.per_s == 400e12
    int8 = ask([matmul(1, 1e9)], facts | {"precision": "int8"}, traced(459e12))
    assert int8.roof.flops.per_s == chip("TPU v5p").need("int8_ops_per_s")
    assert ask([matmul(1, 1e9)], facts, traced(458e12), chip="TPU v6e").roof.flops.per_s == 918e12
    assert ask([matmul(1, 1e9)], facts, hbm_bytes_per_s=1e12).roof.bytes.per_s == 1e12
    assert {"spec int8"} <= {r.name for r in ask([matmul(1, 1e9)], facts).roofs}


def test_a_trace_s_peak_is_of_one_device_even_as_a_fact():
    facts = facts_of({"chip": "TPU 7x"}) | {"peak_flops_per_s": FactValue(1153.5e12, "measured", "trace")}
    roof, notes = spec_roof(MemoryTables(traced(1153.5e12, 3690e9)), facts, {})
    assert roof.flops.per_s == 1153.5e12 and roof.bytes.per_s == 3690e9
    assert any("1/2 of the chip's peaks" in n for n in notes)


def test_each_host_is_held_against_what_its_own_captures_state():
    kinds = {"device_type": ["TPU v6 Lite", "TPU v5e"], "peak_flops_per_s": [918e12, 197e12]}
    captures = {"capture": [0, 1], "host": ["a", "b"], **kinds, "peak_hbm_bytes_per_s": [1638e9, 819e9]}
    facts = facts_of({}) | {"chip": FactValue("TPU v6 Lite", "measured", "a.xplane.pb")}
    for host, flops, moved in (("a", 918e12, 1638e9), ("b", 197e12, 819e9)):
        roof, notes = spec_roof(MemoryTables({"captures": captures}), facts, {"host": host})
        assert (roof.flops.per_s, roof.bytes.per_s) == (flops, moved) and notes == []
    roof, notes = spec_roof(MemoryTables({"captures": captures}), facts, {})
    assert roof.flops.per_s == 918e12 and "peaks of 197 and 918 TFLOP/s" in notes[0]
    alike = {**captures, "peak_flops_per_s": [918e12] * 2}
    assert spec_roof(MemoryTables({"captures": alike}), facts, {})[1] == []


def test_a_bandwidth_that_the_trace_counts_wrongly_gives_way_to_the_data_sheet():
    result = ask([copy(1, 1e9)], {"chip": "MI300X"}, traced(None, 2662.4e9))
    assert result.roof.bytes.per_s == 5300e9
    assert any("2,662.4 GB/s" in n and "data sheet is used" in n for n in result.notes)


def test_reached_roofs_come_from_operations_that_each_roof_binds():
    rows = [
        matmul(30, PEAK * 0.003, count=10),  # compute-bound at its intensity, at full peak over 10 x 3 ms
        copy(20, WIDE * 0.0014, count=10),
        {**copy(10, WIDE * 0.0009, count=10), "op": "copy.2"},  # 70 and 90 %
        {**matmul(5, 1e10, 1e9, count=10), "op": "memory-bound matmul"},
        {**copy(1e-4, WIDE * 9e-8, count=1), "op": "once, and too short to count"},
    ]
    reached = next(r for r in ask(rows).roofs if r.name == "reached")
    assert reached.flops.per_s == pytest.approx(PEAK) and "dot.1" in reached.flops.source
    assert reached.bytes.per_s == pytest.approx(0.9 * WIDE) and "copy.2" in reached.bytes.source
    assert reached.basis == "derived"
    result = ask(rows, roof="reached")
    best = result.points[result.points["op"] == "copy.2"]
    assert best["roof_share"].tolist() == [pytest.approx(1)]


def test_a_rate_beyond_the_hardware_is_not_reached_and_is_told():
    rows = [copy(10, WIDE * 0.02, count=10), {**copy(10, WIDE * 0.0005, count=10), "op": "copy.2"}]
    result = ask(rows)
    reached = next(r for r in result.roofs if r.name == "reached")
    assert reached.bytes.per_s == pytest.approx(0.5 * WIDE) and "copy.2" in reached.bytes.source
    assert any("1 operation runs beyond the specified roof" in n for n in result.beyond)
    assert result.roof_seconds == pytest.approx(0.010 + 0.005)  # nothing gets slower by a roof
    declared = ask([matmul(10, 2e9, 1, count=10)], {"peak_flops_per_s": 1e12, "hbm_bytes_per_s": 1e12, "chips": 1})
    assert next(r for r in declared.roofs if r.name == "reached").flops.per_s == pytest.approx(2e12)


def test_without_a_chip_the_run_s_own_best_rates_stand_in():
    rows = [matmul(10, 1e12, 1e6, count=10), copy(10, 1e9, count=10)]
    result = ask(rows, {"chips": 1})
    assert result.roof.name == "spec" and result.roof.flops.basis == "derived"
    assert result.roof.flops.per_s == pytest.approx(1e15) and result.roof.bytes.per_s == pytest.approx(1e12)
    assert sum("in its place" in n for n in result.notes) == 2
    alone = ask([matmul(10, 1e9, 1e9, count=10)], {"chips": 1})  # one operation cannot show two roofs
    assert alone.roof.flops is None and alone.points["bound"].tolist() == ["unknown"]
    with pytest.raises(QuestionError, match="no peak of this device is known"):
        ask([{"op": "x", "category": "fusion", "self_ns": MS, "total_ns": MS}], {"chips": 1})


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0, 1e15), st.floats(0, 1e12)), min_size=1, max_size=20),
    st.floats(1e9, 1e16),
    st.floats(1e6, 1e13),
)
def test_the_bound_is_the_larger_of_two_fractions(amounts, peak, width):
    flops, moved = np.array(amounts).T
    least, by_memory = bound_s(flops, moved, Roof("spec", Rate(peak, "declared", ""), Rate(width, "declared", "")))
    for f, b, s, m in zip(flops, moved, least, by_memory, strict=True):
        assert s == max(f / peak, b / width)
        assert m == (b / width > f / peak)


def test_a_bound_that_needs_an_unknown_rate_is_unknown():
    roof = Roof("spec", Rate(1e12, "declared", ""), None)
    least, _ = bound_s(np.array([1e12, 1e12, np.nan]), np.array([0.0, 5.0, 0.0]), roof)
    assert least[0] == 1.0 and np.isnan(least[1:]).all()


def test_bytes_in_hbm_are_told_from_those_on_the_chip():
    # reads 5 GiB in space 1 (HBM), writes as many in space 1, reads 100 bytes in space 3
    assert hbm_of("0a0a080110011880808080140a0a08021001188080808014" + "0a06080110031864") == 10 * 2**30
    for odd in ("", "0a0a08", "zz", "0a0a0801100118808080801" + "...", "ff" * 20, "0b"):
        assert hbm_of(odd) is None
    stats = {
        "op_stats": {
            "capture": [0],
            "op_id": [0],
            "name": ["memory_access_breakdown"],
            "text_value": ["0a06080110011864" + "0a06080110031864"],
        }
    }
    result = ask([copy(1, 200)], more=stats)
    assert result.points["bytes"].tolist() == [100.0]
    assert any("(HBM)" in n for n in result.notes)


def compiled(clock=None, **more):
    rows = [
        {"op": "fusion.1", "category": "matmul", "flops": PEAK * 0.001, "bytes": 1e6, "count": 3, "cycles": 2e6},
        {"op": "fusion.2", "category": "fusion", "flops": 1e6, "bytes": WIDE * 0.001, "count": 2, "cycles": 3e6},
        {"op": "all-gather.1", "category": "collective", "flops": 0.0, "bytes": 1e9, "count": 1, "cycles": None},
    ]
    rows = [{**r, "self_ns": None, "total_ns": None, "device": None, "host": None} for r in rows]
    return ask(rows, V5P | {"outcome": "compiled"}, **({"clock_hz": clock} if clock else {}), **more)


def test_a_compiled_program_has_bounds_and_no_rates():
    result = compiled()
    said = result.to_dict()
    assert said["device_seconds"] is None and said["gain_seconds"] is None and said["time_basis"] == "modelled"
    assert said["roof_seconds"] == pytest.approx(0.003 + 0.002)
    assert said["time_by_bound"]["compute"] == pytest.approx(0.003)
    assert said["time_by_bound"]["memory"] == pytest.approx(0.002)
    assert [p["share"] for p in said["points"]] == [pytest.approx(0.6), pytest.approx(0.4), 0]
    assert all(p["flops_per_s"] is None and p["roof_share"] is None for p in said["points"])
    assert any("Nothing ran" in n for n in said["notes"])
    json.dumps(said, allow_nan=False)


def test_a_clock_makes_seconds_of_estimated_cycles():
    result = compiled(clock=1e9)
    assert result.basis == "modelled" and result.device_seconds == pytest.approx(3 * 0.002 + 2 * 0.003)
    shares = dict(zip(result.points["op"], result.points["roof_share"], strict=True))
    assert shares["fusion.1"] == pytest.approx(0.5) and shares["fusion.2"] == pytest.approx(1 / 3)
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_run_that_has_nothing_says_what_would_help():
    for tables in ({}, op_tables([{"op": "x", "role": "host", "device": None}])):
        with pytest.raises(QuestionError, match="no operation of a device"):
            roofline.analyze(MemoryTables(tables), facts_of(V5P), parse_options(roofline.OPTIONS, {}))
    with pytest.raises(QuestionError, match="the compiler made no program"):
        ask([], V5P | {"outcome": "out_of_memory"})
    with pytest.raises(QuestionError, match="no operation with host 'other'"):
        ask([copy(1, 1e9)], host="other")


def test_one_host_device_or_module_alone():
    rows = [
        copy(1, 1e9, host="a", device=0),
        copy(2, 1e9, host="a", device=1),
        copy(4, 1e9, host="b", device=0, module="jit_g"),
    ]
    seconds = [
        ask(rows, **o).device_seconds
        for o in ({}, {"host": "a"}, {"device": 0}, {"host": "a", "device": 1}, {"module": "jit_g"})
    ]
    assert seconds == pytest.approx([0.007, 0.003, 0.005, 0.002, 0.004])


def test_steps_are_counted_on_each_device():
    steps = {
        "steps": {
            "capture": [0, 0, 0],
            "host": ["h"] * 3,
            "step": [1, 2, 3],
            "start_ns": [0, 1, 2],
            "dur_ns": [1, 1, 1],
        }
    }
    assert ask([copy(1, 1e9, device=d) for d in (0, 1)], more=steps).device_steps == 6
    assert ask([copy(1, 1e9)]).device_steps is None

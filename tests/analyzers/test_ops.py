"""Top operations: self time in nested loops, executions and FLOPs counted once, grouping, what is unknown."""

import json

import pytest

from analyzers.device import operations as ops
from analyzers.device import roofline
from collectors.ingest import ingest
from errors import QuestionError
from errors.options import parse_options
from runs.store import Store
from tests.analyzers.op_tables import PEAK, V5P, WIDE, ask_with
from tests.collectors.traces import PlaneBuilder, XSpace, environment

MS = 1e6


def ask(rows, facts=V5P, **options):
    return ask_with(ops, rows, facts, **options)


def timed(op: str, ms: float, **more) -> dict:
    return {"op": op, "total_ns": ms * MS, "self_ns": ms * MS, **more}


ROWS = [
    timed("dot.1", 20, category="matmul", flops=PEAK * 0.001, bytes=1e6, count=10, source="a/model.py:8"),
    timed("copy.1", 10, category="copy", flops=0.0, bytes=WIDE * 0.001, count=5, source="a/model.py:9"),
    timed("all-reduce", 30, category="collective", flops=1e6, bytes=1e9, count=5),
    timed("fusion.1", 5, flops=1e3, bytes=WIDE * 0.0025, source="a/model.py:8", module="jit_g"),
]


def test_the_answer_is_the_contract_and_fits_json():
    said = ask(ROWS).to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert {"device_seconds", "rows", "by_category"} <= set(said)
    assert said["device_seconds"] == pytest.approx(0.065)
    assert [r["op"] for r in said["rows"]] == ["all-reduce", "dot.1", "copy.1", "fusion.1"]
    assert sum(r["share"] for r in said["rows"]) == pytest.approx(1)
    dot = said["rows"][1]
    assert dot["count"] == 10 and dot["flops"] == pytest.approx(PEAK * 0.010)
    assert dot["roof_share"] == pytest.approx(0.5) and dot["flops_per_s"] == pytest.approx(PEAK / 2)
    assert said["rows"][0]["roof_share"] is None and said["rows"][0]["flops_per_s"] is None
    assert any("Idle time is no operation" in n for n in said["notes"])


def test_rows_beyond_the_top_are_summed():
    said = ask(ROWS, top=1).to_dict()
    assert len(said["rows"]) == 1
    assert said["others"] == {"rows": 3, "self_seconds": pytest.approx(0.035), "share": pytest.approx(35 / 65)}
    with pytest.raises(QuestionError):
        ask(ROWS, top=-1)


def test_grouping_adds_up_and_keeps_names_that_are_one():
    whole = ask(ROWS).device_seconds
    for by, first in (("category", "collective"), ("source", ""), ("module", "jit_f")):
        result = ask(ROWS, by=by)
        assert result.rows["self_seconds"].sum() == pytest.approx(whole)
        assert result.rows[by].iloc[0] == first
    lines = ask(ROWS, by="source").rows.set_index("source")
    both = lines.loc["a/model.py:8"]
    assert both["ops"] == 2 and both["category"] is None and both["op"] is None
    assert both["roof_seconds"] == pytest.approx(0.010 + 0.0025) and both["roof_share"] == pytest.approx(0.5)
    programs = ask(ROWS, by="module").rows.set_index("module").loc["jit_f"]
    assert programs["roofed_seconds"] == pytest.approx(0.030)  # without the collective, which has no roof
    assert programs["roof_share"] == pytest.approx((0.010 + 0.005) / 0.030)


def test_one_operation_on_many_threads_devices_and_captures_is_one_row():
    rows = [
        timed("dot.1", 2, category="matmul", flops=1e9, bytes=1e6, count=3, device=d, line=f"thread {t}", capture=c)
        for d in (0, 1)
        for t in (0, 1)
        for c in (0, 1)
    ]
    (row,) = ask(rows).to_dict()["rows"]
    assert row["count"] == 24 and row["self_seconds"] == pytest.approx(0.016)
    assert row["flops_per_s"] == pytest.approx(24e9 / 0.016)


def test_several_kernels_of_one_operation_share_its_cost_and_count_once():
    rows = [
        timed("conv.1", 6, category="convolution", flops=1e12, bytes=1e6, count=5, shape="bf16[8]"),
        timed("conv.1", 4, category="convolution", count=5, shape="bf16[8]"),
    ]
    (row,) = ask(rows).to_dict()["rows"]
    assert row["count"] == 5 and row["flops"] == 5e12 and row["self_seconds"] == pytest.approx(0.010)
    assert row["flops_per_s"] == pytest.approx(5e14)  # by the time of all its kernels


def test_operations_of_one_name_and_other_shapes_stay_apart():
    rows = [timed("slice", 1, shape="f32[4]"), timed("slice", 2, shape="f32[8]")]
    assert ask(rows).rows["shape"].tolist() == ["f32[8]", "f32[4]"]
    assert ask(rows, by="module").rows["ops"].tolist() == [2]


def test_negative_and_missing_costs_are_unknown():
    rows = ask([timed("a", 1, flops=-1.0, bytes=8.0), timed("b", 1), timed("c", 1, flops=4.0, bytes=-2.0)]).to_dict()
    for row in rows["rows"]:
        assert row["roof_seconds"] is None and row["roof_share"] is None
    assert {r["op"]: (r["flops"], r["bytes"]) for r in rows["rows"]} == {
        "a": (None, 8.0),
        "b": (None, None),
        "c": (4.0, None),
    }


def test_lines_beside_the_device_are_asked_for():
    rows = [*ROWS, timed("copy-start.1", 90, role="async", category="copy", bytes=1e9, flops=0.0)]
    assert ask(rows).device_seconds == pytest.approx(0.065)
    beside = ask(rows, line="async")
    assert beside.rows["op"].tolist() == ["copy-start.1"] and beside.device_seconds == pytest.approx(0.090)
    with pytest.raises(QuestionError, match="beside others"):
        ask(ROWS, line="async")


def test_without_any_peak_rates_stay_and_roofs_are_told():
    result = ask([timed("x", 1, flops=1e6, bytes=0.0)], {"chips": 1})
    assert result.rows["flops_per_s"].tolist() == [pytest.approx(1e9)]
    assert result.rows["roof_share"].isna().all()
    assert any("not known" in n for n in result.notes)


@pytest.fixture(scope="module")
def looped(tmp_path_factory):
    """A TPU's trace as its profiler writes it: twice a loop of 10 iterations, each 2 ms of a product and 1 ms of a
    fusion, with 1 ms of the loop's own around each iteration."""
    folder = tmp_path_factory.mktemp("trace")
    space = XSpace()
    environment(space)
    plane = PlaneBuilder(space, "/device:TPU:0").stats(
        device_type_string="TPU v5p", peak_teraflops_per_second=459.0, peak_hbm_bw_gigabytes_per_second=2765.0
    )
    dot, fusion, loop = "%fusion.7 = bf16[8,8]{1,0} fusion()", "%add.2 = f32[8]{0} add()", "%while.1 = (s32[]) while()"
    plane.metadata(dot, hlo_category="convolution fusion", flops=459 * 10**9, bytes_accessed=10**6)
    plane.metadata(fusion, hlo_category="loop fusion", flops=0, bytes_accessed=27650 * 10**5)
    plane.metadata(loop, hlo_category="while", flops=4590 * 10**9, bytes_accessed=10**9)
    events = []
    for start in (0, 50_000_000):
        events.append((loop, start, 40_000_000))
        for i in range(10):
            at = start + 4_000_000 * i
            events += [(dot, at, 2_000_000), (fusion, at + 2_000_000, 1_000_000)]
    plane.line("XLA Ops", events)
    (folder / "host.xplane.pb").write_bytes(space.SerializeToString())
    store = Store(folder / "store")
    return store.get(ingest([folder / "host.xplane.pb"], store).run_id)


def test_a_loop_has_its_own_time_and_its_body_one_execution_per_iteration(looped):
    result = ops.analyze(looped.tables, looped.manifest.facts, parse_options(ops.OPTIONS, {}))
    rows = {r["category"]: r for r in result.to_dict()["rows"]}
    assert result.device_seconds == pytest.approx(0.080)  # two loops of 40 ms, nothing counted twice
    assert rows["control"]["self_seconds"] == pytest.approx(0.020) and rows["control"]["total_seconds"] == 0.080
    assert rows["control"]["flops"] is None
    dot = rows["matmul"]
    assert dot["count"] == 20 and dot["flops"] == 20 * 459e9  # no trip count on top
    assert dot["flops_per_s"] == pytest.approx(459e9 / 0.002) and dot["roof_share"] == pytest.approx(0.5)
    assert rows["fusion"]["count"] == 20 and rows["fusion"]["roof_share"] == pytest.approx(1)


def test_the_roofline_of_the_same_loop(looped):
    result = roofline.analyze(looped.tables, looped.manifest.facts, parse_options(roofline.OPTIONS, {}))
    assert result.roof.flops.per_s == 459e12 and result.roof.bytes.per_s == 2765e9
    assert result.whole["flops"] == 20 * 459e9
    assert result.roof_seconds == pytest.approx(0.020 + 0.020 + 0.020)  # product, fusion, loop as it is
    assert {b: s for b, s in result.time_by_bound.items() if s} == {
        "compute": pytest.approx(0.040),
        "memory": pytest.approx(0.020),
        "unknown": pytest.approx(0.020),
    }


@pytest.mark.parametrize("question", [ops, roofline])
def test_operations_without_any_time_are_no_division_by_zero(question):
    said = ask_with(question, [timed("a", 0, flops=1e6, bytes=1e6), timed("b", 0)], V5P).to_dict()
    assert said["device_seconds"] == 0
    json.dumps(said, allow_nan=False)

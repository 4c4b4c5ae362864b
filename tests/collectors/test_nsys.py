"""Exports of Nsight Systems: what is in the file is in the tables, and nothing in the file is run."""

import gzip
import sqlite3
from collections import Counter

import pytest

from collectors.base import Source
from collectors.device import nsys
from collectors.device.ranges import range_of
from collectors.ingest import ingest
from collectors.reading.sqlite import Database
from errors import InputError
from runs.store import Store
from tests.collectors.nsys_exports import BASE, Export, everything, tid_of
from tests.collectors.reading import read, source_of


@pytest.fixture
def got(tmp_path):
    def reading(export: Export, name="report1.sqlite"):
        return read(nsys, source_of(tmp_path, export.data(tmp_path), name))

    return reading


def ops(result, **where):
    return [o for o in result.rows["ops"] if all(o[k] == v for k, v in where.items())]


def launched(result):
    """(what was executed, the call's name, the call's thread) of each row of `launches`."""
    names = {o["op_id"]: o["op"] for o in result.rows["ops"]}
    kernels = {s["op_id"]: s["text_value"] for s in result.rows.get("op_stats", []) if s["name"] == "kernel"}
    of = {e["event"]: kernels.get(e["op_id"], names[e["op_id"]]) for e in result.rows["op_events"]}
    return [(of[r["event"]], r["call"], r["line"]) for r in result.rows.get("launches", [])]


def test_sums_are_those_of_the_file(got):
    export = Export()
    for n in range(40):
        export.ran(f"kernel{n % 3}", 1000 * n, 10 + n, n + 1, device=n % 2)
    export.put("CUPTI_ACTIVITY_KIND_MEMCPY", (5, 9, 1, 7, 0, tid_of(10, 0), 64, 1, 1, 2))
    result = got(export)
    by_device = Counter()
    for op in ops(result, role="compute"):
        by_device[op["device"]] += op["total_ns"]
    assert by_device == {0: sum(10 + n for n in range(0, 40, 2)), 1: sum(10 + n for n in range(1, 40, 2)) + 4}
    assert len(result.rows["op_events"]) == 81
    (capture,) = result.rows["captures"]
    assert capture["start_ns"] == BASE - 50 and capture["devices"] == 2


@pytest.mark.parametrize(("outer", "inner"), [("iteration {}", "batch {}"), ("train step {}", "step {}")])
def test_ranges_within_a_step_are_no_steps_beside_it(got, outer, inner):
    export = Export()
    for n in range(6):
        export.range(outer.format(n), 10_000 * n, 10_000 * n + 9_000)
        for k in range(4):
            export.range(inner.format(k), 10_000 * n + 2_000 * k, 10_000 * n + 2_000 * k + 1_900)
            export.ran("gemm", 10_000 * n + 2_000 * k + 500, 1_000, 4 * n + k + 1, lag=100)
    assert [(s["step"], s["dur_ns"]) for s in got(export).rows["steps"]] == [(n, 9_000) for n in range(6)]


def test_a_range_that_was_never_closed_hides_no_step_after_it(got):
    export = Export()
    for n in range(8):
        export.range(f"step {n}", 10_000 * n, 100_000 if n == 2 else 10_000 * n + 9_000)
        export.ran("gemm", 10_000 * n + 500, 8_000, n + 1, lag=100)
    assert {s["step"] for s in got(export).rows["steps"]} == set(range(8))


def test_everything_in_a_small_export(got):
    result = got(everything())
    assert [(s["step"], s["start_ns"], s["dur_ns"]) for s in result.rows["steps"]] == [
        (7, BASE + 1_000_000, 900_000),
        (8, BASE + 2_000_000, 900_000),
    ]
    (gemm,) = ops(result, device=0, op="aten::mm")
    assert (gemm["count"], gemm["total_ns"], gemm["module"], gemm["category"]) == (2, 140_000, "attention", "matmul")
    (copy,) = ops(result, device=0, op="Memcpy HtoD")
    assert (copy["category"], copy["count"]) == ("copy", 2)
    assert [c["kind"] for c in result.rows["collectives"]] == ["all-reduce"] * 2
    assert [c["step"] for c in result.rows["collectives"]] == [7, 8]
    assert result.facts["chip"] == "NVIDIA H100 80GB HBM3" and result.facts["chips"] == 1
    assert {o["host"] for o in result.rows["ops"]} == {"node-3/report1"}
    assert {name for *_, name in launched(result)} == {"thread 1 (python)"} or all(
        "python" in name for *_, name in launched(result)
    )
    assert [e["text"] for e in result.rows["evidence"]] == ["Not all events were kept"]
    assert [e["ts_ns"] for e in result.rows["evidence"]] == [BASE + 900_000]
    assert sorted(s["int_value"] for s in result.rows["event_stats"] if s["name"] == "bytes") == [
        64,
        64,
        1 << 20,
        1 << 20,
    ]


def test_every_row_is_an_event_or_told(got):
    export = everything()
    export.range("never ended", 5_000_000, None).range("a domain", 0, None, kind=75)
    export.put("NVTX_EVENTS", (5_100_000, None, 34, "a mark", tid_of(10), None, 0, None))
    result = got(export)
    timed = ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "RUNTIME")
    rows = sum(len(export.rows[f"CUPTI_ACTIVITY_KIND_{t}"]) for t in timed)
    rows += sum(len(export.rows[t]) for t in ("OSRT_API", "PROFILER_OVERHEAD", "NVTX_EVENTS"))
    assert len(result.rows["op_events"]) == rows - 2
    assert "1 NVTX ranges: the profile ended before they did" in result.reasons()
    assert "1 rows of NVTX_EVENTS: they name domains" in result.reasons()


def test_two_processes_count_calls_and_devices_for_themselves(got):
    """Each rank of a host sees one device, its number 0, and numbers its calls from 1."""
    export = Export()
    for pid, name in ((10, "a"), (11, "b")):
        export.ran(name, 1000 * pid, 10, 1, pid=pid, tid=pid)
    result = got(export)
    assert {(k, line.split()[1]) for k, _, line in launched(result)} == {("a", "10"), ("b", "11")}
    assert sorted(o["device"] for o in ops(result, role="compute")) == [0, 1]
    told = everything()
    told.put("TARGET_INFO_CUDA_DEVICE", (5, 0, 11, "GPU-6", 132)).ran("b", 3_000_000, 10, 1, pid=11)
    assert {o["device"] for o in ops(got(told), role="compute")} == {0, 5}


def test_a_wait_is_on_a_device_that_its_process_works_on(got):
    export = Export().ran("a", 100, 10, 1, pid=10).ran("b", 100, 10, 1, pid=11, device=1)
    export.put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (120, 130, 0, 7, 0, tid_of(11, 0), 3))
    assert {o["device"] for o in ops(got(export)) if o["device"] is not None} == {0, 1}


def test_a_graph_is_the_devices_work_where_its_nodes_were_not_traced(got):
    export = Export().launch(90, 5, 4, "cudaGraphLaunch_v10000")
    export.put("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (100, 400, 0, 7, 4, tid_of(10, 0), 12, 3))
    result = got(export)
    (graph,) = ops(result, role="compute")
    assert (graph["total_ns"], "graph" in graph["op"].lower()) == (300, True)
    assert [r["graph"] for r in result.rows["launches"]] == [True]


def captured(export, pid=10):
    """Two nodes made in two modules, copied twice, and executed twice on two streams."""
    for n, module in enumerate(("attention", "mlp")):
        export.range(module, 1000 + 100 * n, 1090 + 100 * n, pid=pid)
        export.launch(1010 + 100 * n, 20, 50 + n, pid=pid).node(1020 + 100 * n, 1 + n, pid=pid)
        for copy, original in ((11, None), (11, 1), (21, 11)):
            export.node(1300 + copy, copy + n, original and original + n, pid=pid)
    for run in range(2):
        export.launch(2000 + 500 * run, 10, 60 + run, "cudaGraphLaunch_v10000", pid=pid)
        for n in (1, 0):
            export.kernel(f"k{n}", 2100 + 500 * run, 30, 60 + run, stream=7 + n, node=21 + n, pid=pid)
    return export


def test_what_a_graph_executes_is_of_the_range_in_which_its_node_was_made(got):
    result = got(captured(Export()))
    assert {(o["op"], o["scope"], o["count"]) for o in ops(result, role="compute")} == {
        ("k0", "attention", 2),
        ("k1", "mlp", 2),
    }
    assert [r["graph"] for r in result.rows["launches"]] == [True] * 4
    assert len(ops(result, op="Graph Node Creation")) == 1 and "graphs" not in result.reasons()


def test_nodes_of_two_processes_have_the_same_numbers(got):
    export = captured(captured(Export()), pid=11)
    export.rows["NVTX_EVENTS"] = [
        (*row[:3], row[3] + (" of 11" if row[4] == tid_of(11) else ""), *row[4:]) for row in export.rows["NVTX_EVENTS"]
    ]
    told = sorted(o["scope"] for o in ops(got(export), role="compute"))
    assert told == ["attention", "attention of 11", "mlp", "mlp of 11"]


@pytest.mark.parametrize("odd", [(1, 2), (2, 1), (1, 1), (9, 1 << 62), (0, 0)])
def test_nodes_that_are_copies_of_each_other_or_of_none_end(got, odd):
    export = captured(Export())
    export.rows["CUDA_GRAPH_NODE_EVENTS"] = [
        (*row[:5], *((odd[0], odd[1]) if row[6] else (odd[1], odd[0]))) for row in export.rows["CUDA_GRAPH_NODE_EVENTS"]
    ]
    result = got(export)
    assert sum(o["count"] for o in ops(result, role="compute")) == 4


def test_an_export_without_processes_or_clock(got):
    """As another program writes one: the least columns."""
    export = Export(CUPTI_ACTIVITY_KIND_KERNEL=("globalPid", "contextId", "graphNodeId"))
    export.rows.pop("TARGET_INFO_SESSION_START_TIME")
    name = export.string("k")
    export.put("CUPTI_ACTIVITY_KIND_KERNEL", (100, 200, 0, 7, 1, name, name)).launch(90, 5, 1)
    result = got(export)
    assert [k for k, *_ in launched(result)] == ["k"]
    assert "the time of day" in result.reasons()


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step 12", 12),
        ("Step_3", 3),
        ("iteration: 4", 4),
        ("train_step 5", 5),
        ("iter#6", 6),
        ("batch 7", 7),
        ("ProfilerStep#8", 8),
        ("training step", -1),
        ("train_step", -1),
        ("step", -1),
        ("optimizer.step", None),
        ("step 1 of 2", None),
        ("Optimizer.step#Adam.step", None),
        ("forward", None),
    ],
)
def test_what_a_range_tells_of_steps(text, step):
    assert range_of(text).step == step


def test_what_a_range_of_an_operator_tells():
    told = range_of("aten::mm, seq = 7, op_id = 314, sizes = [[8, 4], [4, 2]], input_op_ids = [(1,0)]")
    assert (told.name, told.operator, told.sequence, told.sizes) == ("aten::mm", True, 7, "[[8, 4], [4, 2]]")
    assert range_of("aten::view, op_id = 314290").operator and not range_of("layer 1, of 2").operator
    assert range_of("data_loading").fetch and range_of("next batch").fetch and not range_of("load model").fetch


def test_steps_without_a_number_are_counted(got):
    export = Export()
    for n in range(3):
        export.range("train_step", 1000 * n, 1000 * n + 900).ran("k", 1000 * n + 100, 50, n + 1)
    assert [s["step"] for s in got(export).rows["steps"]] == [0, 1, 2]


def test_odd_names_stay_as_they_are(got):
    names = ['a "quoted" \\ name', "<script>alert(1)</script>", "[list]", "\x00\x01", "é" * 50]
    export = Export()
    for n, name in enumerate(names):
        export.range(name, 1000 * n, 1000 * n + 500)
    assert {o["op"] for o in ops(got(export), role="host")} >= set(names)


def test_rows_in_any_order_are_the_same(got):
    export = everything()
    before = got(export)
    for rows in export.rows.values():
        rows.reverse()
    after = got(export)
    assert sorted((o["op"], o["count"], o["total_ns"], o["self_ns"]) for o in before.rows["ops"]) == sorted(
        (o["op"], o["count"], o["total_ns"], o["self_ns"]) for o in after.rows["ops"]
    )
    assert before.rows["steps"] == after.rows["steps"]


def test_a_report_is_refused_with_the_command(tmp_path):
    source = source_of(tmp_path, b"NVIDIA Tegra Profiler Report\x00\x01", "job.nsys-rep")
    assert nsys.sniff(source) > 0.9
    with pytest.raises(InputError, match="nsys export --type sqlite"):
        read(nsys, source)


def test_a_packed_export_is_read(tmp_path):
    packed = gzip.compress(everything().data(tmp_path))
    source = source_of(tmp_path, packed, "report1.sqlite.gz")
    assert nsys.sniff(source) > 0.9 and len(read(nsys, source).rows["steps"]) == 2


def test_other_databases_are_not_taken(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    assert nsys.sniff(Source(path, path.name)) == 0


HOSTILE = {
    "a view for a table": "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION "
    "ALL SELECT start + 1 FROM n) SELECT start, start AS end, 0 AS deviceId, 7 AS streamId, 1 AS correlationId, 1 AS "
    "globalPid, 1 AS demangledName, 1 AS shortName FROM n",
    "a generated column": "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER GENERATED ALWAYS AS "
    "(length(hex(zeroblob(900000000)))) VIRTUAL)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN DELETE FROM NVTX_EVENTS; END",
    "a virtual table": "CREATE VIRTUAL TABLE OSRT_API USING fts5(start)",
    "text for numbers": "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start TEXT, end BLOB, deviceId TEXT, streamId REAL)",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_nothing_in_the_file_is_run(tmp_path, what):
    export = Export().range("step 1", 0, 1000).range("step 2", 1000, 2000)
    path = export.write(tmp_path / "made.sqlite")
    connection = sqlite3.connect(path)
    connection.execute(HOSTILE[what])
    if what == "text for numbers":
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES ('12abc', x'ff00', NULL, 1e300)")
    connection.commit()
    connection.close()
    result = read(nsys, Source(path, "made.sqlite"))
    assert len(result.rows["steps"]) == 2
    assert len(result.rows["op_events"]) <= 3


def test_nothing_but_stored_columns_can_be_reached(tmp_path):
    path = everything().write(tmp_path / "made.sqlite")
    with Database(Source(path, "made.sqlite")) as database:
        for statement in (
            "SELECT load_extension('x')",
            "SELECT name FROM pragma_table_info('StringIds')",
            "ATTACH 'x' AS y",
            "PRAGMA journal_mode=DELETE",
            "SELECT randomblob(10)",
            "DELETE FROM StringIds",
            "SELECT * FROM sqlite_master",
        ):
            with pytest.raises(sqlite3.DatabaseError):
                database._connection.execute(statement)


def test_a_file_cut_anywhere_is_read_in_part_or_refused_in_one_sentence(tmp_path):
    whole = everything().data(tmp_path)
    ended = Counter()
    for cut in range(100, len(whole), 1024):
        try:
            result = read(nsys, source_of(tmp_path, whole[:cut], "cut.sqlite"))
        except InputError as error:
            assert "cut.sqlite" in str(error)
            ended["refused"] += 1
        else:
            assert "the end of the file" in result.reasons()
            ended["read in part"] += 1
    assert ended["refused"] > 5


@pytest.mark.parametrize("n", range(40))
def test_a_damaged_file_is_read_or_refused(tmp_path, n):
    data = bytearray(everything().data(tmp_path))
    for k in range(1 + n % 7):
        data[(n * 7919 + k * 104_729) % len(data)] ^= 1 << (n % 8)
    try:
        read(nsys, source_of(tmp_path, bytes(data), "damaged.sqlite"))
    except InputError as error:
        assert "damaged.sqlite" in str(error)


def test_nothing_is_stored_of_one_that_is_refused(tmp_path):
    path = tmp_path / "empty.sqlite"
    Export().write(path)
    with pytest.raises(InputError):
        ingest([path], Store(tmp_path / "store"))
    assert Store(tmp_path / "store").runs() == []

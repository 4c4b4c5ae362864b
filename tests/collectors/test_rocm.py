"""Files of AMD's profilers: what is in them is in the tables, whichever of three formats holds it."""

import gzip
import json
from collections import Counter

import pytest

from collectors import COLLECTORS
from collectors.base import Source
from collectors.device.rocm import rocpd, rocprofv3, rpd
from collectors.device.rocm.names import call_kind, copy_name, operation_kind
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.rocm_files import BOOT, Process, everything, rocpd_bytes, write_rocpd
from tests.collectors.rocprofv3_files import RCCL_CALLS, Tool, whole_tool
from tests.collectors.rpd_files import chrome, rpd_bytes, whole_rpd

FILES = {
    "rocpd": (rocpd, lambda: rocpd_bytes(), "908_results.db"),
    "rocpd with times apart": (rocpd, lambda: rocpd_bytes(shared=True), "908_results.db"),
    "rpd": (rpd, rpd_bytes, "trace.rpd"),
    "rpd as JSON": (rpd, lambda: chrome(whole_rpd()).encode(), "trace.json"),
    "rocprofv3": (rocprofv3, lambda: whole_tool().text().encode(), "908_results.json"),
}
each_file = pytest.mark.parametrize("what", FILES)


@pytest.fixture
def got(tmp_path):
    def reading(*processes: Process, also=()):
        path = write_rocpd(tmp_path / "made_results.db", *processes, also=also)
        return read(rocpd, Source(path, path.name))

    return reading


def ops(result, **where):
    return [o for o in result.rows["ops"] if all(o[k] == v for k, v in where.items())]


def launched(result):
    """(what was executed, the call's name) of each row of `launches`."""
    names = {o["op_id"]: o["op"] for o in result.rows["ops"]}
    kernels = {s["op_id"]: s["text_value"] for s in result.rows.get("op_stats", []) if s["name"] == "kernel"}
    of = {e["event"]: kernels.get(e["op_id"], names[e["op_id"]]) for e in result.rows["op_events"]}
    return [(of[r["event"]], r["call"]) for r in result.rows.get("launches", [])]


@pytest.mark.parametrize("environment", ["", "[1]", "{", "[" * 100_000, None, '{"AMD_SERIALIZE_KERNEL": 3}'])
def test_an_environment_that_is_none_tells_nothing(got, environment):
    process = everything()
    process.rows["info_process"][0]["environment"] = environment
    assert "settings" not in got(process).rows


def test_of_an_environment_settings_that_cost_are_kept_alone(got):
    process = everything()
    told = {"HF_TOKEN": "hunter2", "AMD_SERIALIZE_KERNEL": "3", "XLA_FLAGS": "--xla_dump_to=/x --a=hunter2"}
    process.rows["info_process"][0]["environment"] = json.dumps(told)
    result = got(process)
    assert [(r["host"], r["name"], r["value"], r["line"]) for r in result.rows["settings"]] == [
        ("node-7", "AMD_SERIALIZE_KERNEL", "3", None),
        ("node-7", "xla_dump_to", "(set)", None),
    ]
    assert "hunter2" not in str(result)


@each_file
def test_each_is_known_by_its_content_alone(tmp_path, what):
    collector, made, _ = FILES[what]
    for data in (made(), gzip.compress(made())):
        scores = {c.NAME: c.sniff(source_of(tmp_path, data, "anything")) for c in COLLECTORS}
        assert max(scores, key=scores.__getitem__) == collector.NAME and scores[collector.NAME] > 0.9


@each_file
def test_steps_work_and_launches_of_each(tmp_path, what):
    collector, made, name = FILES[what]
    result = read(collector, source_of(tmp_path, made(), name))
    assert [(s["step"], s["start_ns"], s["dur_ns"]) for s in result.rows["steps"]] == [
        (7, BOOT + 1_000_000, 900_000),
        (8, BOOT + 2_000_000, 900_000),
    ]
    (gemm,) = ops(result, role="compute", category="matmul")
    assert (gemm["count"], gemm["total_ns"]) == (2, 140_000)
    (copy,) = ops(result, op="Memcpy HtoD")
    assert (copy["category"], copy["count"], copy["total_ns"]) == ("copy", 2, 2_000)
    if what != "rpd as JSON":
        assert [s["int_value"] for s in result.rows["event_stats"]].count(1 << 20) == 2
        assert ("Memcpy HtoD", "hipMemcpyAsync") in launched(result)
    assert "the time of day" in result.reasons()
    (capture,) = result.rows["captures"]
    assert capture["start_ns"] in (BOOT + 1_000_000, BOOT + 500_000)


@pytest.mark.parametrize("what", ["rocpd", "rocpd with times apart", "rocprofv3"])
def test_what_rocprofv3_tells_in_any_of_its_files(tmp_path, what):
    collector, made, name = FILES[what]
    result = read(collector, source_of(tmp_path, made(), name))
    assert result.facts["chip"] == "AMD Instinct MI300X" and result.facts["chips"] == 1
    assert {o["host"] for o in result.rows["ops"]} == {"node-7/908_results"}
    assert {o["line"] for o in ops(result, role="compute", category="elementwise")} == {"stream 4, queue 17"}
    (gemm,) = ops(result, role="compute", category="matmul")
    assert (gemm["module"], gemm["device"]) == ("attention", 0)
    assert [(c["kind"], c["step"]) for c in result.rows["collectives"]] == [("all-reduce", 7), ("all-reduce", 8)]
    assert any("python3" in line for line in {o["line"] for o in ops(result, role="host")})
    assert "loss is finite" in {o["op"] for o in ops(result, role="host")}


def test_both_layouts_of_rocpd_tell_the_same(tmp_path):
    one, other = (read(rocpd, source_of(tmp_path, rocpd_bytes(shared=s), "908_results.db")) for s in (False, True))
    assert one.rows == other.rows and one.facts == other.facts


def test_every_row_is_an_event_or_told(tmp_path):
    made = everything()
    path = write_rocpd(tmp_path / "made.db", made)
    result = read(rocpd, Source(path, path.name))
    timed = ("kernel_dispatch", "memory_copy", "memory_allocate", "region", "sample")
    assert len(result.rows["op_events"]) == sum(len(made.rows[t]) for t in timed)
    assert "1 arguments of calls" in result.reasons() and "1 values of counters" in result.reasons()
    rows = whole_rpd().rows
    result = read(rpd, source_of(tmp_path, rpd_bytes(), "made.rpd"))
    assert len(result.rows["op_events"]) == len(rows["rocpd_op"]) + len(rows["rocpd_api"])
    assert "1 rows of ext_callstack" in result.reasons() and len(result.rows["scalars"]) == 1
    records = whole_tool().records
    result = read(rocprofv3, source_of(tmp_path, whole_tool().text(), "made.json"))
    assert len(result.rows["op_events"]) == sum(map(len, records.values())) - 1
    assert "1 records of counter_collection: they tell no time" in result.reasons()


def test_a_table_that_nobody_knows_is_told(got):
    also = [
        "CREATE TABLE rocpd_gpu_pc_sample_00ab (id INTEGER)",
        "INSERT INTO rocpd_gpu_pc_sample_00ab VALUES (1), (2)",
    ]
    assert "2 rows of rocpd_gpu_pc_sample_00ab: this table is not known" in got(everything(), also=also).reasons()


def test_sums_are_those_of_the_file(got):
    made = Process()
    for n in range(2):
        made.agent(2 + n, index=n)
    for n in range(40):
        made.ran(f"kernel{n % 3}", BOOT + 1000 * n, 10 + n, n + 1, agent=2 + n % 2)
    result = got(made)
    by_device = Counter()
    for op in ops(result, role="compute"):
        by_device[op["device"]] += op["total_ns"]
    assert by_device == {0: sum(10 + n for n in range(0, 40, 2)), 1: sum(10 + n for n in range(1, 40, 2))}
    assert sorted(launched(result)) == sorted((f"kernel{n % 3}", "hipLaunchKernel") for n in range(40))


def test_two_processes_of_a_host_count_calls_for_themselves(got):
    """Each rank of a host numbers its calls from 1; a device is the same one for both."""
    a, b = Process(10, host="n"), Process(11, "11113f2a-1b2c-7d3e-8f40-112233445566", host="n")
    a.agent(2)
    b.agent(2)
    b.agent(3, index=1)
    a.ran("a", BOOT + 1_000, 10, 1)
    b.ran("b", BOOT + 2_000, 10, 1, agent=3).ran("c", BOOT + 3_000, 10, 2)
    result = got(a, b)
    assert sorted(launched(result)) == [(n, "hipLaunchKernel") for n in "abc"]
    assert {o["op"]: o["device"] for o in ops(result, role="compute")} == {"a": 0, "b": 1, "c": 0}
    lines = {row["line"] for row in result.rows["launches"]}
    assert len(lines) == 2 and all("python3.11" in line for line in lines)


def test_two_devices_that_are_each_the_first_of_their_process_are_two(got):
    a, b = Process(10, host="n"), Process(11, "11113f2a-1b2c-7d3e-8f40-112233445566", host="n")
    a.agent(2)
    b.agent(3)
    a.ran("a", BOOT + 1_000, 10, 1)
    b.ran("b", BOOT + 2_000, 10, 1, agent=3)
    result = got(a, b)
    assert {o["op"]: o["device"] for o in ops(result, role="compute")} == {"a": 0, "b": 1}


def test_rows_that_number_processes_threads_and_agents_for_themselves(got):
    """Where a row's number is not that of the process, thread or agent, the column beside it is."""
    made = everything(shared=True)
    of = got(made)
    news = {"pid": {made.pid: 1}, "tid": {made.pid: 5, 77: 6}, "agent_id": {0: 51, 2: 52, 3: 53}}
    for table, rows in made.rows.items():
        for row in rows:
            for column in ("pid", "tid", "agent_id", "dst_agent_id", "src_agent_id"):
                known = news["agent_id" if "agent" in column else column]
                if not table.startswith("info_") and row.get(column) in known:
                    row[column] = known[row[column]]
            for of_table, known in (("process", "pid"), ("thread", "tid"), ("agent", "agent_id")):
                if table == f"info_{of_table}":
                    row["id"] = news[known][row["id"]]
    assert got(made).rows == of.rows


def test_processes_of_another_host_are_counted_and_not_mixed_in(got):
    """Each host counts from its own start: their events cannot stand in one capture."""
    other = everything(pid=909, guid="11113f2a-1b2c-7d3e-8f40-112233445566", host="node-8")
    result = got(everything(), other)
    assert result.rows == got(everything()).rows
    assert "26 rows of host node-8: its clock began at another time than that of node-7" in result.reasons()


def test_a_call_of_hsa_within_one_of_hip_launched_for_it(got):
    made = Process()
    made.agent(2)
    made.call("hipLaunchKernel", BOOT + 100, 100, 1)
    made.call("hsa_signal_store_screlease", BOOT + 120, 5, 2, "HSA_CORE_API", parent=1)
    made.kernel("k", BOOT + 300, 10, 2)
    made.call("hsa_amd_memory_fill", BOOT + 400, 5, 3, "HSA_AMD_EXT_API").kernel("fill", BOOT + 500, 10, 3)
    assert sorted(launched(got(made))) == [("fill", "hsa_amd_memory_fill"), ("k", "hipLaunchKernel")]


@pytest.mark.parametrize("what", ["rocpd", "rocprofv3"])
def test_the_end_of_a_group_launches_for_its_one_call(got, tmp_path, what):
    """RCCL's kernels do not tell what they do, and PyTorch makes each call in a group."""
    kernel, groups = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", (["ncclAllGather"], ["ncclSend"] * 2)
    tool, made = Tool(), Process()
    made.agent(2)
    for n, calls in enumerate(groups):
        at = BOOT + 10_000 * n
        for k, call in enumerate(["ncclGroupStart", "ncclCommCount", *calls, "ncclGroupEnd"]):
            dur = 500 if call == "ncclGroupEnd" else 20
            made.call(call, at + 100 * k, dur, 100 * n + k + 1, "RCCL_API")
            tool.record("rccl_api", "RCCL_API", RCCL_CALLS.index(call), at + 100 * k, dur, 100 * n + k + 1)
        launched_at = at + 100 * (len(calls) + 2) + 50
        made.ran(kernel, launched_at + 50, 300, 100 * n + 90)
        tool.ran(kernel, launched_at + 50, 300, 100 * n + 90)
    result = got(made) if what == "rocpd" else read(rocprofv3, source_of(tmp_path, tool.text(), "made.json"))
    assert [c["kind"] for c in result.rows["collectives"]] == ["all-gather", None]
    assert len(result.rows["op_events"]) == 9 + 4


def test_copies_are_of_the_device_that_receives_or_sends(got):
    made = Process()
    made.agent(0, "CPU")
    made.agent(2)
    made.agent(3, index=1)
    made.copy("MEMORY_COPY_DEVICE_TO_HOST", BOOT + 10, 5, to=0, of=3)
    made.copy("MEMORY_COPY_DEVICE_TO_DEVICE", BOOT + 20, 7, to=2, of=3)
    made.copy("MEMORY_COPY_HOST_TO_HOST", BOOT + 30, 9, to=0, of=0)
    found = {o["op"]: (o["device"], o["role"]) for o in got(made).rows["ops"]}
    assert found == {
        "Memcpy DtoH": (1, "compute"),
        "Memcpy DtoD": (0, "compute"),
        "Memcpy HtoH": (None, "other"),
    }


def test_a_graph_owns_all_that_it_launched(tmp_path):
    result = read(rpd, source_of(tmp_path, rpd_bytes(), "trace.rpd"))
    assert Counter(call for _, call in launched(result)) == {
        "hipLaunchKernel": 2,
        "hipMemcpyAsync": 2,
        "hipGraphLaunch": 6,
    }
    assert sum(row["graph"] for row in result.rows["launches"]) == 6
    (mm,) = ops(result, op="aten::mm", role="compute")
    assert mm["shape"] == "[8,4], [4,2]"
    (sample,) = result.rows["scalars"]
    assert (sample["name"], sample["value"], sample["unit"], sample["ts_ns"]) == (
        "gpu 2 sclk",
        1700.0,
        "MHz",
        BOOT + 900_000,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_what_rpd2tracing_makes_of_it_tells_the_same_but_launches(tmp_path, whole):
    """Its spans around operations are made for a viewer, and no work of a device."""
    source = source_of(tmp_path, chrome(whole_rpd(), whole), "trace.json")
    assert {c.NAME: s for c in COLLECTORS if (s := c.sniff(source)) >= 0.5} == {"rpd": 0.97}
    made = read(rpd, source)
    of = read(rpd, source_of(tmp_path, rpd_bytes(), "trace.rpd"))

    def work(result):
        found = Counter()
        for op in ops(result, role="compute"):
            kernels = {s["text_value"] for s in result.rows.get("op_stats", []) if s["op_id"] == op["op_id"]}
            launched_as = next((k for k in kernels if k.startswith("Cijk")), op["op"])
            found[op["device"], op["line"], launched_as, op["count"], op["total_ns"]] += 1
        return found

    assert work(made) == work(of)
    assert [(s["step"], s["start_ns"], s["dur_ns"]) for s in made.rows["steps"]] == [
        (s["step"], s["start_ns"], s["dur_ns"]) for s in of.rows["steps"]
    ]
    assert "launches" not in made.rows and "2 arrows: they name no call" in made.reasons()
    assert "1 values of counters" in made.reasons() and "fractions of a microsecond" in made.reasons()
    assert {o["op"] for o in ops(made, category="annotation", device=2)} == {"Graph 7", "attention"}


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("HIP_RUNTIME_API_EXT", "hipLaunchKernel", "hip_runtime"),
        ("HIP_COMPILER_API", "__hipPushCallConfiguration", "hip_runtime"),
        ("HSA_CORE_API", "hsa_queue_create", "hip_runtime"),
        ("MARKER_CORE_RANGE_API", "roctxThreadRangeA", "nvtx"),
        ("MARKER_CORE_API", "roctxRangePushA", "nvtx"),
        ("RCCL_API", "ncclGroupEnd", "user_annotation"),
        ("rocm_hip_api", "hipFree", "hip_runtime"),
        ("user", "my region", "nvtx"),
        ("OMPT", "omp_parallel", "rocm"),
        ("", "hipFree", "hip_runtime"),
        ("", "cudaMalloc", "hip_runtime"),
        ("", "hippo", "rocm"),
        ("", "OpTable::writeRows", "overhead"),
        ("", "ncclAllReduce", "user_annotation"),
    ],
)
def test_what_a_call_is(category, name, kind):
    assert call_kind(category, name) == kind


def test_what_operations_are():
    assert copy_name("MEMORY_COPY_HOST_TO_DEVICE") == copy_name("CopyHostToDevice") == "Memcpy HtoD"
    assert copy_name("CopyDeviceToDevice2D") == "Memcpy DtoD" and copy_name("MEMORY_COPY_NONE") == "Memcpy"
    assert copy_name("FillBuffer") == "FillBuffer"
    kinds = ("KernelExecution", "Task", "CopyDeviceToHost", "FillBuffer", "Barrier", "Marker")
    assert [operation_kind(k) for k in kinds] == [
        "kernel",
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        "cuda_sync",
        "cuda_sync",
    ]


def test_a_device_that_the_catalogue_does_not_name_is_known_by_what_it_shows(got):
    made = Process()
    made.agent(2, product="")
    made.ran("k", BOOT + 100, 10, 1)
    assert got(made).facts["chip"] == "MI300X"


def test_without_names_kernels_and_calls_are_still_told_apart(got):
    made = everything()
    made.rows["string"], made.rows["info_kernel_symbol"] = [], []
    result = got(made)
    assert {o["op"] for o in ops(result, role="compute")} >= {"kernel 1", "kernel 2", "kernel 3"}
    assert "range of no name" not in {o["op"] for o in ops(result, role="compute")}


def test_json_of_several_processes(tmp_path):
    a, b = Tool(10), Tool(11)
    a.ran("a", BOOT + 100, 10, 1)
    b.ran("b", BOOT + 200, 10, 1, agent=37_947)
    whole = json.dumps({"rocprofiler-sdk-tool": [a.told(), b.told()]})
    result = read(rocprofv3, source_of(tmp_path, whole, "made.json"))
    assert sorted(launched(result)) == [("a", "hipLaunchKernel"), ("b", "hipLaunchKernel")]
    assert {o["op"]: o["device"] for o in ops(result, role="compute")} == {"a": 0, "b": 1}


@pytest.mark.parametrize("name", ["job.pftrace", "job.otf2", "job.pftrace.gz"])
def test_files_for_other_viewers_are_refused_by_name(tmp_path, name):
    data = b"\n\x0e\x08\x01\x00" * 10
    source = source_of(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
    assert rocprofv3.sniff(source) > 0.8
    with pytest.raises(InputError, match="rocprofv3 --output-format rocpd"):
        read(rocprofv3, source)

"""The XPlane reader against protobuf and JAX's own reader, on made and on real CPU traces."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.device.xplane import batches, reader, state
from tests.collectors.traces import START_NS, PlaneBuilder, XSpace, environment, got

MS = 1_000_000  # ns
INT64 = 1 << 63


# --- every event and stat, against protobuf ---------------------------------------------------------------------------

ids = st.integers(0, 12) | st.sampled_from([-1, -INT64, INT64 - 1, 1 << 21, 5_000_000])
stat_values = st.one_of(
    st.tuples(st.just("int64_value"), st.integers(-INT64, INT64 - 1)),
    st.tuples(st.just("uint64_value"), st.integers(0, 2 * INT64 - 1)),
    st.tuples(st.just("double_value"), st.floats(allow_nan=False)),
    st.tuples(st.just("str_value"), st.text(max_size=12).map(str.encode)),
    st.tuples(st.just("bytes_value"), st.binary(max_size=12)),
    st.tuples(st.just("ref_value"), st.integers(0, 12)),
    st.just((None, None)),
)
stats = st.lists(st.tuples(ids, stat_values), max_size=5)
events = st.lists(st.tuples(ids, st.integers(-(10**12), 10**15), st.integers(0, 10**14), stats), max_size=12)
lines = st.lists(st.tuples(st.sampled_from([0, 777, START_NS + 5]), events), max_size=3)
names = st.dictionaries(ids, st.text(max_size=10).map(str.encode), max_size=10)
planes = st.lists(
    st.tuples(st.sampled_from(["/host:CPU", "/device:TPU:0", "/device:CUSTOM:1", "odd"]), lines, names, names),
    max_size=3,
)


def build(spec):
    space = XSpace()
    for n, (name, its_lines, event_names, stat_names) in enumerate(spec):
        plane = space.planes.add(name=name.encode())
        for m, (stamp, its_events) in enumerate(its_lines):
            line = plane.lines.add(name=f"{n}.{m}".encode(), timestamp_ns=stamp)
            for key, start, dur, its_stats in its_events:
                event = line.events.add(metadata_id=key, offset_ps=start, duration_ps=dur)
                for stat_key, (kind, value) in its_stats:
                    stat = event.stats.add(metadata_id=stat_key)
                    if kind:
                        setattr(stat, kind, value)
        for key, value in event_names.items():
            plane.event_metadata.add(key=key).value.name = value
        for key, value in stat_names.items():
            plane.stat_metadata.add(key=key).value.name = value
    environment(space)
    return space


def expected(space):
    """(line, name, start ps, duration ps, stats) of each event, hosts before devices, computed from the message."""
    rows = []
    for plane in sorted(space.planes, key=lambda p: p.name.startswith(b"/device:")):
        event_names = {e.key or e.value.id: e.value.name.decode() for e in plane.event_metadata}
        stat_names = {s.key or s.value.id: s.value.name.decode() for s in plane.stat_metadata}
        for line in plane.lines:
            shift = (line.timestamp_ns - START_NS if line.timestamp_ns >= START_NS else line.timestamp_ns) * 1000
            for event in line.events:
                found = []
                for stat in event.stats:
                    whole = real = words = None
                    if stat.HasField("int64_value"):
                        whole = stat.int64_value
                    elif stat.HasField("uint64_value"):
                        whole = stat.uint64_value - (2 * INT64 if stat.uint64_value >= INT64 else 0)
                    elif stat.HasField("double_value"):
                        real = stat.double_value
                    elif stat.HasField("str_value"):
                        words = stat.str_value.decode()
                    elif stat.HasField("bytes_value"):
                        words = stat.bytes_value.hex()
                    elif stat.HasField("ref_value"):
                        words = stat_names.get(stat.ref_value)
                    found.append((stat_names.get(stat.metadata_id), whole, real, words))
                name = event_names.get(event.metadata_id) or None
                rows.append((line.name.decode(), name, event.offset_ps + shift, event.duration_ps, found))
    return rows


@pytest.fixture(params=["usual", "tiny"])
def buffers(request, monkeypatch):
    """The buffers at their usual size, and so small that every batch, table and window runs over."""
    if request.param == "tiny":
        monkeypatch.setattr(batches, "EVENT_ROWS", 5)
        monkeypatch.setattr(batches, "STAT_ROWS", 7)
        monkeypatch.setattr(batches, "_MARK_ROWS", 2)
        monkeypatch.setattr(batches, "_INLINE_ROWS", 8)
        monkeypatch.setattr(batches, "_ARENA", 70)
        monkeypatch.setattr(state, "OP_ROWS", 2)
        monkeypatch.setattr(reader, "_LINES_WINDOW", 64)
        monkeypatch.setattr(reader, "_NOTES_WINDOW", 64)
        monkeypatch.setattr(reader, "_MAX_TEXTS", 3)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(planes)
def test_every_event_and_stat_is_read(buffers, tmp_path_factory, spec):
    space = build(spec)
    read = got(tmp_path_factory.getbasetemp(), space.SerializeToString(), index=3)
    assert [(e["line"], e["op"], e["start_ps"], e["dur_ps"], e["stats"]) for e in read.events()] == expected(space)
    # Events far out of order cost the self times their exactness, which is said.
    assert all(lost.what.startswith("exact self times") for lost in read.lost)
    assert {r["capture"] for t in ("ops", "op_events", "event_stats") for r in read.rows[t]} <= {3}
    assert [e["event"] for e in read.rows["op_events"]] == list(range(len(read.rows["op_events"])))
    for op in read.rows["ops"]:
        durations = [e["dur_ps"] for e in read.rows["op_events"] if e["op_id"] == op["op_id"]]
        assert op["count"] == len(durations)
        assert op["total_ns"] == pytest.approx(sum(durations) / 1000)
        assert -1e-3 <= op["self_ns"] <= op["total_ns"] * (1 + 1e-9) + 1e-3
    assert len({o["op_id"] for o in read.rows["ops"]}) == len(read.rows["ops"])


def test_stats_of_metadata_become_op_stats(tmp_path):
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0")
    plane.metadata("op", whole=-4, big=2**63 + 1, real=0.5, word="text", raw=b"\x01\xff")
    plane.line("XLA Ops", [("op", 0, 10)]).line("more", [("op", 0, 10)])
    read = got(tmp_path, space.SerializeToString())
    for op_id in (0, 1):
        found = {
            s["name"]: (s["int_value"], s["float_value"], s["text_value"])
            for s in read.rows["op_stats"]
            if s["op_id"] == op_id
        }
        assert found == {
            "whole": (-4, None, None),
            "big": (1 - 2**63, None, None),
            "real": (None, 0.5, None),
            "word": (None, None, "text"),
            "raw": (None, None, "01ff"),
        }


def test_time_of_an_operation_without_those_nested_in_it(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:0").line(
        "XLA Ops",
        [
            ("while", 0, 100),
            ("a", 0, 30),
            ("a", 40, 50),
            ("b", 50, 10),
            ("b", 55, 3),
            ("late", 95, 20),
            ("after", 200, 7),
        ],
    ).line("Async XLA Ops", [("copy-start.1", 0, 100), ("copy-start.2", 10, 20)])
    own = {o["op"]: o["self_ns"] for o in got(tmp_path, space.SerializeToString()).rows["ops"]}
    assert own == {"while": 15, "a": 70, "b": 10, "late": 20, "after": 7, "copy-start.1": 100, "copy-start.2": 20}


def test_events_out_of_order_still_nest(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("python", [("inner", 10, 20), ("outer", 0, 100), ("last", 90, 5)])
    own = {o["op"]: o["self_ns"] for o in got(tmp_path, space.SerializeToString()).rows["ops"]}
    assert own == {"inner": 20, "outer": 75, "last": 5}


# --- clock and capture ------------------------------------------------------------------------------------------------


def test_lines_may_count_from_the_epoch_or_from_the_start(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("a", [("x", 5, 1)], 1_000).line("b", [("y", 5, 1)], START_NS + 2_000)
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [e["start_ps"] for e in read.events()] == [1_005_000, 2_005_000]
    assert read.rows["captures"][0] | {"start_ns": START_NS, "stop_ns": START_NS + 10**9} == read.rows["captures"][0]


def test_a_trace_without_its_start_counts_from_its_first_line(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("a", [("x", 5, 1)], START_NS + 9).line("b", [("y", 0, 7)], START_NS + 2)
    read = got(tmp_path, space.SerializeToString())
    assert read.rows["captures"][0]["start_ns"] == START_NS + 2
    assert read.rows["captures"][0]["stop_ns"] == START_NS + 9 + 6
    assert [e["start_ps"] for e in read.events()] == [12_000, 0]
    assert [lost.what for lost in read.lost] == ["the start of the profile"]


def test_a_line_whose_clock_fits_nothing_is_named(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("far", [("x", 0, 1)], 5 * 10**16).line("near", [("y", 0, 1)], 3)
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [e["op"] for e in read.events()] == ["y"]
    assert "'far'" in read.lost[0].what and "timestamp" in read.lost[0].reason


@pytest.mark.parametrize(
    ("path", "host", "process"),
    [
        ("node.xplane.pb", "node", None),
        ("logs/process_3/plugins/profile/x/node.xplane.pb", "node/3", 3),
        ("rank-12/node.xplane.pb.gz", "node/12", 12),
    ],
)
def test_processes_that_share_a_host_are_told_apart(tmp_path, path, host, process):
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("python", [("x", 0, 1)])
    environment(space)
    row = got(tmp_path, space.SerializeToString(), path).rows["captures"][0]
    assert (row["host"], row["process"]) == (host, process)


def test_cpu_devices_of_a_later_process_know_their_process_and_rank(tmp_path):
    space = XSpace(hostnames=[b"vm"])
    of = {"hlo_op": "all-reduce.1", "hlo_module": "jit_f"}
    PlaneBuilder(space, "/host:CPU").line(
        "tf_XLAEigen/1",
        [
            ("all-reduce.1", 0, 10, of | {"device_ordinal": 3 * 2048}),
            ("all-reduce.1", 5, 0, of | {"device_ordinal": 3 * 2048}),
            ("all-reduce.1", 2, 10, of | {"device_ordinal": 3 * 2048 + 1}),
            ("end: all-reduce.1", 12, 1),
        ],
    )
    read = got(tmp_path, space.SerializeToString())
    assert read.rows["captures"][0] | {"host": "vm/3", "process": 3, "devices": 2} == read.rows["captures"][0]
    assert [(o["device"], o["role"], o["category"]) for o in read.rows["ops"]] == [
        (0, "compute", "collective"),
        (1, "compute", "collective"),
        (None, "host", "host"),
    ]


# --- TPU --------------------------------------------------------------------------------------------------------------

_ALL_REDUCE = "%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1},{2,3}}, to_apply=%add"
_START = "%all-gather-start.1 = (bf16[4], bf16[16]) all-gather-start(bf16[4]{0} %y), replica_groups=[1,4]<=[4]"
_DONE = "%all-gather-done.1 = bf16[16]{0} all-gather-done((bf16[4], bf16[16]) %all-gather-start.1)"


def tpu(space, core: int = 2, **more) -> PlaneBuilder:
    plane = PlaneBuilder(space, "/device:TPU:0").stats(
        device_type_string="TPU v5",
        peak_teraflops_per_second=459.0,
        peak_hbm_bw_gigabytes_per_second=2765.0,
        core_details=bytes([0x28, core, 0x30, core]),
        **more,
    )
    plane.metadata(
        "%fusion.7 = bf16[8,8]{1,0} fusion(...)",
        hlo_category="convolution fusion",
        flops=1024,
        bytes_accessed=384,
        source="model.py:12",
        shape_with_layout="bf16[8,8]{1,0}",
        program_id=9,
    )
    plane.metadata("%while.1 = (s32[]) while(...)", hlo_category="while", flops=5, bytes_accessed=7, program_id=9)
    return plane


def test_tpu_operations_take_their_cost_from_metadata(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Modules", [("jit_step(9)", 0, 100)]).line(
        "XLA Ops",
        [
            ("%while.1 = (s32[]) while(...)", 0, 90),
            ("%fusion.7 = bf16[8,8]{1,0} fusion(...)", 5, 40),
        ],
    )
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    (fusion,) = read.ops(op="fusion.7")
    assert (
        fusion
        | {
            "device": 0,
            "role": "compute",
            "category": "matmul",
            "flops": 1024,
            "bytes": 384,
            "source": "model.py:12",
            "shape": "bf16[8,8]{1,0}",
            "program": 9,
            "count": 1,
            "total_ns": 40,
        }
        == fusion
    )
    (loop,) = read.ops(op="while.1")
    assert (loop["category"], loop["flops"], loop["bytes"], loop["self_ns"]) == ("control", None, None, 50)
    (run,) = read.ops(line="XLA Modules")
    assert (run["role"], run["module"], run["program"]) == ("module", "jit_step", 9)
    capture = read.rows["captures"][0]
    assert (
        capture | {"devices": 1, "device_type": "TPU v5", "peak_flops_per_s": 459e12, "peak_hbm_bytes_per_s": 2765e9}
        == capture
    )
    assert read.facts | {"chip": "TPU v5", "chips": 1, "peak_flops_per_s": 459e12} == read.facts
    assert not read.lost


def test_tpu_steps_and_collectives(tmp_path):
    space = XSpace()
    tpu(space).line("Steps", [("40", 0, 500), ("41", 500, 400)]).line(
        "XLA Ops",
        [
            (_ALL_REDUCE, 100, 30),
            (_START, 200, 2),
            (_DONE, 250, 10),
            (_ALL_REDUCE, 600, 31),
            (_START, 700, 2),
            (_DONE, 702, 60),
        ],
    )
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [(s["step"], s["start_ns"] - START_NS, s["dur_ns"]) for s in read.rows["steps"]] == [
        (40, 0, 500),
        (41, 500, 400),
    ]
    rows = [
        (
            c["op"],
            c["kind"],
            c["bytes"],
            c["dtype"],
            c["group"],
            c["rank"],
            c["seq"],
            c["step"],
            c["start_ns"] - START_NS,
            c["end_ns"] - START_NS,
        )
        for c in read.rows["collectives"]
    ]
    assert rows == [
        ("all-gather-start.1", "all-gather", 8.0, "bf16", "0,1,2,3", 2, 0, 40, 200, 260),
        ("all-gather-start.1", "all-gather", 8.0, "bf16", "0,1,2,3", 2, 1, 41, 700, 762),
        # Without the program nobody knows on which devices its partitions 2 and 3 run.
        ("all-reduce.3", "all-reduce", 32.0, "f32", "?,?", 2, 0, 40, 100, 130),
        ("all-reduce.3", "all-reduce", 32.0, "f32", "?,?", 2, 1, 41, 600, 631),
    ]


def test_the_line_of_asynchronous_operations_wins_over_start_and_done(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Ops", [(_START, 200, 2), (_DONE, 250, 10)]).line("Async XLA Ops", [(_START, 200, 58)])
    environment(space)
    (row,) = got(tmp_path, space.SerializeToString()).rows["collectives"]
    assert (row["start_ns"] - START_NS, row["end_ns"] - START_NS) == (200, 258)


def test_program_runs_without_operations_are_named(tmp_path):
    space = XSpace()
    tpu(space).line("XLA Modules", [("jit_f(9)", i * 1000, 900) for i in range(10)]).line(
        "XLA Ops", [("fusion", i * 1000 + 10, 800) for i in range(4)]
    )
    environment(space)
    (lost,) = got(tmp_path, space.SerializeToString()).lost
    assert "6 of 10 program runs" in lost.reason


# --- GPU --------------------------------------------------------------------------------------------------------------


def test_gpu_kernels_copies_and_nccl(tmp_path):
    space = XSpace()
    of = {"hlo_op": "all-reduce-start.1", "hlo_module": "jit_f", "program_id": 4}
    plane = PlaneBuilder(space, "/device:GPU:1").stats(
        device_vendor="Nvidia",
        compute_cap_major=9,
        compute_cap_minor=0,
        core_count=132,
        memory_size=85 * 10**9,
        memory_bandwidth=3_352_320_000_000,
    )
    plane.line(
        "Stream #14(Compute)",
        [
            ("gemm_kernel", 0, 50, {"hlo_op": "cublas-gemm.2", "hlo_module": "jit_f", "program_id": 4}),
            ("splitk_reduce", 50, 5, {"hlo_op": "cublas-gemm.2", "hlo_module": "jit_f", "program_id": 4}),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 60, 40, of),
        ],
    ).line("Stream #20(MemcpyD2H)", [("MemcpyD2H", 10, 20)]).line("XLA Ops", [("cublas-gemm.2", 0, 55)])
    PlaneBuilder(space, "/host:CPU").line("python", [("launch", 0, 1, of)])
    environment(space)
    read = got(tmp_path, space.SerializeToString())
    assert [(o["op"], o["line"], o["role"], o["device"], o["module"]) for o in read.rows["ops"]] == [
        ("launch", "python", "host", None, None),
        ("cublas-gemm.2", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("cublas-gemm.2", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("all-reduce-start.1", "Stream #14(Compute)", "compute", 1, "jit_f"),
        ("MemcpyD2H", "Stream #20(MemcpyD2H)", "compute", 1, None),
        ("cublas-gemm.2", "XLA Ops", "other", 1, None),
    ]
    assert [o["category"] for o in read.rows["ops"][3:5]] == ["collective", "copy"]
    kernels = {s["text_value"] for s in read.rows["op_stats"] if s["name"] == "kernel"}
    assert {"gemm_kernel", "splitk_reduce"} <= kernels
    (row,) = read.rows["collectives"]
    assert (row["kind"], row["device"], row["end_ns"] - row["start_ns"]) == ("all-reduce", 1, 40)
    assert read.rows["captures"][0]["device_type"] == "H100 SXM or H800 SXM" == read.facts["chip"]


@pytest.mark.parametrize(
    ("parts", "memory", "bandwidth", "name"),
    [
        ((8, 0, 108), 42.5e9, 1555e9, "A100 SXM 40GB or A100 PCIe 40GB"),
        ((8, 0, 108), 84.9e9, 2039e9, "A100 SXM 80GB"),
        ((8, 0, 108), 84.9e9, 1935e9, "A100 PCIe 80GB"),
        ((8, 0, 108), 84.9e9, None, "A100 SXM 80GB or A100 PCIe 80GB"),
        ((9, 0, 132), 85.0e9, 3352e9, "H100 SXM or H800 SXM"),
        ((9, 0, 132), 101.5e9, 4023e9, "Nvidia GPU, compute capability 9.0, 132 cores"),
        ((9, 0, 132), 150.1e9, 4917e9, "H200"),
        ((10, 0, 148), 191.5e9, 8000e9, "B200"),
        ((10, 0, 152), 198.0e9, 8000e9, "GB200"),
    ],
)
def test_a_gpu_is_told_from_its_namesakes_or_is_one_of_two(tmp_path, parts, memory, bandwidth, name):
    space = XSpace()
    major, minor, cores = parts
    told = {} if bandwidth is None else {"memory_bandwidth": int(bandwidth)}
    plane = PlaneBuilder(space, "/device:GPU:0").stats(
        device_vendor="Nvidia",
        compute_cap_major=major,
        compute_cap_minor=minor,
        core_count=cores,
        memory_size=int(memory),
        **told,
    )
    plane.line("Stream #14(Compute)", [("kernel", 0, 50, {"hlo_op": "a.1", "hlo_module": "jit_f", "program_id": 4})])
    environment(space)
    assert got(tmp_path, space.SerializeToString()).facts["chip"] == name


def test_gpu_kernels_that_name_no_hlo_operation_are_pointed_out(tmp_path):
    space = XSpace()
    PlaneBuilder(space, "/device:GPU:0").line("Stream #1(Kernel)", [("graph_kernel", 0, 5)])
    environment(space)
    assert "xla_gpu_enable_command_buffer" in got(tmp_path, space.SerializeToString()).lost[-1].reason


# --- host -------------------------------------------------------------------------------------------------------------


def test_steps_waits_and_memory_of_the_host(tmp_path):
    space = XSpace()
    memory = {"bytes_allocated": 500, "peak_bytes_in_use": 900, "allocator_name": "GPU_2_bfc"}
    PlaneBuilder(space, "/host:CPU").line(
        "python",
        [
            ("train", 0, 100, {"step_num": 7, "_r": 1}),
            ("data_loading", 10, 20),
            ("train", 100, 90, {"step_num": 8, "_r": 1}),
            ("not a step", 100, 90, {"step_num": 8}),
            ("MemoryAllocation", 120, 0, memory),
        ],
    )
    environment(space)
    read = got(tmp_path, space.SerializeToString(), "h.xplane.pb")
    assert [(s["step"], s["host"], s["start_ns"] - START_NS, s["dur_ns"], s["source"]) for s in read.rows["steps"]] == [
        (7, "h", 0, 100, "xplane"),
        (8, "h", 100, 90, "xplane"),
    ]
    (wait,) = read.rows["lifecycle"]
    assert (wait["kind"], wait["start_ns"] - START_NS, wait["end_ns"] - START_NS) == ("data_loading", 10, 30)
    assert {(m["kind"], m["bytes"], m["device"], m["name"]) for m in read.rows["memory"]} == {
        ("bytes_in_use", 500, 2, "GPU_2_bfc"),
        ("peak_bytes_in_use", 900, 2, "GPU_2_bfc"),
    }
    assert {o["op"]: o["category"] for o in read.rows["ops"]} == {
        "train": "annotation",
        "data_loading": "annotation",
        "not a step": "host",
        "MemoryAllocation": "annotation",
    }

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


@pytest.mark.parametrize("texts", [["x" * 60, "y" * 60, "z" * 60], ["w" * 5000], [str(n) for n in range(7)]])
def test_texts_of_one_event_may_be_more_than_there_is_room_for_to_begin_with(buffers, tmp_path, texts):
    space = XSpace()
    given = {f"t{n}": [text] for n, text in enumerate(texts)}
    PlaneBuilder(space, "/host:CPU").line("work", [("few", 0, 1, {"a": ["b"]}), ("many", 1, 1, given), ("last", 2, 1)])
    told = [e["stats"] for e in got(tmp_path, space.SerializeToString()).events()]
    assert [[words for *_, words in stats] for stats in told] == [["b"], texts, []]


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

"""Traces that JAX writes for a viewer: read where no profile lies beside them, and equal to it in what they hold."""

import gzip
import json
import random
import tracemalloc
from collections import Counter

import pytest

from collectors import ingest
from collectors.base import Source
from collectors.device import kineto, viewer
from collectors.device.viewer import space as spaces
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.traces import Got, PlaneBuilder, XSpace, environment, got, jax_trace
from tests.collectors.viewer_files import as_json, viewer_events, viewer_file

NAME = "host.trace.json.gz"
LONG = "%dot.1 = bf16[8,8]{1,0:T(8,128)} dot(bf16[8,8] %x, bf16[8,8] %y)"
REDUCE = "%all-reduce.3 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1}}"


def made():
    """A TPU, a GPU with launches, and a host with steps."""
    space = XSpace()
    environment(space)
    host = PlaneBuilder(space, "/host:CPU")
    host.line("python", [("train", i * 100, 90, {"_r": 1, "step_num": i}) for i in range(5)])
    host.line("Host Threads/9", [("cuLaunchKernel", i * 100, 5, {"correlation_id": i + 1}) for i in range(5)])
    tpu = PlaneBuilder(space, "/device:TPU:0")
    tpu.metadata(
        LONG, "dot.1", hlo_category="convolution", model_flops=1024, flops=1024, source="train.py:3", tf_op="f/dot"
    )
    tpu.metadata(REDUCE, "all-reduce.3", hlo_category="all-reduce")
    own = [{"device_offset_ps": 1000 * i, "device_duration_ps": 900} for i in range(200)]
    tpu.line("XLA Ops", [(LONG, i, 0.9, own[i]) for i in range(200)] + [(REDUCE, 300, 50)])
    tpu.line("Steps", [(str(i), i * 100, 90) for i in range(5)])
    gpu = PlaneBuilder(space, "/device:GPU:0")
    gpu.line("Stream #7(Compute)", [("k", i * 100 + 20, 40, {"correlation_id": i + 1}) for i in range(5)])
    return space


def events_of(rows: dict) -> Counter:
    """What ran where and when, to the ps."""
    ops = {o["op_id"]: o for o in rows["ops"]}
    told = ("op", "line", "role", "category", "source")
    return Counter(
        (*(ops[e["op_id"]][k] for k in told), e["device"], e["start_ps"], e["dur_ps"]) for e in rows["op_events"]
    )


def test_what_it_holds_is_what_the_profile_holds(tmp_path):
    whole = got(tmp_path, made().SerializeToString())
    found = read(viewer, source_of(tmp_path, viewer_file(made()), NAME))
    assert events_of(found.rows) == events_of(whole.rows)
    launches = [{**row, "event": None, "call_event": None} for row in found.rows["launches"]]
    assert launches == [{**row, "event": None, "call_event": None} for row in whole.rows["launches"]]
    assert [(s["step"], s["dur_ns"]) for s in found.rows["steps"]] == [
        (s["step"], s["dur_ns"]) for s in whole.rows["steps"]
    ]
    (op,) = [o for o in found.rows["ops"] if o["op"] == "dot.1"]
    assert (op["flops"], op["source"], op["device"]) == (1024, "train.py:3", 0)
    (met,) = found.rows["collectives"]
    assert (met["op"], met["kind"], met["end_ns"] - met["start_ns"]) == ("all-reduce.3", "all-reduce", 50)
    assert found.column("captures", "start_ns") == [0]
    assert "ingest the `.xplane.pb` instead" in found.reasons() and "Task Environment" not in found.reasons()


def test_a_real_trace_agrees_with_its_profile(tmp_path):
    """JAX on CPU writes both: operations, host events, steps and waits for data agree to the ps."""
    path, _ = jax_trace(tmp_path)
    (other,) = tmp_path.rglob("*.trace.json.gz")
    whole, found = Got(Source(path, path.name)), read(viewer, Source(other, other.name))
    drop = ("category", "source")  # told by the programs, which the viewer's file lacks

    def alike(rows):
        return Counter((*key[:3], *key[5:]) for key in events_of(rows).elements())

    assert drop and alike(found.rows) == alike(whole.rows)
    for table in ("steps", "lifecycle"):
        key = "dur_ns" if table == "steps" else "kind"
        assert found.column(table, key) == [row[key] for row in whole.rows[table]]
    assert found.facts["chips"] == whole.facts["chips"] == 4
    assert not {"modules", "memory", "matmuls"} & set(found.rows)


def test_of_a_capture_the_profile_is_read_and_the_rest_left_out(tmp_path, store):
    folder = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    folder.mkdir(parents=True)
    for host in ("a", "b"):
        (folder / f"{host}.trace.json.gz").write_bytes(viewer_file(made()))
        (folder / f"{host}.xplane.pb").write_bytes(made().SerializeToString() + b"\x22\x01" + host.encode())
    (folder / "perfetto_trace.json.gz").write_bytes(viewer_file(made()))
    done = ingest.ingest([tmp_path / "plugins"], store)
    assert done.tables["captures"] == 2 and done.tables["steps"] == 10
    assert sum("lies beside it" in warning for warning in done.warnings) == 3
    for host in ("a", "b"):
        (folder / f"{host}.xplane.pb").write_bytes(b"")  # what is left behind beyond 2 GiB
    (folder / "b.trace.json.gz").unlink()
    done = ingest.ingest([tmp_path / "plugins"], store)
    assert done.tables["captures"] == 1 and done.tables["steps"] == 5
    assert sum("2 GiB" in warning for warning in done.warnings) == 1  # the other has the same bytes


def test_who_reads_which_json(tmp_path):
    source = source_of(tmp_path, viewer_file(made()), NAME)
    assert (viewer.sniff(source), kineto.sniff(source)) == (0.9, 0.0)
    for other in (
        '{"schemaVersion": 1, "traceEvents": []}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel"}]}',
        "[]",
        "",
    ):
        assert viewer.sniff(source_of(tmp_path, other, NAME)) == 0.0


def test_the_order_of_events_does_not_matter(tmp_path):
    """Names may stand behind what they are of."""
    events = viewer_events(made())
    whole = read(viewer, source_of(tmp_path, as_json(events), NAME))
    random.Random(3).shuffle(events)
    events.sort(key=lambda e: e.get("ph") == "M")
    turned = read(viewer, source_of(tmp_path, as_json(events), NAME))
    assert events_of(turned.rows) == events_of(whole.rows)


def test_in_pieces_it_is_the_same(tmp_path, monkeypatch):
    whole = read(viewer, source_of(tmp_path, viewer_file(made()), NAME))
    monkeypatch.setattr(spaces, "_PART_BYTES", 3_000)
    pieces = read(viewer, source_of(tmp_path, viewer_file(made()), NAME))
    assert events_of(pieces.rows) == events_of(whole.rows)
    assert pieces.column("captures", "devices") == whole.column("captures", "devices")


def test_the_first_million_is_said_to_be_all_that_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(viewer, "MOST_EVENTS", 200)
    assert "the earliest 200" in read(viewer, source_of(tmp_path, viewer_file(made()), NAME)).reasons()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_whatever_the_cut(tmp_path, pack):
    """What stands before the cut is kept; nothing but an InputError ends it."""
    data = pack(as_json(viewer_events(made())))
    total = sum(events_of(read(viewer, source_of(tmp_path, data, NAME)).rows).values())
    most = 0
    for end in [*range(300, len(data), 997), len(data) - 1]:
        try:
            found = read(viewer, source_of(tmp_path, data[:end], NAME))
        except InputError as error:
            assert "\n" not in str(error)
            continue
        most = max(most, sum(events_of(found.rows).values()))
        assert most <= total
        assert "ends in the middle" in found.reasons() or "marker" in found.reasons() or end == len(data) - 1
    assert most > total // 2


@pytest.mark.parametrize(
    "event",
    [
        '{"ph":"X","pid":1,"tid":2,"name":"a"}',
        '{"ph":"X","pid":1,"tid":2,"name":"a","ts":1e300,"dur":1}',
        '{"ph":"X","pid":1,"tid":2,"name":"a","ts":NaN,"dur":1}',
        '{"ph":"X","pid":1,"tid":2,"name":"a","ts":1,"dur":-1}',
        '{"ph":"X","pid":[1],"tid":{},"name":"a","ts":1,"dur":1}',
        '{"ph":"X","pid":99,"tid":2,"name":"a","ts":1,"dur":1}',
        '{"ph":"X","pid":1,"tid":2,"name":7,"ts":1,"dur":1}',
        '{"ph":"X","pid":true,"tid":2,"name":"a","ts":1,"dur":1}',
        '{"ph":"X","pid":1' + "0" * 5000 + "}",
        '{"ph":"C","pid":1,"name":"counter"}',
        "[" * 5000 + "]" * 5000,
        '{"ph":"X","pid":1,"tid":2,"name":"a","ts":1,"dur"}',
        "7",
    ],
)
def test_a_damaged_event_costs_only_itself(tmp_path, event):
    data = as_json(viewer_events(made())).decode()
    whole = events_of(read(viewer, source_of(tmp_path, data, NAME)).rows)
    at = data.index('{"ph":"X"')
    found = read(viewer, source_of(tmp_path, data[:at] + event + "," + data[at:], NAME))
    assert events_of(found.rows) == whole
    assert found.reasons().count("(1)") == (event != "7")


def test_hostile_names_stay_text(tmp_path):
    name = "<script>alert(1)</script>\x00\u202e"
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "X", "pid": 1, "tid": 3, "ts": 1, "dur": 1, "name": name, "args": {name: name, "n": 3, "_r": "1"}},
    ]
    found = read(viewer, source_of(tmp_path, as_json(events), NAME))
    assert found.column("ops", "op") == [name] and found.column("ops", "line") == ["thread 3"]


def test_no_event_at_all_is_refused(tmp_path):
    with pytest.raises(InputError, match="without one event"):
        read(viewer, source_of(tmp_path, as_json([{}]), NAME))


def test_memory_stays_bounded(tmp_path, monkeypatch):
    """Many events of many names, in little memory."""
    monkeypatch.setattr(spaces, "_PART_BYTES", 1 << 20)
    path = tmp_path / "big"
    with path.open("w") as f:
        f.write('{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/host:CPU"}}')
        for i in range(60_000):
            f.write("," + json.dumps({"ph": "X", "pid": 1, "tid": 1, "ts": i, "dur": 1, "name": f"n{i}" + "x" * 400}))
        f.write("]}")
    tracemalloc.start()
    with path.with_name("out").open("w+b") as out:
        parts = list(spaces.Spaces(Source(path, NAME), out).parts())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(parts) > 10 and most < 16 << 20 < path.stat().st_size

"""A real JAX trace: everything in it against protobuf and JAX's own reader."""

import gzip
from collections import Counter, defaultdict

import pytest

from collectors.base import Source
from collectors.device import xplane
from tests.collectors.traces import Got, XSpace, jax_trace

MS = 1_000_000  # ns


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    path, clock = jax_trace(tmp_path_factory.mktemp("jax"))
    return path, clock, Got(Source(path, path.name))


def test_real_trace_against_jax_profile_data(real):
    from jax.profiler import ProfileData

    path, _, read = real
    ours = defaultdict(Counter)
    for event in read.events():
        ours[event["line"]][event["op"], event["dur_ps"] // 1000] += 1
    theirs = defaultdict(Counter)
    for plane in ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            for event in line.events:
                theirs[line.name][event.name, int(event.duration_ns)] += 1
    assert sum(map(Counter.total, ours.values())) > 1000
    assert ours == {line: found for line, found in theirs.items() if found}
    assert not read.lost


def test_real_trace_stats_against_protobuf(real):
    space = XSpace.FromString(real[0].read_bytes())
    read = real[2]
    theirs = sum(len(e.stats) for p in space.planes for line in p.lines for e in line.events)
    assert len(read.rows["event_stats"]) == theirs > 5000
    assert read.rows["captures"][0]["start_ns"] == expected_start(space)


def expected_start(space):
    (plane,) = [p for p in space.planes if p.name == b"Task Environment"]
    named = {s.key: s.value.name for s in plane.stat_metadata}
    return next(s.uint64_value for s in plane.stats if named[s.metadata_id] == b"profile_start_time")


def test_real_trace_clock(real):
    _, clock, read = real
    waits = read.rows["lifecycle"]
    assert [w["kind"] for w in waits] == ["data_loading"] * 4
    for wait, mark in zip(waits, clock["marks"], strict=True):
        assert wait["start_ns"] - MS < mark < wait["end_ns"]
        assert wait["end_ns"] - wait["start_ns"] >= 3 * MS
    steps = read.rows["steps"]
    assert [s["step"] for s in steps] == [10, 11, 12, 13]
    for step, wait in zip(steps, waits, strict=True):
        assert step["start_ns"] <= wait["start_ns"] and wait["end_ns"] <= step["start_ns"] + step["dur_ns"]
    assert (
        clock["before"] - MS < steps[0]["start_ns"]
        and steps[-1]["start_ns"] + steps[-1]["dur_ns"] < clock["after"] + MS
    )


def test_real_trace_programs_and_operations(real):
    read = real[2]
    (module,) = [m for m in read.rows["modules"] if m["name"] == "jit_step"]
    assert read.blobs[module["file"]][:4] == b"\x28\xb5\x2f\xfd"  # zstd
    products = [m for m in read.rows["matmuls"] if m["module"] == "jit_step"]
    # Three layers forward, again for the checkpoint, and two products each backward; 16 x 64 x 32 and its transposes.
    assert sum(m["count"] for m in products) == 12 and {m["count"] for m in products} == {3}
    assert {m["m"] * m["k"] * m["n"] for m in products} == {16 * 64 * 32}
    assert sum(m["count"] for m in products if m["remat"]) == 3
    total = sum(2 * m["m"] * m["k"] * m["n"] * m["batch"] * m["count"] for m in products)
    assert total < module["flops"] < 1.2 * total
    assert 0.24 * total < module["remat_flops"] < 0.3 * total
    compute = [o for o in read.rows["ops"] if o["role"] == "compute"]
    assert {o["device"] for o in compute} == {0, 1, 2, 3}
    executed = sum(o["flops"] * o["count"] for o in compute if o["module"] == "jit_step" and o["flops"])
    assert executed == pytest.approx(module["flops"] * 4 * 4, rel=0.02)  # 4 devices, 4 steps
    matmuls = [o for o in compute if o["category"] == "matmul"]
    assert matmuls and all(o["flops"] >= 2 * 16 * 64 * 32 and o["source"] for o in matmuls)


def test_real_trace_collectives(real):
    rows = real[2].rows["collectives"]
    assert {r["kind"] for r in rows} >= {"all-reduce", "all-gather"}
    by = defaultdict(list)
    for r in rows:
        assert r["end_ns"] > r["start_ns"] and r["bytes"] > 0 and r["dtype"] == "f32" and r["module"] == "jit_step"
        assert str(r["rank"]) in r["group"].split(",") and len(r["group"].split(",")) == 2
        by[r["op"], r["device"]].append(r)
    for (op, _), its in by.items():
        assert [r["seq"] for r in its] == list(range(len(its)))
        assert its == sorted(its, key=lambda r: r["start_ns"])
        assert len(its) == len(by[op, 0]) and len(its) % 4 == 0
        assert [r["step"] for r in its] == sorted(10 + i for i in range(4) for _ in range(len(its) // 4))
    # Members of a group meet: each instance overlaps in time on all its ranks.
    for (op, device), its in by.items():
        for other in {int(m) for m in its[0]["group"].split(",")} - {device}:
            for mine, theirs in zip(its, by[op, other], strict=True):
                assert mine["start_ns"] < theirs["end_ns"] and theirs["start_ns"] < mine["end_ns"]


def test_real_trace_gzipped_reads_the_same(real, tmp_path):
    path = tmp_path / "x.xplane.pb.gz"
    path.write_bytes(gzip.compress(real[0].read_bytes(), 1))
    source = Source(path, path.name)
    assert xplane.sniff(source) == 1.0
    assert Got(source).rows["op_events"] == real[2].rows["op_events"]

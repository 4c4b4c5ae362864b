"""Real files of AMD's profilers from beside the project, against sums that were made over them by other means."""

import gzip
import json
import sqlite3
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from analyzers.device import overlap
from collectors.base import Source
from collectors.device.rocm import rocprofv3, rpd
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from runs.tables import frame

SHARED = Path(__file__).parents[2].parent / "shared"
FOLDER = SHARED / "data/more/rocpd_rpd"
RPD = sorted(FOLDER.glob("*.rpd*"))
ORACLE = SHARED / "oracles/more/rocpd_rpd.json"

pytestmark = pytest.mark.skipif(not (RPD and ORACLE.is_file()), reason="no files of AMD's profilers beside the project")
each_rpd = pytest.mark.parametrize("path", RPD, ids=lambda p: p.name)


def truth(path: Path) -> dict:
    return json.loads(ORACLE.read_text())[f"rocpd_rpd/{path.name}"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """The run of each file, read once."""
    store, known = Store(tmp_path_factory.mktemp("rocm") / "store"), {}

    def of(path: Path):
        if path not in known:
            known[path] = store.get(ingest([path], store).run_id)
        return known[path]

    return of


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A connection to each database."""
    folder = tmp_path_factory.mktemp("unpacked")

    def of(path: Path):
        plain = folder / path.name.removesuffix(".gz")
        plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        return sqlite3.connect(plain)

    return of


def work(run):
    ops = frame(run.tables, "ops", ["device", "role", "op", "category", "total_ns", "count"])
    return ops[ops["role"] == "compute"]


def busy_ns(run) -> dict[int, int]:
    """Time of each device in which anything ran."""
    result = overlap.analyze(run.tables, {}, parse_options(overlap.OPTIONS, {"window": "operations"}))
    return {row.device: round((row.window_s - row.idle_s) * 1e9) for row in result.devices.itertuples()}


def union(spans) -> int:
    busy, until = 0, -(1 << 62)
    for start, end in sorted(spans):
        busy += max(end - max(start, until), 0)
        until = max(until, end)
    return busy


@each_rpd
def test_operations_and_time_are_those_of_the_oracle(opened, path):
    told, mine = truth(path), work(opened(path))
    assert int(mine["count"].sum()) == told["ops"] and int(mine["total_ns"].sum()) == told["op_sum_ns"]
    by_device = mine.groupby("device")[["count", "total_ns"]].sum()
    for device, count, total in told["ops_by_gpu"]:
        assert tuple(by_device.loc[device].astype(int)) == (count, total)
    copied = {name: row[1:] for name, *row in ((t[0], *t) for t in told["ops_by_type"]) if name.startswith("Copy")}
    copies = mine[mine["op"].astype(str).str.startswith("Memcpy ")]
    assert int(copies["count"].sum()) == sum(count for count, _ in copied.values())
    assert int(copies["total_ns"].sum()) == sum(total for _, total in copied.values())


@each_rpd
def test_every_row_is_stored_and_each_launch_is_that_of_the_file(opened, database, path):
    run, connection = opened(path), database(path)
    one = lambda sql: connection.execute(sql).fetchone()[0]  # noqa: E731
    assert run.tables.rows("op_events") == one("SELECT count(*) FROM rocpd_op") + one("SELECT count(*) FROM rocpd_api")
    joined = connection.execute(
        "SELECT o.start - a.start, a.end - a.start FROM rocpd_api_ops l JOIN rocpd_op o ON o.id = l.op_id "
        "JOIN rocpd_api a ON a.id = l.api_id"
    ).fetchall()
    launches = frame(run.tables, "launches", ["event", "call_start_ps", "call_dur_ps"])
    mine = launches.merge(frame(run.tables, "op_events", ["event", "start_ps"]), on="event")
    delay = ((mine["start_ps"] - mine["call_start_ps"]).to_numpy(np.int64) // 1000).tolist()
    took = (mine["call_dur_ps"].to_numpy(np.int64) // 1000).tolist()
    assert sorted(zip(delay, took, strict=True)) == sorted(joined)


@each_rpd
def test_busy_time_is_that_of_the_file(opened, database, path):
    spans = defaultdict(list)
    for device, start, end in database(path).execute("SELECT gpuId, start, end FROM rocpd_op"):
        spans[device].append((start, end))
    assert busy_ns(opened(path)) == {device: union(mine) for device, mine in spans.items()}


def test_the_json_of_an_rpd_tells_the_same_to_a_microsecond_an_operation(opened):
    """rpd2tracing cuts times and durations down to whole microseconds."""
    one, other = (opened(FOLDER / f"matmul_result.{kind}") for kind in ("rpd", "json"))
    mine, its = work(one), work(other)
    for column in ("op", "category"):
        counts = [w.groupby(column, observed=True)["count"].sum().to_dict() for w in (mine, its)]
        assert counts[0] == counts[1]
    n = int(mine["count"].sum())
    assert 0 <= int(mine["total_ns"].sum()) - int(its["total_ns"].sum()) < 1_000 * n
    (ours,), (theirs,) = busy_ns(one).values(), busy_ns(other).values()
    assert abs(ours - theirs) < 1_000 * n


def test_the_json_of_rocprofv3_is_that_of_the_oracle(opened):
    path = FOLDER / "rocprofv3_908_results.json.gz"
    told, run = truth(path), opened(path)
    mine = work(run)
    assert int(mine["count"].sum()) == told["kernel_dispatches"]
    assert int(mine["total_ns"].sum()) == told["kernel_sum_ns"]
    assert run.manifest.facts["chip"].value == "AMD Instinct MI350X"
    whole = json.loads(gzip.decompress(path.read_bytes()))["rocprofiler-sdk-tool"][0]
    records = whole["buffer_records"]["kernel_dispatch"]
    assert busy_ns(run) == {0: union((r["start_timestamp"], r["end_timestamp"]) for r in records)}
    names = {k["kernel_id"]: k["formatted_kernel_name"] for k in whole["kernel_symbols"]}
    by_name = defaultdict(int)
    for r in records:
        by_name[names[r["dispatch_info"]["kernel_id"]]] += r["end_timestamp"] - r["start_timestamp"]
    plain = mine[mine["category"] != "collective"].groupby("op", observed=True)["total_ns"].sum().astype(int).to_dict()
    assert plain == {n: t for n, t in by_name.items() if "nccl" not in n.lower()}


@pytest.mark.parametrize("name", ["matmul_result.rpd", "matmul_result.json", "rocprofv3_908_results.json.gz"])
def test_each_is_known_by_its_content(name):
    source = Source(FOLDER / name, "anything")
    collector = rocprofv3 if "rocprofv3" in name else rpd
    assert collector.sniff(source) > 0.9

"""Real exports of Nsight Systems from beside the project, against sums that SQL makes over them."""

import gzip
import sqlite3
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analyzers.device import overlap
from analyzers.device.launches import launches
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store
from runs.tables import frame

SHARED = Path(__file__).parents[2].parent / "shared"
FILES = sorted(SHARED.glob("data/nsys/*.sqlite")) + sorted(SHARED.glob("data/more/nsys/*.sqlite*"))
REPORTS = sorted(SHARED.glob("data/more/nsys/*.nsys-rep*"))
WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")

pytestmark = pytest.mark.skipif(not FILES, reason="no exports of Nsight Systems beside the project")
each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """(run, connection to the file) of each export, read once."""
    folder = tmp_path_factory.mktemp("nsys")
    store, known = Store(folder / "store"), {}

    def of(path: Path):
        if path not in known:
            plain = folder / path.name.removesuffix(".gz")
            plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
            known[path] = store.get(ingest([path], store).run_id), sqlite3.connect(plain)
        return known[path]

    return of


def work(connection) -> dict[int, list[tuple[int, int]]]:
    """(start, end) of all that each device executed."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    found = defaultdict(list)
    for table in WORK:
        if table in there:
            for device, start, end in connection.execute(f"SELECT deviceId, start, end FROM {table}"):
                found[device].append((start, end))
    return found


@each_file
def test_time_by_device_is_that_of_the_file(opened, path):
    run, connection = opened(path)
    ops = frame(run.tables, "ops", ["device", "role", "total_ns", "count"])
    ops = ops[ops["role"] == "compute"]
    mine = ops.groupby("device")[["total_ns", "count"]].sum()
    for device, rows in work(connection).items():
        assert mine.loc[device, "total_ns"] == sum(b - a for a, b in rows)
        assert mine.loc[device, "count"] == len(rows)
    assert len(mine) == len(work(connection))


@each_file
def test_busy_time_is_that_of_the_file(opened, path):
    run, connection = opened(path)
    result = overlap.analyze(run.tables, {}, parse_options(overlap.OPTIONS, {"window": "operations"}))
    for row in result.devices.itertuples():
        busy, until = 0, -(1 << 62)
        for start, end in sorted(work(connection)[row.device]):
            busy += max(end - max(start, until), 0)
            until = max(until, end)
        assert round((row.window_s - row.idle_s) * 1e9) == busy


@each_file
def test_launches_are_those_that_the_file_joins(opened, path):
    run, connection = opened(path)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")}
    same = "(r.globalTid >> 24) & 16777215 = (k.globalPid >> 24) & 16777215" if "globalPid" in columns else "1"
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    joined = []
    for table in (t for t in WORK if t in there):
        joined += connection.execute(
            f"SELECT k.start, k.end, r.start, r.end FROM {table} k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
            f"ON r.correlationId = k.correlationId AND {same}"
        ).fetchall()
    rows = frame(run.tables, "launches", ["event", "call_start_ps", "call_dur_ps"])
    events = frame(run.tables, "op_events", ["event", "start_ps", "dur_ps"])
    mine = rows.merge(events, on="event")
    assert len(mine) == len(joined)
    delay = np.sort((mine["start_ps"] - mine["call_start_ps"]).to_numpy(dtype=np.int64) // 1000)
    assert delay.tolist() == sorted(k - r for k, _, r, _ in joined)
    took = np.sort(mine["call_dur_ps"].to_numpy(dtype=np.int64) // 1000)
    assert took.tolist() == sorted(end - start for *_, start, end in joined)


@each_file
def test_every_row_is_stored(opened, path):
    run, connection = opened(path)
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    timed = ("SYNCHRONIZATION", "RUNTIME", "GRAPH_TRACE", "OVERHEAD")
    tables = (*WORK, *(f"CUPTI_ACTIVITY_KIND_{t}" for t in timed), "OSRT_API", "PROFILER_OVERHEAD", "NVTX_EVENTS")
    counted = sum(connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables if t in there)
    assert run.tables.rows("op_events") == counted


@each_file
def test_the_same_tables_as_parquet_are_the_same_run(opened, path, tmp_path):
    """As `nsys export --type parquetdir` writes them: a Parquet file for each table."""
    run, connection = opened(path)
    folder = tmp_path / "report_pqtdir"
    folder.mkdir()
    kinds = {"INTEGER": pa.int64(), "INT": pa.int64(), "REAL": pa.float64(), "BLOB": pa.binary()}
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        told = [row[1:3] for row in connection.execute(f'PRAGMA table_info("{name}")')]
        rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        columns = [
            pa.array([row[n] for row in rows], kinds.get(kind.upper(), pa.string())) for n, (_, kind) in enumerate(told)
        ]
        pq.write_table(pa.table(columns, [column for column, _ in told]), folder / f"{name}.parquet")
    store = Store(tmp_path / "store")
    other = store.get(ingest([folder], store).run_id)
    assert other.manifest.tables == run.manifest.tables
    for table in ("op_events", "launches"):
        columns = ["event", "call_start_ps"] if table == "launches" else ["event", "device", "start_ps", "dur_ps"]
        mine, its = (frame(r.tables, table, columns).sort_values("event").reset_index(drop=True) for r in (run, other))
        assert mine.equals(its)
    sums = [
        frame(r.tables, "ops", ["op", "device", "total_ns"]).groupby(["op", "device"], observed=True)["total_ns"].sum()
        for r in (run, other)
    ]
    assert sums[0].equals(sums[1])


@each_file
def test_idle_causes_close(opened, path):
    run, _ = opened(path)
    if run.tables.rows("launches"):
        result = launches.analyze(run.tables, {}, parse_options(launches.OPTIONS, {}))
        kinds = sum(result.totals[f"{kind}_s"] for kind in launches.KINDS)
        assert kinds == pytest.approx(result.totals["idle_s"], abs=1e-12)

"""Stores of MLflow; all of them were made for these tests."""

import gzip
import math
import sqlite3
import zipfile
from pathlib import Path
from time import process_time

import pytest

from analyzers.time.steps import analyze
from collectors.base import Source
from collectors.ingest import ingest
from collectors.ingesting.folders import RunFolder, joined
from collectors.ingesting.unpack import SafeSource
from collectors.training import mlflow
from errors import InputError
from tests.collectors import mlflow_files as made
from tests.collectors.mlflow_files import SYSTEM, T0, curve, database, folder, run
from tests.collectors.reading import read

S, MS = 1_000_000_000, 1_000_000
ONE = run(
    "a" * 32, [*curve(), *SYSTEM], name="trainer", params={"max_steps": "20", "cfg/seq_length": "2048", "lr": "x"}
)


def source_of(tmp_path, form, *runs):
    """A store in one form or the other, as it reaches the reader."""
    if form == "database":
        return Source(database(tmp_path / "mlflow.db", *runs), "mlflow.db")
    root = folder(tmp_path / "mlruns", *runs)
    files = [SafeSource(p, p.relative_to(tmp_path).as_posix()) for p in sorted(root.rglob("*")) if p.is_file()]
    [found] = joined(files)
    return found


FORMS = pytest.mark.parametrize("form", ["database", "folder"])


@FORMS
def test_a_run(tmp_path, form):
    source = source_of(tmp_path, form, ONE)
    assert mlflow.sniff(source) >= 0.95
    got = read(mlflow, source)
    assert got.column("steps", "step") == list(range(10)) and set(got.column("steps", "attempt")) == {0}
    assert set(got.column("steps", "dur_ns")) == {1.5 * S} and got.column("steps", "loss")[3] == 2.97
    assert got.column("steps", "logged_ns")[1] == (T0 + 12_000) * MS
    values = {(r["name"], r["ts_ns"] // MS - T0): r for r in got.rows["scalars"]}
    assert len(values) == 24 and values["learning/loss", 28_000]["step"] == 9
    power = values["system/gpu_0_power_usage_watts", 21_000]
    assert (power["value"], power["unit"], power["step"]) == (350.0, "W", None)
    [first, second] = got.rows["memory"]
    assert (first["device"], first["kind"], first["bytes"], first["ts_ns"]) == (
        *(0, "bytes_in_use", 4_000_500_000),
        (T0 + 11_000) * MS,
    )
    assert second["device"] == 1 and second["host"] is None
    [job] = got.rows["lifecycle"]
    assert (job["kind"], job["start_ns"], job["end_ns"]) == ("job", T0 * MS, (T0 + 60_000) * MS)
    assert got.facts == {"job_name": "trainer", "planned_steps": 20, "sequence_length": 2048}
    assert not got.lost and "evidence" not in got.rows


@FORMS
@pytest.mark.parametrize(
    ("status", "end", "cause"),
    [("FAILED", T0 + 60_000, "process_exit"), ("KILLED", T0 + 60_000, "terminated"), ("RUNNING", None, None)],
)
def test_how_it_ended(tmp_path, form, status, end, cause):
    got = read(mlflow, source_of(tmp_path, form, run("a" * 32, curve(), status=status, end=end)))
    life = {row["kind"]: row for row in got.rows["lifecycle"]}
    assert life["job"]["end_ns"] == (end and end * MS)
    last = life.get("custom")  # of one that runs: a sign of life
    assert (last is None) == (end is not None) and (last is None or last["start_ns"] == (T0 + 28_000) * MS)
    assert got.column("evidence", "cause") == ([cause] if cause else [])
    assert all(at == end * MS for at in got.column("evidence", "ts_ns"))


@FORMS
def test_of_many_runs_one_is_read_and_the_others_are_named(tmp_path, form):
    later = T0 + 10**9
    runs = (
        run("a" * 32, curve(3), name="before", start=T0 - 10**6),
        ONE | {"id": "b" * 32},
        run("c" * 32, [("accuracy", 0.5, later, 0)], name="test", start=later),
        run("d" * 32, curve(3), name="gone", start=later, stage="deleted"),
        run("e" * 32, name="empty", start=later),
    )
    got = read(mlflow, source_of(tmp_path, form, *runs))
    assert got.facts["job_name"] == "trainer" and len(got.rows["steps"]) == 10
    [lost] = got.lost
    assert (
        lost.what == "other runs (3)" and "'trainer' (bbbb" in lost.reason and "where run_uuid <> 'ID'" in lost.reason
    )
    assert lost.reason.index("'before'") < lost.reason.index("'test'") < lost.reason.index("'empty'")
    assert "gone" not in lost.reason


@FORMS
def test_samples_of_the_machine_are_no_steps(tmp_path, form):
    """A run that only watched its machine is no training, whenever it was started."""
    samples = [(f"system/gpu_{g}_power_usage_watts", 100.0, T0 + n, n) for g in range(30) for n in range(3)]
    watched = run("b" * 32, samples, name="watched", start=T0 + 10**9)
    trained = run("a" * 32, [*((n, v, at, s) for n, v, at, s in samples), ("train/loss", 1.0, T0, 7)], name="trained")
    assert read(mlflow, source_of(tmp_path, form, trained, watched)).facts["job_name"] == "trained"


def test_a_database_whose_last_rows_lie_beside_it(tmp_path):
    path = database(tmp_path / "mlflow.db", ONE)
    (tmp_path / "mlflow.db-wal").write_bytes(b"x" * 100)
    got = read(mlflow, Source(path, "mlflow.db"))
    assert len(got.rows["steps"]) == 10 and "-wal" in got.reasons()


def test_another_run_is_chosen_as_is_said(tmp_path, store):
    other = run("b" * 32, curve(3), name="other", start=T0 - 10**6)
    path = database(tmp_path / "mlflow.db", ONE, other)
    folder(tmp_path / "mlruns", ONE, other)
    connection = sqlite3.connect(path)
    connection.execute(f"delete from runs where run_uuid <> '{other['id']}'")
    connection.commit()
    connection.close()
    for chosen in (path, tmp_path / "mlruns" / "1" / other["id"]):
        got = ingest([chosen], store)
        assert got.tables["steps"] == 3 and not got.warnings


@FORMS
def test_values_that_are_no_numbers(tmp_path, form):
    points = [("loss", value, T0 + n, n) for n, value in enumerate((1.0, math.nan, math.inf, -math.inf, 1e-300))]
    got = read(mlflow, source_of(tmp_path, form, run("a" * 32, points)))
    values = got.column("scalars", "value")
    assert values[0] == 1 and values[1] != values[1] and values[2:] == [math.inf, -math.inf, 1e-300]


@FORMS
def test_a_run_that_was_gone_on_with(tmp_path, form):
    points = [*curve(10), *curve(8, start=T0 + 100_000, first=6)]
    got = read(mlflow, source_of(tmp_path, form, run("a" * 32, points)))
    assert got.column("steps", "step") == [*range(10), *range(6, 14)]
    assert got.column("steps", "attempt") == [0] * 10 + [1] * 8


@FORMS
def test_metrics_of_several_nodes(tmp_path, form):
    points = [(f"system/{n}/gpu_3_memory_usage_megabytes", 1000.0 + n, T0 + n, 0) for n in range(2)]
    got = read(mlflow, source_of(tmp_path, form, run("a" * 32, points)))
    assert [(r["host"], r["device"], r["bytes"]) for r in got.rows["memory"]] == [
        ("0", 3, 1_000_000_000),
        ("1", 3, 1_001_000_000),
    ]


@FORMS
def test_times_in_seconds_as_the_first_versions_wrote_them(tmp_path, form):
    one = run("a" * 32, [("loss", 1.0, T0 // 1000, 0)], start=T0 // 1000, end=0)
    got = read(mlflow, source_of(tmp_path, form, one))
    assert got.column("scalars", "ts_ns") == [T0 * MS] == got.column("lifecycle", "start_ns")


def test_the_first_database_had_no_steps(tmp_path):
    schema = made.SCHEMA.replace("step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,", "")
    schema = schema.replace("timestamp, step, run_uuid, value, is_nan", "timestamp, run_uuid")
    path = database(tmp_path / "mlflow.db", run("a" * 32), schema=schema)
    connection = sqlite3.connect(path)
    connection.execute("drop table latest_metrics")
    connection.execute("insert into metrics values ('loss', 2.5, ?, ?)", (T0, "a" * 32))
    connection.commit()
    connection.close()
    got = read(mlflow, Source(path, "mlflow.db"))
    assert [(r["value"], r["step"], r["ts_ns"]) for r in got.rows["scalars"]] == [(2.5, None, T0 * MS)]


def test_lines_of_a_metric_that_say_more_or_nothing(tmp_path):
    root = folder(tmp_path / "mlruns", run("a" * 32, [("loss", 1.0, T0, 0)]))
    path = root / "1" / ("a" * 32) / "metrics" / "loss"
    path.write_text(
        f"{T0} 2.5\n{T0} 3.5 4 data abc\r\n\n{'9' * 30} 1 1\nx 1 1\n{T0} y 1\n{T0} 1 {'9' * 5000}\n{T0}\n{T0} 4"
    )
    [source] = joined([SafeSource(p, p.relative_to(tmp_path).as_posix()) for p in root.rglob("*") if p.is_file()])
    got = read(mlflow, source)
    assert [(r["value"], r["step"]) for r in got.rows["scalars"]] == [(2.5, 0), (4.0, 0), (3.5, 4)]
    assert [lost.what for lost in got.lost] == ["lines of loss (5)"]


def test_what_runs_left_in_a_folder_stays_apart(tmp_path, store):
    root = folder(tmp_path / "job" / "mlruns", ONE)
    (root / "1" / ONE["id"] / "artifacts" / "out.log").write_text(
        "".join(f"completed step: {n}, seconds: 1.{n:03}, TFLOP/s/device: 100.000, loss: 2.000\n" for n in range(5))
    )
    (tmp_path / "job" / "meta.yaml").write_text("a: 1\n")
    (tmp_path / "job" / "metrics").mkdir()
    (tmp_path / "job" / "metrics" / "x").write_text("of nobody")
    got = ingest([tmp_path / "job"], store)
    states = {file.name: (file.format, file.state) for file in got.files}
    assert states[f"mlruns/1/{ONE['id']}/artifacts/out.log"] == ("maxtext", "read")
    assert states["mlruns"] == ("mlflow", "read") and len(states) == 4
    assert states["meta.yaml"][1] == states["metrics/x"][1] == "refused"


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_folder_is_known_from_wherever_it_is_given(tmp_path, store, depth):
    root = folder(tmp_path / "mlruns", ONE)
    given = [root, root / "1", root / "1" / ONE["id"]][depth]
    got = ingest([given], store)
    assert got.tables["steps"] == 10 and not got.warnings


def test_a_packed_folder_and_a_packed_database(tmp_path, store):
    root = folder(tmp_path / "mlruns", ONE)
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as packed:
        for path in root.rglob("*"):
            packed.write(path, path.relative_to(tmp_path))
    assert ingest([tmp_path / "runs.zip"], store).tables["steps"] == 10
    (tmp_path / "mlflow.db.gz").write_bytes(gzip.compress(made.as_bytes(ONE)))
    assert ingest([tmp_path / "mlflow.db.gz"], store).tables["steps"] == 10


def test_both_forms_of_a_store_count_once(tmp_path, store):
    database(tmp_path / "job.db", ONE)
    folder(tmp_path / "mlruns", ONE)
    stored = store.get(ingest([tmp_path / "job.db", tmp_path / "mlruns"], store).run_id)
    assert analyze(stored.tables, stored.manifest.facts, {}).steps == 10


def test_what_is_no_store(tmp_path):
    with pytest.raises(InputError, match="deleted, or never began"):
        read(mlflow, source_of(tmp_path, "database", run("a" * 32, curve(), stage="deleted")))
    with pytest.raises(InputError, match="no run that logged"):
        read(mlflow, Source(database(tmp_path / "none.db"), "none.db"))
    bare = made.SCHEMA.replace("status VARCHAR(9), ", "").replace("user_id VARCHAR(256),", "user_id, x,")
    with pytest.raises(InputError, match="a table runs without"):
        read(mlflow, Source(database(tmp_path / "bare.db", schema=bare), "bare.db"))
    connection = sqlite3.connect(tmp_path / "optuna.db")
    connection.executescript("create table alembic_version (x); create table trial_params (x); create table trials (x)")
    connection.close()
    assert mlflow.sniff(Source(tmp_path / "optuna.db", "optuna.db")) == 0


def test_odd_metas(tmp_path, store):
    """A meta.yaml that is no YAML, of wrong types, or that would stand for gigabytes."""
    root = folder(tmp_path / "mlruns", *(run(letter * 32, curve(3)) for letter in "abcd"))
    for letter, text in zip(
        "abcd",
        (
            "artifact_uri: [\nrun_id: {",
            "artifact_uri: 5\nrun_id: [1]\nstatus: x\nstart_time: {}\nend_time: 1e400\nlifecycle_stage: 7\n",
            "artifact_uri: &a [x]\nrun_id: q\nstart_time: *a\n",
            "artifact_uri: x\nrun_id: \u0007\U0001f600\nstart_time: 99999999999999999999999\nstatus: 3\n",
        ),
        strict=True,
    ):
        (root / "1" / (letter * 32) / "meta.yaml").write_text(text)
    got = ingest([root], store)
    assert got.tables["steps"] == 3 and any("meta.yaml" in note for note in got.warnings)


def test_hostile_rows(tmp_path):
    one = run("a" * 32, [*curve(3), ("x" * 100_000, 1.0, T0, 1), ("n\x00\x1b[31m", 2.0, T0, 2**63 - 1)])
    path = database(tmp_path / "mlflow.db", one)
    connection = sqlite3.connect(path)
    connection.execute("update runs set start_time = 'soon', end_time = x'00ff', status = 5, name = x'ff'")
    for row in (
        ("k", "text", "when", "a" * 32, "s", 7),
        (5, 1.0, -(2**63), "a" * 32, -5, 0),
        ("k", 1e308, 1, "z", 1, 0),
    ):
        connection.execute("insert into metrics values (?,?,?,?,?,?)", row)
    connection.execute("insert into metrics values (x'6b', 1.0, 1, ?, 1, 0)", ("a" * 32,))
    connection.commit()
    connection.close()
    got = read(mlflow, Source(path, "mlflow.db"))
    assert len(got.rows["steps"]) == 3 and all(len(name) <= 200 for name in got.column("scalars", "name"))
    assert "lifecycle" not in got.rows


def test_many_points_take_seconds(tmp_path):
    path = database(tmp_path / "mlflow.db", run("a" * 32, curve(10_000)), run("b" * 32, curve(10, start=T0 - 10**9)))
    begun = process_time()
    assert len(read(mlflow, Source(path, "mlflow.db")).rows["steps"]) == 10_000
    assert process_time() - begun < 3


def test_files_that_are_of_no_run_cost_nothing(tmp_path):
    files = [SafeSource(Path("nowhere") / str(n), f"metrics/{n}") for n in range(2_000)]
    assert [*joined(files)] == files
    assert not isinstance([*joined(files)][0], RunFolder)

"""Stores of MLflow, as a database and as a folder, made for tests."""

import sqlite3
import tempfile
from pathlib import Path

T0 = 1_700_000_000_000  # ms
SCHEMA = """
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256), artifact_location VARCHAR(256),
    lifecycle_stage VARCHAR(32), creation_time BIGINT, last_update_time BIGINT);
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), source_type VARCHAR(20), user_id VARCHAR(256),
    status VARCHAR(9), start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20), experiment_id INTEGER);
CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
    run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
    PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
CREATE TABLE latest_metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, step BIGINT, is_nan BOOLEAN,
    run_uuid VARCHAR(32), PRIMARY KEY (key, run_uuid));
CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32), PRIMARY KEY (key, run_uuid));
CREATE TABLE tags (key VARCHAR(250), value VARCHAR(5000), run_uuid VARCHAR(32), PRIMARY KEY (key, run_uuid));
"""
STATES = {"RUNNING": 1, "SCHEDULED": 2, "FINISHED": 3, "FAILED": 4, "KILLED": 5}


def run(id, points=(), name="a-run", status="FINISHED", start=T0, end=T0 + 60_000, stage="active", params=None):
    """A run with points of (name, value, ms, step)."""
    return dict(
        id=id, points=list(points), name=name, status=status, start=start, end=end, stage=stage, params=params or {}
    )


def curve(steps=10, every_ms=2_000, start=T0 + 10_000, seconds=1.5, first=0):
    """What MaxText would log of its steps."""
    for n in range(first, first + steps):
        at = start + (n - first) * every_ms
        yield "perf/step_time_seconds", seconds, at, n
        yield "learning/loss", 3 - n / 100, at, n


SYSTEM = [
    ("system/gpu_0_memory_usage_megabytes", 4000.5, T0 + 11_000, 0),
    ("system/gpu_1_memory_usage_megabytes", 4001.0, T0 + 11_000, 0),
    ("system/gpu_0_utilization_percentage", 97.0, T0 + 21_000, 1),
    ("system/gpu_0_power_usage_watts", 350.0, T0 + 21_000, 1),
]


def database(path: Path, *runs, schema=SCHEMA) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(schema)
    connection.execute("insert into alembic_version values ('abc')")
    connection.execute("insert into experiments values (1, 'wine', '/a', 'active', 0, 0)")
    for one in runs:
        row = (one["id"], one["name"], "LOCAL", "me", one["status"], one["start"], one["end"], one["stage"], 1)
        connection.execute("insert into runs values (?,?,?,?,?,?,?,?,?)", row)
        for name, value, at, step in one["points"]:
            nan = value != value
            number = 0.0 if nan else max(-1.7976931348623157e308, min(1.7976931348623157e308, value))
            told = (name, number, at, one["id"], step, nan)
            connection.execute("insert or ignore into metrics values (?,?,?,?,?,?)", told)
            latest = (name, number, at, step, nan, one["id"])
            connection.execute("insert or replace into latest_metrics values (?,?,?,?,?,?)", latest)
        for name, value in one["params"].items():
            connection.execute("insert into params values (?,?,?)", (name, value, one["id"]))
    connection.commit()
    connection.close()
    return path


def as_bytes(*runs) -> bytes:
    with tempfile.TemporaryDirectory() as place:
        return database(Path(place) / "made.db", *runs).read_bytes()


def folder(root: Path, *runs) -> Path:
    """The same as `mlruns/`."""
    experiment = root / "1"
    experiment.mkdir(parents=True, exist_ok=True)
    (experiment / "meta.yaml").write_text("artifact_location: file:///a\nexperiment_id: '1'\nname: wine\n")
    for one in runs:
        place = experiment / one["id"]
        for kind in ("metrics", "params", "tags", "artifacts"):
            (place / kind).mkdir(parents=True)
        end = "null" if one["end"] is None else one["end"]
        (place / "meta.yaml").write_text(
            f"artifact_uri: file:///a\nend_time: {end}\nentry_point_name: ''\nexperiment_id: '1'\n"
            f"lifecycle_stage: {one['stage']}\nrun_id: {one['id']}\nrun_name: {one['name']}\n"
            f"run_uuid: {one['id']}\nstart_time: {one['start']}\nstatus: {STATES[one['status']]}\ntags: []\n"
        )
        (place / "tags" / "mlflow.user").write_text("me")
        for name, value in one["params"].items():
            path = place / "params" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value)
        for name, value, at, step in one["points"]:
            path = place / "metrics" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as f:
                f.write(f"{at} {value} {step}\n")
    return root


def small() -> bytes:
    return as_bytes(run("a" * 32, [*curve(), *SYSTEM], params={"max_steps": "20"}), run("b" * 32, name="other"))

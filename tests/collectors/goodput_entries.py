"""Entries of a goodput log, written and read."""

import json
from datetime import UTC, datetime

from collectors.training import goodput_log
from tests.collectors.reading import read, source_of

S = 1_000_000_000
T0 = 1_767_571_200  # 2026-01-05 00:00:00 UTC


def entry(at, payload, job="night-run", insert_id=None, **more):
    """A LogEntry written `at` seconds after T0, of an event at that time."""
    stamp = datetime.fromtimestamp(T0 + at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "logName": "projects/p/logs/goodput_x",
        "timestamp": stamp,
        "severity": "INFO",
        "insertId": insert_id or f"{at}-{json.dumps(payload, sort_keys=True)}",
        "resource": {"type": "global"},
        "jsonPayload": {"job_name": job, **payload},
        **more,
    }


def event(at, key, **more):
    return entry(at, {key: T0 + float(at), **more})


def step(at, number):
    return entry(at, {"step_count": number, "step_start_time": T0 + float(at)})


def lines(entries):
    return "".join(json.dumps(e) + "\n" for e in entries)


def log(tmp_path, entries):
    return read(goodput_log, source_of(tmp_path, entries if isinstance(entries, str | bytes) else lines(entries)))


def spans(got, kind=None):
    """(kind, start, end) in seconds after T0, by order."""
    rows = sorted(got.rows.get("lifecycle", []), key=lambda r: r["order"])
    seconds = [(r["kind"], *((None if r[c] is None else r[c] / S - T0) for c in ("start_ns", "end_ns"))) for r in rows]
    return [s if kind is None else s[1:] for s in seconds if kind in (None, s[0])]


A_JOB = [
    event(0, "job_start_time"),
    event(1, "tpu_init_start_time"),
    event(31, "tpu_init_end_time"),
    event(32, "training_prep_start_time"),
    event(52, "training_prep_end_time"),
    event(53, "data_loading_start_time"),
    event(58, "data_loading_end_time"),
    step(59, 0),
    step(70, 1),
    step(73, 2),
    event(76, "custom_badput_event_start_time", custom_badput_event_type="eval_step"),
    event(80, "custom_badput_event_end_time", custom_badput_event_type="eval_step"),
    step(80, 3),
    event(90, "job_end_time"),
]

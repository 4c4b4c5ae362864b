"""Resiliency events: attempts, waits, checkpoints, from lines in any order."""

import json
import random

import pytest

from collectors.training import resiliency
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
T0 = 1772600400 * S  # 2026-03-04 05:00:00 UTC


def event(minute, kind, job="llama", **more):
    stamp = f"2026-03-04T{5 + minute // 60:02d}:{minute % 60:02d}:00.000000"
    return {"timestamp": stamp, "job_name": job, "event_type": kind, **more}


A_JOB = [
    event(0, "user_scheduled"),
    event(5, "job_started"),
    event(6, "checkpoint_loaded", step=0),
    event(20, "checkpoint_saved", step=100),
    event(40, "checkpoint_saved", step=200),
    event(50, "job_started"),
    event(52, "checkpoint_loaded", step=200),
    event(70, "checkpoint_saved", step=300),
    event(80, "job_terminated"),
    event(90, "job_started"),
    event(95, "user_terminated"),
]


def text_of(events):
    return "".join(json.dumps(e) + "\n" for e in events)


def log(folder, events, name="llama-goodput.log"):
    text = events if isinstance(events, str | bytes) else text_of(events)
    return read(resiliency, source_of(folder, text, name))


def minutes(row):
    return tuple(None if row[k] is None else (row[k] - T0) // (60 * S) for k in ("start_ns", "end_ns"))


def test_attempts_waits_and_checkpoints(tmp_path):
    got = log(tmp_path, A_JOB)
    rows = [(r["kind"], r["attempt"], *minutes(r), r["step"]) for r in got.rows["lifecycle"]]
    assert sorted(rows, key=str) == sorted(
        [
            ("queued", 0, 0, 5, None),
            ("job", 0, 5, None, None),
            ("job", 1, 50, 80, None),
            ("job", 2, 90, 95, None),
            ("checkpoint_save", 0, None, 20, 100),
            ("checkpoint_save", 0, None, 40, 200),
            ("checkpoint_restore", 1, None, 52, 200),
            ("checkpoint_save", 1, None, 70, 300),
        ],
        key=str,
    )
    assert got.facts == {"job_name": "llama"}
    [why] = got.rows["evidence"]
    assert (why["cause"], why["attempt"], why["ts_ns"]) == ("user", 2, T0 + 95 * 60 * S)
    assert "no time zone" in got.reasons() and "nothing was restored" in got.reasons()


def test_the_order_of_lines_does_not_matter(tmp_path):
    shuffled = A_JOB[:]
    random.Random(3).shuffle(shuffled)

    def said(events):
        rows = log(tmp_path, events).rows["lifecycle"]
        return sorted((r["kind"], r["attempt"], *minutes(r), r["step"]) for r in rows if r["start_ns"] is not None)

    assert said(shuffled) == said(A_JOB)


def test_several_processes_tell_of_one_start(tmp_path):
    twice = [event(5, "job_started"), {**event(5, "job_started"), "timestamp": "2026-03-04T05:05:04"}]
    got = log(tmp_path, twice)
    assert len(got.rows["lifecycle"]) == 1 and "several processes" in got.reasons()


def test_a_job_that_still_waits(tmp_path):
    [row] = log(tmp_path, [event(0, "user_scheduled"), event(3, "user_scheduled")]).rows["lifecycle"]
    assert (row["kind"], *minutes(row)) == ("queued", 0, None)


def test_other_jobs_are_named_and_left_out(tmp_path):
    got = log(tmp_path, [*A_JOB, event(1, "job_started", job="other")])
    assert got.facts == {"job_name": "llama"} and "another job's" in got.reasons()
    assert len([r for r in got.rows["lifecycle"] if r["kind"] == "job"]) == 3


def test_an_export_of_cloud_logging(tmp_path):
    entries = [
        {"logName": "projects/p/logs/llama-goodput", "insertId": str(i), "jsonPayload": e} for i, e in enumerate(A_JOB)
    ]
    source = source_of(tmp_path, json.dumps(entries, indent=1))
    assert resiliency.sniff(source) >= 0.9
    assert read(resiliency, source).rows["lifecycle"] == [
        {**r, "source": "input"} for r in log(tmp_path, A_JOB).rows["lifecycle"]
    ]


def test_what_else_an_event_says_is_kept(tmp_path):
    got = log(tmp_path, [event(0, "job_started"), event(1, "checkpoint_saved", step=7, path="/c", size=1)])
    assert json.loads(got.rows["lifecycle"][0]["detail"]) == {"path": "/c", "size": 1}


def test_half_a_line_and_strange_entries(tmp_path):
    odd = {**event(1, "job_started"), "step": {}}
    strange = [{"event_type": "job_started"}, {"event_type": 5}, event(1, "lunch"), odd]
    got = log(tmp_path, text_of([*A_JOB, *strange]) + '{"timestamp": "2026-03-04T07:0')
    assert "none of this log's" in got.reasons() and "no timestamp" in got.reasons()
    assert "ends in the middle" in got.reasons()


def test_a_file_without_events(tmp_path):
    with pytest.raises(InputError, match="no resiliency event"):
        log(tmp_path, '{"a": 1}\n')


@pytest.mark.parametrize(
    ("text", "mine"),
    [(text_of(A_JOB), True), ('{"event_type": "save"}', False), ("job_started", False), ("", False)],
)
def test_sniff(tmp_path, text, mine):
    assert (resiliency.sniff(source_of(tmp_path, text)) >= 0.5) == mine

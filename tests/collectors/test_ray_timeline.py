"""Timelines of Ray, as it wrote them in 2019 and writes them today."""

import gzip
import json
import random

import pytest

from collectors.device import kineto, ray_timeline, viewer
from errors import InputError
from tests.collectors.reading import read, source_of

START_US = 1_700_000_000_000_000.0
ONE, TWO = "worker:" + "1" * 40, "worker:" + "2" * 40


def old(cat, at_us, dur_us, tid=ONE, **more):
    event = {"cat": cat, "name": cat, "pid": "", "tid": tid, "ts": START_US + at_us, "dur": dur_us, "ph": "X"}
    return event | {"cname": "good", "args": {}} | more


def new(cat, at_us, dur_us, pid=0, tid=0, **more):
    args = {"task_id": "c8ef", "job_id": "01", "attempt_number": 1, "func_or_class_name": "f", "actor_id": None}
    return old(cat, at_us, dur_us, tid, pid=pid, args=args | more)


def named(kind, name, pid, tid=None):
    return {"name": kind, "args": {"name": name}, "pid": pid, "tid": tid, "ph": "M"}


OLD = [
    old("task:execute", 10, 80),
    old("task", 0, 100, name="train", args={"name": "train", "task_id": "9fd9"}),
    old("ray.get", 20, 30.5),
    old("worker_idle", 100, 900),
    old("ray.put", 5, 10, "driver:" + "3" * 40),
]
NEW = [
    new("task::f", 0, 100),
    new("task:execute", 10, 80),
    new("task::f", 0, 60, 1, 1),
    new("task::g", 500, 60, 0, 2),
    named("process_name", "Node 10.0.0.1", 0),
    named("process_name", "Node 10.0.0.2", 1),
    named("thread_name", ONE, 0, 0),
    named("thread_name", TWO, 1, 1),
]
VALID = [json.dumps(OLD).encode(), json.dumps(NEW, indent=1).encode()]


def told(tmp_path, events, name="timeline.json"):
    data = events if isinstance(events, str | bytes) else json.dumps(events)
    source = source_of(tmp_path, data, name)
    assert ray_timeline.sniff(source) == 0.95
    return read(ray_timeline, source)


def ops(got):
    keys = ("host", "line", "op", "count", "total_ns", "self_ns")
    return [tuple(row[key] for key in keys) for row in got.rows["ops"]]


def test_2019(tmp_path):
    got = told(tmp_path, OLD)
    assert sorted(ops(got)) == [
        ("timeline", "driver:" + "3" * 40, "ray.put", 1, 10_000, 10_000),
        ("timeline", ONE, "ray.get", 1, 30_500, 30_500),
        ("timeline", ONE, "task:execute", 1, 80_000, 49_500),
        ("timeline", ONE, "train", 1, 100_000, 20_000),
        ("timeline", ONE, "worker_idle", 1, 900_000, 900_000),
    ]
    names = {row["op_id"]: row["op"] for row in got.rows["ops"]}
    events = [(names[r["op_id"]], r["start_ps"], r["dur_ps"]) for r in got.rows["op_events"]]
    assert ("ray.get", 20_000_000, 30_500_000) in events and len(events) == 5
    [capture] = got.rows["captures"]
    assert (capture["host"], capture["devices"]) == ("timeline", None)
    assert (capture["start_ns"], capture["stop_ns"]) == (int(START_US) * 1000, int(START_US) * 1000 + 1_000_000)
    assert [(r["event"], r["name"], r["text_value"]) for r in got.rows["event_stats"]] == [(1, "task_id", "9fd9")]
    assert {r["role"] for r in got.rows["ops"]} == {"host"} and not got.lost


def test_today(tmp_path):
    got = told(tmp_path, NEW)
    assert sorted(ops(got)) == [
        ("10.0.0.1", "thread 2", "task::g", 1, 60_000, 60_000),
        ("10.0.0.1", ONE, "task::f", 1, 100_000, 20_000),
        ("10.0.0.1", ONE, "task:execute", 1, 80_000, 80_000),
        ("10.0.0.2", TWO, "task::f", 1, 60_000, 60_000),
    ]
    assert got.column("captures", "host") == [None] and not got.lost
    stats = [(r["name"], r["int_value"], r["text_value"]) for r in got.rows["event_stats"] if r["event"] == 0]
    assert ("attempt_number", 1, None) in stats and ("func_or_class_name", None, "f") in stats and len(stats) == 4


def test_the_order_of_the_list_changes_nothing(tmp_path):
    kept = sorted(ops(told(tmp_path, NEW)))
    for seed in range(5):
        events = NEW[:]
        random.Random(seed).shuffle(events)
        assert sorted(ops(told(tmp_path, events))) == kept


def test_no_instant_of_a_worker_is_told_twice(tmp_path):
    """Against a count of each microsecond: the event that began last of those that go on, the shorter of two."""
    for seed in range(20):
        at_random = random.Random(seed)
        spans = [(at_random.randrange(60), at_random.randrange(40), n) for n in range(12)]
        got = told(tmp_path, [old("ray.get", start, dur, name=f"n{n}") for start, dur, n in spans])
        own = dict.fromkeys((f"n{n}" for n in range(12)), 0)
        for us in range(100):
            on = [(start, -dur, place, n) for place, (start, dur, n) in enumerate(spans) if start <= us < start + dur]
            if on:
                own[f"n{max(on)[3]}"] += 1000
        assert {row["op"]: row["self_ns"] for row in got.rows["ops"]} == own


def test_what_is_no_event_is_told(tmp_path):
    damaged = [old("ray.get", 0, -5), old("ray.get", float("nan"), 5), old("ray.get", 0, None), old("ray.get", 1e30, 1)]
    far = [old("ray.get", -START_US, 7), old("ray.get", 3, 9e15 - 1)]
    others = [{"ph": "s", "id": 1}, {"ph": "i"}, {}, {"ph": 5, "ts": []}]
    got = told(tmp_path, [*NEW, *damaged, *far, *others])
    assert len(got.rows["op_events"]) == 4 and min(got.column("op_events", "start_ps")) == 0
    assert {(lost.what, lost.reason[:20]) for lost in got.lost} == {
        ("events (4)", "their time is damage"),
        ("events (4)", "neither a name nor a"),
        ("events (2)", "they begin months be"),
    }


def test_a_list_that_is_cut_off_keeps_what_came_before(tmp_path):
    text = json.dumps(OLD)
    got = told(tmp_path, text[: text.rindex("driver")])
    assert len(got.rows["op_events"]) == 4 and "in the middle" in got.reasons()
    packed = gzip.compress(json.dumps(NEW * 2000).encode())
    assert len(told(tmp_path, packed[: len(packed) // 2]).rows["op_events"]) > 100


def test_hostile_names(tmp_path):
    long, odd = "x" * 1_000_000, "a\nb\x1b[31m\ud800"
    events = [*OLD, old(long, 0, 1, tid=long, pid=[]), old(odd, 5, 1, tid={"a": 1}, args={odd: odd, "b": 10**30})]
    got = told(tmp_path, events)
    assert len(got.rows["ops"]) == 7 and max(len(row["op"]) for row in got.rows["ops"]) <= 200


def test_a_list_without_events_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(InputError, match="no event of a worker") as said:
        read(ray_timeline, source_of(tmp_path, json.dumps([named("process_name", "Node 10.0.0.1", 0)])))
    assert "ray timeline" in str(said.value)


@pytest.mark.parametrize(
    "event",
    [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "task", "name": "job", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
        {"cat": "task:execute", "name": "x"},
    ],
)
def test_what_others_write_is_not_claimed(tmp_path, event):
    assert ray_timeline.sniff(source_of(tmp_path, json.dumps([event]))) == 0
    assert ray_timeline.sniff(source_of(tmp_path, json.dumps({"traceEvents": OLD}))) == 0
    for valid in VALID:
        assert kineto.sniff(source_of(tmp_path, valid)) == viewer.sniff(source_of(tmp_path, valid)) == 0


@pytest.mark.parametrize("events", [[old("task", 0, 2e13)], [old("task", 0, 1), old("task", 4e13, 1)]])
def test_a_list_of_which_no_event_can_be_is_refused(tmp_path, events):
    """One of 230 days, and two that are more than a year apart."""
    with pytest.raises(InputError, match="no event that can be"):
        told(tmp_path, events)

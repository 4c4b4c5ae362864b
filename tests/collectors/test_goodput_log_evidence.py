"""Entries of other loggers in a goodput export: what tells of a failure is kept with its cause, time and host."""

import json

import pytest

from catalog.causes import CAUSES, cause_of
from collectors.training import goodput_log
from collectors.training.goodput_log import evidence, spoken
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.test_goodput_log import A_JOB, T0, S, entry, event, lines, step

VM = "projects/p/zones/z/instances/gke-v5p-7b"


def other(at, **more):
    made = entry(at, {}, insert_id=f"other-{at}-{json.dumps(more, sort_keys=True)}")
    return {key: value for key, value in made.items() if key != "jsonPayload"} | more


def preempted(at, **more):
    proto = {"methodName": "compute.instances.preempted", "status": {"message": "Instance was preempted."}}
    return other(at, protoPayload={"@type": "t", **proto, "resourceName": VM}, severity="INFO", **more)


@pytest.fixture(params=["a few", "many"])
def log(request, tmp_path, monkeypatch):
    """Reads entries, those of other loggers looked at one by one or as columns."""
    monkeypatch.setattr(spoken, "_FEW", 1_000_000 if request.param == "a few" else 0)
    return lambda entries: read(goodput_log, source_of(tmp_path, lines(entries)))


@pytest.mark.parametrize("key", ["MESSAGE", "msg", "log"])
def test_what_the_journal_of_a_node_says_becomes_evidence(log, key):
    text = "Memory cgroup out of memory: Killed process 4242 (python3)"
    node = other(72, jsonPayload={key: text, "PRIORITY": "6"}, resource={"labels": {"node_name": "gke-7"}})
    got = log([*A_JOB[:9], node])
    assert [(row["cause"], row["host"], row["text"]) for row in got.rows["evidence"]] == [
        ("host_out_of_memory", "gke-7", text)
    ]


def test_audit_records_text_and_messages_become_evidence(log):
    text = "Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
    entries = [
        *A_JOB[:9],
        preempted(72),
        other(73, textPayload=text, severity="ERROR", resource={"labels": {"node_name": "gke-h100-3"}}),
        other(74, jsonPayload={"message": "RESOURCE_EXHAUSTED: Out of memory allocating"}, severity="WARNING"),
        other(75, textPayload="hello"),
        other(75.5, protoPayload={"methodName": "v1.compute.instances.get"}),
    ]
    got = log(entries)
    rows = got.rows["evidence"]
    assert [row["cause"] for row in rows] == ["preemption", cause_of(text), "device_memory"]
    assert {row["cause"] for row in rows} <= set(CAUSES)
    assert [row["severity"] for row in rows] == ["info", "error", "warning"]
    assert [row["host"] for row in rows] == ["gke-v5p-7b", "gke-h100-3", None]
    assert [row["ts_ns"] for row in rows] == [(T0 + at) * S for at in (72, 73, 74)]
    assert rows[0]["text"] == "compute.instances.preempted: Instance was preempted."
    assert rows[1]["text"] == text
    assert [(row["attempt"], row["step"], row["order"]) for row in rows] == [(0, 1, 9), (0, 1, 10), (0, 1, 11)]
    data = lines(entries).encode()
    for row in rows:
        assert json.loads(data[row["offset"] :].split(b"\n")[0])["insertId"].startswith("other-")
    # what tells of nothing is still counted, what became evidence is not
    assert sum(int(lost.what.split("(")[1].rstrip(")")) for lost in got.lost) == 2


def test_evidence_is_placed_by_time_not_by_position(log):
    entries = [
        event(0, "job_start_time"),
        step(10, 0),
        step(20, 1),
        event(100, "job_start_time"),
        step(110, 2),
        preempted(15),
        preempted(105),
        preempted(500),
        {**preempted(3), "timestamp": "soon"},
    ]
    rows = log(entries).rows["evidence"]
    assert [(row["attempt"], row["step"]) for row in rows] == [(0, 0), (1, 1), (1, 2), (None, None)]


def test_an_error_of_the_job_itself_counts_though_it_is_no_goodput_entry(log):
    bad = {**entry(75, {"message": "NCCL watchdog: collective operation timeout on rank 3"}), "severity": "ERROR"}
    [row] = log([*A_JOB, bad]).rows["evidence"]
    assert row["cause"] == cause_of(bad["jsonPayload"]["message"]) and row["severity"] == "error"


def test_where_the_entry_says_its_host(log):
    vm = {"compute.googleapis.com/resource_name": "vm-1"}
    named = [
        ({"labels": vm, "resource": {"labels": {"node_name": "n-2"}}}, "vm-1"),
        ({"resource": {"labels": {"instance_id": "123", "pod_name": "worker-0"}}}, "worker-0"),
        ({"resource": {"labels": {"instance_id": "123"}}}, "123"),
        ({"resource": {"labels": ["x"]}, "labels": "y"}, None),
    ]
    entries = [other(i, textPayload="Instance was preempted.", **more) for i, (more, _) in enumerate(named)]
    assert [row["host"] for row in log([*A_JOB, *entries]).rows["evidence"]] == [host for _, host in named]


def test_evidence_alone_is_worth_reading(log, tmp_path):
    got = log([preempted(5), other(6, textPayload="nothing")])
    assert got.facts == {} and [row["attempt"] for row in got.rows["evidence"]] == [None]
    assert goodput_log.sniff(source_of(tmp_path, lines([preempted(5)]))) == 0.5
    with pytest.raises(InputError, match="no goodput entry"):
        log([other(6, textPayload="nothing")])


def test_a_line_repeated_without_end_is_kept_in_part_and_counted(log, monkeypatch):
    monkeypatch.setattr(evidence, "KEPT", 3)
    entries = [preempted(i, n=i) for i in range(8)] + [preempted(700, n=n) for n in range(2)]
    got = log([*A_JOB, *entries])
    kept = [round(row["ts_ns"] / S - T0) for row in got.rows["evidence"]]
    assert kept[:3] == [0, 1, 2] and kept[-2:] == [700, 700] and len(kept) < 10
    [lost] = got.lost
    assert lost.what == f"entries that tell of preemption ({10 - len(kept)})"


def test_texts_of_odd_types_cost_only_themselves(log):
    entries = [
        other(1, textPayload=5, jsonPayload={"message": ["x"]}),
        other(3, protoPayload=[1]),
        other(2, protoPayload={"status": "x", "methodName": 3}),
        other(4, textPayload="Instance was preempted." + "x" * 2_000),
        preempted(5),
        other(6, textPayload="Instance was preempted. \ud83d"),
    ]
    rows = log([*A_JOB, *entries]).rows["evidence"]
    assert [row["cause"] for row in rows] == ["preemption"] * 3
    assert len(rows[0]["text"]) == spoken.TEXT_LIMIT and rows[2]["text"].endswith("?")


def test_evidence_of_a_job_whose_events_are_all_repeated_stands_nowhere_in_it(log):
    told = preempted(0)
    other_job = entry(1, {"job_start_time": T0}, job="x", insert_id="a")
    named_after = {"logName": "projects/p/logs/goodput_night-run"}
    mine = entry(1, {"job_start_time": T0, "job_end_time": T0}, insert_id="a") | named_after
    [row] = log([told, other_job, mine]).rows["evidence"]
    assert (row["attempt"], row["step"]) == (None, None)

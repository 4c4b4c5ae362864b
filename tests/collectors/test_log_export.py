"""A job's output out of JSON exports: in order of time, whatever the order, the host by its pod, each entry once."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Source
from collectors.ingest import ingest
from collectors.ingesting.log_export import is_export, take_out
from collectors.ingesting.unpack import SafeSource
from runs.tables import frame
from tests.collectors.job_entries import entry as goodput_entry
from tests.collectors.test_megatron import new as megatron_line

T0 = 1_772_625_600  # 2026-03-04 12:00:00 UTC


def stamp(second):
    return f"2026-03-04T12:{int(second) // 60:02d}:{int(second) % 60:02d}.{round(second % 1 * 1e9):09d}Z"


def entry(second, text, pod="w-0", number=None, **more):
    labels = {"pod_name": pod, "container_name": "train", "project_id": "p"}
    made = {
        "textPayload": text,
        "timestamp": stamp(second),
        "severity": "INFO",
        "logName": "projects/p/logs/stdout",
        "resource": {"type": "k8s_container", "labels": labels},
    }
    return made | ({} if number is None else {"insertId": f"id{number:05d}"}) | more


def step(n, loss=2.0):
    return f"completed step: {n}, seconds: 2.000, TFLOP/s/device: 100.000, Tokens/s/device: 1000.000, loss: {loss:.3f}"


def training(pods=("w-0",), steps=20):
    return [entry(2 * n + p / 10, step(n), pod, n * len(pods) + p) for n in range(steps) for p, pod in enumerate(pods)]


def taken(folder, text, name="export.json"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = take_out(Source(path, name), folder / "lines")
    return (folder / "lines").read_text().splitlines(), found


def run_of(folder, store, text, name="export.json"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return store.get(ingest([path], store).run_id)


LAYOUTS = {
    "pretty": lambda found: json.dumps(found, indent=2),
    "array": json.dumps,
    "lines": lambda found: "".join(json.dumps(one) + "\n" for one in found),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", ["newest first", "oldest first", "mixed"])
def test_twenty_good_steps(folder, store, layout, order):
    entries = training()
    if order == "newest first":
        entries.reverse()
    elif order == "mixed":
        random.Random(3).shuffle(entries)
    run = run_of(folder, store, LAYOUTS[layout](entries))
    steps = frame(run.tables, "steps", ["attempt", "step", "host", "logged_ns"])
    assert steps["step"].tolist() == list(range(20)) and set(steps["attempt"]) == {0} and set(steps["host"]) == {"w-0"}
    assert steps["logged_ns"].tolist() == [(T0 + 2 * n) * 10**9 for n in range(20)]
    assert any("order of time" in w for w in run.manifest.warnings) is (order != "oldest first")
    assert run.manifest.sources[0]["collector"] == "maxtext"


def test_pods_are_hosts(folder, store):
    run = run_of(folder, store, json.dumps(training(("w-0", "w-1"))[::-1], indent=2))
    steps = frame(run.tables, "steps", ["attempt", "step", "host"])
    assert steps["host"].value_counts().to_dict() == {"w-0": 20, "w-1": 20} and set(steps["attempt"]) == {0}


def test_messages_of_json_payloads_and_gzip(folder, store):
    entries = [
        {k: v for k, v in e.items() if k != "textPayload"} | {"jsonPayload": {"message": e["textPayload"]}}
        for e in training()
    ]
    run = run_of(folder, store, gzip.compress(json.dumps(entries[::-1]).encode()), "export.json.gz")
    assert run.manifest.tables["steps"] == 20


def test_megatron_lines(folder, store):
    lines = [" using world size: 2, data-parallel size: 2, tensor-model-parallel size: 1", "  log_interval ...... 1"]
    lines += [megatron_line(n, n, 1000.0) for n in range(1, 5)]
    entries = [entry(n, line.rstrip("\n")) for n, line in enumerate(lines)]
    run = run_of(folder, store, json.dumps(entries[::-1], indent=2))
    assert run.manifest.sources[0]["collector"] == "megatron" and run.manifest.facts["chips"].value == 2
    assert frame(run.tables, "steps", ["step"])["step"].tolist() == [1, 2, 3, 4]


def test_preemptions_of_a_server_are_counted_once(folder, store):
    """The counter of warnings rises; read from the newest on it would begin anew with each line."""
    texts = []
    for n in range(20):
        at = f"03-04 12:00:{n:02d}"
        if n:
            texts.append(
                f"WARNING {at} [scheduler.py:1] Sequence group {n} is preempted by PreemptionMode.RECOMPUTE "
                f"mode because there is not enough KV cache space. total_num_cumulative_preemption={n}"
            )
        texts.append(
            f"INFO {at} [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
            "throughput: 2.0 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 50.0%"
        )
    entries = [entry(n / 2, text, "vllm-0", n) for n, text in enumerate(texts)]
    run = run_of(folder, store, json.dumps(entries[::-1], indent=2))
    engine = frame(run.tables, "engine", ["ts_ns", "replica", "preemptions"])
    assert engine["preemptions"].tolist() == list(range(20)) and engine["ts_ns"].is_monotonic_increasing
    assert set(engine["replica"]) == {"vllm-0/0"}


def test_lines_of_docker(folder, store):
    lines = [{"log": step(n) + "\n", "stream": "stdout", "time": stamp(2 * n)} for n in range(5)]
    head, tail = lines[2]["log"][:20], lines[2]["log"][20:]
    lines[2:3] = [lines[2] | {"log": head}, lines[2] | {"log": tail}]  # Docker cuts long lines into pieces
    run = run_of(folder, store, "\n".join(map(json.dumps, lines)), "container-json.log")
    assert frame(run.tables, "steps", ["step"])["step"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("mark", ["_p", "logtag", None])
@pytest.mark.parametrize("newest_first", [True, False])
def test_lines_of_containerd_have_no_line_feed(folder, store, mark, newest_first):
    lines = [
        {"@timestamp": stamp(2 * n), "stream": "stdout", "log": step(n), "kubernetes": {"pod_name": "w-0"}}
        | ({mark: "F"} if mark else {})
        for n in range(20)
    ]
    if mark:
        head, tail = step(7)[:20], step(7)[20:]
        lines[7:8] = [lines[7] | {"log": head, mark: "P"}, lines[7] | {"log": tail}]
    run = run_of(folder, store, "\n".join(map(json.dumps, lines[:: -1 if newest_first else 1])))
    assert frame(run.tables, "steps", ["step"])["step"].tolist() == list(range(20))
    assert not run.manifest.warnings or newest_first


@pytest.mark.parametrize("newest_first", [True, False])
def test_pieces_of_lines_are_joined_to_those_of_their_own_container(tmp_path, newest_first):
    def piece(second, text, pod):
        return {"log": text, "stream": "stderr", "time": stamp(second), "kubernetes": {"pod_name": pod}}

    told = [("a begins, ", "w-0"), ("b\n", "w-1"), ("a ends\n", "w-0"), ("c begins, ", "w-1"), ("d\n", "w-0")]
    entries = [piece(n, text, pod) for n, (text, pod) in enumerate(told)]
    lines, found = taken(tmp_path, json.dumps(entries[:: -1 if newest_first else 1]))
    assert [line.partition("Z ")[2] for line in lines] == ["b", "a begins, a ends", "d"] and found.count == 3
    assert [line.partition("]")[0] for line in lines] == ["[pod/w-1/", "[pod/w-0/", "[pod/w-0/"]
    assert "lines (1): the file ends in the middle of them" in found.notes


KILLED = "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB"
PREEMPTED = {
    "methodName": "compute.instances.preempted",
    "status": {"message": "Instance was preempted."},
    "resourceName": "projects/p/zones/z/instances/gke-w-7",
}


def unspoken(second, **more):
    made = entry(second, "", number=900 + second, **more)
    return {key: value for key, value in made.items() if key != "textPayload"}


@pytest.mark.parametrize("key", ["message", "MESSAGE", "msg", "log"])
def test_what_a_node_and_an_audit_record_say_is_read_among_the_lines(folder, store, key):
    node = unspoken(41, jsonPayload={key: KILLED, "PRIORITY": "6"})
    audit, silent = unspoken(42, protoPayload=PREEMPTED), unspoken(43, httpRequest={"status": 200})
    run = run_of(folder, store, json.dumps([*training(), node, audit, silent]))
    told = frame(run.tables, "evidence", ["cause", "text", "host"])
    said = [text.partition("Z ")[2] for text in told["text"]]
    assert said == [KILLED, "compute.instances.preempted: Instance was preempted."]
    assert told["cause"].tolist() == ["host_out_of_memory", "preemption"] and told["host"].tolist() == [
        "w-0",
        "gke-w-7",
    ]
    assert run.manifest.warnings[0] == "export.json: entries (1): they hold no line of text"


def test_goodput_entries_beside_the_lines_are_read_too(folder, store):
    times = [
        goodput_entry((T0 + 2 * n) * 10**9, {"step_count": n, "step_start_time": float(T0 + 2 * n)}, "night", n)
        for n in range(3)
    ]
    padding = [entry(0, "x" * 1000, number=500 + n) for n in range(100)]
    run = run_of(folder, store, json.dumps([*padding, *training(), *times]))
    steps = frame(run.tables, "steps", ["step", "dur_ns", "format"])
    assert steps["format"].value_counts().to_dict() == {"maxtext": 20, "goodput_log": 3}
    assert run.manifest.facts["job_name"].value == "night"


def test_what_a_goodput_log_reads_stays_with_it(folder, store):
    entries = [
        goodput_entry((T0 + 2 * n) * 10**9, {"step_count": n, "step_start_time": float(T0 + 2 * n)}, "night", n)
        for n in range(3)
    ]
    run = run_of(folder, store, json.dumps([*entries, entry(9, "ValueError: no")]))
    assert run.manifest.sources[0]["collector"] == "goodput_log" and run.manifest.tables["evidence"] == 1


def test_entries_told_twice_and_ties(tmp_path):
    entries = [entry(1, "b", number=2), entry(1, "a", number=1), entry(0, "first", number=9), entry(1, "b", number=2)]
    lines, found = taken(tmp_path, json.dumps(entries))
    assert [line.split("Z ")[1] for line in lines] == ["first", "a", "b"] and found.count == 3
    assert any("entries (1): each has the insertId and timestamp of an earlier one" in note for note in found.notes)


def test_equal_times_keep_the_order_of_the_file(tmp_path):
    oldest = [entry(n // 3, str(n), number=n * 7 % 5) for n in range(9)]
    for entries in (oldest, oldest[::-1]):
        lines, _ = taken(tmp_path, json.dumps(entries))
        assert [line.split("Z ")[1] for line in lines] == [str(n) for n in range(9)]


def test_several_lines_in_one_entry_and_odd_names(tmp_path):
    lines, _ = taken(tmp_path, json.dumps([entry(0, "a\nb\n\nc", "pod ]/x\n")]))
    assert lines == [f"[pod/pod-x-/train] {stamp(0)} {text}" for text in ("a", "b", "", "c")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"time": 1_772_625_600}, "2026-03-04T12:00:00.000000000Z x"),
        ({"time": 1_772_625_600_500}, "2026-03-04T12:00:00.500000000Z x"),
        ({"ts": "1772625600500000001"}, "2026-03-04T12:00:00.500000001Z x"),
        ({"@timestamp": "2026-03-04T13:00:00+01:00"}, "2026-03-04T12:00:00.000000000Z x"),
        ({"@timestamp": "Mar 4, 2026 @ 12:00:00.500"}, "2026-03-04T12:00:00.500000000Z x"),
        ({"ts": "1772625600.500000001"}, "2026-03-04T12:00:00.500000001Z x"),
        ({"time": "04/Mar/2026:13:00:00 +0100"}, "2026-03-04T12:00:00.000000000Z x"),
        ({"time": "build 1.2.3 of Mar"}, "x"),
        ({}, "x"),
        ({"kubernetes": {"pod_name": "p"}}, "[pod/p/] x"),
        ({"kubernetes": {"pod": {"name": "p"}, "container": {"name": "c"}}, "host": {"name": "n"}}, "[pod/p/c] x"),
        ({"kubernetes": {"pod": {"name": 3}, "node": {"name": "n"}}, "host": {"name": "h"}}, "[pod/n/] x"),
        ({"host": {"name": "h"}, "agent": {"name": "a"}}, "[pod/h/] x"),
        ({"resource": {"attributes": {"k8s.pod.name": "p"}}}, "[pod/p/] x"),
        ({"labels": {"k8s_pod_name": "p", "hostname": "h"}}, "[pod/p/] x"),
        ({"time": float("inf")}, "x"),
        ({"time": True}, "x"),
    ],
)
def test_times_and_places_of_agents(tmp_path, more, expected):
    assert taken(tmp_path, json.dumps({"message": "x"} | more))[0] == [expected]


def test_entries_without_a_time_stay_where_they_are(tmp_path):
    entries = [entry(1, "b"), entry(0, "a"), entry(5, "c"), {"textPayload": "d"}, entry(6, "e")]
    lines, found = taken(tmp_path, json.dumps(entries))
    assert [line.split("Z ")[-1] for line in lines] == ["a", "b", "c", "d", "e"]
    assert any("without a time" in note for note in found.notes)


@pytest.mark.parametrize("text", ['{"requests": []}', "completed step: 1", "", '{"a": 1}'])
def test_what_is_no_export(tmp_path, text):
    (tmp_path / "x").write_text(text)
    assert not is_export(SafeSource(tmp_path / "x", "x"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.text(max_size=5), st.sampled_from(["", "a", "b", "c"])), max_size=30))
def test_any_entries(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("x")
    entries = [entry(s, t) | ({"insertId": i} if i else {}) for s, t, i in found]
    lines, result = taken(folder, json.dumps(entries) if entries else "[]")
    kept = {(s, i) for s, _, i in found if i}
    assert result.count == len(kept) + sum(not i for *_, i in found)
    stamps = [line.split(" ")[1] for line in lines if line.startswith("[pod/w-0/train] 2026")]
    assert stamps == sorted(stamps)


def test_a_damaged_export_is_no_crash(folder, store):
    text = json.dumps(training()[::-1], indent=2)
    run = run_of(folder, store, text[: len(text) // 2])
    assert 0 < run.manifest.tables["steps"] < 20 and any("not valid JSON" in w for w in run.manifest.warnings)


@pytest.mark.parametrize("message", [[], [300], [-1], ["a", "b"], [1.5], None, {}])
def test_what_is_neither_a_text_nor_its_bytes_is_no_line(tmp_path, message):
    lines, found = taken(tmp_path, json.dumps([entry(1, "a"), {"MESSAGE": message}]))
    assert len(lines) == 1 and any("hold no line of text" in note for note in found.notes)

"""Exports of logs as each service hands them out: tables, documents, JSON; whole, hostile and cut off."""

import csv
import gzip
import io
import json
import random
import time

import pytest
import yaml

from errors import InputError
from runs.tables import frame
from tests.collectors.test_log_export import T0, run_of, taken, training

TABLES = ("console", "cloudwatch console", "grafana", "splunk's table")
ANSWERS = ("loki", "cloudwatch", "elastic", "datadog", "splunk's results", "cloudwatch query")


def table(entries):
    cells = [[e["insertId"], "", "w-0", e["textPayload"], e["timestamp"]] for e in entries]
    text = io.StringIO()
    names = ["insertId", "jsonPayload.message", "resource.labels.pod_name", "textPayload", "timestamp"]
    csv.writer(text).writerows([names, *cells])
    return text.getvalue()


def cloudwatch_table(entries):
    cells = [[e["timestamp"][:23].replace("T", " "), e["textPayload"], "w-0"] for e in entries]
    text = io.StringIO()
    csv.writer(text).writerows([["@timestamp", "@message", "@logStream"], *cells])
    return text.getvalue()


def grafana_table(entries):
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows(
        [["Time", "Line", "pod"], *([e["timestamp"], e["textPayload"], "w-0"] for e in entries)]
    )
    return text.getvalue()


def kibana_table(entries):
    text = io.StringIO()
    shown = [f"Mar 4, 2026 @ {e['timestamp'][11:23]}" for e in entries]
    cells = ([at, e["textPayload"], "w-0"] for at, e in zip(shown, entries, strict=True))
    csv.writer(text).writerows([["@timestamp", "message", "pod"], *cells])
    return text.getvalue()


def splunk_table(entries):
    text = io.StringIO()
    csv.writer(text).writerows([["_raw", "_time", "host"], *([e["textPayload"], spaced(e), "w-0"] for e in entries)])
    return text.getvalue()


def spaced(entry, zone=" UTC"):
    return f"{entry['timestamp'][:23].replace('T', ' ')}{zone}"


def services(entries):
    """The same entries as each service hands them out."""
    timed = [
        (round((T0 + float(e["timestamp"][14:16]) * 60 + float(e["timestamp"][17:26])) * 1e9), e["textPayload"])
        for e in entries
    ]
    return {
        "console": table(entries),
        "cloudwatch console": cloudwatch_table(entries),
        "grafana": grafana_table(entries),
        "kibana": kibana_table(entries),
        "gcloud": "".join("---\n" + yaml.safe_dump(e, width=80) for e in entries),
        "loki": json.dumps(
            {
                "status": "success",
                "data": {
                    "resultType": "streams",
                    "result": [{"stream": {"pod": "w-0"}, "values": [[str(at), text] for at, text in timed]}],
                },
            }
        ),
        "cloudwatch": json.dumps(
            {"events": [{"logStreamName": "w-0", "timestamp": at // 10**6, "message": text} for at, text in timed]}
        ),
        "elastic": json.dumps(
            {
                "hits": {
                    "hits": [
                        {"_source": {"@timestamp": e["timestamp"], "message": e["textPayload"], "host": "w-0"}}
                        for e in entries
                    ]
                }
            }
        ),
        "datadog": json.dumps(
            {
                "data": [
                    {
                        "id": "AwAAA",
                        "type": "log",
                        "attributes": {
                            "timestamp": e["timestamp"],
                            "host": "i-0abc",
                            "tags": ["env:prod", "pod_name:w-0"],
                            "message": e["textPayload"],
                            "attributes": {"n": 1},
                        },
                    }
                    for e in entries
                ],
                "meta": {"status": "done"},
            }
        ),
        "splunk": "\n".join(
            json.dumps({"offset": n, "result": {"_raw": e["textPayload"], "_time": spaced(e), "host": "w-0"}})
            for n, e in enumerate(entries)
        ),
        "splunk's results": json.dumps(
            {
                "fields": [{"name": "_raw"}],
                "results": [{"_raw": e["textPayload"], "_time": spaced(e), "host": "w-0"} for e in entries],
            }
        ),
        "splunk's table": splunk_table(entries),
        "cloudwatch query": json.dumps(
            {
                "results": [
                    [
                        {"field": "@timestamp", "value": spaced(e, "")},
                        {"field": "@logStream", "value": "w-0"},
                        {"field": "@message", "value": e["textPayload"]},
                    ]
                    for e in entries
                ],
                "status": "Complete",
            }
        ),
        "cloudwatch query, downloaded": json.dumps(
            [{"@timestamp": spaced(e, ""), "@message": e["textPayload"], "@logStream": "w-0"} for e in entries]
        ),
        "fluent bit": "\n".join(
            json.dumps({"date": at / 1e9, "log": text, "kubernetes": {"pod_name": "w-0"}}) for at, text in timed
        ),
        "journal": "\n".join(
            json.dumps({"__REALTIME_TIMESTAMP": str(at // 1000), "_HOSTNAME": "w-0", "MESSAGE": text})
            for at, text in timed
        ),
        "journal, in colour": "\n".join(
            json.dumps({"__REALTIME_TIMESTAMP": str(at // 1000), "_HOSTNAME": "w-0", "MESSAGE": coloured(text, at)})
            for at, text in timed
        ),
    }


def coloured(text, at):
    """Every other line, as a journal writes it."""
    return list(f"\x1b[32m{text}\x1b[0m".encode()) if at // 10**9 % 4 else text


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("service", list(services([])))
def test_what_services_hand_out(folder, store, service, newest_first):
    run = run_of(folder, store, services(training()[:: -1 if newest_first else 1])[service], "export.txt")
    steps = frame(run.tables, "steps", ["attempt", "step", "host", "logged_ns"])
    assert steps["step"].tolist() == list(range(20)) and set(steps["attempt"]) == {0} and set(steps["host"]) == {"w-0"}
    assert steps["logged_ns"].tolist() == pytest.approx([(T0 + 2 * n) * 10**9 for n in range(20)], abs=10**6)


@pytest.mark.parametrize("service, said", [("kibana", True), ("cloudwatch console", True), ("grafana", False)])
def test_times_of_a_table_without_a_zone_are_said_to_be_read_as_utc(folder, store, service, said):
    run = run_of(folder, store, services(training())[service], "export.csv")
    assert any("no time zone and were read as UTC" in warning for warning in run.manifest.warnings) is said


def test_broken_documents_and_tables(folder, store):
    text = services(training())["gcloud"]
    broken = text.replace("textPayload: 'completed step: 7", "textPayload: ['completed step: 7", 1)
    assert broken != text
    run = run_of(folder, store, broken, "export.yaml")
    assert run.manifest.tables["steps"] == 19 and any("not valid YAML" in w for w in run.manifest.warnings)
    unclosed = services(training())["console"] + 'x,,w-0,"' + "y" * 200_000
    assert run_of(folder, store, unclosed, "export.csv").manifest.tables["steps"] == 20


@pytest.mark.parametrize("opens", ["[", "{a: "])
def test_a_document_that_nests_without_end_is_told_and_the_others_are_read(folder, store, opens):
    hostile = "---\ninsertId: x\njsonPayload: " + opens * 100_000 + "\n"
    run = run_of(folder, store, services(training())["gcloud"] + hostile, "export.yaml")
    assert run.manifest.tables["steps"] == 20 and any("not valid YAML" in w for w in run.manifest.warnings)


def test_a_document_of_one_long_line_is_passed_over_at_once(folder, store):
    hostile = "---\ninsertId: x\ntextPayload: " + "x" * (32 << 20) + "\n"
    began = time.process_time()
    run = run_of(folder, store, services(training())["gcloud"] + hostile, "export.yaml")
    assert run.manifest.tables["steps"] == 20 and time.process_time() - began < 20
    assert any("documents (1): they are longer than 4,194,304 bytes" in w for w in run.manifest.warnings)


def test_a_table_with_a_long_line_keeps_hosts_and_times(folder, store):
    entries = training()
    entries.insert(5, {**entries[5], "textPayload": f"Config: {'x' * 200_000}", "insertId": "long"})
    run = run_of(folder, store, services(entries[::-1])["console"], "export.csv")
    steps = frame(run.tables, "steps", ["step", "host", "logged_ns"])
    assert steps["step"].tolist() == list(range(20)) and set(steps["host"]) == {"w-0"}
    assert steps["logged_ns"].tolist() == pytest.approx([(T0 + 2 * n) * 10**9 for n in range(20)], abs=10**6)


def test_a_column_of_very_many_parts_takes_no_time(folder, store):
    rows = services(training())["console"].splitlines()
    text = "\n".join(
        [f"{rows[0]},{'a.' * 16_000}", *(f"{row},x" for row in rows[1:]), *(f"{rows[1]},x" for _ in range(5000))]
    )
    began = time.process_time()
    assert run_of(folder, store, text, "export.csv").manifest.tables["steps"] == 20
    assert time.process_time() - began < 20


@pytest.mark.parametrize("harm", ["cut", "sum"])
@pytest.mark.parametrize("service", [*TABLES, "gcloud", "fluent bit", "journal", *ANSWERS])
def test_a_packed_export_that_breaks_off_gives_what_came_before(folder, store, service, harm):
    noise = random.Random(1)
    entries = training()
    for one in entries:
        one["textPayload"] += f" {noise.randbytes(2000).hex()}"
    packed = gzip.compress(services(entries)[service].encode())
    run = run_of(folder, store, packed[: len(packed) * 3 // 4] if harm == "cut" else packed[:-8] + bytes(8), "x.gz")
    steps = frame(run.tables, "steps", ["step", "host", "logged_ns"]).dropna(subset=["host"])
    read = range(20) if harm == "sum" else range(len(steps))
    assert steps["step"].tolist() == list(read) and len(steps) >= 12 and set(steps["host"]) == {"w-0"}
    assert steps["logged_ns"].tolist() == pytest.approx([(T0 + 2 * n) * 10**9 for n in read], abs=10**6)
    assert any(w.startswith("x.gz: the rest: it cannot be read (") for w in run.manifest.warnings)


@pytest.mark.parametrize("service", ANSWERS)
def test_an_answer_that_is_too_long_for_one_object_or_was_cut_off_gives_each_entry(folder, store, service):
    whole = services(training())[service].replace("loss: 2.000", f"loss: 2.000 {'x' * 250_000}")
    for told, text in ((20, f"{whole}\n"), (19, whole[:-250_000]), (20, f"{whole}\n{whole}"), (20, f"{whole} more")):
        lines, found = taken(folder, text)
        assert len(lines) == (20 + told if text.count(whole) == 2 else told) and found.count == len(lines)
        assert any("file ends in the middle of it" in note for note in found.notes) is (told == 19)
        assert any("they are no JSON objects" in note for note in found.notes) is text.endswith(" more")
    steps = frame(run_of(folder, store, whole[:-250_000]).tables, "steps", ["step", "host", "logged_ns"])
    assert steps["step"].tolist() == list(range(19)) and set(steps["host"]) == {"w-0"}
    assert steps["logged_ns"].tolist() == pytest.approx([(T0 + 2 * n) * 10**9 for n in range(19)], abs=10**6)


@pytest.mark.parametrize("service", ANSWERS)
@pytest.mark.parametrize("between", ["\n", ",\n", "\npage 2\n"])
def test_answers_behind_one_another_are_all_read_where_one_entry_is_broken(folder, service, between):
    pages = [training()[:10], training()[10:]]
    for page in pages:
        page[0]["textPayload"] += " x" * 50_000
    one, other = (services(page)[service] for page in pages)
    for first, told in ((one, 20), (one.replace("completed step: 4", "completed \\q step: 4"), 19)):
        lines, found = taken(folder, f"{first}{between}{other}")
        assert len(lines) == told
        assert any("not valid JSON" in note for note in found.notes) is (told == 19)
        assert any("no JSON objects" in note for note in found.notes) is ("page" in between)


def test_labels_behind_the_lines_of_a_stream_and_lists_within_an_entry(folder):
    answer = json.loads(services(training())["loki"])
    for part in answer["data"]["result"]:
        part["stream"] = part.pop("stream")
    assert len(taken(folder, f"{json.dumps(answer)}{' ' * (1 << 16)}")[0]) == 20
    entries = ({"message": e["textPayload"], "timestamp": e["timestamp"], "events": [{"n": 1}]} for e in training())
    long = {"message": "start", "timestamp": training()[0]["timestamp"], "events": [{"n": "x" * (1 << 16)}]}
    assert len(taken(folder, "".join(f"{json.dumps(e)}\n" for e in (long, *entries)))[0]) == 21


@pytest.mark.parametrize("service", ANSWERS)
def test_an_answer_is_read_as_far_as_it_goes_wherever_it_ends(folder, service):
    """What is told of a longer part of it begins with what is told of a shorter one."""
    entries = training()
    entries[3]["textPayload"] += ' "values": [["1", "{\\"events\\": [é'
    whole, before = services(entries)[service] + " " * (1 << 16), []
    for end in range(0, len(whole.rstrip()), 37):
        lines, _ = taken(folder, (whole[:end]).encode()[:end])
        assert lines[: len(before)] == before and len(lines) <= 20
        before = lines
    assert len(before) >= 19


def test_a_table_whose_last_row_was_cut_off_tells_of_no_host_more(folder, store):
    text = services(training())["cloudwatch console"]
    cut = text.rstrip().rpartition(",")[0]
    run = run_of(folder, store, cut, "export.csv")
    assert set(frame(run.tables, "steps", ["host"])["host"]) == {"w-0"} and run.manifest.tables["steps"] == 19
    assert any("the last row (1): it is cut off" in w for w in run.manifest.warnings)


def test_a_packed_log_of_the_newest_first_that_breaks_off_is_turned_round(folder, store):
    noise = random.Random(1)
    lines = [f"{e['timestamp']} {e['textPayload']} {noise.randbytes(2000).hex()}\n" for e in training()[::-1]]
    packed = gzip.compress("".join(lines).encode())
    run = run_of(folder, store, packed[: len(packed) * 3 // 4], "train.log.gz")
    steps = frame(run.tables, "steps", ["attempt", "step"])
    assert set(steps["attempt"]) == {0} and steps["step"].tolist() == list(range(20 - len(steps), 20))
    assert len(steps) >= 12 and any("the rest: it cannot be read (" in w for w in run.manifest.warnings)


def test_a_separator_that_is_not_quoted_makes_no_other_row_one_that_was_cut_off(tmp_path):
    told = ["one", "two, and more", "the last: CUDA out of memory"]
    rows = "".join(f"2026-03-04T05:00:0{n}Z,{text}\n" for n, text in enumerate(told))
    lines, found = taken(tmp_path, f"timestamp,message\n{rows}", "export.csv")
    assert len(lines) == 3 and told[2] in lines[2] and not any("cut off" in note for note in found.notes)


@pytest.mark.parametrize("padding", [0, 1 << 17])
@pytest.mark.parametrize("indent", [None, 4])
def test_events_of_kubernetes_tell_when_and_of_what(folder, store, padding, indent):
    """`kubectl get events` prints ages alone; with `-o json` it was refused as JSON of a kind that is not known."""
    about = {"kind": "Pod", "name": "w-3"}
    old = {"kind": "Event", "involvedObject": about, "message": "Preempted by pod w-9 on node gke-n3", "type": "Normal"}
    new = {"kind": "Event", "regarding": {"kind": "Node", "name": "gke-n1"}, "note": "Node is not ready"}
    events = [
        {**old, "reason": "Preempted", "lastTimestamp": "2026-03-04T05:03:35Z", "metadata": "x" * padding},
        {**new, "reason": "NodeNotReady", "lastTimestamp": None, "eventTime": "2026-03-04T05:09:00.500000Z"},
    ]
    told = json.dumps({"apiVersion": "v1", "items": events, "kind": "List"}, indent=indent)
    rows = frame(run_of(folder, store, told, "events.json").tables, "evidence", ["cause", "host", "ts_ns", "text"])
    assert rows["cause"].tolist() == ["preemption", "host"] and rows["host"].tolist() == ["gke-n3", "gke-n1"]
    assert rows["ts_ns"].tolist() == [1772600615 * 10**9, 1772600940 * 10**9 + 5 * 10**8]
    assert rows["text"][0].endswith("Normal Preempted pod/w-3 Preempted by pod w-9 on node gke-n3")


def test_an_export_of_no_log_of_a_known_program_is_one_whatever_its_name(folder, store):
    lines = [{"time": f"2026-03-04T05:03:{n:02d}Z", "level": "info", "msg": "waiting"} for n in range(20)]
    lines.append({"time": "2026-03-04T05:04:00Z", "level": "error", "msg": "NVRM: Xid (PCI:0000:c6:00): 79"})
    run = run_of(folder, store, "\n".join(map(json.dumps, lines)), "launcher.json")
    assert frame(run.tables, "evidence", ["cause"])["cause"].tolist() == ["accelerator"]
    for one in lines:
        del one["time"]
    with pytest.raises(InputError, match="no file of a known format"):
        run_of(folder, store, "\n".join(map(json.dumps, lines)), "prompts.json")


def test_a_list_of_messages_that_is_no_log_is_none(folder, store):
    """Commits, an answer of a chat: dated, and neither how severe nor whose output."""
    told = [{"date": f"2026-03-04T05:0{n}:00Z", "message": "Fix CUDA error: out of memory"} for n in range(3)]
    with pytest.raises(InputError, match="no file of a known format"):
        run_of(folder, store, json.dumps(told), "commits.json")

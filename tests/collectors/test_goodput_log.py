"""Goodput logs: every kind of entry, and everything that goes wrong with logs."""

import gzip
import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.reading import json_stream, textlog
from collectors.training import goodput_log
from tests.collectors.goodput_entries import A_JOB, T0, S, entry, event, lines, log, spans, step
from tests.collectors.reading import read, source_of


def test_a_whole_job(tmp_path):
    got = log(tmp_path, A_JOB)
    assert got.facts == {"job_name": "night-run"} and not got.lost
    assert spans(got) == [
        ("job", 0, 90),
        ("accelerator_initialization", 1, 31),
        ("training_preparation", 32, 52),
        ("data_loading", 53, 58),
        ("custom", 76, 80),
    ]
    assert [r["detail"] for r in got.rows["lifecycle"] if r["kind"] == "custom"] == ["eval_step"]
    assert [(r["step"], r["start_ns"] - T0 * S, r["dur_ns"]) for r in got.rows["steps"]] == [
        (0, 59 * S, None),
        (1, 70 * S, None),
        (2, 73 * S, None),
        (3, 80 * S, None),
    ]
    [job] = [r for r in got.rows["lifecycle"] if r["kind"] == "job"]
    assert (job["order"], job["end_order"]) == (0, len(A_JOB) - 1)
    assert (job["logged_ns"], job["end_logged_ns"]) == (T0 * S, (T0 + 90) * S)


FORMS = {
    "JSON lines": lines,
    "JSON lines, no end of the last": lambda es: lines(es).rstrip(),
    "an array in one line": json.dumps,
    "an array, compact": lambda es: json.dumps(es, separators=(",", ":")),
    "an array, indented": lambda es: json.dumps(es, indent=2),
    "objects, indented, one after another": lambda es: "".join(json.dumps(e, indent=1) + "\n" for e in es),
    "with a byte order mark": lambda es: "\ufeff" + json.dumps(es),
    "with CRLF": lambda es: lines(es).replace("\n", "\r\n"),
    "an array never closed": lambda es: json.dumps(es)[:-1],
    "gzipped": lambda es: gzip.compress(lines(es).encode()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", [97, 1 << 20])
def test_every_form_of_export_reads_alike(tmp_path, monkeypatch, form, chunk):
    monkeypatch.setattr(json_stream, "CHUNK", chunk)
    content = FORMS[form](A_JOB)
    source = source_of(tmp_path, content)
    assert goodput_log.sniff(source) == 0.95
    got = read(goodput_log, source)
    assert got.rows == log(tmp_path, A_JOB).rows and not got.lost


def test_the_newest_first_as_gcloud_lists_them(tmp_path):
    # Two entries at the same moment: their order in the file must turn around too.
    entries = [*A_JOB[:3], event(31, "training_prep_start_time"), *A_JOB[4:]]
    forward, backward = log(tmp_path, entries), log(tmp_path, entries[::-1])
    assert backward.rows == forward.rows


def test_intervals_without_an_end_or_a_start_survive(tmp_path):
    got = log(
        tmp_path,
        [
            event(0, "job_end_time"),
            event(1, "job_start_time"),
            event(2, "tpu_init_start_time"),
            event(10, "job_start_time"),
            event(11, "tpu_init_start_time"),
            event(12, "tpu_init_end_time"),
            event(20, "job_end_time"),
            event(21, "job_end_time"),
            event(22, "data_loading_end_time"),
        ],
    )
    assert spans(got) == [
        ("job", None, 0),
        ("job", 1, None),
        ("accelerator_initialization", 2, None),
        ("job", 10, 20),
        ("accelerator_initialization", 11, 12),
        ("job", None, 21),
        ("data_loading", None, 22),
    ]
    by_order = {r["order"]: r for r in got.rows["lifecycle"]}
    assert [by_order[o]["attempt"] for o in (0, 1, 2, 3, 4, 7, 8)] == [0, 0, 0, 1, 1, 1, 1]
    assert by_order[0]["logged_ns"] == by_order[0]["end_logged_ns"] == T0 * S
    assert by_order[1]["end_logged_ns"] is None and by_order[1]["end_order"] is None


def test_attempts_follow_the_job_starts_in_log_order_not_file_order(tmp_path):
    entries = [step(5, 0), event(4, "job_start_time"), step(50, 0), event(40, "job_start_time"), step(1, 9)]
    got = log(tmp_path, entries)
    assert {(r["step"], r["order"]): r["attempt"] for r in got.rows["steps"]} == {(9, 4): 0, (0, 0): 0, (0, 2): 1}


def test_late_entries_pair_in_log_order_and_keep_their_place_in_the_file(tmp_path):
    got = log(
        tmp_path,
        [
            event(0, "job_start_time"),
            event(20, "data_loading_start_time"),
            event(10, "data_loading_start_time"),
            event(12, "data_loading_end_time"),
            event(25, "data_loading_end_time"),
        ],
    )
    assert spans(got, "data_loading") == [(20, 25), (10, 12)]


def test_custom_events_pair_by_name(tmp_path):
    got = log(
        tmp_path,
        [
            event(1, "custom_badput_event_start_time", custom_badput_event_type="eval"),
            event(2, "custom_badput_event_start_time", custom_badput_event_type="sdc_scan"),
            event(3, "custom_badput_event_end_time", custom_badput_event_type="eval"),
            event(9, "custom_badput_event_end_time", custom_badput_event_type="sdc_scan"),
            event(10, "custom_badput_event_start_time"),
        ],
    )
    assert spans(got, "custom") == [(1, 3), (2, 9), (10, None)]
    assert got.column("lifecycle", "detail") == ["eval", "sdc_scan", None]


@pytest.mark.parametrize("label", ["slice_down", "elastic_slice_down", "scale_up", "ELASTIC_SCALE_UP", None])
def test_elastic_waits(tmp_path, label):
    more = {} if label is None else {"elastic_wait_event_type": label}
    got = log(tmp_path, [event(1, "elastic_wait_start_time", **more), event(5, "elastic_wait_end_time", **more)])
    up = label is not None and "scale_up" in label.lower()
    assert spans(got) == [("elastic_scale_up" if up else "elastic_slice_down", 1, 5)]
    assert got.column("lifecycle", "detail") == [None if label is None else json.dumps({"event_type": label})]


def test_slice_counts_and_reinitialization(tmp_path):
    counts = {"active_slices": 3.0, "total_slices": 4, "elastic_slice_counts_timestamp": T0 + 7.5}
    got = log(
        tmp_path,
        [
            entry(8, counts),
            event(9, "elastic_reinit_start_time"),
            event(12, "elastic_reinit_end_time"),
        ],
    )
    assert spans(got) == [("slices", 7.5, None), ("elastic_reinitialization", 9, 12)]
    assert json.loads(got.rows["lifecycle"][0]["detail"]) == {"active": 3, "total": 4, "available": None}


def save(**more):
    return entry(
        20,
        {
            "event_type": "save",
            "step": 4,
            "directory": "gs://b/run",
            "synchronous": True,
            "preemption_received_at": None,
            "checkpointer_blocking_start_time": T0 + 10.0,
            "checkpointer_blocking_duration_secs": 7.5,
            "checkpoint_manager_blocking_start_time": T0 + 9.0,
            "checkpoint_manager_blocking_duration_secs": 9.25,
            **more,
        },
    )


@pytest.mark.parametrize(
    ("more", "span"),
    [
        ({}, (9, 18.25)),
        ({"checkpoint_manager_blocking_duration_secs": None}, (10, 17.5)),
        ({"checkpoint_manager_blocking_start_time": None}, (10, 17.5)),
        ({"checkpoint_manager_blocking_duration_secs": None, "checkpointer_blocking_duration_secs": None}, (9, None)),
        ({"checkpoint_manager_blocking_duration_secs": -1.0, "checkpointer_blocking_start_time": None}, (9, None)),
        ({"checkpoint_manager_blocking_start_time": None, "checkpointer_blocking_start_time": None}, (None, None)),
    ],
)
def test_saves(tmp_path, more, span):
    got = log(tmp_path, [save(**more)])
    assert spans(got) == [("checkpoint_save", *span)]
    [row] = got.rows["lifecycle"]
    assert row["step"] == 4 and row["logged_ns"] == (T0 + 20) * S
    detail = json.loads(row["detail"])
    assert detail["directory"] == "gs://b/run" and detail["synchronous"] is True and detail["event_type"] == "save"
    assert "job_name" not in detail and "preemption_received_at" not in detail
    if not more:
        assert detail["checkpoint_manager_blocking_duration_secs"] == 9.25


@pytest.mark.parametrize("kind", ["restore", "emergency_restore"])
def test_restores(tmp_path, kind):
    times = {"checkpointer_start_time": T0 + 3.0, "checkpointer_duration_secs": 2.0}
    manager = {"checkpoint_manager_start_time": T0 + 2.0, "checkpoint_manager_duration_secs": 4.0}
    got = log(
        tmp_path,
        [
            entry(9, {"event_type": kind, "step": 4.0, **times, **manager}),
            entry(10, {"event_type": kind, **times}),
        ],
    )
    assert spans(got) == [("checkpoint_restore", 2, 6), ("checkpoint_restore", 3, 5)]
    assert got.column("lifecycle", "step") == [4, None]
    assert all(json.loads(d)["event_type"] == kind for d in got.column("lifecycle", "detail"))


def test_two_saves_of_one_step_are_two_rows(tmp_path):
    assert len(log(tmp_path, [save(), save(directory="/local"), save()]).rows["lifecycle"]) == 2  # the third repeats


def test_many_entries_come_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(textlog, "BATCH_ROWS", 10)
    got = log(tmp_path, [step(i, i) for i in range(95)])
    assert got.batches >= 7 and got.column("steps", "step") == list(range(95))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (lines(A_JOB), 0.95),
        (lines([save()]), 0.95),
        (json.dumps([{"logName": "x", "textPayload": "y"}]), 0.5),
        (json.dumps({"traceEvents": []}), 0.0),
        ("completed step: 1, seconds: 2.000\n", 0.0),
        ("", 0.0),
    ],
)
def test_sniff(tmp_path, text, score):
    assert goodput_log.sniff(source_of(tmp_path, text)) == score


@settings(deadline=None)
@given(st.floats(-9e9, 9e9))
def test_seconds_become_the_nearest_nanosecond(seconds):
    ns = textlog.seconds_to_ns(seconds)
    assert abs(Fraction(seconds) * S - ns) <= Fraction(1, 2)


def test_nanoseconds_beyond_64_bits_are_not_known():
    assert textlog.seconds_to_ns(9_223_372_036) == 9_223_372_036 * S
    assert textlog.seconds_to_ns(9_223_372_037) is None
    assert textlog.seconds_to_ns(float("nan")) is None


@settings(deadline=None)
@given(st.permutations(range(len(A_JOB))))
def test_the_order_of_the_file_changes_nothing_but_order(tmp_path_factory, places):
    # No two entries of this job share a moment, except step 3 and the end of the custom event, which do not meet.
    got = log(tmp_path_factory.getbasetemp(), [A_JOB[i] for i in places])
    straight = log(tmp_path_factory.getbasetemp(), A_JOB)

    def bare(rows):
        return sorted(str({k: v for k, v in r.items() if k not in ("order", "end_order")}) for r in rows)

    assert {t: bare(r) for t, r in got.rows.items()} == {t: bare(r) for t, r in straight.rows.items()}

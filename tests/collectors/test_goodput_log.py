"""Goodput logs: every kind of entry, and everything that goes wrong with logs."""

import gzip
import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.reading import json_stream, textlog
from collectors.training import goodput_log
from errors import InputError
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


def test_grpc_floats_and_http_integers_read_alike(tmp_path):
    whole = [entry(5, {"step_count": 3, "step_start_time": T0 + 5})]
    real = [entry(5, {"step_start_time": T0 + 5.0, "step_count": 3.0})]
    strip = ("step", "start_ns", "attempt")
    assert [[r[c] for c in strip] for r in log(tmp_path, whole).rows["steps"]] == [
        [r[c] for c in strip] for r in log(tmp_path, real).rows["steps"]
    ]


def test_duplicates_are_dropped_and_counted(tmp_path):
    entries = [*A_JOB, A_JOB[7], A_JOB[-1], {**A_JOB[8], "insertId": "another"}]
    got = log(tmp_path, entries)
    assert got.column("steps", "step") == [0, 1, 1, 2, 3]
    assert spans(got, "job") == [(0, 90)]
    [lost] = got.lost
    assert lost.what == "entries (2)" and "insertId" in lost.reason


def test_entries_without_an_insert_id_are_never_taken_for_duplicates(tmp_path):
    bare = [{k: v for k, v in step(5, 1).items() if k != "insertId"}] * 2
    assert log(tmp_path, bare).column("steps", "step") == [1, 1]


def test_the_job_with_most_events_is_the_run(tmp_path):
    other = [entry(i, {"step_count": i, "step_start_time": T0 + i}, job="other") for i in range(3)]
    got = log(tmp_path, [*other, *A_JOB])
    assert got.facts == {"job_name": "night-run"} and len(got.rows["steps"]) == 4
    assert got.lost[0].what == "events of job 'other' (3)"


def test_the_job_that_the_log_is_named_after_is_the_run_even_if_others_are_louder(tmp_path):
    mine = [entry(1, {"step_count": 7, "step_start_time": T0}, job="a b/c")]
    entries = [{**e, "logName": "projects/p/logs/goodput_a%20b%2Fc"} for e in [*A_JOB, *mine]]
    got = log(tmp_path, entries)
    assert got.facts == {"job_name": "a b/c"} and got.column("steps", "step") == [7]


def test_only_info_counts(tmp_path):
    entries = [
        step(1, 1),
        {**step(2, 2), "severity": "WARNING"},
        {**step(3, 3), "severity": "ERROR"},
        {**step(4, 4), "severity": 200},
        {k: v for k, v in step(5, 5).items() if k != "severity"},
    ]
    got = log(tmp_path, entries)
    assert got.column("steps", "step") == [1, 4, 5]
    assert "WARNING" in got.reasons() and "ERROR" in got.reasons()


def test_noise_of_other_loggers_is_counted(tmp_path):
    noise = [
        {"logName": "projects/p/logs/stdout", "timestamp": "2026-01-05T00:00:00Z", "textPayload": "hello"},
        {"protoPayload": {"@type": "x"}},
        entry(1, {"message": "not ours"}),
        {"jsonPayload": {"step_count": 1, "step_start_time": 5.0}},
        {"jsonPayload": [1]},
        {"jsonPayload": {"job_name": 7}},
    ]
    got = log(tmp_path, lines(noise) + "plain text\n" + lines([step(1, 1)]))
    assert got.column("steps", "step") == [1]
    counted = sum(int(lost.what.split("(")[1].rstrip(")")) for lost in got.lost)
    assert counted == len(noise) + 1


@pytest.mark.parametrize("value", [None, "soon", True, [], {}, 1e300, -1e300, 10**400])
def test_times_and_steps_that_are_no_numbers(tmp_path, value):
    text = lines(
        [
            step(1, 1),
            entry(2, {"step_count": value, "step_start_time": T0}),
            entry(3, {"job_start_time": value}),
            entry(4, {"step_count": 2, "step_start_time": value}),
            entry(5, {"tpu_init_end_time": value}),
        ]
    )
    got = log(tmp_path, text)
    assert got.column("steps", "step") == [1] and "lifecycle" not in got.rows
    assert got.lost[0].what == "entries (4)"


def test_json_that_is_not_quite_json(tmp_path):
    text = lines([step(1, 1)]) + '{"jsonPayload": {"job_name": "night-run", "step_count": NaN, "step_start_time": 5}}\n'
    assert log(tmp_path, text).column("steps", "step") == [1]


@pytest.mark.parametrize("cut", range(1, 400, 7))
def test_half_an_entry_at_the_end(tmp_path, cut):
    whole = lines([step(1, 1), step(2, 2)])
    cut = len(whole) - 1 - cut % (len(whole) // 2 - 1)
    got = log(tmp_path, whole[:cut])
    assert got.column("steps", "step") == [1]
    [lost] = got.lost
    assert "the file ends in the middle" in lost.reason and lost.offset == len(whole) // 2


@pytest.mark.parametrize("form", [lines, json.dumps, lambda es: json.dumps(es, indent=1)])
def test_a_broken_entry_costs_only_itself(tmp_path, form):
    text = form([step(1, 1), step(2, 2), step(3, 3)])
    broken = text.replace('"step_count": 2', '"step_count": : 2')
    got = log(tmp_path, broken)
    assert got.column("steps", "step") == [1, 3]
    assert any(lost.reason == "they are not valid JSON" for lost in got.lost)


def test_names_keep_their_letters_and_lose_what_no_text_can_hold(tmp_path):
    entries = [
        entry(1, {"custom_badput_event_type": "é<b>日本", "custom_badput_event_start_time": T0 + 1.0}, job="läuft"),
        entry(2, {"custom_badput_event_type": "half \ud83d", "custom_badput_event_start_time": T0 + 2.0}, job="läuft"),
    ]
    for text in (lines(entries), "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in entries[:1])):
        got = log(tmp_path, text)
        assert got.facts == {"job_name": "läuft"}
        assert got.rows["lifecycle"][0]["detail"] == "é<b>日本"
    assert log(tmp_path, lines(entries)).rows["lifecycle"][1]["detail"] == "half ?"


def test_entries_without_a_timestamp_stay_where_they_stand(tmp_path):
    loose = {k: v for k, v in event(30, "data_loading_end_time").items() if k != "timestamp"}
    got = log(tmp_path, [event(1, "data_loading_start_time"), loose, event(40, "data_loading_start_time")])
    assert spans(got, "data_loading") == [(1, 30), (40, None)]
    assert got.rows["lifecycle"][0]["end_logged_ns"] is None


def test_nothing_usable_is_refused(tmp_path):
    for text in ("", "[]", "{}", lines([entry(1, {"message": "no"})]), '{"a": [' * 5_000):
        with pytest.raises(InputError, match="no goodput entry"):
            log(tmp_path, text)


def test_a_file_more_broken_than_whole_is_given_up(tmp_path):
    with pytest.raises(InputError, match="10,001 broken JSON objects"):
        log(tmp_path, '{"a" 1}\n' * 30_000)


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

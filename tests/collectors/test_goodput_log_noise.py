"""Goodput logs with duplicates, other jobs, noise and damage."""

import json

import pytest

from errors import InputError
from tests.collectors.goodput_entries import A_JOB, T0, entry, event, lines, log, spans, step


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


def test_an_entry_deeper_than_python_reads_is_told_as_lost_and_the_others_are_read(tmp_path):
    deep = lines([A_JOB[-1]]).replace('"jsonPayload"', f'"labels": {"[" * 2_000}{"]" * 2_000}, "jsonPayload"')
    got = log(tmp_path, lines(A_JOB[:-1]) + deep)
    assert got.rows == log(tmp_path, A_JOB[:-1]).rows
    assert got.reasons() == "objects (1): they are not valid JSON"

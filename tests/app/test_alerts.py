"""Alerts: opened once, told once, resolved once; a real webhook on this machine takes the messages."""

import json
import socket
import threading
import time

import pytest

from app.cli import main
from app.follow.alerts import rules
from app.follow.alerts.evaluate import book, evaluate, subject_of
from app.follow.alerts.webhook import checked, masked, message, permalink
from app.workspace import workspace
from errors import InputError
from runs.alert_book import Alert, Target
from runs.live import Live
from tests.app import made_runs
from tests.app.alerting import S, followed, job, judged, webhook


@pytest.fixture
def place(tmp_path):
    return workspace(str(tmp_path / "store"))


def test_an_alert_is_told_once_and_its_resolution_once(place):
    with webhook() as (url, got):
        kept = book(place)
        kept.set_threshold("goodput", 0.9)
        kept.set_target(checked(Target(url, "json", "http://board:8501/")))
        bad, worse, good = job(place, "a", 20, 4000), job(place, "b", 30, 5000), job(place, "c", 4000, 500)
        assert evaluate(place, bad).open == ("goodput",)
        assert evaluate(place, bad).told == 0
        assert evaluate(place, worse).told == 0, "the same job's next run continues the alert"
        outcome = evaluate(place, good)
        assert (outcome.open, outcome.told, outcome.problems) == ((), 1, ())
        assert evaluate(place, good).told == 0
    states = [(body["state"], body["rule"], body["subject"]) for _, body in got]
    assert states == [("open", "goodput", "job:llama"), ("resolved", "goodput", "job:llama")]
    opened, resolved = got[0][1], got[1][1]
    assert 0 < opened["value"] < 0.9 == opened["threshold"]
    assert opened["url"] == f"http://board:8501/goodput?run={bad.run_id}"
    assert resolved["run_id"] == good.run_id and resolved["resolved_ns"] > resolved["opened_ns"]
    assert resolved["value"] > 0.9 == resolved["threshold"], "what its sentence says, and not what opened it"


def test_between_threshold_and_margin_an_open_alert_stays(place):
    kept = book(place)
    run = job(place, "a", 300, 900)
    share = rules.rule("goodput").check(run, place.registry, 0.5, None).value
    kept.set_threshold("goodput", share + 0.001)
    assert evaluate(place, run).open == ("goodput",)
    kept.set_threshold("goodput", share - 0.005)
    assert evaluate(place, run).open == ("goodput",), "above the threshold, but not clearly"
    kept.set_threshold("goodput", share - 0.02)
    assert evaluate(place, run).open == ()


def test_a_webhook_that_fails_is_tried_again_and_its_address_stays_secret(place):
    with webhook(500, 302) as (url, got):
        kept = book(place)
        kept.set_threshold("goodput", 0.99)
        kept.set_target(checked(Target(url, "slack", "http://board:8501")))
        run = job(place, "a", 20, 4000)
        for code in ("500", "302"):
            outcome = evaluate(place, run)
            assert outcome.told == 0 and code in outcome.problems[0] and "SECRET" not in outcome.problems[0]
        assert evaluate(place, run).told == 1 and len(got) == 3
    assert kept.alerts()[0].problem is None
    kept.set_target(checked(Target("http://127.0.0.1:1/SECRET", "json", "http://board")))
    good = job(place, "c", 4000, 0)
    kept.set_threshold("goodput", 0.5)
    outcome = evaluate(place, good)
    assert outcome.open == () and "cannot be reached" in outcome.problems[0] and "SECRET" not in outcome.problems[0]


def test_what_opened_and_closed_unseen_is_not_told(place):
    kept = book(place)
    kept.set_threshold("goodput", 0.99)
    evaluate(place, job(place, "a", 20, 4000))
    kept.set_threshold("goodput", 0.01)
    evaluate(place, job(place, "b", 30, 4000))
    with webhook() as (url, got):
        kept.set_target(checked(Target(url, "json", "http://board")))
        assert evaluate(place, job(place, "c", 40, 4000)).told == 0
    assert got == []


def test_a_rule_that_a_run_cannot_answer_changes_nothing(place):
    kept = book(place)
    for rule in rules.RULES:
        kept.set_threshold(rule.name, rule.usual)
    run = made_runs.write(place.store, "empty", {"scalars": {"name": ["x"], "value": [1.0]}}, {"chips": 1})
    assert evaluate(place, run).open == () and kept.alerts() == []


def test_a_job_hangs_only_while_it_is_followed_and_has_not_ended(place):
    now = time.time_ns()
    numbers = list(range(100))
    starts = [now - 2000 * S + 10 * S * n for n in numbers]
    tables = {
        "steps": {"step": numbers, "start_ns": starts, "order": numbers},
        "lifecycle": {"kind": ["job"], "start_ns": [starts[0] - S], "end_ns": [None], "order": [0]},
    }
    silent = made_runs.write(place.store, "silent", tables, {"chips": 1})
    book(place).set_threshold("hang", 20)
    assert evaluate(place, silent).open == ()
    assert evaluate(place, silent, followed(now)).open == ("hang",)
    alert = book(place).alerts()[0]
    assert 100 < alert.value < 103 and alert.subject == "live:j" and "10.0 s" in alert.sentence
    tables["lifecycle"]["end_ns"] = [starts[-1] + S]
    ended = made_runs.write(place.store, "ended", tables, {"chips": 1})
    assert evaluate(place, ended, followed(now + S)).open == ()
    assert book(place).alerts()[0].resolved_sentence == "the job has ended."


def test_mfu_falls(place):
    took = [10] * 200 + [13] * 60
    starts = [made_runs.START_NS + S * sum(took[:n]) for n in range(len(took))]
    tables = {
        "steps": {
            "step": list(range(260)),
            "start_ns": starts,
            "order": list(range(260)),
            "model_flops_per_chip": [1e15] * 260,
        }
    }
    run = made_runs.write(place.store, "slower", tables, {"chips": 1, "chip": "v5p", "precision": "bf16"})
    found = rules.rule("mfu_drop").check(run, place.registry, 0.1, None)
    assert found.open and found.value == pytest.approx(1 - 10 / 13, rel=1e-6)
    assert not rules.rule("mfu_drop").check(run, place.registry, 0.25, None).open


def test_messages_carry_text_of_inputs_safely():
    alert = Alert(
        id=1,
        rule="goodput",
        subject="job:x",
        run_id="live:a b",
        name="<!channel> & <b>",
        value=0.5,
        threshold=0.9,
        sentence="low",
        opened_ns=1,
    )
    body = message(alert, Target("http://h/x", "slack", "http://board"))
    text = body["blocks"][0]["text"]["text"]
    assert "<!channel>" not in text and "&lt;!channel&gt; &amp;" in text and "<!channel>" not in body["text"]
    assert permalink(alert, "http://board") == "http://board/goodput?run=live:a%20b"
    assert masked("https://hooks.example.com/services/T0/B0/secret") == "https://hooks.example.com/…"


@pytest.mark.parametrize("said", [b"\x15\x03\x01\x00\x02\x02\x46 SECRET\r\n", b"HTTP/9.9 SECRET\r\n\r\n", b""])
def test_what_answers_in_no_http_is_a_problem_that_is_told_and_nothing_ends_of_it(place, said):
    """A webhook's port may be one that wants TLS, or another program's."""
    kept = book(place)
    kept.set_threshold("goodput", 0.99)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            with listening.accept()[0] as asks:
                asks.recv(1 << 16)
                asks.sendall(said)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        kept.set_target(checked(Target(f"http://127.0.0.1:{listening.getsockname()[1]}/SECRET", "json", "http://b")))
        outcome = evaluate(place, job(place, "a", 20, 4000))
        answering.join()
    assert outcome.open == ("goodput",) and outcome.told == 0
    (problem,) = outcome.problems
    assert "the webhook" in problem and "SECRET" not in problem and kept.alerts()[0].problem == problem
    assert kept.claim(kept.untold()[0])  # it is not held up by the one that failed


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "no address",
        "http://",
        "http://h/a b",
        "http://[::1/x",
        "http://h:99999/x",
    ],
)
def test_a_webhook_must_be_an_address(url):
    with pytest.raises(InputError, match="is no address"):
        checked(Target(url, "json", "http://board"))


def test_an_empty_webhook_where_there_is_none_is_refused(place, capsys):
    assert main(["--store", str(place.store.root), "alerts", "--webhook", ""]) == 2
    assert "--webhook" in capsys.readouterr().err


def test_the_command_sets_shows_tests_and_checks(tmp_path, capsys, place):
    store = str(place.store.root)
    run = job(place, "a", 20, 4000)
    with webhook() as (url, got):
        assert (
            main(
                [
                    "--store",
                    store,
                    "alerts",
                    "--on",
                    "goodput=0.8",
                    "--on",
                    "straggler",
                    "--webhook",
                    url,
                    "--shape",
                    "json",
                    "--test",
                    "--check",
                    run.run_id,
                ]
            )
            == 0
        )
        said = capsys.readouterr().out
    assert "SECRET" not in said and "The test message was delivered." in said and "goodput is" in said
    assert [b["name"] for _, b in got] == ["a", "Test"]
    assert main(["--store", store, "alerts", "--off", "straggler", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {r["rule"]: r["threshold"] for r in told["rules"]} == {
        "goodput": 0.8,
        "mfu_drop": None,
        "straggler": None,
        "hang": None,
    }
    assert told["alerts"][0]["sentence"].startswith("goodput is") and "SECRET" not in json.dumps(told)
    for wrong in (
        ["--on", "speed"],
        ["--on", "goodput=2"],
        ["--on", "goodput=x"],
        ["--webhook", "ftp://x"],
        ["--shape", "teams"],
        ["--check", "nothing"],
    ):
        before = book(place).thresholds()
        try:
            assert main(["--store", store, "alerts", *wrong]) == 2
        except SystemExit as e:
            assert e.code == 2
        assert "error: " in capsys.readouterr().err and book(place).thresholds() == before


def test_an_ingest_tells(tmp_path, capsys, place):
    steps = [{"job_name": "j", "step_count": n, "step_start_time": 1e9 + 500 + n} for n in range(20)]
    entries = [{"job_name": "j", "job_start_time": 1e9}, *steps]
    file = tmp_path / "goodput.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {
                    "logName": "projects/p/logs/goodput_j",
                    "timestamp": f"2001-09-09T02:{i // 60:02d}:{i % 60:02d}Z",
                    "severity": "INFO",
                    "insertId": str(i),
                    "jsonPayload": entry,
                }
            )
            + "\n"
            for i, entry in enumerate(entries)
        )
    )
    book(place).set_threshold("goodput", 0.5)
    with webhook() as (url, got):
        book(place).set_target(checked(Target(url, "slack", "http://board")))
        assert main(["--store", str(place.store.root), "ingest", str(file), "--chips", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["alerts"] == {"open": ["goodput"], "told": 1, "problems": []}
    assert f"http://board/goodput?run={told['run_id']}" in got[0][1]["blocks"][0]["text"]["text"]


def test_what_an_alert_is_about(place):
    run = job(place, "a", 20, 0)
    assert subject_of(run) == "job:llama" and subject_of(run, "x") == "live:x"
    other = made_runs.write(place.store, "b", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    assert subject_of(other) == f"run:{other.run_id}"


# What is read, and when


def hanging(place, name: str = "steps", last_ns: int = made_runs.START_NS + 1000 * S, **more):
    """A run of 100 steps of 10 s, the last of which began at `last_ns`; the job has not ended."""
    numbers = list(range(100))
    starts = [last_ns - 10 * S * (99 - n) for n in numbers]
    tables = {
        "steps": {"step": numbers, "start_ns": starts, "order": numbers},
        "lifecycle": {"kind": ["job"], "start_ns": [starts[0] - S], "end_ns": [None], "order": [0]},
    }
    return made_runs.write(place.store, name, tables, {"chips": 1, **more})


@pytest.mark.parametrize("rule", ["hang", "goodput"])
def test_time_in_which_nothing_could_be_read_tells_nothing(place, rule, monkeypatch):
    run, last = hanging(place), made_runs.START_NS + 1000 * S
    book(place).set_threshold(rule, {"hang": 20, "goodput": 0.7}[rule])
    live = followed(last + 20 * S, active_ns=last)
    for hours in (0, 1, 100):  # the service cannot be reached, the clock goes on
        monkeypatch.setattr(time, "time_ns", lambda hours=hours: last + 30 * S + hours * 3600 * S)
        monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9)
        assert evaluate(place, run, live).open == ()
    share = rules.rule("goodput").check(run, place.registry, 0.5, live).value
    assert share == pytest.approx(1000 / 1021, abs=0.02), "not 1,000 s of the hours that went by since"
    assert evaluate(place, run, followed(last + 3600 * S, active_ns=last)).open == (rule,), "read, and nothing came"


def test_entries_that_are_read_but_not_in_the_snapshot_yet_end_the_silence(place):
    run, last = hanging(place), made_runs.START_NS + 1000 * S
    book(place).set_threshold("hang", 20)
    assert evaluate(place, run, followed(last + 900 * S, active_ns=last)).open == ("hang",)
    assert evaluate(place, run, followed(last + 900 * S, active_ns=last + 890 * S)).open == ()
    assert book(place).alerts()[0].resolved_sentence == "the job goes on."


@pytest.mark.parametrize("wrong_s", [-7200, 0, 7200])
def test_a_hang_is_judged_by_when_entries_were_received_not_by_the_clock_of_the_host(place, wrong_s):
    """The truth: an entry every 10 s, until the service heard no more; the host's clock is two hours off."""
    heard = made_runs.START_NS + 1000 * S
    run = hanging(place, last_ns=heard + wrong_s * S)
    book(place).set_threshold("hang", 20)
    assert evaluate(place, run, followed(heard + 20 * S, active_ns=heard)).open == (), "it was heard 20 s ago"
    assert evaluate(place, run, followed(heard + 900 * S, active_ns=heard)).open == ("hang",)
    assert "nothing came from the job for 15 min" in book(place).alerts()[0].sentence


def test_a_live_run_that_was_never_read_whole_is_not_judged(place):
    book(place).set_threshold("hang", 20)
    assert evaluate(place, hanging(place), Live("j", "p", "llama")).open == ()


def test_what_is_checked_of_a_live_run_is_its_live_run(place, capsys):
    """Or it would be told once more, as an alert of the job, which no later snapshot ends."""
    run, last = hanging(place), made_runs.START_NS + 1000 * S
    kept = book(place)
    for rule, threshold in (("hang", 20), ("goodput", 0.9)):
        kept.set_threshold(rule, threshold)
    live = followed(last + 900 * S, active_ns=last, run_id=run.run_id)
    place.store.live.write(live)
    for name in ("live:j", run.run_id):
        assert main(["--store", str(place.store.root), "alerts", "--check", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["check"]["open"] == ["goodput", "hang"]
    evaluate(place, run, live)
    assert [(a.rule, a.subject) for a in kept.alerts()] == [("hang", "live:j"), ("goodput", "live:j")]


# Which run counts


def test_a_continuing_alert_has_the_figure_of_the_new_run(place):
    kept = book(place)
    kept.set_threshold("goodput", 0.9)
    first, second = job(place, "a", 20, 4000), job(place, "b", 30, 5000)
    evaluate(place, first)
    before = kept.alerts()[0]
    evaluate(place, second)
    [alert] = kept.alerts()
    assert (alert.run_id, alert.name, alert.opened_ns) == (second.run_id, "b", before.opened_ns)
    share = rules.rule("goodput").check(second, place.registry, 0.9, None)
    assert alert.value == share.value != before.value and alert.sentence == share.sentence


def test_an_older_run_and_one_that_is_stored_already_change_nothing(place):
    kept = book(place)
    kept.set_threshold("goodput", 0.9)
    bad, good = job(place, "a", 20, 4000), job(place, "c", 4000, 500)
    for run in (bad, good, bad, bad):
        outcome = evaluate(place, run)
    assert outcome.open == () and [a.resolved_ns is None for a in kept.alerts()] == [False]
    worse = job(place, "later", 5000, 200_000)
    assert evaluate(place, worse).open == ("goodput",)
    assert evaluate(place, good).open == ("goodput",), "that an earlier run was good ends nothing"
    [alert] = [a for a in kept.alerts() if a.resolved_ns is None]
    assert alert.run_id == worse.run_id


def test_runs_without_times_go_by_when_they_were_stored(place):
    kept = book(place)
    kept.set_threshold("goodput", 0.9)
    kept.judge(judged("job:x", "open", (0, 5)))
    kept.judge(judged("job:x", "over", (0, 4)))
    assert kept.is_open("goodput", "job:x")
    kept.judge(judged("job:x", "over", (0, 6)))
    assert not kept.is_open("goodput", "job:x")

"""`chipledger watch` against a real HTTP logging server: what it keeps, shows and survives. A process of its own is
followed, killed and, at first, asked once; elsewhere the command runs in this one."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.workspace import Workspace, workspace
from collectors.ingest import ingest
from runs.live import GRACE_NS, TAG
from runs.store import Store
from tests.app.commands import commanded
from tests.app.serving import command, environment
from tests.collectors.job_entries import PROJECT, S, job
from tests.collectors.logging_server import LoggingServer, stamp_of

DAY = 86400 * S
NOW = time.time_ns()


@pytest.fixture
def server():
    with LoggingServer() as running:
        yield running


def arguments(server, store, *more, jobs=("night-run",)) -> list[str]:
    named = [word for name in jobs for word in ("--job", name)]
    return ["watch", "--store", str(store), "--project", PROJECT, *named, "--endpoint", server.address, *more]


def once(server, store, *more, by=commanded, **jobs) -> list[dict]:
    """What `watch --once` says, line by line."""
    done = by(*arguments(server, store, "--once", "--json", *more, **jobs))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextlib.contextmanager
def watching(server, store, *more, **jobs):
    """The running process; killed at the end if it has not ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", *arguments(server, store, "--every", "1s", "--json", *more, **jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def until(what, seconds: float = 60.0):
    """The first true answer of `what`."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)
    return found


def spooled(store: Path, name: str = "night-run") -> list[dict]:
    return [json.loads(line) for line in (store / "live" / name / "entries.jsonl").read_text().splitlines()]


def steps_of(place: Workspace, name: str = "night-run") -> list[int]:
    return place.store.find(f"live:{name}").tables.arrow("steps", ["step"]).column("step").to_pylist()


def test_once_reads_what_is_there_into_a_live_run(tmp_path, server):
    server.add(*job(NOW - 20 * DAY, 50, step_s=20_000.0))
    [told] = once(server, tmp_path, "--chip", "v5p", "--chips", "256", "--model", "llama2-70b", by=command)
    assert (told["state"], told["entries"], told["problem"]) == ("finished", 54, None)
    place = workspace(str(tmp_path))
    run = place.store.find("live:night-run")
    assert run.run_id == told["run_id"] and run.manifest.name == "night-run" and run.manifest.tags[TAG] == "night-run"
    assert steps_of(place) == list(range(50))
    assert run.manifest.fact("chips") == 256 and run.manifest.fact("job_name") == "night-run"
    [listed] = json.loads(command("runs", "--json", "--store", tmp_path).stdout)["runs"]
    assert listed["live"]["name"] == "night-run" and listed["live"]["state"] == "finished" and listed["tags"] == {}
    assert "live:night-run" in commanded("runs", "--store", tmp_path).stdout
    shown = commanded("show", "live:night-run", "ledger", "--json", "--store", tmp_path)
    assert json.loads(shown.stdout)["run_id"] == run.run_id
    again = once(server, tmp_path)
    assert again[-1]["run_id"] == run.run_id, "nothing new and the same options make no new run"
    assert Store(tmp_path).ids() == [run.run_id]


def test_following_moves_the_pointer_and_ends_cleanly(tmp_path, server):
    entries = job(NOW - 3600 * S, 100)
    server.add(*entries[:40])
    place = workspace(str(tmp_path))
    with watching(server, tmp_path) as process:
        first = json.loads(process.stdout.readline())
        assert first["state"] == "following" and first["entries"] == 40
        place.registry.tag(first["run_id"], "team", "pretraining")
        place.registry.price(first["run_id"], 4.2)
        server.add(*entries[40:90])
        second = json.loads(process.stdout.readline())
        if second["run_id"] == first["run_id"]:  # told between the read and its snapshot, where the machine is busy
            second = json.loads(process.stdout.readline())
        assert second["entries"] == 90 and second["run_id"] != first["run_id"]
        assert place.store.find(first["run_id"]).run_id == second["run_id"], "the old id leads on"
        assert place.registry.extras(second["run_id"]).tags == {"team": "pretraining"}
        assert place.registry.extras(second["run_id"]).usd_per_chip_hour == 4.2
        assert [r.run_id for r in place.store.runs()] == [second["run_id"]]
        refused = command(*arguments(server, tmp_path, "--once"))
        assert refused.returncode == 2 and f"followed already, by process {process.pid}" in refused.stderr
        process.send_signal(signal.SIGTERM)
        rest, problems = process.communicate(timeout=60)
    assert process.returncode == 0 and not problems
    assert json.loads(rest.splitlines()[-1])["state"] == "stopped"
    assert place.store.live.read("night-run").state == "stopped"
    server.add(*entries[90:])
    assert once(server, tmp_path)[-1]["entries"] == len(entries)
    assert spooled(tmp_path) == entries


def test_killed_at_any_read_nothing_is_lost_and_nothing_comes_twice(tmp_path, server):
    """kill -9 between pages, again and again; each start goes on where the one before was."""
    server.page_size = 20
    entries = job(NOW - 20 * DAY, 300, step_s=5000.0)
    server.add(*entries)
    running: list[subprocess.Popen] = []
    for kill_at in (3, 5, 9):
        with watching(server, tmp_path, "--reads-per-minute", "60") as process:
            running.append(process)
            last = len(server.asked) + kill_at
            server.before = lambda n, at=last: os.kill(running[-1].pid, signal.SIGKILL) if n == at else None
            assert process.wait(60) == -signal.SIGKILL
    server.before = None
    assert 0 < len(spooled(tmp_path)) < len(entries)
    [told] = once(server, tmp_path, "--reads-per-minute", "60")
    assert told["entries"] == len(entries) and spooled(tmp_path) == entries
    assert steps_of(workspace(str(tmp_path))) == list(range(300))


def test_killed_while_snapshots_are_made_one_run_is_listed_and_whole(tmp_path, server):
    """kill -9 at moments that fall into reading, ingesting and moving the pointer."""
    entries = job(NOW - 3600 * S, 400, step_s=2.0)
    place = workspace(str(tmp_path))
    given = 20
    server.add(*entries[:given])
    for delay_s in (0.0, 0.02, 0.05, 0.1):
        with watching(server, tmp_path) as process:
            process.stdout.readline()
            server.add(*entries[given : given + 40])
            given += 40
            path = tmp_path / "live" / "night-run" / "entries.jsonl"
            size = path.stat().st_size
            until(lambda p=path, s=size: p.stat().st_size > s)
            time.sleep(delay_s)
            process.kill()
    server.add(*entries[given:])
    told = once(server, tmp_path)[-1]
    assert told["entries"] == len(entries) and spooled(tmp_path) == entries
    assert [r.run_id for r in place.store.runs()] == [told["run_id"]]
    assert sorted(steps_of(place)) == list(range(400))


def test_a_snapshot_that_the_pointer_never_reached_retires(tmp_path, server):
    entries = job(NOW - 3600 * S, 60)
    server.add(*entries[:30])
    first = once(server, tmp_path)[-1]
    place = workspace(str(tmp_path))
    live = place.store.live.read("night-run")
    place.store.live.write(replace(live, run_id=None, bytes=0))  # as if killed right before it moved
    server.add(*entries[30:])
    own = tmp_path / "own.jsonl"
    own.write_text((tmp_path / "live" / "night-run" / "entries.jsonl").read_text())
    mine = ingest([own], place.store, name="night-run", chips=4)
    last = once(server, tmp_path)[-1]
    assert {r.run_id for r in place.store.runs()} == {last["run_id"], mine.run_id}
    live = place.store.live.read("night-run")
    assert [i for i, _ in live.retiring] == [first["run_id"]]
    long_ago = [(i, since - 2 * GRACE_NS) for i, since in live.retiring] + [(mine.run_id, 0)]
    place.store.live.write(replace(live, retiring=long_ago))
    once(server, tmp_path)
    assert set(place.store.ids()) == {last["run_id"], mine.run_id}, "what a person made is never removed"
    assert place.store.live.read("night-run").retiring == []


def test_two_jobs_at_once_and_a_job_that_is_not_there(tmp_path, server):
    server.quota, server.quota_s = 60, 60.0
    one, two = (job(NOW - DAY, 40, name=name, seed=i) for i, name in enumerate(("one", "two/b")))
    server.add(*one, *two)
    told = once(server, tmp_path, jobs=("one", "two/b"))
    names = {t["job"]: t["name"] for t in told}
    assert names["one"] == "one" and set(names) == {"one", "two/b"} and "/" not in names["two/b"]
    assert spooled(tmp_path, "one") == one and spooled(tmp_path, names["two/b"]) == two
    assert server.over_quota == 0
    missing = commanded(*arguments(server, tmp_path, "--once", jobs=("three",)))
    assert missing.returncode == 2
    assert f"no goodput entry of job 'three' in projects/{PROJECT}/logs/goodput_three" in missing.stderr
    assert "--log-name" in missing.stderr


def test_a_job_that_ended_is_told_and_its_restart_is_picked_up(tmp_path, server):
    server.add(*job(NOW - 2 * 3600 * S, 20))
    with watching(server, tmp_path) as process:
        assert json.loads(process.stdout.readline())["state"] == "finished"
        server.add(*job(NOW - 600 * S, 5, first=1000, ends=False))
        again = json.loads(process.stdout.readline())
        assert again["state"] == "following" and again["entries"] == 24 + 8
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_what_fails_while_watching_is_told_and_tried_again(tmp_path, server):
    entries = job(NOW - 3600 * S, 30, ends=False)
    server.add(*entries[:10])
    with watching(server, tmp_path) as process:
        assert json.loads(process.stdout.readline())["state"] == "following"
        server.faults.append(403)
        failing = json.loads(process.stdout.readline())
        assert failing["state"] == "failing" and "roles/logging.viewer" in failing["problem"]
        server.add(*entries[10:])
        lines = [json.loads(process.stdout.readline())]
        if lines[-1]["entries"] < len(entries):
            lines.append(json.loads(process.stdout.readline()))
        assert lines[-1]["state"] == "following" and lines[-1]["problem"] is None
    assert spooled(tmp_path) == entries


def test_errors_at_the_start_are_one_line_and_exit_code_2(tmp_path, server):
    server.faults.extend([403] * 3)
    denied = command(*arguments(server, tmp_path))
    assert denied.returncode == 2 and "Traceback" not in denied.stderr
    assert "may not read its logs" in denied.stderr and "roles/logging.viewer" in denied.stderr
    none = commanded(
        "watch",
        "--store",
        tmp_path,
        "--project",
        PROJECT,
        "--job",
        "x",
        GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "no.json"),
    )
    assert none.returncode == 2 and "gcloud auth application-default login" in none.stderr
    for more, said in (
        (("--project", "!"), "is no project id"),
        (("--since", "soon"), "--since 'soon'; expected a date, or a time ago such as 30s"),
        (("--every", "0s"), "at least 1s"),
        (("--job", "b", "--name", "n"), "one --name for 2 jobs"),
        (("--reads-per-minute", "100"), "1 to 60"),
        (("--endpoint", "ftp://x"), "is no endpoint"),
        (("--also", "("), "not understood"),
        (("--chips", "-1"), "chips"),
    ):
        wrong = commanded(*arguments(server, tmp_path, *more))
        assert wrong.returncode == 2 and said in wrong.stderr, (more, wrong.stderr)
        assert wrong.stderr.count("\n") == 1
    assert not Store(tmp_path).ids()


def test_a_name_that_leads_to_another_job_is_refused(tmp_path, server):
    server.add(*job(NOW - DAY, 10), *job(NOW - DAY, 10, name="day-run", first=500))
    once(server, tmp_path, "--name", "prod")
    wrong = commanded(*arguments(server, tmp_path, "--once", "--name", "prod", jobs=("day-run",)))
    assert wrong.returncode == 2 and "follows job 'night-run'" in wrong.stderr
    assert once(server, tmp_path, "--name", "prod", "--chips", "8")[-1]["state"] == "finished"
    assert workspace(str(tmp_path)).store.find("live:prod").manifest.fact("chips") == 8
    once(server, tmp_path, "--name", "prod")
    assert workspace(str(tmp_path)).store.find("live:prod").manifest.fact("chips") == 8, "what was declared stays"


def test_no_project_is_named(tmp_path, server):
    arguments_ = [a for a in arguments(server, tmp_path) if a not in ("--project", PROJECT)]
    done = commanded(*arguments_)
    assert done.returncode == 2 and "no project is named" in done.stderr
    server.add(*job(NOW - DAY, 10))
    assert commanded(*arguments_, "--once", GOOGLE_CLOUD_PROJECT=PROJECT).returncode == 0


def test_lines_of_other_logs_tell_why(tmp_path, server):
    entries = job(NOW - 3 * 3600 * S, 100, ends=False)
    why, other = (
        {
            "logName": f"projects/{PROJECT}/logs/stderr",
            "severity": "ERROR",
            "insertId": name,
            "textPayload": text,
            "timestamp": stamp_of(NOW - 2 * 3600 * S),
            "receiveTimestamp": stamp_of(NOW - 2 * 3600 * S),
            "resource": {"type": "k8s_container", "labels": {"pod_name": "worker-7"}},
        }
        for name, text in (("a", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."), ("b", "step 3 done"))
    )
    server.add(*entries, why, other, {**why, "insertId": "c", "logName": f"projects/{PROJECT}/logs/unasked"})
    told = once(server, tmp_path, "--also", 'logName:"stderr" AND severity>=ERROR')[-1]
    assert told["entries"] == len(entries) + 2
    rows = workspace(str(tmp_path)).store.find("live:night-run").tables.arrow("evidence", ["cause", "host"]).to_pylist()
    assert rows == [{"cause": "accelerator", "host": "worker-7"}]


def test_a_job_that_hangs_opens_an_alert_though_nothing_new_comes(tmp_path, server):
    assert commanded("alerts", "--store", tmp_path, "--on", "hang=10").returncode == 0
    server.add(*job(NOW - 2 * 3600 * S, 100, ends=False))
    first = once(server, tmp_path)[-1]
    [alert] = json.loads(commanded("alerts", "--store", tmp_path, "--json").stdout)["alerts"]
    assert alert["rule"] == "hang" and alert["subject"] == "live:night-run" and alert["resolved_ns"] is None
    now = NOW - 30 * S
    server.add(*job(now, 0, first=5000, ends=False)[:1])
    assert once(server, tmp_path)[-1]["run_id"] != first["run_id"]
    server.add(*job(now, 5, step_s=1.0, first=6000, ends=True)[3:])
    once(server, tmp_path)
    [alert] = json.loads(commanded("alerts", "--store", tmp_path, "--json").stdout)["alerts"]
    assert alert["resolved_ns"] is not None


def test_bad_entries_are_counted_and_named_never_fatal(tmp_path, server):
    entries = job(NOW - DAY, 20)
    broken = [
        {**entries[5], "insertId": f"odd-{i}", "jsonPayload": payload}
        for i, payload in enumerate(
            (
                {"job_name": "night-run"},
                {"job_name": "night-run", "step_count": None, "step_start_time": None},
                {"job_name": "night-run", "step_count": "x", "step_start_time": "y"},
                {"job_name": "night-run", "event_type": "save", "checkpoint_manager_blocking_duration_secs": None},
            )
        )
    ]
    server.add(*reversed(entries), *broken, entries[7])
    told = once(server, tmp_path)[-1]
    assert told["entries"] == len(entries) + 4 and told["counts"]["repeated"] >= 1
    run = workspace(str(tmp_path)).store.find("live:night-run")
    assert sorted(steps_of(workspace(str(tmp_path)))) == list(range(20))
    assert any("carry no goodput event" in w for w in run.manifest.warnings)


# Until when the newest snapshot tells


def test_what_is_known_ends_with_the_last_read_of_which_the_snapshot_holds_all(place, tmp_path, monkeypatch):
    import threading
    from types import SimpleNamespace

    from app.follow.watching import Watcher
    from collectors.cloud_logging.spool import Cursor
    from errors import InputError
    from runs.live import Live
    from tests.app import made_runs

    file = tmp_path / "entries.jsonl"
    file.write_bytes(made_runs.goodput_log(20))
    cursor, faults, seen = Cursor(active=5, bytes=1), [], []

    def poll():
        if faults:
            raise InputError(faults.pop())

    watcher = Watcher.__new__(Watcher)
    watcher.__dict__ |= {
        "place": place,
        "stop": threading.Event(),
        "_tell": lambda live: None,
        "_stale": False,
        "_told": None,
        "_on_poll": lambda place, run, live: seen.append(live.read_ns),
        "_next_snapshot_s": 0.0,
        "_reached": False,
        "live": Live("j", "p", "upload-me"),
        "plan": SimpleNamespace(every_s=1.0, wanted=SimpleNamespace(job="upload-me")),
        "fetcher": SimpleNamespace(poll=poll, ended=lambda: False, spool=SimpleNamespace(cursor=cursor, path=file)),
    }
    clock = iter(range(1000, 100_000, 1000))
    monkeypatch.setattr("app.follow.watching.time.time_ns", lambda: next(clock))
    watcher.poll()  # read, and a snapshot made
    first = seen[-1]
    assert first == 1000
    watcher.poll()  # nothing new: known until then
    second = seen[-1]
    assert second > first
    faults.append("cannot be reached")
    watcher.poll()
    assert seen[-1] == second and watcher.live.last_poll_ns > second and watcher.live.state == "failing"
    cursor.bytes, cursor.active = 2, 6  # entries came, and no snapshot is due
    watcher._next_snapshot_s = time.monotonic() + 1000
    watcher.poll()
    assert seen[-1] == second and watcher.live.active_ns == 6

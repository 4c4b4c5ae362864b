"""Jobs outlive what runs them: servers, workers and processes are killed and stopped at any moment, and nothing that
was accepted is lost, half stored, stored twice, or left lying about."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from runs.job_book import JobBook
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import PROJECT, command, environment, get, request, serving
from tests.app.test_jobs import child_of, server_of, upload
from tests.collectors.ingesting import LOG


def log(number):
    return LOG.replace("loss: 2", f"loss: {number}").encode()


def begin(address, name, content):
    status, job = request("POST", f"{address}/api/ingest", {"upload_id": upload(address, {name: content})})
    assert status == 200, job
    return job["job_id"]


def until(ready, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not (got := ready()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return got


def states(store, jobs):
    book = JobBook(store / "registry.db")
    return [book.get(job).state for job in jobs]


def all_end(store, jobs, within_s=90.0):
    until(lambda: not {"waiting", "running", "parked"} & set(states(store, jobs)), within_s)
    return states(store, jobs)


@contextlib.contextmanager
def worker(store, *flags):
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "worker", "--store", str(store), *flags],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=PROJECT,
    )
    try:
        assert process.stdout is not None and "Working on the jobs of" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def clean(store):
    """Whether nothing lies about: no half run, no lock, no half upload."""
    Store(store)  # which sweeps
    left = [*(store / "partial").iterdir(), *(store / "jobs").iterdir(), *(store / "uploads").rglob("*.part")]
    return not left


def test_what_waits_and_what_runs_goes_on_with_the_next_server(tmp_path):
    with serving(tmp_path) as address:
        large = [begin(address, "goodput.jsonl", made_runs.goodput_log(60_000, f"k{n}")) for n in range(2)]
        small = begin(address, "train.log", log(2))
        until(lambda: states(tmp_path, large) == ["running"] * 2)
        os.kill(server_of(tmp_path), signal.SIGKILL)
    with serving(tmp_path) as address:
        assert all_end(tmp_path, [*large, small]) == ["done"] * 3
        told = [get(f"{address}/api/jobs/{job}")[1] for job in [*large, small]]
    assert {job["run_id"] for job in told} == set(Store(tmp_path).ids()) and len(Store(tmp_path).ids()) == 3
    assert [job["attempts"] for job in told] == [2, 2, 1] and clean(tmp_path)


def test_a_server_that_is_told_to_end_parks_what_takes_longer_and_takes_nothing_new(tmp_path):
    with serving(tmp_path, "--grace-s", "1") as address:
        job = begin(address, "goodput.jsonl", made_runs.goodput_log(200_000, "long"))
        until(lambda: states(tmp_path, [job]) == ["running"])
        pid = server_of(tmp_path)
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(OSError):  # it may have closed its port
            status, told = request("POST", f"{address}/api/uploads", {})
            assert status == 503 and "being stopped" in told["error"]
        until(lambda: not os.path.exists(f"/proc/{pid}/exe") or not os.readlink(f"/proc/{pid}/exe"), 20)
    [state] = states(tmp_path, [job])
    assert state in ("parked", "done")
    with worker(tmp_path):
        assert all_end(tmp_path, [job]) == ["done"]
    assert JobBook(tmp_path / "registry.db").get(job).attempts == 1, "it was stopped, it did not fail"
    assert clean(tmp_path)


def test_a_server_without_a_worker_leaves_jobs_to_one(tmp_path):
    with serving(tmp_path, "--no-worker") as address:
        job = begin(address, "train.log", log(3))
        time.sleep(1.5)
        assert get(f"{address}/api/jobs/{job}")[1]["state"] == "waiting"
        with worker(tmp_path, "--at-once", "1"):
            told = until(lambda: (t := get(f"{address}/api/jobs/{job}")[1])["state"] == "done" and t)
            assert told["run"]["run_id"] == told["run_id"] and [f["state"] for f in told["files"]] == ["read"]
            other = begin(address, "goodput.jsonl", made_runs.goodput_log(200_000, "other"))
            until(lambda: states(tmp_path, [other]) == ["running"])
            assert request("DELETE", f"{address}/api/jobs/{other}")[1]["state"] == "cancelled"
            status, again = request("POST", f"{address}/api/jobs/{other}/retry", {})
            assert (status, again["job_id"], again["state"]) == (200, other, "waiting")
            assert request("DELETE", f"{address}/api/jobs/{other}")[0] == 200
            assert request("POST", f"{address}/api/jobs/{job}/retry", {})[0] == 400, "it is done"
            assert request("POST", f"{address}/api/jobs/{'0' * 32}/retry", {})[0] == 404


def test_kills_of_servers_workers_and_processes_at_random_moments_lose_nothing(tmp_path):
    """Twenty-four kills; each upload is a run of its own at the end, once."""
    chance, asked = random.Random(7), {}
    kills = 0
    while kills < 24:
        with serving(tmp_path, "--grace-s", "0") as address, worker(tmp_path) as beside:
            server = server_of(tmp_path)
            for _ in range(4):
                number = len(asked)
                content = made_runs.goodput_log(300 + 50 * number, f"n{number}")
                asked[begin(address, f"goodput-{number}.jsonl", content)] = number
            for _ in range(3):
                time.sleep(chance.uniform(0.0, 1.5))
                victims = [server, beside.pid]
                with contextlib.suppress(OSError, AssertionError):
                    victims += [int(c) for p in victims for c in _children(p)] * 2
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(victims), signal.SIGKILL)
                kills += 1
    with worker(tmp_path, "--at-once", "2"):
        all_end(tmp_path, list(asked), 180)
    book = JobBook(tmp_path / "registry.db")
    ended = {job: book.get(job) for job in asked}
    for job, entry in ended.items():
        if entry.state == "failed":  # its own process was killed, or its worker three times: it says so
            assert "signal 9" in entry.error or "was begun 3 times" in entry.error
            book.retry(job, 1000)
    with worker(tmp_path, "--at-once", "2"):
        assert set(all_end(tmp_path, list(asked), 180)) == {"done"}
    runs = [book.get(job).result["run_id"] for job in asked]
    assert len(set(runs)) == len(asked) == len(Store(tmp_path).ids())
    assert clean(tmp_path)


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()


def test_a_registry_that_is_locked_for_long_refuses_in_a_sentence_and_loses_no_job(tmp_path):
    with serving(tmp_path) as address:
        job = begin(address, "goodput.jsonl", made_runs.goodput_log(20_000, "locked"))
        upload_id = upload(address, {"train.log": log(5)})
        until(lambda: states(tmp_path, [job]) == ["running"])
        with contextlib.closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as db:
            db.execute("begin immediate")
            began = time.monotonic()
            answers = []
            asks = threading.Thread(
                target=lambda: answers.append(request("POST", f"{address}/api/ingest", {"upload_id": upload_id}))
            )
            asks.start()
            while time.monotonic() - began < 13:  # a writer waits for 10 s
                assert get(f"{address}/healthz")[0] == 200 and get(f"{address}/api/jobs")[0] == 200
                time.sleep(0.5)
            asks.join()
            db.execute("rollback")
        assert answers[0][0] == 400 and "the registry cannot be used now" in answers[0][1]["error"]
        assert all_end(tmp_path, [job]) == ["done"]
        assert request("POST", f"{address}/api/ingest", {"upload_id": upload_id})[0] == 200


def test_two_servers_of_one_store_share_its_jobs(tmp_path):
    with serving(tmp_path) as one, serving(tmp_path) as two:
        jobs = [begin(one if n % 2 else two, "train.log", log(10 + n)) for n in range(6)]
        assert all_end(tmp_path, jobs) == ["done"] * 6
        for address in (one, two):
            assert [j["state"] for j in get(f"{address}/api/jobs")[1]["jobs"]] == ["done"] * 6
    assert len(Store(tmp_path).ids()) == 6 and clean(tmp_path)


def test_a_process_that_does_not_end_with_its_worker_is_ended_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("app.serve.orphans.PATIENCE_S", 0.0)
    with serving(tmp_path) as address:
        job = begin(address, "goodput.jsonl", made_runs.goodput_log(60_000, "orphan"))
        server = server_of(tmp_path)
        child = child_of(server)
        until(lambda: JobBook(tmp_path / "registry.db").get(job).child)
        os.kill(child, signal.SIGSTOP)  # it hears of nothing
        os.kill(server, signal.SIGKILL)
    entry = JobBook(tmp_path / "registry.db").get(job)
    from app.serve.orphans import Orphans

    Orphans().look(json.dumps(["another space", *json.loads(entry.child)[1:]]))
    Orphans().look("{")
    assert os.path.exists(f"/proc/{child}")
    ends = Orphans()
    until(lambda: ends.look(entry.child) or not _alive(child))
    with worker(tmp_path):
        assert all_end(tmp_path, [job]) == ["done"]


def _alive(pid):
    from app.serve.process_tree import seen

    return seen(pid) is not None


def test_the_command_line_lists_cancels_and_retries(tmp_path, capsys):
    assert out(capsys, "jobs", "--store", tmp_path)[:2] == (0, "Nothing was asked of a server of this store yet.\n")
    with serving(tmp_path, "--no-worker") as address:
        job = begin(address, "train.log", log(3))
    code, told, _ = out(capsys, "jobs", "--store", tmp_path)
    assert code == 0 and job[:12] in told and "waiting" in told and "train.log" in told
    code, told, _ = out(capsys, "jobs", "cancel", job[:12], "--store", tmp_path)
    assert (code, told) == (0, f"Job {job[:12]} is cancelled.\n")
    code, told, _ = out(capsys, "jobs", "retry", job, "--store", tmp_path)
    assert code == 0 and "waits for a server or a `chipledger worker`" in told
    code, told, _ = out(capsys, "jobs", "--json", "--store", tmp_path)
    assert json.loads(told)["jobs"][0]["state"] == "waiting"
    for wrong in (["cancel"], ["list", "x"], ["retry", "x"], ["retry", ""], ["cancel", "x" * 10_000], ["retry", job]):
        code, _, error = out(capsys, "jobs", *wrong, "--store", tmp_path)
        assert code == 2 and error.startswith("error: ") and error.count("\n") == 1, wrong


@pytest.mark.parametrize(
    "flag", ["--grace-s=-1", "--job-hours=0", "--job-memory-gb=nan", "--at-once=0", "--at-once=1e9"]
)
def test_limits_that_cannot_be_are_refused(tmp_path, flag):
    done = command("worker", flag, "--store", tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1

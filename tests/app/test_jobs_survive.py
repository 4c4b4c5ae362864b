"""Jobs outlive what runs them: servers, workers and processes are killed and stopped at any moment, and nothing that
was accepted is lost, half stored, stored twice, or left lying about."""

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.serve.jobs import Jobs
from app.serve.orphans import Orphans
from app.serve.process_tree import seen
from app.serve.stopping import Stopping
from app.serve.uploads import Uploads
from app.workspace import workspace
from errors import InputError
from runs.job_book import OPEN, JobBook
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import PROJECT, environment, get, request, serving
from tests.app.test_jobs import server_of, upload
from tests.app.test_uploads import receive
from tests.collectors.ingesting import LOG


def log(number):
    return LOG.replace("loss: 2", f"loss: {number}").encode()


def accepted(store, name, content):
    """A job as the API begins one, of an upload as it takes one."""
    place = workspace(str(store))
    uploads = Uploads(place.store.uploads_folder, place)
    upload_id = uploads.begin()
    receive(uploads, upload_id, name, content)
    arguments = ["ingest", "--json", f"--store={store}", *uploads.paths(upload_id)]
    about = {"upload_id": upload_id, "name": None, "title": name}
    return Jobs(place, works=False).start(arguments, about).job_id


def large(store, name, entries=60_000):
    return accepted(store, "goodput.jsonl", made_runs.goodput_log(entries, name))


def entries(store, jobs):
    book = JobBook(store / "registry.db")
    return [book.get(job) for job in jobs]


def until(ready, within_s=120.0):
    deadline = time.monotonic() + within_s
    while not (got := ready()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return got


def states(store, jobs):
    return [entry.state for entry in entries(store, jobs)]


def all_end(store, jobs):
    until(lambda: not {*OPEN} & {*states(store, jobs)}, 300)
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
        process.terminate()
        process.wait(60)
        process.stdout.close()


def clean(store):
    """Whether nothing lies about: no half run, no lock, no half upload."""
    Store(store)  # which sweeps
    left = [*(store / "partial").iterdir(), *(store / "jobs").iterdir(), *(store / "uploads").rglob("*.part")]
    return not left


def processes_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]
    return []


def halted(pid):
    """The process of the job that a worker runs, stopped, so that it does not end before it is told to."""
    [child] = until(lambda: processes_of(pid))
    # the worker waits in the kernel until its child is another program: one stopped before would hold it for ever
    until(lambda: _command(child) != _command(pid))
    os.kill(child, signal.SIGSTOP)
    return child


def _command(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _runs_or_is_idle(store, pid, jobs):
    return bool(processes_of(pid)) or not {*OPEN} & {*states(store, jobs)}


def test_kills_at_random_moments_lose_nothing_and_store_nothing_twice(tmp_path):
    """Twenty-four kills of workers and of jobs' processes; each input is one run at the end."""
    chance, asked, kills = random.Random(7), [], {"worker": 0, "process": 0}
    book = JobBook(tmp_path / "registry.db")
    while sum(kills.values()) < 24:
        with worker(tmp_path) as process:
            asked += [large(tmp_path, f"n{len(asked)}", 500 + 97 * len(asked))]
            for _ in range(2):
                until(functools.partial(_runs_or_is_idle, tmp_path, process.pid, tuple(asked)))
                time.sleep(chance.uniform(0.0, 0.5))
                there = processes_of(process.pid)
                what = "process" if there and chance.random() < 0.5 else "worker"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(there[0] if what == "process" else process.pid, signal.SIGKILL)
                kills[what] += 1
                if what == "worker":
                    break
    with worker(tmp_path):
        all_end(tmp_path, asked)
        for entry in entries(tmp_path, asked):
            if entry.state == "failed":  # its own process was killed, or its worker three times: it says so
                assert "signal 9" in entry.error or "was begun 3 times" in entry.error
                book.retry(entry.job_id, 1000)
        assert set(all_end(tmp_path, asked)) == {"done"}
    runs = [entry.result["run_id"] for entry in entries(tmp_path, asked)]
    assert sorted(runs) == sorted(Store(tmp_path).ids()) and len({*runs}) == len(asked) and min(kills.values()) > 3
    assert clean(tmp_path)


def test_a_server_that_is_told_to_end_parks_what_takes_longer_and_takes_nothing_new(tmp_path):
    with serving(tmp_path, "--grace-s", "1") as address:
        upload_id = upload(address, {"goodput.jsonl": made_runs.goodput_log(200_000, "long")})
        job = request("POST", f"{address}/api/ingest", {"upload_id": upload_id})[1]["job_id"]
        until(lambda: states(tmp_path, [job]) == ["running"])
        pid = server_of(tmp_path)
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(OSError):  # it may have closed its port
            status, told = request("POST", f"{address}/api/uploads", {})
            assert status == 503 and "being stopped" in told["error"]
        until(lambda: seen(pid) is None)
    assert states(tmp_path, [job]) in (["parked"], ["done"])
    with worker(tmp_path):
        assert all_end(tmp_path, [job]) == ["done"]
    assert entries(tmp_path, [job])[0].attempts == 1, "it was stopped, it did not fail"
    assert clean(tmp_path)


def test_a_worker_that_is_told_to_end_parks_what_it_runs(tmp_path):
    job = large(tmp_path, "parked", 200_000)
    with worker(tmp_path, "--grace-s", "0") as process:
        halted(process.pid)
    [entry] = entries(tmp_path, [job])
    assert (entry.state, entry.attempts, entry.error) == ("parked", 0, "") and clean(tmp_path)


def test_a_server_without_a_worker_leaves_jobs_to_one(tmp_path):
    with serving(tmp_path, "--no-worker") as address:
        job = accepted(tmp_path, "train.log", log(3))
        time.sleep(1.5)
        assert get(f"{address}/api/jobs/{job}")[1]["state"] == "waiting"
        with worker(tmp_path, "--at-once", "1") as beside:
            told = until(lambda: (t := get(f"{address}/api/jobs/{job}")[1])["state"] == "done" and t)
            assert told["run"]["run_id"] == told["run_id"] and [f["state"] for f in told["files"]] == ["read"]
            other = large(tmp_path, "other", 200_000)
            halted(beside.pid)
            assert request("DELETE", f"{address}/api/jobs/{other}")[1]["state"] == "cancelled"
        status, again = request("POST", f"{address}/api/jobs/{other}/retry", {})
        assert (status, again["job_id"], again["state"]) == (200, other, "waiting")
        assert request("DELETE", f"{address}/api/jobs/{other}")[1]["state"] == "cancelled"
        assert request("POST", f"{address}/api/jobs/{job}/retry", {})[0] == 400, "it is done"
        assert request("POST", f"{address}/api/jobs/{'0' * 32}/retry", {})[0] == 404
        upload_id = get(f"{address}/api/jobs/{other}")[1]["upload_id"]
        assert request("DELETE", f"{address}/api/uploads/{upload_id}")[0] == 200
        assert request("POST", f"{address}/api/jobs/{other}/retry", {})[0] == 400, "its files are gone"


def test_a_registry_that_is_locked_for_long_refuses_in_a_sentence_and_loses_no_job(tmp_path):
    job = large(tmp_path, "locked", 3000)
    problems = []

    def ask():
        try:
            accepted(tmp_path, "train.log", log(5))
        except InputError as e:
            problems.append(str(e))

    with worker(tmp_path) as process:
        until(lambda: processes_of(process.pid))
        with contextlib.closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None, timeout=60)) as db:
            db.execute("begin immediate")
            asks = threading.Thread(target=ask)
            asks.start()
            time.sleep(11)  # a writer waits for 10 s
            assert JobBook(tmp_path / "registry.db").get(job).state in ("running", "done") and process.poll() is None
            db.execute("rollback")
        asks.join()
        assert problems and "the registry cannot be used now" in problems[0]
        told = all_end(tmp_path, [job])
    assert told == ["done"] or "registry" in entries(tmp_path, [job])[0].error


def test_workers_of_one_store_share_its_jobs(tmp_path):
    jobs = [accepted(tmp_path, "train.log", log(10 + n)) for n in range(4)]
    with worker(tmp_path, "--at-once", "1"), worker(tmp_path, "--at-once", "1"):
        assert all_end(tmp_path, jobs) == ["done"] * 4
    assert {entry.attempts for entry in entries(tmp_path, jobs)} == {1}
    assert len(Store(tmp_path).ids()) == 4 and clean(tmp_path)


def test_a_process_that_does_not_end_with_its_worker_is_ended_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("app.serve.orphans.PATIENCE_S", 0.0)
    job = large(tmp_path, "orphan", 200_000)
    with worker(tmp_path) as process:
        child = halted(process.pid)  # it hears of nothing
        until(lambda: entries(tmp_path, [job])[0].child)
        process.kill()
    [entry] = entries(tmp_path, [job])
    Orphans().look(json.dumps(["another space", *json.loads(entry.child)[1:]]))
    Orphans().look("{")
    assert seen(child)
    ends = Orphans()
    until(lambda: ends.look(entry.child) or not seen(child))
    with worker(tmp_path, "--grace-s", "0"):
        until(lambda: entries(tmp_path, [job])[0].attempts == 2)


def test_who_is_being_stopped_takes_nothing_new(tmp_path):
    jobs = Jobs(workspace(str(tmp_path)))
    jobs.stop()
    for ask in (lambda: jobs.start(["ingest"]), lambda: jobs.retry("x"), jobs.check):
        with pytest.raises(Stopping, match="being stopped"):
            ask()


def test_the_command_line_lists_cancels_and_retries(tmp_path, capsys):
    assert out(capsys, "jobs", "--store", tmp_path)[:2] == (0, "Nothing was asked of a server of this store yet.\n")
    job = accepted(tmp_path, "train.log", log(3))
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


def test_a_job_that_the_command_line_retries_reads_what_its_upload_holds_now(tmp_path, capsys):
    """As one that a page or a request retries: the file that was missing came since."""
    job = accepted(tmp_path, "a.txt", b"hello")
    assert out(capsys, "jobs", "cancel", job, "--store", tmp_path)[0] == 0
    (entry,) = entries(tmp_path, [job])
    files = tmp_path / "uploads" / entry.about["upload_id"] / "files"
    (files / "train.log").write_bytes(log(3))
    assert out(capsys, "jobs", "retry", job, "--store", tmp_path)[0] == 0
    (entry,) = entries(tmp_path, [job])
    assert entry.arguments[-3:] == ["--", str(files / "a.txt"), str(files / "train.log")]
    assert out(capsys, "jobs", "cancel", job, "--store", tmp_path)[0] == 0
    shutil.rmtree(files.parent)
    code, _, error = out(capsys, "jobs", "retry", job, "--store", tmp_path)
    assert code == 2 and "no upload" in error


@pytest.mark.parametrize("flag", ["--grace-s=-1", "--job-hours=0", "--job-memory-gb=nan", "--at-once=0"])
def test_limits_that_cannot_be_are_refused(tmp_path, flag, capsys):
    code, _, error = out(capsys, "worker", flag, "--store", tmp_path)
    assert code == 2 and error.startswith("error: ") and error.count("\n") == 1

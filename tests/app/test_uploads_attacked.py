"""Uploads and jobs attacked over HTTP: what changes while a run is made of it, cancels at the last moment, names."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from urllib.parse import urlsplit

import pytest

from app.serve.jobs import Jobs
from errors import QuestionError
from runs.job_book import OPEN
from runs.store import Store
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import PROJECT, get, request, serving
from tests.app.test_jobs import child_of, ended, server_of, upload
from tests.collectors.ingesting import LOG


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def server(store):
    with serving(store) as address:
        yield address


def until(ready, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def log(number):
    return LOG.replace("loss: 2", f"loss: {number}").encode()


def test_an_input_of_a_stored_run_is_not_replaced_and_others_may_come(server, store):
    upload_id = upload(server, {"a/train.log": log(3)})
    first = ended(server, {"upload_id": upload_id})
    status, told = request("PUT", f"{server}/upload/{upload_id}/a/train.log", log(4))
    assert status == 400 and f"an input of run {first['run_id']}" in told["error"]
    assert (store / "uploads" / upload_id / "files/a/train.log").read_bytes() == log(3)
    assert request("PUT", f"{server}/upload/{upload_id}/b.log", log(5))[0] == 200
    assert ended(server, {"upload_id": upload_id})["run_id"] != first["run_id"]


def test_what_is_read_or_waits_for_it_takes_no_file_and_is_not_discarded(server):
    loads = [upload(server, {"goodput.jsonl": made_runs.goodput_log(60_000, f"n{n}")}) for n in range(3)]
    jobs = [request("POST", f"{server}/api/ingest", {"upload_id": one})[1] for one in loads]
    assert get(f"{server}/api/jobs/{jobs[2]['job_id']}")[1]["state"] == "waiting"
    for one in (loads[0], loads[2]):
        for method, path in (("PUT", f"/upload/{one}/more.log"), ("DELETE", f"/api/uploads/{one}")):
            status, told = request(method, server + path, LOG.encode())
            assert status == 400 and "being read into a run" in told["error"], (method, told)
    for job in jobs:
        while (now := get(f"{server}/api/jobs/{job['job_id']}")[1])["state"] in ("waiting", "running"):
            time.sleep(0.1)
        assert now["state"] == "done", now["error"]


def test_an_upload_is_not_read_while_one_of_its_files_is_on_the_way(server, store):
    upload_id = upload(server, {"train.log": log(6)})
    to = urlsplit(server)
    with socket.create_connection((to.hostname, to.port)) as half:
        head = f"PUT /upload/{upload_id}/more.log HTTP/1.1\r\nHost: {to.netloc}\r\nContent-Length: 5000000\r\n\r\n"
        half.sendall(head.encode() + b"x" * 2_000_000)
        until(lambda: any(p.stat().st_size for p in (store / "uploads" / upload_id).glob("*.part")))
        status, told = request("POST", f"{server}/api/ingest", {"upload_id": upload_id})
        assert status == 400 and "1 file of the upload is still on the way" in told["error"]
        assert request("PUT", f"{server}/upload/{upload_id}/more.log", b"no log")[0] == 200  # a second try
        assert ended(server, {"upload_id": upload_id})["state"] == "done"


def test_of_one_input_sent_twice_at_once_one_is_said_to_be_stored_already(server):
    loads = [upload(server, {"goodput.jsonl": made_runs.goodput_log(30_000, "alike")}) for _ in range(2)]
    jobs = [request("POST", f"{server}/api/ingest", {"upload_id": one})[1] for one in loads]
    while any(job["state"] in ("waiting", "running") for job in jobs):
        time.sleep(0.1)
        jobs = [get(f"{server}/api/jobs/{job['job_id']}")[1] for job in jobs]
    assert len({job["run_id"] for job in jobs}) == 1 and sorted(job["existed"] for job in jobs) == [False, True]


def test_what_was_stored_before_it_could_be_cancelled_is_said_to_be_done(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    (tmp_path / "train.log").write_text(LOG)

    async def cancelled_once_stored():
        jobs = Jobs()
        job = jobs.start(["ingest", "--json", f"--store={tmp_path / 's'}", "--", str(tmp_path / "train.log")])
        while job.doing != "stored" and not job.ended:
            await asyncio.sleep(0.001)
        return await jobs.cancel(job.job_id)

    job = asyncio.run(cancelled_once_stored())
    assert job.state == "done" and Store(tmp_path / "s").ids() == [job.result["run_id"]]


def test_jobs_without_end_are_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("app.serve.jobs.MOST_WAITING", 3)

    async def begun():
        jobs = Jobs()
        arguments = ["ingest", "--json", f"--store={tmp_path / 's'}", "--", str(tmp_path / "none.log")]
        first = [jobs.start(arguments) for _ in range(3)]
        with pytest.raises(QuestionError, match="3 jobs run or wait already"):
            jobs.start(arguments)
        for job in first:
            await jobs.cancel(job.job_id)
        await jobs.cancel(jobs.start(arguments).job_id)

    asyncio.run(begun())


def test_a_number_of_thousands_of_digits_is_refused_in_words_of_ours(server):
    status, told = request("POST", f"{server}/api/ingest", b'{"chips": ' + b"9" * 5000 + b"}")
    assert (status, told) == (400, {"error": "request: a number of 5,000 digits; expected at most 400"})


def free(to, within_s=10.0):
    """Whether a server may listen there, at the latest once the one before has ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            socket.create_server((to.hostname, to.port)).close()
            return True
        time.sleep(0.1)
    return False


def test_a_job_that_outlives_a_killed_server_holds_no_port_and_is_not_lost(tmp_path):
    with serving(tmp_path) as address:
        loads = [upload(address, {"goodput.jsonl": made_runs.goodput_log(60_000, f"k{n}")}) for n in range(3)]
        jobs = [request("POST", f"{address}/api/ingest", {"upload_id": one})[1] for one in loads]
        pid = server_of(tmp_path)
        child = child_of(pid)
        os.kill(child, signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            assert free(urlsplit(address))
        finally:
            os.kill(child, signal.SIGCONT)
    with serving(tmp_path) as address:
        while any((one := get(f"{address}/api/jobs/{job['job_id']}"))[1]["state"] in OPEN for job in jobs):
            time.sleep(0.1)  # what waited and what ran goes on without being asked for again
        waited = [one["upload_id"] for one in get(f"{address}/api/uploads")[1]["uploads"]]
        assert one[0] == 200 and not waited
        assert [ended(address, {"upload_id": one})["state"] for one in loads] == ["done"] * 3


NAMES = ["x" * 201, "\u202egnp.exe", "a\u0007b", "a\u200bb", " "]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_no_run_is_stored_under_a_name_that_renaming_refuses(server, place, tmp_path, capsys, name):
    (tmp_path / "train.log").write_text(LOG)
    code, told, error = out(capsys, "ingest", "--json", "--name", name, tmp_path / "train.log")
    assert code == 2 and error.count("\n") == 1 and "error" in json.loads(told)
    (tmp_path / "chipledger.json").write_text(json.dumps({"name": name}))
    code, _, error = out(capsys, "ingest", tmp_path)
    assert code == 2 and "chipledger.json: a name" in error and place.store.ids() == []
    status, told = request(
        "POST", f"{server}/api/ingest", {"upload_id": upload(server, {"t.log": log(7)}), "name": name}
    )
    assert status == 400 and "name" in told["error"]


def test_a_name_of_a_stranger_is_kept_so_that_a_person_may_keep_it(place, tmp_path, capsys):
    folder = tmp_path / "run\u202e1"
    folder.mkdir()
    (folder / "train.log").write_text(LOG)
    assert out(capsys, "ingest", f"file://{folder}")[0] == 0
    assert [run.manifest.name for run in place.store.runs()] == ["run\\u202e1"]
    assert os.listdir(place.store.root / "partial") == []

"""Jobs of the server over HTTP: their files, their list, addresses, and what is kept of uploads that became no run."""

import json
import os
import resource
import signal
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from runs.store import Store
from tests.app import made_runs
from tests.app.serving import get, request, serving
from tests.collectors.ingesting import LOG


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "run-1").mkdir()
    (folder / "run-1" / "train.log").write_text(LOG)
    (folder / "run-1" / "x.pdf").write_bytes(b"%PDF-1.7")
    (folder.parent / "secret.log").write_text(LOG.replace("loss: 2", "loss: 5"))
    (folder / "out.log").symlink_to(folder.parent / "secret.log")
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def server(store, data):
    with serving(store, "--ingest-from", str(data), "--ingest-from", "gs://team/runs") as address:
        yield address


def upload(server, files):
    upload_id = request("POST", f"{server}/api/uploads", {})[1]["upload_id"]
    for name, content in files.items():
        assert request("PUT", f"{server}/upload/{upload_id}/{quote(name)}", content)[0] == 200
    return upload_id


def ended(server, asked, since=""):
    status, job = request("POST", f"{server}/api/ingest", asked)
    assert status == 200, job
    deadline = time.monotonic() + 60
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        job = get(f"{server}/api/jobs/{job['job_id']}{since}")[1]
    return job


def states(job):
    return {file["name"]: file["state"] for file in job["files"]}


def test_a_job_tells_each_file_and_of_those_that_changed_alone(server):
    files = {"train.log": LOG.encode(), "x.pdf": b"%PDF-1.7", "host.xplane.pb": b""}
    job = ended(server, {"upload_id": upload(server, files), "name": "mixed"})
    assert job["state"] == "done" and job["run"]["name"] == "mixed" and job["existed"] is False
    assert states(job) == {"train.log": "read", "x.pdf": "refused", "host.xplane.pb": "refused"}
    [pdf] = [f for f in job["files"] if f["name"] == "x.pdf"]
    assert pdf["reason"].startswith("Looks like a PDF document.") and pdf["bytes"] == 8
    [profile] = [f for f in job["files"] if f["name"] == "host.xplane.pb"]
    assert "Looks like an empty profile." in profile["reason"] and profile["title"] == "XPlane profile"
    later = get(f"{server}/api/jobs/{job['job_id']}?since={job['files_changes'] - 1}")[1]
    assert len(later["files"]) == 1 and later["files_changes"] == job["files_changes"]
    assert get(f"{server}/api/jobs/{job['job_id']}?since={job['files_changes']}")[1]["files"] == []
    for wrong in ("since=-1", "since=x", "since=1&since=2", "sinse=1"):
        assert get(f"{server}/api/jobs/{job['job_id']}?{wrong}")[0] == 400


def test_what_is_stored_already_is_said_with_its_name_and_when(server):
    files = {"train.log": LOG.replace("loss: 2", "loss: 4").encode()}
    first = ended(server, {"upload_id": upload(server, files), "name": "the first"})
    again = ended(server, {"upload_id": upload(server, files), "name": "another"})
    assert (first["existed"], again["existed"]) == (False, True)
    assert again["run"] == first["run"] and again["run"]["name"] == "the first"
    assert abs(again["run"]["created_ns"] / 1e9 - time.time()) < 120


def test_jobs_are_listed_the_newest_first_without_their_files(server, store):
    one = ended(server, {"upload_id": upload(server, {"a.pdf": b"%PDF-1.7"})})
    other = ended(server, {"upload_id": upload(server, {"my job/b.png": b"\x89PNG", "my job/c.txt": b"x"})})
    listed = get(f"{server}/api/jobs")[1]["jobs"]
    assert [j["job_id"] for j in listed[:2]] == [other["job_id"], one["job_id"]]
    assert (listed[0]["title"], listed[0]["what"], listed[0]["state"]) == ("my job", "ingest", "failed")
    assert listed[0]["ended_ns"] >= listed[0]["began_ns"] and "files" not in listed[0]
    assert len(listed[0]["error"]) < 400 and "\n" not in listed[0]["error"]
    assert str(store) not in json.dumps(listed)


def test_uploads_that_became_no_run_are_listed_and_can_be_read_again(store, tmp_path):
    with serving(tmp_path / "s") as address:
        kept = upload(address, {"a.pdf": b"%PDF-1.7", "deep/b.pdf": b"%PDF-1.8"})
        ended(address, {"upload_id": kept})
        ended(address, {"upload_id": upload(address, {"train.log": LOG.encode()})})
        assert get(f"{address}/api/uploads")[1]["uploads"] == [], "it may still be arriving"
    with serving(tmp_path / "s") as address:
        [one] = get(f"{address}/api/uploads")[1]["uploads"]
        assert (one["upload_id"], one["files"], one["bytes"]) == (kept, 2, 16)
        assert one["names"] == ["a.pdf", "deep/b.pdf"]
        assert one["kept_until_ns"] - one["touched_ns"] == 7 * 86_400 * 10**9
        assert ended(address, {"upload_id": kept})["state"] == "failed"
        assert request("DELETE", f"{address}/api/uploads/{kept}")[0] == 200
        assert get(f"{address}/api/uploads")[1]["uploads"] == []
        assert get(f"{address}/api/jobs/{'0' * 32}")[0] == 404


def test_a_folder_that_the_operator_named_is_read_by_address(server, data):
    assert get(f"{server}/api/ingest")[1] == {"addresses": [str(data), "gs://team/runs"]}
    job = ended(server, {"address": f"file://{data}/run-1", "name": "from a folder", "chips": 4})
    assert job["state"] == "done" and job["run"]["name"] == "from a folder" and job["title"] == "run-1"
    assert states(job) == {"train.log": "read", "x.pdf": "refused"}
    assert states(ended(server, {"address": f"{data}/**/*.log"})) == {"train.log": "read"}, "no link out of it"


@pytest.mark.parametrize(
    "where",
    [
        "{}/../secret.log",
        "{}/out.log",
        "/etc/passwd",
        "/etc/*",
        "gs://team/other",
        "s3://team/runs",
        "http://127.0.0.1/",
    ],
)
def test_nothing_else_is(server, data, where):
    status, told = request("POST", f"{server}/api/ingest", {"address": where.format(data)})
    assert status == 400 and "may read" in told["error"]


def test_an_address_and_an_upload_are_not_asked_together(server, data):
    asked = {"address": str(data), "upload_id": "0" * 32}
    assert "both" in request("POST", f"{server}/api/ingest", asked)[1]["error"]


def test_many_files_in_one_upload(server):
    """More than a command line holds; the list is told in full."""
    long = "n" * 100
    files = {f"{n:03}-{long}.txt": b"no log" for n in range(600)} | {
        "train.log": LOG.replace("loss: 2", "loss: 6").encode()
    }
    job = ended(server, {"upload_id": upload(server, files)})
    assert job["state"] == "done" and len(job["files"]) == 601
    assert (
        sum(f["state"] == "refused" for f in job["files"]) + sum(f["state"] == "left_out" for f in job["files"]) == 600
    )
    assert len(job["warnings"]) < 30


HOSTILE = ["\u202egnp.log", "a\u0007b\u200e.log", "x" * 3000 + ".log", "<b>.log", "' \"`$(id).log", "é" * 200 + ".log"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_that_are_made_to_confuse_are_kept_plain(server, name):
    text = LOG.replace("loss: 2", f"loss: {len(name)}{sum(map(ord, name)) % 1000}")
    job = ended(server, {"upload_id": upload(server, {name: text.encode()})})
    assert job["state"] == "done"
    [file] = job["files"]
    assert file["name"].isprintable() and len(file["name"]) <= 250 and file["state"] == "read"
    assert job["title"].isprintable() and job["run"]["name"].isprintable()


def child_of(pid):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            if b"ingest" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.02)
    raise AssertionError("no child")


def server_of(store):
    """Process id of the server of a store, by its command line."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"serve" in words and str(store).encode() in words:
                return int(name)
    raise AssertionError("no server")


def test_a_job_whose_process_is_killed_is_told_and_the_server_goes_on(server, store):
    before = set(Store(store).ids())
    files = {"goodput.jsonl": made_runs.goodput_log(60_000, "killed")}
    job = request("POST", f"{server}/api/ingest", {"upload_id": upload(server, files)})[1]
    os.kill(child_of(server_of(store)), signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (job := get(f"{server}/api/jobs/{job['job_id']}")[1])["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert job["state"] == "failed" and "(signal 9)" in job["error"] and "The files are kept." in job["error"]
    assert set(Store(store).ids()) == before and get(f"{server}/healthz")[0] == 200


def test_a_disk_that_takes_no_more_is_told_in_a_sentence(tmp_path):
    """By the limit on a file's size, which is refused as a full disk is: at once, amid a write."""
    with serving(tmp_path / "s") as address:
        resource.prlimit(server_of(tmp_path / "s"), resource.RLIMIT_FSIZE, (200_000, 200_000))
        upload_id = request("POST", f"{address}/api/uploads", {})[1]["upload_id"]
        status, told = request("PUT", f"{address}/upload/{upload_id}/big.log", b"x" * 500_000)
        assert status == 400 and "cannot be written" in told["error"] and "Is the disk full?" in told["error"]
        assert get(f"{address}/api/uploads/{upload_id}")[1] == {"refused": told["error"]}, "for who lost the answer"
        assert request("PUT", f"{address}/upload/{upload_id}/small.log", LOG.encode())[0] == 200
        assert get(f"{address}/api/uploads/{upload_id}")[1] == {"refused": None}
        assert not list((tmp_path / "s" / "uploads" / upload_id).glob("*.part"))
        assert get(f"{address}/healthz")[0] == 200

"""Files by address: patterns and folders of this machine, buckets, and nothing beyond what an operator named."""

import importlib.util
import json
import os
import socket
import threading
import time
import uuid

import pytest

from app.fetching import remote
from app.fetching.addresses import address, within
from app.fetching.allowed import ALLOWED_VARIABLE, allowed, asked_for, prefixes
from app.fetching.given import given
from app.serve.uploads import LIMIT_VARIABLE
from collectors.ingest import ingest
from collectors.ingesting.gather import Cancelled
from errors import InputError
from tests.app.bucket_server import bucket
from tests.app.serving import command
from tests.collectors.ingesting import LOG


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "run-1" / "logs").mkdir(parents=True)
    (folder / "run-2").mkdir()
    (folder / "run-1" / "logs" / "a.log").write_text(LOG)
    (folder / "run-1" / "logs" / ".hidden.log").write_text(LOG)
    (folder / "run-2" / "b.log").write_text(LOG)
    (folder / "run-2" / "[odd].log").write_text(LOG)
    (tmp_path / "secret.log").write_text(LOG)
    (folder / "out.log").symlink_to(tmp_path / "secret.log")
    (folder / "up").symlink_to(tmp_path)
    return folder


def asked(place, *texts, below=None, cancelled=lambda: False, tell=None):
    return given(texts, below, place, lambda *_: None, tell, cancelled)


def names(found, folder):
    return sorted(p.relative_to(folder).as_posix() for p in found.paths)


def test_a_file_of_the_web_that_is_cut_off_is_refused_and_nothing_of_it_is_kept(place):
    sent = [LOG.encode()[:300], LOG.encode()]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            for body in sent:
                with listening.accept()[0] as asks:
                    asks.recv(1 << 16)
                    asks.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LOG) + body)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        there = f"http://127.0.0.1:{listening.getsockname()[1]}/train.log"
        with pytest.raises(InputError, match="cannot be fetched .the connection ended .* before the file did"):
            asked(place, there)
        assert not list(place.store.uploads_folder.rglob("*.log"))
        (folder,) = asked(place, there).paths
        answering.join()
    assert (folder / "train.log").read_text() == LOG


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("**/*.log", ["out.log", "run-1/logs/a.log", "run-2/[odd].log", "run-2/b.log"]),
        ("run-?/*.log", ["run-2/[odd].log", "run-2/b.log"]),
        ("run-[2-9]/b.log", ["run-2/b.log"]),
        ("**/logs/**/a.log", ["run-1/logs/a.log"]),
        ("run-*", ["run-1", "run-2"]),
        ("run-2/[odd].log", ["run-2/[odd].log"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_pattern_means_what_fits_it(place, data, pattern, fits, scheme):
    assert names(asked(place, f"{scheme}{data}/{pattern}"), data) == fits


def test_a_pattern_from_where_one_stands(place, data, monkeypatch):
    monkeypatch.chdir(data)
    assert [str(p) for p in asked(place, "run-2/b*").paths] == ["run-2/b.log"]


@pytest.mark.parametrize("text", ["{}/**/*.pb", "{}/run-9*", "{}/*.log/x*"])
def test_what_fits_nothing_is_told(place, data, text):
    with pytest.raises(InputError, match="no file fits this pattern"):
        asked(place, text.format(data))


def test_with_prefixes_links_out_of_them_are_not_followed(place, data):
    found = asked(place, f"{data}/**/*.log", below=[str(data)])
    assert names(found, data.resolve()) == ["run-1/logs/a.log", "run-2/[odd].log", "run-2/b.log"]
    assert [str(p) for p in asked(place, f"{data}/run-2", below=[str(data)]).paths] == [str(data.resolve() / "run-2")]


@pytest.mark.parametrize(
    "text",
    [
        "{}/out.log",
        "{}/up",
        "{}/up/secret.log",
        "{}/up/*.log",
        "{}/../secret.log",
        "{}/run-1/../../secret.log",
        "file://{}/../secret.log",
        "{}2",
        "/etc/passwd",
        "/etc/pass*",
        "/",
        "secret.log",
        "{}/nothing",
        "{}/" + "x" * 300,
        "gs://bucket/run",
        "https://127.0.0.1/x",
    ],
)
def test_nothing_beyond_the_prefixes_is_read_whatever_its_way(place, data, text):
    (data.parent / "data2").mkdir()
    (data.parent / "data2" / "train.log").write_text(LOG)
    known = prefixes([str(data)])
    for ask in (lambda t: asked(place, t, below=[str(data)]), lambda t: asked_for(t, known)):
        with pytest.raises(InputError) as error:
            ask(text.format(data))
        assert "may read" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 5000,
        "gs://bucket/../other",
        "gs://bucket//x",
        "gs://bucket/a/./b",
        "gs://bucket/%2e%2e/x",
        "https://name@host/x",
        "https://host/x#y",
        "s3://a\\b",
        "gs://a\nb",
        "ftp://host/x",
        "ssh://host/x",
        "simplecache::gs://bucket/x",
        "zip://x::gs://bucket/y",
        "reference://x",
        "github://org:repo@/x",
        "file://host/x",
        "a\0b",
    ],
)
def test_what_is_no_plain_address_is_refused_in_a_line(place, text):
    with pytest.raises(InputError) as error:
        asked(place, text)
    assert "\n" not in str(error.value)


def test_a_bucket_s_prefix_ends_at_a_slash():
    known = prefixes(["gs://bucket/runs", "s3a://other"])
    inside = ["gs://bucket/runs", "gcs://bucket/runs/a/b", "s3://other/x", "gs://bucket/runs/**/x.log"]
    outside = [
        "gs://bucket/runs2",
        "gs://bucket",
        "gs://bucket/run*",
        "gs://buck*/runs/x",
        "s3://bucket/runs",
        "gs://x",
    ]
    assert all(within(address(one), known) for one in inside)
    assert not any(within(address(one), known) for one in outside)


@pytest.mark.parametrize("text", ["/no/such/folder", "gs://", "gs://bucket/*", "ftp://x", ""])
def test_an_operator_s_prefix_that_is_none_is_told(text):
    with pytest.raises(InputError):
        prefixes([text])


def test_what_a_server_may_read_is_what_was_said(monkeypatch, data):
    monkeypatch.setenv(ALLOWED_VARIABLE, f"{data}\ngs://bucket/x")
    assert [str(one) for one in allowed()] == [str(data), "gs://bucket/x"]
    monkeypatch.delenv(ALLOWED_VARIABLE)
    assert allowed() == ()
    with pytest.raises(InputError, match="reads no files by address.*--ingest-from"):
        asked_for(str(data), allowed())


@pytest.fixture
def remembered():
    """A folder in fsspec's memory, with a log, one below, one hidden."""
    import fsspec

    fs, folder = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    for name, text in (("a.log", LOG), ("deep/b.log", LOG + "\n"), (".secret/c.log", LOG), ("x.pdf", "%PDF-1.7")):
        fs.pipe_file(f"{folder}/{name}", text.encode())
    return f"memory:/{folder}"


def test_a_folder_elsewhere_is_an_upload_and_then_a_run(place, remembered):
    told = []
    found = asked(place, remembered, tell=told.append)
    [folder] = found.paths
    assert names(given([str(folder)], None, place, lambda *_: None, None, lambda: False), folder.parent) == ["files"]
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "a.log",
        "deep/b.log",
        "x.pdf",
    ]
    assert {f.name: f.state for f in told} == {"a.log": "waiting", "deep/b.log": "waiting", "x.pdf": "waiting"}
    assert any(f.state == "fetching" and f.progress == 1.0 for f in told)
    done = ingest(found.paths, place.store, name=found.name)
    assert done.tables["steps"] == 20 and found.name == remembered.rpartition("/")[2]


def test_a_pattern_and_a_file_elsewhere(place, remembered):
    [folder] = asked(place, f"{remembered}/**/b.log").paths
    assert [p.relative_to(folder).as_posix() for p in folder.rglob("*.log")] == ["deep/b.log"]
    [folder] = asked(place, f"{remembered}/a.log").paths
    assert [p.name for p in folder.iterdir()] == ["a.log"]


@pytest.mark.parametrize(
    ("limit", "ending", "said"),
    [("100", "", "an upload holds 100 bytes"), ("100000", "/none", "no such file"), ("100000", "/*.pb", "no file is")],
)
def test_too_much_or_nothing_elsewhere_leaves_nothing(place, remembered, monkeypatch, limit, ending, said):
    monkeypatch.setenv(LIMIT_VARIABLE, limit)
    with pytest.raises(InputError, match=said):
        asked(place, remembered + ending)
    assert list(place.store.uploads_folder.iterdir()) == []


def test_files_that_grow_while_they_are_fetched_are_held_to_the_limit(place, remembered, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "1000")
    monkeypatch.setattr(remote, "_fitting", lambda *_: None)  # as if each had told of fewer bytes
    with pytest.raises(InputError, match="more than 1.00 kB, which is what an upload holds"):
        asked(place, remembered)
    assert list(place.store.uploads_folder.iterdir()) == []


def test_fetching_can_be_cancelled_and_leaves_nothing(place, remembered):
    with pytest.raises(Cancelled):
        asked(place, remembered, cancelled=lambda: True)
    assert list(place.store.uploads_folder.iterdir()) == []


def test_a_package_that_is_not_there_is_named(place, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="takes the package s3fs, which is not installed. `pip install s3fs`"):
        asked(place, "s3://bucket/run")


@pytest.mark.skipif(importlib.util.find_spec("gcsfs") is None, reason="gcsfs is not installed")
def test_a_bucket_is_listed_and_read_by_the_command_line(tmp_path):
    store = tmp_path / "store"
    objects = {"runs/one/train.log": LOG.encode(), "runs/one/host/x.pdf": b"%PDF-1.7", "runs/two/train.log": b"x"}
    with bucket("team", objects) as server:
        env = {"STORAGE_EMULATOR_HOST": server}
        done = command("ingest", "gs://team/runs/one", "--json", "--store", store, **env)
        assert done.returncode == 0, done.stderr  # where the library may say that it found no credentials
        told = json.loads(done.stdout)
        assert {f["name"]: f["state"] for f in told["files"]} == {"train.log": "read", "host/x.pdf": "refused"}
        pattern = ("gs://team/runs/o*/*.log", "--within", "gs://team/runs")
        again = command("ingest", *pattern, "--json", "--store", store, **env)
        assert json.loads(again.stdout)["tables"] == {"steps": 10}
        wrong = command("ingest", "gs://team/runs/three", "--store", store, **env)
        assert wrong.returncode == 2 and "error: gs://team/runs/three: no such file or folder" in wrong.stderr
        outside = command("ingest", "gs://team/runs/one", "--within", "gs://team/other", "--store", store, **env)
        assert outside.returncode == 2 and "outside of what this server may read" in outside.stderr


def test_with_an_engine_files_of_a_bucket_are_listed_and_not_fetched(place, monkeypatch):
    objects = {"runs/one/a.log": LOG.encode(), "runs/one/deep/b.log": LOG.encode(), "runs/one/.hidden": b"x"}
    with bucket("team", objects) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server)
        quiet = (place, lambda *_: None, None, lambda: False)
        found = given(["gs://team/runs/one/**"], None, *quiet, there=True)
        with pytest.raises(InputError, match="outside of what this server may read"):
            given(["gs://team/runs/one/**"], ["gs://team/other"], *quiet, there=True)
        with pytest.raises(InputError, match="no such file or folder there"):
            given(["gs://team/runs/two"], None, *quiet, there=True)
    told = [(file.url, file.name, file.bytes) for file in found.far]
    assert told == [(f"gs://team/runs/one/{name}", name, len(LOG)) for name in ("a.log", "deep/b.log")]
    assert (found.paths, found.name) == ((), "one")
    assert not list(place.store.uploads_folder.iterdir())


def test_a_web_server_is_read_and_one_that_leads_elsewhere_is_not_followed(place):
    with bucket("team", {"train.log": LOG.encode()}) as server:
        plain = f"{server}/x/b/team/o/train.log?alt=media"
        [folder] = asked(place, plain, below=[f"{server}/x"]).paths
        assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("train.log", LOG)]
        with pytest.raises(InputError, match="cannot be (read|fetched)"):
            asked(place, f"{server}/x/b/team/o/none?alt=media")


def test_many_files_in_one_pattern_are_soon_found(place, data):
    for number in range(3000):
        (data / "run-1" / f"{number:05}.log").touch()
    began = time.monotonic()
    assert len(asked(place, f"{data}/**/*.log").paths) == 3004
    assert time.monotonic() - began < 10


def test_a_pattern_that_is_made_to_take_long_does_not(place, data):
    (data / "run-1" / ("a" * 200)).touch()
    began = time.monotonic()
    with pytest.raises(InputError, match="no file fits"):
        asked(place, f"{data}/**/**/**/**/{'*a' * 40}b")
    assert time.monotonic() - began < 5


def test_what_is_no_folder_of_this_user_is_told(place, data):
    if os.geteuid() == 0:
        pytest.skip("whoever is root may read everything")
    (data / "run-1").chmod(0)
    try:
        with pytest.raises(InputError):
            asked(place, f"{data}/run-1/*.log")
    finally:
        (data / "run-1").chmod(0o700)

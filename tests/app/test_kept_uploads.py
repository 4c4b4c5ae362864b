"""Uploads beside runs: what a stored run was made of stays, what nobody uses is swept, and nothing half remains."""

import asyncio
import contextlib
import fcntl
import os
import threading
import time

import pytest

from app.cli.commands.ingest import remember
from app.serve.upload_runs import in_use
from app.serve.uploads import UNUSED_SECONDS, Uploads
from collectors.ingest import ingest
from errors import InputError, QuestionError
from tests.app.commands import out
from tests.app.test_uploads import receive
from tests.collectors.ingesting import LOG
from tests.collectors.test_unpack import zipped


@pytest.fixture
def uploads(place):
    return Uploads(place.store.uploads_folder, place)


def kept(place):
    return sorted(p.name for p in place.store.uploads_folder.iterdir())


def aged(uploads, upload):
    """As if nobody had touched it for longer than an upload is kept."""
    long_ago = time.time() - UNUSED_SECONDS - 60
    folder = uploads.files(upload).parent
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (long_ago, long_ago))


@pytest.mark.parametrize("content", [LOG.encode(), zipped({"train.log": LOG})], ids=["a log", "an archive"])
def test_inputs_of_a_stored_run_cannot_be_discarded_nor_are_they_swept(place, uploads, content, capsys):
    upload = uploads.begin()
    receive(uploads, upload, "train", content)
    code, _, _ = out(capsys, "ingest", "--store", place.store.root, uploads.files(upload))
    [run] = place.store.runs()
    assert code == 0
    with pytest.raises(InputError, match=f"holds the inputs of run {run.run_id}"):
        uploads.discard(upload)
    aged(uploads, upload)
    uploads.sweep()
    assert (uploads.files(upload) / "train").read_bytes() == content
    place.store.remove(run.run_id)
    uploads.sweep()
    assert kept(place) == []


def test_an_upload_of_before_runs_were_noted_is_kept_for_its_run(place, uploads):
    upload = uploads.begin()
    receive(uploads, upload, "train.log", LOG.encode())
    paths = [uploads.files(upload)]
    run_id = ingest(paths, place.store).run_id
    remember(paths, place, run_id)
    (place.store.uploads_folder / f"{upload}.runs").unlink()
    with pytest.raises(InputError, match=f"holds the inputs of run {run_id}"):
        uploads.discard(upload)
    place.store.remove(run_id)
    aged(uploads, upload)
    uploads.sweep()
    assert kept(place) == [upload], "nobody knows what was made of it"
    uploads.discard(upload)
    assert kept(place) == []


def test_an_upload_that_no_run_was_made_of_is_swept_when_nobody_touched_it_for_long(place, uploads):
    old, new = uploads.begin(), uploads.begin()
    for upload in (old, new):
        receive(uploads, upload, "a/x.bin", b"1")
    aged(uploads, old)
    uploads.sweep()
    assert kept(place) == [new, f"{new}.runs"]


def test_an_upload_that_is_being_read_is_neither_discarded_nor_swept(place, uploads):
    upload = uploads.begin()
    receive(uploads, upload, "a", b"1")
    aged(uploads, upload)
    with in_use([uploads.files(upload) / "a"], place.store.uploads_folder):
        with pytest.raises(InputError, match="being read into a run"):
            uploads.discard(upload)
        uploads.sweep()
        assert upload in kept(place)
    uploads.discard(upload)
    assert kept(place) == []


def test_half_files_of_a_killed_server_are_swept_and_those_of_one_that_lives_are_not(place, uploads):
    upload = uploads.begin()
    folder = place.store.uploads_folder / upload
    dead, alive = folder / "dead.part", folder / "alive.part"
    dead.write_bytes(b"half")
    with alive.open("xb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        Uploads(place.store.uploads_folder, place).sweep()
        assert not dead.exists() and alive.exists()


@pytest.mark.parametrize("when", ["before the first byte", "amid", "at the end"])
def test_a_file_that_arrives_while_its_upload_is_discarded_is_told_and_leaves_nothing(place, uploads, when):
    upload = uploads.begin()

    async def chunks():
        for moment in ("before the first byte", "amid", "at the end"):
            if moment == when:
                uploads.discard(upload)
            if moment != "at the end":
                yield b"x" * (1 << 20)

    with pytest.raises(QuestionError, match="no upload"):
        asyncio.run(uploads.receive(upload, "a/b.log", chunks(), None))
    assert kept(place) == [] and uploads._bytes == {}


def test_many_files_and_one_discard_at_once(place, uploads):
    upload = uploads.begin()
    problems = []

    def put(number):
        try:
            receive(uploads, upload, f"f{number}/x", *[b"x" * 300_000] * 20)
        except (InputError, QuestionError) as e:
            problems.append(str(e))

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    uploads.discard(upload)
    for t in threads:
        t.join()
    assert kept(place) == [] and all("\n" not in p for p in problems)


def test_uploads_of_a_store_that_is_gone_make_none(place, uploads):
    place.store.uploads_folder.rename(place.store.root / "away")
    with pytest.raises(InputError, match="cannot be written"):
        uploads.begin()
    with contextlib.suppress(QuestionError):
        uploads.files("0" * 32)
    assert not place.store.uploads_folder.exists()

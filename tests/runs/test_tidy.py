"""What a process leaves that is killed between two steps goes when the store is opened next; what is in use stays."""

import os
import time
from pathlib import Path

from app.serve.here import announced, server_of
from app.serve.uploads import UNUSED_SECONDS, Uploads
from app.workspace import workspace
from runs.live import Live
from runs.scratch import long_unseen
from runs.tidy import sweep_left
from tests.app import made_runs

HALF = ".live.json." + "0" * 32


def test_answers_of_runs_that_are_gone_go_and_those_of_runs_that_are_there_stay(tmp_path):
    place = workspace(str(tmp_path / "store"))
    run = made_runs.interrupted(place.store)
    for run_id in (run.run_id, "abcd1234"):
        (folder := place.store.root / "derived" / run_id / "key").mkdir(parents=True)
        (folder / "0.column").write_bytes(b"x")
    sweep_left(place.store)
    assert [p.name for p in (place.store.root / "derived").iterdir()] == [run.run_id]


def test_half_a_pointer_goes_unless_somebody_follows_the_job(tmp_path):
    store = workspace(str(tmp_path / "store")).store
    store.live.write(Live("job", "p", "j"))
    half, other = store.live.of("job") / HALF, store.live.of("job") / ".hidden"
    half.touch(), other.touch()
    with store.live.following("job"):
        sweep_left(store)
        assert half.exists(), "it may be written at this moment"
    sweep_left(store)
    assert not half.exists() and other.exists() and store.live.read("job") is not None


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_note_of_an_upload_that_never_was_goes_after_a_minute(tmp_path):
    uploads = Uploads(tmp_path / "uploads")
    uploads.folder.mkdir()
    old, young = (uploads.folder / f"{c * 32}.runs" for c in "ab")
    old.touch(), young.touch()
    aged(old, 100)
    begun = uploads.begin()
    uploads.sweep()
    assert {p.name for p in uploads.folder.iterdir()} == {young.name, begun, f"{begun}.runs"}


def test_an_upload_is_not_swept_where_nobody_looked_for_a_week_or_the_clock_jumped(tmp_path, monkeypatch):
    uploads = Uploads(tmp_path / "uploads")
    uploads.folder.mkdir()
    begun, now = uploads.begin(), time.time_ns()
    (uploads.files(begun) / "a.log").write_text("x")
    for days in (400, 0, -1000, 400):
        moved = now + days * 86_400 * 10**9
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda moved=moved: moved)
            patch.setattr(time, "time", lambda moved=moved: moved / 1e9)
            patch.setattr(os, "utime", _at(moved, os.utime))
            uploads.sweep()
        assert uploads.files(begun).is_dir(), days
    aged(uploads.files(begun) / "a.log", UNUSED_SECONDS + 60)
    aged(uploads.files(begun), UNUSED_SECONDS + 60)
    aged(uploads.files(begun).parent, UNUSED_SECONDS + 60)
    aged(tmp_path / "uploads.seen", 3600)
    uploads.sweep()
    assert not (uploads.folder / begun).exists(), "one that is old by a clock that is right goes"


def _at(moved_ns, real):
    """`os.utime` by a clock that jumped: where no time is given, the system's own would be used."""

    def utime(path, times=None, *, ns=None, **more):
        return real(path, ns=ns or (moved_ns, moved_ns)) if times is None else real(path, times, **more)

    return utime


def test_who_never_looked_before_saw_no_jump(tmp_path):
    assert not long_unseen(tmp_path / "seen", 10) and not long_unseen(tmp_path / "seen", 10)
    aged(tmp_path / "seen", 60)
    assert long_unseen(tmp_path / "seen", 10) and not long_unseen(tmp_path / "seen", 10)


def test_addresses_of_servers_that_were_killed_go_with_the_next_server(tmp_path):
    (folder := tmp_path / "serving").mkdir()
    (folder / "a.json").write_text('{"url": "http://127.0.0.1:1"}')
    (folder / "b.part").touch(), (folder / "c.part").touch()
    aged(folder / "b.part", 100)
    with announced(tmp_path, "http://127.0.0.1:2"):
        assert not (folder / "a.json").exists() and not (folder / "b.part").exists() and (folder / "c.part").exists()
        assert len(list(folder.glob("*.json"))) == 1 and server_of(tmp_path) is None

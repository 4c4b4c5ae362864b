"""Folders that are being written: held by a lock, whatever process ids say; swept when their owner is gone."""

import multiprocessing
import os
import shutil
import signal
import threading

import pytest

from runs.scratch import UNLOCKED_AGE_S
from runs.store import Store
from tests.runs.test_store import write


def _hold(root, ready, number):
    os.getpid = lambda: number  # as in another container: this number is nobody's here
    with Store(root).writer():
        ready.set()
        signal.pause()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def partial(store):
    return sorted(p.name for p in (store.root / "partial").iterdir())


def test_a_writer_of_another_container_is_left_alone_until_it_is_gone(store):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_hold, args=(store.root, ready, 4_194_303))
    process.start()
    try:
        for _ in range(300):  # where others keep the machine busy, what it imports takes long
            if ready.wait(1) or not process.is_alive():
                break
        assert ready.is_set(), f"the writer ended with {process.exitcode}, or takes over five minutes to begin"
        held = partial(store)
        Store(store.root)
        assert partial(store) == held and len(held) == 1
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    Store(store.root)
    assert partial(store) == []


def test_what_this_process_holds_is_left_alone_too(store):
    with store.hold() as held:
        Store(store.root)
        assert held.folder.is_dir()
    assert not held.folder.exists()


def test_many_open_and_write_at_once_and_nothing_is_swept_under_a_writer(store):
    failures = []

    def work(number):
        try:
            for turn in range(5):
                write(Store(store.root), run_id=f"run{number}x{turn}", rows=1)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and len(store.ids()) == 30 and partial(store) == []


def test_a_folder_without_a_lock_is_swept_when_nobody_touched_it_for_a_day(store):
    """As earlier versions left them, and as file systems without locks have them."""
    for name in (f"{os.getpid()}-old", "4194303-new"):
        (store.root / "partial" / name / "tables").mkdir(parents=True)
    old = store.root / "partial" / f"{os.getpid()}-old"
    long_ago = os.stat(old).st_mtime - UNLOCKED_AGE_S - 60
    for path in (old / "tables", old):
        os.utime(path, (long_ago, long_ago))
    Store(store.root)
    assert partial(store) == ["4194303-new"]


@pytest.mark.parametrize("new", [True, False], ids=["new run whole", "old run alone"])
def test_a_kill_between_taking_a_run_away_and_putting_the_new_one_there_loses_none(store, new):
    run = write(store)
    left = store.root / "partial" / "left"
    (left / "replaced" / "0").mkdir(parents=True)
    (left / "lock").touch()
    if new:
        shutil.copytree(run.folder, left / "run")
    run.folder.rename(left / "replaced" / "0" / run.run_id)
    assert store.ids() == []
    assert Store(store.root).get(run.run_id).tables.rows("steps") == 3 and partial(store) == []


def test_a_run_that_is_replaced_is_there_at_every_moment_but_one_rename(store):
    write(store, rows=3)
    with store.writer() as w:
        run = w.commit(run_id="abcd1234", name="anew", kind="training", facts={}, sources=[], replace=True)
    assert (run.manifest.name, run.tables.rows("steps")) == ("anew", 0)
    assert store.ids() == ["abcd1234"] and partial(store) == []


@pytest.fixture
def copies():
    """Makes processes that have every file of this one open, as one that another thread starts has for a moment."""
    started = []

    def copy():
        if not (pid := os.fork()):
            signal.pause()
            os._exit(0)
        started.append(pid)

    yield copy
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_lock_that_is_let_go_is_free_though_a_process_that_was_started_meanwhile_has_its_file(store, copies):
    def leave(name):
        (store.root / "partial" / name).mkdir()
        (store.root / "partial" / name / "lock").touch()

    leave("first")
    store._scratch.sweep(lambda folder: copies())
    leave("second")
    Store(store.root)
    assert partial(store) == []
    with store.hold():
        copies()
    leave("third")
    Store(store.root)
    assert partial(store) == []
    with store.live.following("night"):
        copies()
    with store.live.following("night"):
        pass


def test_a_folder_whose_owner_was_killed_while_it_removed_it_is_swept_at_once(store):
    held = store.hold()
    (held.folder / "run").mkdir()
    (held.folder / "lock").unlink()
    Store(store.root)
    assert partial(store) == []


def test_a_run_that_was_replaced_and_then_removed_does_not_come_back(store, monkeypatch):
    """The writer is killed before it cleared up."""
    write(store, rows=3)
    with monkeypatch.context() as killed:
        killed.setattr("runs.scratch.Held.end", lambda held: held._lock.close())
        with store.writer() as w:
            w.commit(run_id="abcd1234", name="anew", kind="training", facts={}, sources=[], replace=True)
    store.remove("abcd1234")
    assert len(partial(store)) == 1
    assert Store(store.root).ids() == [] and partial(store) == []

"""The bin: a run lies whole in exactly one of `runs/` and the bin, whatever ends when, and comes back as it was."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.library import changes
from app.workspace import Workspace, workspace
from errors import InputError, QuestionError
from runs import bin as binning
from runs.bin import KEPT_S
from runs.live import Live
from runs.registry import Registry
from runs.shelf import Shelf
from runs.store import Store
from runs.tidy import forget_gone
from tests.app import made_runs

PROJECT = Path(__file__).parents[2]
DAY_NS = 86_400 * 1_000_000_000


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = workspace(str(tmp_path / "store"))
    made_runs.interrupted(place.store, name="first")
    made_runs.interrupted(place.store, name="second")
    return place


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def aged(place: Workspace, run_id: str, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(place.store.bin.folder / run_id, (then, then))


def test_a_deleted_run_is_found_nowhere_but_in_the_bin_and_comes_back_as_it_was(place):
    run = place.store.find("first")
    before = content(run.folder)
    changes.rename(place, "first", "mine", who="ann")
    changes.add_note(place, "mine", "look at *this*")
    (put,) = changes.bin_many(place, ["mine"], who="bob")
    assert (put.name, put.who, put.until_ns - put.since_ns) == ("mine", "bob", int(KEPT_S * 1e9))
    assert [r.manifest.name for r in place.store.runs()] == ["second"]
    for name in ("mine", "first", run.run_id, run.run_id[:8]):
        with pytest.raises(QuestionError, match=rf"run {run.run_id[:12]} is in the bin, until .* `chipledger restore"):
            place.store.find(name)
    assert changes.binned(place) == [put]
    assert changes.restore(place, ["mine"]) == [put] and changes.binned(place) == []
    back = place.store.find("mine")
    assert content(back.folder) == before and changes.notes(place, "mine")[0].text == "look at *this*"


def test_several_are_deleted_and_restored_all_or_none(place):
    with pytest.raises(QuestionError, match="no run 'third'"):
        changes.bin_many(place, ["first", "third"])
    assert len(place.store.runs()) == 2
    changes.bin_many(place, ["first", "second", "first"])
    with pytest.raises(QuestionError, match="no run 'third' in the bin"):
        changes.restore(place, ["first", "third"])
    assert place.store.runs() == [] and len(changes.binned(place)) == 2
    assert len(changes.restore(place, ["first", "second"])) == 2 and len(place.store.runs()) == 2


def test_of_many_each_is_moved_without_a_look_at_all_that_lie_there(place, monkeypatch):
    ids = [run.run_id for run in place.store.runs()]
    with monkeypatch.context() as patch:
        patch.setattr(binning.Bin, "runs", lambda self: pytest.fail("the whole bin was listed"))
        told = changes.bin_many(place, ids)
        assert [(one.run_id, one.since_ns) for one in changes.restore(place, ids)] == [
            (one.run_id, one.since_ns) for one in told
        ]
        changes.bin_many(place, ids)
    assert [(b.run_id, b.who) for b in changes.binned(place)] == [(i, "") for i in reversed(ids)]


def test_what_lay_there_for_thirty_days_goes_when_a_store_is_opened_with_all_that_was_added(place):
    first, second = (place.store.find(n).run_id for n in ("first", "second"))
    changes.star(place, ["first"])
    changes.add_note(place, "first", "x")
    changes.bin_many(place, ["first", "second"])
    aged(place, first, 30.1), aged(place, second, 29.9)
    from runs.tidy import purge_on_opening

    purge_on_opening(Store(place.store.root), place.registry.path)
    assert [b.run_id for b in changes.binned(place)] == [second]
    assert Shelf(place.registry.path).places() == {} and place.registry.added() == {}
    assert changes.restore(place, [second])


def test_deleting_now_leaves_nothing(place):
    run_id = place.store.find("first").run_id
    changes.add_note(place, "first", "x")
    changes.bin_many(place, ["first"])
    changes.bin_many(place, ["first"], now=True)
    changes.bin_many(place, ["second"], now=True)
    assert not place.store.has(run_id) and changes.binned(place) == [] and place.registry.added() == {}
    assert list((place.store.root / "partial").iterdir()) == []
    with pytest.raises(QuestionError, match="no run 'first' in this store"):
        place.store.find("first")


def test_a_run_that_cannot_be_read_is_deleted_and_restored_by_its_id(place):
    run = place.store.find("first")
    (run.folder / "run.json").write_text("{")
    (put,) = changes.bin_many(place, [run.run_id])
    assert put.name == run.run_id and [b.run_id for b in changes.binned(place)] == [run.run_id]
    assert changes.restore(place, [run.run_id])


def test_a_run_that_is_followed_is_not_deleted(place):
    run_id, now = place.store.find("first").run_id, time.time_ns()
    place.store.live.write(Live("job", "p", "j", run_id=run_id, last_poll_ns=now))
    for names in (["live:job"], ["second", run_id]):
        with pytest.raises(QuestionError, match=r"is being followed as live:job, and cannot be deleted"):
            changes.bin_many(place, names)
    assert len(place.store.runs()) == 2
    place.store.live.write(Live("job", "p", "j", state="finished", run_id=run_id, last_poll_ns=now))
    changes.bin_many(place, ["live:job"])
    with pytest.raises(QuestionError, match="is in the bin"):
        place.store.find("live:job")


def test_a_run_that_lies_in_both_counts_where_it_is_in_use(place):
    run = place.store.find("first")
    before = content(run.folder)
    changes.bin_many(place, ["first"])
    made_runs.interrupted(place.store, name="first")  # the same input, in that moment
    assert changes.binned(place) == [] and place.store.find("first").run_id == run.run_id
    assert place.store.bin.empty() == [] and not place.store.bin.has(run.run_id)
    changes.bin_many(place, ["first"])
    made_runs.interrupted(place.store, name="first")
    changes.bin_many(place, ["first"])
    assert len(changes.binned(place)) == 1 and not place.store.has(run.run_id)
    made_runs.interrupted(place.store, name="first")
    assert place.store.bin.restore(run.run_id) and not place.store.bin.has(run.run_id)
    assert content(run.folder).keys() == before.keys()


def test_names_that_lead_elsewhere_are_no_runs_of_the_bin(place):
    for name in ("..", ".", "", "../runs", "a/b", "/etc"):
        assert not place.store.bin.put(name) and not place.store.bin.restore(name) and not place.store.bin.has(name)
        assert not place.store.bin.remove(name)


def test_what_a_killed_process_left_unsaid_is_put_right(place):
    shelf, first = Shelf(place.registry.path), place.store.find("first").run_id
    changes.add_note(place, "first", "x")
    shelf.note_binned(first, "first", "ann")
    shelf.note_binned("gone", "gone", "ann")
    forget_gone(place.store, shelf)
    assert shelf.when_binned().keys() == {"gone"}, "one that is in the store was never deleted"
    with shelf._connect() as db:
        db.execute("update binned set binned_ns = binned_ns - ?", (2 * DAY_NS,))
    forget_gone(place.store, shelf)
    assert shelf.when_binned() == {} and changes.notes(place, "first")


KILLED = """
import os, signal, sys, traceback
from pathlib import Path
from app.library import changes
from app.workspace import workspace
from runs import bin as binning
from runs.shelf import Shelf
def killed_at(at):
    seen = [0]
    def counting(real):
        def call(*given, **more):
            seen[0] += 1
            if seen[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*given, **more)
            seen[0] += 1
            if seen[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return done
        return call
    looked = ((Path, "rename"), (os, "utime"), (binning, "sync"), (os, "open"), (os, "mkdir"), (Shelf, "_connect"))
    for owner, name in looked:
        setattr(owner, name, counting(getattr(owner, name)))
for line in sys.stdin:
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            place = workspace(sys.argv[1])
            killed_at(int(line))
            getattr(changes, sys.argv[2])(place, [sys.argv[3]])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.parametrize("verb", ["bin_many", "restore"])
def test_killed_at_each_step_a_run_is_whole_in_exactly_one_place(place, verb):
    """One process forks another for each step: each would read the project's modules anew."""
    run = place.store.find("first")
    before, at, ends, ended = content(run.folder), 0, set[str](), -signal.SIGKILL
    arguments = [sys.executable, "-c", KILLED, str(place.store.root), verb, run.run_id]
    with subprocess.Popen(arguments, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        while ended == -signal.SIGKILL:
            at += 1
            if verb == "restore" and place.store.has(run.run_id):
                place.store.bin.put(run.run_id)
            elif verb == "bin_many" and not place.store.has(run.run_id):
                place.store.bin.restore(run.run_id)
            print(at, file=process.stdin, flush=True)
            ended = int(process.stdout.readline())
            again = Store(place.store.root)
            there = [f for f in (again.runs_folder / run.run_id, again.bin.folder / run.run_id) if f.is_dir()]
            assert len(there) == 1 and content(there[0]) == before, f"killed at {at}"
            ends.add(there[0].parent.name)
    assert ended == 0 and at > 6 and ends == {"runs", "bin"}, "it was killed before and after the move"


def test_killed_at_random_instants_a_run_is_whole_in_exactly_one_place(place):
    run = place.store.find("first")
    before, rng = content(run.folder), random.Random(7)
    code = (
        "import os, signal, sys\nfrom app.library import changes\nfrom app.workspace import workspace\n"
        "while sys.stdin.readline():\n"  # a process for each: to import what it needs takes longer than it lives
        "    if child := os.fork():\n"
        "        os.waitpid(child, 0)\n"
        "        print('ended', flush=True)\n"
        "        continue\n"
        "    signal.alarm(60)\n"
        "    place = workspace(sys.argv[1])\n"
        "    print(os.getpid(), flush=True)\n"
        "    while True:\n"
        "        (changes.bin_many if place.store.has(sys.argv[2]) else changes.restore)(place, [sys.argv[2]])\n"
    )
    arguments = [sys.executable, "-c", code, str(place.store.root), run.run_id]
    forks = subprocess.Popen(arguments, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert forks.stdin is not None and forks.stdout is not None
    for _ in range(8):
        forks.stdin.write("begin\n")
        forks.stdin.flush()
        begun = int(forks.stdout.readline())
        time.sleep(rng.random() * 0.2)
        os.kill(begun, signal.SIGKILL)
        assert forks.stdout.readline() == "ended\n"
        again = Store(place.store.root)
        there = [f for f in (again.runs_folder / run.run_id, again.bin.folder / run.run_id) if f.is_dir()]
        assert len(there) == 1 and content(there[0]) == before
        Registry(place.registry.path).said()
    forks.communicate(timeout=60)


def test_two_who_delete_and_restore_at_once_lose_nothing(place):
    run = place.store.find("first")
    before = content(run.folder)
    code = (
        "import sys\nfrom runs.store import Store\nstore = Store(sys.argv[1])\n"
        "for _ in range(150):\n    getattr(store.bin, sys.argv[3])(sys.argv[2])\n"
    )
    arguments = [sys.executable, "-c", code, str(place.store.root), run.run_id]
    both = [subprocess.Popen([*arguments, verb], cwd=PROJECT) for verb in ("put", "restore", "put")]
    assert [process.wait(120) for process in both] == [0, 0, 0]
    there = [f for f in (run.folder, place.store.bin.folder / run.run_id) if f.is_dir()]
    assert len(there) == 1 and content(there[0]) == before


def test_on_a_full_disk_a_run_is_moved_all_the_same_and_nothing_is_lost(place):
    """No file may grow: what a full disk says to each write. A rename needs no room."""
    run = place.store.find("first")
    before = content(run.folder)
    code = (
        "import resource, signal, sys\nfrom app.library import changes\nfrom app.workspace import workspace\n"
        "place = workspace(sys.argv[1])\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "print(getattr(changes, sys.argv[3])(place, [sys.argv[2]])[0].run_id)\n"
        "try:\n    changes.rename(place, 'second', 'other')\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
    )
    for verb in ("bin_many", "restore"):
        arguments = [sys.executable, "-c", code, str(place.store.root), run.run_id, verb]
        done = subprocess.run(arguments, cwd=PROJECT, capture_output=True, text=True, timeout=120)
        said = done.stdout.splitlines()
        assert done.returncode == 0 and said[0] == run.run_id, done.stderr
        assert said[1].startswith("InputError ") and "the registry cannot be written" in said[1]
        there = [f for f in (run.folder, place.store.bin.folder / run.run_id) if f.is_dir()]
        assert len(there) == 1 and content(there[0]) == before
        assert there[0] == (place.store.bin.folder / run.run_id if verb == "bin_many" else run.folder)
    assert place.store.find("second").manifest.name == "second"


def test_a_store_that_cannot_be_written_says_so(place, monkeypatch):
    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(binning.os, "utime", refused)
    with pytest.raises(InputError, match=r"cannot be written \(Read-only file system\)"):
        changes.bin_many(place, ["first"])
    assert len(place.store.runs()) == 2


def test_the_same_files_again_bring_a_run_back_from_the_bin(place, tmp_path):
    from collectors.ingest import RESTORED, ingest

    (tmp_path / "goodput.jsonl").write_bytes(made_runs.goodput_log())
    run_id = ingest([tmp_path / "goodput.jsonl"], place.store).run_id
    changes.add_note(place, run_id, "kept")
    changes.bin_many(place, [run_id])
    done = ingest([tmp_path / "goodput.jsonl"], place.store)
    assert (done.run_id, done.existed, done.restored) == (run_id, True, True) and RESTORED in done.warnings
    assert changes.binned(place) == [] and changes.notes(place, run_id)[0].text == "kept"
    again = ingest([tmp_path / "goodput.jsonl"], place.store)
    assert (again.existed, again.restored) == (True, False) and RESTORED not in again.warnings
    changes.bin_many(place, [run_id])
    anew = ingest([tmp_path / "goodput.jsonl"], place.store, again=True)
    assert (anew.run_id, anew.replaced) == (run_id, True) and RESTORED in anew.warnings
    assert not place.store.bin.has(run_id)


@pytest.mark.parametrize("wrong_s", [400 * 86_400.0, -50 * 365 * 86_400.0])
def test_a_clock_that_is_wrong_for_a_while_takes_nothing_out_of_the_bin(place, monkeypatch, wrong_s):
    first, right = made_runs.interrupted(place.store, "first"), time.time_ns()
    changes.bin_many(place, [first.run_id])
    assert changes.purge(place) == []
    monkeypatch.setattr(binning.time, "time_ns", lambda: right + int(wrong_s * 1e9))
    assert changes.purge(place) == []
    second = made_runs.interrupted(place.store, "second")
    changes.bin_many(place, [second.run_id])
    then = (right + int(wrong_s * 1e9)) / 1e9
    os.utime(place.store.bin.folder / second.run_id, (then, then))
    for days in (0, 1, 29):
        monkeypatch.setattr(binning.time, "time_ns", lambda days=days: right + int(days * 86_400e9))
        assert changes.purge(place) == []
        assert all(b.since_ns <= right for b in changes.binned(place))
    monkeypatch.setattr(binning.time, "time_ns", lambda: right + int(30.5 * 86_400e9))
    assert set(changes.purge(place)) == {first.run_id, second.run_id}

"""What people say of runs, killed at any moment: a store that is opened then holds what was before or what was asked.

A child is killed at each statement that it puts to the registry, and at each change of the store's folders; and a
process that changes everything without end is killed at random instants.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.workspace import Workspace, workspace
from runs.registry import Registry
from runs.shelf import Shelf
from runs.store import Store
from tests.app import made_runs

PROJECT = Path(__file__).parents[2]
IMPORTS = """
import itertools, json, os, shutil, signal, sys, time
from pathlib import Path
from app.facts.told import declare
from app.library import changes
from app.workspace import workspace
from runs import database
from runs.registry import Registry
from runs.shelf import Search, Shelf
"""
# a process for each of those that are asked for, and then its exit code: to import what they need takes longer
ONE_BY_ONE = """
for asked in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        signal.alarm(60)
        sys.argv[1:] = asked
        break
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
else:
    sys.exit()
"""
BEGIN = """
place, first, second = workspace(sys.argv[1]), sys.argv[2], sys.argv[3]
registry, shelf, both = Registry(place.registry.path), Shelf(place.registry.path), [first, second]

def act(what, at):
    if what == "rename": changes.rename(place, first, f"name {at}")
    if what == "note": changes.add_note(place, first, f"note {at}", who="ann")
    if what == "edit": changes.edit_note(place, first, changes.notes(place, first)[-1].id, f"edited {at}")
    if what == "tag": changes.tag_many(place, both, {"a": str(at), "b": str(at)})
    if what == "star": changes.star(place, both, at % 2 == 1)
    if what == "archive": changes.archive(place, both, at % 2 == 1)
    if what == "group": changes.move_to_group(place, both, f"project {at}/experiment {at}")
    if what == "facts": declare(place.store.find(first), {"chips": 256 + at, "seq": 128 * (256 + at)}, "ann", place)
    if what == "price": declare(place.store.find(first), {"usd_per_chip_hour": at + 0.5}, "ann", place)
    if what == "search": changes.save_search(place, "mine", f"chip:v{at}")
"""
# says what was told before each child, what was asked for, and what is told after it; the last ran to its end
EACH = """
def told():
    said, extras = registry.said(both), registry.all_extras(both)
    where = [shelf.place(i) for i in both]
    facts = said[first].facts if first in said else {}
    return {
        "name": (said[first].name or None) if first in said else None,
        "renames": [r.name for r in shelf.renames(first)],
        "notes": sorted(n.text for n in shelf.notes(first)),
        "tags": [dict(extras[i].tags) if i in extras else {} for i in both],
        "starred": [w.starred for w in where],
        "archived": [w.archived for w in where],
        "group": [[w.project, w.experiment] for w in where],
        "facts": {n: f.value for n, f in facts.items()},
        "price": extras[first].usd_per_chip_hour if first in extras else None,
        "log": sorted([d.key, d.value] for d in registry.declarations(first)),
        "searches": [s.query for s in shelf.searches()],
    }

def wanted(was, what, at):
    usd, facts, tags = at + 0.5, {"chips": 256 + at, "seq": 128 * (256 + at)}, {"a": str(at), "b": str(at)}
    return was | {
        "rename": {"name": f"name {at}", "renames": [*was["renames"], f"name {at}"]},
        "note": {"notes": sorted([*was["notes"], f"note {at}"])},
        "edit": {"notes": [f"edited {at}"]},
        "tag": {"tags": [tags, tags]},
        "star": {"starred": [at % 2 == 1] * 2},
        "archive": {"archived": [at % 2 == 1] * 2},
        "group": {"group": [[f"project {at}", f"experiment {at}"]] * 2},
        "facts": {"facts": facts, "log": sorted([*was["log"], *map(list, facts.items())])},
        "price": {"price": usd, "log": sorted([*was["log"], ["usd_per_chip_hour", usd]])},
        "search": {"searches": [f"chip:v{at}"]},
    }[what]

act("note", 0)
for at in itertools.count(1):
    before, pid = told(), os.fork()
    if not pid:
        signal.alarm(60)
        opened, seen = database._opened, [0]
        def one(_):
            seen[0] += 1
            if seen[0] == at: os.kill(os.getpid(), signal.SIGKILL)
        def counted(*given):
            db, refused = opened(*given)
            db.set_trace_callback(one)
            return db, refused
        database._opened = counted
        act(sys.argv[4], at)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    killed = os.WIFSIGNALED(status)
    assert killed or status == 0, status
    print(json.dumps([killed, before, wanted(before, sys.argv[4], at), told()]))
    if not killed: break
"""
# for each line that it is given a process, which says its number; then, once it has ended, its exit code
WHEN_ASKED = """
for _ in sys.stdin:
    if not (child := os.fork()):
        signal.alarm(60)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
"""
ENDLESS = """
print(os.getpid(), flush=True)
act("note", 0)
for at in itertools.count(int(time.time() * 1000) % 100_000):
    for what in ("rename", "note", "edit", "tag", "star", "archive", "group", "facts", "price", "search"):
        act(what, at)
"""
SAID = ("rename", "note", "edit", "tag", "star", "archive", "group", "facts", "price", "search")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return stored(tmp_path)


def stored(folder: Path) -> Workspace:
    place = workspace(str(folder / "store"))
    made_runs.interrupted(place.store, name="first")
    made_runs.interrupted(place.store, name="second")
    return place


def ids(place: Workspace) -> list[str]:
    return [place.store.find(n).run_id for n in ("first", "second")]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Workspace, list]]:
    """A store for each of what can be said, and what was told of each child that said it there."""
    places = {what: stored(tmp_path_factory.mktemp(what)) for what in SAID}
    given = json.dumps([[str(place.store.root), *ids(place), what] for what, place in places.items()])
    arguments = [sys.executable, "-c", IMPORTS + ONE_BY_ONE + BEGIN + EACH, given]
    done = subprocess.run(arguments, cwd=PROJECT, stdout=subprocess.PIPE, text=True, timeout=900)
    told: list[list] = [[]]
    for line in map(json.loads, done.stdout.splitlines()):
        told[-1].append(line)
        if isinstance(line, int):
            told.append([])
    return {what: (place, lines) for (what, place), lines in zip(places.items(), told, strict=False)}


@pytest.mark.parametrize("what", SAID)
def test_killed_at_each_statement_what_is_said_is_kept_whole_or_not_at_all(killed, what):
    place, [*kills, last, code] = killed[what]
    assert code == 0
    assert len(kills) >= 3, "killed before the transaction began, within it, and before its commit"
    for number, (one_killed, before, wanted, after) in enumerate(kills, 1):
        assert one_killed and after in (before, wanted), f"killed at statement {number}"
    assert any(before == after != wanted for _, before, wanted, after in kills)
    one_killed, _, wanted, after = last
    assert not one_killed and after == wanted, "without a kill it is done"
    assert sound(place)


def sound(place: Workspace) -> bool:
    with sqlite3.connect(place.registry.path) as db:
        return [row for (row,) in db.execute("pragma integrity_check")] == ["ok"]


def kill(asked: "subprocess.Popen[str]", after_s: float) -> None:
    """Have a process change everything without end, and kill it after a while."""
    assert asked.stdin is not None and asked.stdout is not None
    print(file=asked.stdin, flush=True)
    child = int(asked.stdout.readline())
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    assert asked.stdout.readline() == f"{-signal.SIGKILL}\n"


def test_killed_at_random_instants_nothing_is_kept_by_halves(place):
    first, second = ids(place)
    rng = random.Random(11)
    arguments = [sys.executable, "-c", IMPORTS + WHEN_ASKED + BEGIN + ENDLESS, str(place.store.root), first, second]
    with subprocess.Popen(arguments, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        for _ in range(8):
            kill(asked, 0.1 + 0.4 * rng.random())
            assert sound(place)
            registry, shelf = Registry(place.registry.path), Shelf(place.registry.path)
            extras, places, said = registry.all_extras([first, second]), shelf.places(), registry.said([first])[first]
            assert said.name == shelf.renames(first)[-1].name, "the name is the one that was given last"
            assert extras[first].tags == extras[second].tags and len(extras[first].tags) in (0, 2)
            assert len(set(extras[first].tags.values())) < 2
            assert places.get(first) == places.get(second)
            facts = {name: fact.value for name, fact in said.facts.items()}
            assert facts.get("seq", 0) == 128 * facts.get("chips", 0)
            assert [r.manifest.name for r in Store(place.store.root, registry.said).runs()].count(said.name) == 1
    assert len(Shelf(place.registry.path).notes(first)) > 8, "it did get along between the kills"


PURGE = """
def counting(real, at, seen):
    def call(*given, **more):
        for _ in range(2):
            seen[0] += 1
            if seen[0] == at: os.kill(os.getpid(), signal.SIGKILL)
            if _: return done
            done = real(*given, **more)
    return call

kept, lying = Path(sys.argv[4]), place.store.bin.folder / first
for at in itertools.count(1):
    if not lying.is_dir(): shutil.copytree(kept, lying)
    changes.add_note(place, second, f"other {at}")
    os.utime(lying, (time.time() - 31 * 86_400,) * 2)
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        seen = [0]
        for owner, name in ((Path, "rename"), (os, "unlink"), (os, "rmdir"), (database, "_opened")):
            setattr(owner, name, counting(getattr(owner, name), at, seen))
        changes.purge(place)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    there = sorted(str(p.relative_to(lying)) for p in lying.rglob("*")) if lying.is_dir() else None
    print(json.dumps([killed, there, len(shelf.notes(second))]), flush=True)
    if not killed: break
"""


def test_killed_at_each_step_of_a_purge_a_run_is_whole_in_the_bin_or_gone(place, tmp_path):
    import shutil

    from app.library import changes

    first, second = ids(place)
    kept = tmp_path / "kept"
    shutil.copytree(place.store.find(first).folder, kept)
    whole = sorted(str(p.relative_to(kept)) for p in kept.rglob("*"))
    changes.bin_many(place, [first])
    arguments = [sys.executable, "-c", IMPORTS + BEGIN + PURGE, str(place.store.root), first, second, str(kept)]
    done = subprocess.run(arguments, cwd=PROJECT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [notes for _, _, notes in told] == list(range(1, len(told) + 1)), "the other run keeps what was added to it"
    assert all(there in (None, whole) for _, there, _ in told), "never a half of a run"
    assert {there is None for killed, there, _ in told if killed} == {True, False}, "killed before and after it went"
    assert told[-1][:2] == [False, None]
    again = Store(place.store.root)
    assert list((again.root / "partial").iterdir()) == [] and again.ids() == [second] and sound(place)

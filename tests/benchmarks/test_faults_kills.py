"""The suite of kills: a small form of it, and that it tells of a store that lost, halved or doubled something."""

import random
import shutil
import sqlite3

import pytest

from app.workspace import workspace
from benchmarks.faults.kills.acts import Act, Acts
from benchmarks.faults.kills.checking import check
from benchmarks.faults.kills.commands import killed
from benchmarks.faults.kills.state import Found, look
from benchmarks.faults.kills.suite import Suite

KILLS = 12


def test_a_few_kills_lose_nothing(tmp_path):
    suite = Suite(3, tmp_path)
    suite.commands(tmp_path / "commands", KILLS)
    assert suite.problems == [] and suite.killed == KILLS
    assert len((tmp_path / "kills.jsonl").read_text().splitlines()) >= KILLS


@pytest.fixture
def stored(tmp_path):
    """(the store, what it holds): three runs, one of them in the bin, and a baseline."""
    root, inputs = tmp_path / "store", tmp_path / "inputs"
    inputs.mkdir()
    acts = Acts(Found(), random.Random(1), inputs, 0)
    told, took_s = killed([acts.ingest() for _ in range(3)], root, 60)
    assert len(told.done) == 3 and took_s is not None and told.refused == []
    acts = Acts(look(root), random.Random(1), inputs, 100)
    told, _ = killed([acts.take(kind) for kind in ("tag", "note", "star", "baseline", "delete")], root, 60)
    assert len(told.done) == 5 and told.refused == []
    found = check(root, acts.state, [])
    assert found.problems == [], "acts do what they say"
    return root, found.found


DAMAGES = {
    "a run is lost": lambda root, db, ids: shutil.rmtree(root / "runs" / ids[0]),
    "a run lost a table": lambda root, db, ids: next((root / "runs" / ids[0]).rglob("*.parquet")).unlink(),
    "half a run": lambda root, db, ids: (root / "runs" / ids[0] / "run.json").unlink(),
    "the same input twice": lambda root, db, ids: shutil.copytree(root / "runs" / ids[0], root / "runs" / "abcd"),
    "a tag is lost": lambda root, db, ids: db.execute("delete from tags"),
    "a note is doubled": lambda root, db, ids: db.execute("insert into notes select null, run_id, 1, text from notes"),
    "a star is lost": lambda root, db, ids: db.execute("update shelved set starred = 0"),
    "a baseline moved": lambda root, db, ids: db.execute("update baseline_moves set run_id = 'x'"),
    "a leak in live": lambda root, db, ids: ((root / "live" / "x").mkdir(parents=True), (root / "live/x/.y").touch()),
    "a leak in the bin": lambda root, db, ids: (root / "bin" / "abcdef").mkdir(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_wrong_with_a_store_is_told(stored, damage):
    root, found = stored
    with sqlite3.connect(root / "registry.db") as db:
        DAMAGES[damage](root, db, [found.ids[k] for k, v in found.state.items() if v.get("at") == "library"])
    db.close()
    assert check(root, found.state, []).problems, damage


def test_what_was_begun_may_be_done_or_not_and_never_by_halves(stored):
    root, found = stored
    one, two = [k for k, v in found.state.items() if v.get("at") == "library"]
    tagged = {k: found.state[k] | {"tags": {"t": "1"}} for k in (one, two)}
    act = Act("tag", [], tagged)
    assert check(root, found.state, [act]).problems == []
    place = workspace(str(root))
    for n, key in enumerate((one, two)):
        with sqlite3.connect(place.registry.path) as db:
            db.execute("delete from tags where run_id = ?", (found.ids[key],))
            db.execute("insert into tags values (?, 't', '1')", (found.ids[key],))
        db.close()
        told = check(root, found.state, [act])
        assert ("by halves" in str(told.problems)) == (n == 0), told.problems

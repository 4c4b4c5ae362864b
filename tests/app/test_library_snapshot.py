"""Whoever starts takes the rows of a store of many from one file, and makes those anew that are others: what is listed,
found and counted is what reading all of it tells."""

import os
import random
import time

import pytest

from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.library import ahead, index, snapshot
from app.library import table as tables
from app.library.answers import Glimpse
from app.library.coded import Ranked
from app.library.rows import found_ids, library
from app.library.table import Table, table
from app.library.working import NOT_TOLD
from app.workspace import Workspace, workspace
from runs.live import Live
from tests.app import made_runs
from tests.app.test_many_runs import acts, told


@pytest.fixture
def runs(tmp_path, monkeypatch) -> tuple[Workspace, list[str]]:
    """Six that are taken for very many, with their numbers worked out."""
    for name in ("FEW", "LEAST", "_FEW_ROWS"):
        monkeypatch.setattr(tables, name, 0)
    monkeypatch.setattr("app.library.working.glimpse_of", lambda run, registry: Glimpse(numbers={"mfu": 0.3}))
    place = workspace(str(tmp_path / "store"))
    ids = [made_runs.interrupted(place.store, name=f"run-{n}").run_id for n in range(6)]
    library(place, numbers="now")
    kept(place)
    return place, ids


def kept(place: Workspace) -> None:
    """As once the server has looked at all runs."""
    library(place, numbers="kept")
    with table(place).still():
        table(place)._keep()


def begun(place: Workspace) -> Table:
    """The table of a process that just began."""
    table.cache_clear()
    return table(place)


def read_anew(place: Workspace, monkeypatch, act) -> object:
    """What a table tells that takes nothing from the file."""
    with monkeypatch.context() as m:
        m.setattr(snapshot.Snapshot, "read", lambda self: None)
        anew = Table(place)
        m.setattr("app.library.rows.table", lambda place: anew)
        return act(place)


def read_of(monkeypatch) -> list[str]:
    """The runs whose rows are made, as they are."""
    read, real = list[str](), Table._read
    monkeypatch.setattr(Table, "_read", lambda self, run_ids: real(self, read.extend(run_ids) or run_ids))
    return read


def test_a_start_makes_no_row_of_runs_that_are_the_same_and_looks_at_none(runs, monkeypatch):
    place, ids = runs
    before, read = told(place), read_of(monkeypatch)
    begun(place)
    monkeypatch.setattr(place.store, "states", lambda: pytest.fail("every manifest is looked at"))
    assert len(found_ids(place, "run mfu:unknown")) + len(found_ids(place, "run -mfu:unknown")) == 6
    assert read == []
    assert told(place) == before and sorted(read) == sorted(ids), "those that are shown"


@pytest.mark.parametrize("seed", range(2))
def test_what_is_told_after_a_start_is_what_reading_all_of_it_tells(runs, monkeypatch, seed):
    place, ids = runs
    rng, asks = random.Random(seed), Identity(name="ann", role=Role.UPLOADER, groups=frozenset(["ml"]), how="token")
    for _ in range(3):
        for _ in range(4):
            rng.choice(acts(place, rng, rng.choice(ids)))()
        begun(place)
        assert told(place) == read_anew(place, monkeypatch, told)
        with acting_as(asks):
            assert told(place) == read_anew(place, monkeypatch, told)
        if rng.random() < 0.5:
            kept(place)


def test_runs_that_came_went_or_are_others_meanwhile_are_seen(runs, monkeypatch):
    place, ids = runs
    new = made_runs.interrupted(place.store, name="new").run_id
    folder = place.store.runs_folder / ids[0]
    os.rename(place.store.runs_folder / ids[1], place.store.root / "aside")
    os.rename(folder, place.store.root / "old")
    with place.store.writer() as writer:
        writer.commit(run_id=ids[0], name="another", kind="training", facts={}, sources=[], replace=True)
    place.registry.tag(ids[2], "a", "b")
    place.store.live.write(Live(name="job", project="p", job="j", run_id=ids[3]))
    read = read_of(monkeypatch)
    begun(place)
    assert found_ids(place, "name=another") == [ids[0]] and found_ids(place, "tag:a=b") == [ids[2]]
    assert found_ids(place, "is:live") == [ids[3]]
    assert {*read} == {new, ids[0], ids[2], ids[3]}
    assert {*found_ids(place)} == {new, *ids} - {ids[1]}
    assert told(place) == read_anew(place, monkeypatch, told)


def test_a_run_that_is_no_longer_live_or_was_pending_is_made_anew(runs, monkeypatch):
    place, ids = runs
    live = Live(name="job", project="p", job="j", run_id=ids[0])
    place.store.live.write(live)
    pending = made_runs.interrupted(place.store, name="pending").run_id
    table(place)._numbers._unkept[ids[1]] = "any key", NOT_TOLD
    kept(place)
    (place.store.live.of("job") / "live.json").unlink()
    table(place)._numbers.work_out(pending)
    read = read_of(monkeypatch)
    begun(place)
    assert found_ids(place, "is:live") == found_ids(place, "is:pending") == []
    assert {*read} == {ids[0], ids[1], pending}


def test_nothing_is_kept_of_a_run_that_is_gone(runs, monkeypatch):
    place, ids = runs
    file = place.store.root / "derived" / "index.npz"
    assert ids[0].encode() in file.read_bytes() and file.stat().st_mode & 0o077 == 0
    place.store.remove(ids[0])
    library(place, numbers="kept")
    assert not file.exists()
    table(place)._look()
    assert ids[0].encode() not in file.read_bytes() and ids[1].encode() in file.read_bytes()


@pytest.mark.parametrize("damage", ["cut", "a byte", "other code", "other columns", "empty"])
def test_a_file_that_cannot_be_used_is_passed_over(runs, monkeypatch, damage):
    place, _ = runs
    before, file = told(place), place.store.root / "derived" / "index.npz"
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[whole.index(b"run-1")] ^= 1
    if damage == "other code":
        monkeypatch.setattr(snapshot, "answering", lambda: "another")
    if damage == "other columns":
        monkeypatch.setattr(index, "_TEXTS", {**index._TEXTS, "new": lambda row: row.name})
    file.write_bytes({"cut": whole[:-99], "a byte": bytes(changed), "empty": b""}.get(damage, whole))
    begun(place)
    assert told(place) == before


def test_what_a_writer_left_that_was_killed_goes_with_the_next_and_no_other_s(runs):
    place, _ = runs
    folder = place.store.root / "derived"
    for name, age_s in (("left", 2 * snapshot.ABANDONED_S), ("at-it", 0)):
        (file := folder / f".index.npz.{name}").write_bytes(b"half")
        os.utime(file, (now := time.time() - age_s, now))
    kept(place)
    assert {f.name for f in folder.iterdir()} >= {"index.npz", ".index.npz.at-it"}
    assert not (folder / ".index.npz.left").exists()


def test_what_a_table_works_ahead_is_used_and_changes_nothing_that_is_told(runs, monkeypatch):
    place, _ = runs
    before = told(place)
    begun(place).rows()
    monkeypatch.setattr(ahead, "MANY", 0)
    table(place).work_ahead()
    with monkeypatch.context() as m:
        m.setattr(Ranked, "_anew", lambda *_: pytest.fail("names are sorted once more"))
        assert len(library(place, sort="name", numbers="kept").rows) == 6
    assert told(place) == before


def test_a_store_of_few_keeps_no_such_file(tmp_path):
    place = workspace(str(tmp_path / "store"))
    made_runs.interrupted(place.store, name="one")
    library(place, numbers="now")
    assert not (place.store.root / "derived" / "index.npz").exists()

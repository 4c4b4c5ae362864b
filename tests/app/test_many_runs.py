"""Of many runs what changed alone is read again: the list is the same as one that reads all of them anew."""

import random
from collections.abc import Callable

import pytest

from app.identity.asking import acting_as
from app.identity.base import Identity, Role
from app.library import additions, changes, listed_rows, remembered
from app.library import table as tables
from app.library.rows import found_ids, library, most
from app.library.table import Table, table
from app.workspace import Workspace
from errors import InputError
from tests.app import made_runs

SEARCHES = ("", "tag:n=3,team -name:other", "is:starred,archived,noted")


@pytest.fixture(params=["few", "many"])
def size(request, monkeypatch):
    """As of few runs, and as of very many."""
    if request.param == "many":
        for module, name in ((tables, "FEW"), (tables, "LEAST"), (tables, "_FEW_ROWS")):
            monkeypatch.setattr(module, name, 0)
        monkeypatch.setattr(tables, "MOST_MADE", 2)
        monkeypatch.setattr(tables, "CHUNK", 2)
        monkeypatch.setattr(listed_rows, "CHUNK", 2)
    return request.param


@pytest.fixture
def runs(either_registry, size, tmp_path, monkeypatch) -> tuple[Workspace, list[str]]:
    from app.workspace import workspace

    place = workspace(str(tmp_path / "store"))
    written = [made_runs.interrupted(place.store, name=f"run-{n}") for n in range(4)]
    return place, [run.run_id for run in written]


def acts(place: Workspace, rng: random.Random, run_id: str) -> list[Callable[[], object]]:
    number = str(rng.randrange(4))
    return [
        lambda: changes.tag_many(place, [run_id], {"n": number}),
        lambda: changes.tag_many(place, [run_id], {"team": None}),
        lambda: changes.star(place, [run_id], rng.random() < 0.5),
        lambda: changes.archive(place, [run_id], rng.random() < 0.3),
        lambda: changes.move_to_group(place, [run_id], rng.choice(("", "p", "p/e"))),
        lambda: changes.rename(place, run_id, rng.choice(("", f"other {number}"))),
        lambda: changes.add_note(place, run_id, "Seen."),
        lambda: place.registry.price(run_id, rng.choice((None, 2.5))),
        lambda: place.registry.stand_for(run_id, "live:x"),
        lambda: place.registry.tag("live:x", "n", number),
        lambda: place.registry.forget(run_id),
        lambda: place.shares.share([run_id], rng.choice(([], ["ml"], ["ops"]))),
        lambda: place.demo.add(run_id),
    ]


def told(place: Workspace) -> list[object]:
    """What lists, searches and counts say."""
    found = [library(place, text, numbers="kept") for text in SEARCHES]
    rows = [
        [row.to_dict() | {"notes": row.notes, "demo": row.demo, "groups": row.groups} for row in f.rows] for f in found
    ]
    return [rows, [(f.found, f.total, f.archived, f.facets) for f in found], most(place, ("name", "tag key"), 9)]


def test_the_list_is_kept_as_one_that_is_made_anew(runs, monkeypatch):
    place, ids = runs
    rng, asks = random.Random(1), Identity(name="ann", role=Role.UPLOADER, groups=frozenset(["ml"]), how="token")
    for _ in range(5):
        for _ in range(5):
            rng.choice(acts(place, rng, rng.choice(ids)))()
        kept = told(place)
        with acting_as(asks):
            seen = told(place)
        anew = Table(place)
        with monkeypatch.context() as m:
            m.setattr("app.library.rows.table", lambda place, anew=anew: anew)
            assert told(place) == kept
            with acting_as(asks):
                assert told(place) == seen


def test_of_a_change_that_run_alone_is_read(runs, monkeypatch):
    place, ids = runs
    library(place, numbers="kept")
    read = list[list[str]]()
    before = Table._read
    monkeypatch.setattr(Table, "_read", lambda self, run_ids: read.append(list(run_ids)) or before(self, run_ids))
    monkeypatch.setattr(additions.Additions, "_read_all", lambda self: pytest.fail("all is read"))
    place.registry.tag(ids[2], "a", "b")
    assert library(place, "tag:a=b", limit=5, numbers="kept").found == 1
    assert [ids[2]] in read and all(len(one) == 1 for one in read)


def test_runs_that_come_and_go_are_seen_and_each_other_one_is_left_alone(runs):
    place, ids = runs
    assert library(place, numbers="kept").total == 4
    before = table(place).serials(ids[1:])
    place.store.remove(ids[0])
    new = made_runs.interrupted(place.store, name="new")
    assert library(place, numbers="kept").total == 4
    assert found_ids(place)[0] == new.run_id and ids[0] not in found_ids(place)
    assert table(place).serials(ids[1:]) == before
    assert table(place).called("new").run_id == table(place).called(new.run_id).run_id == new.run_id
    assert table(place).called("run-0") is None and table(place).counts() == (4, 0)


def test_a_folder_of_very_many_runs_is_read_aside(runs, monkeypatch):
    place, _ = runs
    library(place, numbers="kept")
    monkeypatch.setattr(tables, "AT_ONCE", 0)
    monkeypatch.setattr(tables, "_REST", 0.0)
    new = made_runs.interrupted(place.store, name="new")
    library(place, numbers="kept")
    table(place)._scanner.join()
    assert new.run_id in found_ids(place)


def test_what_manifests_tell_is_remembered_and_believed_as_long_as_they_are_the_same(
    either_registry, tmp_path, monkeypatch
):
    from app.workspace import workspace

    monkeypatch.setattr(tables, "LEAST", 0)
    monkeypatch.setattr(tables, "_FEW_ROWS", 0)
    place = workspace(str(tmp_path / "store"))
    ids = [made_runs.interrupted(place.store, name=f"run-{n}").run_id for n in range(3)]
    before = [row.to_dict() for row in Table(place).rows()]
    assert remembered.Remembered(place.store.root).ids() == set(ids)
    looked = list[str]()
    look = place.store.look_at
    monkeypatch.setattr(place.store, "look_at", lambda run_id: looked.append(run_id) or look(run_id))
    (place.store.runs_folder / ids[1] / "run.json").touch()
    assert [row.to_dict() for row in Table(place).rows()] == before and looked == [ids[1]]
    place.store.remove(ids[0])
    assert len(Table(place).rows()) == 2
    assert remembered.Remembered(place.store.root).ids() == set(ids[1:])
    (place.store.root / "derived" / "listed.db").write_bytes(b"no database")
    assert len(Table(place).rows()) == 2, "it may be lost"


def failing_once(monkeypatch, of: object, name: str, error: Exception) -> None:
    """As where a server or a disk is away for a moment."""
    real = getattr(of, name)

    def fails(*given, **named):
        monkeypatch.setattr(of, name, real)
        raise error

    monkeypatch.setattr(of, name, fails)


@pytest.mark.parametrize("fails", ["touched", "places", "glimpses"])
def test_a_change_is_not_missed_where_the_registry_is_away_while_it_is_read(runs, monkeypatch, fails):
    place, ids = runs
    library(place, numbers="kept")
    place.registry.tag(ids[1], "a", "b")
    failing_once(monkeypatch, type(table(place)._shelf), fails, InputError("away"))
    with pytest.raises(InputError):
        library(place, numbers="kept")
    assert library(place, "tag:a=b", numbers="kept").found == 1


def test_a_change_is_not_missed_where_the_folder_is_away_while_it_is_read(runs, monkeypatch):
    place, ids = runs
    library(place, numbers="kept")
    place.registry.tag(ids[1], "a", "b")
    made_runs.interrupted(place.store, name="new")
    failing_once(monkeypatch, table(place), "_looked_up", OSError("away"))
    with pytest.raises(OSError):
        library(place, numbers="kept")
    assert library(place, "tag:a=b", numbers="kept").found == 1


@pytest.mark.parametrize("new", [False, True])
def test_a_run_that_went_while_it_was_read_and_came_back_is_seen(runs, monkeypatch, new):
    place, ids = runs
    library(place, numbers="kept")
    run_id = made_runs.interrupted(place.store, name="new").run_id if new else ids[1]
    failing_once(monkeypatch, place.store, "look_at", FileNotFoundError(run_id))
    if new:
        monkeypatch.setattr(table(place), "_look_at", lambda run_id: None)
        library(place, numbers="kept")
    else:
        table(place)._look_at(run_id)
    folder = place.store.runs_folder / run_id
    folder.rename(place.store.root / "aside")  # and back: the folder is another, its runs are the same
    (place.store.root / "aside").rename(folder)
    assert run_id in found_ids(place)


def test_a_run_that_came_into_the_folder_of_another_is_seen_where_it_is_shown(runs, monkeypatch):
    place, ids = runs
    library(place, numbers="kept")
    kept, folders = table(place), place.store.folders()
    monkeypatch.setattr(tables, "FEW", 0)
    monkeypatch.setattr(place.store, "folders", lambda: folders)  # each has the number that one before it had
    kept._folder = ()
    library(place, numbers="kept")
    old = place.store.get(ids[0])
    with place.store.writer() as writer:
        writer.commit(run_id=ids[0], name="another", kind="training", facts={}, sources=[], replace=True)
    assert old is not None and next(iter(kept.fresh_of([ids[0]]))).name == "another"
    assert found_ids(place, "name=another") == [ids[0]]


def test_a_backup_in_the_place_of_a_registry_is_read_whole(runs, tmp_path):
    """Its number may be the same: a server's is kept in its tables, a folder gives a file's to the next one."""
    place, ids = runs
    place.registry.tag(ids[0], "a", "b")
    kept = table(place)
    library(place, numbers="kept")
    place.registry.tag(ids[1], "c", "d")
    assert library(place, "tag:c", numbers="kept").found == 1
    with place.registry.everything() as db:
        count = db.execute("select count from changes").fetchone()[0]
        db.execute("delete from tags where run_id = ?", (ids[1],))
        db.execute("update changes set count = ?", (count - 1,))
        db.execute("delete from touched where run_id = ?", (ids[1],))
    assert library(place, "tag:c", numbers="kept").found == 0 and kept is table(place)


def test_numbers_are_worked_out_though_one_run_could_not_be_read(runs, monkeypatch):
    place, ids = runs
    numbers = table(place)._numbers
    failing_once(monkeypatch, place.store, "get", OSError("away"))
    numbers.begin([], ids)
    numbers._worker.join()
    assert numbers._worker is None and numbers.done() == {*ids[1:]}

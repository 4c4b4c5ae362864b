"""A fleet is laid out of what the library has as columns, and of amounts that are kept packed: its answers are the same
to the last bit, whether anything was kept or not."""

import random
import shutil
import sqlite3
from dataclasses import replace
from time import time_ns

import numpy as np
import pytest

from analyzers.fleet.base import FleetRun
from analyzers.fleet.laying import laid_out
from analyzers.fleet.packed import NOTHING
from app.fleet.asking import ask_fleet
from app.fleet.kept import KeptFleet, kept_fleet
from app.library import laid, remembered
from app.library import table as tables
from app.library.index import Index
from app.library.laid import known_of
from app.library.rows import library
from app.library.table import table
from app.workspace import workspace
from tests.app.test_fleet import stored_fleet
from tests.app.test_library_index import made

ASKED = ({}, {"by": "owner", "trend": "day"}, {"by": "tag:team", "search": "chip:v5p"}, {"simulated": True})


@pytest.fixture(scope="module")
def worked_out(tmp_path_factory):
    """A store with all numbers worked out."""
    root = tmp_path_factory.mktemp("laid") / "store"
    library(stored_fleet(workspace(str(root))), archived=True, numbers="now")
    return root


@pytest.fixture
def place(worked_out, tmp_path, monkeypatch):
    """One that is taken for a store of many runs."""
    monkeypatch.setattr(tables, "LEAST", 0)
    shutil.copytree(worked_out, tmp_path / "store")
    return workspace(str(tmp_path / "store"))


def answers(place) -> list[object]:
    return [ask_fleet(place, given, "kept").to_dict() for given in ASKED]


def begun_anew(monkeypatch, place) -> None:
    """As in a process that just began."""
    kept_fleet.cache_clear()
    table.cache_clear()
    library(place, numbers="kept")


def no_ledger_is_read(monkeypatch) -> None:
    monkeypatch.setattr(laid, "packed", lambda spent: pytest.fail("what a run spent is packed again"))


def test_a_fleet_of_what_is_kept_is_the_one_of_what_was_read(place, monkeypatch):
    first = answers(place)
    assert first[0]["total"]["runs"] == 3 and first[3]["total"]["runs"] == 1
    begun_anew(monkeypatch, place)
    no_ledger_is_read(monkeypatch)
    monkeypatch.setattr(tables.Table, "_read", lambda self, run_ids: pytest.fail("rows are made"))
    assert answers(place) == first


def test_a_run_that_is_another_is_packed_anew_and_no_other(place, monkeypatch):
    answers(place)
    begun_anew(monkeypatch, place)
    run = next(r for r in place.store.runs() if r.manifest.name == "long")
    place.registry.price(run.run_id, 9.5)
    library(place, numbers="now")
    packed, real = [], laid.packed
    monkeypatch.setattr(laid, "packed", lambda spent: real(packed.append(spent) or spent))
    told = answers(place)
    assert len(packed) == 1 and packed[0].usd == pytest.approx(9.5 * packed[0].chip_s / 3600)
    begun_anew(monkeypatch, place)
    (place.store.root / "derived" / "listed.db").unlink()
    assert answers(place) == told


@pytest.mark.parametrize("damage", ["update spent set told = substr(told, 1, 90)", "update spent set paths = 'x'"])
def test_what_is_damaged_of_what_is_kept_is_packed_anew(place, monkeypatch, damage):
    first = answers(place)
    _of_file(place, damage)
    begun_anew(monkeypatch, place)
    assert answers(place) == first
    begun_anew(monkeypatch, place)
    no_ledger_is_read(monkeypatch)
    assert answers(place) == first


def test_nothing_is_kept_of_what_a_run_spent_that_is_gone(place):
    answers(place)
    run = next(r for r in place.store.runs() if r.manifest.name == "long")
    assert (run.run_id,) in _of_file(place, "select run_id from spent")
    place.store.remove(run.run_id)
    library(place, numbers="kept")
    assert (run.run_id,) not in _of_file(place, "select run_id from spent")
    assert run.run_id not in remembered.Remembered(place.store.root).ids()


def _of_file(place, asked: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(place.store.root / "derived" / "listed.db")
    with db:
        found = db.execute(asked).fetchall()
    db.close()
    return found


def test_a_store_of_few_keeps_nothing_and_tells_the_same(place, monkeypatch):
    first = answers(place)
    monkeypatch.setattr(tables, "LEAST", 2_000)
    begun_anew(monkeypatch, place)
    monkeypatch.setattr(remembered.Remembered, "spent", lambda self, marks: pytest.fail("it is looked for"))
    assert answers(place) == first


def test_fleets_of_one_store_are_the_same_in_whatever_order_its_runs_became_known(place, monkeypatch):
    first = ask_fleet(place, {}, "kept").to_dict()
    begun_anew(monkeypatch, place)
    assert KeptFleet(place).ask("", ask_fleet(place, {}, "kept").asked, "kept").to_dict() == first
    slots = [table(place).index.slots[run_id] for run_id in sorted(table(place).index.slots)]
    assert slots == sorted(slots)


def test_what_the_index_tells_of_runs_is_what_their_rows_tell():
    rng, index = random.Random(6), Index()
    rows = [made(rng, number) for number in range(200)]
    for row in rows:
        index.put(row)
    live = {row.run_id: replace(row.live, last_poll_ns=time_ns() * (n % 2)) for n, row in enumerate(rows) if row.live}
    rows = [replace(row, live=live.get(row.run_id)) for row in rows]
    slots = np.array([index.slots[row.run_id] for row in rows])
    columns = laid_out(known_of(index, slots, live), [NOTHING] * len(rows))
    for at, row in enumerate(rows):
        assert columns.run(at) == FleetRun(
            run_id=row.run_id,
            name=row.name,
            kind=row.kind,
            simulated=row.simulated,
            damaged=row.problem is not None or not row.readable,
            pending=row.pending,
            created_ns=row.created_ns or 0,
            chip=row.chip or "",
            chips=row.chips,
            model=row.model or "",
            group=row.group,
            job=row.job,
            tags=row.tags,
            goodput=row.numbers.get("goodput"),
            mfu=row.numbers.get("mfu"),
            archived=row.archived,
            demo=row.demo,
            live=row.live is not None and row.live.state_at(time_ns()) in ("following", "failing"),
        )

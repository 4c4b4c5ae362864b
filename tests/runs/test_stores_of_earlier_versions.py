"""Stores that earlier versions made, the first release's and each since whose manifests or registry were others: they
open, are listed and asked, tagged, read anew, deleted and brought back, and the same input is the same run.

`stores/make.py` says how they were made; `stores/README.md` of which commit each is.
"""

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from app.cli.commands.doctor import verified
from app.library import changes
from app.library.rows import library
from app.workspace import Workspace, workspace
from collectors.ingest import ingest
from runs.backup import Backups
from runs.run import SCHEMA_VERSION
from tests.app.asking import wrong_answers

STORES = Path(__file__).parent / "stores"
INPUTS = STORES / "inputs"
VERSIONS = sorted(p.name for p in STORES.iterdir() if (p / "runs").is_dir())
LOG, BOTH = "a log", "both"
EACH = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def place(version, tmp_path) -> Workspace:
    shutil.copytree(STORES / version, tmp_path / "store")
    return workspace(str(tmp_path / "store"))


def names_itself(version: str) -> bool:
    """Whether the program of then kept names, groups and the bin."""
    return (STORES / version / "bin").is_dir()


def both(version: str) -> str:
    return "both, renamed" if names_itself(version) else BOTH


def test_every_schema_there_ever_was_is_here():
    found = {json.loads(p.read_text())["schema_version"] for v in VERSIONS for p in STORES.glob(f"{v}/runs/*/run.json")}
    assert found == set(range(1, SCHEMA_VERSION + 1))


def test_no_path_of_the_machine_that_made_them_stands_in_them():
    for path in STORES.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".md"):
            data = path.read_bytes()
            assert len(data) < 200_000 and b"/tmp/" not in data and b"/work/" not in data, path


@EACH
def test_it_is_listed_with_all_that_was_said(version, place):
    rows = {row.name: row for row in library(place).rows}
    assert set(rows) == {LOG, both(version)} and not place.store.look().broken
    extras = place.registry.extras(rows[LOG].run_id)
    assert extras.tags == {"kept": "yes"} and extras.notes == ["a remark of then"]
    assert dict(rows[LOG].tags) == {"team": "first", "kept": "yes"}
    assert place.registry.extras(rows[both(version)].run_id).usd_per_chip_hour == 4.2
    assert rows[LOG].chips == 32
    if names_itself(version):
        assert place.store.find(BOTH).run_id == rows[both(version)].run_id, "by the name of before, too"
        assert [b.name for b in changes.binned(place)] == ["in the bin"]


@EACH
def test_every_question_has_an_answer_or_a_reason(version, place):
    assert wrong_answers(place.store.find(LOG), place) == []


@EACH
def test_what_it_tells_of_steps_is_what_the_log_says(version, place):
    steps = place.store.find(LOG).tables.arrow("steps")
    assert steps.column("step").to_pylist() == [0, 1, 2, 3, 4]
    assert [ns / 1e9 for ns in steps.column("dur_ns").to_pylist()] == [21.5, 2.25, 2.125, 2.125, 2.5]


@EACH
def test_the_same_input_is_the_same_run_and_is_read_anew_when_asked(version, place):
    known = place.store.find(LOG).run_id
    again = ingest([INPUTS / "train.log"], place.store, name="other", chip="v5p", chips=32)
    assert (again.run_id, again.existed) == (known, True)
    anew = ingest([INPUTS / "train.log"], place.store, chip="v5p", chips=32, again=True)
    assert (anew.run_id, anew.replaced) == (known, True)
    told = place.store.get(known).manifest
    assert (told.schema_version, told.name, told.tags) == (SCHEMA_VERSION, LOG, {"team": "first"})
    assert place.registry.extras(known).tags == {"kept": "yes"}
    folder = ingest([INPUTS / "goodput.jsonl", INPUTS / "train.log"], place.store, chip="v5p")
    assert folder.existed and folder.run_id == place.store.find(both(version)).run_id
    assert len(place.store.ids()) == 2


@EACH
def test_it_is_tagged_renamed_deleted_brought_back_and_purged(version, place):
    run_id = place.store.find(LOG).run_id
    changes.tag_many(place, [LOG], {"new": "1"})
    changes.add_note(place, LOG, "now")
    changes.rename(place, LOG, "called now")
    changes.star(place, ["called now"])
    changes.bin_many(place, ["called now"])
    assert not place.store.has(run_id) and changes.restore(place, ["called now"])[0].run_id == run_id
    extras = place.registry.extras(run_id)
    assert extras.tags == {"kept": "yes", "new": "1"} and extras.notes == ["a remark of then", "now"]
    (row,) = library(place, "tag:new").rows
    assert row.name == "called now" and row.starred
    changes.bin_many(place, ["called now"], now=True)
    assert place.registry.extras(run_id).tags == {} and len(library(place, numbers="kept").rows) == 1


@EACH
def test_it_is_verified_as_far_as_it_noted_checksums_and_backed_up_whole(version, place, tmp_path):
    for told in verified(place):
        schema = json.loads((place.store.runs_folder / told["run_id"] / "run.json").read_text())["schema_version"]
        assert told["damaged"] == [] and bool(told["not_verifiable"]) == (schema < 5)
    backups = Backups(tmp_path / "backups")
    made = backups.make(place.store, place.registry.path)
    assert made.damaged == () and backups.verify(made) == []
    backups.restore(made, tmp_path / "again")
    for path in (STORES / version / "runs").rglob("*.*"):
        again = tmp_path / "again" / path.relative_to(STORES / version)
        assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(path.read_bytes()).digest()


@pytest.mark.parametrize("version", [v for v in VERSIONS if not names_itself(v)])
def test_what_an_earlier_program_writes_into_a_registry_of_today_is_taken_and_spoils_nothing(version, place, tmp_path):
    """What it did when it opened one, and how it wrote: its own tables, as they stand in the store that it made."""
    today = workspace(str(tmp_path / "today"))
    made = ingest([INPUTS / "train.log"], today.store, name="of today")
    changes.rename(today, made.run_id, "named today")
    changes.star(today, [made.run_id])
    with sqlite3.connect(STORES / version / "registry.db") as db:
        tables = [sql for (sql,) in db.execute("select sql from sqlite_master where type = 'table' and sql not null")]
    db.close()
    with sqlite3.connect(today.registry.path) as db:
        for sql in tables:
            db.execute(sql.replace("CREATE TABLE", "create table if not exists", 1))
        db.execute("insert or replace into tags values (?, 'by', 'then')", (made.run_id,))
        db.execute("insert into notes (run_id, written_ns, text) values (?, 1, 'of then')", (made.run_id,))
        db.execute("insert or replace into prices values (?, 3.5, 1)", (made.run_id,))
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    db.close()
    (row,) = library(today, "tag:by=then").rows
    assert row.name == "named today" and row.starred
    extras = today.registry.extras(made.run_id)
    assert extras.notes == ["of then"] and extras.usd_per_chip_hour == 3.5

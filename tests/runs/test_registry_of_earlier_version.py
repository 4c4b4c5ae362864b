"""A registry that an earlier version made, on a disk that cannot be written: read as it is, and not called damaged."""

import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from app.library.rows import library
from app.workspace import workspace
from runs.registry import Registry
from runs.store import Store
from tests.runs.test_store import write

PROJECT = Path(__file__).parents[2]
EARLIER = """
create table tags (run_id text not null, key text not null, value text not null, primary key (run_id, key))
    without rowid;
create table notes (id integer primary key, run_id text not null, written_ns integer not null, text text not null);
create table prices (run_id text primary key, usd_per_chip_hour real not null, written_ns integer not null)
    without rowid;
insert into tags values ('abcd1234', 'team', 'ml');
insert into notes (run_id, written_ns, text) values ('abcd1234', 1, 'a remark');
"""
READ = """
import os, sys
sys.path.insert(0, sys.argv[1])
from errors import InputError
from app.library import changes
from app.library.rows import library
from app.workspace import workspace
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
place = workspace(sys.argv[2])
(row,) = library(place, "tag:ml", numbers="kept").rows
print(row.name, dict(row.tags), row.notes, place.store.find("a run").run_id, changes.searches(place))
for change in (lambda: changes.star(place, ["a run"]), lambda: changes.rename(place, "a run", "other")):
    try:
        change()
    except InputError as e:
        print(e)
"""

COPY = """
import os, sys
sys.path.insert(0, sys.argv[1])
from app.library.mirroring import mirror
from app.workspace import workspace
from runs.writer import RunWriter
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
here, there = map(workspace, sys.argv[2:])
done = mirror(here, there)
print(done.copied, done.problems, *there.shares.of("abcd1234"))
"""


def test_a_registry_of_an_earlier_version_is_read_and_nothing_is_said_to_be_kept_that_is_not():
    with tempfile.TemporaryDirectory() as folder:  # not below a folder that only its owner may enter
        Path(folder).chmod(0o755)
        store = Store(Path(folder) / "store")
        write(store)
        with sqlite3.connect(store.root / "registry.db") as db:
            db.executescript(EARLIER)
        db.close()
        for path in (*store.root.rglob("*"), store.root):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            command = [sys.executable, "-c", READ, str(PROJECT), str(store.root)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        finally:
            for path in (store.root, *store.root.rglob("*")):
                path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "a run {'team': 'ml'} ('a remark',) abcd1234 []"
    assert len(said) == 3 and all("registry cannot be written" in line for line in said[1:])


def test_a_run_of_a_group_is_copied_from_a_disk_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        here = workspace(str(Path(folder) / "here"))
        write(here.store)
        here.shares.share(["abcd1234"], ["quokka"])
        for path in (*here.store.root.rglob("*"), here.store.root):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            command = [sys.executable, "-c", COPY, str(PROJECT), str(here.store.root), str(Path(folder) / "there")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        finally:
            for path in (here.store.root, *here.store.root.rglob("*")):
                path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['abcd1234'] [] quokka\n"


def test_a_registry_made_anew_by_another_while_a_program_runs_is_used(tmp_path):
    place = workspace(str(tmp_path / "store"))
    write(place.store)
    assert len(library(place, numbers="kept").rows) == 1
    (tmp_path / "store" / "registry.db").unlink()
    for left in ("-wal", "-shm"):
        (tmp_path / "store" / f"registry.db{left}").unlink(missing_ok=True)
    Registry(tmp_path / "store" / "registry.db").tag("abcd1234", "team", "ml")  # knows no demo runs
    (row,) = library(place, "tag:ml", numbers="kept").rows
    assert row.tags == {"team": "ml"} and place.demo.ids() == set()

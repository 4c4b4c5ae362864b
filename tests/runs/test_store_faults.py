"""Disks that are full or cannot be written, folders that others must not read, a store that vanishes, broken runs."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import runs.store
from errors import InputError, QuestionError
from runs.durable import append_line, write_whole
from runs.live import Live
from runs.registry import Registry
from runs.run import Manifest, Run
from runs.schema import SCHEMAS
from runs.store import Store
from tests.runs.test_store import without_marks, write

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# One broken manifest


BROKEN = {
    "no UTF-8": lambda told: b"\xff" + json.dumps(told).encode(),
    "no JSON": lambda told: b"{",
    "nested": lambda told: b'{"a":' * 100_000,
    "a number of 5,000 digits": lambda told: b'{"x": %s}' % (b"9" * 5000),
    "a list": lambda told: b"[]",
    "empty": lambda told: b"",
    **{
        f"no {key}": lambda told, key=key: json.dumps({k: v for k, v in told.items() if k != key}).encode()
        for key in ("name", "kind", "created_ns", "facts", "run_id")
    },
    **{
        f"{key} as {value!r}": lambda told, key=key, value=value: json.dumps({**told, key: value}).encode()
        for key, value in (
            ("name", 5),
            ("name", None),
            ("kind", []),
            ("created_ns", "x"),
            ("created_ns", 10**400),
            ("tables", {"steps": "many"}),
            ("tags", {"a": 1}),
            ("warnings", "x"),
            ("sources", [{}]),
            ("sources", {}),
            ("facts", {"chips": 3}),
            ("facts", []),
            ("extra", 1),
            ("facts", {"chips": {"value": "many", "basis": "measured", "source": ""}}),
        )
    },
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("marked", [True, False])
def test_a_broken_manifest_is_one_sentence_and_hides_no_other(store, damage, marked):
    write(store, run_id="good1234", name="good")
    bad = write(store, run_id="bad12345")
    if not marked:
        without_marks(bad)
    path = bad.folder / "run.json"
    path.write_bytes(damage(json.loads(path.read_text())))
    there = store.look()
    assert [r.run_id for r in there.runs] == ["good1234"]
    assert there.broken["bad12345"].startswith("bad12345/run.json: not a run manifest (")
    assert "\n" not in there.broken["bad12345"] and len(there.broken["bad12345"]) < 500
    assert store.find("good").run_id == "good1234" and store.find("bad12345").run_id == "bad12345"


def test_a_manifest_that_is_not_there_is_a_broken_run(store):
    (write(store).folder / "run.json").unlink()
    assert store.look().broken == {
        "abcd1234": "abcd1234/run.json: is missing. Nothing is concluded from it; `chipledger ingest --again` with the "
        "same inputs reads the run anew."
    }


def test_a_manifest_of_another_run_is_none(store):
    """As after files were put back from a copy: what it says is of other inputs."""
    one, other = write(store, run_id="one12345", rows=0), write(store, run_id="other123", rows=0)
    shutil.copy(one.folder / "run.json", other.folder / "run.json")
    there = store.look()
    assert [r.run_id for r in there.runs] == ["one12345"]
    assert there.broken["other123"].startswith("other123/run.json: is that of another run, 'one12345'. Nothing is")


def test_a_pipe_in_place_of_a_manifest_is_not_waited_for(store):
    path = write(store).folder / "run.json"
    path.unlink()
    os.mkfifo(path)
    assert store.look().broken["abcd1234"].startswith("abcd1234/run.json: is no file. Nothing is")


def _anew(store, rows):
    with store.writer() as w:
        w.rows("steps", SCHEMAS["steps"].batch({"step": range(rows)}))
        w.commit(run_id="abcd1234", name="anew", kind="training", facts={}, sources=[], replace=True)


def test_a_run_that_is_replaced_or_removed_while_it_is_read_is_not_called_damaged(store):
    write(store, rows=3)
    held = store.find("abcd1234")
    assert held.manifest.tables == {"steps": 3} and held.damage is None
    _anew(store, rows=500)
    with pytest.raises(InputError, match="^abcd1234: the run was read anew meanwhile. Ask again.$"):
        held.tables.arrow("steps")
    held = store.find("abcd1234")
    assert held.tables.rows("steps") == 500
    store.remove("abcd1234")
    with pytest.raises(InputError, match="^abcd1234: the run was removed meanwhile, or is being read anew. Ask again"):
        held.tables.arrow("steps")


@pytest.mark.parametrize("change", [lambda store: _anew(store, 500), lambda store: store.remove("abcd1234")])
def test_a_run_that_changes_while_runs_are_listed_is_not_listed_as_damaged(store, monkeypatch, change):
    write(store)
    changes, read = [change], runs.store._read_once

    def reading(folder, state):
        run = read(folder, state)
        if changes:
            changes.pop()(store)
        return run

    monkeypatch.setattr(runs.store, "_read_once", reading)
    there = store.look()
    assert not changes and there.broken == {}
    assert [r.manifest.tables["steps"] for r in there.runs] == [500 for _ in store.ids()]


def test_a_manifest_of_a_newer_version_says_so(store):
    run = write(store)
    without_marks(run)
    told = json.loads((run.folder / "run.json").read_text())
    with pytest.raises(InputError, match="written by a newer version .schema 99"):
        Manifest.from_json(json.dumps({**told, "schema_version": 99, "new": 1}), "x")


def test_a_run_without_marks_is_read_and_its_lost_table_named(store):
    run = write(store)
    without_marks(run)
    old = store.get(run.run_id)
    assert old.tables.rows("steps") == 3 and old.damage is None and old.files.unmarked == ["tables/steps.parquet"]
    old.tables.path("steps").write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with pytest.raises(InputError, match="abcd1234/tables/steps.parquet: cannot be read"):
        old.tables.rows("steps")
    old.tables.path("steps").unlink()
    assert "abcd1234/tables/steps.parquet: is missing" in store.get(run.run_id).damage


def test_facts_with_keys_that_are_no_text_do_not_break_their_own_checksum(store):
    from runs.run import FactValue

    with store.writer() as w:
        run = w.commit(
            run_id="odd",
            name="x",
            kind="training",
            sources=[],
            facts={"a": FactValue({10: (1, 2), 9: float("inf")}, "measured", "x")},
        )
    assert run.manifest.fact("a") == {"10": [1, 2], "9": float("inf")}


# Names


LONG = ["x" * 300, "x" * 100_000, "a\0b", "\ud800", "é" * 200, "a/" * 200, "live:" + "x" * 5000]


@pytest.mark.parametrize("name", LONG, ids=range(len(LONG)))
def test_a_name_of_any_length_is_one_short_sentence(store, name):
    write(store)
    assert store.get(name) is None
    with pytest.raises(QuestionError) as error:
        store.find(name)
    assert len(str(error.value)) < 600


def test_a_removed_run_that_comes_back_under_a_new_name_is_listed_by_that(store):
    write(store, name="before")
    assert [r.manifest.name for r in store.runs()] == ["before"]
    store.remove("abcd1234")
    write(store, name="after", rows=7)
    assert [r.manifest.name for r in store.runs()] == ["after"] and store.find("after").tables.rows("steps") == 7


def test_a_store_that_is_gone_says_so(store):
    write(store)
    shutil.rmtree(store.root)
    for ask in (store.ids, store.look, store.check, lambda: store.find("abcd")):
        with pytest.raises(InputError, match="the store is gone"):
            ask()


# Who may read


def test_store_and_registry_are_their_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "store")
        registry = Registry(store.root / "registry.db")
        registry.note("r", "x")
        store.live.write(Live("night", "p", "j"))
    finally:
        os.umask(before)
    for folder in ("", "runs", "uploads", "partial", "live"):
        assert mode(store.root / folder) == 0o700
    assert mode(registry.path) == 0o600


def test_a_store_of_an_earlier_version_is_closed_when_it_is_opened(tmp_path):
    root = Store(tmp_path / "store").root
    Registry(root / "registry.db")
    for path in (root, root / "runs", root / "uploads"):
        path.chmod(0o755)
    (root / "registry.db").chmod(0o644)
    Store(root)
    Registry(root / "registry.db")
    assert [mode(p) for p in (root, root / "runs", root / "uploads", root / "registry.db")] == [0o700] * 3 + [0o600]


def test_a_folder_that_holds_other_things_keeps_its_permissions(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    tmp_path.chmod(0o755)
    Store(tmp_path)
    assert mode(tmp_path) == 0o755 and mode(tmp_path / "runs") == 0o700


# Read only


READ = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from errors import InputError
import runs.tables, runs.writer  # they come late, when who reads may read no library any more
from runs.registry import Registry
from runs.store import Store
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
store = Store(Path(sys.argv[2]))
registry = Registry(store.root / "registry.db")
run = store.find("a run")
print([r.manifest.name for r in store.runs()], run.tables.rows("steps"), registry.extras("abcd1234").notes)
for change in (lambda: registry.note("abcd1234", "y"), lambda: store.writer().__enter__()):
    try:
        change()
    except (InputError, OSError) as e:
        print(type(e).__name__, e)
"""


@pytest.mark.parametrize("left", [False, True], ids=["closed cleanly", "left by a killed process"])
def test_a_store_that_cannot_be_written_is_read_and_told_from_a_damaged_one(left):
    with tempfile.TemporaryDirectory() as folder:  # not below a folder that only its owner may enter
        Path(folder).chmod(0o755)
        store = Store(Path(folder) / "store")
        write(store)
        registry = Registry(store.root / "registry.db")
        registry.note("abcd1234", "a remark")
        if left:
            _leave_a_log_behind(registry)
        for path in store.root.rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        store.root.chmod(0o555)
        try:
            done = subprocess.run(
                [sys.executable, "-c", READ, str(PROJECT), str(store.root)], capture_output=True, text=True, timeout=120
            )
        finally:
            for path in (store.root, *store.root.rglob("*")):
                path.chmod(0o755)
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert said[0] == "['a run'] 3 " + str(["a remark", "the last one"] if left else ["a remark"])
    assert said[1].startswith("InputError") and "registry cannot be written" in said[1] and "Move" not in done.stdout
    assert said[2].startswith("PermissionError")


def _leave_a_log_behind(registry):
    """As a process does that is killed: what it wrote last lies in the log beside the database."""
    script = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]);"
        "db.execute(\"insert into notes (run_id, written_ns, text) values ('abcd1234', 1, 'the last one')\");"
        "db.commit(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(registry.path)], timeout=60)
    assert registry.path.with_name("registry.db-wal").stat().st_size


# Full


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from errors import InputError
from runs.durable import append_line, write_whole
from runs.registry import Registry
from runs.store import Store
from tests.runs.test_store import write
store = Store(Path(sys.argv[2]))
registry = Registry(store.root / "registry.db")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for change in (lambda: write(store, run_id="new"), lambda: registry.note("abcd1234", "y"),
               lambda: append_line(store.root / "lines.txt", "x" * 150),
               lambda: write_whole(store.root / "whole.txt", "x" * 150)):
    try:
        change()
        print("done")
    except (InputError, OSError) as e:
        print(type(e).__name__, e)
run = store.find("a run")
print([r.manifest.name for r in store.runs()], run.tables.rows("steps"), registry.extras("abcd1234").notes)
"""


def test_a_full_disk_loses_nothing_and_is_told(store):
    write(store)
    Registry(store.root / "registry.db").note("abcd1234", "a remark")
    append_line(store.root / "lines.txt", "one")
    write_whole(store.root / "whole.txt", "old")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(PROJECT), str(store.root)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=PROJECT,
    )
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "done" not in said and "Move" not in done.stdout and len(said) == 5
    assert said[1].startswith("InputError") and "registry cannot be written" in said[1]
    assert said[4] == "['a run'] 3 ['a remark']"
    assert (store.root / "lines.txt").read_text() == "one\n" and (store.root / "whole.txt").read_text() == "old"
    assert Store(store.root).ids() == ["abcd1234"] and not list((store.root / "partial").iterdir())
    assert not [p for p in store.root.iterdir() if p.name.startswith(".whole")]
    assert Run(store.runs_folder / "abcd1234").damage is None


# Live pointers


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run_id", 5),
        ("state", None),
        ("counts", []),
        ("last_poll_ns", "x"),
        ("name", "other"),
        ("retiring", [["a"]]),
        ("every_s", "y"),
        ("bytes", None),
    ],
)
def test_a_damaged_pointer_hides_no_run(store, key, value):
    run = write(store)
    store.live.write(Live("night", "p", "j", run_id=run.run_id))
    path = store.root / "live" / "night" / "live.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert store.live.read("night") is None and store.find("abcd").run_id == run.run_id
    assert [r.run_id for r in store.runs()] == [run.run_id]


def test_a_run_that_cannot_be_removed_stays_and_is_named(store):
    write(store)
    (store.root / "partial").rmdir()
    (store.root / "partial").touch()
    with pytest.raises(InputError, match="runs/abcd1234: cannot be written"):
        store.remove("abcd1234")
    assert store.ids() == ["abcd1234"]


def test_what_was_stored_is_known_though_it_is_removed_at_once(store):
    run = write(store)
    store.remove(run.run_id)
    assert run.manifest.tables == {"steps": 3} and run.moved().startswith("the run was removed")


def test_a_store_that_may_not_be_entered_any_more_is_said_to_be_so(tmp_path, monkeypatch):
    """The superuser may enter any: the system's answer to others is given here."""
    store = Store(tmp_path / "store")
    write(store)
    real = os.stat

    def stat(path, *given, **more):
        if isinstance(path, str | Path) and str(path).startswith(str(store.runs_folder)):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **more)

    monkeypatch.setattr(os, "stat", stat)
    for asked in (store.check, store.ids, store.runs, lambda: store.find("a run")):
        with pytest.raises(InputError, match="the store is gone, or can no longer be read"):
            asked()
    assert not store.has("abcd1234") and store.get("abcd1234") is None and not store.bin.has("abcd1234")

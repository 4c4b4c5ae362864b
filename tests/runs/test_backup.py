"""Backups: what was acknowledged before one is in it, byte for byte; whatever is killed, moved or damaged meanwhile."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.library import changes
from app.workspace import Workspace, workspace
from errors import InputError
from runs import backup, backup_making
from runs.backup import Backups
from runs.registry import Registry
from runs.store import Store
from tests.app import made_runs

PROJECT = Path(__file__).parents[2]
SAID = ("tags", "notes", "names", "renames", "shelved", "declared", "declared_log", "baseline_moves")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = workspace(str(tmp_path / "store"))
    for name in ("first", "second", "third"):
        made_runs.interrupted(place.store, name=name)
    changes.tag_many(place, ["first"], {"team": "a"})
    changes.add_note(place, "second", "kept")
    changes.bin_many(place, ["third"], who="ann")
    upload = place.store.uploads_folder / ("0" * 32)
    (upload / "files").mkdir(parents=True)
    (upload / "files" / "a.log").write_bytes(b"x" * 10_000)
    (upload / "half.part").write_bytes(b"on its way")
    upload.with_name(upload.name + ".runs").write_text(place.store.find("first").run_id + "\n")
    (place.store.root / "derived" / "x").mkdir(parents=True)
    return place


def held(root: Path) -> dict[str, bytes]:
    """Every file of a store that a backup holds, but for the registry."""
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return {n: b for n, b in found.items() if not n.startswith(("registry.db", "partial", "derived")) and keeps(n)}


def keeps(name: str) -> bool:
    return not name.endswith((".part", ".lock"))


def said(root: Path) -> dict[str, list]:
    with sqlite3.connect(root / "registry.db") as db:
        there = [t for t in SAID if db.execute("select 1 from sqlite_master where name = ?", (t,)).fetchone()]
        found = {table: sorted(db.execute(f"select * from {table}").fetchall(), key=str) for table in there}
    db.close()
    return found


def test_a_store_that_is_made_of_a_backup_is_the_same_byte_for_byte(place, tmp_path):
    backups = Backups(tmp_path / "backups")
    made = backups.make(place.store, place.registry.path)
    assert made.runs == 3 and not made.damaged and backups.verify(made) == []
    backups.restore(backups.find(), tmp_path / "again")
    assert held(tmp_path / "again") == held(place.store.root)
    assert said(tmp_path / "again") == said(place.store.root)
    again = workspace(str(tmp_path / "again"))
    assert [r.manifest.name for r in again.store.runs()] == [r.manifest.name for r in place.store.runs()]
    assert not again.store.look().broken
    assert again.registry.extras(again.store.find("first").run_id).tags == {"team": "a"}
    (lying,) = again.store.binned()
    assert lying.since_ns == place.store.binned()[0].since_ns, "it goes when it would have gone"
    assert changes.restore(again, ["third"])[0].name == "third"
    for path in (tmp_path / "again").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.name.endswith(".lock"), path


def test_the_next_one_copies_what_is_new_alone_and_each_is_whole_without_the_others(place, tmp_path):
    backups = Backups(tmp_path / "backups")
    first = backups.make(place.store, place.registry.path)
    changes.bin_many(place, ["second"])  # moved, not changed
    made_runs.interrupted(place.store, name="fourth")
    second = backups.make(place.store, place.registry.path)
    new = sum(p.stat().st_size for p in place.store.find("fourth").folder.rglob("*") if p.is_file())
    registry = second.files["registry.db"].bytes
    assert second.copied_bytes - registry == new
    assert first.copied_bytes == first.bytes and second.number == first.number + 1
    shutil.rmtree(backups.folder / first.name)
    assert backups.verify(second) == []
    backups.restore(second, tmp_path / "again")
    assert held(tmp_path / "again") == held(place.store.root)


def test_old_ones_go_and_the_newest_stay_whatever_the_clock_says(place, tmp_path, monkeypatch):
    backups = Backups(tmp_path / "backups")
    now = time.time_ns()
    for back_s in (0, 86_400 * 900, 86_400 * 900, 0):  # the clock is set back, and forward again
        monkeypatch.setattr(time, "time_ns", lambda back_s=back_s: now - back_s * 10**9)
        last = backups.make(place.store, place.registry.path)
    assert [b.number for b in backups.all()] == [1, 2, 3, 4] and backups.find().name == last.name
    gone = backups.remove_old(2)
    assert len(gone) == 2 and [b.number for b in backups.all()] == [3, 4]
    assert [backups.verify(b) for b in backups.all()] == [[], []]


def test_the_last_whole_copy_of_what_was_damaged_in_the_store_stays(place, tmp_path, capsys):
    from app.cli import main

    backups, store = Backups(tmp_path / "backups"), str(place.store.root)
    whole = backups.make(place.store, place.registry.path)
    victim = next(place.store.runs_folder.rglob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:50])
    for _ in range(3):
        assert main(["backup", "--store", store, str(backups.folder), "--keep", "1"]) == 3
    assert f"Kept as well: {whole.name}, the newest in which nothing was damaged." in capsys.readouterr().out
    assert [b.number for b in backups.all()] == [1, 4] and backups.verify(whole) == []
    backups.restore(whole, tmp_path / "again")
    assert not list(Store(tmp_path / "again").find(victim.parents[1].name).files.verify())
    victim.write_bytes((tmp_path / "again" / victim.relative_to(place.store.root)).read_bytes())
    assert main(["backup", "--store", store, str(backups.folder), "--keep", "1"]) == 0
    assert [b.number for b in backups.all()] == [5]


@pytest.mark.parametrize("how", ["flip", "cut", "gone", "list"])
def test_a_damaged_backup_is_told_and_never_made_a_store(place, tmp_path, how):
    backups = Backups(tmp_path / "backups")
    made = backups.make(place.store, place.registry.path)
    victim = next(p for p in (backups.folder / made.name / "store" / "runs").rglob("*.parquet"))
    data = bytearray(victim.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
    elif how == "cut":
        victim.write_bytes(data[:-1])
    elif how == "gone":
        victim.unlink()
    else:
        path = backups.folder / made.name / "backup.json"
        path.write_text(path.read_text().replace('"runs": 3', '"runs": 2'))
        with pytest.raises(InputError, match=f"the list of the newest backup, {made.name} is damaged"):
            backups.find()
        return
    (problem,) = backups.verify(made)
    assert victim.name in problem
    with pytest.raises(InputError, match="damaged .*nothing was restored"):
        backups.restore(made, tmp_path / "again")
    assert not (tmp_path / "again").exists() and not (tmp_path / ".again.restoring").exists()


def test_an_older_one_is_not_taken_for_the_newest_whose_list_is_damaged(place, tmp_path, capsys):
    """It was verified and restored in its place, with '0 files damaged' and no word of the newest."""
    from app.cli import main

    backups = Backups(tmp_path / "backups")
    older, newest = (backups.make(place.store, place.registry.at) for _ in range(2))
    told = backups.folder / newest.name / "backup.json"
    told.write_text(told.read_text()[:-5])
    assert backups.unreadable() == [newest.name] and backups.find(older.name) == older
    for name in ("", newest.name):
        with pytest.raises(InputError, match=f"list of .*{newest.name} is damaged.*--of.*{older.name}"):
            backups.find(name)
    folder = str(backups.folder)
    for way in (["--verify"], ["--restore-to", str(tmp_path / "again")]):
        assert main(["backup", folder, *way]) == 2 and "is damaged" in capsys.readouterr().err
    assert main(["backup", folder, "--verify", "--of", older.name]) == main(["backup", folder, "--list"]) == 0
    assert any(newest.name in x and "its list is damaged" in x for x in capsys.readouterr().out.splitlines())
    (tmp_path / "backups" / older.name / "backup.json").write_text("{}")
    told.unlink()
    with pytest.raises(InputError, match=f"the newest backup, {newest.name} is damaged"):
        backups.find()


def test_a_run_that_was_damaged_in_the_store_is_told_and_kept_as_it_is(place, tmp_path):
    victim = next(place.store.find("first").folder.rglob("*.parquet"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    made = Backups(tmp_path / "backups").make(place.store, place.registry.path)
    (problem,) = made.damaged
    assert victim.name in problem and made.runs == 3
    assert (tmp_path / "backups" / made.name / "store" / victim.relative_to(place.store.root)).read_bytes() == data


def test_what_was_damaged_once_is_told_by_each_further_one_until_it_is_brought_back(place, tmp_path):
    victim, backups = next(place.store.find("first").folder.rglob("*.parquet")), Backups(tmp_path / "backups")
    good, told = victim.read_bytes(), victim.stat()

    def written(data):
        victim.write_bytes(data)
        os.utime(victim, ns=(told.st_atime_ns, told.st_mtime_ns))  # as a failing disk, and who brings a copy back, do

    written(good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])
    made = [backups.make(place.store, place.registry.path) for _ in range(3)]
    assert len(made[0].damaged) == 1 and {one.damaged for one in made} == {made[0].damaged}
    written(good)
    last = [backups.make(place.store, place.registry.path) for _ in range(2)]
    assert [one.damaged for one in last] == [(), ()]
    assert all(
        (backups.folder / b.name / "store" / victim.relative_to(place.store.root)).read_bytes() == good for b in last
    )
    assert last[1].copied_bytes < last[0].copied_bytes  # from then on it is that of the one before


@pytest.mark.parametrize("where", ["store", "store/below", ".", "file", "full"])
def test_places_where_no_backup_can_be_are_refused_in_one_sentence(place, tmp_path, where, monkeypatch):
    (tmp_path / "file").write_text("")
    if where == "full":
        monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 1000))
    with pytest.raises(InputError) as error:
        Backups(tmp_path / where).make(place.store, place.registry.path)
    assert "\n" not in str(error.value) and not list(tmp_path.rglob(".partial-*"))


@pytest.mark.parametrize("what", ["file", "store", "link"])
def test_nothing_is_restored_over_what_is_there(place, tmp_path, what):
    backups = Backups(tmp_path / "backups")
    made = backups.make(place.store, place.registry.path)
    target = {"file": tmp_path / "file", "store": place.store.root, "link": tmp_path / "link"}[what]
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(place.store.root)
    before = held(place.store.root)
    with pytest.raises(InputError, match="nothing was restored"):
        backups.restore(made, target)
    assert held(place.store.root) == before and (tmp_path / "file").read_text() == "x"


def test_one_at_a_time_is_made(place, tmp_path, monkeypatch):
    backups, refused = Backups(tmp_path / "backups"), []
    real = backup_making.Making.copy

    def copy(self):
        with pytest.raises(InputError, match="another backup is being made"):
            Backups(tmp_path / "backups").make(place.store, place.registry.path)
        refused.append(True)
        real(self)

    monkeypatch.setattr(backup_making.Making, "copy", copy)
    backups.make(place.store, place.registry.path)
    assert refused and len(backups.all()) == 1


def test_what_is_moved_removed_and_read_anew_meanwhile_is_whole_in_it_or_not_there(place, tmp_path):
    """While backups are made others change the store without end; what was acknowledged before each is in it."""
    stop, said_then = threading.Event(), []

    def change():
        n = 0
        while not stop.is_set():
            n += 1
            changes.bin_many(place, ["first"])
            changes.restore(place, ["first"])
            made_runs.interrupted(place.store, name=f"new {n % 3}")
            changes.tag_many(place, ["second"], {"n": str(n)})
            said_then.append(n)
            place.store.remove(place.store.find(f"new {n % 3}").run_id)

    thread = threading.Thread(target=change)
    thread.start()
    backups = Backups(tmp_path / "backups")
    try:
        for _ in range(6):
            least = len(said_then)
            made = backups.make(place.store, place.registry.path)
            assert not made.damaged and backups.verify(made) == []
            target = tmp_path / f"again-{made.number}"
            backups.restore(made, target)
            again = workspace(str(target))
            names = {r.manifest.name for r in again.store.runs()} | {b.run.manifest.name for b in again.store.binned()}
            assert {"first", "second", "third"} <= names and not again.store.look().broken
            n = int(Registry(target / "registry.db").extras(again.store.find("second").run_id).tags.get("n", 0))
            assert n >= least, "a tag that was set before is in it"
    finally:
        stop.set()
        thread.join()


KILLED = """
import sys
from pathlib import Path
from app.workspace import workspace
from runs.backup import Backups
place = workspace(sys.argv[1])
print("begun", flush=True)
while True:
    made = Backups(Path(sys.argv[2])).make(place.store, place.registry.path)
    print(made.name, flush=True)
    Backups(Path(sys.argv[2])).remove_old(3)
"""


def test_killed_at_any_moment_each_that_is_listed_is_whole(place, tmp_path):
    folder = tmp_path / "backups"
    for n in range(5):
        command = [sys.executable, "-c", KILLED, str(place.store.root), str(folder)]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
            time.sleep(0.03 + 0.07 * n)
            os.kill(process.pid, signal.SIGKILL)
            told = process.stdout.read().split()
        found = Backups(folder).all()
        assert {b.name for b in found} >= set(told[-1:]), "what was acknowledged is there"
        assert [Backups(folder).verify(b) for b in found] == [[]] * len(found)
    made = Backups(folder).make(place.store, place.registry.path)
    assert not list(folder.glob(".partial-*")), "what was left half made is swept by the next"
    Backups(folder).restore(made, tmp_path / "again")
    assert held(tmp_path / "again") == held(place.store.root)


@pytest.mark.parametrize("at", [1, 5])
def test_killed_while_it_restores_there_is_no_store_and_the_next_try_makes_it(place, tmp_path, at):
    backups, target = Backups(tmp_path / "backups"), tmp_path / "again"
    made = backups.make(place.store, place.registry.path)
    if not (pid := os.fork()):
        signal.alarm(60)
        real, calls = backup.copied, iter(range(1, 1000))

        def copied(*given):
            if next(calls) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given)

        backup.copied = copied
        backups.restore(made, target)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert not target.exists() and (tmp_path / ".again.restoring").exists()
    backups.restore(made, target)
    assert held(target) == held(place.store.root) and not (tmp_path / ".again.restoring").exists()


def test_the_command_makes_lists_verifies_and_restores(place, tmp_path, capsys):
    from app.cli import main

    store, folder = f"--store={place.store.root}", str(tmp_path / "backups")
    assert main(["backup", store, folder]) == 0 and "3 runs" in capsys.readouterr().out
    assert main(["backup", store, folder, "--keep", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"]
    assert main(["backup", folder, "--list"]) == 0 and main(["backup", folder, "--verify"]) == 0
    assert main(["backup", folder, "--restore-to", str(tmp_path / "again")]) == 0
    assert "chipledger serve --store" in capsys.readouterr().out
    for wrong in (["--list", "--verify"], ["--of", "x"], ["--keep", "1", "--list"], ["--verify", "--of", "x"]):
        assert main(["backup", folder, *wrong]) == 2
    assert main(["backup", store, str(place.store.root)]) == 2
    capsys.readouterr()
    for address in (["s3://bucket/backups"], [folder, "--restore-to", "s3://bucket/again"]):
        assert main(["backup", store, *address]) == 2 and "chipledger mirror" in capsys.readouterr().err
    assert not Path("s3:").exists()


def test_a_volume_that_is_mounted_is_filled(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    made_runs.interrupted(store, name="made")
    backups, target = Backups(tmp_path / "kept"), tmp_path / "volume"
    made = backups.make(store, store.root / "registry.db")
    (target / "lost+found").mkdir(parents=True)
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path) == target)
    backups.restore(made, target)
    assert {r.manifest.name for r in Store(target).runs()} == {"made"}
    assert not (target / ".restoring").exists() and (target / "lost+found").is_dir()
    with pytest.raises(InputError, match="not empty"):
        backups.restore(made, target)


def test_files_of_an_upload_are_copied_whatever_they_are_called(tmp_path):
    store = Store(tmp_path / "store")
    sent = store.uploads_folder / ("a" * 32) / "files" / "run"
    sent.mkdir(parents=True)
    for name in ("poetry.lock", "trace.part", ".hidden"):
        (sent / name).write_text(name)
    (sent.parent.parent / "half.part").write_text("on its way")
    backups = Backups(tmp_path / "kept")
    made = backups.make(store, store.root / "registry.db")
    below = f"uploads/{'a' * 32}"
    assert {f"{below}/files/run/{n}" for n in ("poetry.lock", "trace.part", ".hidden")} <= set(made.files)
    assert f"{below}/half.part" not in made.files

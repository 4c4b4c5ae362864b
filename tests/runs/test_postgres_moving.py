"""A registry copied between a file and a server: every row of every table arrives as it was, or nothing does."""

import contextlib
import random
import sqlite3
import threading
import time

import pytest

from errors import InputError
from runs.alert_book import AlertBook, Judged, Target
from runs.audit_book import AuditBook, Entry
from runs.backup import Backups
from runs.baseline_book import BaselineBook
from runs.budget_book import Budget, BudgetBook
from runs.demo_runs import DemoRuns
from runs.digest_book import DigestBook
from runs.dismissals import Dismissals
from runs.job_book import Beat, JobBook, Wanted
from runs.live_book import LiveBook
from runs.login_book import Login, LoginBook
from runs.postgres import moving
from runs.postgres.moving import every_table, to_file, to_server
from runs.postgres.presence import Presence, workers
from runs.postgres.server import Server
from runs.promise_book import Promise, PromiseBook
from runs.registry import Registry
from runs.share_book import ShareBook
from runs.shelf import Search, Shelf
from runs.store import Store
from runs.timeline_book import TimelineBook
from runs.token_book import Token, TokenBook
from runs.upload_book import UploadBook

FAR = 1 << 62


def fill(at, folder, seed):
    """Something in every table."""
    dice = random.Random(seed)
    texts = ["", "a", "ü\t\\N \\. '\"", "x" * 5000, "日本\n語", "%s ? $1"]
    registry, shelf, marks = Registry(at), Shelf(at), TimelineBook(at)
    for number in range(dice.randint(1, 12)):
        run, text = f"run{number}", dice.choice(texts)
        registry.tag(run, f"k{number}", text or "v")
        registry.rename(run, text or "name", "ann")
        registry.declare(run, {"a fact": dice.choice([1, 1.5, None, "x", [1]]), "usd_per_chip_hour": dice.random()})
        shelf.edit_note(run, shelf.add_note(run, text or "n", "ann"), "edited")
        marks.add(run, text[:100], "{}")
        shelf.keep_glimpse(run, "key", text)
        shelf.note_binned(run, text, "bob")
        Dismissals(at).dismiss(run, [text])
    registry.stand_for("run1", "live:x")
    registry.remember_files([("ab" * 32, folder / "a", FAR)])
    shelf.star(["run1", "run2"])
    shelf.save_search(Search(name="s", query="mfu<30"))
    shares = ShareBook(at, folder)
    shares.share(["run3"], ["a", "b"])
    shares.set_usual("ann", "a")
    alerts = AlertBook(at)
    alerts.set_threshold("goodput", 0.1 + dice.random())
    alerts.set_target(Target("http://x", "json", "http://y"))
    found = {"rule": "goodput", "subject": "s", "run_id": "run1", "name": "n", "state": "open"}
    alerts.judge(Judged(**found, moment=(1, 2), value=0.1, threshold=None, sentence="low"))
    alerts.claim(alerts.alerts()[0])
    for outcome in ("done", "refused"):
        AuditBook(at).note(Entry(what="x", outcome=outcome, who="ann"))
    BaselineBook(at).set("main", "run1", "n")
    BudgetBook(at).set(Budget(team="t", unit="usd", amount=1e12 * dice.random()))
    DemoRuns(at).add("run1")
    DemoRuns(at).hide(True)
    DigestBook(at).want("UTC")
    DigestBook(at).claim("2026-W01")
    jobs = JobBook(at)
    jobs.ask(Wanted(job_id="j", what="ingest", arguments=["ingest"], about={"upload_id": "u"}), 10)
    jobs.claim("w", ["ingest"], lambda job_id: True)
    jobs.beat("w", [Beat(job_id="j", progress=0.25, doing="x", files={"f": (1, {"name": "f"})})])
    LiveBook(at).keep("x", "{}")
    LiveBook(at).led("x", "run1")
    LoginBook(at).keep("hash", Login(name="ann", groups=("a",), ends_ns=FAR))
    said = {"low_share": 0.1, "likely_share": 0.2, "high_share": 1 / 3, "draws": {"idle": 1e-300}}
    PromiseBook(at).keep(Promise(run_id="run1", job="j", cause="c", title="t", **said))
    TokenBook(at).keep(Token(token_id="t", name="ci", role="viewer", made_ns=FAR), "hash")
    UploadBook(at).note("u", "ann", ["a"])


def dump(at):
    """Every row of every table, as texts that differ where values do."""
    with Registry(at).everything() as db:
        return {table: sorted(map(repr, db.execute(f"select * from {table}").fetchall())) for table in every_table()}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_moved_there_and_back_is_what_it_was(tmp_path, postgres, seed):
    file, server = tmp_path / "registry.db", postgres.registry()
    fill(file, tmp_path, seed)
    before = dump(file)
    assert all(before.values()), [table for table, rows in before.items() if not rows]
    assert to_server(file, server) == {table: len(rows) for table, rows in before.items()}
    assert dump(server) == before == dump(file)
    assert to_file(server, tmp_path / "again.db", alone=True) == {t: len(rows) for t, rows in before.items()}
    assert dump(tmp_path / "again.db") == before


def test_what_is_added_after_a_move_gets_numbers_of_its_own(tmp_path, postgres):
    file, server = tmp_path / "registry.db", postgres.registry()
    fill(file, tmp_path, 1)
    to_server(file, server)
    shelf = Shelf(server)
    before = {note.id for note in shelf.notes("run1")}
    count = shelf.state()[1]
    number = shelf.add_note("run1", "after", "ann")
    assert number not in before and len(shelf.notes("run1")) == len(before) + 1
    assert shelf.state()[1] > count, "triggers count again"
    with pytest.raises(InputError, match="only added to"), AuditBook(server)._connect() as db:
        db.execute("delete from audit")


def test_nothing_is_copied_over_what_is_there(tmp_path, postgres):
    file, server = tmp_path / "registry.db", postgres.registry()
    fill(file, tmp_path, 1)
    Registry(server).tag("r", "k", "v")
    before = dump(server)
    with pytest.raises(InputError, match="is there already; nothing was copied"):
        to_server(file, server)
    assert dump(server) == before


@pytest.mark.parametrize("fails_at", ["share_mark", "jobs", "upload_owners"])
def test_what_fails_on_its_way_leaves_nothing(tmp_path, postgres, monkeypatch, fails_at):
    file, server = tmp_path / "registry.db", postgres.registry()
    fill(file, tmp_path, 1)
    whole, load, rows = dump(file), moving._load, moving._rows

    def failing(out, table, db):
        if table == fails_at:
            raise ZeroDivisionError
        load(out, table, db)

    def lacking(db, table, names):
        return iter(()) if table == fails_at else rows(db, table, names)

    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(moving, "_load", failing)
        to_server(file, server)
    assert not any(dump(server).values()) and dump(file) == whole
    with monkeypatch.context() as patch, pytest.raises(InputError, match=f"not every row arrived .{fails_at}: 1 and 0"):
        patch.setattr(moving, "_load", lambda out, table, db: None if table == fails_at else load(out, table, db))
        to_server(file, server)
    assert not any(dump(server).values())
    to_server(file, server)
    with monkeypatch.context() as patch, pytest.raises(InputError, match="not every row arrived"):
        patch.setattr(moving, "_rows", lacking)
        to_file(server, tmp_path / "half.db", alone=True)
    assert list(tmp_path.glob("half.db*")) == []


def test_nobody_writes_to_a_file_while_it_is_moved(tmp_path, postgres, monkeypatch):
    file, server = tmp_path / "registry.db", postgres.registry()
    Registry(file).tag("r", "k", "v")
    load, seen = moving._load, []

    def looking(out, table, db):
        with sqlite3.connect(file, timeout=0) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("delete from tags")
        seen.append(table)
        load(out, table, db)

    monkeypatch.setattr(moving, "_load", looking)
    to_server(file, server)
    assert seen == every_table()


def test_a_backup_holds_the_registry_of_one_moment_and_becomes_a_store_with_a_file(tmp_path, postgres):
    server, store = postgres.registry(), Store(tmp_path / "store")
    fill(server, tmp_path, 2)
    before, stop = dump(server), threading.Event()
    made = Backups(tmp_path / "backups").make(store, server)
    Backups(tmp_path / "backups").restore(made, tmp_path / "again")
    assert dump(tmp_path / "again" / "registry.db") == before
    shelf = Shelf(server)

    def write():
        """Two tags at a time, always equal."""
        for number in range(10_000):
            if stop.is_set():
                return
            shelf.tag(["run1"], {"one": str(number), "other": str(number)})

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for number in range(4):
            to_file(server, tmp_path / f"{number}.db")
            tags = Registry(tmp_path / f"{number}.db").extras("run1").tags
            assert tags.get("one") == tags.get("other")
    finally:
        stop.set()
        writing.join()


def test_what_was_moved_back_is_refused_to_who_opens_it_or_writes_there(tmp_path, postgres):
    server = postgres.registry()
    fill(server, tmp_path, 2)
    Presence(server).hold("w")
    book = Registry(server)
    to_file(server, tmp_path / "copy.db")
    book.tag("run1", "still", "written")
    to_file(server, tmp_path / "registry.db", alone=True)
    with pytest.raises(InputError, match="the registry was moved back.*Start this anew"):
        book.tag("run1", "lost", "x")
    with pytest.raises(InputError, match="moved back"), book._connect() as db:
        for number in range(2):
            with contextlib.suppress(InputError):
                db.execute("begin immediate")
            db.execute("insert into notes (run_id, written_ns, text) values ('x', ?, 'lost')", (number,))
    with pytest.raises(InputError, match="moved back"):
        Registry(Server(server.address)).standing()
    extras = Registry(tmp_path / "registry.db").extras("run1")
    assert "still" in extras.tags and "lost" not in extras.notes and "lost" not in extras.tags


def test_who_writes_while_it_is_moved_back_is_refused(tmp_path, postgres, monkeypatch):
    server = postgres.registry()
    fill(server, tmp_path, 1)
    book, write, refused = Registry(server), moving._write, []

    def late():
        with pytest.raises(InputError, match="moved back"):
            book.tag("run1", "late", "x")
        refused.append(True)

    waiting = threading.Thread(target=late)

    def writing(db, target):
        waiting.start()
        time.sleep(0.3)
        return write(db, target)

    monkeypatch.setattr(moving, "_write", writing)
    to_file(server, tmp_path / "registry.db", alone=True)
    waiting.join(10)
    assert refused and "late" not in Registry(tmp_path / "registry.db").extras("run1").tags


def test_workers_are_counted_by_registry(postgres):
    one, other = postgres.registry(), postgres.registry()
    first, second = Presence(one), Presence(one)
    first.hold("a")
    second.hold("b")
    assert (workers(one), workers(other)) == (2, 0)
    first.leave()
    second.leave()


@pytest.mark.parametrize("there", [False, True])
def test_a_table_of_a_newer_version_is_not_left_behind(tmp_path, postgres, there):
    file, server = tmp_path / "registry.db", postgres.registry()
    fill(server if there else file, tmp_path, 1)
    with Registry(server if there else file).everything() as db:
        db.execute("create table if not exists novelties (a text)")
        db.execute("insert into novelties values ('x')")
    with pytest.raises(InputError, match="does not know .novelties.; nothing was copied"):
        to_file(server, tmp_path / "back.db", alone=True) if there else to_server(file, server)
    assert not (tmp_path / "back.db").exists()

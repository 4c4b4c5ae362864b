"""The registry of a process that may open no connection: what it may ask, and what is left where it dies."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from errors import InputError
from runs.alert_book import AlertBook, Judged
from runs.audit_book import AuditBook, Entry
from runs.every_schema import SCHEMAS
from runs.job_book import JobBook
from runs.limits import NO_NETWORK_VARIABLE, Limits
from runs.login_book import LoginBook
from runs.postgres import relay as relay_module
from runs.postgres.relay import LINE_BYTES, ROWS, Relay, may, relayed
from runs.postgres.relay import VARIABLE as RELAY_VARIABLE
from runs.postgres.sealed import ALERT_ENDS, FILE, SHARE, Own, keys, statements
from runs.postgres.server import MOST
from runs.postgres.sql import lock_key, tables
from runs.registry import Extras, Registry
from runs.share_book import ShareBook
from runs.shelf import Shelf
from runs.token_book import TokenBook
from runs.upload_book import UploadBook
from tests.app import made_runs
from tests.app.serving import environment

PROJECT = Path(__file__).parents[2]


def own(group="ml", inputs=Path("/"), stored=(), who="ann"):
    return Own(inputs=inputs, is_stored=lambda run_id: run_id in stored, group=group, who=who)


@pytest.fixture
def server(postgres):
    return postgres.registry()


@pytest.fixture
def relay(server):
    with relayed(server, own()) as descriptor:
        yield Relay(os.dup(descriptor))


def judged(**more):
    about = {"rule": "goodput", "subject": "s", "run_id": "r", "name": "n", "state": "open", "threshold": 0.5}
    return Judged(**{**about, "moment": (1, 1), "value": 0.1, "sentence": "low\nwith ü and ?", **more})


def test_books_say_the_same_through_it(server, relay, tmp_path):
    Shelf(server).tag(["r", "s"], {"a": "1", "b": "2"})
    Registry(server).rename("r", "another", "ann")
    assert Registry(relay).said(["r"]) == Registry(server).said(["r"]) != {}
    assert Registry(relay).extras("r") == Registry(server).extras("r") != Extras()
    ShareBook(relay, tmp_path).add("r", "ml")
    assert ShareBook(server, tmp_path).hidden(frozenset()) == {"r"} and ShareBook(relay, tmp_path).of("r") == {"ml"}
    Registry(relay).remember_files([(f"{n:064}", Path(f"/a/b{n}"), 1 << 60) for n in range(2 * ROWS + 1)])
    assert len(Registry(server).files_below(Path("/a"))) == 2 * ROWS + 1
    AlertBook(server).set_threshold("goodput", 0.5)
    AlertBook(relay).judge(judged())
    [alert] = AlertBook(server).alerts()
    assert AlertBook(relay).is_open("goodput", "s") and alert.sentence == "low\nwith ü and ?"
    AlertBook(relay).judge(judged(state="over", moment=(2, 2)))
    assert not AlertBook(server).is_open("goodput", "s")
    with pytest.raises(ZeroDivisionError), Registry(relay)._connect() as db:
        db.execute(FILE, ("ab" * 32, "/undone/x", 1))
        raise ZeroDivisionError
    assert not Registry(server).files_below(Path("/undone"))


def ingested(root, descriptor, *words):
    """A sealed ingest's process, as the server begins it but for its limits."""
    env = {RELAY_VARIABLE: str(descriptor), NO_NETWORK_VARIABLE: "1", "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "app.cli", "--store", str(root), "ingest", *words, "--json"]
    done = subprocess.run(
        command, env={**environment(), **env}, capture_output=True, text=True, pass_fds=[descriptor], cwd=PROJECT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_real_ingests_say_nothing_else_and_all_that_may_be_said_is_said_by_one(server, tmp_path, monkeypatch):
    """First of a group, with what opens an alert; then the same again; then one that is over it."""
    said, allowed = set(), relay_module.may
    monkeypatch.setattr(relay_module, "may", lambda sql: said.add(sql) or allowed(sql))
    log, root = tmp_path / "goodput.jsonl", tmp_path / "store"
    for share in ("goodput", "mfu_drop", "straggler"):
        AlertBook(server).set_threshold(share, 0.9999)
    with relayed(server, own()) as descriptor:
        log.write_bytes(made_runs.goodput_log(50, "one"))
        first = ingested(root, descriptor, str(log), "--group", "ml", "--tag", "a=b", "--name", "x")
        again = ingested(root, descriptor, str(log))
        assert not first["existed"] and again["warnings"] == [] and again["alerts"]["problems"] == []
        AlertBook(server).set_threshold("goodput", 0.0001)
        ingested(root, descriptor, str(log), "--again", "--everyone")
    assert said == {*statements(), "begin immediate"}
    assert ShareBook(server, root).of(first["run_id"]) == {"ml"} and Registry(server).files_below(tmp_path)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from tokens",
        "SELECT hash FROM Logins",
        "delete from audit where outcome = 'refused'",
        "select 1; drop table tags",
        "update jobs set state = 'done'",
        "copy tags to program 'id'",
        "select pg_read_file('/etc/passwd')",
        "select current_setting('x')",
        "with x as (delete from tags) select 1",
        "create table x (a text)",
        "drop table tags",
        "select $$a$$",
        "begin",
        "",
        """select * from U&"tok!0065ns" UESCAPE '!'""",
        """insert into U&"tok!0065ns" UESCAPE '!' values ('evil')""",
        "select cast(table_to_xml(cast('tok'||'ens' as regclass), true, false, '') as text)",
        "select word from ts_stat('select to_tsvector(hash) from tok'||'ens')",
        "select 1 as a into t",
        "select 1.5",
        "delete from shared",
        "delete from tags",
        "select * from alert_target",
        "update alert_target set url = ?",
        "SELECT run_id, name FROM names",
        "select run_id, name from names ",
        "select run_id, name from names -- x",
        "select run_id, name from names /* x */",
        "select run_id, name from names union select hash, hash from tokens",
        "with t as (select hash from tokens) select * from t",
        "select 1 where exists (select 1 from alert_target)",
    ],
)
def test_what_no_ingest_needs_is_refused(server, relay, sql):
    with pytest.raises(InputError, match="nothing of that for a job"), relay.connect(SCHEMAS[0]) as db:
        db.execute(sql)
    assert not may(sql)
    with server.connect("") as db:
        assert db.execute("select count(*) from tags").fetchone()[0] == 0


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("theirs", "ml", "ann", 1), "a run that is there, hidden from its group"),
        (("open", "ml", "ann", 1), "a run that is there, seen by all"),
        (("coming", "ml", "ann", 1), "a run that is to be there, of others"),
        (("live:job", "ml", "ann", 1), "no run"),
        (("new", "others", "ann", 1), "a group that is not its own"),
        (("new", "ml", "bob", 1), "in the name of another"),
        (("another", "ml", "ann", 1), "a second run"),
    ],
)
def test_a_job_says_who_sees_its_own_run_and_no_other(server, tmp_path, row, why):
    book = ShareBook(server, tmp_path)
    for run_id in ("theirs", "coming"):
        book.share([run_id], ["secret"])
    before = book.all()
    with relayed(server, own(stored=("theirs", "open"))) as descriptor:
        relay = Relay(os.dup(descriptor))
        if row[0] == "another":
            ShareBook(relay, tmp_path).add("new", "ml", "ann")
            before = book.all()
        with pytest.raises(InputError, match="what is its own alone"), Registry(relay)._connect() as db:
            db.executemany(SHARE, [row])
        assert book.all() == before, why
        for _ in range(2):
            ShareBook(relay, tmp_path).add("new", "ml", "ann")
    assert book.of("new") == {"ml"}


def test_a_job_of_nobodys_group_shares_nothing(server, tmp_path):
    for group in ("", None):
        with relayed(server, own(group)) as descriptor, pytest.raises(InputError, match="its own"):
            ShareBook(Relay(os.dup(descriptor)), tmp_path).add("new", "", "ann")


def test_a_job_says_where_its_own_input_lies_and_alerts_of_runs_that_it_sees(server, tmp_path):
    book = ShareBook(server, tmp_path)
    book.share(["theirs"], ["secret"])
    book.share(["mine"], ["ml"])
    with relayed(server, own(inputs=Path("/up/load"))) as descriptor:
        relay = Relay(os.dup(descriptor))
        for path in ("/up/loads/x", "/up/load/../x", "x"):
            with pytest.raises(InputError, match="its own"):
                Registry(relay).remember_files([("ab" * 32, Path("/up/load/y"), 1), ("ab" * 32, Path(path), 1)])
        assert not Registry(server).files_below(Path("/up"))
        Registry(relay).remember_files([("ab" * 32, Path("/up/load/y"), 1)])
        AlertBook(server).set_threshold("goodput", 0.5)
        for run_id in ("mine", "seen by all"):
            AlertBook(relay).judge(judged(run_id=run_id, subject=run_id))
        with pytest.raises(InputError, match="its own"):
            AlertBook(relay).judge(judged(run_id="theirs", subject="mine"))
        with pytest.raises(InputError, match="its own"):
            AlertBook(relay).judge(judged(run_id="theirs", subject="mine", state="over", moment=(2, 2)))
    assert {a.run_id for a in AlertBook(server).alerts()} == {"mine", "seen by all"}


def test_a_job_ends_and_rewords_no_alert_about_a_run_that_it_does_not_see(server, tmp_path):
    ShareBook(server, tmp_path).share(["theirs"], ["secret"])
    book = AlertBook(server)
    book.set_threshold("goodput", 0.5)
    book.judge(judged(run_id="theirs", subject="job"))
    before = book.alerts()
    with relayed(server, own()) as descriptor:
        relay = Relay(os.dup(descriptor))
        for state in ("open", "over"):
            with pytest.raises(InputError, match="its own"):
                AlertBook(relay).judge(judged(run_id="mine", subject="job", state=state, moment=(2, 2)))
    assert book.alerts() == before


def test_a_job_says_nothing_under_the_lock_of_another_book(server, tmp_path):
    with relayed(server, own()) as descriptor:
        relay = Relay(os.dup(descriptor))
        with pytest.raises(InputError, match="tells and changes nothing"), AlertBook(relay)._connect() as db:
            db.executemany(SHARE, [("new", "ml", "ann", 1)])
        with pytest.raises(InputError, match="tells and changes nothing"), Registry(relay)._connect() as db:
            db.execute(ALERT_ENDS, (1, "x", "mine", 0.1, 0.5, "goodput", "job"))
    assert not ShareBook(server, tmp_path).all()


def test_tokens_logins_jobs_and_the_audit_log_are_not_told(server, relay):
    AuditBook(server).note(Entry(what="x", outcome="done"))
    for book in (AuditBook(relay).entries, TokenBook(relay).all):
        with pytest.raises(InputError, match="nothing of that for a job"):
            book()
    books = (AuditBook, JobBook, LoginBook, TokenBook, UploadBook)
    words = {word for sql in statements() for word in re.findall(r"\w+", sql)}
    assert not words & {*(name for book in books for name in tables(book.SCHEMA)), "alert_target", "chipledger_schema"}
    assert not keys() & {lock_key(book.SCHEMA) for book in books}


def test_a_process_holds_no_lock_for_long_and_few_at_once(server, relay, monkeypatch):
    monkeypatch.setattr(relay_module, "OPEN_S", 0.3)
    [one, other] = sorted(keys())
    relay.ask({"begin": 1, "key": one})
    relay.ask({"run": 1, "sql": "begin immediate", "values": []})
    relay.ask({"begin": 2, "key": other})
    for number in (2, 3):
        with pytest.raises(InputError, match="too much is asked"):
            relay.ask({"begin": number, "key": one})
    time.sleep(0.4)
    with pytest.raises(InputError, match="took too long"):
        relay.ask({"run": 1, "sql": "select run_id, name from names where run_id = ?", "values": ["r"]})
    with server.transaction(one) as db:
        db.execute("begin immediate")  # nobody holds it


def test_processes_together_leave_connections_to_others(server, monkeypatch):
    monkeypatch.setattr(relay_module, "ROOM_S", 0.1)
    assert 2 * relay_module.MOST_RELAYED <= MOST
    with contextlib.ExitStack() as three:
        asking = [Relay(os.dup(three.enter_context(relayed(server, own())))) for _ in range(3)]
        one = min(keys())
        for number in range(relay_module.MOST_RELAYED):
            asking[number // relay_module.MOST_OPEN].ask({"begin": number, "key": one})
        with pytest.raises(InputError, match="too much is asked"):
            asking[2].ask({"begin": 1, "key": one})
        Registry(server).standing()
        asking[0].ask({"end": 0, "keep": True})
        asking[2].ask({"begin": 1, "key": one})


def test_a_line_without_end_hangs_up(server):
    with relayed(server, own()) as descriptor:
        told = Relay(os.dup(descriptor))
        with pytest.raises(InputError, match="is gone"):
            told.ask({"run": 1, "sql": "x" * (LINE_BYTES + 1), "values": []})


def test_what_is_refused_by_the_server_is_told_as_it_says_it(server, relay):
    with pytest.raises(InputError, match="cannot keep this"):
        Registry(relay).remember_files([("ab" * 32, Path("/a\0"), 1)])
    assert Registry(server).files_below(Path("/")) == set()


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"7", b"{", b'{"run": 9, "sql": "select 1", "values": []}'])
def test_nonsense_ends_nothing(server, line):
    with relayed(server, own()) as descriptor:
        os.write(descriptor, line + b"\n")
        with os.fdopen(os.dup(descriptor), "rb") as told:
            assert "refused" in json.loads(told.readline())
        assert Registry(Relay(os.dup(descriptor))).standing(["r"]) == {}


def test_a_sealed_process_asks_through_it_and_what_it_left_half_done_is_undone(server, postgres):
    limits = Limits(network=False, sealed=True, writes=(), reads=("/",), parent=os.getpid())
    with relayed(server, own()) as descriptor:
        command = limits.command(sys.executable, "-m", "tests.runs.relay_child", str(descriptor), str(postgres.port))
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env={"PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            pass_fds=[descriptor],
        )
    assert done.stdout.splitlines() == ["refused", "{}", "half"], done.stderr
    registry = Registry(server)
    assert registry.files_below(Path("/from")) == {"ab" * 32}
    registry.tag("r", "k", "v")  # nobody holds the lock

"""The registry of a process that may open no connection: what it may ask, and what is left where it dies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from errors import InputError, QuestionError
from runs.audit_book import AuditBook, Entry
from runs.every_schema import SCHEMAS
from runs.limits import Limits
from runs.postgres.relay import Relay, denied, may, relayed
from runs.registry import Registry
from runs.share_book import ShareBook
from runs.shelf import Shelf
from runs.token_book import TokenBook

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def server(postgres):
    return postgres.registry()


@pytest.fixture
def relay(server):
    with relayed(server) as descriptor:
        yield Relay(os.dup(descriptor))


def test_books_say_the_same_through_it(server, relay, tmp_path):
    here, there = Shelf(server), Shelf(relay)
    number = there.add_note("r", "a note\nwith ü and ?", "ann")
    assert [n.id for n in here.notes("r")] == [number] and here.notes("r") == there.notes("r")
    there.tag(["r", "s"], {"a": "1", "b": "2"})
    assert Registry(relay).said() == Registry(server).said() and here.state() == there.state()
    ShareBook(relay, tmp_path).share(["r"], ["ml"])
    assert ShareBook(server, tmp_path).hidden(frozenset()) == {"r"}
    with pytest.raises(QuestionError, match="has no note 99"):
        there.edit_note("r", 99, "x")
    Registry(relay).remember_files([("ab" * 32, Path("/a/b"), 1 << 60)])
    assert Registry(server).files_below(Path("/a")) == {"ab" * 32}


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
    ],
)
def test_what_no_ingest_needs_is_refused(server, relay, sql):
    with pytest.raises(InputError, match="nothing of that for a job"), relay.connect(SCHEMAS[0]) as db:
        db.execute(sql)
    assert not may(sql)
    with server.connect("") as db:
        assert db.execute("select count(*) from tags").fetchone()[0] == 0


def test_tokens_logins_jobs_and_the_audit_log_are_not_told(server, relay):
    AuditBook(server).note(Entry(what="x", outcome="done"))
    for book in (AuditBook(relay).entries, TokenBook(relay).all):
        with pytest.raises(InputError, match="nothing of that for a job"):
            book()
    assert {"tokens", "logins", "jobs", "job_files", "audit"} <= denied()


def test_what_is_refused_by_the_server_is_told_as_it_says_it(relay):
    with pytest.raises(InputError, match="cannot keep this"):
        Shelf(relay).tag(["r"], {"a": "x\0"})
    assert Registry(relay).extras("r").tags == {}


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"7", b"{", b'{"run": 9, "sql": "select 1", "values": []}'])
def test_nonsense_ends_nothing(server, line):
    with relayed(server) as descriptor:
        os.write(descriptor, line + b"\n")
        with os.fdopen(os.dup(descriptor), "rb") as told:
            assert "refused" in json.loads(told.readline())
        assert Registry(Relay(os.dup(descriptor))).standing() == {}


def test_a_sealed_process_asks_through_it_and_what_it_left_half_done_is_undone(server, postgres):
    limits = Limits(network=False, sealed=True, writes=(), reads=("/",), parent=os.getpid())
    with relayed(server) as descriptor:
        command = limits.command(sys.executable, "-m", "tests.runs.relay_child", str(descriptor), str(postgres.port))
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env={"PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            pass_fds=[descriptor],
        )
    assert done.stdout.splitlines() == ["refused", "{'from': 'the child'}", "half"], done.stderr
    registry = Registry(server)
    assert registry.extras("r").tags == {"from": "the child"}
    registry.tag("r", "k", "v")  # nobody holds the lock

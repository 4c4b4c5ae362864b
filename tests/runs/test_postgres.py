"""A registry on PostgreSQL: made once whoever comes at the same time, refused in a sentence, and never telling a
password; what differs of the SQL; and that a transaction is one."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from errors import ChipledgerError, InputError
from runs import every_schema
from runs.database import Database, put
from runs.postgres import migrations, refusals
from runs.postgres import server as module
from runs.postgres.address import SECRET, address
from runs.postgres.presence import Presence
from runs.postgres.server import Server, server
from runs.postgres.sql import asked, lock_key, made_of
from runs.promise_book import Promise, PromiseBook
from runs.registry import Registry
from runs.shelf import Shelf
from tests.postgres import PASSWORD, QUOTED, free_port

PROJECT = Path(__file__).parents[2]
NOTES = "from runs.postgres.server import server; from runs.registry import Registry; import sys; "
NOTES += "Registry(server(sys.argv[1])).note('r', sys.argv[2])"


def until(ready, within_s=10.0):
    deadline = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def url(postgres):
    return postgres.url(postgres.schema())


def refusal(url: str) -> str:
    with pytest.raises(InputError) as error:
        Registry(server(url)).standing()
    assert PASSWORD not in str(error.value) and QUOTED not in str(error.value)
    return str(error.value)


def test_every_book_is_among_those_whose_tables_are_made():
    books = {book.SCHEMA for book in Database.__subclasses__() if book.__module__.startswith("runs.")}
    assert books - {"".join(every_schema.SCHEMAS)} == set(every_schema.SCHEMAS)


def test_replicas_that_start_at_once_make_the_tables_once(url, postgres):
    commands = [[sys.executable, "-c", NOTES, url, str(n)] for n in range(4)]
    begun = [subprocess.Popen(c, cwd=PROJECT, stderr=subprocess.PIPE, text=True) for c in commands]
    said = [process.communicate(timeout=60)[1] for process in begun]
    assert [process.returncode for process in begun] == [0] * 4, said
    assert sorted(Registry(server(url)).extras("r").notes) == list("0123")
    schema = url.rpartition("%3D")[2]
    assert postgres.sql(f"select count(*), max(version) from {schema}.chipledger_schema") == [(1, 1)]


def test_a_change_of_the_tables_is_made_once_and_a_newer_registry_is_refused(url, monkeypatch):
    Registry(server(url)).note("r", "before")
    change = ("alter table notes add column colour text not null default 'red'",)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "CHANGES", (change,))
        for _ in range(2):
            with closing(Server(address(url))) as newer, newer.connect("") as db:
                assert db.execute("select text, colour from notes").fetchall() == [("before", "red")]
    told = "made by a newer version of Chipledger .its schema is 2, this one knows 1.*pip install --upgrade"
    with pytest.raises(InputError, match=told):
        Registry(Server(address(url))).standing()


def test_a_user_who_may_not_make_tables_is_told_so(postgres):
    name = postgres.schema()
    postgres.sql(
        f"create role {name}_guest login password '{PASSWORD}'", f"grant usage on schema {name} to {name}_guest"
    )
    assert "this user may not do that" in refusal(postgres.url(name, user=f"{name}_guest"))


def test_a_user_who_may_only_read_reads(postgres):
    name = postgres.schema()
    Registry(server(postgres.url(name))).note("r", "x")
    postgres.sql(
        f"create role {name}_reader login password '{PASSWORD}'",
        f"grant usage on schema {name} to {name}_reader",
        f"grant select on all tables in schema {name} to {name}_reader",
    )
    registry = Registry(server(postgres.url(name, user=f"{name}_reader")))
    assert registry.extras("r").notes == ["x"]
    with pytest.raises(InputError, match="cannot be changed"):
        registry.note("r", "y")


def test_what_cannot_be_reached_is_told_in_a_sentence_without_the_password(postgres, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    assert "the password is wrong" in refusal(postgres.url(password="another%20secret%2Fwith%20%40%20letters"))
    assert "the password is wrong, or none was given" in refusal(postgres.url().replace(f":{QUOTED}@", "@"))
    assert "no such database" in refusal(postgres.url(database="nowhere"))
    gone = f"postgresql://tester:{QUOTED}@127.0.0.1:{free_port()}/postgres"
    assert "cannot be reached" in refusal(gone) and "127.0.0.1" in refusal(gone)
    assert "no such host" in refusal(f"postgresql://tester:{QUOTED}@nowhere.invalid/postgres")


@pytest.mark.parametrize(
    "text",
    [
        *("postgresql://u:p@SECRET@host/db", "postgresql://u:12/SECRET@host/db"),
        *("postgresql://u:p@host/SECRET@x/db", "postgresql://u:12,3/SECRET@host/db"),
        *("", "x", "mysql://a/b"),
        "postgresql://a:SECRET@h:port/x",
        "postgresql://a:SE%CRET@h/x",
        "postgresql://[",
    ],
)
def test_what_is_no_address_is_told_without_what_it_holds(text):
    with pytest.raises(InputError, match="address of the registry is not understood") as error:
        address(text)
    assert "SECRET" not in str(error.value) and "CRET" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (f"postgresql://ann:{QUOTED}@db:5433/reg?sslmode=require", "postgresql://ann@db:5433/reg?sslmode=require"),
        (f"postgres://ann@db/reg?password={QUOTED}&passfile=%2Fx", "postgresql://ann@db/reg"),
        (
            "postgresql://ann@db/reg?oauth_client_secret=S&scram_client_key=S&scram_server_key=S",
            "postgresql://ann@db/reg",
        ),
        ("postgresql:///reg?host=%2Frun%2Fpg", "postgresql:///reg?host=%2Frun%2Fpg"),
        ("postgresql://a:b@one:1,two:2/reg", "postgresql://a@/reg?host=one%2Ctwo&port=1%2C2"),
        ("postgresql://a:b@[::1]:5/reg", "postgresql://a@[::1]:5/reg"),
    ],
)
def test_an_address_is_told_without_what_is_secret_and_still_leads_there(text, plain):
    found = address(text)
    assert found.plain == plain and PASSWORD not in repr(found)
    assert address(plain).parts == {k: v for k, v in found.parts.items() if k not in SECRET}


def test_a_server_that_is_started_anew_is_waited_for_and_one_that_stays_away_is_told(postgres, monkeypatch):
    registry = postgres.registry()
    book = Registry(registry)
    book.note("r", "x")
    for how in (signal.SIGINT, signal.SIGQUIT):
        postgres.stop(how)
        starting = threading.Timer(0.3, postgres.start)
        starting.start()
        book.note("r", "y")
        starting.join()
    assert book.extras("r").notes == ["x", "y", "y"]
    monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    postgres.stop()
    try:
        with pytest.raises(InputError, match="cannot be reached .*Does PostgreSQL run there"):
            book.note("r", "z")
        began = time.monotonic()
        with pytest.raises(InputError):
            book.note("r", "z")
        assert time.monotonic() - began < 0.3, "nobody waits again for one that was waited for in vain"
    finally:
        postgres.start()
    assert book.extras("r").notes == ["x", "y", "y"]


@pytest.fixture
def full(postgres):
    """A server that takes one connection of a user, and one of those that has it."""
    import psycopg

    name = postgres.schema()
    guest = f"{name}_guest"
    postgres.sql(
        f"create role {guest} login password '{PASSWORD}' connection limit 1",
        f"grant create, usage on schema {name} to {guest}",
    )
    url = postgres.url(name, user=guest)
    with psycopg.connect(url) as held:
        yield url, held


def test_a_server_that_takes_no_more_is_waited_for_and_told(full, monkeypatch):
    url, held = full
    monkeypatch.setattr(module, "WAIT_S", 0.3)
    for _ in range(2):
        began = time.monotonic()
        assert "it takes no more connections. Raise max_connections" in refusal(url)
        assert time.monotonic() - began > 0.3, "each waits: room comes at any moment"
    monkeypatch.setattr(module, "WAIT_S", 10.0)
    ends = threading.Timer(0.2, held.close)
    ends.start()
    Registry(server(url)).note("r", "x")
    ends.join()


def test_who_waits_for_a_full_server_takes_what_another_gives_back(full):
    url, held = full
    held.close()
    book, noted = Registry(server(url)), []
    until(lambda: not noted and not book.note("r", "x"))
    with book._connect() as db:
        db.execute("select 1")
        waits = threading.Thread(target=lambda: noted.append(book.note("r", "y")))
        waits.start()
        time.sleep(0.3)
        assert not noted
    waits.join(10)
    assert noted and book.extras("r").notes == ["x", "y"]


@pytest.mark.parametrize(
    "said",
    [
        "FATAL: sorry, too many clients already",
        'FATAL: too many connections for role "ledger"',
        "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_whoever_says_that_a_server_is_full_is_understood(said):
    assert "takes no more connections" in str(refusals.unreached(Exception(said), "x"))


def test_a_process_has_few_connections_and_keeps_fewer(url, postgres):
    """What docs/operations.md says of how many there are."""
    book, there = Registry(server(url)), []
    book.standing()
    meet = threading.Barrier(module.MOST)

    def holds(n):
        with book._connect() as db:
            db.execute("select 1")
            if n < module.MOST:  # the first have theirs at the same time
                if meet.wait(10) == 0:
                    there.append(postgres.connections())
                meet.wait(10)

    callers = [threading.Thread(target=holds, args=(n,)) for n in range(3 * module.MOST)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(20)
    assert there == [module.MOST] == [8]
    until(lambda: postgres.connections() == module.KEPT == 2)


def test_connections_that_nobody_took_for_long_are_closed_and_the_last_is_taken_first(url, postgres, monkeypatch):
    at = server(url)
    with at.connect(""), at.connect("") as db:
        pid = db.execute("select pg_backend_pid()").fetchone()
    with at.connect("") as db:
        assert db.execute("select pg_backend_pid()").fetchone() != pid, "the one that was given back last"
    assert postgres.connections() == 2
    monkeypatch.setattr(module, "IDLE_S", 0.2)
    time.sleep(0.25)
    with at.connect("") as db:
        db.execute("select 1")
    until(lambda: postgres.connections() == 1)


def test_there_is_one_of_an_address_whoever_asks_at_the_same_time(url):
    found, meet = [], threading.Barrier(8)
    callers = [threading.Thread(target=lambda: (meet.wait(10), found.append(server(url)))) for _ in range(8)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(10)
    assert len(found) == 8 and len({id(one) for one in found}) == 1


def test_a_transaction_is_kept_whole_or_not_at_all(url):
    book = Registry(server(url))
    with pytest.raises(ZeroDivisionError), book._connect() as db:
        db.execute(put("tags", "run_id, key", "value"), ("r", "a", "1"))
        raise ZeroDivisionError
    with pytest.raises(InputError), book._connect() as db:
        db.execute(put("tags", "run_id, key", "value"), ("r", "a", "1"))
        db.execute("insert into nothing values (1)")
    book.tag("r", "b", "2")
    assert book.extras("r").tags == {"b": "2"}


def test_one_writes_at_a_time_and_who_reads_waits_for_nobody(url):
    book = Registry(server(url))
    order: list[str] = []
    with book._connect() as db:
        db.execute("begin immediate")
        other = threading.Thread(target=lambda: (book.tag("r", "a", "2"), order.append("other")))
        other.start()
        assert book.extras("r").tags == {}
        time.sleep(0.2)
        db.execute(put("tags", "run_id, key", "value"), ("r", "a", "1"))
        order.append("first")
    other.join(timeout=10)
    assert order == ["first", "other"] and book.extras("r").tags == {"a": "2"}


def test_the_lock_of_a_process_that_is_killed_is_free(url):
    book = Registry(server(url))
    book.standing()
    hold = "import sys, time; from runs.postgres.server import server; from runs.registry import Registry\n"
    hold += "with Registry(server(sys.argv[1]))._connect() as db:\n"
    hold += "    db.execute('begin immediate'); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, url], cwd=PROJECT, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        process.kill()
        book.tag("r", "a", "1")
    assert book.extras("r").tags == {"a": "1"}


def test_a_worker_is_seen_as_long_as_it_lives(url):
    one, other = Presence(server(url)), Presence(server(url))
    assert not other.is_held("w1")
    one.hold("w1")
    one.hold("w1")
    assert other.is_held("w1") and not other.is_held("w2") and one.is_held("w1")
    one._db.close()
    until(lambda: not other.is_held("w1"))
    one.hold("w1")
    assert other.is_held("w1")
    one.leave()
    until(lambda: not other.is_held("w1"))


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_cannot_be_kept_is_refused_and_nothing_is_lost(url, text):
    shelf = Shelf(server(url))
    with pytest.raises(ChipledgerError, match="cannot keep this text"):
        shelf.tag(["r"], {"ok": "1", "bad": text})
    assert shelf._which and Registry(shelf.at).extras("r").tags == {}


def test_texts_are_ordered_by_their_characters_whatever_the_server_speaks(url):
    registry = Registry(server(url))
    for key in ("b", "B", "a", "é", "_"):
        registry.tag("r", key, "1")
    assert list(registry.extras("r").tags) == sorted(["b", "B", "a", "é", "_"])


def test_a_fork_does_not_use_the_connections_of_its_parent_nor_wait_for_its_room(url, monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    registry = Registry(server(url))
    registry.note("r", "x")
    told, say = os.pipe()
    with registry._connect():
        if (pid := os.fork()) == 0:
            signal.alarm(60)
            with contextlib.suppress(BaseException):
                registry.note("r", "y")
                os.write(say, b"done")
            os._exit(0)
        os.waitpid(pid, 0)
    os.close(say)
    assert os.read(told, 10) == b"done"
    os.close(told)
    assert registry.extras("r").notes == ["x", "y"]


def test_without_the_library_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"takes psycopg.*pip install 'chipledger\[postgres\]'"):
        server("postgresql://nobody@nowhere/x")


def test_a_registry_whose_table_is_gone_is_said_to_be_damaged(url, postgres):
    registry = Registry(server(url))
    registry.note("r", "x")
    postgres.sql(f"drop table {url.rpartition('%3D')[2]}.tags")
    with pytest.raises(InputError, match="damaged: a table is gone"):
        registry.extras("r")


def test_statements_are_sent_with_the_values_apart():
    assert asked("select '%' where a = ?") == ("select '%%' where a = %s", False)
    assert asked("update x set a = ?")[1] and asked("insert into x values (?)")[1] and asked("delete from x")[1]


def test_schemas_are_made_of_what_postgresql_has():
    made = made_of("create table if not exists a (id integer primary key, text text not null, x real) without rowid;")
    assert made == (
        "create table if not exists a (id bigint generated by default as identity primary key, "
        'text text collate "C" not null, x double precision)',
    )


def test_a_database_that_keeps_other_letters_is_refused_and_others_are_asked_as_utf8(postgres):
    postgres.sql("create database latin encoding 'LATIN1' locale 'C' template template0")
    assert "keeps texts as LATIN1, not as UTF8" in refusal(postgres.url(database="latin"))
    book = Registry(server(postgres.url(postgres.schema()) + "&client_encoding=LATIN1"))
    book.note("r", "日本")
    assert book.extras("r").notes == ["日本"]


def test_a_transaction_in_error_is_not_said_to_be_kept(url):
    book = Registry(server(url))
    with pytest.raises(InputError, match="nothing of it was kept"), book._connect() as db:
        db.execute(put("tags", "run_id, key", "value"), ("r", "a", "1"))
        with contextlib.suppress(InputError):
            db.execute("insert into nothing values (1)")
    assert book.extras("r").tags == {}


def test_a_registry_of_another_schema_on_the_path_is_another(postgres):
    """And one of a server that asks for one moment alone sees what was written before it had the lock."""
    first, second = postgres.schema(), postgres.schema()
    Registry(server(postgres.url(first))).note("r", "x")
    both = postgres.url(f"{second}%2C{first}") + "%20-cdefault_transaction_isolation%3Dserializable"
    book = Registry(server(both))
    assert book.extras("r").notes == []
    with book._connect() as db:
        db.execute("begin immediate")
        assert db.execute("show transaction_isolation").fetchone() == ("read committed",)


def test_what_is_too_long_for_an_index_is_told_so(url):
    book = Registry(server(url))
    with pytest.raises(InputError, match="too long to be kept") as error, book._connect() as db:
        db.execute(put("tags", "run_id, key", "value"), ("r", "".join(map(chr, range(300, 4300))), "1"))
    assert "Try again" not in str(error.value)


@pytest.mark.parametrize("say", [lambda b, k: b.tag("r", k, "v"), lambda b, k: b.declare("r", {k: 1})])
def test_names_of_tags_and_facts_are_bounded_by_what_an_index_holds(registry_at, say):
    book = Registry(registry_at)
    long = "".join(chr(0x10000 + n * 97) for n in range(500))
    say(book, long)
    for name in ("", long + "x"):
        with pytest.raises(InputError, match="expected 1 to 500"):
            say(book, name)
    with pytest.raises(InputError, match="expected 1 to 500"):
        Shelf(registry_at).tag(["r"], {"a": "1", long + "x": "v"})
    assert len(book.extras("r").tags) <= 1


def test_a_promise_of_a_place_of_any_length_stands_once(registry_at):
    book = PromiseBook(registry_at)
    ranks = list(range(20_000))
    said = {"low_share": 0.1, "likely_share": 0.2, "high_share": 0.3, "draws": {}}
    for place in ({"ranks": ranks}, {"ranks": ranks}, {"ranks": ranks[1:]}):
        book.keep(Promise(run_id="r", job="j", cause="c", title="t", place=place, **said))
    assert [p.place["ranks"] for p in book.standing()].count(ranks) == 1 and len(book.standing()) == 2


def test_each_book_has_a_lock_that_another_version_of_it_has_too():
    keys = {lock_key(schema) for schema in every_schema.SCHEMAS}
    assert len(keys) == len(every_schema.SCHEMAS)
    more = "create table if not exists novelties (a text);"
    assert {lock_key(schema + more) for schema in every_schema.SCHEMAS} == keys

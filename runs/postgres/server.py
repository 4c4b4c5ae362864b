"""A registry on PostgreSQL, with what a file of SQLite promises: one short transaction a call, one writer at a time,
and a refusal in one sentence.

A process has few connections, takes again the one that it used last, and closes what is idle. Statements that only read
are answered one by one. With the first that may change anything a transaction begins, which has the lock of its book's
tables until it ends: what a book looks at after `begin immediate` is what it changes. The lock is PostgreSQL's own and
goes with the connection, so that a replica that dies holds up nobody.
"""

import contextlib
import os
import random
import select
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from errors import InputError
from runs.database import Connection, Cursor
from runs.postgres import refusals
from runs.postgres.address import Address, address
from runs.postgres.library import library
from runs.postgres.migrations import IS_LEFT, prepare
from runs.postgres.sql import asked, lock_key

MOST = 8  # connections of a process at once; who comes later waits
KEPT = 2  # of them that stay open while nobody has them
WAIT_S = 10.0  # for one of them, for a server that takes no more, and for the lock of a writer, as SQLite waits
PATIENCE_S = 3.0  # for a server that is being started anew
DOWN_S = 5.0  # after it was waited for in vain, nobody waits again
PAUSE_S = 0.1
IDLE_S = 60.0  # a connection that nobody took for so long is closed
_SETTINGS = (
    f"set lock_timeout = '{int(WAIT_S)}s'; set statement_timeout = '60s'; "
    "set idle_in_transaction_session_timeout = '60s'; set client_min_messages = 'warning'; set timezone = 'UTC'"
)
_LOOK = (
    "select current_setting('server_version'), has_schema_privilege(current_schema(), 'create'), "
    "to_regclass(quote_ident(current_schema()) || '.chipledger_registry') is not null"
)
_BEGIN = "begin isolation level read committed"  # what is looked at under the lock is what stands then
_ALIVE = {
    **{"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3},
    **{"tcp_user_timeout": 30_000, "connect_timeout": 5, "application_name": "chipledger"},
}


_servers: "dict[str, Server]" = {}
_making = threading.Lock()


@dataclass(frozen=True)
class Look:
    """`which`: what tells the registry from another; None where its tables are not made yet."""

    version: str
    may_make: bool
    which: int | None


def server(url: str) -> "Server":
    """The registry at an address, one in a process. Raises InputError for what is no address."""
    with _making:
        if url not in _servers:
            _servers[url] = Server(address(url))
        return _servers[url]


def let_go() -> None:
    """Close the connections that this process keeps open and nobody has now."""
    with _making:
        there = list(_servers.values())
    for one in there:
        one.close()


class Transaction:
    """One connection while one call has it; see `Connection`."""

    def __init__(self, db: Any, key: int, name: str):
        self._db, self._key, self._name, self._began = db, key, name, False

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Cursor:
        if sql == "begin immediate":
            return self._begin()
        text, writes = asked(sql)
        if writes:
            self._begin()
        with told(self._name):
            return self._db.execute(text, tuple(values))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        text, writes = asked(sql)
        if writes:
            self._begin()
        with told(self._name), self._db.cursor() as cursor:
            cursor.executemany(text, [tuple(row) for row in rows])
            return cursor

    def _begin(self) -> Any:
        """Raises InputError where the registry was moved back while this process ran."""
        if self._began:
            return None
        self._began = True
        with told(self._name):
            lock = f"select pg_advisory_xact_lock(hashtext(current_schema()), {self._key})"
            done = self._db.execute(f"{_BEGIN}; {lock}; {IS_LEFT}")
            while done.nextset():
                pass
            row = done.fetchone()
            if row is not None and row[0]:
                self._db.execute("rollback")
                self._began = False
                raise refusals.left(self._name)
        return None

    def done(self) -> None:
        """Keep what was changed."""
        if self._began:
            if self._db.info.transaction_status == library().pq.TransactionStatus.INERROR:
                raise refusals.undone(self._name)  # a commit would undo it, and say nothing
            with told(self._name):
                self._db.execute("commit")

    def undo(self) -> None:
        if self._began:
            with contextlib.suppress(Exception):  # it is lost then, and so is what it changed
                self._db.execute("rollback")


class Server:
    """The registry at an address. Safe for several threads."""

    def __init__(self, where: Address):
        self.address = where
        self._down_s = float("-inf")
        self._own()

    def _own(self) -> None:
        """Begin without connections, as the process that this is."""
        self._pid = os.getpid()
        self._idle: list[tuple[Any, float]] = []  # the one that was used last comes last
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST)

    @property
    def name(self) -> str:
        return self.address.name

    @contextlib.contextmanager
    def connect(self, schema: str) -> Generator[Connection]:
        with self.transaction(lock_key(schema)) as one:
            yield one

    @contextlib.contextmanager
    def transaction(self, key: int) -> Generator[Transaction]:
        """One call's, which writes under the lock of this number."""
        if self._pid != os.getpid():  # the connections of the process that this one was forked from are not ours
            self._own()
        room = self._room
        if not room.acquire(timeout=WAIT_S):
            what = f"the registry cannot be used now: {MOST} connections of this process are busy"
            raise InputError(what, where=self.name, advice="Try again.")
        db = None
        try:
            db = self._taken()
            one = Transaction(db, key, self.name)
            try:
                yield one
                one.done()
            except BaseException:
                one.undo()
                raise
        finally:
            if db is not None:
                self._give_back(db)
            room.release()

    @contextlib.contextmanager
    def raw(self) -> Generator[Any]:
        """A connection of the library's own, in a transaction that is kept where nothing is raised: for what takes
        whole tables. What the library refuses is told as anywhere."""
        db = self.dial()
        try:
            with told(self.name):
                db.execute("set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
                with db.transaction():
                    yield db
        finally:
            db.close()

    def which(self, db: Connection) -> int:
        found = db.execute("select which from chipledger_registry").fetchone()
        return int(found[0]) if found else 0

    def look(self) -> "Look":
        """What is there, without making or changing anything. Raises InputError where it cannot be reached."""
        try:
            with library().connect(**self._parts(), autocommit=True) as db, told(self.name):
                found, may, there = db.execute(_LOOK).fetchone()
                which = db.execute("select which from chipledger_registry").fetchone() if there else None
        except library().OperationalError as e:
            raise refusals.unreached(e, self.name) from None
        return Look(str(found), bool(may), which[0] if which else None)

    def bytes(self) -> int:
        """Of its tables with what finds their rows."""
        with self.connect("") as db:
            asked_for = (
                "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c "
                "where c.relkind = 'r' and c.relnamespace = to_regnamespace(current_schema()::text)"
            )
            return int(db.execute(asked_for).fetchone()[0])

    def close(self) -> None:
        """Let go of the connections that nobody has now."""
        with self._lock:
            idle, self._idle = self._idle, []
        for db, _ in idle:
            db.close()

    def dial(self) -> Any:
        """A connection of its own, with the tables made. Raises InputError where there is none to be had."""
        return self._had(lambda: None)

    def _had(self, idle: Callable[[], Any]) -> Any:
        """What `idle` has, else a new connection; while the server takes no more, whichever comes first."""
        began = time.monotonic()
        while (db := idle()) is None:
            try:
                return self._dialled()
            except library().OperationalError as e:
                if not self._waits(e, time.monotonic() - began):
                    raise refusals.unreached(e, self.name) from None
            time.sleep(PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - so that not all come at the same moment
        return db

    def _waits(self, error: Exception, waited_s: float) -> bool:
        """Whether to try again after this refusal."""
        if refusals.is_full(error):
            return waited_s < WAIT_S
        if not refusals.is_passing(error):
            return False
        now = time.monotonic()
        if waited_s < PATIENCE_S and now - self._down_s >= DOWN_S:
            return True
        self._down_s = now
        return False

    def _dialled(self) -> Any:
        db = library().connect(**self._parts(), autocommit=True)
        try:
            if (kept_as := db.info.parameter_status("server_encoding")) != "UTF8":
                raise refusals.other_letters(kept_as, self.name)
            with told(self.name):
                db.execute(_SETTINGS)
                prepare(db, self.name)
        except BaseException:
            db.close()
            raise
        self._down_s = float("-inf")
        return db

    def _parts(self) -> dict[str, Any]:
        return {**_ALIVE, **self.address.parts, "client_encoding": "UTF8"}

    def _taken(self) -> Any:
        """One that is there and lives, else a new one."""
        return self._had(self._idle_one)

    def _idle_one(self) -> Any:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                db, since_s = self._idle.pop()
            if time.monotonic() - since_s < IDLE_S and _lives(db):
                return db
            db.close()

    def _give_back(self, db: Any) -> None:
        states = library().pq.TransactionStatus
        if db.closed or db.broken or db.info.transaction_status != states.IDLE:
            db.close()
            return
        now = time.monotonic()
        with self._lock:
            all_of_them = [*self._idle, (db, now)]
            late = sum(now - since_s >= IDLE_S for _, since_s in all_of_them)
            first = max(late, len(all_of_them) - KEPT)
            self._idle = all_of_them[first:]
        for one, _ in all_of_them[:first]:
            one.close()


@contextlib.contextmanager
def told(name: str) -> Generator[None]:
    """What the library or the server refuses, as InputError."""
    try:
        yield
    except library().Error as e:
        raise refusals.refused(e, name) from None  # further lines of its own quote rows
    except UnicodeEncodeError as e:
        raise refusals.unreadable(e) from e


def _lives(db: Any) -> bool:
    """Whether nothing came that nobody asked for: a server that ends says so, or hangs up."""
    if db.closed:
        return False
    look = select.poll()
    look.register(db.fileno(), select.POLLIN)
    return not look.poll(0)

"""What is kept beside the runs: in a small SQLite file beside the store, opened anew for each call and safe for several
processes, or where `Elsewhere` says.

The SQL of the books is what SQLite (3.35 and later) and PostgreSQL both take, with `?` for values; `begin immediate`
keeps all others from writing what a book keeps until the block ends. What differs stands in `runs/postgres/`.
"""

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from errors import InputError
from runs.durable import keep_private

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CLOSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_ALTERED = ("no such table", "no such column", "Could not decode", "unsupported file format")
_TABLE = re.compile(r"create table if not exists (\w+) ([^;]*);")
_MADE = re.compile(r"^create .*if not exists (\w+)", re.MULTILINE)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
BEGUN_S = 10.0  # so long others are waited for who begin the same file
NOTE = "registry.at"  # beside a file that is the registry no more; see app/registry_place.py


class Cursor(Protocol):
    """The rows that a statement found, or how many it changed."""

    @property
    def rowcount(self) -> int: ...
    @property
    def description(self) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What a book asks of its database: of `sqlite3.Connection` as little as all of them have."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any: ...


class Elsewhere(Protocol):
    """A registry that is no file. One object of it in a process.

    name    as people are told it: without what is secret
    """

    @property
    def name(self) -> str: ...
    def connect(self, schema: str) -> contextlib.AbstractContextManager[Connection]:
        """One short transaction of who keeps this `schema`. Raises InputError where it cannot be used."""
        ...

    def which(self, db: Connection) -> int:
        """What tells this registry from another that came into its place."""
        ...

    def bytes(self) -> int: ...


At = Path | Elsewhere


@cache
def put(table: str, by: str, rest: str) -> str:
    """SQL that keeps a row in the place of one of the same key: values of the columns `by`, then of those of `rest`."""
    names = f"{by}, {rest}".split(", ")
    told = ", ".join(f"{name} = excluded.{name}" for name in rest.split(", "))
    marks = ", ".join("?" * len(names))
    return f"insert into {table} ({', '.join(names)}) values ({marks}) on conflict ({by}) do update set {told}"


class Database:
    """Opens (and makes) the database, for its owner alone. WAL, one short transaction per call. `SCHEMA` is what a
    subclass keeps there. One that cannot be written is read."""

    SCHEMA = ""

    def __init__(self, at: At):
        self.at = at
        if isinstance(at, Path):
            self._make()

    @property
    def path(self) -> Path:
        """The file. Only where it is one: `at` leads to the registry wherever it is."""
        assert isinstance(self.at, Path)
        return self.at

    @property
    def name(self) -> str:
        """As people are told it."""
        return str(self.at) if isinstance(self.at, Path) else self.at.name

    def bytes(self) -> int:
        """What it takes, with what SQLite keeps beside it. Raises OSError where the file is gone."""
        if not isinstance(self.at, Path):
            return self.at.bytes()
        return self.at.stat().st_size + sum(_bytes_of(_beside(self.at, ending)) for ending in ("-wal", "-shm"))

    def _which(self, db: Connection) -> int:
        """What tells this registry from another in its place; 0 where it is gone."""
        if not isinstance(self.at, Path):
            return self.at.which(db)
        try:
            return self.at.stat().st_ino
        except OSError:
            return 0

    def _make(self) -> None:
        """Make the file and what is kept there. Where nothing can be written, what is there is read."""
        # only where it is not there: to close a file that SQLite has open takes this process its locks on it, and
        # two would write at once
        with contextlib.suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for file in (self.path, _beside(self.path, "-wal"), _beside(self.path, "-shm")):
            keep_private(file)
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=10)) as db, db:
                _write_ahead(db)
                _add(db, self.SCHEMA)
        except UnicodeDecodeError as e:  # of a name or a schema whose bytes are no text any more
            raise _refusal(sqlite3.DatabaseError(f"Could not decode: {e}"), self.path) from e
        except sqlite3.Error as e:
            if not (_kind(e) in (*_CLOSED, *_FULL) and os.path.exists(self.path)):
                raise _refusal(e, self.path) from e

    def copy_to(self, target: Path) -> str:
        """Copy all of it, as it stands at one moment, into a file that is not there; others write meanwhile. Returns
        what is damaged of it, else an empty text."""
        with self.opened() as db, contextlib.closing(sqlite3.connect(target)) as out:
            db.backup(out)
            out.execute("pragma journal_mode = delete")  # all of it in one file
            (whole,) = out.execute("pragma integrity_check(1)").fetchone()
        return "" if whole == "ok" else str(whole)[:200]

    def everything(self) -> contextlib.AbstractContextManager[Connection]:
        """All that is kept here, of whichever book: for who counts or copies it."""
        return self._connect()

    def _connect(self) -> contextlib.AbstractContextManager[Connection]:
        return self.opened() if isinstance(self.at, Path) else self.at.connect(self.SCHEMA)

    def _stays(self) -> None:
        """Raises InputError where the registry was moved while this process ran: a new one would take its place."""
        if self.path.with_name(NOTE).exists():
            raise InputError(
                "the registry was moved", where=str(self.path), advice="Start this anew: it then finds where it is."
            )

    @contextlib.contextmanager
    def opened(self) -> Generator[sqlite3.Connection]:
        """The file, for one transaction."""
        if not os.path.exists(self.path):
            self._stays()
            self._make()  # removed while this process ran
        db, refused = None, None
        try:
            db, refused = _opened(self.path, self.SCHEMA)
            with db:
                yield db
        except UnicodeDecodeError as e:
            raise _refusal(sqlite3.DatabaseError(f"Could not decode: {e}"), self.path) from e
        except sqlite3.Error as e:
            cause = refused if refused and _kind(e) in _CLOSED else e  # why it can be read alone, such as a full disk
            raise _refusal(cause, self.path) from e
        finally:
            if db is not None:
                db.close()


def _opened(path: Path, schema: str = "") -> tuple[sqlite3.Connection, sqlite3.Error | None]:
    """A connection that can read: of a file on a disk that cannot be written, one that writes nothing beside it. And
    why it is such a one; None where it can write."""
    ways = ["mode=rw", "mode=ro"]
    if not _bytes_of(_beside(path, "-wal")):  # or what stands there would be missed
        ways.append("mode=ro&immutable=1")
    refused: sqlite3.Error | None = None
    for way in ways:
        db = None
        try:
            db = sqlite3.connect(f"{path.absolute().as_uri()}?{way}", timeout=10, uri=True)
            there = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
            if lacking := [t for t in _tables(schema) if t[0] not in there]:
                _complete(db, lacking, schema, way == "mode=rw" and os.access(path, os.W_OK))
            return db, refused
        except sqlite3.Error as e:
            if db is not None:
                db.close()
            if _kind(e) not in (*_CLOSED, *_FULL):
                raise
            refused = e
    assert refused is not None  # there are ways, and each was refused
    raise refused


@cache
def _tables(schema: str) -> list[tuple[str, str]]:
    """(name, columns) of each table."""
    return _TABLE.findall(schema)


def _write_ahead(db: sqlite3.Connection) -> None:
    """Keep a log of what is written. Others that begin the same file hold it for a moment, and here SQLite does not
    wait for them by itself."""
    until = time.monotonic() + BEGUN_S
    while True:
        try:
            db.execute("pragma journal_mode=wal")
            return
        except sqlite3.OperationalError as e:
            if _kind(e) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _add(db: sqlite3.Connection, schema: str) -> None:
    """Make what lacks of a schema, in one transaction: each statement by itself would wait for the disk."""
    there = {name for (name,) in db.execute("select name from sqlite_master")}
    if not there.issuperset(_MADE.findall(schema)):
        db.executescript(f"begin immediate;{schema}commit;")


def _complete(db: sqlite3.Connection, lacking: list[tuple[str, str]], schema: str, may_write: bool) -> None:
    """Make the tables that another program did not: an earlier version, or one that made the file anew. Where it cannot
    be written they are empty and for this connection alone: the file is read as it is."""
    if may_write:
        _add(db, schema)
        return
    for name, columns in lacking:
        db.execute(f"create temp table {name} {columns}")
    db.execute("pragma query_only = on")  # nothing is kept where it would be lost


def _kind(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _refusal(error: sqlite3.Error, path: Path) -> InputError:
    """What is wrong, and what to do: only a registry that is damaged should be given up."""
    kind = _kind(error)
    if kind in _DAMAGED or str(error).startswith(_ALTERED):
        return InputError(
            f"the registry cannot be used, it is damaged ({error})",
            where=str(path),
            advice="Move the file away: runs are kept apart from it, only tags, notes, prices, alerts, baselines, "
            "budgets and who sees which run are lost.",
        )
    if kind in _CLOSED and not path.parent.is_dir():
        return InputError(
            "the store is gone, and its registry with it",
            where=str(path),
            advice="Is its disk mounted? Bring it back, or start again with another --store.",
        )
    if kind in _CLOSED:
        return InputError(
            f"the registry cannot be written ({error})",
            where=str(path),
            advice="May this user write to the store, and is its disk mounted for writing?",
        )
    if kind in _FULL:
        return InputError(
            f"the registry cannot be written ({error})",
            where=str(path),
            advice="Is the disk full? The registry itself is whole.",
        )
    return InputError(f"the registry cannot be used now ({error})", where=str(path), advice="Try again.")


def _bytes_of(path: Path) -> int:
    """0 of a file that is not there: what closes last takes SQLite's log away at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)

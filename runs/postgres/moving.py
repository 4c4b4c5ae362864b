"""A registry copied whole, between a file and a server: all of it or nothing, and counted on both sides.

While it is moved nobody writes to where it comes from. A backup is a snapshot of one moment, and holds up nobody.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from errors import InputError
from errors import format as fmt
from runs.database import Database
from runs.every_schema import SCHEMAS
from runs.postgres.migrations import LEAVE
from runs.postgres.server import Server
from runs.postgres.sql import lock_key, tables

ROWS = 5_000  # that are on their way at once
# the column that counts by itself
_NUMBERED = "select attname from pg_attribute where attrelid = %s::text::regclass and attidentity <> ''"
_IDENTITY = (
    "select setval(pg_get_serial_sequence(%s, %s), greatest((select coalesce(max({column}), 0) from {table}), 1), "
    "(select count(*) > 0 from {table}))"
)
_TABLES_IN_FILE = "select name from sqlite_master where type = 'table' and name not like 'sqlite%'"
_TABLES_THERE = (
    "select tablename from pg_tables where schemaname = current_schema() and tablename not in "
    "('chipledger_schema', 'chipledger_registry', 'chipledger_store')"
)
Counts = dict[str, int]


class Everything(Database):
    """The tables of all books, in a file."""

    SCHEMA = "".join(SCHEMAS)


def every_table() -> list[str]:
    return [name for schema in SCHEMAS for name in tables(schema)]


def to_server(source: Path, target: Server) -> Counts:
    """Copy a registry from a file to a server that holds none. Returns the rows of each table. Raises InputError where
    anything is there already, or does not arrive."""
    with Everything(source).opened() as db:
        db.execute("begin immediate")  # nobody writes meanwhile
        _is_known(db, _TABLES_IN_FILE, str(source))
        with target.raw() as out:
            _lock(out)
            _is_empty(out, target.name)
            for table in every_table():
                _load(out, table, db)
            counted = _counted(db)
            _same(counted, _counted(out), target.name)
        db.execute("rollback")
    return counted


def to_file(source: Server, target: Path, *, alone: bool = False) -> Counts:
    """Copy a registry from a server to a file that is not there. `alone`: nobody writes to it meanwhile, nor after it;
    else it is as it stood at one moment. Returns the rows of each table."""
    with source.raw() as db:
        if alone:
            db.execute("set transaction isolation level read committed")  # what was written before the lock is seen
            _lock(db)
            _is_known(db, _TABLES_THERE, source.name)
        else:
            db.execute("set transaction isolation level repeatable read, read only")
        try:
            counted = _write(db, target)
            if alone:
                db.execute(LEAVE)
            return counted
        except BaseException:
            for ending in ("", "-wal", "-shm"):
                target.with_name(target.name + ending).unlink(missing_ok=True)
            raise


def _write(db: Any, target: Path) -> Counts:
    with Everything(target).opened() as out:
        for table in (name for name in every_table() if name != "changes"):
            if table == "touched":  # what the triggers of the file noted while it was filled
                out.execute("delete from touched")
            names = _columns(out, table)
            marks = ", ".join("?" * len(names))
            put = f"insert into {table} ({', '.join(names)}) values ({marks})"
            for rows in _rows(db, table, names):
                out.executemany(put, rows)
        _set_count(db, out)
        counted = _counted(db)
        _same(counted, _counted(out), str(target))
    with contextlib.closing(sqlite3.connect(target)) as out:
        out.execute("pragma journal_mode = delete")  # all of it in one file
    return counted


def _set_count(db: Any, out: Any) -> None:
    """What the triggers of the file counted while it was filled is not what had been counted."""
    told = db.execute("select count from changes").fetchone()
    out.execute("delete from changes")
    if told is not None:
        out.execute("insert into changes values (1, ?)", (told[0],))


def _lock(db: Any) -> None:
    for key in sorted({lock_key(schema) for schema in SCHEMAS}):
        db.execute(f"select pg_advisory_xact_lock(hashtext(current_schema()), {key})")


def _is_known(db: Any, listed: str, name: str) -> None:
    """Raises InputError where a table holds rows that would be left behind: a newer version made it."""
    others = sorted({table for (table,) in db.execute(listed).fetchall()} - {*every_table()})
    others = [t for t in others if db.execute(f'select count(*) from "{t}"').fetchone()[0]]
    if others:
        raise InputError(
            f"there are tables that this version does not know ({', '.join(others[:5])}); nothing was copied",
            where=name,
            advice="Move it with the version that made them.",
        )


def _is_empty(db: Any, name: str) -> None:
    there = {table: count for table, count in _counted(db).items() if count}
    if there:
        rows = sum(there.values())
        raise InputError(
            f"a registry with {fmt.count(rows, 'row')} is there already; nothing was copied",
            where=name,
            expected="a database, or a schema of one, that holds none",
            advice="`createdb NAME` makes one.",
        )


def _load(out: Any, table: str, db: sqlite3.Connection) -> None:
    names = _columns(db, table)
    told = ", ".join(names)
    triggers = f"alter table {table} disable trigger user", f"alter table {table} enable trigger user"
    out.execute(triggers[0])  # they count changes, one by one
    with out.cursor().copy(f"copy {table} ({told}) from stdin") as copy:
        for row in db.execute(f"select {told} from {table}"):
            copy.write_row(row)
    out.execute(triggers[1])
    for (column,) in out.execute(_NUMBERED, (table,)).fetchall():
        out.execute(_IDENTITY.format(column=column, table=table), (table, column))


def _rows(db: Any, table: str, names: list[str]) -> Iterator[list[tuple[Any, ...]]]:
    """In pieces: the server hands them out as they are taken."""
    with db.cursor(name="rows") as cursor:
        cursor.execute(f"select {', '.join(names)} from {table}")
        while rows := cursor.fetchmany(ROWS):
            yield rows


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [column[0] for column in db.execute(f"select * from {table} limit 0").description]


def _counted(db: Any) -> Counts:
    return {table: db.execute(f"select count(*) from {table}").fetchone()[0] for table in every_table()}


def _same(came: Counts, arrived: Counts, name: str) -> None:
    """Raises InputError where not every row arrived."""
    lacking = [f"{table}: {came[table]:,} and {arrived[table]:,}" for table in came if came[table] != arrived[table]]
    if lacking:
        raise InputError(f"not every row arrived ({'; '.join(lacking[:5])}); nothing was kept", where=name)

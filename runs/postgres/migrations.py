"""The tables of a registry on PostgreSQL: made and changed once, however many replicas start at the same moment.

As in SQLite, tables that lack are made whenever a version that has them opens the registry: the registry gains tables,
and an older version leaves alone what it does not know. What changes tables that are there is a line of CHANGES, made
in their order, each once; a registry to which a newer version made one is refused by an older.

    chipledger_schema     a row for each set of tables that was made: the version of CHANGES then, and a hash of the set
    chipledger_registry   one row: a number that tells this registry from another, below 0 once it was moved back
    chipledger_store      one row: which store it belongs to, and where that lay when it was told
"""

import hashlib
import secrets
import time
from functools import cache
from typing import Any

from runs.postgres import refusals
from runs.postgres.sql import made_of

CHANGES: tuple[tuple[str, ...], ...] = ()
"""The statements of version 2, of version 3, and so on: what `create table if not exists` does not do."""
_OWN = (
    "create table if not exists chipledger_schema (made text primary key, version bigint not null, "
    "made_ns bigint not null)",
    "create table if not exists chipledger_registry (one bigint primary key check (one = 1), which bigint not null)",
    "create table if not exists chipledger_store (one bigint primary key check (one = 1), store text not null, "
    "place text not null)",
)
_LOCK = "select pg_advisory_xact_lock(hashtext(current_schema()), 0)"
_THERE = "select to_regclass(quote_ident(current_schema()) || '.chipledger_schema') is not null"
_STATE = (
    "select coalesce(max(version), 0), coalesce(bool_or(made = %s), false), "
    "coalesce((select which < 0 from chipledger_registry), false) from chipledger_schema"
)
IS_LEFT = "select which < 0 from chipledger_registry"
LEAVE = "update chipledger_registry set which = -abs(which)"


def version() -> int:
    return 1 + len(CHANGES)


@cache
def _made() -> tuple[str, tuple[str, ...]]:
    """(a hash of all tables as this version makes them, the statements that do)."""
    from runs.every_schema import SCHEMAS  # late: the books import what opens this

    statements = (*_OWN, *(text for schema in SCHEMAS for text in made_of(schema)))
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()[:16], statements


def prepare(db: Any, name: str) -> None:
    """Make the tables that lack, and the changes that were not made yet. Raises InputError where a newer version made
    the registry, and where it was moved back; what the library raises is the caller's to tell."""
    if db.execute(_THERE).fetchone()[0] and _is_ready(db, name):
        return
    with db.transaction():
        db.execute(_LOCK)
        if db.execute(_THERE).fetchone()[0] and _is_ready(db, name):  # another did it meanwhile
            return
        _make(db)


def _is_ready(db: Any, name: str) -> bool:
    there, made, is_left = db.execute(_STATE, (_made()[0],)).fetchone()
    if is_left:
        raise refusals.left(name)
    if there > version():
        raise refusals.newer(there, version(), name)
    return bool(made) and there == version()


def _make(db: Any) -> None:
    db.execute(_OWN[0])
    there = db.execute("select coalesce(max(version), 0) from chipledger_schema").fetchone()[0]
    digest, statements = _made()
    changes = CHANGES[there - 1 :] if there else ()  # a new one is made as it is to be
    for text in (*(text for change in changes for text in change), *statements):
        db.execute(text)
    which = "insert into chipledger_registry values (1, %s) on conflict do nothing"
    db.execute(which, (secrets.randbits(62),))
    row = (digest, version(), time.time_ns())
    kept = (
        "insert into chipledger_schema values (%s, %s, %s) on conflict (made) do update set version = excluded.version"
    )
    db.execute(kept, row)

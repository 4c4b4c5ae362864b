"""Which store a registry on PostgreSQL belongs to: one, under whatever addresses its servers have it and the store.

Two stores in one registry would show each other's tags, jobs and groups, and sweep what they do not know.
"""

from collections.abc import Callable

from errors import InputError
from runs.database import put
from runs.postgres.server import Server

_KEPT = put("chipledger_store", "one", "store, place")


def belong(at: Server, which: Callable[[bool], str], place: str) -> None:
    """Have a registry that belongs to no store belong to this one. `which(first)` says which store it is, empty where
    that was never told; where it may be the `first` to be told, while nobody else is. Raises InputError where the
    registry belongs to another."""
    with at.connect("") as db:
        told = "select store, place from chipledger_store"
        row = db.execute(told).fetchone()
        if row is None:
            db.execute("begin immediate")  # of several that come first at once one tells it
            row = db.execute(told).fetchone()
        store = which(row is None)
        if row is None and store:
            db.execute(_KEPT, (1, store, place))
    if row is not None and row[0] != store:
        raise InputError(
            f"this registry belongs to another store, the one at {row[1]}",
            where=at.name,
            expected="a database, or a schema of one, for each store",
            advice="`createdb NAME` makes one. Where this store took the place of that one, `chipledger registry take` "
            "has the registry belong to it.",
        )


def take(at: Server, store: str, place: str) -> None:
    """Have it belong to this store, whichever it belonged to."""
    with at.connect("") as db:
        db.execute("begin immediate")
        db.execute(_KEPT, (1, store, place))

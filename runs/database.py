"""A small SQLite file beside the store: opened anew for each call, safe for several processes."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from errors import InputError


class Database:
    """Opens (and makes) the database. WAL, one short transaction per call. `SCHEMA` is what a subclass keeps there."""

    SCHEMA = ""

    def __init__(self, path: Path):
        self.path = path
        with self._connect() as db:
            db.execute("pragma journal_mode=wal")
            db.executescript(self.SCHEMA)

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=10)
        except sqlite3.Error as e:
            raise InputError(f"cannot open the registry ({e})", where=str(self.path)) from e
        try:
            with db:
                yield db
        except sqlite3.DatabaseError as e:
            raise InputError(
                f"the registry cannot be used ({e})", where=str(self.path),
                advice="Move the file away: runs are kept apart from it, only tags, notes, prices and alerts are lost.",
            ) from e  # fmt: skip
        finally:
            db.close()

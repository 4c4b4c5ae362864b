"""The registry: what may change about a run (notes, tags, price, where its inputs lie), in SQLite beside the store.

Runs themselves are never changed; the registry can be lost and only these additions go with it.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from errors import InputError
from errors.numbers import USD
from runs.database import Database

_SCHEMA = """
create table if not exists tags (run_id text not null, key text not null, value text not null,
    primary key (run_id, key)) without rowid;
create table if not exists notes (id integer primary key, run_id text not null, written_ns integer not null,
    text text not null);
create table if not exists prices (run_id text primary key, usd_per_chip_hour real not null,
    written_ns integer not null) without rowid;
create table if not exists stands (run_id text primary key, stands_for text not null) without rowid;
create table if not exists files (sha256 text primary key, path text not null, bytes integer not null) without rowid;
create index if not exists notes_by_run on notes (run_id);
"""
MAX_TEXT = 10_000  # characters of a note or a tag value: a remark, not a file


@dataclass(frozen=True)
class Extras:
    """What people added to a run."""

    tags: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    usd_per_chip_hour: float | None = None


class Registry(Database):
    """What people added to runs, and where the files lie that runs were made from."""

    SCHEMA = _SCHEMA

    def extras(self, run_id: str) -> Extras:
        return self.all_extras([run_id])[run_id]

    def all_extras(self, run_ids: list[str]) -> dict[str, Extras]:
        """Additions to these runs, in four queries however many they are."""
        wanted = set(run_ids)
        tags: dict[str, dict[str, str]] = {}
        notes: dict[str, list[str]] = {}
        with self._connect() as db:
            for run_id, key, value in db.execute("select run_id, key, value from tags order by key"):
                tags.setdefault(run_id, {})[key] = value
            for run_id, text in db.execute("select run_id, text from notes order by id"):
                notes.setdefault(run_id, []).append(text)
            prices = dict(db.execute("select run_id, usd_per_chip_hour from prices"))
            stands = dict(db.execute("select run_id, stands_for from stands"))
        owner = {i: stands.get(i, i) for i in wanted}
        return {i: Extras(tags.get(o, {}), notes.get(o, []), prices.get(o)) for i, o in owner.items()}

    def stand_for(self, run_id: str, owner: str) -> None:
        """Let a run share the additions of `owner`: the snapshots of a live run have theirs in common.

        What was added to the run itself before stays hidden while it stands for another.
        """
        with self._connect() as db:
            db.execute("insert or replace into stands values (?, ?)", (run_id, owner))

    def owners(self, run_ids: Iterable[str]) -> dict[str, str]:
        """Whose additions runs have: each its own, or those of the live run that it is a snapshot of."""
        with self._connect() as db:
            stands = dict(db.execute("select run_id, stands_for from stands"))
        return {run_id: stands.get(run_id, run_id) for run_id in run_ids}

    def forget(self, run_id: str) -> None:
        """A run that shared another's additions is gone. The additions stay with their owner."""
        with self._connect() as db:
            db.execute("delete from stands where run_id = ?", (run_id,))

    def tag(self, run_id: str, key: str, value: str | None) -> None:
        """Set a tag; None removes it."""
        key = _short(key.strip(), "tag key")
        if "=" in key:
            raise InputError(f"tag {key[:80]!r} has a = in its name", expected="key=value, with the first = after it")
        with self._connect() as db:
            run_id = _owner(db, run_id)
            if value is None:
                db.execute("delete from tags where run_id = ? and key = ?", (run_id, key))
            else:
                db.execute("insert or replace into tags values (?, ?, ?)", (run_id, key, _short(value, "tag")))

    def note(self, run_id: str, text: str) -> None:
        with self._connect() as db:
            db.execute(
                "insert into notes (run_id, written_ns, text) values (?, ?, ?)",
                (_owner(db, run_id), time.time_ns(), _short(text.strip(), "note")),
            )

    def price(self, run_id: str, usd_per_chip_hour: float | None) -> None:
        """Set the price of a chip-hour in dollars for this run; None removes it."""
        with self._connect() as db:
            run_id = _owner(db, run_id)
            if usd_per_chip_hour is None:
                db.execute("delete from prices where run_id = ?", (run_id,))
                return
            if not USD.low <= usd_per_chip_hour <= USD.high:
                raise InputError(f"{usd_per_chip_hour} is no price of a chip-hour", expected=f"dollars: {USD.expected}")
            db.execute("insert or replace into prices values (?, ?, ?)", (run_id, usd_per_chip_hour, time.time_ns()))

    def remember_files(self, files: Iterable[tuple[str, Path, int]]) -> None:
        """Note where input files lie: (SHA-256 in hex, path, bytes) of each. The newest place of a content counts."""
        with self._connect() as db:
            db.executemany("insert or replace into files values (?, ?, ?)", [(h, str(p), n) for h, p, n in files])

    def files_below(self, folder: Path) -> set[str]:
        """Contents (SHA-256 in hex) of the remembered files that lie below a folder."""
        with self._connect() as db:
            start = f"{folder}/"
            rows = db.execute("select sha256 from files where substr(path, 1, ?) = ?", (len(start), start))
            return {digest for (digest,) in rows}

    def find_file(self, digest: str) -> Path | None:
        """Where a file of this content lies, if it is still there unchanged: its size and its hash are compared."""
        with self._connect() as db:
            row = db.execute("select path, bytes from files where sha256 = ?", (digest,)).fetchone()
        if row is None:
            return None
        path = Path(row[0])
        try:
            same = path.stat().st_size == row[1] and sha256(path) == digest
        except OSError:
            return None
        return path if same else None


def _owner(db: sqlite3.Connection, run_id: str) -> str:
    """Whose additions a run's are: its own, or those of the live run that it is a snapshot of."""
    row = db.execute("select stands_for from stands where run_id = ?", (run_id,)).fetchone()
    return row[0] if row else run_id


def sha256(path: Path) -> str:
    """The hash of a file's content, in hex. Raises OSError where it cannot be read."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _short(text: str, what: str) -> str:
    if not text or len(text) > MAX_TEXT:
        raise InputError(f"a {what} of {len(text)} characters", expected=f"1 to {MAX_TEXT:,}")
    return text

"""Which weekly digests are wanted, and which went out. In the registry."""

import time
from dataclasses import dataclass

from runs.database import Database

_SCHEMA = """
create table if not exists digest_wish (id integer primary key check (id = 1), zone text not null);
create table if not exists digests (week text primary key, claimed_ns integer not null, told_ns integer,
    problem text) without rowid;
"""
CLAIM_NS = 60 * 1_000_000_000  # a message takes ten seconds at most: who claimed it longer ago is gone


@dataclass(frozen=True)
class Sent:
    """`told_ns`: when it went out, None: not yet; `problem`: why the last try failed."""

    week: str
    told_ns: int | None
    problem: str | None


class DigestBook(Database):
    """One message a week, however many processes would send it: it is claimed first. A claim is given back where
    sending failed, and runs out where its process died; that one may have sent it just before."""

    SCHEMA = _SCHEMA

    def zone(self) -> str | None:
        """Whose weeks are told; None: no digest is wanted."""
        with self._connect() as db:
            row = db.execute("select zone from digest_wish").fetchone()
        return row[0] if row else None

    def want(self, zone: str | None) -> None:
        """From now on; None: no longer."""
        with self._connect() as db:
            db.execute("delete from digest_wish")
            if zone is not None:
                db.execute("insert into digest_wish values (1, ?)", (zone,))

    def was_told(self, week: str) -> bool:
        """Whether it went out."""
        with self._connect() as db:
            return bool(db.execute("select 1 from digests where week = ? and told_ns is not null", (week,)).fetchone())

    def claim(self, week: str) -> bool:
        """Whether this process may send that week's: nobody has, or is about to. A claim is for sending alone."""
        now = time.time_ns()
        with self._connect() as db:
            taken = db.execute(
                "insert into digests (week, claimed_ns) values (?, ?) on conflict (week) do update "
                "set claimed_ns = excluded.claimed_ns where digests.told_ns is null and digests.claimed_ns <= ?",
                (week, now, now - CLAIM_NS),
            )
            return taken.rowcount == 1

    def told(self, week: str, problem: str | None = None) -> None:
        """Note that it went out, or why it did not: then it may be claimed again."""
        with self._connect() as db:
            if problem is None:
                done = "update digests set told_ns = ?, problem = null where week = ?"
                db.execute(done, (time.time_ns(), week))
            else:
                db.execute("update digests set claimed_ns = 0, problem = ? where week = ?", (problem, week))

    def last(self) -> Sent | None:
        """The newest week that was tried."""
        with self._connect() as db:
            row = db.execute("select week, told_ns, problem from digests order by week desc limit 1").fetchone()
        return Sent(*row) if row else None

"""The audit log: who did or wanted what, when, about what, from where, and what came of it. In the registry.

It is only added to: SQLite itself refuses to change an entry, or to take one away that is no refusal. Refusals, which
anybody who reaches the server can cause, are bounded: MOST_REFUSED are kept, the oldest go, and of more than
REFUSED_A_MINUTE of unknown people in a minute, or KNOWN_REFUSED_A_MINUTE of one who is known, the last entry says that
there were more. So whoever is not known crowds out nobody who is.
"""

import time
from dataclasses import dataclass
from typing import Any, Literal

from runs.database import Connection, Database

_SCHEMA = """
create table if not exists audit (id integer primary key autoincrement, at_ns integer not null, who text not null,
    how text not null, role text not null, token_id text not null, what text not null, about text not null,
    address text not null, outcome text not null, more text not null);
create index if not exists audit_by_time on audit (at_ns);
create trigger if not exists audit_stays before update on audit begin
    select raise(abort, 'the audit log is only added to'); end;
create trigger if not exists audit_is_kept before delete on audit when old.outcome <> 'refused' begin
    select raise(abort, 'the audit log is only added to'); end;
"""
Outcome = Literal["done", "failed", "refused"]
TEXT = 300  # characters of each part of an entry
MOST_REFUSED = 50_000  # about 15 MB
REFUSED_A_MINUTE, KNOWN_REFUSED_A_MINUTE = 60, 600
MOST_TOLD = 100_000  # entries of one answer, the newest
_MINUTE_NS = 60_000_000_000
_COLUMNS = "at_ns, who, how, role, token_id, what, about, address, outcome, more"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry. `who`: empty where nobody is known; `how` and `role`: as the guard knew them; `what`: in words;
    `about`: a run, a token, an address; `address`: from where; `more`: why it was refused or failed."""

    what: str
    outcome: Outcome
    who: str = ""
    how: str = ""
    role: str = ""
    token_id: str = ""
    about: str = ""
    address: str = ""
    more: str = ""
    at_ns: int = 0

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class AuditBook(Database):
    """Entries. Safe for several processes: each is one transaction."""

    SCHEMA = _SCHEMA

    def note(self, entry: Entry) -> None:
        """Add an entry. Texts are cut to TEXT characters, and what no terminal or file should act on is a `?`."""
        now = entry.at_ns or time.time_ns()
        with self._connect() as db:
            if entry.outcome == "refused":
                db.execute("begin immediate")  # of several who count at once one alone may tell the last
                if not _room(db, now, _plain(entry.who)):
                    return
            texts = (entry.who, entry.how, entry.role, entry.token_id, entry.what, entry.about, entry.address)
            row = (now, *map(_plain, texts), entry.outcome, _plain(entry.more))
            db.execute(f"insert into audit ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def entries(self, since_ns: int = 0, most: int = MOST_TOLD) -> list[Entry]:
        """Those since then, the newest first, at most so many."""
        asked = f"select {_COLUMNS} from audit where at_ns >= ? order by id desc limit ?"
        names = _COLUMNS.split(", ")
        with self._connect() as db:
            return [Entry(**dict(zip(names, row, strict=True))) for row in db.execute(asked, (since_ns, most))]


def _room(db: Connection, now: int, who: str) -> bool:
    """Whether one refusal more of this person, or of all unknown ones, is told in this minute. With a minute's first
    the oldest go, where there are too many; the last says that what follows is not told."""
    most = KNOWN_REFUSED_A_MINUTE if who else REFUSED_A_MINUTE
    asked = "select count(*) from audit where outcome = 'refused' and at_ns >= ? and at_ns < ? and who = ?"
    begin = now - now % _MINUTE_NS  # and its end: a clock that was set back left some that are yet to come
    lately = int(db.execute(asked, (begin, begin + _MINUTE_NS, who)).fetchone()[0])
    if lately == 0:
        last = "select id from audit where outcome = 'refused' order by id desc limit 1 offset ?"
        db.execute(f"delete from audit where outcome = 'refused' and id <= ({last})", (MOST_REFUSED,))
    if lately == most - 1:
        more = f"number {most} in this minute: what else is refused in it is not told"
        row = (now, who, "", "", "", "refuse many requests", "", "", "refused", more)
        db.execute(f"insert into audit ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    return lately < most - 1


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:TEXT])

"""Who is signed in in which browser, until when: by the hash of what their cookie says. In the registry, so that a
restart signs nobody out, and that signing out ends a copy of the cookie too."""

import json
import time
from dataclasses import dataclass

from runs.database import Database

_SCHEMA = """
create table if not exists logins (hash text primary key, name text not null, groups text not null,
    made_ns integer not null, ends_ns integer not null) without rowid;
"""


@dataclass(frozen=True, kw_only=True)
class Login:
    """A person signed in: as their provider calls them, the groups it told, and until when, in ns since the epoch."""

    name: str
    groups: tuple[str, ...]
    ends_ns: int


class LoginBook(Database):
    """Logins. Safe for several processes: each change is one transaction."""

    SCHEMA = _SCHEMA

    def keep(self, digest: str, login: Login) -> None:
        """Keep it; those that ended go."""
        now = time.time_ns()
        with self._connect() as db:
            db.execute("delete from logins where ends_ns <= ?", (now,))
            row = (digest, login.name, json.dumps(login.groups), now, login.ends_ns)
            db.execute("insert into logins values (?, ?, ?, ?, ?)", row)

    def of_hash(self, digest: str) -> Login | None:
        """The login, if it stands still."""
        with self._connect() as db:
            asked = "select name, groups, ends_ns from logins where hash = ? and ends_ns > ?"
            row = db.execute(asked, (digest, time.time_ns())).fetchone()
        return None if row is None else Login(name=row[0], groups=tuple(json.loads(row[1])), ends_ns=row[2])

    def end(self, digest: str) -> None:
        """Sign out."""
        with self._connect() as db:
            db.execute("delete from logins where hash = ?", (digest,))

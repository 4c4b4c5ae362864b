"""Tokens that programs ask with: of each its name, what it may, until when, and its keyed hash. In the registry.

What a token is stands nowhere: only whoever was shown it once has it.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from errors import InputError, QuestionError
from runs.database import Connection, Database
from runs.shelf import clean_name

_SCHEMA = """
create table if not exists tokens (token_id text primary key, hash text not null, name text not null,
    role text not null, groups text not null, made_by text not null, made_ns integer not null, ends_ns integer,
    used_ns integer, revoked_ns integer) without rowid;
create unique index if not exists tokens_by_hash on tokens (hash);
"""
MOST = 10_000  # tokens that are kept, revoked and expired ones among them
MOST_GROUPS = 200
NAME_CHARACTERS = 100
_COLUMNS = "token_id, name, role, groups, made_by, made_ns, ends_ns, used_ns, revoked_ns"


@dataclass(frozen=True, kw_only=True)
class Token:
    """What is known of a token. `role`: a word; `ends_ns`: None: it does not expire; `used_ns`: when last, to about a
    minute; all in ns since the epoch."""

    token_id: str
    name: str
    role: str
    groups: tuple[str, ...] = ()
    made_by: str = ""
    made_ns: int = 0
    ends_ns: int | None = None
    used_ns: int | None = None
    revoked_ns: int | None = None

    def state_at(self, now_ns: int) -> str:
        """`revoked`, `expired` or `valid`."""
        if self.revoked_ns is not None:
            return "revoked"
        return "expired" if self.ends_ns is not None and now_ns >= self.ends_ns else "valid"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "groups": list(self.groups), "state": self.state_at(time.time_ns())}


class TokenBook(Database):
    """Tokens. Safe for several processes: each change is one transaction."""

    SCHEMA = _SCHEMA

    def keep(self, token: Token, digest: str) -> None:
        """Keep it under the hash of what it is. Raises InputError for a name or groups that cannot be, and where there
        are MOST already."""
        name = clean_name(token.name, "name of a token", NAME_CHARACTERS)
        if len(token.groups) > MOST_GROUPS:
            raise InputError(f"{len(token.groups):,} groups of one token", expected=f"at most {MOST_GROUPS}")
        groups = json.dumps([clean_name(group, "group", NAME_CHARACTERS) for group in token.groups])
        row = (token.token_id, digest, name, token.role, groups, token.made_by, token.made_ns, token.ends_ns)
        with self._connect() as db:
            if db.execute("select count(*) from tokens").fetchone()[0] >= MOST:
                raise InputError(f"{MOST:,} tokens are kept already", advice="Revoked ones are kept for the audit log.")
            db.execute("insert into tokens values (?, ?, ?, ?, ?, ?, ?, ?, null, null)", row)

    def of_hash(self, digest: str) -> Token | None:
        """The token of this hash, whatever its state."""
        with self._connect() as db:
            row = db.execute(f"select {_COLUMNS} from tokens where hash = ?", (digest,)).fetchone()
        return None if row is None else _token(row)

    def all(self) -> list[Token]:
        """The newest first."""
        with self._connect() as db:
            return [_token(row) for row in db.execute(f"select {_COLUMNS} from tokens order by made_ns desc, token_id")]

    def used(self, token_id: str, now_ns: int) -> None:
        """Note that it was used."""
        with self._connect() as db:
            db.execute(
                "update tokens set used_ns = ? where token_id = ? and coalesce(used_ns, 0) < ?",
                (now_ns, token_id, now_ns),
            )

    def revoke(self, name: str) -> Token:
        """It is good for nothing any more. `name`: its id, or its name where one valid token alone has it. Raises
        QuestionError where there is none, or several."""
        now = time.time_ns()
        with self._connect() as db:
            found = _named(db, name, now)
            db.execute("update tokens set revoked_ns = coalesce(revoked_ns, ?) where token_id = ?", (now, found))
            row = db.execute(f"select {_COLUMNS} from tokens where token_id = ?", (found,)).fetchone()
        return _token(row)


def _named(db: Connection, name: str, now: int) -> str:
    """The id that is meant: of tokens of one name the one that is valid, where others have expired."""
    asked = "select token_id from tokens where token_id = ? union select token_id from tokens where name = ? and "
    rows = db.execute(f"{asked} revoked_ns is null", (name, name)).fetchall()
    if len(rows) > 1:
        holds = "revoked_ns is null and (ends_ns is null or ends_ns > ?)"
        valid = db.execute(f"{asked} {holds}", (name, name, now)).fetchall()
        rows = valid if len(valid) == 1 else rows
    if not rows:
        raise QuestionError(f"no token {name[:80]!r}", advice="`chipledger tokens list` lists them.")
    if len(rows) > 1:
        ids = ", ".join(sorted(row[0] for row in rows)[:5])
        raise QuestionError(f"{len(rows)} tokens are called {name[:80]!r}", expected=f"an id, such as {ids}")
    return str(rows[0][0])


def _token(row: Sequence[Any]) -> Token:
    token_id, name, role, groups, made_by, made_ns, ends_ns, used_ns, revoked_ns = row
    return Token(
        token_id=token_id,
        name=name,
        role=role,
        groups=tuple(json.loads(groups)),
        made_by=made_by,
        made_ns=made_ns,
        ends_ns=ends_ns,
        used_ns=used_ns,
        revoked_ns=revoked_ns,
    )

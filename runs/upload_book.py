"""Whose uploads are: who began each, and for which groups. In the registry."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

from runs.database import Database, put

_SCHEMA = """
create table if not exists upload_owners (upload_id text primary key, who text not null, groups text not null,
    began_ns integer not null) without rowid;
"""


@dataclass(frozen=True)
class Owner:
    """Who began an upload; `groups`: those that they were in then."""

    who: str
    groups: frozenset[str]
    began_ns: int


class UploadBook(Database):
    """Safe for several processes."""

    SCHEMA = _SCHEMA

    def note(self, upload_id: str, who: str, groups: Iterable[str]) -> None:
        row = (upload_id, who, json.dumps(sorted(groups)), time.time_ns())
        with self._connect() as db:
            db.execute(put("upload_owners", "upload_id", "who, groups, began_ns"), row)

    def owners(self) -> dict[str, Owner]:
        """By upload; one that nobody is known of is not among them."""
        with self._connect() as db:
            rows = db.execute("select upload_id, who, groups, began_ns from upload_owners").fetchall()
        return {upload_id: Owner(who, frozenset(json.loads(groups)), ns) for upload_id, who, groups, ns in rows}

    def forget(self, upload_ids: Iterable[str]) -> None:
        with self._connect() as db:
            db.executemany("delete from upload_owners where upload_id = ?", [(i,) for i in upload_ids])

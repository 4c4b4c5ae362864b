"""What a sealed job that reads files says to the registry: these statements, letter by letter, and no other; and of
those that change anything only what is its own (`Own`): its group, one run that is new, its upload.

Texts of SQL can be written in more ways than anybody can forbid. A test has real ingests say what they need; where a
book's statement changes, its line here does.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from runs.bin import RUN_ID
from runs.database import Connection, put

SHARE = "insert into shared values (?, ?, ?, ?) on conflict do nothing"
SHARE_MARK = "insert into share_mark values (1, ?) on conflict do nothing"
FILE = put("files", "sha256", "path, bytes")
ALERT = (
    "insert into alerts (rule, subject, run_id, name, value, threshold, sentence, opened_ns) "
    "values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing"
)
ALERT_STANDS = (
    "update alerts set run_id = ?, name = ?, value = ?, threshold = ?, sentence = ? "
    "where rule = ? and subject = ? and resolved_ns is null"
)
ALERT_ENDS = (
    "update alerts set resolved_ns = ?, resolved_sentence = ?, run_id = ?, value = ?, threshold = ? "
    "where rule = ? and subject = ? and resolved_ns is null"
)

_READ = (
    # whose additions a run has: `Registry`
    "select stands_for from stands where run_id = ?",
    # who sees a run: `ShareBook`
    "select team from shared where run_id = ?",
    "select distinct team from shared order by team",
    "select mark from share_mark",
    # what is watched for: `AlertBook`
    "select rule, threshold from alert_rules order by rule",
    "select 1 from alert_rules where rule = ?",
    "select until_ns, stored_ns from alert_moments where rule = ? and subject = ?",
    "select 1 from alerts where rule = ? and subject = ? and resolved_ns is null",
)
_CHANGED = (
    *(FILE, SHARE, SHARE_MARK),
    put("alert_moments", "rule, subject", "until_ns, stored_ns"),
    *(ALERT, ALERT_STANDS, ALERT_ENDS),
)
_OF_A_RUN = {ALERT: 2, ALERT_STANDS: 0, ALERT_ENDS: 2}  # where the run stands among the values
_OF_AN_ALERT = {ALERT_STANDS: (5, 7), ALERT_ENDS: (5, 7)}  # where its rule and subject do
_OPEN = "select run_id from alerts where rule = ? and subject = ? and resolved_ns is null"
_MARK = re.compile(r"[0-9a-f]{32}")


@cache
def statements() -> frozenset[str]:
    from runs import registry as of  # late: it imports what opens a registry

    told = (of.TAGS, of.NOTES, of.PRICES, of.STANDS, of.NAMES, of.DECLARED)  # of one run: it looks at no other
    return frozenset((*_READ, *(of.of_one(asked) for asked in told), of.of_one(of.EARLIER, "and"), *_CHANGED))


@cache
def keys() -> frozenset[int]:
    """The locks of the books that say them."""
    from runs.alert_book import AlertBook
    from runs.postgres.sql import lock_key

    return frozenset((_registry_key(), lock_key(AlertBook.SCHEMA)))


def is_under(sql: str, key: int) -> bool:
    """Whether a statement is one of who has this lock: what is changed of runs is changed by one at a time."""
    return sql not in _CHANGED or (sql in (FILE, SHARE, SHARE_MARK)) == (key == _registry_key())


def _registry_key() -> int:
    from runs.postgres.sql import lock_key
    from runs.registry_schema import REGISTRY_SCHEMA

    return lock_key(REGISTRY_SCHEMA)


@dataclass
class Own:
    """What is one job's own. `group`: for whom its run is; empty: for all; None: nobody said. `inputs`: the folder that
    it reads; `is_stored`: whether a run is there, whoever sees it; `run_id`: of the run that it makes, once it said."""

    inputs: Path
    is_stored: Callable[[str], bool]
    group: str | None = None
    who: str = ""
    run_id: str = field(default="", init=False)

    def may(self, sql: str, values: Sequence[Any], db: Connection) -> bool:
        """Whether a statement says of its own alone."""
        if sql == SHARE:
            return self._shares(*values, db=db)
        if sql == SHARE_MARK:
            return all(isinstance(v, str) and _MARK.fullmatch(v) for v in values)
        if sql == FILE:
            return self._is_input(str(values[1]))
        if sql in _OF_AN_ALERT:
            first, last = _OF_AN_ALERT[sql]
            there = db.execute(_OPEN, values[first:last]).fetchall()
            if not all(self._is_seen(str(run_id), db) for (run_id,) in there):
                return False
        return sql not in _OF_A_RUN or self._is_seen(str(values[_OF_A_RUN[sql]]), db)

    def _shares(self, run_id: Any, group: Any, who: Any, _: Any, *, db: Connection) -> bool:
        """A run is hidden before it is there; who sees one that is there, or that others made, no job says."""
        if not self.group or group != self.group or who not in ("", self.who) or not isinstance(run_id, str):
            return False
        if not RUN_ID.fullmatch(run_id) or self.run_id not in ("", run_id) or self.is_stored(run_id):
            return False
        db.execute("begin immediate")  # nobody shares it between the look and the word
        if not _groups(db, run_id) <= {self.group}:
            return False
        self.run_id = run_id
        return True

    def _is_input(self, path: str) -> bool:
        return ".." not in Path(path).parts and Path(path).is_relative_to(self.inputs)

    def _is_seen(self, run_id: str, db: Connection) -> bool:
        """Whether all for whom it works see a run."""
        groups = _groups(db, run_id)
        return self.group is None or not groups or self.group in groups


def _groups(db: Connection, run_id: str) -> set[str]:
    from runs.registry import owner_of  # late: it imports what opens a registry

    rows = db.execute("select team from shared where run_id = ?", (owner_of(db, run_id),))
    return {str(team) for (team,) in rows}

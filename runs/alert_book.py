"""What is kept of alerts: the thresholds people set, where messages go, and which alerts are open. In the registry."""

import time
from dataclasses import dataclass

from runs.database import Database

_SCHEMA = """
create table if not exists alert_rules (rule text primary key, threshold real not null) without rowid;
create table if not exists alert_target (
    id integer primary key check (id = 1), url text not null, shape text not null, base_url text not null);
create table if not exists alerts (
    id integer primary key, rule text not null, subject text not null, run_id text not null, name text not null,
    value real, threshold real, sentence text not null, opened_ns integer not null, told_ns integer,
    resolved_ns integer, resolved_sentence text, resolution_told_ns integer, problem text);
create unique index if not exists open_alerts on alerts (rule, subject) where resolved_ns is null;
"""
HISTORY = 200  # resolved alerts that are listed


@dataclass(frozen=True)
class Target:
    """Where messages go. `shape`: slack or json; `base_url`: of this dashboard, for the links in them."""

    url: str
    shape: str
    base_url: str


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert. `subject`: what it is about, a job rather than a run, so that a live job's next snapshot continues it.

    `told_ns`, `resolution_told_ns`: when the message went out; None: not yet. `problem`: why the last try failed.
    """

    id: int
    rule: str
    subject: str
    run_id: str
    name: str
    value: float | None
    threshold: float | None
    sentence: str
    opened_ns: int
    told_ns: int | None = None
    resolved_ns: int | None = None
    resolved_sentence: str | None = None
    resolution_told_ns: int | None = None
    problem: str | None = None


class AlertBook(Database):
    """Thresholds, target and alerts. Safe for several processes: an alert is opened by whoever comes first."""

    SCHEMA = _SCHEMA

    def thresholds(self) -> dict[str, float]:
        with self._connect() as db:
            return dict(db.execute("select rule, threshold from alert_rules order by rule"))

    def set_threshold(self, rule: str, threshold: float | None) -> None:
        """Watch for this from now on; None: no longer."""
        with self._connect() as db:
            if threshold is None:
                db.execute("delete from alert_rules where rule = ?", (rule,))
            else:
                db.execute("insert or replace into alert_rules values (?, ?)", (rule, threshold))

    def target(self) -> Target | None:
        with self._connect() as db:
            row = db.execute("select url, shape, base_url from alert_target").fetchone()
        return Target(*row) if row else None

    def set_target(self, target: Target | None) -> None:
        with self._connect() as db:
            db.execute("delete from alert_target")
            if target:
                db.execute("insert into alert_target values (1, ?, ?, ?)", (target.url, target.shape, target.base_url))

    def open(
        self, rule: str, subject: str, run_id: str, name: str, value: float | None, threshold: float | None,
        sentence: str,
    ) -> None:  # fmt: skip
        """Open an alert; where one of this rule and subject is open already, it goes on under the newest run."""
        with self._connect() as db:
            db.execute(
                "insert or ignore into alerts (rule, subject, run_id, name, value, threshold, sentence, opened_ns) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (rule, subject, run_id, name, value, threshold, sentence, time.time_ns()),
            )
            db.execute("update alerts set run_id = ? where rule = ? and subject = ? and resolved_ns is null",
                       (run_id, rule, subject))  # fmt: skip

    def resolve(self, rule: str, subject: str, run_id: str, sentence: str) -> None:
        """Close the open alert of this rule and subject, if there is one."""
        with self._connect() as db:
            db.execute(
                "update alerts set resolved_ns = ?, resolved_sentence = ?, run_id = ? "
                "where rule = ? and subject = ? and resolved_ns is null",
                (time.time_ns(), sentence, run_id, rule, subject),
            )

    def is_open(self, rule: str, subject: str) -> bool:
        with self._connect() as db:
            row = db.execute("select 1 from alerts where rule = ? and subject = ? and resolved_ns is null",
                             (rule, subject)).fetchone()  # fmt: skip
        return row is not None

    def alerts(self) -> list[Alert]:
        """Open ones first, then the latest resolved."""
        return self._select(f"1 order by resolved_ns is not null, opened_ns desc limit {HISTORY}")

    def untold(self) -> list[Alert]:
        """Those whose opening, or whose resolution, nobody was told of."""
        return self._select("told_ns is null or (resolved_ns is not null and resolution_told_ns is null) order by id")

    def told(self, alert: Alert, problem: str | None = None) -> None:
        """Note that a message about its present state went out, or why it did not."""
        with self._connect() as db:
            if problem is not None:
                db.execute("update alerts set problem = ? where id = ?", (problem, alert.id))
                return
            column = "resolution_told_ns" if alert.resolved_ns is not None else "told_ns"
            db.execute(f"update alerts set {column} = ?, told_ns = coalesce(told_ns, ?), problem = null where id = ?",
                       (time.time_ns(), time.time_ns(), alert.id))  # fmt: skip

    def _select(self, where: str) -> list[Alert]:
        with self._connect() as db:
            cursor = db.execute(f"select * from alerts where {where}")
            names = [column[0] for column in cursor.description]
            return [Alert(**dict(zip(names, row, strict=True))) for row in cursor]

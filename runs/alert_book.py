"""What is kept of alerts: the thresholds people set, where messages go, and which alerts are open. In the registry."""

import time
from dataclasses import dataclass

from runs.database import Connection, Database, put

_SCHEMA = """
create table if not exists alert_rules (rule text primary key, threshold real not null) without rowid;
create table if not exists alert_target (
    id integer primary key check (id = 1), url text not null, shape text not null, base_url text not null);
create table if not exists alerts (
    id integer primary key, rule text not null, subject text not null, run_id text not null, name text not null,
    value real, threshold real, sentence text not null, opened_ns integer not null, told_ns integer,
    resolved_ns integer, resolved_sentence text, resolution_told_ns integer, problem text);
create unique index if not exists open_alerts on alerts (rule, subject) where resolved_ns is null;
create table if not exists alert_moments (rule text not null, subject text not null, until_ns integer not null,
    stored_ns integer not null, primary key (rule, subject)) without rowid;
create table if not exists alert_claims (alert integer not null, about text not null, claimed_ns integer not null,
    primary key (alert, about)) without rowid;
"""
HISTORY = 200  # resolved alerts that are listed
CLAIM_NS = 60 * 1_000_000_000  # a message takes ten seconds at most: who claimed it longer ago is gone
SWITCHED_OFF = "this is no longer watched for."
Moment = tuple[int, int]  # until when a run tells (ns since 1970; 0: it does not say), and when it was stored


@dataclass(frozen=True)
class Target:
    """Where messages go. `shape`: slack or json; `base_url`: of this dashboard, for the links in them."""

    url: str
    shape: str
    base_url: str


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert. `subject`: what it is about, a job rather than a run, so that a live job's next snapshot continues it.
    `value`, `threshold`: as they were judged last, of one that is over those that closed it.

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


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a rule found of a run. `state`: open, over, or between (an alert stays as it is)."""

    rule: str
    subject: str
    run_id: str
    name: str
    moment: Moment
    state: str
    value: float | None
    threshold: float | None
    sentence: str


class AlertBook(Database):
    """Thresholds, target and alerts. Safe for several processes: each change is one transaction.

    A message goes out once however many processes evaluate: it is claimed before it is sent. A claim is given back
    where sending failed, and runs out where its process died; that process may have sent the message just before, so
    that after a crash, and only then, it may come twice.
    """

    SCHEMA = _SCHEMA

    def thresholds(self) -> dict[str, float]:
        with self._connect() as db:
            return dict(db.execute("select rule, threshold from alert_rules order by rule"))

    def set_threshold(self, rule: str, threshold: float | None) -> None:
        """Watch for this from now on; None: no longer, which closes what is open of it."""
        with self._connect() as db:
            if threshold is None:
                db.execute("delete from alert_rules where rule = ?", (rule,))
                db.execute(
                    "update alerts set resolved_ns = ?, resolved_sentence = ? where rule = ? and resolved_ns is null",
                    (time.time_ns(), SWITCHED_OFF, rule),
                )
            else:
                db.execute(put("alert_rules", "rule", "threshold"), (rule, threshold))

    def target(self) -> Target | None:
        with self._connect() as db:
            row = db.execute("select url, shape, base_url from alert_target").fetchone()
        return Target(*row) if row else None

    def set_target(self, target: Target | None) -> None:
        with self._connect() as db:
            db.execute("delete from alert_target")
            if target:
                db.execute("insert into alert_target values (1, ?, ?, ?)", (target.url, target.shape, target.base_url))

    def judge(self, found: Judged) -> None:
        """Open, continue or close the alert of a rule about a subject.

        One that is open goes on with the figure of the newest run. A run that tells of an earlier time than what was
        judged last, such as an older one or one that was stored before, changes nothing.
        """
        with self._connect() as db:
            db.execute("begin immediate")
            if not self._newest(db, found):
                return
            about = (found.rule, found.subject)
            if found.state == "open":
                figures = (found.run_id, found.name, found.value, found.threshold, found.sentence)
                db.execute(
                    "insert into alerts (rule, subject, run_id, name, value, threshold, sentence, opened_ns) "
                    "values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
                    (*about, *figures, time.time_ns()),
                )
                db.execute(
                    "update alerts set run_id = ?, name = ?, value = ?, threshold = ?, sentence = ? "
                    "where rule = ? and subject = ? and resolved_ns is null",
                    (*figures, *about),
                )
            elif found.state == "over":
                db.execute(
                    "update alerts set resolved_ns = ?, resolved_sentence = ?, run_id = ?, value = ?, threshold = ? "
                    "where rule = ? and subject = ? and resolved_ns is null",
                    (time.time_ns(), found.sentence, found.run_id, found.value, found.threshold, *about),
                )

    @staticmethod
    def _newest(db: Connection, found: Judged) -> bool:
        """Whether a run is the newest that was judged by a rule still in force; it is noted then."""
        about = (found.rule, found.subject)
        watched = db.execute("select 1 from alert_rules where rule = ?", (found.rule,)).fetchone()
        asked = "select until_ns, stored_ns from alert_moments where rule = ? and subject = ?"
        last = db.execute(asked, about).fetchone()
        if watched is None or (last is not None and tuple(last) > found.moment):
            return False
        db.execute(put("alert_moments", "rule, subject", "until_ns, stored_ns"), (*about, *found.moment))
        return True

    def is_open(self, rule: str, subject: str) -> bool:
        with self._connect() as db:
            row = db.execute(
                "select 1 from alerts where rule = ? and subject = ? and resolved_ns is null", (rule, subject)
            ).fetchone()
        return row is not None

    def alerts(self) -> list[Alert]:
        """Open ones first, then the latest resolved."""
        return self._select(f"1 = 1 order by resolved_ns is not null, opened_ns desc limit {HISTORY}")

    def untold(self) -> list[Alert]:
        """Those whose opening, or whose resolution, nobody was told of."""
        return self._select("told_ns is null or (resolved_ns is not null and resolution_told_ns is null) order by id")

    def claim(self, alert: Alert) -> bool:
        """Whether this process may send the message about an alert's present state: no other has, or is about to."""
        now = time.time_ns()
        with self._connect() as db:
            db.execute("begin immediate")
            column, about = _about(alert)
            if db.execute(f"select 1 from alerts where id = ? and {column} is null", (alert.id,)).fetchone() is None:
                return False
            taken = db.execute(
                "insert into alert_claims values (?, ?, ?) on conflict (alert, about) do update "
                "set claimed_ns = excluded.claimed_ns where alert_claims.claimed_ns <= ?",
                (alert.id, about, now, now - CLAIM_NS),
            )
            return taken.rowcount == 1

    def told(self, alert: Alert, problem: str | None = None) -> None:
        """Note that the message that was claimed went out, or why it did not: then it may be claimed again."""
        column, about = _about(alert)
        with self._connect() as db:
            if problem is not None:
                db.execute("update alerts set problem = ? where id = ?", (problem, alert.id))
            else:
                db.execute(f"update alerts set {column} = ?, problem = null where id = ?", (time.time_ns(), alert.id))
            db.execute("delete from alert_claims where alert = ? and about = ?", (alert.id, about))

    def untold_end(self, alert: Alert) -> None:
        """Let an alert that was over before anybody could be told of it rest."""
        now = time.time_ns()
        with self._connect() as db:
            db.execute("update alerts set told_ns = ?, resolution_told_ns = ? where id = ?", (now, now, alert.id))
            db.execute("delete from alert_claims where alert = ?", (alert.id,))

    def _select(self, where: str) -> list[Alert]:
        with self._connect() as db:
            cursor = db.execute(f"select * from alerts where {where}")
            names = [column[0] for column in cursor.description]
            return [Alert(**dict(zip(names, row, strict=True))) for row in cursor]


def _about(alert: Alert) -> tuple[str, str]:
    """Which message is due: the column that says when it went out, and its name."""
    return ("told_ns", "open") if alert.told_ns is None else ("resolution_told_ns", "resolved")

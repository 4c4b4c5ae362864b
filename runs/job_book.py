"""The queue of jobs, in the registry: what was asked of the server and its workers, by whom, and what became of it.

A job is taken by one worker at a time. That a worker is gone is told by a lock that the system lets go of with its
process (`job_locks.py`), never by a clock: clocks of a machine jump, and those of two machines differ.

Turns. Each job gets a turn when it is asked for: `STEP` of its priority after the last of the same person and priority,
and never before what was begun last. Jobs are begun in the order of their turns. So a person's thousandth job waits
behind everybody's first, a small upload goes before bulk, and bulk waits for a bounded number of small ones alone.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errors import QuestionError
from errors import format as fmt
from runs.database import Connection, Database, put

_SCHEMA = """
create table if not exists jobs (
    number integer primary key, job_id text not null unique, what text not null, arguments text not null,
    about text not null, upload_id text not null, who text not null, priority integer not null, turn integer not null,
    state text not null, attempts integer not null default 0, cancelling integer not null default 0,
    worker text not null default '', beat integer not null default 0, child text not null default '',
    progress real, doing text not null default '', error text not null default '', result text not null default '',
    changes integer not null default 0, asked_ns integer not null, ended_ns integer);
create index if not exists jobs_by_state on jobs (state);
create index if not exists jobs_by_upload on jobs (upload_id);
create table if not exists job_files (job_id text not null, name text not null, number integer not null,
    told text not null, primary key (job_id, name)) without rowid;
"""
SMALL, USUAL, BULK = 0, 1, 2
PRIORITIES = ("small", "usual", "bulk")
STEP = {SMALL: 1, USUAL: 4, BULK: 16}
WAITING, RUNNING, DONE, FAILED, CANCELLED, PARKED = "waiting", "running", "done", "failed", "cancelled", "parked"
OPEN = (WAITING, PARKED, RUNNING)
KEPT = 500  # ended jobs that can still be asked for
WITH_FILES = 20  # of these, the newest, whose files can: a list of thousands is not kept forever
_OPEN = "state in ('waiting', 'parked', 'running')"
_FREE = "state in ('waiting', 'parked')"
_ALL = 1 << 62  # more rows than there ever are


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A job as it is asked for. `arguments`: of the command `what`, it included; `about`: what a browser shows of it;
    `priority`: SMALL for what a person waits for, BULK for what nobody does."""

    job_id: str
    what: str
    arguments: Sequence[str]
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    who: str = ""
    priority: int = USUAL


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A job as the book has it. `worker`: who runs it, or ran it last; `beat`: how often that worker said so; `child`:
    its process, as `app/serve/orphans.py` writes it. `attempts`: how often it was begun and not parked."""

    number: int
    job_id: str
    what: str
    arguments: list[str]
    about: dict[str, Any]
    who: str
    priority: int
    state: str
    attempts: int
    cancelling: bool
    worker: str
    beat: int
    child: str
    progress: float | None
    doing: str
    error: str
    result: dict[str, Any]
    changes: int
    asked_ns: int
    ended_ns: int | None

    @property
    def ended(self) -> bool:
        return self.state not in OPEN


@dataclass(frozen=True, kw_only=True)
class Beat:
    """What a worker says of a job that it runs. `files`: those that changed, by name, with the number of the change."""

    job_id: str
    progress: float | None
    doing: str
    child: str = ""
    changes: int = 0
    files: Mapping[str, tuple[int, Any]] = field(default_factory=dict[str, tuple[int, Any]])


class JobBook(Database):
    """Jobs. Safe for several processes: each change is one transaction, and whoever ends or parks a job has to be the
    one who runs it."""

    SCHEMA = _SCHEMA

    def ask(self, wanted: Wanted, most: int) -> None:
        """Put a job into the queue. Raises QuestionError where `most` have not ended yet."""
        with self._connect() as db:
            db.execute("begin immediate")
            _room(db, most)
            turn = _turn(db, wanted.who, wanted.priority)
            upload = str(wanted.about.get("upload_id") or "")
            told = (json.dumps(list(wanted.arguments)), json.dumps(dict(wanted.about)), upload, wanted.who)
            db.execute(
                "insert into jobs (job_id, what, arguments, about, upload_id, who, priority, turn, state, asked_ns) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
                (wanted.job_id, wanted.what, *told, wanted.priority, turn, time.time_ns()),
            )
            _forget(db)

    def claim(
        self,
        worker: str,
        whats: Sequence[str],
        take: Callable[[str], bool],
        has: Callable[[str], bool] = lambda upload_id: True,
    ) -> Entry | None:
        """The next job of one of these kinds, which this worker runs from now on; None where none waits.
        `take(job_id)`: whether its lock could be had; `has(upload_id)`: whether its files are here."""
        if not whats:
            return None
        with self._connect() as db:
            if db.execute(f"select 1 from jobs where {_FREE} limit 1").fetchone() is None:
                return None  # without a lock: it is asked every second
            db.execute("begin immediate")
            marks = ", ".join("?" * len(whats))
            free = f"select job_id, upload_id from jobs where {_FREE} and what in ({marks}) order by turn, number"
            waiting = db.execute(free, list(whats)).fetchall()
            job_id = next((i for i, upload_id in waiting if has(upload_id) and take(i)), None)
            if job_id is None:
                return None
            taken = db.execute(
                "update jobs set state = 'running', worker = ?, beat = 0, child = '', attempts = attempts + 1, "
                "cancelling = 0, progress = null, doing = '', error = '', result = '', ended_ns = null "
                f"where job_id = ? and {_FREE}",
                (worker, job_id),
            )
            if not taken.rowcount:  # another took it, of a version that has another lock
                return None
            db.execute("delete from job_files where job_id = ?", (job_id,))
            return _entry(db, job_id)

    def beat(self, worker: str, beats: Iterable[Beat]) -> tuple[set[str], set[str]]:
        """Say that these jobs are run, and how far they are: (those that somebody wants cancelled; those that are no
        longer this worker's)."""
        cancelling: set[str] = set()
        lost: set[str] = set()
        with self._connect() as db:
            db.execute("begin immediate")
            for one in beats:
                db.execute(
                    "update jobs set beat = beat + 1, progress = ?, doing = ?, child = ?, changes = ? "
                    "where job_id = ? and worker = ? and state = 'running'",
                    (one.progress, one.doing, one.child, one.changes, one.job_id, worker),
                )
                asked = "select cancelling from jobs where job_id = ? and worker = ? and state = 'running'"
                row = db.execute(asked, (one.job_id, worker)).fetchone()
                if row is None:
                    lost.add(one.job_id)
                    continue
                _keep_files(db, one)
                if row[0]:
                    cancelling.add(one.job_id)
        return cancelling, lost

    def end(
        self,
        worker: str,
        told: Beat,
        state: str,
        error: str,
        result: Mapping[str, Any],
        drop: Callable[[str], None] = lambda job_id: None,
    ) -> bool:
        """A job of this worker ended; whether it was this worker's still. `drop(job_id)` lets go of its lock while
        nobody else can change the book."""
        with self._connect() as db:
            done = db.execute(
                "update jobs set state = ?, error = ?, result = ?, progress = ?, doing = ?, changes = ?, ended_ns = ? "
                "where job_id = ? and worker = ? and state = 'running'",
                (
                    *(state, error, json.dumps(dict(result)), told.progress, told.doing, told.changes, time.time_ns()),
                    *(told.job_id, worker),
                ),
            )
            if done.rowcount:
                _keep_files(db, told)
            drop(told.job_id)
            return bool(done.rowcount)

    def park(self, worker: str, job_id: str, drop: Callable[[str], None] = lambda job_id: None) -> None:
        """Put a job of this worker back, to be begun again by whoever works next: it was stopped, it did not fail."""
        with self._connect() as db:
            db.execute(
                "update jobs set state = 'parked', worker = '', child = '', attempts = attempts - 1, progress = null, "
                "doing = '' where job_id = ? and worker = ? and state = 'running'",
                (job_id, worker),
            )
            drop(job_id)

    def running_elsewhere(self, worker: str) -> list[Entry]:
        """Jobs that another worker runs, or ran when it was killed."""
        with self._connect() as db:
            asked = f"select {_COLUMNS} from jobs where state = 'running' and worker != ?"
            return [_read(row) for row in db.execute(asked, (worker,))]

    def running_of(self, worker: str) -> list[Entry]:
        """Jobs that this worker runs, or took without hearing that it did."""
        with self._connect() as db:
            asked = f"select {_COLUMNS} from jobs where state = 'running' and worker = ?"
            return [_read(row) for row in db.execute(asked, (worker,))]

    def give_back(self, entry: Entry, gone: Callable[[str], bool], most: Mapping[str, int], error: str) -> str | None:
        """The job of a worker that is gone waits again, or fails with `error` where it was begun as often as `most`
        allows its kind. `gone(job_id)` is asked once nobody else can change the book. Its state then; None where it was
        changed meanwhile."""
        with self._connect() as db:
            db.execute("begin immediate")
            same = "job_id = ? and state = 'running' and worker = ? and beat = ?"
            asked = f"select attempts, cancelling from jobs where {same}"
            row = db.execute(asked, (entry.job_id, entry.worker, entry.beat)).fetchone()
            if row is None or not gone(entry.job_id):
                return None
            state = CANCELLED if row[1] else FAILED if row[0] >= most.get(entry.what, 1) else WAITING
            db.execute(
                "update jobs set state = ?, error = ?, worker = '', child = '', progress = null, doing = '', "
                "ended_ns = ? where job_id = ?",
                (state, error if state == FAILED else "", None if state == WAITING else time.time_ns(), entry.job_id),
            )
            return state

    def cancel(self, job_id: str) -> Entry:
        """One that waits is cancelled; of one that runs its worker is asked to end it. The job as it is then. Raises
        QuestionError where there is none."""
        with self._connect() as db:
            db.execute("begin immediate")
            db.execute(
                f"update jobs set state = 'cancelled', ended_ns = ? where job_id = ? and {_FREE}",
                (time.time_ns(), job_id),
            )
            db.execute("update jobs set cancelling = 1 where job_id = ? and state = 'running'", (job_id,))
            return _entry(db, job_id)

    def retry(
        self, job_id: str, most: int, again: Callable[[Sequence[str]], Sequence[str]] = lambda words: words
    ) -> Entry:
        """Have a job that failed or was cancelled done again, under its id. `again`: its arguments as they are now.
        Raises QuestionError for any other, and where `most` have not ended yet."""
        with self._connect() as db:
            db.execute("begin immediate")
            entry = _entry(db, job_id)
            if entry.state not in (FAILED, CANCELLED):
                said = "is done" if entry.state == DONE else f"is {entry.state} already"
                raise QuestionError(f"job {job_id[:12]} {said}", expected="one that failed or was cancelled")
            _room(db, most)
            db.execute(
                "update jobs set state = 'waiting', attempts = 0, cancelling = 0, worker = '', progress = null, "
                "doing = '', error = '', result = '', ended_ns = null, turn = ?, arguments = ? where job_id = ?",
                (_turn(db, entry.who, entry.priority), json.dumps(list(again(entry.arguments))), job_id),
            )
            return _entry(db, job_id)

    def get(self, job_id: str) -> Entry:
        """Raises QuestionError where there is no such job."""
        with self._connect() as db:
            return _entry(db, job_id)

    def newest(self, most: int, who: str | None = None) -> list[Entry]:
        """`who`: those that this person began; None: all."""
        with self._connect() as db:
            whose, given = ("", ()) if who is None else ("where who = ?", (who,))
            asked = f"select {_COLUMNS} from jobs {whose} order by number desc limit ?"
            return [_read(row) for row in db.execute(asked, (*given, most))]

    def by_state(self) -> Counter[tuple[str, str]]:
        """How many jobs are kept, by what they do and their state."""
        with self._connect() as db:
            rows = db.execute("select what, state, count(*) from jobs group by what, state")
            return Counter({(what, state): count for what, state, count in rows})

    def files(self, job_id: str, since: int = 0) -> dict[str, tuple[int, Any]]:
        """What was last told of each file that changed after the change `since`, with the number of its change."""
        with self._connect() as db:
            asked = "select name, number, told from job_files where job_id = ? and number > ? order by number"
            rows = db.execute(asked, (job_id, since)).fetchall()
        return {name: (number, json.loads(told)) for name, number, told in rows}

    def reading(self) -> set[str]:
        """Uploads that a job reads, or waits for its turn to read."""
        with self._connect() as db:
            return {u for (u,) in db.execute(f"select distinct upload_id from jobs where {_OPEN} and upload_id != ''")}

    def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        with self._connect() as db:
            return dict(db.execute("select state, count(*) from jobs group by state"))


_NAMES = (
    *("number", "job_id", "what", "arguments", "about", "who", "priority", "state", "attempts", "cancelling", "worker"),
    *("beat", "child", "progress", "doing", "error", "result", "changes", "asked_ns", "ended_ns"),
)
_COLUMNS = ", ".join(_NAMES)


def _entry(db: Connection, job_id: str) -> Entry:
    row = db.execute(f"select {_COLUMNS} from jobs where job_id = ?", (job_id,)).fetchone()
    if row is None:
        raise no_job(job_id)
    return _read(row)


def no_job(job_id: str) -> QuestionError:
    """There is no such job, or none that whoever asks may learn of."""
    return QuestionError(f"no job {job_id[:40]!r}", advice="Uploaded files are kept: have them read again.")


def _read(row: Sequence[Any]) -> Entry:
    told = dict(zip(_NAMES, row, strict=True))
    for name in ("arguments", "about", "result"):
        told[name] = json.loads(told[name] or "{}")
    told["cancelling"] = bool(told["cancelling"])
    return Entry(**told)


def _room(db: Connection, most: int) -> None:
    """Raises QuestionError where no more may wait."""
    (there,) = db.execute(f"select count(*) from jobs where {_OPEN}").fetchone()
    if there >= most:
        raise QuestionError(f"{fmt.count(most, 'job')} run or wait already", advice="Ask again once some have ended.")


def _turn(db: Connection, who: str, priority: int) -> int:
    """The turn of a person's next job of a priority."""
    (now,) = db.execute("select max(turn) from jobs where attempts > 0").fetchone()
    asked = f"select max(turn) from jobs where who = ? and priority = ? and {_FREE}"
    (last,) = db.execute(asked, (who, priority)).fetchone()
    return max(now or 0, last or 0) + STEP[priority]


def _keep_files(db: Connection, told: Beat) -> None:
    rows = [(told.job_id, name, number, json.dumps(file)) for name, (number, file) in told.files.items()]
    db.executemany(put("job_files", "job_id, name", "number, told"), rows)


def _forget(db: Connection) -> None:
    """Ended jobs beyond the newest KEPT, and the files of all but the newest WITH_FILES."""
    ended = f"select job_id from jobs where not {_OPEN} order by number desc limit {_ALL} offset ?"
    db.execute(f"delete from job_files where job_id in ({ended})", (WITH_FILES,))
    db.execute(f"delete from jobs where job_id in ({ended})", (KEPT,))

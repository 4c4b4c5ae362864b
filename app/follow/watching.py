"""Following a job's log into a live run: read what is new, make a snapshot of all of it, move the pointer."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.workspace import Workspace
from collectors.cloud_logging.fetch import Fetcher
from collectors.cloud_logging.query import Wanted, log_path
from collectors.cloud_logging.service import Denied, Door
from collectors.cloud_logging.spool import ENTRIES, Spool
from collectors.ingest import ingest
from collectors.ingesting.gather import Cancelled
from errors import InputError, QuestionError
from runs.live import GRACE_NS, TAG, Live
from runs.run import Run

PROGRESS_S = 10.0  # how often a long read is told of
INGEST_SHARE = 5  # snapshots take no more than one part in so many of the time: a long log is read whole each time
_one_at_a_time = threading.Lock()  # ingests: each is given the machine

Tell = Callable[[Live], None]
OnPoll = Callable[[Workspace, Run, Live], None]


@dataclass(frozen=True)
class Plan:
    """What to follow, and how. `options`: name, chip, chips and model of the run, as far as a person gave them."""

    wanted: Wanted
    door: Door
    since_ns: int
    every_s: float = 30.0
    options: dict[str, Any] = field(default_factory=dict)


class Watcher:
    """One job. Made by the one process that holds the lock of its live run (`LiveRuns.following`).

    `tell` hears of every change of the pointer that a person would want to know of; `on_poll` is given the newest
    snapshot after every poll. Raises InputError where the name is taken by another job, or the spool cannot be used.
    """

    least_pause_s = 0.0  # between two snapshots

    def __init__(self, place: Workspace, name: str, plan: Plan, stop: threading.Event, tell: Tell, on_poll: OnPoll):
        self.place, self.plan, self.stop, self._tell, self._on_poll = place, plan, stop, tell, on_poll
        wanted = plan.wanted
        known = place.store.live.read(name)
        if known and (known.project, known.job) != (wanted.project, wanted.job):
            raise InputError(
                f"live run {name!r} follows job {known.job!r} of project {known.project}",
                advice="Give this one another --name.",
            )
        self.live = known or Live(name, wanted.project, wanted.job)
        options = {**self.live.options, **plan.options}
        self._stale = options != self.live.options
        self.live = replace(
            self.live, options=options, every_s=plan.every_s, state="following", problem="", last_poll_ns=time.time_ns()
        )
        spool = Spool(place.store.live.of(name), wanted.job)
        self.fetcher = Fetcher(plan.door.open(), wanted, spool, self._progress)
        self.fetcher.begin(plan.since_ns)
        self._adopt_strays()
        self._next_snapshot_s = 0.0
        self._next_progress_s = time.monotonic() + PROGRESS_S
        self._reached = False  # whether the service has ever answered this process
        self._told: tuple[str, str] | None = None

    def follow(self, once: bool = False) -> None:
        """Poll until stopped, or once. Raises Denied where not even the first poll is allowed.

        With `once` it raises whatever keeps the job from being read, and QuestionError where there is no entry.
        """
        try:
            while True:
                self.poll(once)
                if once or self.stop.wait(self.plan.every_s):
                    break
        except Cancelled:
            pass
        finally:
            if self.live.state != "finished":
                self._publish(state="stopped")
        if once and self.live.run_id is None:
            wanted = self.plan.wanted
            logs = ", ".join(log_path(wanted.project, n) for n in wanted.log_names or (f"goodput_{wanted.job}",))
            raise QuestionError(
                f"no goodput entry of job {wanted.job!r} in {logs}",
                advice="Is the job's name right (MaxText: run_name)? Its log may have another name (--log-name), or "
                "its entries may be older (--since).",
            )

    def poll(self, at_once: bool = False) -> None:
        """Read what is new, make a snapshot where one is due, and say how things stand."""
        problem, moved, read_ns = "", False, None
        try:
            begun_ns = time.time_ns()
            self.fetcher.poll()
            self._reached, read_ns = True, begun_ns
        except Cancelled:
            raise
        except InputError as e:
            if at_once or (isinstance(e, Denied) and not self._reached):
                self._publish(state="failing", problem=str(e))
                raise
            problem = str(e)
        try:
            moved = self._snapshot(at_once)
        except Cancelled:
            raise
        except InputError as e:
            if at_once:
                raise
            problem = problem or str(e)
        otherwise = "finished" if self.fetcher.ended() else "stopped" if at_once else "following"
        if read_ns is not None and self.fetcher.spool.cursor.bytes == self.live.bytes:
            self.live = replace(self.live, read_ns=read_ns)  # between two snapshots it stays: the run lacks what came
        self._publish(moved, state="failing" if problem else otherwise, problem=problem, **self._read_so_far())
        self._retire()
        if self.live.run_id and (run := self.place.store.get(self.live.run_id)):
            self._on_poll(self.place, run, self.live)

    def _read_so_far(self) -> dict[str, Any]:
        cursor = self.fetcher.spool.cursor
        heard_ns = cursor.active if cursor.heard is None else cursor.heard
        return {
            "last_poll_ns": time.time_ns(),
            "entries": cursor.entries,
            "last_entry_ns": cursor.newest,
            "active_ns": heard_ns,
            "counts": dict(cursor.counts),
        }

    def _progress(self) -> None:
        """A read takes long: say how far it is."""
        if time.monotonic() >= self._next_progress_s:
            self._next_progress_s = time.monotonic() + PROGRESS_S
            self._publish(True, **self._read_so_far())

    def _snapshot(self, at_once: bool) -> bool:
        """A new run of all entries, where there are some that the newest snapshot lacks; whether it was made."""
        cursor, spool = self.fetcher.spool.cursor, self.fetcher.spool
        there = self.live.run_id is not None and self.place.store.get(self.live.run_id) is not None
        if there and cursor.bytes == self.live.bytes and not self._stale:
            return False
        if not self._anything():
            return False
        if not at_once and time.monotonic() < self._next_snapshot_s:
            return False
        begun = time.monotonic()
        with _one_at_a_time:
            done = ingest(
                *([spool.path], self.place.store),
                tags={TAG: self.live.name},
                before=lambda run_id: self.place.registry.stand_for(run_id, self.live.address),  # seen by whom that is
                **{**self._ingesting(), **self.live.options},
            )
        took_s = time.monotonic() - begun
        self._next_snapshot_s = time.monotonic() + max((INGEST_SHARE - 1) * took_s, self.least_pause_s)
        if (made := self.place.store.get(done.run_id)) and self._ours(made):
            self.place.registry.stand_for(done.run_id, self.live.address)
        holding = replace(self.live, bytes=cursor.bytes)
        self.live = self.place.store.live.move(holding, done.run_id, time.time_ns())
        self._stale = False
        return True

    def _anything(self) -> bool:
        """Whether what was read so far makes a run: one goodput entry at least."""
        return self.fetcher.spool.cursor.active is not None or self.fetcher.spool.cursor.ended is not None

    def _ingesting(self) -> dict[str, Any]:
        """What a snapshot is told beside its entries; options of the person override it."""
        return {"kind": "training", "name": self.plan.wanted.job, "cancel": self.stop.is_set}

    def _publish(self, news: bool = False, **changes: Any) -> None:
        """Write the pointer. That it cannot be written is told, and is no reason to end: the next poll tries again."""
        self.live = replace(self.live, **changes)
        with contextlib.suppress(InputError):
            self.place.store.live.write(self.live)
        if news or self._told != (self.live.state, self.live.problem):
            self._told = (self.live.state, self.live.problem)
            self._tell(self.live)

    def _adopt_strays(self) -> None:
        """Let snapshots retire to which the pointer never came to lead: their process was killed in between."""
        led = {self.live.run_id, *(i for i, _ in self.live.retiring)}
        strays = [r.run_id for r in self.place.store.runs() if r.run_id not in led and self._ours(r)]
        now_ns = time.time_ns()
        self.live = replace(self.live, retiring=[*self.live.retiring, *((i, now_ns) for i in strays)])
        self.place.store.live.write(self.live)

    def _retire(self) -> None:
        """Remove superseded snapshots that nobody reads any more: all their entries are in the newest."""
        now_ns, kept = time.time_ns(), []
        for run_id, since_ns in self.live.retiring:
            run = self.place.store.get(run_id)
            if run is None or not self._ours(run):
                continue
            if now_ns - since_ns < GRACE_NS:
                kept.append((run_id, since_ns))
                continue
            self.place.store.remove(run_id)
            self.place.registry.forget(run_id)
        if kept != self.live.retiring:
            self._publish(retiring=kept)

    def _ours(self, run: Run) -> bool:
        """Whether a run is a snapshot that the watch of this live run made."""
        manifest = run.manifest
        return manifest.tags.get(TAG) == self.live.name and [s["name"] for s in manifest.sources] == [ENTRIES]

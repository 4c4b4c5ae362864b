"""Live runs: a name that leads to the newest snapshot of a job that is being followed.

A run never changes, so what grows is a row of runs, one after another, each made from all entries until then. The name
stays, its pages follow it.

    <store>/live/<name>/live.json       the pointer, replaced whole
    <store>/live/<name>/snapshots.txt   ids of all snapshots there were, one a line: old addresses lead on
    <store>/live/<name>/watch.lock      held by the process that follows the job
    <store>/live/<name>/...             what that process keeps beside (entries and how far they were read)

Of a store in a bucket each machine has such a folder. Pointer and ids then stand in the registry that they have in
common (`LiveBook`); the pointer in the folder says how far this machine is.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Container, Generator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from errors import InputError
from runs.durable import PRIVATE, append_line, write_whole, writing
from runs.live_book import LiveBook
from runs.scratch import unlock

POINTER, SNAPSHOTS, LOCK = "live.json", "snapshots.txt", "watch.lock"
PREFIX = "live:"
TAG = "snapshot_of_live"  # marks a run as a snapshot of the live run of this name: no other is ever removed
STATES = ("following", "finished", "stopped", "failing")
GRACE_NS = 10 * 60 * 1_000_000_000  # a page that still shows a superseded snapshot can finish reading it
Alone = Callable[[str], contextlib.AbstractContextManager[None]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MISSED_POLLS, _SLACK_S = 3, 120.0


@dataclass(frozen=True)
class Live:
    """Where a live run stands.

    `state`: following; finished (the job said that it ended); failing (`problem` says why, it is tried again); stopped.
    `run_id`: the newest snapshot, None before the first entry. `moved_ns`: when it became that. `bytes`: of entries in
    it. `read_ns`: when the last read began of which the newest snapshot holds all: until then it is known how the job
    did, whatever the clock says. `active_ns`: when the log last received an entry of the job itself, of those read.
    `counts`: entries that were late, repeated, from the future, or odd. `retiring`: superseded snapshots still on disk,
    and since when. `options`: name, chip, chips and model as declared.
    """

    name: str
    project: str
    job: str
    state: str = "following"
    run_id: str | None = None
    moved_ns: int | None = None
    bytes: int = 0
    entries: int = 0
    last_entry_ns: int | None = None
    last_poll_ns: int | None = None
    read_ns: int | None = None
    active_ns: int | None = None
    every_s: float = 30.0
    problem: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    retiring: list[tuple[str, int]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """What leads to it wherever a run is asked for."""
        return PREFIX + self.name

    def state_at(self, now_ns: int) -> str:
        """The state, seen from outside: a process that was killed could not say that it stopped."""
        silent_s = (now_ns - (self.last_poll_ns or 0)) / 1e9
        gone = silent_s > _MISSED_POLLS * self.every_s + _SLACK_S
        return "stopped" if gone and self.state in ("following", "failing") else self.state

    def to_dict(self) -> dict[str, Any]:
        """What the API and `--json` say of it."""
        return {
            "name": self.name,
            "project": self.project,
            "job": self.job,
            "state": self.state_at(time.time_ns()),
            "run_id": self.run_id,
            "updated_ns": self.moved_ns,
            "entries": self.entries,
            "last_entry_ns": self.last_entry_ns,
            "last_poll_ns": self.last_poll_ns,
            "problem": self.problem or None,
            "counts": self.counts,
        }


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of the type that its field is declared as: a pointer that was damaged may hold any."""
    if isinstance(kind, UnionType):
        return any(_fits(value, k) for k in get_args(kind))
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, get_origin(kind) or kind)


def live_name(text: str) -> str:
    """A name that fits a folder and an address. What had to be changed gets a hash, so that two never become one."""
    if _NAME.fullmatch(text):
        return text
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80]
    return f"{kept}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}".lstrip("-")


class LiveRuns:
    """The live runs of a store, below `folder`. `hidden`: addresses of those that do not exist for whoever asks."""

    def __init__(self, folder: Path, hidden: Callable[[], Container[str]] = frozenset[str]):
        self.folder, self._hidden = folder, hidden
        self._book: LiveBook | None = None
        self._alone: Alone = lambda name: contextlib.nullcontext()

    def shared_by(self, book: LiveBook, alone: "Alone") -> None:
        """From now on what stands in `book` counts. `alone(name)`: held by the one who follows it, on any machine."""
        self._book, self._alone = book, alone

    def of(self, name: str) -> Path:
        """The folder of a live run, there or not. Raises InputError for a name that cannot be one."""
        if not _NAME.fullmatch(name):
            raise InputError(f"{name[:80]!r} cannot be the name of a live run", expected="letters, digits, . _ and -")
        return self.folder / name

    def read(self, name: str) -> Live | None:
        """The pointer; None where there is none that can be read."""
        found = self._read(name, self._book.pointer(name) if self._book else None)
        return None if PREFIX + name in self._hidden() else found

    def _read(self, name: str, shared: str | None = None) -> Live | None:
        """As it is `shared`, else as it stands here."""
        try:
            told = json.loads(shared or (self.of(name) / POINTER).read_text())
            told["retiring"] = [(str(i), int(since)) for i, since in told.get("retiring", [])]
            known = {k: v for k, v in told.items() if k in Live.__dataclass_fields__}
            fit = all(_fits(value, Live.__dataclass_fields__[field].type) for field, value in known.items())
            return Live(**known) if fit and told["name"] == name else None
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError, InputError):
            return None

    def all(self) -> list[Live]:
        """All that can be read, by name."""
        shared, names = self._book.pointers() if self._book else {}, set[str]()
        with contextlib.suppress(OSError):  # nothing was ever followed here
            names = {p.name for p in self.folder.iterdir() if _NAME.fullmatch(p.name)}
        names |= shared.keys()
        hidden = self._hidden() if names else ()
        shown = sorted(name for name in names if PREFIX + name not in hidden)
        return [live for name in shown if (live := self._read(name, shared.get(name))) is not None]

    def write(self, live: Live) -> None:
        """Replace the pointer. Raises InputError where it cannot be written."""
        folder, text = self.of(live.name), json.dumps(asdict(live), indent=1)
        with writing(folder):
            self._make(folder)
            write_whole(folder / POINTER, text)
        if self._book:
            self._book.keep(live.name, text)

    def _make(self, folder: Path) -> None:
        self.folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE, exist_ok=True)

    def move(self, live: Live, run_id: str, now_ns: int) -> Live:
        """Let the pointer lead to a new snapshot; the one before retires. Returns the pointer as it is then."""
        if run_id == live.run_id:
            return live
        folder = self.of(live.name)
        with writing(folder):
            self._make(folder)
            append_line(folder / SNAPSHOTS, run_id)
        if self._book:
            self._book.led(live.name, run_id)
        # an older snapshot may come back: then it must not be removed
        before = [(i, since) for i, since in live.retiring if i != run_id]
        retiring = before + ([(live.run_id, now_ns)] if live.run_id else [])
        moved = replace(live, run_id=run_id, moved_ns=now_ns, retiring=retiring)
        self.write(moved)
        return moved

    def leading(self, run_id: str) -> Live | None:
        """The live run that this is a snapshot of, be it the newest, one that retires, or one that is gone."""
        known = self.all()
        for live in known:
            if run_id == live.run_id or any(run_id == old for old, _ in live.retiring):
                return live
        return next((live for live in known if run_id in self._snapshots(live.name)), None)

    def current(self, run_id: str) -> Live | None:
        """The live run whose newest or retiring snapshot this is: without looking through all there ever were."""
        return next((v for v in self.all() if run_id == v.run_id or any(run_id == i for i, _ in v.retiring)), None)

    def retiring(self) -> set[str]:
        """Superseded snapshots that are still on disk."""
        return {run_id for live in self.all() for run_id, _ in live.retiring}

    def _snapshots(self, name: str) -> set[str]:
        found = self._book.snapshots(name) if self._book else set[str]()
        with contextlib.suppress(OSError):
            found |= set((self.of(name) / SNAPSHOTS).read_text().split())
        return found

    def _is_here(self, name: str) -> None:
        """Raises InputError where another machine read more of it: a snapshot of what is here would take the place of
        one that holds all of that."""
        shared = self._read(name, self._book.pointer(name)) if self._book else None
        here = self._read(name)
        if shared and shared.run_id and (here is None or here.bytes < shared.bytes):
            raise InputError(
                f"what was read of live run {name!r} so far lies on another machine",
                advice="Follow it there, where it was followed before, or under another --name here.",
            )

    @contextlib.contextmanager
    def following(self, name: str) -> Generator[Path]:
        """The folder, for the one process that follows the job. A lock ends with its process, however that ends.

        Raises InputError where another process follows it, or one of another machine did.
        """
        folder = self.of(name)
        with contextlib.ExitStack() as stack:
            with writing(folder):
                self._make(folder)
                f = stack.enter_context((folder / LOCK).open("a+"))
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                f.seek(0)
                pid = f.read().strip() or "unknown"
                raise InputError(
                    f"live run {name!r} is being followed already, by process {pid} of this machine or one that shares "
                    "the store",
                    advice="One is enough: its pages show what it reads. Stop it first to change how.",
                ) from e
            f.truncate(0)
            stack.callback(unlock, f)
            f.write(str(os.getpid()))
            f.flush()
            stack.enter_context(self._alone(name))
            self._is_here(name)
            yield folder

"""One job of the server, as pages and the API see it."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any, Self

from app.identity.asking import who
from runs.job_book import CANCELLED, OPEN, PARKED, PRIORITIES, USUAL, WAITING, Beat, Entry

LIES_AT = "lies_at"  # which machine alone has the upload, among what a job was begun with
WAITS_FOR = "Waiting for a server or worker on {}, where its files are"
STORED = "stored"  # what a job is doing whose run is there
MOST_TEXT, MOST_NAME = 2000, 1000  # characters of what a job says; of a file's name, and bytes of what it is known by


def plain(text: object, most: int = MOST_TEXT) -> str:
    """A text that any registry can keep: what strangers made may hold anything."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in str(text)[:most])


def _key(name: str) -> str:
    """What a file is known by: its name, or as much of it as an index can hold, with a hash of all."""
    found = plain(name, MOST_NAME)
    if found == name and len(found.encode()) <= MOST_NAME:
        return found
    kept = found.encode()[:MOST_NAME].decode("utf-8", "ignore")
    return f"{kept} {hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"


def _part(told: object) -> float | None:
    """0 to 1; None for what is no such number."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= 1:
        return None
    return float(told)


@dataclass
class Job:
    """`what`: its command; `about`: what it was begun with, as the browser shows it; `state`: waiting, running, done,
    failed, cancelled, or parked: it was stopped with its server, and goes on with the next. `progress`: 0 to 1, None
    while unknown. `wish`: what is to become of one that runs here: cancelled or parked.

    `files`: what was last told of each file, by name, with the number of that change.
    """

    job_id: str
    what: str = "ingest"
    state: str = WAITING
    progress: float | None = None
    doing: str = ""
    error: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    who: str = ""
    priority: int = USUAL
    attempts: int = 0
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int | None = None
    result: dict[str, Any] = field(default_factory=dict)
    files: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict, repr=False)
    changes: int = 0
    wish: str = ""
    kept_changes: int = 0  # of these, those that the book has
    beaten_s: float = float("-inf")  # when it was last said there that it runs, monotonic
    last_beat: Beat | None = field(default=None, repr=False)

    @classmethod
    def of(cls, entry: Entry) -> Self:
        names = ("job_id", "what", "state", "progress", "doing", "error", "about", "who", "priority", "attempts")
        told = {name: getattr(entry, name) for name in (*names, "ended_ns", "result", "changes")}
        return cls(**told, began_ns=entry.asked_ns, wish=CANCELLED if entry.cancelling else "")

    @property
    def theirs(self) -> bool:
        """Whether whoever asks may learn of it: what others do is theirs alone, and admins'."""
        asks = who()
        return asks.sees_all or (bool(self.who) and self.who == asks.name)

    @property
    def ended(self) -> bool:
        return self.state not in OPEN

    def to_dict(self) -> dict[str, Any]:
        """All but its files."""
        return {
            "job_id": self.job_id,
            "what": self.what,
            **self.about,
            "who": self.who or None,
            "priority": PRIORITIES[self.priority],
            "attempts": self.attempts,
            "began_ns": self.began_ns,
            "ended_ns": self.ended_ns,
            "state": self.state,
            "progress": self.progress,
            "doing": self._waits_for() or self.doing,
            "error": self.error or None,
            "run_id": self.result.get("run_id"),
            "existed": bool(self.result.get("existed")),
            "tables": self.result.get("tables", {}),
            "warnings": self.result.get("warnings", []),
        }

    def _waits_for(self) -> str:
        at = self.about.get(LIES_AT)
        return WAITS_FOR.format(at) if at and self.state in (WAITING, PARKED) else ""

    def with_files(self, since: int = 0) -> dict[str, Any]:
        """With each file that changed after the change `since`, and the number of the last change."""
        files = [told for number, told in self.files.values() if number > since]
        return {**self.to_dict(), "files": files, "files_changes": self.changes}

    def tell(self, told: dict[str, Any]) -> None:
        """Take in what its process says of its progress, or of a file."""
        if "file" in told:
            name = _key(str(told["file"].get("name")))
            self.changes += 1
            self.files[name] = (self.changes, told["file"])
        else:
            self.progress, self.doing = _part(told["progress"]), plain(told.get("doing", ""))

    def beat(self, child: str) -> Beat:
        """What the book lacks of it."""
        new = {name: one for name, one in self.files.items() if one[0] > self.kept_changes}
        told = {"progress": self.progress, "doing": self.doing, "changes": self.changes}
        return Beat(job_id=self.job_id, child=child, files=new, **told)

    def begin(self, entry: Entry) -> None:
        self.state, self.attempts, self.priority = entry.state, entry.attempts, entry.priority
        self.files, self.changes, self.kept_changes = {}, 0, 0

    def changed(self, beat: Beat) -> bool:
        """Whether the book lacks something of it but that it runs."""
        last = self.last_beat
        if last is None or beat.files:
            return True
        return (last.progress, last.doing, last.child) != (beat.progress, beat.doing, beat.child)

    def beaten(self, beat: Beat) -> None:
        self.last_beat, self.beaten_s = beat, time.monotonic()
        self.kept_changes = max(self.kept_changes, beat.changes)

    def end(self, state: str, error: str = "") -> None:
        self.state, self.error, self.ended_ns = state, error, time.time_ns()

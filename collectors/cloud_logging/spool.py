"""Entries on disk: one a line, each once, appended and synced; whole after a kill at any moment.

    entries.jsonl   the entries as the service gave them, `timestamp` and `insertId` first
    cursor.json     how far they were read; written anew after the entries it speaks of are safe on disk

A kill between the two leaves entries that the cursor does not know: they are found when the spool is opened. Half a
line at the end is cut off, since its entry will be given again.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from collectors.cloud_logging.query import stamp_ns
from errors import InputError
from runs.durable import write_whole, writing

ENTRIES, CURSOR = "entries.jsonl", "cursor.json"
_KEY = re.compile(rb'\{"timestamp":"([^"\\]*)","insertId":"([^"\\]*)"')


@dataclass
class Cursor:
    """How far a job's entries were read. Times in ns since the epoch.

    `since`: where the back-fill began; `through`: windows before it are read whole; `newest`: the newest timestamp
    seen, no later than it was received; `received`: when the newest was received; `swept_at`: when entries were last
    looked for by when they were received, `sweep_from`: what to begin with the next time; `ended`, `active`: the
    job's last job_end, and its last entry of another kind; `heard`: when the service last received such an entry, by
    its own clock, whatever that of the job's hosts says (None: not noted by an earlier version).
    Counted: `entries` kept; `late` (older than others before them), `repeated` (given again in the read that
    brought them), `future` (dated after they were received), `odd` (without timestamp or insertId: known by all that
    they hold).
    """

    filter: str = ""
    since: int | None = None
    through: int | None = None
    newest: int | None = None
    received: int | None = None
    swept_at: int | None = None
    sweep_from: int | None = None
    ended: int | None = None
    active: int | None = None
    heard: int | None = None
    bytes: int = 0
    entries: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def note(self, entry: dict[str, Any], job: str) -> None:
        """Take an entry into account that was not in the spool before."""
        self.entries += 1
        when, received = stamp_ns(entry.get("timestamp")), stamp_ns(entry.get("receiveTimestamp"))
        if when is None or not isinstance(entry.get("insertId"), str):
            self.count("odd")
        if when is None:
            return
        if self.newest is not None and when < self.newest:
            self.count("late")
        if received is not None and when > received:
            self.count("future")
        certain = when if received is None else min(when, received)
        self.newest = max(certain, self.newest or certain)
        if received is not None:
            self.received = max(received, self.received or received)
        payload = entry.get("jsonPayload")
        if isinstance(payload, dict) and payload.get("job_name") == job:
            if "job_end_time" in payload:
                self.ended = max(when, self.ended or when)
            else:
                self.active = max(when, self.active or when)
                self.heard = max(received or when, self.heard or 0)

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number


class Spool:
    """A job's spool in a folder, opened by one process alone. Raises InputError where it cannot be read or written."""

    def __init__(self, folder: Path, job: str):
        self.job = job
        self.path = folder / ENTRIES
        self._cursor_path = folder / CURSOR
        with writing(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self.cursor = self._read_cursor()
            # a 64-bit hash stands for the key: a false match in a million entries has odds of one in 40 million
            self._known: set[int] = set()
            self._recover()

    def append(self, page: list[dict[str, Any]], fresh: set[int]) -> int:
        """Keep those of a page that are new, and say how many; they are safe on disk when it returns.

        `fresh`: keys of what this read has brought so far; those of the page are added. Where the disk is full nothing
        of the page is kept, and the next read brings it again.
        """
        new: dict[int, dict[str, Any]] = {}
        repeated = 0
        for entry in page:
            key = _key(entry)
            repeated += key in new or key in fresh
            if key not in self._known:
                new.setdefault(key, entry)
        if new:
            self._write("".join(map(_line, new.values())).encode())
            self._known.update(new)
            fresh.update(new)
            for entry in new.values():
                self.cursor.note(entry, self.job)
        if repeated:
            self.cursor.count("repeated", repeated)
        self.save()
        return len(new)

    def _write(self, data: bytes) -> None:
        """Append after the last whole entry: what a failed write left there goes."""
        with writing(self.path), self.path.open("r+b" if self.path.exists() else "xb") as f:
            f.truncate(self.cursor.bytes)
            f.seek(self.cursor.bytes)
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        self.cursor.bytes += len(data)

    def save(self) -> None:
        """Write the cursor, so that it is the old or the new one after a kill."""
        with writing(self.path):
            write_whole(self._cursor_path, json.dumps(asdict(self.cursor), indent=1))

    def _read_cursor(self) -> Cursor:
        try:
            return Cursor(**json.loads(self._cursor_path.read_text()))
        except FileNotFoundError:
            return Cursor()
        except (ValueError, TypeError):  # no cursor of ours: what counts is in the entries
            return Cursor()

    def _recover(self) -> None:
        """Cut off half a line, learn the keys of all entries, and note those that the cursor does not know of."""
        if not self.path.exists():
            self.cursor = Cursor()
            return
        whole = 0
        with self.path.open("rb") as f:
            for raw in f:
                if not raw.endswith(b"\n"):
                    break
                start, whole = whole, whole + len(raw)
                match = _KEY.match(raw)
                if match and start < self.cursor.bytes:
                    self._known.add(hash((match[1].decode(), match[2].decode())))
                elif (entry := _parsed(raw)) is not None:
                    self._known.add(_key(entry))
                    if start >= self.cursor.bytes:
                        self.cursor.note(entry, self.job)
        if whole < self.cursor.bytes:  # the file lost what was safe on disk: somebody else changed it
            raise InputError(
                f"it is shorter than when it was written ({whole:,} of {self.cursor.bytes:,} bytes)",
                where=str(self.path),
                advice=f"Remove the folder {self.path.parent.name} to read the job's entries anew.",
            )
        if whole < self.path.stat().st_size:
            os.truncate(self.path, whole)
        self.cursor.bytes = whole
        self.save()


def _line(entry: dict[str, Any]) -> str:
    """The entry as a line, what tells it from others first: that can be read again without parsing the rest."""
    first = {k: entry[k] for k in ("timestamp", "insertId") if k in entry}
    return json.dumps({**first, **entry}, separators=(",", ":")) + "\n"


def _key(entry: dict[str, Any]) -> int:
    """What tells an entry from all others: its timestamp and insertId; without them the whole entry."""
    when, name = entry.get("timestamp"), entry.get("insertId")
    if isinstance(when, str) and isinstance(name, str):
        return hash((when, name))
    return hash(json.dumps(entry, sort_keys=True))


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(raw)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None

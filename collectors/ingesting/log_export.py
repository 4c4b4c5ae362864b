"""A job's output as collectors of logs keep it: each line in an object of JSON, with its time and where it came from.

Cloud Logging (`gcloud logging read --format=json`, a sink, the API) puts the line into `textPayload` or into
`jsonPayload` (`entry_text.py`), Docker and agents of Kubernetes into `log`, `message` or `line`, a journal into
`MESSAGE`, Splunk into `_raw`; tables and YAML name the same (`entry_tables`). `take_out` writes the lines as `kubectl
logs --prefix --timestamps` prints them, in order of time, so that whatever reads a log of that program reads them too.
Objects may stand a line each, in one array or in a service's answer, in any order: exports usually list the newest
first.

Entries are put in order by their time. Where the file has an order of its own, from old to new or from new to old, it
decides between equal times, else `insertId` does, as Cloud Logging has it. An entry with the time and `insertId` of
one before it is the same entry, delivered twice.
"""

import io
import mmap
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from collectors.base import Source
from collectors.ingesting.entry_tables import documents, is_documents, is_table, rows
from collectors.ingesting.line_pieces import Pieces
from collectors.ingesting.log_answers import TEXT_KEYS, answered, entry_within, is_answer
from collectors.ingesting.unpack import SafeSource
from collectors.reading import json_stream
from collectors.reading.as_far import AsFar
from collectors.reading.entry_text import EVENT_TIMES, audit_text, audited_host, event_text, payload_text
from collectors.reading.textlog import DATED, NS_PER_S, WORDED, Tally, fits, moment_ns, seconds_to_ns, zone_doubt

_TIME_KEYS = (
    "timestamp",
    "time",
    "@timestamp",
    "ts",
    "receiveTimestamp",
    "date",
    "_time",
    "__REALTIME_TIMESTAMP",
    *EVENT_TIMES,
)
_HOST_KEYS = (
    "pod_name",
    "pod",
    "k8s_pod_name",
    "k8s.pod.name",
    "node_name",
    "instance_name",
    "logStreamName",
    "@logStream",
    "hostname",
    "host",
    "instance_id",
    "_HOSTNAME",
)
_SEVERITY_KEYS = ("level", "severity", "levelname", "log.level", "lvl", "PRIORITY", "reason")  # or of an event
_POD, _MACHINES = ("kubernetes", "pod", "name"), (("kubernetes", "node", "name"), ("host", "name"))  # of Beats and ECS
_ENTRY = re.compile(
    rb'"(?:textPayload|jsonPayload|log|message|line|msg|MESSAGE|_raw|@message|resultType)"\s*:|"field"\s*:\s*"@message"'
)
_GOODPUT = "job_name"  # in a payload: an entry of ml-goodput-measurement, which has a reader of its own
_ID_BYTES = 24  # of an insertId: as many as order needs
_SECONDS = re.compile(r"\d{9,10}\.\d{1,18}", re.ASCII)
_UNITS = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (0, NS_PER_S))  # numbers since 1970 from here on: ns of one
_DATE = 80  # characters in which a date is written
_WRITTEN = 100_000  # lines written at once
NONE = -(1 << 63)


@dataclass(frozen=True)
class LinesTakenOut(SafeSource):
    """The lines of an export: `path` is the export, `lines` the file that holds them. Offsets are those in `lines`."""

    lines: Path = Path()

    @property
    def content(self) -> Path:
        return self.lines


@dataclass(frozen=True)
class Found:
    """What an export held: lines of output, entries of a goodput log, and what is to be said of both. `logged`: each
    entry has a time, and says how severe it is or whose output, as no other list of messages does."""

    count: int
    goodput: int
    notes: tuple[str, ...]
    logged: bool


def is_export(source: Source) -> bool:
    """Whether a file begins with objects of JSON, or documents of YAML, that hold a line each."""
    if is_documents(source):
        return True
    return source.head.lstrip()[:1] in (b"{", b"[") and bool(_ENTRY.search(source.head))


def take_out(source: Source, out: Path, check: Callable[[], None] = lambda: None, limit: int | None = None) -> Found:
    """Write the lines of an export to `out`. `limit`: read no more than about so many bytes of it.

    Some seventy bytes of memory an entry. Raises InputError where the file is more broken than whole.
    """
    tally = Tally()
    with tempfile.TemporaryFile(dir=out.parent) as texts, source.open() as f:
        entries, there = _Entries(texts, tally), AsFar(f)
        for number, (offset, entry) in enumerate(_entries(source, io.BufferedReader(there), tally)):
            if not number % 1000:
                check()
            if limit is not None and offset > limit:
                break
            entries.add(entry)
        entries.close()
        order, notes = entries.order()
        with out.open("wb") as written:
            _write(entries, order, written)
    count = len(order) - int(entries.pieces.goes_on()[order].sum())
    said = (*(f"{lost.what}: {lost.reason}" for lost in tally.lost()), *there.notes, *notes)
    return Found(count, entries.goodput, said, entries.logged == len(entries.time) and NONE not in entries.time)


def _entries(source: Source, f: BinaryIO, tally: Tally) -> Iterator[tuple[int, dict]]:
    if is_table(source):
        return rows(source, f, tally)
    if is_documents(source):
        return documents(f, tally)
    if is_answer(source):
        return answered(f.read, tally)
    objects = json_stream.Walk(source.name, tally).objects(f.read)
    return ((offset, entry) for offset, one in objects for entry in _unwrapped(one))


def _unwrapped(entry: dict) -> Iterable[dict]:
    """The entries within an answer of a service: CloudWatch, Elasticsearch, Loki, Datadog, Kubernetes, and Splunk, that
    wraps each in one of its own too; else the entry itself."""
    if any(isinstance(entry.get(key), str) for key in TEXT_KEYS):
        return (entry,)
    if isinstance(one := entry.get("result"), dict):
        return (one,)
    data = entry.get("data")
    plain = (entry.get(key) for key in ("events", "results", "items"))
    lists = (*plain, _part(entry, "hits", "hits"), _part(data, "result"), data)
    found = next((one for one in lists if isinstance(one, list) and one), None)
    return (entry,) if found is None else (one for part in found for one in _unpacked(part))


def _unpacked(part: Any) -> Iterable[dict]:
    stream, values = _part(part, "stream"), _part(part, "values")
    if isinstance(stream, dict) and isinstance(values, list):
        lines = (pair for pair in values if isinstance(pair, list) and len(pair) >= 2)
        return ({"labels": stream, "ts": pair[0], "line": pair[1]} for pair in lines)
    return () if (inner := entry_within(part)) is None else (inner,)


@dataclass
class _Entries:
    """What was read so far; the texts themselves wait in a file."""

    texts: BinaryIO
    tally: Tally
    time: array = field(default_factory=lambda: array("q"))
    begin: array = field(default_factory=lambda: array("q"))
    place: array = field(default_factory=lambda: array("i"))
    key: array = field(default_factory=lambda: array("q"))
    ids: bytearray = field(default_factory=bytearray)
    places: dict[str, int] = field(default_factory=dict)
    goodput: int = 0
    silent: int = 0
    logged: int = 0
    pieces: Pieces = field(default_factory=Pieces)

    def add(self, entry: dict) -> None:
        key, text = self._text(entry)
        if text is None:
            self.silent += not _is_goodput(entry)
            return
        raw = text.encode("utf-8", "replace")
        at = _time_ns(entry, self.tally)
        name = entry.get("insertId")
        name = name if isinstance(name, str) else ""
        self.begin.append(self.texts.tell())
        self.texts.write(raw)
        self.time.append(NONE if at is None else at)
        self.place.append(place := self.places.setdefault(_place(entry), len(self.places)))
        self.logged += bool(_place(entry)) or any(name in entry for name in _SEVERITY_KEYS)
        self.pieces.add(entry, key, text, place)
        self.key.append(hash(name) if name else 0)
        self.ids += name.encode("utf-8", "replace")[:_ID_BYTES].ljust(_ID_BYTES, b"\0")

    def _text(self, entry: dict) -> tuple[str, str | None]:
        """(the key of its text, the text)."""
        payload, proto = entry.get("jsonPayload"), entry.get("protoPayload")
        if isinstance(payload, dict):
            self.goodput += _is_goodput(entry)
            return "", payload_text(payload)
        if isinstance(proto, dict):
            return "", audit_text(proto) or None
        if (event := event_text(entry)) is not None:
            return "", event
        return next(((key, text) for key in TEXT_KEYS if (text := _said(entry.get(key))) is not None), ("", None))

    def close(self) -> None:
        self.begin.append(self.texts.tell())
        self.texts.flush()

    def order(self) -> tuple[np.ndarray, list[str]]:
        """(the entries' numbers in order of time, each once; what is to be said of that)."""
        time, key, notes = np.array(self.time, dtype="i8"), np.array(self.key, dtype="i8"), []
        count = len(time)
        at = _filled(time)
        steps = np.diff(at)
        newest_first = bool(count > 1 and (steps <= 0).all() and (steps < 0).any())
        number = np.arange(count)
        if newest_first:
            order = number[::-1][np.argsort(at[::-1], kind="stable")]
            notes.append(f"entries ({count:,}): listed from the newest to the oldest; they were put in order of time")
        elif (steps >= 0).all():
            order = number
        else:
            order = np.lexsort((number, np.frombuffer(bytes(self.ids), f"S{_ID_BYTES}"), at))
            notes.append(f"entries ({count:,}): not listed in order of time; they were put in that order")
        again = _repeated(at[order], key[order])
        if again.any():
            notes.append(f"entries ({int(again.sum()):,}): each has the insertId and timestamp of an earlier one")
        if missing := int((time == NONE).sum()):
            notes.append(f"entries ({missing:,}): without a time; each was left behind the one before it")
        order = order[~again]
        if self.silent:
            notes.append(f"entries ({self.silent:,}): they hold no line of text")
        if left := self.pieces.left(order):
            notes.append(f"lines ({left}): the file ends in the middle of them")
        return order, notes


def _said(value: object) -> str | None:
    """A text; a journal writes one that holds colours, or a bar drawn anew, as the list of its bytes."""
    if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte <= 255 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _is_goodput(entry: dict) -> bool:
    payload = entry.get("jsonPayload")
    return isinstance(payload, dict) and _GOODPUT in payload


def _filled(time: np.ndarray) -> np.ndarray:
    """Times, where an entry without one has that of the one before it, or else of the one behind it."""
    known = np.flatnonzero(time != NONE)
    if not len(known) or len(known) == len(time):
        return time
    last = np.searchsorted(known, np.arange(len(time)), side="right") - 1
    return time[known[np.maximum(last, 0)]]


def _repeated(time: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Which entries have time and key of an earlier one."""
    order = np.lexsort((np.arange(len(key)), key, time))
    same = (np.diff(time[order]) == 0) & (np.diff(key[order]) == 0) & (key[order][1:] != 0)
    again = np.zeros(len(key), dtype=bool)
    again[order[1:][same]] = True
    return again


def _write(entries: _Entries, order: np.ndarray, out: BinaryIO) -> None:
    if not len(order):
        return
    begin, place = np.array(entries.begin, dtype="i8"), np.array(entries.place, dtype="i4")
    names = [f"[pod/{name}] ".encode() if name else b"" for name in entries.places]
    time, goes_on = np.array(entries.time, dtype="i8"), entries.pieces.goes_on()
    held: dict[int, bytes] = {}  # what came of a line that goes on, by its strand
    # An empty file cannot be mapped.
    mapped = mmap.mmap(entries.texts.fileno(), 0, access=mmap.ACCESS_READ) if begin[-1] else nullcontext(b"")
    with mapped as texts:
        for first in range(0, len(order), _WRITTEN):
            some = order[first : first + _WRITTEN]
            stamps = np.datetime_as_string(time[some].view("M8[ns]")).astype("S29").tolist()
            known, whose = (time[some] != NONE).tolist(), place[some].tolist()
            for n, i in enumerate(some.tolist()):
                strand = entries.pieces.strand[i]
                text = held.pop(strand, b"") + texts[begin[i] : begin[i + 1]]
                if goes_on[i] and len(text) < json_stream.OBJECT_LIMIT:
                    held[strand] = text
                    continue
                before = names[whose[n]] + (stamps[n] + b"Z " if known[n] else b"")
                for line in text.splitlines():
                    out.write(before + line + b"\n")


def _time_ns(entry: dict, tally: Tally) -> int | None:
    for key in _TIME_KEYS:
        value = entry.get(key)
        if isinstance(value, str) and (match := _dated(value)):
            if doubt := zone_doubt(match):
                tally.add("times", doubt)
            return moment_ns(match)
        if isinstance(value, str):
            value = _number(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            unit = next((u for least, u in _UNITS if value >= least), 0)
            ns = value * unit if isinstance(value, int) else seconds_to_ns(value * (unit / NS_PER_S))
            return ns if ns and fits(ns) else None
    return None


def _dated(value: str) -> re.Match[str] | None:
    return DATED.match(value) or next((m for form in WORDED if (m := form.search(value[:_DATE]))), None)


def _number(value: str) -> int | float | None:
    """A number since 1970 that is written as text; of seconds with a fraction, ns, as exactly as it is written."""
    if _SECONDS.fullmatch(value):
        whole, fraction = value.split(".")
        return int(whole + fraction[:9].ljust(9, "0"))
    return int(value) if value.isdecimal() and len(value) < 20 else None


def _place(entry: dict) -> str:
    """`host/container` that an entry says its line is of; nothing where it says none."""
    proto = entry.get("protoPayload")
    host = audited_host(proto) if isinstance(proto, dict) else None
    resource = (_part(entry, "resource", "labels"), _part(entry, "resource", "attributes"))
    labels = (*resource, entry.get("kubernetes"), _tags(entry), entry, entry.get("labels"))
    named = [part for part in labels if isinstance(part, dict)]
    flat = (p[k] for k in _HOST_KEYS for p in named if isinstance(p.get(k), str) and p[k])
    nested = (name for path in _MACHINES if isinstance(name := _part(entry, *path), str) and name)
    pod = _part(entry, *_POD)
    host = host or (pod if isinstance(pod, str) and pod else next(flat, None)) or next(nested, None)
    container = next((p["container_name"] for p in named if isinstance(p.get("container_name"), str)), "")
    container = container or (name if isinstance(name := _part(entry, "kubernetes", "container", "name"), str) else "")
    return "" if host is None else f"{_plain(host)}/{_plain(container)}"


def _tags(entry: dict) -> dict[str, str]:
    """The tags that Datadog lists, `pod_name:w-3`, by their names."""
    tags = entry.get("tags")
    return (
        dict(tag.split(":", 1) for tag in tags if isinstance(tag, str) and ":" in tag) if isinstance(tags, list) else {}
    )


def _part(entry: Any, *path: str) -> Any:
    for key in path:
        entry = entry.get(key) if isinstance(entry, dict) else None
    return entry


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:200]

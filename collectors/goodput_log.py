"""Goodput logs: Cloud Logging entries as exported by `gcloud logging read --format=json`, a sink, or the API.

The entries are those that ml-goodput-measurement and Orbax write: `jsonPayload` with `job_name` and a time. Only
entries of severity INFO count, as in that library. One file is one run: the job that the log is named after
(`goodput_<job_name>`), else the one with the most events; other jobs are named and left out.

Rows are made by walking the entries in log order: by `timestamp`, ties in file order. An interval is a start entry and
the next end entry of its kind; a start without an end keeps a null end, an end without a start a null start, so that no
entry is merged away. `logged_ns` and `order` are those of the start entry (of the end entry where that is all there
is), `end_logged_ns` and `end_order` those of the end entry. `order` is the position in the file, counted from its end
if the file lists the newest first. `attempt` counts the job starts seen before, less one.
"""

import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import numpy as np

from collectors.base import Fact, Item, Source
from collectors.json_stream import objects
from collectors.textlog import DATED, Buffer, Tally, clean, fits, moment_ns, seconds_to_ns, whole
from errors import InputError

NAME = "goodput_log"
HELP = "Goodput log of ml-goodput-measurement, exported from Cloud Logging as JSON: steps, badput, checkpoints, slices."

_KINDS = (  # prefix of the payload's keys, what it is, the key that tells several of them apart
    ("job", "job", None),
    ("tpu_init", "accelerator_initialization", None),
    ("training_prep", "training_preparation", None),
    ("data_loading", "data_loading", None),
    ("custom_badput_event", "custom", "custom_badput_event_type"),
    ("elastic_wait", "elastic_wait", "elastic_wait_event_type"),
    ("elastic_reinit", "elastic_reinitialization", None),
)
_STEP, _SLICES, _SAVE, _RESTORE, _FIRST_PAIR = range(5)
# Payload key: code of the event. Starts have even distance from _FIRST_PAIR, ends odd.
_CODES = {
    f"{prefix}_{side}_time": _FIRST_PAIR + 2 * i + (side == "end")
    for i, (prefix, _, _) in enumerate(_KINDS)
    for side in ("start", "end")
}
_CHECKPOINTS = {  # event_type: code, and the (start, duration) keys, the widest first
    "save": (_SAVE, ("checkpoint_manager_blocking", "checkpointer_blocking")),
    "restore": (_RESTORE, ("checkpoint_manager", "checkpointer")),
    "emergency_restore": (_RESTORE, ("checkpoint_manager", "checkpointer")),
}
_SLICE_COUNTS = {"active": "active_slices", "total": "total_slices", "available": "available_slices"}
_INFO = (None, "", "INFO", "DEFAULT", 200)
_NONE = -(1 << 63)
_CHUNK = 100_000  # events turned into Python objects at a time

_SNIFF = re.compile(
    rb'"(?:(?:step|job|tpu_init|training_prep|data_loading|custom_badput_event|elastic_\w{1,20})_(?:start|end)_time'
    rb'|elastic_slice_counts_timestamp|checkpoint_manager_\w{1,40})"'
)


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"{", b"["):
        return 0.0
    if b'"jsonPayload"' in head and _SNIFF.search(head):
        return 0.95
    # Any other Cloud Logging export: its goodput entries may begin later, and if not, `read` says what is missing.
    return 0.5 if b'"logName"' in head and (b'"jsonPayload"' in head or b'"textPayload"' in head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Steps, lifecycle and the job's name. Raises InputError where no entry is a goodput entry."""
    tally = Tally()
    yield from from_entries(objects(source, tally), source.name, tally)


def from_entries(entries: Iterable[tuple[int, dict]], name: str, tally: Tally) -> Iterator[Item]:
    """The same from (offset, LogEntry as JSON) pairs, wherever they come from; `name` goes to the `source` column."""
    events = _Events(tally)
    for position, (offset, entry) in enumerate(entries):
        events.entry(entry, position, offset)
    job = events.main_job()
    if job is None:
        raise InputError(
            "no goodput entry in it", where=name,
            expected="Cloud Logging entries with jsonPayload.job_name and step_start_time, job_start_time, ...",
            advice="Export the log that ml-goodput-measurement writes (MaxText: goodput_<run_name>).",
        )  # fmt: skip
    yield Fact("job_name", job)
    yield from _rows(events, job, name)
    yield from tally.lost()


class _Events:
    """The entries as columns of numbers, about 60 bytes each: a month of steps fits in memory."""

    def __init__(self, tally: Tally):
        self.tally = tally
        self.jobs: dict[str, int] = {}
        self.log_names: list[str] = []
        self.named_after: Counter[int] = Counter()
        self.texts: dict[str, int] = {}
        self.code, self.job, self.text = array("b"), array("i"), array("i")
        self.time, self.end, self.logged, self.order, self.step, self.key = (array("q") for _ in range(6))

    def entry(self, entry: dict, position: int, offset: int) -> None:
        payload = entry.get("jsonPayload")
        if not isinstance(payload, dict):
            self.tally.add("entries", "they have no jsonPayload: other loggers' text", offset)
        elif (severity := entry.get("severity")) not in _INFO:
            self.tally.add("entries", f"their severity is {str(severity)[:20]}, not INFO", offset)
        elif not isinstance(job := payload.get("job_name"), str) or not job:
            self.tally.add("entries", "they have no job_name", offset)
        else:
            logged = _stamp_ns(entry.get("timestamp"))
            before = len(self.code)
            for event in self._events(payload, offset):
                self._add(entry, event, clean(job), logged, position)
            if len(self.code) == before:
                self.tally.add("entries", "they carry no goodput event with a time that is a number", offset)

    def _add(self, entry: dict, event: tuple, job: str, logged: int | None, position: int) -> None:
        code, time, end, step, text = event
        insert_id = entry.get("insertId")
        known = isinstance(insert_id, str) and bool(insert_id)
        self.code.append(code)
        number = self.jobs.setdefault(job, len(self.jobs))
        self.job.append(number)
        if number == len(self.log_names):
            self.log_names.append(f"/goodput_{quote(job, safe='')}")
        self.named_after[number] += str(entry.get("logName")).endswith(self.log_names[number])
        self.text.append(-1 if text is None else self.texts.setdefault(text, len(self.texts)))
        # A 64-bit hash stands for the pair: a false match in ten million entries has odds of one in 400,000.
        self.key.append(hash((insert_id, str(entry.get("timestamp")))) if known else hash((position, "")))
        for column, value in ((self.time, time), (self.end, end), (self.step, step), (self.logged, logged)):
            column.append(_NONE if value is None else value)
        self.order.append(position)

    def _events(self, payload: dict, offset: int) -> Iterator[tuple]:
        """(code, time, end, step, text) of each event in a payload."""
        for key, value in payload.items():
            code = _CODES.get(key)
            if code is not None and (time := seconds_to_ns(value)) is not None:
                label = payload.get(_KINDS[(code - _FIRST_PAIR) // 2][2])
                yield code, time, None, None, clean(label) if isinstance(label, str) else None
        if "step_start_time" in payload:
            step, time = whole(payload.get("step_count")), seconds_to_ns(payload["step_start_time"])
            if step is not None and time is not None:
                yield _STEP, time, None, step, None
        if (time := seconds_to_ns(payload.get("elastic_slice_counts_timestamp"))) is not None:
            counts = {name: whole(payload.get(key)) for name, key in _SLICE_COUNTS.items()}
            yield _SLICES, time, None, None, json.dumps(counts)
        kind = payload.get("event_type")
        if isinstance(kind, str) and kind in _CHECKPOINTS:
            code, spans = _CHECKPOINTS[kind]
            start, end = _span(payload, spans)
            yield code, start, end, whole(payload.get("step")), self._detail(payload, offset)

    def _detail(self, payload: dict, offset: int) -> str | None:
        fields = {k: v for k, v in payload.items() if k not in ("job_name", "step") and v is not None}
        try:
            return json.dumps(fields, sort_keys=True, allow_nan=False)
        except (ValueError, RecursionError):
            self.tally.add("details of checkpoints", "a number in them is not finite, or they nest too deep", offset)
            return None

    def main_job(self) -> str | None:
        """The job that the log is about; the others are counted."""
        names = list(self.jobs)
        counts = Counter(self.job)
        ranked = sorted(counts, key=lambda number: (-self.named_after[number], -counts[number]))
        for number in ranked[1:]:
            self.tally.add(f"events of job {names[number][:100]!r}", "another job's, left out", count=counts[number])
        return names[ranked[0]] if ranked else None

    def in_log_order(self, name: str) -> tuple[np.ndarray, ...]:
        """Columns (code, time, end, step, text, logged, order) of one job, without duplicates, in log order."""
        code, job, text = (np.frombuffer(c, t) for c, t in ((self.code, "i1"), (self.job, "i4"), (self.text, "i4")))
        time, end, logged, order, step, key = (
            np.frombuffer(c, "i8") for c in (self.time, self.end, self.logged, self.order, self.step, self.key)
        )
        known = logged[logged != _NONE]
        if known.size and known[-1] < known[0] and np.all(known[1:] <= known[:-1]):  # newest first
            order = order.max() - order
        # An entry without a timestamp belongs where it stands in the file: after the one before it.
        place = np.maximum.accumulate(np.where(logged != _NONE, np.arange(len(logged)), -1))
        when = np.where(place >= 0, logged[np.maximum(place, 0)], _NONE)

        by_key = np.lexsort((order, key))
        new = np.r_[True, key[by_key][1:] != key[by_key][:-1]]
        first = order[by_key][np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))]
        repeated = np.empty(len(key), bool)
        repeated[by_key] = order[by_key] != first
        mine = job == self.jobs[name]
        duplicates = len(np.unique(order[repeated & mine]))
        if duplicates:
            self.tally.add("entries", "each has the insertId and timestamp of an earlier one", count=duplicates)
        keep = np.flatnonzero(mine & ~repeated)
        keep = keep[np.lexsort((order[keep], when[keep]))]
        return tuple(column[keep] for column in (code, time, end, step, text, logged, order))


def _rows(events: _Events, job: str, name: str) -> Iterator[Item]:
    texts = list(events.texts)
    columns = events.in_log_order(job)
    steps = Buffer("steps", "attempt", "step", "start_ns", "order", "logged_ns", "format", "source")
    life = Buffer(
        "lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "detail", "logged_ns", "order", "end_logged_ns",
        "end_order", "source",
    )  # fmt: skip
    attempt, started = 0, False
    open_intervals: dict[tuple[int, int], tuple] = {}
    for begin in range(0, len(columns[0]), _CHUNK):
        chunk = (column[begin : begin + _CHUNK].tolist() for column in columns)
        for code, time, end, step, text, logged, order in zip(*chunk, strict=True):
            time, end, step, logged = (None if v == _NONE else v for v in (time, end, step, logged))
            if code == _STEP:
                steps.add(attempt, step, time, order, logged, NAME, name)
            elif code < _FIRST_PAIR:
                kind = {_SLICES: "slices", _SAVE: "checkpoint_save", _RESTORE: "checkpoint_restore"}[code]
                detail = texts[text] if text >= 0 else None
                life.add(kind, time, end, attempt, step, detail, logged, order, None, None, name)
            else:
                pair, is_end = divmod(code - _FIRST_PAIR, 2)
                kind, detail = _kind(pair, texts[text] if text >= 0 else None)
                if not is_end:
                    if kind == "job":
                        attempt, started = attempt + started, True
                    if (earlier := open_intervals.get((pair, text))) is not None:
                        life.add(*earlier, None, None, name)
                    open_intervals[pair, text] = (kind, time, None, attempt, None, detail, logged, order)
                elif (opened := open_intervals.pop((pair, text), None)) is not None:
                    life.add(*opened[:2], time, *opened[3:], logged, order, name)
                else:
                    life.add(kind, None, time, attempt, None, detail, logged, order, logged, order, name)
        yield from steps.full()
        yield from life.full()
    for opened in open_intervals.values():
        life.add(*opened, None, None, name)
    yield from steps.rest()
    yield from life.rest()


def _kind(pair: int, label: str | None) -> tuple[str, str | None]:
    """The lifecycle kind and detail of an interval."""
    kind = _KINDS[pair][1]
    if kind != "elastic_wait":
        return kind, label
    # The library tells the two apart in just this way.
    kind = "elastic_scale_up" if label and "scale_up" in label.lower() else "elastic_slice_down"
    return kind, None if label is None else json.dumps({"event_type": label})


def _span(payload: dict, prefixes: tuple[str, ...]) -> tuple[int | None, int | None]:
    """(start, end) from the first prefix that has both a start and a duration, else from the first start alone."""
    fallback = None
    for prefix in prefixes:
        start = seconds_to_ns(payload.get(f"{prefix}_start_time"))
        duration = seconds_to_ns(payload.get(f"{prefix}_duration_secs"))
        if start is not None and duration is not None and duration >= 0 and fits(start + duration):
            return start, start + duration
        fallback = start if fallback is None else fallback
    return fallback, None


def _stamp_ns(stamp: object) -> int | None:
    match = DATED.match(stamp) if isinstance(stamp, str) else None
    return moment_ns(match) if match else None

"""Which goodput events a batch of entries holds: pure columns, made on any thread; `log` joins them.

An entry may hold several events. They come in the order of their codes, the job's start and end first, and a step
after them: the order of a payload's keys tells nothing, since gRPC scrambles it.
"""

import json
from dataclasses import dataclass

import numpy as np

from collectors.reading.textlog import fits, seconds_to_ns, whole
from collectors.training.goodput_log import keys
from collectors.training.goodput_log.batch import Batch, Texts
from collectors.training.goodput_log.numbers import mixed
from collectors.training.goodput_log.spoken import Said, said

_ORDER = 32  # more than there are kinds of events


@dataclass
class Tallied:
    """What was passed over: how many entries or details, why, and where the first stands (bytes)."""

    what: str
    reason: str
    count: int
    offset: int


@dataclass
class Events:
    """Events of a batch, in its order. One element an event; `entry` is the entry's number in the batch.

    `value`: of a step its number; of a checkpoint its number in `checkpoints`; else that of its text, or -1. `key`: a
    64-bit hash of the entry's insertId and timestamp, 0 where it has no insertId. `job`: number in `jobs`. `named`: how
    many events there are by (job, logName).
    """

    entries: int
    entry: np.ndarray
    code: np.ndarray
    time: np.ndarray
    value: np.ndarray
    logged: np.ndarray
    key: np.ndarray
    job: np.ndarray
    jobs: list[str]
    texts: list[str]
    checkpoints: list[tuple[int, int, str | None]]  # end in ns or NONE, step or NONE, further fields as JSON
    named: list[tuple[int, str | None, int]]
    said: list[Said]
    passed_over: list[Tallied]


def events_of(batch: Batch) -> Events:
    """The events of the entries that count: with a payload, of severity INFO, with a job's name."""
    jobs, names = batch.text(keys.JOB)
    named = _named(jobs, names)
    info = batch.payload & _is_info(batch.text("severity"))
    good = info & named

    texts: dict[str, int] = {}
    checkpoints: list[tuple[int, int, str | None]] = []
    passed_over: list[Tallied] = []
    parts = [*_pairs(batch, good, texts), *_steps(batch, good), *_slices(batch, good, texts)]
    parts += _checkpoints(batch, good, checkpoints, passed_over)
    entry, code, time, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(entry * _ORDER + _rank(code), kind="stable")
    entry = entry[order]

    silent = np.ones(batch.count, bool)
    silent[entry] = False
    spoken = said(batch, np.flatnonzero(silent))
    silent[[one.entry for one in spoken]] = False
    passed_over += _passed_over(batch, silent, info, named)

    ids, logged, job = batch.ids[entry], batch.logged[entry], jobs[entry]
    key = np.where(ids != 0, np.maximum(mixed(ids ^ mixed(logged.view("u8"))), np.uint64(1)), np.uint64(0))
    return Events(
        batch.count,
        entry,
        code[order],
        time[order],
        value[order],
        logged,
        key,
        job,
        names,
        list(texts),
        checkpoints,
        _by_log(job, entry, batch.text("logName")),
        spoken,
        passed_over,
    )


def _passed_over(batch: Batch, silent: np.ndarray, info: np.ndarray, named: np.ndarray) -> list[Tallied]:
    """The entries that brought nothing, by why."""
    reasons = [("they have no jsonPayload: other loggers' text", np.flatnonzero(silent & ~batch.payload))]
    for severity, which in _by_text(batch.text("severity"), np.flatnonzero(silent & batch.payload & ~info)):
        reasons.append((f"their severity is {severity[:20]}, not INFO", which))
    reasons.append(("they have no job_name", np.flatnonzero(silent & info & ~named)))
    reasons.append(("they carry no goodput event with a time that is a number", np.flatnonzero(silent & info & named)))
    return [
        Tallied("entries", reason, which.size, batch.offset(int(which[0]))) for reason, which in reasons if which.size
    ]


Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # entry, code, time, value


def _named(jobs: np.ndarray, names: list[str]) -> np.ndarray:
    return np.array([*map(bool, names), False], bool)[jobs]  # -1, no name, is the last


def _is_info(severity: Texts) -> np.ndarray:
    codes, names = severity
    return np.array([*(name in keys.INFO for name in names), True], bool)[codes]  # none at all counts too


def _by_text(texts: Texts, which: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(text, which of `which` have it), by where each text comes first."""
    codes, names = texts[0][which], texts[1]
    firsts = np.sort(np.unique(codes, return_index=True)[1])
    return [(names[code], which[codes == code]) for code in codes[firsts].tolist()]


def _rank(code: np.ndarray) -> np.ndarray:
    """The order of the events of one entry: what has a start and an end, in its order, then the others in theirs."""
    return np.where(code >= keys.FIRST_PAIR, code - keys.FIRST_PAIR, code.astype("i8") + len(keys.CODES))


def _part(entry: np.ndarray, code: int | np.ndarray, time: np.ndarray, value: np.ndarray | None = None) -> Part:
    value = np.full(len(entry), -1, "i8") if value is None else value
    return entry, np.broadcast_to(np.asarray(code, "i1"), len(entry)), time, value


def _pairs(batch: Batch, good: np.ndarray, texts: dict[str, int]) -> list[Part]:
    """Starts and ends of intervals."""
    parts, labels = [_part(np.zeros(0, "i8"), 0, np.zeros(0, "i8"))], {}
    for key, code in keys.CODES.items():
        if key not in batch.numbers:
            continue
        entry, time = batch.numbers[key]
        keep = good[entry]
        entry, time = entry[keep], time[keep]
        label = keys.KINDS[(code - keys.FIRST_PAIR) // 2][2]
        if label is not None and label not in labels:
            codes, names = batch.text(label)
            numbers = [texts.setdefault(name, len(texts)) for name in names]
            labels[label] = np.array([*numbers, -1], "i8")[codes]
        parts.append(_part(entry, code, time, None if label is None else labels[label][entry]))
    return parts


def _steps(batch: Batch, good: np.ndarray) -> list[Part]:
    if keys.STEP_TIME not in batch.numbers or keys.STEP_NUMBER not in batch.numbers:
        return []
    entry, time = batch.numbers[keys.STEP_TIME]
    numbers = _spread(batch, keys.STEP_NUMBER)
    keep = good[entry] & (numbers[entry] != keys.NONE)
    return [_part(entry[keep], keys.STEP, time[keep], numbers[entry[keep]])]


def _spread(batch: Batch, key: str) -> np.ndarray:
    """A number for every entry, NONE where it has none."""
    column = np.full(batch.count, keys.NONE, "i8")
    if key in batch.numbers:
        entry, values = batch.numbers[key]
        column[entry] = values
    return column


def _slices(batch: Batch, good: np.ndarray, texts: dict[str, int]) -> list[Part]:
    if keys.SLICES_TIME not in batch.numbers:
        return []
    entry, time = batch.numbers[keys.SLICES_TIME]
    keep = good[entry]
    entry, time = entry[keep], time[keep]
    counts = {name: _spread(batch, key)[entry].tolist() for name, key in keys.SLICE_COUNTS.items()}
    details = (
        json.dumps({name: None if n == keys.NONE else n for name, n in zip(counts, each, strict=True)})
        for each in zip(*counts.values(), strict=True)
    )
    return [_part(entry, keys.SLICES, time, np.array([texts.setdefault(d, len(texts)) for d in details], "i8"))]


def _checkpoints(
    batch: Batch, good: np.ndarray, checkpoints: list[tuple[int, int, str | None]], passed_over: list[Tallied]
) -> list[Part]:
    """Saves and restores: few, and kept with whatever fields they have, so these entries are looked at whole."""
    codes, names = batch.text(keys.EVENT_TYPE)
    of = [i for i, name in enumerate(names) if name in keys.CHECKPOINTS]
    which = np.flatnonzero(good & np.isin(codes, of)) if of else np.zeros(0, "i8")
    times, kinds = [], []
    for i in which.tolist():
        payload = batch.entry(i)["jsonPayload"]
        code, spans = keys.CHECKPOINTS[payload["event_type"]]
        start, end = _span(payload, spans)
        step, detail = whole(payload.get("step")), _detail(payload)
        if detail is None:
            reason = "a number in them is not finite, or they nest too deep"
            passed_over.append(Tallied("details of checkpoints", reason, 1, batch.offset(i)))
        checkpoints.append((keys.NONE if end is None else end, keys.NONE if step is None else step, detail))
        times.append(keys.NONE if start is None else start)
        kinds.append(code)
    return [_part(which, np.array(kinds, "i1"), np.array(times, "i8"), np.arange(len(which)))] if times else []


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


def _detail(payload: dict) -> str | None:
    fields = {k: v for k, v in payload.items() if k not in ("job_name", "step") and v is not None}
    try:
        return json.dumps(fields, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError):
        return None


def _by_log(job: np.ndarray, entry: np.ndarray, log_names: Texts) -> list[tuple[int, str | None, int]]:
    """(job, logName, how many events)."""
    codes, names = log_names
    pairs, counts = np.unique(job.astype("i8") * (len(names) + 1) + codes[entry] + 1, return_counts=True)
    return [
        (int(pair) // (len(names) + 1), [None, *names][int(pair) % (len(names) + 1)], int(count))
        for pair, count in zip(pairs, counts, strict=True)
    ]

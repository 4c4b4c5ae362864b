"""Events of the resiliency library for GPU jobs on Google Cloud, one JSON object a line (or a Cloud Logging export of
them): `timestamp`, `job_name`, `event_type` and, for checkpoints, `step`.

    user_scheduled                      `queued`, until the next job_started
    job_started .. job_terminated,      `job`: an attempt; open-ended where it was started again without having ended
                   user_terminated
    checkpoint_saved, checkpoint_loaded `checkpoint_save`, `checkpoint_restore`: an end without a start, since the event
                                        tells when it was done, not how long it took
A user_terminated is a row of `evidence` too. Events count in the order of their times, as in that library; starts
within START_NS of each other are one start that several processes told of. The log has no steps: what a job did
between two checkpoints has to come from another file.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator

from collectors.base import Fact, Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.json_stream import objects
from collectors.reading.textlog import DATED, NS_PER_S, Buffer, Tally, clean, moment_ns, whole
from errors import InputError

NAME = "resiliency"
TITLE = "resiliency events"
HELP = "Resiliency events of GPU jobs (user_scheduled, job_started, checkpoint_saved, ...) as JSON lines: attempts."

START_NS = 10 * NS_PER_S
_EVENTS = (
    "user_scheduled",
    "job_started",
    "checkpoint_loaded",
    "checkpoint_saved",
    "user_terminated",
    "job_terminated",
)
_RANK = {name: i for i, name in enumerate(_EVENTS)}  # which goes first of two at the same time
_SNIFF = re.compile(rb'"event_type"\s*:\s*"(?:' + "|".join(_EVENTS).encode() + rb')"')
_MOST = 2_000_000  # events of one log; a job has some thousands
_TIMES = ("timestamp", "job_name", "event_type", "step")


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return 0.95 if head[:1] in (b"{", b"[") and _SNIFF.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Lifecycle and the job's name. Raises InputError where there is no such event."""
    tally = Tally()
    events = _events(source, tally)
    if not events:
        raise InputError(
            "no resiliency event in it",
            where=source.name,
            expected='objects with "timestamp" and an "event_type" such as "job_started"',
        )
    named = Counter(name for *_, name in events if name)
    job = named.most_common(1)[0][0] if named else None
    for name, count in named.most_common()[1:]:
        tally.add(f"events of job {name[:100]!r}", "another job's, left out", count=count)
    if job is not None:
        yield Fact("job_name", job)
    evidence = Evidence(source, tally)
    yield from _rows(sorted(e for e in events if e[-1] in (job, None)), source.name, tally, evidence)
    yield from evidence.rest()
    yield from tally.lost()


def _events(source: Source, tally: Tally) -> list[tuple]:
    """(time, rank, order, offset, step, detail, job name) of each event."""
    found = []
    for order, (offset, entry) in enumerate(objects(source, tally)):
        payload = entry.get("jsonPayload")
        payload = payload if isinstance(payload, dict) else entry
        kind, stamp, name = (payload.get(key) for key in ("event_type", "timestamp", "job_name"))
        match = DATED.match(stamp) if isinstance(stamp, str) else None
        at = moment_ns(match) if match else None
        if kind not in _EVENTS or match is None or at is None:
            reason = "their event_type is none of this log's" if kind not in _EVENTS else "they have no timestamp"
            tally.add("entries", reason, offset)
            continue
        if not match["zone"]:
            tally.add("times", "they name no time zone and were read as UTC", offset)
        if len(found) >= _MOST:
            raise InputError(f"more than {_MOST:,} events", where=source.name, expected="the events of one job")
        name = clean(name)[:1000] if isinstance(name, str) and name else None
        found.append((at, _RANK[kind], order, offset, whole(payload.get("step")), _detail(payload), name))
    return found


def _detail(payload: dict) -> str | None:
    extra = {k: v for k, v in payload.items() if k not in _TIMES and v is not None}
    try:
        return clean(json.dumps(extra, sort_keys=True, allow_nan=False))[:10_000] if extra else None
    except (ValueError, RecursionError):
        return None


def _rows(events: list[tuple], name: str, tally: Tally, evidence: Evidence) -> Iterator[Item]:
    life = Buffer(
        "lifecycle", "kind", "start_ns", "end_ns", "attempt", "step", "detail", "order", "end_order", "source"
    )
    attempt, job, queued = -1, None, None

    def add(kind: str, start: tuple | None, end: tuple | None) -> None:
        told = start or end
        assert told is not None, "one of the two is there"
        at, _, order, _, step, detail, _ = told
        life.add(
            kind,
            at if start else None,
            end[0] if end else None,
            max(attempt, 0),
            step,
            detail,
            order,
            end[2] if end else None,
            name,
        )

    for event in events:
        at, rank, _, offset, step, *_ = event
        kind = _EVENTS[rank]
        if kind == "user_scheduled":
            if queued is not None:
                tally.add("waits for machines", "asked for again before the job began: the first counts", offset)
            queued = queued or event
        elif kind == "job_started":
            if job is not None and at - job[0] < START_NS:
                tally.add("starts", "told by several processes within seconds: the first counts", offset)
                continue
            if job is not None:
                add("job", job, None)
            if queued is not None:
                add("queued", queued, event)
            attempt, job, queued = attempt + 1, event, None
        elif kind in ("job_terminated", "user_terminated"):
            if kind == "user_terminated":
                evidence.add("user", offset, f"user_terminated {event[5] or ''}".strip(), max(attempt, 0), ts_ns=at)
            if job is None:
                tally.add("ends", "nothing had been started, or its end was told before", offset)
                continue
            add("job", job, event)
            job = None
        elif kind == "checkpoint_loaded" and not step:
            tally.add("loads of step 0", "the job began anew: nothing was restored", offset)
        else:
            add("checkpoint_restore" if kind == "checkpoint_loaded" else "checkpoint_save", None, event)
        yield from life.full()
    if job is not None:
        add("job", job, None)
    if queued is not None:
        add("queued", queued, None)
    yield from life.rest()

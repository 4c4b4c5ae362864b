"""Slurm's accounting of one job: when it waited, when each of its starts began and ended, and what ended it.

    job       from Start to End, one row an attempt: rows of one job's number (`sacct -D` tells those before a requeue)
              in order of Start. Without an end where it still ran. `detail` names job, state and nodes
    queued    from when it could have been started (Eligible, else Submit) to Start; for ever where it waited until it
              was cancelled or asked for
    evidence  what ended an attempt, from its state: TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, PREEMPTED, CANCELLED by a user,
              FAILED (a process ended with an exit code: of what, a log tells); steps that tell more than the job too
    chips     gres/gpu of AllocTRES, of all parts of a heterogeneous job; of attempts that differ the most

A run is one job's life. Several numbers are one job where they have one name, user and folder and never ran at once, as
jobs that are chained do: each is an attempt then, and that is said. Any other list of jobs is refused.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from catalog.chips import chip
from collectors.base import Fact, Item, Source
from collectors.reading import job_ran
from collectors.reading.evidence import Evidence
from collectors.reading.textlog import Buffer, Tally, clean
from collectors.training.slurm_json import of_json
from collectors.training.slurm_records import EXPECTED, GOING_ON, TOLD_BY_STEPS, Record, begins_table, of_table
from errors import InputError, QuestionError

NAME = "slurm_sacct"
TITLE = "Slurm accounting"
HELP = "Slurm's accounting of one job (`sacct -j ID -D -P` or `--json`): waiting, attempts, what ended each, GPUs."

CAUSES = {  # a job's state: what it tells of; of a state that is not here nothing
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "OUT_OF_MEMORY": "host_out_of_memory",
    "NODE_FAIL": "host",
    "BOOT_FAIL": "host",
    "PREEMPTED": "preemption",
    "REQUEUED": "requeue",
    "REQUEUE_HOLD": "requeue",
    "SPECIAL_EXIT": "requeue",
    "CANCELLED": "user",
    "FAILED": "process_exit",
    "LAUNCH_FAILED": "process_exit",
    "RECONFIG_FAIL": "process_exit",
}
_EVERYBODY = (
    "bash",
    "sh",
    "zsh",
    "wrap",
    "interactive",
    "job",
    "test",
    "python",
    "sys/dashboard",
)  # names of no one job
_COLUMNS = "JobID,JobName,User,State,ExitCode,Submit,Eligible,Start,End,Elapsed,AllocTRES,NodeList,WorkDir"
_ASK = f"TZ=UTC sacct -j JOBID -D -P -o {_COLUMNS}"
_MOST = 1_000_000  # records of a file
_LOOKED_AT = 1 << 14  # bytes that tell what a file is
_FOREVER = 1 << 63
_NAMED = 3


def sniff(source: Source) -> float:
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    if head.lstrip()[:1] == b"{":
        jobs = b'"jobs"' in head and (b'"submission"' in head and b'"current"' in head)
        return 0.95 if jobs and b'"time"' in head else 0.0
    if b"jobid" not in head.lower() or b"\0" in head:
        return 0.0
    first = head[:_LOOKED_AT].decode("utf-8", "replace").splitlines()
    return 0.9 if begins_table(first[:-1] if len(head) > _LOOKED_AT else first) else 0.0


def read(source: Source) -> Iterator[Item]:
    """The job's life. Raises InputError where there is no job, or where there are several."""
    tally = Tally()
    in_json = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    records: list[Record] = []
    for record in of_json(source, tally) if in_json else of_table(source, tally):
        if not record.step or record.state in TOLD_BY_STEPS:
            records.append(record)
        if len(records) > _MOST:
            raise InputError(
                f"more than {_MOST:,} records",
                where=source.name,
                expected=EXPECTED,
                advice=f"Ask for one job: `{_ASK}`.",
            )
    attempts = _attempts(source, _of_one_job(source, records, tally), tally)
    yield from _facts(attempts, tally)
    yield from _rows(source, attempts, [r for r in records if r.step], tally)
    yield from tally.lost()


def _of_one_job(source: Source, records: Sequence[Record], tally: Tally) -> list[Record]:
    """The records of jobs, without their steps, each told once, where they are one job's."""
    jobs = list(
        {(r.job, r.part, r.state, r.submit_ns, r.start_ns, r.end_ns): r for r in records if not r.step}.values()
    )
    if not jobs:
        raise InputError(
            "no record of a job", where=source.name, expected=EXPECTED, advice=f"Ask for the job itself: `{_ASK}`."
        )
    numbers = list(dict.fromkeys(r.job for r in jobs))
    if len(numbers) > 1:
        if not _chained(jobs):
            raise _several(source, jobs, len(numbers))
        reason = "they have one name and never ran at once: read as attempts of one job"
        tally.add("jobs", f"{reason}; `sacct -j {numbers[-1]} -D -P` tells of the last alone", count=len(numbers))
    return jobs


def _chained(jobs: Sequence[Record]) -> bool:
    """Whether jobs of several numbers are one that was submitted again and again."""
    names = {r.name for r in jobs}
    if len(names) > 1 or (names.pop() or "bash").lower() in _EVERYBODY:
        return False
    if any(len({*filter(None, told)}) > 1 for told in ((r.user for r in jobs), (r.folder for r in jobs))):
        return False
    if any(r.start_ns is None and (r.ran and r.state != "PENDING") for r in jobs):
        return False
    held = sorted(
        (r.start_ns, r.end_ns or _FOREVER, r.job)
        for r in jobs
        if r.start_ns is not None and r.ran and r.state != "PENDING"
    )
    return bool(held) and all(end <= start or job == other for (_, end, job), (start, _, other) in pairwise(held))


def _several(source: Source, jobs: Sequence[Record], count: int) -> InputError:
    states = ", ".join(
        f"{n:,} {state or 'of no known state'}" for state, n in Counter(r.state for r in jobs).most_common(6)
    )
    named = Counter(r.name for r in jobs if r.name).most_common(_NAMED)
    names = ", ".join(repr(name[:60]) for name, _ in named)
    return InputError(
        f"a list of {count:,} jobs ({states}){f', such as {names}' if names else ''}: a run is the life of one",
        where=source.name,
        expected="the records of one job, or of jobs of one name that ran one after another",
        advice=f"Ask for one of them: `{_ASK}`.",
    )


def _attempts(source: Source, jobs: Sequence[Record], tally: Tally) -> list[list[Record]]:
    """The parts of each attempt, in order of time: one, but of a heterogeneous job."""
    parts: dict[tuple, list[Record]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for record in sorted(jobs, key=_when):
        nth = seen[record.job, record.part] = seen[record.job, record.part] + 1
        parts.setdefault((record.job, nth), []).append(record)
    attempts = sorted(parts.values(), key=lambda parts: min(map(_when, parts)))
    missing = max((r.restarts for r in jobs), default=0) - (len(attempts) - 1)
    if missing > 0:
        tally.add(
            "attempts",
            "the job was put back into the queue, and rows of earlier starts are not there: `sacct -D` tells them",
            count=missing,
        )
    if all(r.start_ns is None and r.submit_ns is None and (not r.ran or r.state not in CAUSES) for r in jobs):
        state = ", ".join(dict.fromkeys(r.state for r in jobs if r.state))
        raise InputError(
            f"no time of the job in it{f', and nothing that ended it ({state})' if state else ''}",
            where=source.name,
            expected="columns such as Submit, Start, End and State",
            advice=f"Ask for them: `{_ASK}`.",
        )
    return attempts


def _when(record: Record) -> tuple[int, int]:
    """Where a record stands among those of its job: one that has not begun is the last."""
    start = record.start_ns if record.state != "PENDING" else None
    return (start if start is not None else _FOREVER, record.submit_ns or 0)


def _facts(attempts: Sequence[Sequence[Record]], tally: Tally) -> Iterator[Item]:
    everything = [r for parts in attempts for r in parts]
    if name := next((r.name for r in reversed(everything) if r.name), None):
        yield Fact("job_name", name)
    gpus = [sum(n for r in parts if (n := r.gpus)) for parts in attempts]
    if told := {n for n in gpus if n}:
        dated = [ran for parts, n in zip(attempts, gpus, strict=True) if n and (ran := _ran(parts)) is not None]
        if len(told) > 1 and len(dated) < sum(map(bool, gpus)):
            tally.add(
                "GPUs", f"from {min(told):,} to {max(told):,} by attempt: the most counts for all", count=len(told)
            )
        else:
            yield from dated
        yield Fact("chips", max(told))
    kinds = {r.gpu for r in everything if r.gpu}
    if len(kinds) == 1 and (kind := _known(kinds.pop())) is not None:
        yield Fact("chip", kind)


def _ran(parts: Sequence[Record]) -> Fact | None:
    """On how many GPUs an attempt ran, and when; None where that is not told."""
    first, last = min(_when(r)[0] for r in parts), max((r.end_ns or 0 for r in parts), default=0)
    told = {"chips": sum(r.gpus or 0 for r in parts), "first_ns": first, "last_ns": last, job_ran.SCHEDULER: True}
    return Fact(job_ran.NAME, told) if first < last else None


def _known(kind: str) -> str | None:
    """A type of GPU as a site calls it, where the catalogue knows one called so."""
    try:
        return chip(kind).name
    except QuestionError:
        return None


def _rows(
    source: Source, attempts: Sequence[Sequence[Record]], steps: Iterable[Record], tally: Tally
) -> Iterator[Item]:
    name = clean(source.name)
    life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "detail", "order", "end_order", "source")
    evidence = Evidence(source, tally)
    begun: dict[str, list[tuple[int, int, int]]] = {}  # by job: from, to, attempt
    attempt = 0
    for order, parts in enumerate(attempts):
        first = min(parts, key=_when)
        held = [r for r in parts if r.ran and r.start_ns is not None and r.state != "PENDING"]
        if first.submit_ns is not None:
            until = min((r.start_ns for r in held if r.start_ns is not None), default=first.end_ns)
            life.add("queued", first.submit_ns, until, attempt, _detail(parts), 2 * order, None, name)
        if held:
            start = min(r.start_ns for r in held if r.start_ns is not None)
            ends = [r.end_ns for r in held]
            end = (
                None
                if None in ends or any(r.state in GOING_ON for r in held)
                else max(e for e in ends if e is not None)
            )
            life.add("job", start, end, attempt, _detail(parts), 2 * order + 1, 2 * order + 1, name)
            begun.setdefault(first.job, []).append((start, end or _FOREVER, attempt))
        for record in parts:
            if cause := CAUSES.get(record.state):
                _tell(evidence, cause, record, attempt)
        attempt += bool(held) or not any(r.submit_ns for r in parts)
        yield from life.full()
    for step in steps:
        mine = begun.get(step.job, [])
        at = bisect_right(mine, (_FOREVER if step.start_ns is None else step.start_ns, _FOREVER, 0)) - 1
        if at >= 0 and (step.start_ns or 0) <= mine[at][1]:
            _tell(evidence, CAUSES[step.state], step, mine[at][2])
    yield from life.rest()
    yield from evidence.rest()


def _tell(evidence: Evidence, cause: str, record: Record, attempt: int) -> None:
    number = record.job + (f"+{record.part}" if record.part else "") + (f".{record.step}" if record.step else "")
    told = [
        f"Slurm job {number}",
        *(f"{name}={value}" for name, value in record.told.items() if value not in ("", "None")),
    ]
    nodes = record.failed_node or record.nodes
    if nodes:
        told.append(f"NodeList={nodes}")
    host = record.failed_node or (nodes if nodes and not {*"[,"} & {*nodes} else None)
    evidence.add(cause, record.offset or 0, " ".join(told), attempt, ts_ns=record.end_ns, host=host, severity="error")


def _detail(parts: Sequence[Record]) -> str:
    first = parts[0]
    told = {
        "scheduler": "slurm",
        "outcome": "interrupted" if any(r.state in CAUSES for r in parts) else None,
        "job": first.job,
        "state": "+".join(dict.fromkeys(r.state for r in parts)),
        "nodes": first.nodes,
        "gpus": sum(r.gpus or 0 for r in parts) or None,
    }
    return json.dumps({key: value for key, value in told.items() if value})

"""Runs of MLflow: its SQLite database (`mlflow.db`), or its folder `mlruns/`.

A store may hold many runs, and a run here is one job: of those that are not deleted, the one that was started last
counts, those that log steps before those that log but single values, and these before those that log nothing. Which
that is, and how another is chosen, is said.

    scalars       metrics, by the time and step that they were logged for; `system/` ones without a step, as theirs
                  counts samples. Infinity is the largest number there, and not a number is marked
    steps         where a metric's name tells how long a step took (`collectors.training.tracked`)
    memory        system/gpu_N_memory_usage_megabytes * 10^6 as bytes_in_use of device N
    job           start_time to end_time, in ms; open-ended while it runs, when its last metric (`custom`, an instant)
                  is its last sign of life
    evidence      that it FAILED (process_exit) or was KILLED (terminated), at its end
    facts         job_name (the run's name); of its parameters planned steps, batch, length of a sequence, parallelism
"""

import re
from array import array
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from collectors.base import Fact, Item, Source
from collectors.ingesting.folders import RunFolder
from collectors.reading.evidence import Evidence
from collectors.reading.sqlite import MAGIC, NULL, Database, tells_of
from collectors.reading.textlog import Buffer, Tally, clean, within_64_bits
from collectors.training.mlflow_stores import EXPECTED, MOST_POINTS, Files, Store, StoredRun, Tables
from collectors.training.parameters import facts_of
from collectors.training.tracked import Tracked
from errors import InputError

NAME = "mlflow"
TITLE = "MLflow store"
HELP = "Runs of MLflow, its SQLite database or the folder mlruns/: metrics by step, system metrics, start, end, status."

_TABLES = (b"alembic_version", b"experiments", b"metrics", b"params", b"runs")
_SYSTEM = re.compile(r"system/(?:(?P<node>.+)/)?(?P<what>[^/]+)", re.DOTALL)
_MEMORY = re.compile(r"gpu_(\d{1,5})_memory_usage_megabytes", re.ASCII)
_UNITS = (("_percentage", "percent"), ("_megabytes", "MB"), ("_watts", "W"))
_ENDS = {"FAILED": "process_exit", "KILLED": "terminated"}
_NAMED = 5  # other runs that are named
_ADVICE = (
    "to read another, give its folder of mlruns/, or a copy of the database without the rest: sqlite3 COPY "
    "\"delete from runs where run_uuid <> 'ID'\""
)


def sniff(source: Source) -> float:
    if isinstance(source, RunFolder):
        return 1.0
    return 0.95 if source.head.startswith(MAGIC) and all(tells_of(source, (name,)) for name in _TABLES) else 0.0


def read(source: Source) -> Iterator[Item]:
    """One run's metrics, its life and facts. Raises InputError where there is no run with a metric or a start."""
    with ExitStack() as scope:
        store: Store
        if isinstance(source, RunFolder):
            store = Files(source.parts, source.name)
        else:
            database = Database(source, EXPECTED, "Copy it again while no job writes to it")
            store = Tables(scope.enter_context(database), source.name)
        yield from _read(source, store)


def _read(source: Source, store: Store) -> Iterator[Item]:
    tally = Tally()
    run = _chosen(source, store.runs(), tally)
    metrics = _Metrics(source, tally)
    yield from metrics.read(store, run)
    yield from _life(source, run, metrics.last_ns, tally)
    if run.name:
        yield Fact("job_name", run.name)
    for name, value in facts_of(store.named(run, "params")).items():
        yield Fact(name, value)
    yield from store.lost()
    yield from tally.lost()


def _chosen(source: Source, runs: list[StoredRun], tally: Tally) -> StoredRun:
    """The run that is read; which others there are is said."""
    there = [run for run in runs if not run.deleted and (run.logs or run.times[0] is not None)]
    if not there:
        what = "no run that logged a metric" if not runs else "its runs are deleted, or never began"
        raise InputError(what, where=source.name, expected=EXPECTED, advice="Is it the store that the job logged to?")
    best, *others = sorted(there, key=lambda run: (-run.logs, -(run.times[0] or 0), run.id))
    if others:
        named = ", ".join(_called(run) for run in others[:_NAMED])
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        kind = ("", " with metrics", " that log steps")[best.logs]
        why = f"{_called(best)} is read, of those{kind} the one that was started last; left out: {named}{more}"
        tally.add("other runs", f"{why}; {_ADVICE}", count=len(others))
    return best


def _called(run: StoredRun) -> str:
    return f"{clean(run.name)[:60]!r} ({clean(run.id)[:32]})" if run.name else clean(run.id)[:32]


def _life(source: Source, run: StoredRun, last_ns: int | None, tally: Tally) -> Iterator[Item]:
    """When it began and ended, and how. Of one without an end the last metric is a sign of life."""
    start, end = run.times
    end = None if run.status in ("RUNNING", "SCHEDULED") else end
    life = Buffer("lifecycle", "kind", "start_ns", "end_ns", "attempt", "detail", "order", "source")
    if start is not None:
        life.add("job", start, end, 0, None, 0, source.name)
        if end is None and last_ns is not None and last_ns > start:
            life.add("custom", last_ns, last_ns, 0, "last metric", 1, source.name)
    yield from life.rest()
    if cause := _ENDS.get(run.status):
        evidence = Evidence(source, tally)
        text = f"MLflow: the run {_called(run)} has the status {run.status}"
        evidence.add(cause, 0, text, None, ts_ns=end, severity="error")
        yield from evidence.rest()


class _Metrics:
    """What one run logged, put into the order of its times: a database keeps metrics by name."""

    def __init__(self, source: Source, tally: Tally):
        self._tracked = Tracked(source, NAME, tally)
        self._memory = Buffer("memory", "host", "device", "ts_ns", "kind", "bytes", "name")
        self._tally = tally
        self.last_ns: int | None = None
        self._names: dict[str, int] = {}
        self._at, self._step, self._code, self._value = array("q"), array("q"), array("l"), array("d")

    def read(self, store: Store, run: StoredRun) -> Iterator[Item]:
        for name, at, step, value in store.points(run):
            self._at.append(NULL if at is None else at)
            self._step.append(NULL if step is None else step)
            self._code.append(self._names.setdefault(name, len(self._names)))
            self._value.append(value)
        if len(self._at) >= MOST_POINTS:
            self._tally.add("further values", f"of one run {MOST_POINTS:,} are read")
        yield from self._in_order()

    def _in_order(self) -> Iterator[Item]:
        known = [_Name(name) for name in self._names]
        step = np.array(self._step)
        last = max(self._at, default=NULL)
        self.last_ns = None if last == NULL else last
        for n in np.lexsort((step, np.array(self._at))).tolist():
            name, at, value = known[self._code[n]], self._at[n], self._value[n]
            at = None if at == NULL else at
            number = None if self._step[n] == NULL or name.system else self._step[n]
            self._tracked.add(number, at, name.text, value, name.unit)
            if name.device is not None and at is not None and 0 <= value < 1e12:
                size = within_64_bits(round(value * 1e6))
                self._memory.add(name.node, name.device, at, "bytes_in_use", size, "NVML")
                yield from self._memory.full()
            yield from self._tracked.full()
        yield from self._tracked.rest()
        yield from self._memory.rest()


class _Name:
    """A metric's name: whether it is one of the system's, of which node and device, and its unit."""

    def __init__(self, text: str):
        found = _SYSTEM.fullmatch(text)
        memory = _MEMORY.fullmatch(found["what"]) if found else None
        self.text, self.system = text, found is not None
        self.node = clean(found["node"])[:200] if found and found["node"] else None
        self.device = int(memory[1]) if memory else None
        self.unit = next((unit for ending, unit in _UNITS if found and text.endswith(ending)), None)

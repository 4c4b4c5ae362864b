"""Who asks workers for a timeline: which tasks there are, and what they left put into one."""

import hashlib
import json
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from analyzers.base import Facts
from analyzers.timeline import stored
from analyzers.timeline.booked import Booked, booked, job_strip
from analyzers.timeline.building import EVENTS, Plan, planned
from analyzers.timeline.gathered import chunks
from analyzers.timeline.lanes import parts
from analyzers.timeline.progress import PLACING, READING, SUMMING, tell
from analyzers.timeline.pyramid import LEAST_EVENTS, Made, chosen, made_of
from analyzers.timeline.spread import work
from analyzers.timeline.spread.joining import joined
from analyzers.timeline.spread.work import BOOKED, NUMBERS, Left
from runs.parts import part_of
from runs.schema import SCHEMAS
from runs.spread.engine import Engine, EngineError, Task, Work
from runs.tables import ParquetTables, Stretch, Where, frame

TASK_BYTES = 8 << 20  # of `op_events` that a task reads
TASK_FILES = 64
PLACED = 1 << 22  # events that a task places, or one lane; and the least
LEAST_PLACED = 1 << 19
SHARE = 64  # of all events, between the two
OF_HOSTS = ("captures", "steps", "lifecycle")  # tables of which strips of some hosts need all parts


def spread(tables: ParquetTables, facts: Facts, key: str, above: Path, folder: Path, engine: Engine) -> None:
    """Write the timeline's files into `folder`. `key`: what it is made of; `above`: where tasks leave what they make.
    Raises EngineError where the engine cannot, and what a timeline made here raises."""
    asking = _Asking(tables, key, above, engine)
    lost = Counter[str]()
    sources = asking.put_down(facts, lost)
    plan = planned([told.put_down for _, told in sources if told.put_down is not None])
    placed = asking.placed(plan, sources)
    made, summed = asking.summed(placed)
    folders = [above / name for name, _ in placed], [above / name for name in summed]
    columns = joined(folder / stored.WHOLE, asking.go_on, *folders)
    lanes, row, kinds = list[tuple[Any, ...]](), 0, set[int]()
    for _, told in placed:
        assert told.placed is not None
        lanes += [(row + first, *more) for first, *more in told.placed.lanes]
        row, kinds = row + told.placed.rows, kinds | told.placed.kinds
    stored.write(folder, plan.built(lanes, made, kinds, tables, lost), columns)


class _Asking:
    def __init__(self, tables: ParquetTables, key: str, above: Path, engine: Engine):
        self._tables, self._key, self._above, self._engine = tables, key, above, engine
        self._rows = sum(tables.rows(name) for name in EVENTS)

    def put_down(self, facts: Facts, lost: Counter[str]) -> list[tuple[str, Left]]:
        """(folder, what is told) of each task: what the job did, which is put down here, strips, events."""
        tell(READING, 0, self._rows)
        of = booked(self._tables, facts)
        units = list(_units(self._tables))
        tasks = [] if of is None else list(self._of_devices(of, len(units)))
        tasks += [self._of_events(unit) for unit in units]
        here = chain(() if of is None else job_strip(of), parts(self._tables, facts, lost))
        told = [("here", work.leave(self._above, "here", lambda into: work.left_down(here, into)))]
        return told + list(self._done("put_down", READING, tasks))

    def _of_events(self, unit: Sequence[Stretch]) -> Task:
        files = [relative for relative, _ in unit]
        ranges = [part.captures if (part := part_of(relative)) else None for relative in files]
        where: Where = []
        if known := [of for of in ranges if of is not None]:
            where = [("capture", ">=", min(a for a, _ in known)), ("capture", "<=", max(b for _, b in known))]
        needed = [*files, *self._tables.named("captures"), *self._tables.named("ops", where if all(ranges) else None)]
        asked = {"files": [[relative, groups] for relative, groups in unit], "tables": self._tables.told(needed)}
        return self._task("events", asked, _weight(self._tables, unit))

    def _of_devices(self, of: Booked, count: int) -> Iterator[Task]:
        """The strips of devices, host by host. What all of them need is put down beside."""
        if of.waited is None:
            return
        _keep(self._above / BOOKED, replace(of, devices=(), waited=None))
        hosts = list(dict.fromkeys(host for host, _ in of.devices))
        captures = frame(self._tables, "captures", ["capture", "host"]).dropna()
        whole = sum(self._tables.bytes_of(relative) for relative in self._tables.named("op_events"))
        for n, some in enumerate(np.array_split(np.array(hosts, object), max(min(count, len(hosts)), 1))):
            mine = set(some)
            rows = of.waited.rows
            name = f"{n}.{work.WAITED}"
            _keep(self._above / name, replace(of.waited, rows=rows[rows["host"].isin(mine)]))
            numbers = [int(c) for c in captures.loc[captures["host"].isin(mine), "capture"]]
            asked = {"devices": [list(one) for one in of.devices if one[0] in mine], "waited": name}
            asked["tables"] = self._tables.told(self._of_captures(numbers))
            yield self._task("devices", asked, whole * len(some) // len(hosts))

    def _of_captures(self, numbers: Sequence[int]) -> Iterator[str]:
        for name in SCHEMAS:
            yield from self._tables.named(name, None if name in OF_HOSTS else [("capture", "in", numbers)])

    def placed(self, plan: Plan, sources: Sequence[tuple[str, Left]]) -> list[tuple[str, Left]]:
        """(folder, what is told) of each task, in the order of lanes."""
        for (name, _), numbers in zip(sources, plan.numbers, strict=True):
            np.save(self._above / name / NUMBERS, numbers)
        sizes = plan.stretches.sizes
        most = min(max(int(sizes.sum()) // SHARE, LEAST_PLACED), PLACED)
        tasks = [self._of_lanes(plan, [name for name, _ in sources], a, b) for a, b in chunks(sizes, most)]
        return list(self._done("place", PLACING, tasks))

    def _of_lanes(self, plan: Plan, sources: Sequence[str], a: int, b: int) -> Task:
        mine = plan.stretches.among(a, b)
        which, source = np.unique(mine.source, return_inverse=True)
        asked = {
            "sources": [sources[n] for n in which],
            "source": source.tolist(),
            "lanes": mine.lanes,
            "stretches": {name: values.tolist() for name, values in mine.told.items()},
            "clock": asdict(plan.clock),
            "ranges": plan.ranges,
        }
        return self._task("lanes", asked, int(mine.sizes.sum()))

    def summed(self, placed: Sequence[tuple[str, Left]]) -> tuple[Made, list[str]]:
        """The levels, and the folder of each task; none where events are so few that there are no levels."""
        found = [told.placed.counted for _, told in placed if told.placed is not None]
        if sum(of.events for of in found) < LEAST_EVENTS:
            return Made(), []
        which = chosen(found)
        tasks, begun = list[Task](), 0
        for (name, _), of in zip(placed, found, strict=True):
            tasks.append(self._task("sums", {"placed": name, "chosen": asdict(which), "begun": begun}, of.events))
            begun += of.events
        told = list(self._done("sum_up", SUMMING, tasks))
        return made_of(which, [of.sums for _, of in told if of.sums is not None]), [name for name, _ in told]

    def go_on(self) -> None:
        """Raises where whoever listens ends it."""
        tell(SUMMING, self._rows, self._rows)

    def _task(self, what: str, asked: dict[str, Any], weight: int) -> Task:
        text = json.dumps([what, self._key, asked], sort_keys=True)
        key = f"{what}-{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
        return Task(key=key, asked={**asked, "key": key, "above": str(self._above)}, weight=weight)

    def _done(self, function: str, stage: str, tasks: Sequence[Task]) -> Iterator[tuple[str, Left]]:
        """Of each task the folder and what it told. Whoever listens hears how far they are."""
        whole, done = max(sum(task.weight for task in tasks), 1), 0

        def check() -> None:
            tell(stage, done * self._rows // whole, self._rows)

        def report(weight: int) -> None:
            nonlocal done
            done = max(done, weight)

        asked = Work(function=f"{work.__name__}:{function}", stamp=f"{work.__name__}:stamp")
        for outcome in self._engine.map(asked, tasks, check, report):
            if outcome.problem:
                raise EngineError(outcome.problem)
            yield outcome.task.key, outcome.answer
        tell(stage, self._rows, self._rows)


def _units(tables: ParquetTables) -> Iterator[Sequence[Stretch]]:
    """The files of `op_events` by tasks; one that is too large for a task by groups of its rows."""
    waiting: list[Stretch] = []
    size = 0
    for relative in tables.named("op_events"):
        length = tables.bytes_of(relative)
        if waiting and (size + length > TASK_BYTES or len(waiting) == TASK_FILES):
            yield waiting
            waiting, size = [], 0
        if length > 2 * TASK_BYTES:
            yield from ([(relative, groups)] for groups in _groups(tables, relative))
            continue
        waiting.append((relative, None))
        size += length
    if waiting:
        yield waiting


def _groups(tables: ParquetTables, relative: str) -> Iterator[tuple[int, int]]:
    """From which to which group of rows a task reads of a file."""
    rows = tables.groups(relative)
    each = max(sum(rows) * TASK_BYTES // tables.bytes_of(relative), 1)
    return chunks(np.array(rows, np.int64), each)


def _weight(tables: ParquetTables, unit: Sequence[Stretch]) -> int:
    return sum(min(tables.bytes_of(relative), TASK_BYTES if groups else 1 << 62) for relative, groups in unit)


def _keep(path: Path, what: Any) -> None:
    with path.open("wb") as f:
        pickle.dump(what, f, protocol=5)

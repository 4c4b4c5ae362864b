"""The files of a run given to an engine, and what it made of them put into the run.

Files that lie somewhere go to its workers, several small ones as one task; what this process alone has (lines taken out
of an export, a sidecar) it reads itself, to parts as well, so that rows stand in the order of the files.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Protocol, Self

from collectors.base import Fact, Item, Lost
from collectors.ingesting.batches import task_bytes
from collectors.ingesting.captures import FarTraced, Traced
from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.items import items_of
from collectors.ingesting.parts import work
from collectors.ingesting.parts.records import FileRead, PartMade, Stored, TaskRead
from collectors.ingesting.unpack import SafeSource
from runs.integrity import Mark
from runs.objects.coming import Coming
from runs.parts import one_file
from runs.spread.engine import Engine, Outcome, Task, Work
from runs.writer import RunWriter

READ = Work(function=f"{work.__name__}:read", stamp=f"{work.__name__}:stamp")
TASK_FILES = 64
GATHERED_BYTES = 1 << 22  # a table of which all parts take no more is one file in the run
MANY_FILES, MANY_BYTES = 64, 1 << 30  # a run of so many files and bytes is read in parts, whatever was asked for


class Job(Protocol):
    """A file that is read."""

    @property
    def source(self) -> SafeSource: ...
    @property
    def collector(self) -> Any: ...
    @property
    def digest(self) -> str: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True)
class _Here:
    """Files that this process reads."""

    jobs: tuple[Job, ...]


class Spread:
    """What files hold, read by the workers of an engine, who leave it below `folder`, or in the store at `coming`.
    `check` may raise at any time; `report` is told how many bytes of all files were read. `far`: no worker sees what
    lies below `folder`.

    Has the methods by which `collectors.ingest` asks for what is read ahead. To be asked in the order of the files.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        engine: Engine,
        folder: Path,
        check: Callable[[], None],
        report: Callable[[int], None] = lambda done: None,
        coming: Coming | None = None,
        far: bool = False,
    ):
        self._engine, self._folder, self._check, self._report = engine, folder / "parts", check, report
        self._coming = coming
        self._folder.mkdir()
        into = {"folder": str(self._folder)} if coming is None else {"coming": dict(vars(coming))}
        self._planned = list(planned(jobs, into, folder, far))
        self._read: dict[int, FileRead] = {}
        self._tasks: list[TaskRead] = []
        self.peak_bytes = 0  # the most memory that a worker had

    def __enter__(self) -> Self:
        tasks = [task for task in self._planned if isinstance(task, Task)]
        self._outcomes = self._engine.map(READ, tasks, self._check, self._report)
        self._next = iter(self._planned)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """The engine is ended by whoever began it."""

    def has(self, source: SafeSource) -> bool:
        return True

    def bytes_read(self, source: SafeSource) -> int:
        return 0

    def items(self, source: SafeSource, report: Callable[[int], None]) -> Iterator[Fact | Lost | Stored]:
        """What the file tells of the run; its rows lie in parts by then. Raises InputError as reading it would."""
        while source.index not in self._read:
            self._take(next(self._next))
        read = self._read.pop(source.index)
        yield from read.told
        if (error := read.error) is not None:
            raise error

    def _take(self, what: "Task | _Here") -> None:
        if isinstance(what, _Here):
            holding = ((job.source.index, self._asking(items_of(job.source, job.collector))) for job in what.jobs)
            self._keep(work.written(self._folder, key_of(what.jobs), holding))
            return
        outcome = next(self._outcomes)
        if outcome.problem:
            self._failed(outcome)
        else:
            self._keep(outcome.answer)

    def _asking(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same, and whether to go on is asked at each."""
        for item in items:
            self._check()
            yield item

    def _keep(self, told: TaskRead) -> None:
        self._tasks.append(told)
        self._read.update({read.index: read for read in told.files})
        self.peak_bytes = max(self.peak_bytes, told.peak_bytes)

    def _failed(self, outcome: Outcome) -> None:
        """A task that ended its workers: of several files, which of them did is found out one by one."""
        files = outcome.task.asked["files"]
        if len(files) > 1:
            into = {name: what for name, what in outcome.task.asked.items() if name not in ("files", "key")}
            alone = [_task([file], into, f"{outcome.task.key}-{file['index']}", 0) for file in files]
            for one in self._engine.map(READ, alone, self._check, lambda done: None):
                self._failed(one) if one.problem else self._keep(one.answer)
            return
        file = files[0]
        advice = "Where memory was short, give the workers more, or leave this file out"
        fault = {"what": outcome.problem, "where": file["name"], "advice": advice}
        self._read[file["index"]] = FileRead(index=file["index"], told=(), fault=fault)

    def settle(self, writer: RunWriter) -> None:
        """Put what was read into the run: parts of large tables as they are, those of a small one as one file."""
        tables: dict[str, list[tuple[PartMade, TaskRead]]] = {}
        blobs = set[str]()
        for told in self._tasks:
            for made in told.parts:
                tables.setdefault(made.part.table, []).append((made, told))
            for name, known in told.blobs.items():
                if name not in blobs:  # programs are named after what they hold: several tasks may bring one
                    _take(writer, f"blobs/{name}", told, Path("blobs", name), known)
                    blobs.add(name)
        for table, parts in tables.items():
            parts.sort(key=lambda one: one[0].part.number)
            self._check()
            if len(parts) > 1 and sum(made.mark.bytes for made, _ in parts) <= GATHERED_BYTES:
                self._gather(table, parts, writer)
                continue
            for made, told in parts:
                relative = made.part.relative if len(parts) > 1 else one_file(table)
                _take(writer, relative, told, Path(work.part_path(told, made).name), made.mark)
            writer.counts[table] = sum(made.rows for made, _ in parts)

    def _gather(self, table: str, parts: Sequence[tuple[PartMade, TaskRead]], writer: RunWriter) -> None:
        for made, told in parts:
            self._check()
            path = work.part_path(told, made)
            for batch in work.rows_of(self._coming.read(path.as_posix()) if told.there and self._coming else path):
                writer.rows(table, batch)


def _take(writer: RunWriter, relative: str, told: TaskRead, name: Path, known: Mark) -> None:
    path = Path(told.folder) / name
    if told.there:
        writer.take_there(relative, path.as_posix(), known)
    else:
        writer.take(relative, path, known)


def planned(jobs: Sequence[Job], into: dict[str, Any], scratch: Path, far: bool = False) -> Iterator["Task | _Here"]:
    """Who reads which files, in their order. `into`: where what is read is left; `far`: what lies below `scratch` no
    worker sees. Which files go together is the same in either case, and so are the parts."""
    waiting: list[Job] = []
    enough = task_bytes(sum(job.size for job in jobs))

    def unpacked(job: Job) -> bool:
        beside = job.source.captures if isinstance(job.source, Traced) else ()
        return any(path.is_relative_to(scratch) for path in (job.source.path, *(path for _, path in beside)))

    def together() -> Iterator["Task | _Here"]:
        if waiting:
            yield _Here(tuple(waiting)) if far and unpacked(waiting[0]) else _together(waiting, into)
            waiting.clear()

    for job in jobs:
        if not lies_there(job) or (waiting and unpacked(job) != unpacked(waiting[0])):
            yield from together()
        if not lies_there(job):
            yield _Here((job,))
            continue
        waiting.append(job)
        if sum(one.size for one in waiting) >= enough or len(waiting) == TASK_FILES:
            yield from together()
    yield from together()


def lies_there(job: Job) -> bool:
    """Whether a worker can read the file as it lies there."""
    return type(job.source) in (SafeSource, FarSource, Traced, FarTraced) and isinstance(job.collector, ModuleType)


def many(jobs: Sequence[Job]) -> bool:
    """Whether a run of these files is read in parts, whatever was asked for."""
    fitting = [job.size for job in jobs if lies_there(job)]
    return len(fitting) >= MANY_FILES and sum(fitting) >= MANY_BYTES


def _together(jobs: Sequence[Job], into: dict[str, Any]) -> Task:
    return _task([_asked(job) for job in jobs], into, key_of(jobs), sum(job.size for job in jobs))


def _asked(job: Job) -> dict[str, Any]:
    source = job.source
    told = {"name": source.name, "index": source.index, "collector": job.collector.NAME}
    if isinstance(source, FarTraced):
        told["captures"] = [{"name": one.name, **_far(one, one.looked.digest)} for one in source.beside]
    if isinstance(source, FarSource):
        return told | _far(source, job.digest)
    if isinstance(source, Traced):
        told["captures"] = [{"name": name, "path": str(path.absolute())} for name, path in source.captures]
    return told | {"path": str(source.path.absolute())}


def _far(source: FarSource, digest: str) -> dict[str, Any]:
    return {"far": dict(vars(source.far)), "digest": digest}


def _task(files: list[dict[str, Any]], into: dict[str, Any], key: str, weight: int) -> Task:
    return Task(key=key, asked={**into, "key": key, "files": files}, weight=weight)


def key_of(jobs: Sequence[Job]) -> str:
    """What the rows of these files depend on: their bytes, names and numbers, what lies beside them, and what reads
    them."""
    files = [
        [job.digest, job.source.name, job.source.index, job.collector.NAME, getattr(job.source, "digests", ())]
        for job in jobs
    ]
    return hashlib.sha256(json.dumps([files, work.stamp()]).encode("utf-8", "surrogateescape")).hexdigest()[:32]

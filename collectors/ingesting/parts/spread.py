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
from collectors.ingesting.items import items_of
from collectors.ingesting.parts import work
from collectors.ingesting.parts.records import FileRead, PartMade, Stored, TaskRead
from collectors.ingesting.unpack import SafeSource
from runs.parts import one_file
from runs.spread.engine import Engine, Outcome, Task, Work
from runs.writer import RunWriter

READ = Work(function=f"{work.__name__}:read", stamp=f"{work.__name__}:stamp")
TASK_BYTES = 1 << 25  # of files as they lie there: small ones wait until there are so many for one task
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
    """A file that this process reads."""

    job: Job


class Spread:
    """What files hold, read by the workers of an engine below `folder`. `check` may raise at any time; `report` is told
    how many bytes of all files were read.

    Has the methods by which `collectors.ingest` asks for what is read ahead. To be asked in the order of the files.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        engine: Engine,
        folder: Path,
        check: Callable[[], None],
        report: Callable[[int], None] = lambda done: None,
    ):
        self._engine, self._folder, self._check, self._report = engine, folder / "parts", check, report
        self._folder.mkdir()
        self._planned = list(planned(jobs, self._folder))
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
            job = what.job
            key, items = key_of([job]), self._asking(items_of(job.source, job.collector))
            self._keep(work.written(self._folder, key, [(job.source.index, items)]))
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
            alone = [_task([file], self._folder, f"{outcome.task.key}-{file['index']}", 0) for file in files]
            for one in self._engine.map(READ, alone, self._check, lambda done: None):
                self._failed(one) if one.problem else self._keep(one.answer)
            return
        file = files[0]
        advice = "Where memory was short, give the workers more, or leave this file out"
        fault = {"what": outcome.problem, "where": file["name"], "advice": advice}
        self._read[file["index"]] = FileRead(index=file["index"], told=(), fault=fault)

    def settle(self, writer: RunWriter) -> None:
        """Put what was read into the run: parts of large tables as they are, those of a small one as one file."""
        tables: dict[str, list[tuple[PartMade, Path]]] = {}
        for told in self._tasks:
            for made in told.parts:
                tables.setdefault(made.part.table, []).append((made, work.part_path(told, made)))
            for name, known in told.blobs.items():
                writer.take(f"blobs/{name}", Path(told.folder) / "blobs" / name, known)
        for table, parts in tables.items():
            parts.sort(key=lambda one: one[0].part.number)
            self._check()
            if len(parts) > 1 and sum(made.mark.bytes for made, _ in parts) <= GATHERED_BYTES:
                _gather(table, [path for _, path in parts], writer, self._check)
                continue
            for made, path in parts:
                writer.take(made.part.relative if len(parts) > 1 else one_file(table), path, made.mark)
            writer.counts[table] = sum(made.rows for made, _ in parts)


def _gather(table: str, paths: Sequence[Path], writer: RunWriter, check: Callable[[], None]) -> None:
    for path in paths:
        check()
        for batch in work.rows_of(path):
            writer.rows(table, batch)


def planned(jobs: Sequence[Job], folder: Path) -> Iterator["Task | _Here"]:
    """Who reads which files, in their order."""
    waiting: list[Job] = []
    for job in jobs:
        if not lies_there(job):
            yield from _together(waiting, folder)
            yield _Here(job)
            waiting = []
            continue
        waiting.append(job)
        if sum(one.size for one in waiting) >= TASK_BYTES or len(waiting) == TASK_FILES:
            yield from _together(waiting, folder)
            waiting = []
    yield from _together(waiting, folder)


def lies_there(job: Job) -> bool:
    """Whether a worker can read the file as it lies there."""
    return type(job.source) is SafeSource and isinstance(job.collector, ModuleType)


def many(jobs: Sequence[Job]) -> bool:
    """Whether a run of these files is read in parts, whatever was asked for."""
    fitting = [job.size for job in jobs if lies_there(job)]
    return len(fitting) >= MANY_FILES and sum(fitting) >= MANY_BYTES


def _together(jobs: Sequence[Job], folder: Path) -> Iterator[Task]:
    if jobs:
        files = [
            {
                "path": str(job.source.path.absolute()),
                "name": job.source.name,
                "index": job.source.index,
                "collector": job.collector.NAME,
            }
            for job in jobs
        ]
        yield _task(files, folder, key_of(jobs), sum(job.size for job in jobs))


def _task(files: list[dict[str, Any]], folder: Path, key: str, weight: int) -> Task:
    return Task(key=key, asked={"folder": str(folder), "key": key, "files": files}, weight=weight)


def key_of(jobs: Sequence[Job]) -> str:
    """What the rows of these files depend on: their bytes, names and numbers, and what reads them."""
    files = [[job.digest, job.source.name, job.source.index, job.collector.NAME] for job in jobs]
    return hashlib.sha256(json.dumps([files, work.stamp()]).encode("utf-8", "surrogateescape")).hexdigest()[:32]

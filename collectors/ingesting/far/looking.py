"""What files in a bucket are, found out by the workers of an engine: who reads each, when it begins, its digest.

What no worker can read as it lies there, an archive or an export of logs, is brought to the machine that asked.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from collectors import collector
from collectors.ingesting.batches import task_bytes
from collectors.ingesting.far.files import FarFile, brought, changed, scratch
from collectors.ingesting.folders import may_be_answer, may_be_of_run, may_be_table
from collectors.ingesting.identity import readers
from collectors.ingesting.looks import is_no_archive
from collectors.ingesting.order import begins
from collectors.ingesting.recognise import SURE, recognise
from collectors.ingesting.told import Unknown, unknown
from collectors.ingesting.unpack import SafeSource, archive_kind, unpacked_digest
from errors import InputError
from runs.spread.engine import Engine, Outcome, Task, Work

LOOK = Work(function=f"{__name__}:look", stamp=f"{__name__}:stamp")
TASK_FILES = 64
_NEVER = (float("inf"), float("inf"))


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What a file is. `unpacked`: the SHA-256 of what a gzipped one holds that is called as another is; `collector`:
    the name of its reader; `stranger`: what it looks like where there is none; `here`: it is nothing that a worker
    reads as it lies there."""

    digest: str
    unpacked: str = ""
    collector: str = ""
    begins: tuple[float, float] = _NEVER
    notes: tuple[str, ...] = ()
    stranger: Unknown | None = None
    here: bool = False


@dataclass(frozen=True)
class FarSource(SafeSource):
    """A file that lies in a bucket. `path` is its address: nothing lies there on any machine."""

    far: FarFile = field(kw_only=True)
    looked: Looked = field(kw_only=True)

    @property
    def size(self) -> int:
        return self.far.bytes

    @property
    def collector(self) -> ModuleType:
        return collector(self.looked.collector)


def sources(
    files: Sequence[FarFile],
    engine: Engine,
    folder: Path,
    check: Callable[[], None],
    report: Callable[[int], None],
) -> list[tuple[str, Path | FarSource]]:
    """(name, what it is) of each file; of one that is read here the path in `folder` to which it was brought. `check`
    may raise; `report` is told how many files were looked at. Raises FarError where one cannot be had."""
    found: list[tuple[str, Path | FarSource]] = []
    for outcome in engine.map(LOOK, list(_tasks(files)), check, lambda done: None):
        for file, looked in zip(_files(outcome.task.asked), _answer(outcome), strict=True):
            found.append((file.name, FarSource(Path(file.url), file.name, far=file, looked=looked)))
        report(len(found))
    return [(name, _brought_here(source, folder, n)) for n, (name, source) in enumerate(found)]


def _brought_here(source: Path | FarSource, folder: Path, number: int) -> Path | FarSource:
    if not (isinstance(source, FarSource) and source.looked.here):
        return source
    folder.mkdir(exist_ok=True)
    path = folder / str(number)
    if brought([(source.far, path)]) != [source.looked.digest]:
        raise changed(source.far.url)
    return path


def _answer(outcome: Outcome) -> list[Looked]:
    if outcome.problem:
        raise InputError(outcome.problem, where=_files(outcome.task.asked)[0].url)
    return outcome.answer


def _tasks(files: Sequence[FarFile]) -> Iterator[Task]:
    waiting: list[FarFile] = []
    enough = task_bytes(sum(file.bytes for file in files))
    called = Counter(_unzipped(file.name) for file in files)
    twins = {name for name, count in called.items() if count > 1}
    for file in files:
        waiting.append(file)
        if sum(one.bytes for one in waiting) >= enough or len(waiting) == TASK_FILES:
            yield _task(waiting, twins)
            waiting = []
    if waiting:
        yield _task(waiting, twins)


def _unzipped(name: str) -> str:
    """What a file is called, packed or not, wherever it lies."""
    return PurePath(name).name.removesuffix(".gz")


def _task(files: Sequence[FarFile], twins: Collection[str]) -> Task:
    """`twins`: names that several files have: whether those hold the same, a worker unpacks them to know."""
    asked = {"files": [dict(vars(file)) for file in files], "twin": [_unzipped(file.name) in twins for file in files]}
    key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
    return Task(key=key, asked=asked, weight=sum(file.bytes for file in files))


def _files(asked: dict[str, Any]) -> list[FarFile]:
    return [FarFile(**told) for told in asked["files"]]


def stamp() -> str:
    """What looks, as text."""
    return f"readers {readers()}"


def look(asked: dict[str, Any]) -> list[Looked]:
    """On a worker: what each file is."""
    files = _files(asked)
    with scratch() as folder:
        lines = folder / "lines"  # of exports, taken out
        lines.mkdir()
        paths = [folder / str(n) for n in range(len(files))]
        digests = brought(list(zip(files, paths, strict=True)))
        return [
            _looked(SafeSource(path, file.name), digest, lines, twin)
            for file, path, digest, twin in zip(files, paths, digests, asked["twin"], strict=True)
        ]


def _looked(source: SafeSource, digest: str, folder: Path, twin: bool) -> Looked:
    if (
        may_be_table(source)
        or may_be_answer(source)
        or (archive_kind(source) is not None and not is_no_archive(source))
    ):
        return Looked(digest=digest, here=True)
    best = recognise(SafeSource(source.path, source.name), folder)
    if best.score < SURE:
        here = may_be_of_run(source)
        return Looked(digest=digest, here=here, stranger=None if here else unknown(source))
    alone = isinstance(best.collector, ModuleType) and not getattr(best.collector, "COMPARED", False)
    if type(best.source) is not SafeSource or not alone:
        return Looked(digest=digest, here=True)
    assert isinstance(best.collector, ModuleType)
    unpacked = unpacked_digest(source) if twin and source.gzipped else ""
    name, notes = best.collector.NAME, best.notes
    return Looked(digest=digest, unpacked=unpacked, collector=name, begins=begins(best.source), notes=notes)

"""What a worker does: reads files in their order, and leaves their rows as parts of tables in a folder of its own.

The folder gets its name last, so that what has it is whole; the name is that of the task, so that a task which was done
before is not done again, whichever worker it comes to. Where the folder above is gone nobody waits any more.
"""

import contextlib
import os
import resource
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from collectors import collector
from collectors.base import Blob, Fact, Item, Lost, Rows
from collectors.ingesting.captures import Traced
from collectors.ingesting.far.files import FarError, FarFile, brought, changed, scratch
from collectors.ingesting.identity import readers
from collectors.ingesting.items import items_of
from collectors.ingesting.lane import StoreFault
from collectors.ingesting.parts.records import FileRead, PartMade, Stored, TaskRead, fault_of
from collectors.ingesting.unpack import SafeSource
from errors import InputError
from runs.devices import devices
from runs.durable import sync
from runs.integrity import Mark, mark
from runs.objects.coming import Coming
from runs.parts import Part
from runs.spread import left
from runs.spread.engine import EngineError
from runs.writer import TableFiles

Reading = tuple[int, Iterator[Item]]  # a file's number, and what it holds


def stamp() -> str:
    """What reads and writes, as text: of another one the same file may become another part."""
    return f"readers {readers()}, pyarrow {pa.__version__}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def read(asked: dict[str, Any]) -> TaskRead:
    """Read the files of a task. `asked`: `folder`, in which the folder `key` is made, or `coming`, the place in a store
    of objects for what is read; and `files`: path or address, name, index and collector of each, and the captures that
    lie beside it."""
    with contextlib.ExitStack() as scope:
        files = list(asked["files"])
        if any("far" in file for file in files):
            files = _brought(files, scope.enter_context(scratch()))
        holding = ((file["index"], _items(file)) for file in files)
        if "coming" in asked:
            return _left(Coming(**asked["coming"]), asked["key"], holding)
        return written(left.seen(Path(asked["folder"]), "the ingest"), asked["key"], holding)


def _brought(files: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The same with a path for each that lies in a bucket, and for each of the captures beside it: what several have
    beside them is fetched once. Raises FarError where one is not what was looked at."""
    far = [file for file in (*files, *(c for f in files for c in f.get("captures", ()))) if "far" in file]
    wanted = {(one := FarFile(**file["far"])).url: (one, file["digest"]) for file in far}
    paths = {url: folder / str(n) for n, url in enumerate(wanted)}
    digests = brought([(one, paths[url]) for url, (one, _) in wanted.items()])
    for digest, (url, (_, looked)) in zip(digests, wanted.items(), strict=True):
        if digest != looked:
            raise changed(url)
    for file in far:
        file["path"] = str(paths[FarFile(**file["far"]).url])
    return files


def _left(coming: Coming, key: str, files: Iterator[Reading]) -> TaskRead:
    """Have the rows of these files put into the store as objects."""
    with scratch() as above:
        folder = above / "parts"
        folder.mkdir()
        told = _written(folder, folder, files)
        parts = {part_path(told, made).name: part_path(told, made) for made in told.parts}
        blobs = {f"blobs/{name}": folder / "blobs" / name for name in told.blobs}
        try:
            return replace(told, folder=coming.leave(key, parts | blobs), there=True)
        except InputError as e:
            raise FarError(e.what, where=e.where, expected=e.expected, advice=e.advice) from e


def written(above: Path, key: str, files: Iterator[Reading] | Sequence[Reading]) -> TaskRead:
    """Have the rows of these files written to the folder `key`, unless that was done before."""
    done = above / key
    if (told := left.before(done)) is not None:
        return told
    with contextlib.ExitStack() as scope:
        with _storing():
            folder = scope.enter_context(left.new(done))
        told = _written(folder, done, files)
        with _storing():
            left.leave(folder, done, told)
        return left.before(done) or told


def _items(file: dict[str, Any]) -> Iterator[Item]:
    beside = tuple((capture["name"], Path(capture["path"])) for capture in file.get("captures", ()))
    told = Path(file["path"]), file["name"], file["index"]
    return items_of(Traced(*told, beside) if beside else SafeSource(*told), collector(file["collector"]))


def _written(folder: Path, done: Path, files: Iterator[Reading] | Sequence[Reading]) -> TaskRead:
    read: list[FileRead] = []
    into = _Parts(folder)
    try:
        for index, items in files:
            read.append(_file(index, items, into))
        with _storing():
            made, blobs = into.ended(), into.blobs()
    finally:
        into.tables.give_up()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return TaskRead(folder=str(done), files=tuple(read), parts=made, blobs=blobs, peak_bytes=peak)


def _file(index: int, items: Iterator[Item], into: "_Parts") -> FileRead:
    told: list[Fact | Lost | Stored] = []
    seen: set[tuple[str, int]] = set()
    kept, fault = False, None
    while True:
        try:
            item = next(items, None)
        except InputError as e:
            fault = fault_of(e)
            break
        if item is None:
            break
        if isinstance(item, Fact | Lost):
            told.append(item)
            continue
        with _storing():
            into.keep(item, index)
        if isinstance(item, Rows):
            kept = True
            if item.table == "ops":
                seen |= devices(pa.Table.from_batches([item.batch]))
    if kept:
        told.append(Stored(devices=frozenset(seen)))
    return FileRead(index=index, told=tuple(told), fault=fault)


@contextlib.contextmanager
def _storing() -> Generator[None]:
    """Within it, what a full disk raises is a sentence."""
    try:
        yield
    except OSError as e:
        raise StoreFault(f"the run cannot be written ({e.strerror or e})", advice="Is the disk full?") from e


class _Parts:
    """Rows of several files, a part of each table, and their blobs."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.tables = TableFiles(folder)
        self._first: dict[str, int] = {}  # number of the first file with rows of the table
        self._captures: dict[str, tuple[int, int] | None] = {}

    def keep(self, item: Rows | Blob, index: int) -> None:
        if not self._folder.is_dir():
            raise EngineError("the ingest that this was for has ended")
        if isinstance(item, Rows):
            self._rows(item, index)
        else:
            self._blob(item)

    def _rows(self, item: Rows, index: int) -> None:
        if not item.batch.num_rows:
            return
        self._first.setdefault(item.table, index)
        found = _captures(item.batch)
        before = self._captures.get(item.table, found)
        whole = None if found is None or before is None else (min(found[0], before[0]), max(found[1], before[1]))
        self._captures[item.table] = whole
        self.tables.rows(item.table, item.batch)

    def _blob(self, item: Blob) -> None:
        path = self._folder / "blobs" / item.name
        if not path.resolve().is_relative_to((self._folder / "blobs").resolve()):
            raise InputError(f"blob name {item.name!r} leaves the run's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(item.data)

    def ended(self) -> tuple[PartMade, ...]:
        """Every part, on the disk."""
        self.tables.close()
        made: list[PartMade] = []
        for table, rows in self.tables.counts.items():
            path = self.tables.path(table)
            sync(path)
            part = Part(table=table, number=self._first[table], captures=self._captures[table])
            made.append(PartMade(part=part, rows=rows, mark=mark(path)))
        return tuple(made)

    def blobs(self) -> dict[str, Mark]:
        root = self._folder / "blobs"
        found: dict[str, Mark] = {}
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder) / name
                sync(path)
                found[path.relative_to(root).as_posix()] = mark(path)
        return found


def _captures(batch: pa.RecordBatch) -> tuple[int, int] | None:
    """The lowest and the highest capture that rows belong to; None where one belongs to none."""
    if "capture" not in batch.schema.names or batch.column("capture").null_count:
        return None
    numbers = batch.column("capture").to_numpy(zero_copy_only=False)
    return int(numbers.min()), int(numbers.max())


def part_path(read: TaskRead, made: PartMade) -> Path:
    """Where a part lies until it is taken into the run; of one that lies in the store the last part of its key."""
    return TableFiles(Path(read.folder)).path(made.part.table)


def rows_of(part: Path | bytes) -> Iterator[pa.RecordBatch]:
    """The rows of a part, as they were written."""
    with pq.ParquetFile(part if isinstance(part, Path) else pa.BufferReader(part)) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, use_threads=False).to_batches()

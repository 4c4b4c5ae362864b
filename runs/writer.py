"""Writing a run: rows and blobs into a folder of its own, one commit that renames it into place."""

import contextlib
import dataclasses
import errno
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from errors import InputError
from runs.durable import sync
from runs.integrity import Mark, mark
from runs.parquet import parquet_options
from runs.parts import in_parts
from runs.run import MANIFEST, PARTS_VERSION, SCHEMA_VERSION, FactValue, Manifest, Run
from runs.schema import SCHEMAS
from runs.scratch import Held

# Each piece that Parquet holds apart (a row group) takes a kilobyte of description and its own turn when it is read:
# what comes in small batches waits until there are so many rows or bytes of it.
GROUP_ROWS, GROUP_BYTES = 1 << 13, 1 << 22
SYNCED_AT_ONCE = 8  # files: a disk takes many together in little more time than one


class TableFiles:
    """Rows on their way to a Parquet file for each table, in `folder`. `counts`: rows by table."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._waits: dict[str, tuple[int, int]] = {}  # rows and bytes of them
        self.counts: dict[str, int] = {}

    def path(self, table: str) -> Path:
        return self._folder / f"{table}.parquet"

    def rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows to a table. The batch must have the table's schema."""
        if batch.num_rows == 0:
            return
        self.counts[table] = self.counts.get(table, 0) + batch.num_rows
        self._waiting.setdefault(table, []).append(batch)
        rows, n_bytes = self._waits.get(table, (0, 0))
        rows, n_bytes = rows + batch.num_rows, n_bytes + batch.nbytes
        self._waits[table] = rows, n_bytes
        if rows >= GROUP_ROWS or n_bytes >= GROUP_BYTES:
            self._write(table)

    def _write(self, table: str) -> None:
        """Write what waits of a table as one piece."""
        waiting = self._waiting.pop(table)
        del self._waits[table]
        if table not in self._writers:
            self._writers[table] = pq.ParquetWriter(self.path(table), SCHEMAS[table].arrow, **parquet_options(table))
        rows = pa.Table.from_batches(waiting)
        self._writers[table].write_table(rows if len(waiting) == 1 else rows.unify_dictionaries().combine_chunks())

    def close(self) -> None:
        """Write what waits, and end every file."""
        for table in list(self._waiting):
            self._write(table)
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def give_up(self) -> None:
        """End every file, whatever it holds: they are thrown away, and a full disk must not hide why."""
        for writer in self._writers.values():
            with contextlib.suppress(Exception):
                writer.close()
        self._writers.clear()
        self._waiting.clear()


class RunWriter:
    """Writes one run. Used as a context manager: leaving it without `commit` removes every trace."""

    def __init__(self, hold: Callable[[], Held], runs_folder: Path):
        self._hold, self._runs_folder = hold, runs_folder
        self._taken: dict[str, Mark] = {}
        self.placed = False  # whether the run that was committed is this one, and not one that came to be meanwhile

    def __enter__(self) -> Self:
        self._held = self._hold()
        self._folder = self._held.folder / "run"
        tables, self._blobs = self._folder / "tables", self._folder / "blobs"
        tables.mkdir(parents=True)
        self._files = TableFiles(tables)
        self.counts = self._files.counts
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._files.give_up()
        self._held.end()

    def rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows to a table. The batch must have the table's schema."""
        self._files.rows(table, batch)

    def take(self, relative: str, path: Path, known: Mark) -> None:
        """Move a file into the run that is on the disk of the store already, and of which it is known what it is:
        a part of a table (`runs/parts.py`), whose rows are to be counted in `counts`, or a blob."""
        place = self._folder / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)
        self._taken[relative] = known

    def take_there(self, relative: str, key: str, known: Mark) -> None:
        """As `take`, of an object that a worker left in the store (`Store.coming`)."""
        raise TypeError("a store in a folder has no objects")

    def blob(self, name: str, data: bytes) -> None:
        """Keep bytes under `blobs/<name>`; `name` is made by a collector, never taken from an input."""
        path = (self._blobs / name).resolve()
        if not path.is_relative_to(self._blobs.resolve()):
            raise InputError(f"blob name {name!r} leaves the run's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def commit(
        self,
        *,
        run_id: str,
        name: str,
        kind: str,
        facts: Mapping[str, FactValue],
        sources: Sequence[dict[str, Any]],
        warnings: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
        readers: str = "",
        replace: bool = False,
    ) -> Run:
        """Close, sync and rename into place. If the run came to be meanwhile, that one stays and is returned, unless
        it is to be replaced: then whoever looks finds the one or the other."""
        self._files.close()
        files = self._synced()
        manifest = Manifest(
            run_id=run_id,
            name=name,
            kind=kind,
            created_ns=time.time_ns(),
            facts=dict(facts),
            sources=list(sources),
            tables=dict(self.counts),
            tags=dict(tags or {}),
            warnings=list(warnings),
            files=files,
            readers=readers,
            schema_version=PARTS_VERSION if in_parts(files) else SCHEMA_VERSION,
        )
        written = manifest.to_json()
        (self._folder / MANIFEST).write_text(written)
        sync(self._folder / MANIFEST)
        sync(self._folder)
        target = self._runs_folder / run_id
        run = Run(target)
        self.placed = self._place(target, replace)
        if self.placed:  # what was stored is known, though somebody may remove it at once
            run.__dict__["written"] = Manifest.from_json(written, run_id)
        sync(self._runs_folder)
        return run

    def copy(self, run: Run, cancel: Callable[[], None] = lambda: None) -> bool:
        """Take over a run of another store as it was written. Whether it came to be here; False: one of its id is here
        already, and stays. Raises InputError where a file of it is not what was written."""
        run.written  # noqa: B018 - raises where it cannot be read
        raw = (run.folder / MANIFEST).read_bytes()
        for relative in sorted(run.files.marks):
            cancel()
            with run.files.held(relative) as path:
                target = self._folder / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path or run.folder / relative, target)
        marks = self._synced()
        manifest = Manifest.from_json(raw, run.run_id)
        if manifest.files is None:  # of a version that did not mark files
            raw = dataclasses.replace(manifest, files=marks).to_json().encode()
        elif wrong := next((name for name, known in manifest.files.items() if marks.get(name) != known), None):
            raise run.files.error(wrong, "is not what was written (its checksum differs)")
        return self._place_with(raw, run.run_id)

    def _place_with(self, raw: bytes, run_id: str) -> bool:
        (self._folder / MANIFEST).write_bytes(raw)
        sync(self._folder / MANIFEST)
        sync(self._folder)
        self.placed = self._place(self._runs_folder / run_id, replace=False)
        sync(self._runs_folder)
        return self.placed

    def _synced(self) -> dict[str, Mark]:
        """Have the disk hold every file, and mark what each is."""
        walked = list(os.walk(self._folder))
        paths = [Path(folder) / file for folder, _, files in walked for file in files]
        with ThreadPoolExecutor(SYNCED_AT_ONCE) as pool:
            marks = dict(pool.map(self._marked, paths))
        for folder, _, _ in walked:
            sync(Path(folder))
        return marks

    def _marked(self, path: Path) -> tuple[str, Mark]:
        relative = path.relative_to(self._folder).as_posix()
        if relative in self._taken:
            return relative, self._taken[relative]
        sync(path)
        return relative, mark(path)

    def _place(self, target: Path, replace: bool) -> bool:
        """Whether it was put there; else there is one already, which stays."""
        attempt = 0
        while True:
            try:
                self._folder.rename(target)
                with contextlib.suppress(FileNotFoundError):  # else, killed now, one removed later would come back
                    (self._held.folder / REPLACED).rename(self._held.folder / "before")
                return True
            except OSError as e:
                if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            if not replace:
                return False
            before = self._held.folder / REPLACED / str(attempt) / target.name
            before.parent.mkdir(parents=True)
            with contextlib.suppress(FileNotFoundError):  # somebody else replaces or removes it as well
                target.rename(before)
            attempt += 1


REPLACED = "replaced"  # where the run before lies while the new one takes its place


def rescue(folder: Path, runs_folder: Path) -> None:
    """Put a run in its place again whose writer ended between taking the one before away and putting the new one
    there: the new one is whole by then."""
    for before in (folder / REPLACED).glob("*/*"):
        target, new = runs_folder / before.name, folder / "run"
        if not target.exists():
            with contextlib.suppress(OSError):
                (new if new.is_dir() else before).rename(target)

"""The store: runs on the local disk, each written once and complete or not at all.

    <root>/runs/<run_id>/run.json, tables/<table>.parquet, blobs/...
    <root>/partial/<pid>-<random>/      a run being written; swept when its process is gone
    <root>/uploads/<upload_id>/         files as they were uploaded; never changed, never lost
    <root>/live/<name>/                 a job being followed: its entries, and a pointer to its newest run
    <root>/registry.db                  what may change: notes, tags, prices
"""

import contextlib
import functools
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from errors import InputError, QuestionError
from runs.durable import sync
from runs.live import PREFIX, LiveRuns
from runs.parquet import parquet_options
from runs.run import MANIFEST, FactValue, Manifest, Run
from runs.schema import SCHEMAS


class Store:
    """A folder of runs. Opening it makes the folder and sweeps what a killed ingest left behind."""

    def __init__(self, root: Path):
        self.root = Path(root).expanduser().absolute()
        self.runs_folder = self.root / "runs"
        self.uploads_folder = self.root / "uploads"
        self._partial = self.root / "partial"
        self.live = LiveRuns(self.root / "live")
        try:
            for folder in (self.runs_folder, self.uploads_folder, self._partial):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise InputError(
                f"cannot use this folder as a store ({e.strerror})", where=str(self.root),
                advice="Give another with --store or $CHIPLEDGER_STORE.",
            ) from e  # fmt: skip
        self._sweep()

    def _sweep(self) -> None:
        for folder in self._partial.iterdir():
            pid = folder.name.partition("-")[0]
            if pid.isdigit() and not _alive(int(pid)):
                shutil.rmtree(folder, ignore_errors=True)

    def ids(self) -> list[str]:
        """Identifiers of all runs, in no particular order."""
        return [p.name for p in self.runs_folder.iterdir() if (p / MANIFEST).is_file()]

    def runs(self) -> list[Run]:
        """All runs that can be read, newest first."""
        return self.listing()[0]

    def listing(self) -> tuple[list[Run], list[str]]:
        """(runs that can be read, newest first; one line about each that cannot). One broken run hides no other.

        Of a live run there is the newest snapshot alone.
        """
        runs, problems, superseded = [], [], self.live.retiring()
        for run_id in self.ids():
            if run_id in superseded:
                continue
            try:
                runs.append(_read(self.runs_folder / run_id))
            except (InputError, OSError) as e:  # OSError: removed between the listing and the reading
                problems.append(str(e))
        return sorted(runs, key=lambda r: -r.manifest.created_ns), problems

    def get(self, run_id: str) -> Run | None:
        folder = self.runs_folder / run_id
        inside = bool(run_id) and folder.parent == self.runs_folder and "/" not in run_id and run_id not in (".", "..")
        return Run(folder) if inside and (folder / MANIFEST).is_file() else None

    def find(self, name: str) -> Run:
        """A run by its id, an unambiguous beginning of it, its name (the newest of that name), or `live:NAME`.

        The id of a superseded snapshot of a live run leads to the newest one. Raises QuestionError where there is
        none or the beginning fits several.
        """
        if name.startswith(PREFIX):
            return self._find_live(name.removeprefix(PREFIX))
        if (live := self.live.current(name)) and live.run_id and (run := self.get(live.run_id)):
            return run
        if run := self.get(name):
            return run
        runs = self.runs()
        named = [r for r in runs if r.manifest.name == name]
        if named:
            return named[0]
        begun = [r for r in runs if len(name) >= 4 and r.run_id.startswith(name)]
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise QuestionError(f"{name!r} is the beginning of {len(begun)} run ids", advice="Give more characters.")
        if (live := self.live.leading(name)) and live.run_id and (run := self.get(live.run_id)):
            return run
        raise QuestionError(
            f"no run {name!r} in this store", where=str(self.root), advice="`chipledger runs` lists what is there."
        )

    def _find_live(self, name: str) -> Run:
        live = self.live.read(name)
        if live is None:
            known = ", ".join(v.name for v in self.live.all()) or "none yet"
            raise QuestionError(f"no live run {name!r} in this store", where=str(self.root), expected=known)
        if live.run_id is None or (run := self.get(live.run_id)) is None:
            problem = f" ({live.problem})" if live.problem else ""
            raise QuestionError(f"live run {name!r} has no entries yet{problem}",
                                advice="It appears with the job's first goodput entry.")  # fmt: skip
        return run

    def remove(self, run_id: str) -> None:
        """Take a run out of the store, at once for whoever looks; nothing happens where it is not there."""
        if run := self.get(run_id):
            grave = self._partial / f"{os.getpid()}-{uuid.uuid4().hex}"
            with contextlib.suppress(FileNotFoundError):  # somebody else removed it
                run.folder.rename(grave)
            shutil.rmtree(grave, ignore_errors=True)

    def writer(self) -> "RunWriter":
        return RunWriter(self)


class RunWriter:
    """Writes one run. Used as a context manager: leaving it without `commit` removes every trace."""

    def __init__(self, store: Store):
        self._store = store
        self._folder = store._partial / f"{os.getpid()}-{uuid.uuid4().hex}"
        self._tables = self._folder / "tables"
        self._blobs = self._folder / "blobs"
        self._writers: dict[str, pq.ParquetWriter] = {}
        self.counts: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._tables.mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for writer in self._writers.values():
            with contextlib.suppress(Exception):  # the run is being thrown away; a full disk must not hide `error`
                writer.close()
        self._writers.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows to a table. The batch must have the table's schema."""
        if batch.num_rows == 0:
            return
        if table not in self._writers:
            path = self._tables / f"{table}.parquet"
            self._writers[table] = pq.ParquetWriter(path, SCHEMAS[table].arrow, **parquet_options(table))
            self.counts[table] = 0
        self._writers[table].write_batch(batch)
        self.counts[table] += batch.num_rows

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
    ) -> Run:
        """Close, sync and rename into place. If the run came to be meanwhile, that one stays and is returned."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        manifest = Manifest(
            run_id=run_id, name=name, kind=kind, created_ns=time.time_ns(), facts=dict(facts), sources=list(sources),
            tables=dict(self.counts), tags=dict(tags or {}), warnings=list(warnings),
        )  # fmt: skip
        (self._folder / MANIFEST).write_text(manifest.to_json())
        for folder, _, files in os.walk(self._folder):
            for file in files:
                sync(Path(folder) / file)
            sync(Path(folder))
        target = self._store.runs_folder / run_id
        try:
            self._folder.rename(target)
        except OSError:
            if not (target / MANIFEST).is_file():
                raise
        sync(self._store.runs_folder)
        return Run(target)


@functools.lru_cache(maxsize=10_000)
def _read(folder: Path) -> Run:
    """A run with its manifest read: it never changes, so a store of thousands is read once."""
    run = Run(folder)
    run.manifest  # noqa: B018 - read now, so that what cannot be read is told here
    return run


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""The two forms in which MLflow keeps runs: a database of SQLite, and a folder of files (`mlruns/`).

In the folder each run has a folder below that of its experiment, with `meta.yaml`, and in `metrics/`, `params/` and
`tags/` a file for each name, whose slashes are folders. A line of a metric is `milliseconds value step`.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol

from collectors.base import Lost, Source
from collectors.ingesting.folders import kind_of
from collectors.reading.documents import document
from collectors.reading.sqlite import Database
from collectors.reading.textlog import Tally, clean, whole, within_64_bits
from errors import InputError

SYSTEM = "system/"  # how the names of its samples of the machine begin, whose steps count samples
MOST_RUNS, MOST_POINTS = 100_000, 5_000_000
_MOST_NAMES = 10_000  # parameters or tags of a run
_LONGEST_VALUE = 10_000  # bytes of a parameter
_STATES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
_SECONDS = 10**11  # times below are in seconds, as the first versions wrote them; above in milliseconds
_LOOKED_AT, _END_BYTES = 20, 4096  # files of metrics of a run, whose ends tell whether it logs steps
_LARGEST = 1.79e308  # in a database infinity is the largest number
_BAD_LINES = "they are no `milliseconds value step`"
EXPECTED = "a store of MLflow: its SQLite database, or the folder mlruns/"


class StoredRun(NamedTuple):
    """A run. `times`: when it began and ended, ns since the epoch. `logs`: 0 no metric, 1 metrics, 2 those of steps."""

    id: str
    name: str
    experiment: str
    status: str
    times: tuple[int | None, int | None]
    deleted: bool
    logs: int


class Point(NamedTuple):
    name: str
    at_ns: int | None
    step: int | None
    value: float


class Store(Protocol):
    def runs(self) -> list[StoredRun]: ...

    def points(self, run: StoredRun) -> Iterator[Point]: ...

    def named(self, run: StoredRun, kind: str) -> dict[str, str]:
        """Its `params` or `tags`."""
        ...

    def lost(self) -> Iterator[Lost]: ...


class Tables:
    """A database."""

    def __init__(self, database: Database, source: str):
        self._database, self._source = database, source

    def runs(self) -> list[StoredRun]:
        """Raises InputError where a table of MLflow's lacks what it always has."""
        for table, needed in (
            ("runs", ("run_uuid", "status", "start_time")),
            ("metrics", ("key", "value", "run_uuid")),
        ):
            if not self._database.has(table, *needed):
                what = f"a table {table} without {', '.join(needed)}"
                raise InputError(what, where=self._source, expected=EXPECTED)
        experiments = dict(self._database.rows("experiments", ("experiment_id", "name"), MOST_RUNS))
        logs = self._logs()
        columns = ("run_uuid", "name", "experiment_id", "status", "start_time", "end_time", "lifecycle_stage")
        found = []
        for key, name, experiment, status, start, end, stage in self._database.rows("runs", columns, MOST_RUNS):
            if isinstance(key, str):
                times = _moment_ns(start), _moment_ns(end)
                whose = _text(experiments.get(experiment))
                run = StoredRun(key, _text(name), whose, _text(status), times, stage == "deleted", logs.get(key, 0))
                found.append(run)
        return found

    def _logs(self) -> dict[str, int]:
        """Of which runs there are metrics, and whether any is of a step beyond 0. The latest of each name tell that."""
        table = "latest_metrics" if self._database.has("latest_metrics", "run_uuid", "step") else "metrics"
        found: dict[str, int] = {}
        for key, name, step in self._database.rows(table, ("run_uuid", "key", "step"), MOST_POINTS):
            if isinstance(key, str) and isinstance(name, str):
                of_steps = isinstance(step, int) and step > 0 and not name.startswith(SYSTEM)
                found[key] = max(found.get(key, 1), 2 if of_steps else 1)
        return found

    def points(self, run: StoredRun) -> Iterator[Point]:
        columns = ("key", "timestamp", "step", "value", "is_nan")
        for name, at, step, value, nan in self._database.rows("metrics", columns, MOST_POINTS, ("run_uuid", run.id)):
            if isinstance(name, str) and isinstance(value, int | float):
                number = math.nan if nan else _unbounded(float(value))
                yield Point(name, _moment_ns(at), whole(step), number)

    def named(self, run: StoredRun, kind: str) -> dict[str, str]:
        rows = self._database.rows(kind, ("key", "value"), _MOST_NAMES, ("run_uuid", run.id))
        return {name: value for name, value in rows if isinstance(name, str) and isinstance(value, str)}

    def lost(self) -> Iterator[Lost]:
        yield from self._database.lost


@dataclass
class _RunFolder:
    meta: Path
    metrics: list[tuple[str, Path]]
    others: dict[str, list[tuple[str, Path]]]


class Files:
    """A folder. `parts`: (name within it, file) of each."""

    def __init__(self, parts: tuple[tuple[str, Path], ...], source: str):
        self._source, self._tally = source, Tally()
        self._folders: dict[str, _RunFolder] = {}
        self._experiments: dict[str, Path] = {}
        for name, path in parts:
            if PurePosixPath(name).name == "meta.yaml" and (kind := kind_of(path)):
                folder = str(PurePosixPath(name).parent)
                if kind == "run":
                    self._folders[folder] = _RunFolder(path, [], {"params": [], "tags": []})
                else:
                    self._experiments[folder] = path
        for name, path in parts:
            self._place(PurePosixPath(name), path)
        self._by_id: dict[str, _RunFolder] = {}

    def _place(self, name: PurePosixPath, path: Path) -> None:
        """Note a file under the run that it is of."""
        for depth, part in enumerate(name.parts[:-1]):
            folder = self._folders.get(str(PurePosixPath(*name.parts[:depth])))
            if folder is None or part not in ("metrics", "params", "tags"):
                continue
            key = "/".join(name.parts[depth + 1 :])
            (folder.metrics if part == "metrics" else folder.others[part]).append((key, path))
            return

    def runs(self) -> list[StoredRun]:
        experiments = {folder: _text(self._meta(path).get("name")) for folder, path in self._experiments.items()}
        found = []
        for place, folder in list(self._folders.items())[:MOST_RUNS]:
            meta = self._meta(folder.meta)
            key = _text(meta.get("run_id")) or _text(meta.get("run_uuid")) or PurePosixPath(place).name
            status = meta.get("status")
            status = _STATES.get(status, "") if isinstance(status, int) else _text(status)
            times = _moment_ns(meta.get("start_time")), _moment_ns(meta.get("end_time"))
            name = _text(meta.get("run_name")) or _text(meta.get("name"))
            whose = experiments.get(str(PurePosixPath(place).parent), "")
            logs = _logs(folder.metrics)
            self._by_id[key] = folder
            found.append(StoredRun(key, name, whose, status, times, meta.get("lifecycle_stage") == "deleted", logs))
        return found

    def _meta(self, path: Path) -> dict[str, Any]:
        try:
            found = document(Source(path, f"{self._source}/meta.yaml"), "meta.yaml of a run of MLflow")
        except InputError as error:
            self._tally.add("meta.yaml", error.what)
            return {}
        return found if isinstance(found, dict) else {}

    def points(self, run: StoredRun) -> Iterator[Point]:
        left = MOST_POINTS
        for name, path in self._by_id[run.id].metrics:
            for offset, line in Source(path, f"{self._source}/{name}").text():
                point = _point(name, line)
                if point is not None and (left := left - 1) >= 0:
                    yield point
                elif point is None and line.strip():
                    self._tally.add(f"lines of {clean(name)[:100]}", _BAD_LINES, offset)
        if left < 0:
            self._tally.add("values", f"of one run {MOST_POINTS:,} are read", count=-left)

    def named(self, run: StoredRun, kind: str) -> dict[str, str]:
        found = {}
        for name, path in self._by_id[run.id].others[kind][:_MOST_NAMES]:
            with path.open("rb") as f:
                found[name] = f.read(_LONGEST_VALUE).decode("utf-8", "replace").strip()
        return found

    def lost(self) -> Iterator[Lost]:
        yield from self._tally.lost()


def _logs(metrics: list[tuple[str, Path]]) -> int:
    """As `StoredRun.logs`, by the ends of the first files."""
    found = int(any(path.stat().st_size for _, path in metrics))
    for name, path in [one for one in metrics if not one[0].startswith(SYSTEM)][:_LOOKED_AT]:
        with path.open("rb") as f:
            f.seek(max(0, f.seek(0, os.SEEK_END) - _END_BYTES))
            last = f.read().decode("utf-8", "replace").rstrip().rpartition("\n")[2]
        point = _point(name, last)
        if point is not None:
            found = max(found, 2 if (point.step or 0) > 0 else 1)
    return found


def _point(name: str, line: str) -> Point | None:
    """A line of a metric; before there were steps it had two parts, and with a data set it has five."""
    parts = line.split()
    try:
        if len(parts) < 2 or len(parts[0]) > 19:
            return None
        step = within_64_bits(int(parts[2])) if len(parts) > 2 else 0
        return Point(name, _moment_ns(int(parts[0])), step, _unbounded(float(parts[1])))
    except ValueError:
        return None


def _unbounded(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _LARGEST else value


def _moment_ns(value: object) -> int | None:
    """Milliseconds since the epoch in ns; None for none."""
    number = whole(value)
    if number is None or number <= 0:
        return None
    return within_64_bits(number * (10**9 if number < _SECONDS else 10**6))


def _text(value: object) -> str:
    return clean(value)[:1000] if isinstance(value, str) else ""

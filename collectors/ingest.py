"""From files to a stored run: each file to the collector that knows it, rows to Parquet as they come, one commit."""

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from collectors import COLLECTORS, sidecar
from collectors.base import Blob, Fact, Item, Lost, Rows
from collectors.gather import Cancelled, Gathered, gather, shown
from collectors.unpack import BROKEN, CHUNK, SafeSource
from errors import InputError
from runs.run import FactValue, Manifest
from runs.store import RunWriter, Store

MAX_WARNINGS = 1_000
_QUEUED = 8  # batches read ahead of the Parquet writer: keeps both busy, and memory small
_SURE = 0.5  # a file goes to no collector less sure of it than this
_SERVING_TABLES = ("requests", "engine", "stages", "iterations", "histograms")
_TRAINING_TABLES = ("steps", "lifecycle")  # a profile is of either
_BASES = ("declared", "measured", "derived", "published")  # whose word counts first
_SUFFIXES = re.compile(r"(?:\.(?:gz|zip|tar|tgz|log|txt|out|jsonl?|xplane|pb))+$", re.IGNORECASE)
_OPTION = "command line"
_LABELS = ("name", "tags")  # options that change nothing of what a run says

Check = Callable[[], None]


@dataclass(frozen=True)
class Ingested:
    """What became of the input: the run, its rows by table, what was passed over, and whether it was there before."""

    run_id: str
    tables: dict[str, int]
    warnings: list[str]
    existed: bool


def ingest(
    paths: Sequence[Path | str],
    store: Store,
    *,
    name: str | None = None,
    kind: str | None = None,
    chip: str | None = None,
    chips: int | None = None,
    model: str | None = None,
    tags: Mapping[str, str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Ingested:
    """Store the files and folders at `paths` as one run, whole or not at all.

    The run's id is made from the content of its files and of the options but name and tags, so the same input twice
    is one run, found again without being written. `progress(done_bytes, total_bytes, what)` is called as files are
    read; `cancel()` is asked between pieces, and where it is true the ingest ends with Cancelled.

    A file that cannot be read costs a warning where others can be read; what was read of it before the fault stays.
    Raises InputError, with nothing stored, where no file is of a known format, where none of those can be read, where
    chipledger.json is wrong, or where an option is.
    """
    options = _options(name, kind, chip, chips, model, tags)

    def check() -> None:
        if cancel is not None and cancel():
            raise Cancelled("cancelled; nothing was stored")

    try:
        # The scratch folder lies where the store sweeps up after killed processes.
        with tempfile.TemporaryDirectory(prefix=f"{os.getpid()}-", dir=store.root / "partial") as scratch:
            gathered = gather([Path(p) for p in paths], Path(scratch), check)
            jobs = _recognise(gathered, check)
            hashes = _hashes(jobs, check)
            run_id = _run_id(hashes, options)
            if (known := store.get(run_id)) is not None:
                warnings = [*known.manifest.warnings, *_not_applied(known.manifest, options)]
                return Ingested(run_id, known.manifest.tables, warnings, existed=True)
            jobs, hashes = _without_copies(jobs, hashes, gathered)
            return _Ingest(store, options, gathered, jobs, progress, check).store_as(
                run_id, options.get("name") or _name(paths), hashes
            )
    except BROKEN as e:  # not a file's fault: those are dealt with where files are read
        raise InputError(f"cannot use the store ({e})", where=str(store.root)) from e


@dataclass(frozen=True)
class _Job:
    source: SafeSource
    collector: ModuleType
    size: int


def _recognise(gathered: Gathered, check: Check) -> list[_Job]:
    """Each source with the collector that is surest of it. Raises InputError where no file has one."""
    jobs: list[_Job] = []
    unknown: list[str] = []
    for found in gathered.sources:
        check()
        score, collector = max(((c.sniff(found), c) for c in COLLECTORS), key=lambda scored: scored[0])
        if score < _SURE:
            unknown.append(found.name)
            continue
        # A fresh source, numbered, without the head that sniffing left in memory.
        with _reading(found):
            size = found.path.stat().st_size
        jobs.append(_Job(SafeSource(found.path, found.name, len(jobs)), collector, size))
    if unknown:
        gathered.notes.append(f"not recognised, passed over: {_listed(unknown)}")
    if all(job.collector is sidecar for job in jobs):
        if gathered.failures:
            raise gathered.failures[0]
        formats = "; ".join(f"{c.NAME}: {c.HELP.rstrip('.')}" for c in COLLECTORS)
        raise InputError(
            "no file of a known format", where=_listed([s.name for s in gathered.sources]), expected=f"one of {formats}"
        )
    return jobs


def _hashes(jobs: list[_Job], check: Check) -> list[str]:
    """SHA-256 of each file as it lies on disk."""

    def sha256(job: _Job) -> str:
        digest = hashlib.sha256()
        with _reading(job.source), job.source.path.open("rb") as f:
            while chunk := f.read(CHUNK):
                check()
                digest.update(chunk)
        return digest.hexdigest()

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(sha256, jobs))


def _run_id(hashes: list[str], options: dict[str, Any]) -> str:
    """What the run is made of: its files, and the options that change what it says. A name or a tag does not."""
    said = {key: value for key, value in options.items() if key not in _LABELS}
    whole = json.dumps([sorted(hashes), said], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _not_applied(known: Manifest, options: dict[str, Any]) -> list[str]:
    """Labels given for a run that is stored already, under others: runs are never changed."""
    if options.get("name", known.name) != known.name or not options.get("tags", {}).items() <= known.tags.items():
        return [f"this input is stored already, as {known.name!r}; the name and tags given now are not applied"]
    return []


def _without_copies(jobs: list[_Job], hashes: list[str], gathered: Gathered) -> tuple[list[_Job], list[str]]:
    """The jobs without further copies of the same file, which would count its rows twice."""
    first: dict[str, _Job] = {}
    for job, digest in zip(jobs, hashes, strict=True):
        original = first.setdefault(digest, job)
        if original is not job:
            gathered.notes.append(f"{job.source.name}: the same bytes as {original.source.name}, read once")
    return list(first.values()), list(first)


class _StoreFault(InputError):
    """The run could not be written."""


class _Lane:
    """Writes batches on a thread of its own, in order, never more than _QUEUED behind the reader."""

    def __init__(self, writer: RunWriter):
        self._writer = writer
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._pending: deque[Future] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def put(self, item: Rows | Blob) -> None:
        self._pending.append(self._pool.submit(self._write, item))
        while len(self._pending) > _QUEUED:
            self._pending.popleft().result()

    def finish(self) -> None:
        while self._pending:
            self._pending.popleft().result()

    def _write(self, item: Rows | Blob) -> None:
        try:
            if isinstance(item, Rows):
                self._writer.rows(item.table, item.batch)
            else:
                self._writer.blob(item.name, item.data)
        except OSError as e:
            raise _StoreFault(f"the run cannot be written ({e.strerror or e})", advice="Is the disk full?") from e


@dataclass
class _Ingest:
    store: Store
    options: dict[str, Any]
    gathered: Gathered
    jobs: list[_Job]
    progress: Callable[[int, int, str], None] | None
    check: Check

    def __post_init__(self) -> None:
        self.facts: dict[str, list[FactValue]] = {}
        self.warnings: list[str] = list(self.gathered.notes)
        self.total = sum(job.size for job in self.jobs)

    def store_as(self, run_id: str, name: str, hashes: list[str]) -> Ingested:
        with self.store.writer() as writer:
            with _Lane(writer) as lane:
                self._read_all(lane)
                lane.finish()
            facts = self._settled_facts()
            declared = {key: facts.pop(key).value for key in ("name", "kind", "tags") if key in facts}
            for key in ("chip", "chips", "model"):
                if key in self.options:
                    facts[key] = FactValue(self.options[key], "declared", _OPTION)
            self.check()
            run = writer.commit(
                run_id=run_id,
                name=self.options.get("name") or declared.get("name") or name,
                kind=self.options.get("kind") or declared.get("kind") or _kind(writer.counts),
                facts=facts,
                sources=[
                    {"name": job.source.name, "sha256": digest, "bytes": job.size, "collector": job.collector.NAME}
                    for job, digest in zip(self.jobs, hashes, strict=True)
                ],
                warnings=_capped(self.warnings),
                tags={**declared.get("tags", {}), **self.options.get("tags", {})},
            )
        self._report(self.total, "stored")
        return Ingested(run_id, run.manifest.tables, run.manifest.warnings, existed=False)

    def _read_all(self, lane: _Lane) -> None:
        """Read every file. Raises the first error where not one file with content could be read."""
        failures = list(self.gathered.failures)
        self.warnings += [str(e) for e in failures]
        done, whole = 0, 0
        for job in self.jobs:
            self._report(done, job.source.name)
            items, kept = _items(job), False
            while True:
                try:
                    item = next(items, None)
                except InputError as e:
                    if job.collector is sidecar:
                        raise  # what a person declared must not be dropped with a warning
                    failures.append(e)
                    self.warnings.append(f"{e} What was read before that is kept." if kept else str(e))
                    break
                if item is None:
                    whole += job.collector is not sidecar
                    break
                self.check()
                kept |= isinstance(item, Rows)
                self._take(item, job, lane)
                self._report(done + min(job.source.bytes_read(), job.size), job.source.name)
            done += job.size
        if failures and not whole:
            raise failures[0]

    def _take(self, item: Item, job: _Job, lane: _Lane) -> None:
        if isinstance(item, Rows | Blob):
            lane.put(item)
        elif isinstance(item, Fact):
            self.facts.setdefault(item.name, []).append(FactValue(item.value, item.basis, job.source.name))
        elif isinstance(item, Lost):
            where = "" if item.offset is None else f", from byte {item.offset:,} on"
            self.warnings.append(f"{job.source.name}{where}: {item.what}: {item.reason}")

    def _settled_facts(self) -> dict[str, FactValue]:
        """One value a fact: declared before measured before derived before published, then the first file's."""
        settled = {}
        for name, values in self.facts.items():
            best = min(values, key=lambda fact: _BASES.index(fact.basis))
            settled[name] = best
            other = next((v for v in values if v.basis == best.basis and v.value != best.value), None)
            if other is not None and name not in self.options:
                self.warnings.append(
                    f"{name}: {best.source} says {best.value!r}, {other.source} says {other.value!r}; the first counts"
                )
        return settled

    def _report(self, done: int, what: str) -> None:
        if self.progress is not None:
            self.progress(done, self.total, what)


def _items(job: _Job) -> Iterator[Item]:
    """What the collector reads; a damaged or vanished file becomes an InputError that names it."""
    with _reading(job.source):
        yield from job.collector.read(job.source)


@contextlib.contextmanager
def _reading(source: SafeSource) -> Iterator[None]:
    try:
        yield
    except BROKEN as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e) or type(e).__name__
        at = source.bytes_read()
        raise InputError(
            f"cannot be read beyond byte {at:,} ({reason})" if at else f"cannot be read ({reason})",
            where=source.name, advice="Is it complete?",
        ) from e  # fmt: skip


def _options(name: Any, kind: Any, chip: Any, chips: Any, model: Any, tags: Any) -> dict[str, Any]:
    """The options that were given, checked."""
    given = {"name": name, "kind": kind, "chip": chip, "chips": chips, "model": model, "tags": dict(tags or {}) or None}
    given = {key: value for key, value in given.items() if value is not None}
    for key, value in given.items():
        sidecar.check(key, value, _OPTION)
    return given


def _name(paths: Sequence[Path | str]) -> str:
    """A name for the run from the first path: that of the file or folder, without usual endings."""
    base = shown(Path(paths[0]).absolute().resolve().name if paths else "")
    return _SUFFIXES.sub("", base) or base or "run"


def _kind(tables: Mapping[str, int]) -> str:
    trained = any(tables.get(t) for t in _TRAINING_TABLES)
    return "serving" if not trained and any(tables.get(t) for t in _SERVING_TABLES) else "training"


def _listed(names: list[str], most: int = 10) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "nothing was given") + more


def _capped(warnings: list[str]) -> list[str]:
    if len(warnings) <= MAX_WARNINGS:
        return warnings
    return [*warnings[:MAX_WARNINGS], f"and {len(warnings) - MAX_WARNINGS:,} more warnings"]

"""From files to a stored run: each file to the collector that knows it, rows to Parquet as they come, one commit."""

import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pyarrow as pa

from collectors import COLLECTORS
from collectors.base import Blob, Fact, Item, Lost, Rows
from collectors.ingesting.chip_facts import most_chips, settled_chips
from collectors.ingesting.gather import Cancelled, Gathered, gather
from collectors.ingesting.identity import faults, made_anew, made_of, not_applied, readers, stored_before
from collectors.ingesting.naming import OPTION, capped_list, checked_options, kind_of, name_of, names_listed
from collectors.ingesting.order import begins, natural
from collectors.ingesting.plausible import plausible
from collectors.ingesting.recognise import SURE, Together, recognise
from collectors.ingesting.unpack import BROKEN, CHUNK, SafeSource
from collectors.own import sidecar
from errors import InputError
from runs.devices import devices
from runs.run import MANIFEST, FactValue, Manifest
from runs.store import Store
from runs.writer import RunWriter

_QUEUED = 8  # batches read ahead of the Parquet writer: keeps both busy, and memory small
_BASES = ("declared", "measured", "derived", "published")  # whose word counts first

Check = Callable[[], None]


@dataclass(frozen=True)
class Ingested:
    """What became of the input: the run, its rows by table, what was passed over, whether it was there before, and
    whether it was read anew."""

    run_id: str
    tables: dict[str, int]
    warnings: list[str]
    existed: bool
    replaced: bool = False


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
    again: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Ingested:
    """Store the files and folders at `paths` as one run, whole or not at all.

    The run's id is made from its files (their content, what reads them, what their names tell, and the order in which
    they are read) and from the options but name and tags, so the same input twice is one run, found again without
    being written. With `again` it is read anew, by what reads it now, and takes the place of the one before, whose
    name and tags it keeps where none are given; so it is where the one that is stored was damaged.

    `progress(done_bytes, total_bytes, what)` is called as files are read; `cancel()` is asked between pieces, and where
    it is true the ingest ends with Cancelled.

    A file that cannot be read costs a warning where others can be read; what was read of it before the fault stays.
    Raises InputError, with nothing stored, where no file is of a known format, where none of those can be read, where
    chipledger.json is wrong, or where an option is.
    """
    options = checked_options(name, kind, chip, chips, model, tags)

    def check() -> None:
        if cancel is not None and cancel():
            raise Cancelled("cancelled; nothing was stored")

    try:
        with store.hold() as scratch:  # swept by the store where this process is killed
            gathered = gather([Path(p) for p in paths], scratch.folder, check)
            jobs = _in_order(_hashed(_recognise(gathered, scratch.folder, check), check))
            run_id, known = made_of(jobs, options), None
            if (stored := stored_before(store, run_id, jobs, options)) is not None:
                run_id, fault = stored.run_id, next(faults(stored), None)
                known = None if fault and fault.where.endswith(MANIFEST) else stored.manifest
                if known and not again and not fault:
                    return Ingested(run_id, known.tables, [*known.warnings, *not_applied(known, options)], True)
                if fault:
                    gathered.notes.append(f"what was stored of this input was damaged, and was read anew: {fault.what}")
            work = _Ingest(store, options, gathered, _without_copies(jobs, gathered), progress, check, known)
            return work.store_as(run_id, name_of(paths), replace=stored is not None)
    except BROKEN as e:  # not a file's fault: those are dealt with where files are read
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise InputError(f"cannot use the store ({reason})", where=str(store.root)) from e


@dataclass(frozen=True)
class _Job:
    """A file to read. `begins`: the first time and step that it tells. `state`: what it was before its digest was
    taken."""

    source: SafeSource
    collector: ModuleType | Together
    size: int
    begins: tuple[float, float]
    digest: str = ""
    state: tuple[int, ...] = ()

    def changed(self) -> bool:
        """Whether somebody wrote to the file since."""
        with contextlib.suppress(OSError):
            return _state(self.source.path) != self.state
        return True


def _state(path: Path) -> tuple[int, ...]:
    told = path.stat()
    return told.st_size, told.st_mtime_ns, told.st_ino


def _recognise(gathered: Gathered, scratch: Path, check: Check) -> list[_Job]:
    """Each source with the collector that is surest of it. Raises InputError where no file has one."""
    jobs: list[_Job] = []
    unknown: list[str] = []
    for found in gathered.sources:
        check()
        best = recognise(found, scratch, check)
        if best.score < SURE:
            unknown.append(found.name)
            continue
        with _reading(found):
            size = found.path.stat().st_size
        jobs.append(_Job(best.source, best.collector, size, begins(best.source)))
        gathered.notes += best.notes
    if unknown:
        gathered.notes.append(f"not recognised, passed over: {names_listed(unknown)}")
    if all(job.collector is sidecar for job in jobs):
        if gathered.failures:
            raise gathered.failures[0]
        formats = "; ".join(f"{c.NAME}: {c.HELP.rstrip('.')}" for c in COLLECTORS)
        raise InputError(
            "no file of a known format",
            where=names_listed([s.name for s in gathered.sources]),
            expected=f"one of {formats}",
        )
    return jobs


def _in_order(jobs: list[_Job]) -> list[_Job]:
    """As they are read, and numbered so."""
    ordered = sorted(jobs, key=lambda job: (job.begins, natural(job.source.name), job.digest))
    return [replace(job, source=replace(job.source, index=n)) for n, job in enumerate(ordered)]


def _hashed(jobs: list[_Job], check: Check) -> list[_Job]:
    """With the SHA-256 of each file as it lies on disk."""

    def hashed(job: _Job) -> _Job:
        digest = hashlib.sha256()
        with _reading(job.source), job.source.path.open("rb") as f:
            state = _state(job.source.path)
            while chunk := f.read(CHUNK):
                check()
                digest.update(chunk)
        return replace(job, digest=digest.hexdigest(), state=state)

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(hashed, jobs))


def _without_copies(jobs: list[_Job], gathered: Gathered) -> list[_Job]:
    """The jobs without further copies of the same file, which would count its rows twice."""
    first: dict[str, _Job] = {}
    for job in jobs:
        original = first.setdefault(job.digest, job)
        if original is not job:
            gathered.notes.append(f"{job.source.name}: the same bytes as {original.source.name}, read once")
    return list(first.values())


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
    known: Manifest | None = None  # of the run that this one takes the place of

    def __post_init__(self) -> None:
        self.facts: dict[str, list[FactValue]] = {}
        self.devices: set[tuple[str, int]] = set()
        self.warnings: list[str] = list(self.gathered.notes)
        self.total = sum(job.size for job in self.jobs)
        self.changed: list[_Job] = []  # while they were read

    def store_as(self, run_id: str, name: str, replace: bool) -> Ingested:
        with self.store.writer() as writer:
            with _Lane(writer) as lane:
                self._read_all(lane)
                lane.finish()
            if self.changed:  # what was read is not what the id was made from: that input may come yet
                run_id, replace = made_anew(run_id), False
            facts = self._settled_facts()
            declared = {key: facts.pop(key).value for key in ("name", "kind", "tags") if key in facts}
            for key in ("chip", "chips", "model"):
                if key in self.options:
                    facts[key] = FactValue(self.options[key], "declared", OPTION)
            chips, warning = settled_chips(facts, self.devices)
            facts |= {} if chips is None else {"chips": chips}
            self.warnings += [warning] if warning else []
            self.check()
            run = writer.commit(
                run_id=run_id,
                name=self.options.get("name") or (self.known and self.known.name) or declared.get("name") or name,
                kind=self.options.get("kind") or declared.get("kind") or kind_of(writer.counts, facts),
                facts=facts,
                sources=[
                    {"name": job.source.name, "sha256": job.digest, "bytes": job.size, "collector": job.collector.NAME}
                    for job in sorted(self.jobs, key=lambda job: natural(job.source.name))
                ],
                warnings=capped_list(self.warnings),
                tags={
                    **declared.get("tags", {}),
                    **(self.known.tags if self.known else {}),
                    **self.options.get("tags", {}),
                },
                readers=readers(),
                replace=replace,
            )
        self._report(self.total, "stored")
        return Ingested(run_id, run.manifest.tables, run.manifest.warnings, existed=False, replaced=replace)

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
            if job.changed():
                self.changed.append(job)
                self.warnings.append(
                    f"{job.source.name}: was written to while it was read, and some of it may lack; "
                    "ingest it again when it is complete"
                )
            done += job.size
        if failures and not whole:
            raise failures[0]

    def _take(self, item: Item, job: _Job, lane: _Lane) -> None:
        if isinstance(item, Rows | Blob):
            lane.put(item)
            if isinstance(item, Rows) and item.table == "ops":
                self.devices |= devices(pa.Table.from_batches([item.batch]))
        elif isinstance(item, Fact) and not _held(item.value):
            self.warnings.append(f"{job.source.name}: {item.name}: a number that 64 bits do not hold, passed over")
        elif isinstance(item, Fact):
            self.facts.setdefault(item.name, []).append(FactValue(item.value, item.basis, job.source.name))
        elif isinstance(item, Lost):
            where = "" if item.offset is None else f", from byte {item.offset:,} on"
            self.warnings.append(f"{job.source.name}{where}: {item.what}: {item.reason}")

    def _settled_facts(self) -> dict[str, FactValue]:
        """One value a fact: declared before measured before derived before published, then the first file's."""
        settled = {}
        for name, values in self.facts.items():
            best = most_chips(values) if name == "chips" else min(values, key=lambda fact: _BASES.index(fact.basis))
            settled[name] = best
            other = next((v for v in values if v.basis == best.basis and v.value != best.value), None)
            if other is not None and name not in self.options:
                which = "larger" if name == "chips" and best.basis != "declared" else "first"
                said = f"{best.source} says {best.value!r}, {other.source} says {other.value!r}"
                self.warnings.append(f"{name}: {said}; the {which} counts")
        return settled

    def _report(self, done: int, what: str) -> None:
        if self.progress is not None:
            self.progress(done, self.total, what)


def _items(job: _Job) -> Iterator[Item]:
    """What the collector reads; a damaged or vanished file becomes an InputError that names it."""
    with _reading(job.source):
        yield from plausible(job.collector.read(job.source))


def _held(value: Any) -> bool:
    """Whether the whole numbers of a fact fit 64 bits: JSON's may have any number of digits."""
    if isinstance(value, dict | list | tuple):
        return all(map(_held, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


@contextlib.contextmanager
def _reading(source: SafeSource) -> Iterator[None]:
    try:
        yield
    except BROKEN as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e) or type(e).__name__
        at = source.bytes_read()
        raise InputError(
            f"cannot be read beyond byte {at:,} ({reason})" if at else f"cannot be read ({reason})",
            where=source.name,
            advice="Is it complete?",
        ) from e

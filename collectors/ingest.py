"""From files to a stored run: each file to the collector that knows it, rows to Parquet as they come, one commit."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from collectors.base import Blob, Fact, Item, Lost, Rows
from collectors.ingesting.ahead import Ahead
from collectors.ingesting.beside import left_out
from collectors.ingesting.captures import with_captures
from collectors.ingesting.chip_facts import chips_over_time, chips_together, settled_chips, unknown_chip
from collectors.ingesting.far.files import FarFile
from collectors.ingesting.far.looking import sources
from collectors.ingesting.gather import Cancelled, Gathered, gather
from collectors.ingesting.identity import faults, made_anew, made_of, not_applied, readers, stored_before
from collectors.ingesting.items import items_of
from collectors.ingesting.jobs import Check, Job, in_order, recognised, with_digests, without_copies
from collectors.ingesting.lane import Lane, StoreFault
from collectors.ingesting.naming import OPTION, capped_list, checked_options, kind_of, name_of
from collectors.ingesting.order import natural
from collectors.ingesting.parts.records import Stored
from collectors.ingesting.parts.spread import Spread, many
from collectors.ingesting.settling import contradictions, held, seats_by_input, settled
from collectors.ingesting.told import Files, FileTold, Tell, line, unknown, why, with_others, without_frames
from collectors.ingesting.unpack import BROKEN, SafeSource
from collectors.own import sidecar
from collectors.reading import job_ran, server_ran
from errors import InputError
from runs.devices import devices
from runs.objects.coming import Coming
from runs.run import MANIFEST, FactValue, Manifest, Run
from runs.share_book import Audience
from runs.spread.engine import Engine, EngineError
from runs.spread.processes import Processes
from runs.store import Store

RESTORED = "the run of this input lay in the bin; it is back in the library, with all that was added to it"


@dataclass(frozen=True)
class Ingested:
    """What became of the input: the run, its rows by table, what was passed over, whether it was there before, whether
    it was read anew, whether it lay in the bin and was brought back, and what became of each file."""

    run_id: str
    tables: dict[str, int]
    warnings: list[str]
    existed: bool
    replaced: bool = False
    restored: bool = False
    files: tuple[FileTold, ...] = ()


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
    tell: Tell | None = None,
    audience: Audience | None = None,
    before: Callable[[str], None] | None = None,
    engine: Engine | None = None,
    far: Sequence[FarFile] = (),
) -> Ingested:
    """Store the files and folders at `paths` as one run, whole or not at all.

    The run's id is made from its files (their content, what reads them, what their names tell, and the order in which
    they are read) and from the options but name and tags, so the same input twice is one run, found again without
    being written. With `again` it is read anew, by what reads it now, and takes the place of the one before, whose
    name and tags it keeps where none are given; so it is where the one that is stored was damaged.

    `progress(done_bytes, total_bytes, what)` is called as files are read, `tell` with a file whenever something is new
    of it; `cancel()` is asked between pieces, and where it is true the ingest ends with Cancelled. `audience`: for whom
    it is read, where not all may see it; `before` is called with the id of a run that is new, just before it is there.
    `engine`: whose workers read the files, to parts of tables; None: this process, or processes of this machine where
    there are many. `far`: files that lie in a bucket, which the workers of `engine` read there.

    A file that no reader knows, or that cannot be read, costs a warning where others can be read; what was read of it
    before the fault stays.
    Raises InputError, with nothing stored, where no file is of a known format, where none of those can be read, where
    chipledger.json is wrong, or where an option is.
    """
    options = checked_options(name, kind, chip, chips, model, tags)

    def check() -> None:
        if cancel is not None and cancel():
            raise Cancelled("cancelled; nothing was stored")

    try:
        # the scratch folder is swept by the store where this process is killed
        with store.hold() as scratch, contextlib.ExitStack() as scope:
            coming = store.coming() if engine is not None and engine.elsewhere else None
            if coming is not None:
                scope.callback(coming.clear)
            engine, files = engine and scope.enter_context(engine), Files(tell)
            named = _far(far, engine, scratch.folder, check, progress)
            gathered = gather([Path(p) for p in paths], scratch.folder, check, named)
            jobs, left = left_out(recognised(gathered, scratch.folder, files, check))
            for aside in left:
                gathered.pass_over(*aside)
            jobs = with_captures(in_order(with_digests(jobs, check, None if far else engine)))
            run_id, known = made_of(jobs, options), None
            stored, restored = _found(store, run_id, jobs, options, audience)
            if restored:
                gathered.notes.append(RESTORED)
            if stored is not None:
                run_id, fault = stored.run_id, next(faults(stored), None)
                known = None if fault and fault.where.endswith(MANIFEST) else stored.written
                if known and not again and not fault:
                    warnings = [*known.warnings, *not_applied(known, options), *([RESTORED] if restored else [])]
                    told = _stored_already(jobs, gathered, files)
                    return Ingested(run_id, known.tables, warnings, existed=True, restored=restored, files=told)
                if fault:
                    gathered.notes.append(f"what was stored of this input was damaged, and was read anew: {fault.what}")
            elif audience is not None:
                run_id = audience.new_id(run_id, store.kept(run_id) is not None)
            jobs = without_copies(jobs, gathered, check)
            engine = engine or (scope.enter_context(Processes()) if many(jobs) else None)
            work = _Ingest(
                *(store, options, gathered, jobs, progress, check, known, scratch.folder),
                *(files, before or (audience and audience.begin), engine, coming, bool(far)),
            )
            return work.store_as(run_id, name_of(paths), replace=stored is not None)
    except BROKEN as e:  # not a file's fault: those are dealt with where files are read
        reason = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise InputError(f"cannot use the store ({reason})", where=str(store.root)) from e


def _found(
    store: Store, run_id: str, jobs: list["Job"], options: dict[str, Any], audience: Audience | None
) -> tuple[Run | None, bool]:
    """(the run of this input, where there is one; whether it lay in the bin, and was brought back)."""
    run = stored_before(store, run_id, jobs, options, audience)
    if run is None or store.has(run.run_id):
        return run, False
    restored = store.bin.restore(run.run_id)
    return store.get(run.run_id), restored


def _far(
    files: Sequence[FarFile],
    engine: Engine | None,
    scratch: Path,
    check: Check,
    progress: Callable[[int, int, str], None] | None,
) -> list[tuple[str, Path | SafeSource]]:
    """What lies in buckets, by name."""
    if not files:
        return []
    if engine is None:
        raise InputError("files in a bucket are read there by the workers of an engine alone", where=files[0].url)
    whole = sum(file.bytes for file in files)

    def report(count: int) -> None:
        if progress is not None:
            progress(0, whole, f"looked at {count:,} of {len(files):,} files")

    return list(sources(files, engine, scratch / "brought", check, report))


def _stored_already(jobs: list[Job], gathered: Gathered, files: Files) -> tuple[FileTold, ...]:
    files.passed_over(gathered)
    for job in jobs:
        files.set(job.source.name, state="read", reason="Read before: the run is stored already.")
    return files.all()


@dataclass
class _Ingest:
    store: Store
    options: dict[str, Any]
    gathered: Gathered
    jobs: list[Job]
    progress: Callable[[int, int, str], None] | None
    check: Check
    known: Manifest | None  # of the run that this one takes the place of
    scratch: Path
    files: Files
    before: Callable[[str], None] | None
    engine: Engine | None
    coming: Coming | None  # where its workers leave what they read; None: below this store's folder
    far: bool  # whether some files lie in a bucket, and no worker sees what lies here

    def __post_init__(self) -> None:
        self.files.passed_over(self.gathered)
        self.facts: dict[str, list[FactValue]] = {}
        self.devices: set[tuple[str, int]] = set()
        self.warnings: list[str] = list(self.gathered.notes)
        self.total = sum(job.size for job in self.jobs)
        self.changed: list[Job] = []  # while they were read
        self.reported = 0  # bytes

    def store_as(self, run_id: str, name: str, replace: bool) -> Ingested:
        with self.store.writer() as writer:
            with Lane(writer) as lane, self._reader() as reader:
                self._read_all(lane, reader)
                lane.finish()
                if isinstance(reader, Spread):
                    reader.settle(writer)
            if self.changed:  # what was read is not what the id was made from: that input may come yet
                run_id, replace = made_anew(run_id), False
            ran, started = (self.facts.pop(name, []) for name in (server_ran.NAME, job_ran.NAME))
            facts = settled(self.facts) | seats_by_input(self.facts)
            together, added_up = chips_together(ran, facts.get("chips"))
            if together is None:
                together, added_up = chips_over_time(started, facts.get("chips"))
            facts |= {} if together is None else {"chips": together}
            self.warnings += contradictions(self.facts, {*self.options, *(("chips",) if together else ())})
            self.warnings += [added_up] if added_up and "chips" not in self.options else []
            declared = {key: facts.pop(key).value for key in ("name", "kind", "tags") if key in facts}
            for key in ("chip", "chips", "model"):
                if key in self.options:
                    facts[key] = FactValue(self.options[key], "declared", OPTION)
            chips, warning = settled_chips(facts, self.devices)
            facts |= {} if chips is None else {"chips": chips}
            self.warnings += filter(None, (warning, unknown_chip(facts)))
            self.check()
            if self.before is not None and not replace:
                self.before(run_id)
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
        made, told = writer.placed, run.manifest
        files = self.files.all()
        return Ingested(run_id, told.tables, told.warnings, existed=not made, replaced=replace and made, files=files)

    def _reader(self) -> Ahead | Spread:
        if self.engine is not None:
            return Spread(
                *(self.jobs, self.engine, self.scratch, self.check, lambda n: self._report(n, "reading")),
                *(self.coming, self.far),
            )
        files = [(job.source, job.collector.NAME) for job in self.jobs if isinstance(job.collector, ModuleType)]
        return Ahead(files, self.scratch, self.check)

    def _read_all(self, lane: Lane, ahead: Ahead | Spread) -> None:
        """Read every file. Raises the first error where not one file with content could be read."""
        failures, partly = list(self.gathered.failures), dict[str, InputError]()
        self.warnings += [str(e) for e in failures]
        done, whole = 0, 0
        for job in self.jobs:
            self._report(done, job.source.name)
            self.files.set(job.source.name, state="reading")
            items, kept = self._items(job, ahead, done), False
            while True:
                try:
                    item = next(items, None)
                except (Cancelled, StoreFault, EngineError):
                    raise  # the file is sound
                except InputError as e:
                    if job.collector is sidecar:
                        raise  # what a person declared must not be dropped with a warning
                    failures.append(without_frames(e))
                    self._failed(job, e, kept)
                    partly |= {job.source.name: e} if kept else {}
                    break
                if item is None:
                    whole += job.collector is not sidecar
                    self.files.set(job.source.name, state="read", progress=1.0)
                    break
                self.check()
                kept |= isinstance(item, Rows | Stored)
                self._take(item, job, lane)
                self._read_of(job, done, ahead.bytes_read(job.source))
            if job.changed():
                self.changed.append(job)
                self.warnings.append(
                    f"{job.source.name}: was written to while it was read, and some of it may lack; "
                    "ingest it again when it is complete"
                )
            done += job.size
        if failures and not whole:
            for name, error in partly.items():  # of which nothing is kept then
                self.files.without(name, "refused", why(error))
            raise with_others(failures[0], sum(f.state == "refused" for f in self.files.all()) - 1)

    def _items(self, job: Job, ahead: Ahead | Spread, done: int) -> Iterator[Item | Stored]:
        """What a file holds, read by another process where that is worth it."""
        if not ahead.has(job.source):
            return items_of(job.source, job.collector)
        return ahead.items(job.source, lambda read: self._read_of(job, done, read))

    def _failed(self, job: Job, error: InputError, kept: bool) -> None:
        """A file that could not be read to its end."""
        name = job.source.name
        if kept:
            self.warnings.append(f"{error} What was read before that is kept.")
            self.files.set(name, state="read", reason=line(f"{why(error)} What was read before that is kept."))
        else:
            self.warnings.append(str(error))
            self.files.without(name, "refused", why(error) if job.size else unknown(job.source).reason)

    def _read_of(self, job: Job, done: int, read: int) -> None:
        self.files.read(job.source.name, read / job.size if job.size else 1.0)
        self._report(done + min(read, job.size), job.source.name)

    def _take(self, item: Item | Stored, job: Job, lane: Lane) -> None:
        if isinstance(item, Rows | Blob):
            lane.put(item)
            if isinstance(item, Rows) and item.table == "ops":
                self.devices |= devices(pa.Table.from_batches([item.batch]))
        elif isinstance(item, Stored):
            self.devices |= item.devices
        elif isinstance(item, Fact) and not held(item.value):
            self.warnings.append(f"{job.source.name}: {item.name}: a number that 64 bits do not hold, passed over")
        elif isinstance(item, Fact):
            self.facts.setdefault(item.name, []).append(FactValue(item.value, item.basis, job.source.name))
        elif isinstance(item, Lost):
            where = "" if item.offset is None else f", from byte {item.offset:,} on"
            self.warnings.append(f"{job.source.name}{where}: {item.what}: {item.reason}")
            self.files.set(job.source.name, reason=line(f"{item.what}: {item.reason}"))

    def _report(self, done: int, what: str) -> None:
        self.reported = max(self.reported, done)  # workers may be ahead of the file that is taken in
        if self.progress is not None:
            self.progress(self.reported, self.total, what)

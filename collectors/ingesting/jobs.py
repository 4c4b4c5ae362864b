"""The files of an ingest with their readers: what each is, in which order they are read, which are copies."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from collectors.ingesting.ahead import LEAST_BYTES
from collectors.ingesting.copies import contents
from collectors.ingesting.digests import State, hashed, states
from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.gather import Gathered
from collectors.ingesting.items import reading
from collectors.ingesting.naming import names_listed
from collectors.ingesting.order import begins, natural
from collectors.ingesting.recognise import SURE, Together, recognise
from collectors.ingesting.told import Files, Unknown, refusal, unknown
from collectors.ingesting.unpack import SafeSource
from collectors.own import sidecar
from runs.spread.engine import Engine

NOTED = 10  # files of no known format that are noted one by one
Check = Callable[[], None]


@dataclass(frozen=True)
class Job:
    """A file to read. `begins`: the first time and step that it tells. `state`: what it was before its digest was
    taken."""

    source: SafeSource
    collector: ModuleType | Together
    size: int
    begins: tuple[float, float]
    digest: str = ""
    state: State = ()

    def changed(self) -> bool:
        """Whether somebody wrote to the file since. One in a bucket is refused by who reads it then."""
        if isinstance(self.source, FarSource):
            return False
        with contextlib.suppress(OSError):
            return states(self.source) != self.state
        return True


def recognised(gathered: Gathered, scratch: Path, files: Files, check: Check) -> list[Job]:
    """Each source with the collector that is surest of it. Raises InputError where no file has one."""
    jobs: list[Job] = []
    strangers: list[Unknown] = []
    files.found(gathered)
    for found in gathered.sources:
        check()
        job, notes, stranger = _of_far(found) if isinstance(found, FarSource) else _of_here(found, scratch, check)
        if job is None:
            strangers.append(stranger or unknown(found))
            files.without(found.name, "refused", strangers[-1].reason)
            continue
        files.known(found.name, job.size, job.collector.NAME)
        jobs.append(job)
        gathered.notes += notes
    gathered.notes += [f"{one.name}: not recognised, passed over. {one.reason}" for one in strangers[:NOTED]]
    if rest := strangers[NOTED:]:
        gathered.notes.append(f"not recognised, passed over: {names_listed([one.name for one in rest])}")
    if all(job.collector is sidecar for job in jobs):
        raise gathered.failures[0] if gathered.failures else refusal(strangers)
    return jobs


_Seen = tuple["Job | None", Sequence[str], Unknown | None]  # the file with its reader, notes, what else it looks like


def _of_here(found: SafeSource, scratch: Path, check: Check) -> _Seen:
    best = recognise(found, scratch, check)
    if best.score < SURE:
        return None, (), unknown(found)
    with reading(found):
        size = found.size
    job = Job(replace(best.source), best.collector, size, begins(best.source))
    vars(found).pop("head", None)  # 64 KiB of each of thousands of files
    return job, best.notes, None


def _of_far(found: FarSource) -> _Seen:
    told = found.looked
    if told.stranger is not None:
        return None, (), replace(told.stranger, name=found.name)
    return Job(found, found.collector, found.size, told.begins, told.digest), told.notes, None


def in_order(jobs: list[Job]) -> list[Job]:
    """As they are read, and numbered so."""
    ordered = sorted(jobs, key=lambda job: (job.begins, natural(job.source.name), job.digest))
    return [replace(job, source=replace(job.source, index=n)) for n, job in enumerate(ordered)]


def with_digests(jobs: list[Job], check: Check, engine: Engine | None) -> list[Job]:
    plain = [job for job in jobs if not job.digest]
    _prepare(plain)
    told = hashed([job.source for job in plain], check, engine)
    known = {id(job): replace(job, digest=d, state=s) for job, (d, s) in zip(plain, told, strict=True)}
    return [known.get(id(job), job) for job in jobs]


def _prepare(jobs: list[Job]) -> None:
    """Begin to load what reading these files needs while they are hashed, which needs no lock of Python's. Of several
    large files the processes that read them ahead load it."""
    if sum(job.size >= LEAST_BYTES for job in jobs) > 1:
        return
    for collector in {job.collector for job in jobs}:
        if (prepare := getattr(collector, "prepare", None)) is not None:
            threading.Thread(target=prepare, name="preparing", daemon=True).start()


def without_copies(jobs: list[Job], gathered: Gathered, check: Check) -> list[Job]:
    """The jobs without further copies of the same file, packed or not, which would count its rows twice. Where names
    tell files apart (`apart` of a collector), the same bytes under another name are no copy."""
    held, beginnings = contents([job.source for job in jobs], [job.digest for job in jobs], check)
    first: dict[tuple[str, object], Job] = {}
    for n, (job, content) in enumerate(zip(jobs, held, strict=True)):
        apart = getattr(job.collector, "apart", None)
        if n in beginnings and apart is None:
            whole = jobs[beginnings[n]].source.name
            gathered.pass_over(job.source.name, f"cut off, and as far as it goes the beginning of {whole}, read once")
            continue
        original = first.setdefault((content, apart(job.source.name) if apart else None), job)
        if original is not job:
            unpacked = "" if original.digest == job.digest else " where both are unpacked"
            gathered.pass_over(job.source.name, f"the same bytes as {original.source.name}{unpacked}, read once")
    return list(first.values())

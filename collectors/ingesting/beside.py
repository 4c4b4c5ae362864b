"""Files that tell in part what another file of the same capture tells in full: they are left out, or it would count
twice."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol, TypeVar

from collectors.base import Source
from collectors.device import chakra, compiled, kineto, viewer, xplane
from collectors.ingesting import dumps, trainer_states, wandb_beside
from collectors.ingesting.unpack import SafeSource
from collectors.training import llm_c

_WHOLE_HOST = "perfetto_trace"
"""What JAX calls its copy for Perfetto, whatever the host; it holds what `<host>.trace.json.gz` holds."""


class _Job(Protocol):
    @property
    def source(self) -> SafeSource: ...
    @property
    def collector(self) -> object: ...
    @property
    def size(self) -> int: ...


J = TypeVar("J", bound=_Job)


def left_out(jobs: Sequence[J]) -> tuple[list[J], list[tuple[str, str]]]:
    """(the jobs to be read; of the others name and reason). A trace for a viewer is left out where the profile that it
    was made of lies in its folder, and a profile in pieces where the whole does; not where that is empty. One of Chakra
    is, wherever it lies, beside traces of PyTorch's profiler. Of the dumps of one program in a folder the one that is
    nearest to what runs is kept, and of states of one training the last. Of a run of W&B the console and the summary
    stand in its own file. llm.c's main.log tells what its standard output does."""
    whole = {_place(job) for job in jobs if job.collector is xplane and job.size and not _in_pieces(job)}
    profiles = {_place(job) for job in jobs if job.collector is xplane and job.size}
    traces = {_place(job) for job in jobs if job.collector is viewer}
    profiled = any(job.collector is kineto and job.size for job in jobs)
    best, again = (
        _best_dumps(jobs),
        trainer_states.told_again(jobs) | wandb_beside.told_again(jobs) | _told_by_output(jobs),
    )
    kept, aside = [], []
    for job in jobs:
        folder, host = _place(job)
        others = profiles if host != _WHOLE_HOST else {p for p in profiles | traces if p != (folder, host)}
        told = (folder, host) in others or (host == _WHOLE_HOST and any(f == folder for f, _ in others))
        if job.collector is viewer and told:
            aside.append((job.source.name, "a trace for a viewer, left out: what it was made of lies beside it"))
        elif job.collector is chakra and profiled:
            aside.append(
                (
                    job.source.name,
                    "a trace of Chakra, left out: traces of the profiler, of which such are made, tell more",
                )
            )
        elif job.collector is xplane and _in_pieces(job) and (folder, host) in whole:
            aside.append((job.source.name, "a profile in pieces, left out: the whole of it lies beside it"))
        elif (better := best.get(_dumped(job), job)) is not job:
            aside.append((job.source.name, dumps.reason(job.source.name, better.source.name)))
        elif reason := again.get(job.source.name):
            aside.append((job.source.name, reason))
        else:
            kept.append(job)
    return kept, aside


def _told_by_output(jobs: Sequence[J]) -> dict[str, str]:
    """The one main.log of llm.c, where its standard output is there."""
    logs = [job.source for job in jobs if job.collector is llm_c and job.size]
    short = [source.name for source in logs if isinstance(source, Source) and llm_c.is_short(source)]
    if len(short) != 1 or len(logs) != 2:
        return {}
    return {short[0]: "llm.c's main.log, left out: its standard output tells the same, and how long steps took"}


def _dumped(job: _Job) -> dumps.Program | None:
    return dumps.program_of(job.source.name) if job.collector is compiled else None


def _best_dumps(jobs: Sequence[J]) -> dict[dumps.Program | None, J]:
    """Of each program that XLA dumped the file that tells most of it; the first of several alike."""
    found: dict[dumps.Program | None, J] = {}
    for job in jobs:
        program = _dumped(job)
        if program is not None and job.size:
            before = found.setdefault(program, job)
            if dumps.rank(job.source.name) > dumps.rank(before.source.name):
                found[program] = job
    return found


def _in_pieces(job: _Job) -> bool:
    return job.source.name.removesuffix(".gz").endswith(".riegeli")


def _place(job: _Job) -> tuple[str, str]:
    """(folder, host) of a file by its name, as profilers name them: `<host>.xplane.pb`, `<host>.trace.json.gz`."""
    path = PurePath(job.source.name)
    name = path.name
    for ending in (".gz", ".json", ".pb", ".riegeli", ".trace", ".xplane"):
        name = name.removesuffix(ending)
    return str(path.parent), name

"""Traces in which graphs (of CUDA or HIP) are captured, beside the traces in which they run: who reads a trace of the
second kind is told where those of the first lie."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar

from collectors.device import kineto
from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.unpack import SafeSource

_CAPTURE = re.compile(r"capture", re.IGNORECASE)
_RANK = re.compile(r"rank[-_ ]?(\d{1,7})", re.IGNORECASE)
MOST = 16  # traces of captures that are looked at for one trace


@dataclass(frozen=True)
class Traced(SafeSource):
    """A trace with those of captures that lie beside it. `captures`: (name, file) of each; `digests`: what they hold,
    which the trace's rows depend on."""

    captures: tuple[tuple[str, Path], ...] = ()
    digests: tuple[str, ...] = ()


@dataclass(frozen=True)
class FarTraced(FarSource):
    """The same in a bucket, where a worker brings all of them to its disk."""

    beside: tuple[FarSource, ...] = ()

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(source.looked.digest for source in self.beside)


class _Job(Protocol):
    @property
    def source(self) -> SafeSource: ...
    @property
    def collector(self) -> object: ...
    @property
    def digest(self) -> str: ...


J = TypeVar("J", bound=_Job)


def with_captures(jobs: Sequence[J]) -> list[J]:
    """The jobs; traces of PyTorch with the traces of captures, as their names tell, that lie in their folder or below
    it and are of no other rank."""
    captures = [j for j in jobs if j.collector is kineto and _is_capture(j.source)]
    if not captures:
        return list(jobs)
    return [j if j.collector is not kineto or _is_capture(j.source) else _with(j, captures) for j in jobs]


def _with(job: Any, captures: Sequence[_Job]) -> Any:
    """The job as it is where none lies beside it, or where it was taken out of something else. Of a trace in a bucket
    those that lie there too, of one here those that are here."""
    kind = type(job.source)
    if kind not in (SafeSource, FarSource):
        return job
    mine = [c for c in captures if type(c.source) is kind and _beside(job.source.name, c.source.name)][:MOST]
    if not mine:
        return job
    told = {f.name: getattr(job.source, f.name) for f in fields(kind)}
    sources = tuple(c.source for c in mine)
    if kind is FarSource:
        return replace(job, source=FarTraced(**told, beside=tuple(s for s in sources if isinstance(s, FarSource))))
    here = tuple((s.name, s.path) for s in sources)
    return replace(job, source=Traced(**told, captures=here, digests=tuple(c.digest for c in mine)))


def _is_capture(source: SafeSource) -> bool:
    return bool(_CAPTURE.search(source.name))


def _beside(trace: str, capture: str) -> bool:
    ranks = [_RANK.findall(name)[-1:] for name in (trace, capture)]
    if all(ranks) and int(ranks[0][0]) != int(ranks[1][0]):
        return False
    return PurePosixPath(capture).parent.is_relative_to(PurePosixPath(trace).parent)

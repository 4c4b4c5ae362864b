"""States of Hugging Face's Trainer of one job: each checkpoint holds all that was logged up to it, so that the last one
tells what the earlier ones do, and more."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from collectors.ingesting.far.looking import FarSource
from collectors.ingesting.unpack import SafeSource
from collectors.reading.as_far import BROKEN
from collectors.training import trainer_state

REASON = "the state of an earlier checkpoint, left out: {} tells all that it does"


class _Job(Protocol):
    @property
    def source(self) -> SafeSource: ...
    @property
    def collector(self) -> object: ...


def told_again(jobs: Sequence[_Job]) -> dict[str, str]:
    """Why a state is left out, by its name: what was logged in it is the beginning of another, or all of it."""
    states = [job.source for job in jobs if job.collector is trainer_state and not isinstance(job.source, FarSource)]
    if len(states) < 2:
        return {}
    logged = sorted(_logged(states), key=lambda one: (-len(one[1]), one[0]))
    told: dict[str, str] = {}
    holds: dict[str, str] = {}  # a digest of what was logged up to an entry: the state that is read of it
    for name, up_to in logged:
        if whole := holds.get(up_to[-1]):
            told[name] = REASON.format(whole)
        else:
            holds |= {digest: name for digest in up_to if digest not in holds}
    return told


def _logged(states: Sequence[SafeSource]) -> Iterator[tuple[str, list[str]]]:
    for source in states:
        try:
            up_to = trainer_state.histories(source)
        except BROKEN:  # whoever reads it says so
            continue
        if up_to:
            yield source.name, up_to

"""Where two timelines lie over one another: at the beginning of a step that both runs took."""

from dataclasses import dataclass

import numpy as np

from analyzers.base import Facts
from analyzers.difference.step_time import step_times
from analyzers.timeline import Timeline
from analyzers.timeline.moments import step, steps_with_times
from analyzers.timeline.pyramid import Ints
from errors import QuestionError
from runs.tables import Tables

SETTLED, COMMON, ASKED, BEGINNINGS = "settled", "common", "asked", "beginnings"


@dataclass(frozen=True)
class Side:
    """One of the two runs. `name`: as sentences name it."""

    name: str
    of: Timeline
    tables: Tables
    facts: Facts

    @property
    def steps(self) -> Ints:
        """Those with times, in order."""
        return steps_with_times(self.of, self.tables)

    def settled(self, some: Ints) -> Ints:
        """Which of these are settled steps, as a comparison of two runs takes them."""
        told = step_times(self.tables, self.facts)
        return some[:0] if told is None else some[np.isin(some, told.step)]


@dataclass(frozen=True)
class Meeting:
    """`at`, `other_at`: ticks of each that lie over one another. `step`: at whose beginning that is, None: at the first
    events of both. `why`: SETTLED, the first settled step that both have; COMMON, the first that both have, of which
    none is settled in both; ASKED; BEGINNINGS."""

    at: int
    other_at: int
    step: int | None
    why: str


def meeting(a: Side, b: Side, asked: int | None = None) -> Meeting:
    """Where two runs lie over one another. Raises QuestionError for a step that is asked for and not in both."""
    both = np.intersect1d(a.steps, b.steps)
    if asked is not None:
        if asked not in both:
            raise QuestionError(f"no step {asked:,} with a time in both runs", expected=_nearest(a, b, both, asked))
        return _at(a, b, asked, ASKED)
    if not len(both):
        return Meeting(0, 0, None, BEGINNINGS)
    settled = np.intersect1d(a.settled(both), b.settled(both))
    return _at(a, b, int(settled[0]), SETTLED) if len(settled) else _at(a, b, int(both[0]), COMMON)


def _at(a: Side, b: Side, number: int, why: str) -> Meeting:
    at, other_at = (step(side.of, side.tables, number).start for side in (a, b))
    return Meeting(at, other_at, number, why)


def _nearest(a: Side, b: Side, both: Ints, asked: int) -> str:
    if len(both):
        near = int(both[np.argmin(np.abs(both - asked))])
        return f"a step of both, such as {near:,}, the nearest"
    return f"two runs with a step in common: these have none ({told_steps(a)}; {told_steps(b)})"


def told_steps(side: Side) -> str:
    """Which steps of it have times: `a has steps from 3 to 40`."""
    own = side.steps
    if not len(own):
        return f"{side.name} tells of no steps with times"
    return f"{side.name} has steps from {int(own[0]):,} to {int(own[-1]):,}"

"""What is not the same in all of several runs: settings first, then figures; what all tell alike is counted.

differs    at least two of the runs that tell it tell it differently
some       it is told by some of the runs alone, and these tell the same: no difference that is known
common     all tell the same
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyzers.base import Facts
from analyzers.difference.differs import AXES, alike, flat, order_of
from errors import QuestionError

LEAST, MOST = 2, 200  # runs that can be laid beside one another


@dataclass(frozen=True, kw_only=True)
class Member:
    """One of the runs. `model`: what it calls its model, None where it tells none; `figures`: by name, those that are
    known, in their own units."""

    run_id: str
    name: str
    kind: str
    simulated: bool = False
    model: str | None = None
    facts: Facts = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Line:
    """A setting or a figure of all runs, in their order; None: that run does not tell it."""

    name: str
    figure: bool
    values: tuple[Any, ...]

    @property
    def told(self) -> tuple[Any, ...]:
        return tuple(v for v in self.values if v is not None)

    @property
    def differs(self) -> bool:
        return not all(alike(v, self.told[0]) for v in self.told)

    @property
    def by_all(self) -> bool:
        return len(self.told) == len(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "sort": "figure" if self.figure else "setting", "values": list(self.values)}


@dataclass(frozen=True)
class Differing:
    """Lines in the order in which they are read. See the module for what each part holds."""

    differs: tuple[Line, ...]
    some: tuple[Line, ...]
    common: tuple[Line, ...]

    @property
    def settings(self) -> tuple[Line, ...]:
        return tuple(line for line in self.differs if not line.figure)

    @property
    def figures(self) -> tuple[Line, ...]:
        return tuple(line for line in self.differs if line.figure)


def differing(members: Sequence[Member], figures: Sequence[str]) -> Differing:
    """`figures`: names of those that are looked at, in their order. Raises QuestionError for fewer runs than LEAST or
    more than MOST."""
    if not LEAST <= len(members) <= MOST:
        raise QuestionError(f"{len(members):,} runs to compare", expected=f"{LEAST} to {MOST} runs")
    lines = [*_settings(members), *_figures(members, figures)]
    lines = [line for line in lines if line.told]
    same = [line for line in lines if not line.differs]
    return Differing(
        tuple(line for line in lines if line.differs),
        tuple(line for line in same if not line.by_all),
        tuple(line for line in same if line.by_all),
    )


def _settings(members: Sequence[Member]) -> list[Line]:
    """What each run is, then every setting that any of them tells; those that all tell first, of each in the order in
    which two runs are compared."""
    told = [dict(flat(m.facts)) for m in members]
    axes = dict.fromkeys((name for mine in told for name in mine if name.startswith(AXES)), 1)
    told = [axes | mine if any(name in axes for name in mine) else mine for mine in told]  # an axis that is not named
    names = sorted(set().union(*told), key=order_of)
    lines = [Line(name, False, tuple(mine.get(name) for mine in told)) for name in names]
    kinds = Line("kind", False, tuple("simulated" if m.simulated else m.kind for m in members))
    return [kinds, *sorted(lines, key=lambda line: not line.by_all)]


def _figures(members: Sequence[Member], names: Sequence[str]) -> list[Line]:
    return [Line(name, True, tuple(m.figures.get(name) for m in members)) for name in names]

"""What a case is: a job's sizes, what is planted in it, and what stands beside it that must not be accused."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Planted:
    """One fault of a case. What a field means to a kind of fault, its harm says; what it does not need stays as it is.

    ranks     ranks that are hurt; empty: all of them
    first     first step that is hurt, and `last` the last
    every     each n-th step from `first` on
    seconds   how long each harm lasts, or is made to
    amount    how many, how often or how much
    told      whether the job says in its goodput entries or annotations that it does this
    """

    cause: str
    ranks: tuple[int, ...] = ()
    first: int = 0
    last: int = 0
    every: int = 1
    seconds: float = 0.0
    amount: int = 1
    told: bool = False

    def hits(self, step: int) -> bool:
        """Whether it hurts this step."""
        return self.first <= step <= self.last and (step - self.first) % self.every == 0

    @property
    def steps(self) -> list[int]:
        return list(range(self.first, self.last + 1, self.every))


@dataclass(frozen=True)
class Case:
    """One run of the benchmark, all of it drawn from `seed`.

    kind        which maker makes it: `training`, `serving` or `fleet`
    sizes       the name of the sizes of its model (`training.sizes`) or engine
    planted     its faults: none, one or two
    companions  what concerns its evidence alone, such as a clock that is off: nothing to be accused
    context     what happens to the case and its twin alike, such as the kill that a slow restore needs
    """

    name: str
    seed: int
    kind: str
    sizes: str
    processes: int
    steps: int
    checkpoint_every: int = 0
    planted: tuple[Planted, ...] = ()
    companions: tuple[Planted, ...] = ()
    context: tuple[Planted, ...] = ()

    @property
    def twin(self) -> "Case":
        """The same without its faults; what stands in its files alike."""
        return dataclasses.replace(self, planted=())

    @property
    def frames(self) -> bool:
        """Whether its profile holds the calls of Python, as JAX's do unless told otherwise: every second case's."""
        return self.seed % 2 == 0

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Case":
        parts = {
            name: tuple(Planted(**{**p, "ranks": tuple(p["ranks"])}) for p in raw[name])
            for name in ("planted", "companions", "context")
        }
        return cls(**{**raw, **parts})

    @classmethod
    def load(cls, path: Path) -> "Case":
        return cls.of(json.loads(path.read_text()))


@dataclass(frozen=True)
class Told:
    """What the scorer and the truth call a fault of a case.

    chip_seconds  what it cost, by the clocks of the processes that did the harm, or against the twin; None: not told
    basis         `clocks` or `twin`
    place         where: `ranks`, `links`, `hosts` (lists) and `steps` (first, last, every), as far as it has one
    """

    cause: str
    chip_seconds: float | None
    basis: str
    place: dict[str, Any] = field(default_factory=dict)

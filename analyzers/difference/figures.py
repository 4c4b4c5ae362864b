"""Single figures of two runs beside each other: the middle and the tail of steps, memory at the peak, goodput, bytes
that collectives move, interruptions, what programs hold. Nothing is told of a run that does not tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.difference.step_time import StepTimes

SAME = 0.02  # of a figure: what is as much as before


@dataclass(frozen=True)
class Kind:
    title: str
    unit: str
    meaning: str


KINDS: Mapping[str, Kind] = {
    "step_median_s": Kind("Median step", "s", "of settled steps"),
    "step_p90_s": Kind("Step, nine of ten within", "s", "of settled steps"),
    "step_p99_s": Kind("Step, 99 of 100 within", "s", "of settled steps; of 100 steps or more"),
    "program_operations": Kind("Operations of the program", "1", "instructions of the longest program"),
    "program_flops": Kind("FLOPs of the program", "FLOP", "of one run of the longest program on one device"),
    "program_bytes": Kind("Bytes of the program", "B", "read and written by one run of it on one device"),
    "collective_bytes": Kind("Bytes in collectives", "B", "messages of a step and device"),
    "collective_transfer_s": Kind("Transfer in collectives", "s", "of a step and device, waiting left out"),
    "collective_wait_s": Kind("Waiting in collectives", "s", "of a step and device, before the last rank came"),
    "memory_peak_bytes": Kind("Memory at the peak", "B", "of one device, as it was sampled"),
    "memory_planned_bytes": Kind("Memory by the program", "B", "of one device, as the largest program needs it"),
    "goodput_share": Kind("Goodput", "1", "productive time over all time"),
    "interruptions": Kind("Interruptions", "1", "of the whole run"),
    "mfu": Kind("MFU", "1", "as the page MFU tells it"),
}


@dataclass(frozen=True)
class FigureChange:
    """One figure of both runs, in the unit of its kind."""

    name: str
    a: float
    b: float

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def same(self) -> bool:
        return abs(self.b - self.a) <= SAME * max(abs(self.a), abs(self.b))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "unit": self.kind.unit, "a": self.a, "b": self.b, "change": self.b - self.a}


def of_steps(steps: StepTimes | None) -> dict[str, float]:
    """The middle and the tail of settled steps; a tail only where there are steps for it."""
    if steps is None or not len(steps.seconds):
        return {}
    wanted = {"step_median_s": (0.5, 1), "step_p90_s": (0.9, 10), "step_p99_s": (0.99, 100)}
    return {n: float(np.quantile(steps.seconds, q)) for n, (q, least) in wanted.items() if len(steps.seconds) >= least}


def changes(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[FigureChange, ...]:
    """Of the figures that both tell."""
    return tuple(FigureChange(n, float(a[n]), float(b[n])) for n in KINDS if n in a and n in b)

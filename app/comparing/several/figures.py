"""The figures of a run that several are compared by: those of the library, and which direction of each is the better
one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from analyzers.several.against import Better
from app.library.columns import COLUMNS, Column

_BETTER: Mapping[str, Better] = {
    "goodput": "more",
    "mfu": "more",
    "throughput": "more",
    "step_time": "less",
    "loss": "less",
    "cost": "less",
    "chip_hours": "less",
    "hours": "less",
    "chips": "less",
}
"""Of the same work; what a run costs is no better for having done less, which is why work is named beside."""
ORDER = ("step_time", "mfu", "throughput", "goodput", "loss", "hours", "chip_hours", "cost")


def column(name: str) -> Column | None:
    return next((c for c in COLUMNS if c.name == name), None)


def better(name: str) -> Better:
    return _BETTER.get(name, "")


@dataclass(frozen=True)
class Iso:
    """What a product or a quotient of two figures is. `of`: how the two are joined, y first."""

    x: str
    y: str
    of: Literal["product", "quotient"]
    means: str
    unit: str


ISOS = (
    Iso("chips", "step_time", "product", "chip time of a step", "chip-seconds"),
    Iso("chips", "throughput", "quotient", "rate of a chip", "tokens/s per chip"),
    Iso("chips", "hours", "product", "chip time", "chip-hours"),
    Iso("chip_hours", "cost", "quotient", "price of a chip", "$ per chip-hour"),
    Iso("hours", "cost", "product", "dollars × time: the same trade", "dollar-hours"),
    Iso("step_time", "throughput", "product", "tokens of a step", "tokens"),
)


def iso(x: str, y: str) -> Iso | None:
    """What lines in a picture of these two say, whichever stands on which axis; None where they would say nothing. A
    quotient that is turned round is told as it is, of the axes as they stand."""
    return next((i for i in ISOS if {i.x, i.y} == {x, y}), None)

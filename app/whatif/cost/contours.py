"""Lines of equal time: which MFU, or which goodput, so many chips of a kind need to take so many days."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulators.training.cost import DAY_S, kept_share_for

if TYPE_CHECKING:
    from app.whatif.cost.answers import CostPlan

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the deadline, or of the days of the best choice
POINTS, SPAN = 33, 8.0  # along the chips, to so many times as few and as many
LEAST = 0.01  # of the peak: less is not drawn


@dataclass(frozen=True)
class Line:
    """Chips that take so many days, with the `mfu` that they need at the goodput that is asked (at most 1), and the
    `goodput` that they need at the likely MFU; None where that is above 1."""

    chip: str
    days: float
    chips: tuple[int, ...]
    mfu: tuple[float, ...]
    goodput: tuple[float | None, ...]


def equal_time(plan: "CostPlan") -> list[Line]:
    """Lines of each chip, around the deadline or the days of the best choice, in whole chips."""
    first = plan.best or plan.choices[0]
    days = plan.asked.days or float(f"{first.likely.days:.1g}")
    return [line for c in _firsts(plan) for times in TIMES if (line := _line(plan, c, days * times)) is not None]


def _firsts(plan: "CostPlan"):
    """The first choice of each chip."""
    return list({c.chip.name: c for c in reversed(plan.choices)}.values())[::-1]


def _line(plan: "CostPlan", choice, days: float) -> Line | None:
    mine = [c.chips for c in plan.choices if c.chip is choice.chip]
    grid = np.geomspace(max(1.0, min(mine) / SPAN), max(mine) * SPAN, POINTS)
    goodput, peak = plan.asked.goodput or 1.0, choice.likely.effective_flops_per_s / choice.chips
    peak /= choice.mfu[1] * goodput
    found = list[tuple[int, float, float | None]]()
    for chips in dict.fromkeys(max(1, math.floor(n)) for n in grid.tolist()):
        share = kept_share_for(plan.work, days * DAY_S, chips, peak)
        if LEAST <= share / goodput <= 1:
            needed = share / choice.mfu[1]
            found.append((chips, share / goodput, needed if needed <= 1 else None))
    if not found:
        return None
    chips, mfu, kept = zip(*found, strict=True)
    return Line(choice.chip.name, days, chips, mfu, kept)

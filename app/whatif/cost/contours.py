"""Lines of equal time: which MFU, or which goodput, so many chips of a kind need to take so many days."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulators.training.cost import DAY_S, Work, kept_share_for

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the days that lines are drawn around
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


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Chips of a kind: numbers that are tried, the peak of one in FLOP/s, and the likely MFU."""

    chip: str
    tried: Sequence[int]
    peak_flops_per_s: float
    mfu: float


def equal_time(work: Work, kinds: Sequence[Kind], days: float, goodput: float) -> list[Line]:
    """Lines of each kind around so many days, in whole chips; those are left out that no number of chips keeps."""
    found = (_line(work, kind, days * times, goodput) for kind in kinds for times in TIMES)
    return [line for line in found if line.chips]


def _line(work: Work, kind: Kind, days: float, goodput: float) -> Line:
    grid = np.geomspace(max(1.0, min(kind.tried) / SPAN), max(kind.tried) * SPAN, POINTS)
    found = list[tuple[int, float, float | None]]()
    for chips in dict.fromkeys(max(1, math.floor(n)) for n in grid.tolist()):
        share = kept_share_for(work, days * DAY_S, chips, kind.peak_flops_per_s)
        if LEAST <= share / goodput <= 1:
            needed = share / kind.mfu
            found.append((chips, share / goodput, needed if needed <= 1 else None))
    return Line(
        kind.chip,
        days,
        chips=tuple(n for n, _, _ in found),
        mfu=tuple(u for _, u, _ in found),
        goodput=tuple(g for _, _, g in found),
    )

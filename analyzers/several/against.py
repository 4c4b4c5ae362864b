"""Figures of a run held against those of another, the baseline.

    change = value / value of the baseline - 1

It is told only where both runs are of one kind and one model, both tell the figure, and the baseline's is above 0.
"""

import math
from dataclasses import dataclass
from typing import Literal

from analyzers.several.differing import Member

Better = Literal["", "more", "less"]


@dataclass(frozen=True)
class Held:
    """A figure against the baseline's. `low`, `high`: between which the change lies, None where nothing tells it;
    `worse`: None where no direction is the better one, or where nothing changed or may not have."""

    change: float
    worse: bool | None = None
    low: float | None = None
    high: float | None = None


def unlike(baseline: Member, run: Member) -> str:
    """Why figures of a run are not held against those of the baseline; empty where they are."""
    if baseline.simulated != run.simulated:
        return "one of the two is simulated"
    if baseline.kind != run.kind:
        return f"another kind: {run.kind}, not {baseline.kind}"
    if baseline.model and run.model and baseline.model != run.model:
        return f"another model: {run.model}, not {baseline.model}"
    return ""


def held(before: float | None, now: float | None, better: Better = "") -> Held | None:
    """A figure against the baseline's; None where no share of it can be told."""
    if before is None or now is None or not before > 0 or not math.isfinite(now / before):
        return None
    change = now / before - 1
    return Held(change, None if not better or change == 0 else (change > 0) == (better == "less"))

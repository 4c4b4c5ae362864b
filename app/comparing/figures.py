"""What a gate can look at: each figure of a comparison with its change, its range, and how its bound is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analyzers.difference import DifferenceResult
from analyzers.serving.ab import AbResult
from app.comparing.job_words import signed
from runs.accounts import ACCOUNTS

SHARE, POINTS = "%", "points"  # of A's; of what is itself a share of something, such as MFU
FORM = (
    "FIGURE>BOUND or FIGURE<BOUND, such as step_time>+1%, held_per_step>+5%, an account of a kept step such as "
    "input_wait>+0.5% (of A's step)"
)
IDLE = tuple(name for name in ACCOUNTS if name.startswith("idle_"))
PARTS = {"device_idle": IDLE}
OF_A_STEP = (
    "useful_maths",
    "padding",
    "recomputation",
    "below_roofline",
    "exposed_communication",
    "exposed_copies",
    "straggler_wait",
    "input_wait",
    "compilation",
    "device_idle",
    *IDLE,
)
"""Accounts that a step can be compared by; what is no kept step is in `held_per_step`."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What was found of the two: of jobs, or of served runs."""

    jobs: DifferenceResult | None = None
    served: AbResult | None = None


@dataclass(frozen=True, kw_only=True)
class Found:
    """A change from A to B: shares of A's, or points as a share. `low`, `high`: its range, None where it has none, and
    `why` says so. `beside`: what is no part of it and adds to it all the same, such as stalls."""

    change: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    beside: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Figure:
    """`unit`: what a bound is written in; `worse`: the sign of a change for the worse."""

    name: str
    title: str
    change: Callable[[Sides], Found]
    unit: str = SHARE
    worse: str = ">"

    def shown(self, change: float) -> str:
        """`+6.1 %`, `−0.52 points`."""
        if self.unit == SHARE:
            return signed(change)
        return f"{signed(change).removesuffix(' %')} points"


def _step(sides: Sides) -> Found:
    if sides.jobs is None:
        return Found(why="served runs have no steps")
    step = sides.jobs.step
    if step is None:
        return Found(why="; ".join(sides.jobs.why) or "no step is told")
    if step.low is None or step.high is None:
        return Found(change=step.change, why=step.why or "too few steps")
    low, high = (step.low, step.high) if step.told else (min(step.low, 0.0), max(step.high, 0.0))
    stalls = sides.jobs.stalls_s  # too few to be told from chance, and no gate passes on them
    return Found(change=step.change, low=low, high=high, beside=(stalls[1] - stalls[0]) / step.a)


def _held(sides: Sides) -> Found:
    whole = () if sides.jobs is None else sides.jobs.whole
    a, b = (sum(getattr(c, side) for c in whole) for side in "ab")
    if not a:
        return Found(why="not both have a ledger and kept steps")
    return Found(change=b / a - 1, low=b / a - 1, high=b / a - 1)


def _account(name: str) -> Callable[[Sides], Found]:
    """Of an account of a step, as shares of A's step."""

    def change(sides: Sides) -> Found:
        ledger = () if sides.jobs is None else sides.jobs.ledger
        whole = sum(c.a for c in ledger)
        if not whole:
            return Found(why="no profile shows the accounts of a step of both")
        mine = [c for c in ledger if c.account == name or c.account in PARTS.get(name, ())]
        found = sum(c.change for c in mine) / whole
        if any(c.low is None or c.high is None for c in mine):
            return Found(change=found, why="too few profiled steps")
        low, high = (sum(getattr(c, end) for c in mine) / whole for end in ("low", "high"))
        return Found(change=found, low=low, high=high)

    return change


def _accounts() -> tuple[Figure, ...]:
    titles = {name: ACCOUNTS[name].title if name in ACCOUNTS else name for name in OF_A_STEP}
    return tuple(Figure(name=n, title=f"{titles[n]} of a step", change=_account(n)) for n in OF_A_STEP)


FIGURES: Mapping[str, Figure] = {
    f.name: f
    for f in (
        Figure(name="step_time", title="Step time", change=_step),
        Figure(name="held_per_step", title="Chip time held a kept step", change=_held),
        *_accounts(),
    )
}

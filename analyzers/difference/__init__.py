"""Two runs beside each other: is a step of B slower than one of A, by how much, and what makes the difference.

    change of a step    from all settled steps, with a range (`step_time.py`)
    ledger              what each account takes of a step and chip, B less A, from steps that profiles show
                        (`accounts.py`); of compiled steps the whole ledger
    unexplained         change of a step - sum of the changes of accounts that say what the time went to
    explained share     1 - |unexplained| / |change|, not below 0; None without a change, or without profiles

What differs in what is known of the two stands first, and is no proof of a cause: the accounts say what changed, the
settings what may have changed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analyzers.base import Facts
from analyzers.difference.accounts import AccountChange, leaves, of_ledgers, of_steps
from analyzers.difference.causes import Because, because, others_may, settings
from analyzers.difference.differs import Differs, differs
from analyzers.difference.figures import FigureChange, changes
from analyzers.difference.figures import of_steps as figures_of_steps
from analyzers.difference.operations import MOST, OpChange
from analyzers.difference.step_time import (
    Change,
    StepTimes,
    change_beside_exact,
    change_of_exact,
    compare,
    stalls_alike,
)
from analyzers.time.step_accounts import StepAccounts
from errors import QuestionError
from errors import format as fmt
from runs.ledger import Ledger

UNTOLD = ("unattributed",)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two runs. `steps`: its settled steps, None where nothing tells of them; `profiled`: accounts of those
    that a profile shows; `ledger`: None where it has none. `kind`: training, compiled, simulated, serving or rl.
    `tokens_per_step_per_chip`: of the settled steps. `figures`: by the names of `figures.KINDS`."""

    name: str
    kind: str
    facts: Facts
    ledger: Ledger | None = None
    kept_steps: int = 0
    steps: StepTimes | None = None
    profiled: StepAccounts | None = None
    tokens_per_step_per_chip: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    live: bool = False


@dataclass(frozen=True, kw_only=True)
class DifferenceResult:
    """B against A. `step`: change of a step; `ledger`: accounts of a step and chip, the largest change first; `whole`:
    chip-seconds that all chips held a kept step, badput included, by account; `ops`: operations of a step and device;
    `unexplained_s`: of the change, what no account tells; `tokens`: of a step on a chip; `stalls_s`: what
    stalls, which are set apart, add to a step. `bound`: which of the two, "a" or "b", is a compiler's bound where the
    other ran; empty where none is. `kinds`: of the two. `may_be`: by account, seconds of a step of A and of B that are
    entered elsewhere and may be its own. `why`: what cannot be compared, and what would tell."""

    a: str
    b: str
    differs: tuple[Differs, ...]
    step: Change | None
    ledger: tuple[AccountChange, ...]
    whole: tuple[AccountChange, ...]
    ops: tuple[OpChange, ...]
    matched_share: float | None
    unexplained_s: float | None
    explained_share: float | None
    tokens: tuple[float, float] | None = None
    stalls_s: tuple[float, float] = (0.0, 0.0)
    figures: tuple[FigureChange, ...] = ()
    bound: str = ""
    kinds: tuple[str, str] = ("", "")
    may_be: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def told(self) -> bool:
        return self.step is not None and self.step.told

    @property
    def change_s(self) -> float | None:
        return None if self.step is None else self.step.b - self.step.a

    @property
    def per_token(self) -> float | None:
        """By how much a token takes more chip time in B, as a share; None where not both count tokens."""
        if self.tokens is None or self.step is None:
            return None
        return (self.step.b / self.tokens[1]) / (self.step.a / self.tokens[0]) - 1

    @property
    def makers(self) -> tuple[AccountChange, ...]:
        """Accounts that clearly changed in the direction of the whole, the largest first."""
        way = self.change_s or 0.0
        return tuple(c for c in self.ledger if c.account not in UNTOLD and self.sure(c) and c.change * way > 0)

    def sure(self, c: AccountChange) -> bool:
        """Whether an account clearly changed, and not for one of the two entering elsewhere what the other tells."""
        a, b = self.may_be.get(c.account, (0.0, 0.0))
        if not c.clear or c.low is None or c.high is None:
            return False
        return c.low + b - a > 0 if c.low > 0 else c.high + b - a < 0

    @property
    def because(self) -> Because:
        """Which settings can have made the largest of what clearly changed; of none where no account did, and where a
        bound is one of the two: what it leaves out no setting made."""
        if self.bound:
            return Because()
        return because(settings(self.differs), [c.account for c in self.makers[:1]], others_may(self.differs))

    def figure(self, name: str) -> FigureChange | None:
        return next((f for f in self.figures if f.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        cause = self.because
        return {
            "differs": [d.to_dict() for d in self.differs],
            "because": cause.only and [d.to_dict() for d in cause.only.parts],
            "may_be_because": [d.to_dict() for s in cause.among for d in s.parts],
            "told": self.told,
            "step_time": self.step and self.step.to_dict(),
            "chip_time_per_token_change": self.per_token,
            "stalls_per_step": {"a_s": self.stalls_s[0], "b_s": self.stalls_s[1]},
            "ledger": [c.to_dict() for c in self.ledger],
            "held_per_kept_step": [c.to_dict() for c in self.whole],
            "figures": [f.to_dict() for f in self.figures],
            "ops": [o.to_dict() for o in self.ops[:MOST]],
            "ops_matched_share": self.matched_share,
            "explained_share": self.explained_share,
            "unexplained_s": self.unexplained_s,
            "why": list(self.why),
            "notes": list(self.notes),
        }


def difference(a: Side, b: Side, floor: float, ops: tuple[OpChange, ...] = ()) -> DifferenceResult:
    """Raises QuestionError where nothing of the two can be compared."""
    a, b = of_one_rule(a, b)
    step, why = _step(a, b, floor)
    rows = _accounts(a, b)
    if step is None and not rows and not (a.ledger and b.ledger):
        raise QuestionError(
            f"{a.name} and {b.name} cannot be compared: {'; '.join(why) or 'neither has steps or a ledger'}",
            expected="two runs with steps, two that were served, or two that were compiled",
        )
    left = share = None
    if step is not None and rows:
        change = step.b - step.a
        told = sum(c.change for c in rows if c.account not in UNTOLD)
        left = change - told
        share = max(0.0, 1 - abs(left) / abs(change)) if change else None
    elif step is not None:
        why += (_unprofiled(a, b),)
    return DifferenceResult(
        a=a.name,
        b=b.name,
        differs=differs(a.facts, b.facts),
        step=step,
        ledger=rows,
        whole=_whole(a, b),
        ops=ops,
        matched_share=_matched(ops),
        unexplained_s=left,
        explained_share=share,
        tokens=_tokens(a, b),
        bound=_bound(a, b),
        kinds=(a.kind, b.kind),
        may_be=_may_be(a, b),
        figures=changes(a.figures, b.figures),
        stalls_s=(a.steps.stalls_s if a.steps else 0.0, b.steps.stalls_s if b.steps else 0.0),
        why=why,
        notes=_notes(a, b),
    )


def of_one_rule(a: Side, b: Side) -> tuple[Side, Side]:
    """The two, their stalls set apart in both or in neither."""
    if a.steps is None or b.steps is None:
        return a, b
    one, other = stalls_alike(a.steps, b.steps)
    return _of(a, one), _of(b, other)


def _of(side: Side, steps: StepTimes) -> Side:
    """The side by these of its steps."""
    if steps is side.steps:
        return side
    return replace(side, steps=steps, figures={**side.figures, **figures_of_steps(steps)})


def _step(a: Side, b: Side, floor: float) -> tuple[Change | None, tuple[str, ...]]:
    if "compiled" in (a.kind, b.kind):
        return _step_beside_bound(a, b, floor)
    lacking = tuple(f"{s.name} tells of no settled step" for s in (a, b) if s.steps is None or not len(s.steps.seconds))
    if a.steps is None or b.steps is None or lacking:
        return None, lacking
    change = compare(a.steps, b.steps, floor)
    return change, ((change.why,) if change.why else ())


def _step_beside_bound(a: Side, b: Side, floor: float) -> tuple[Change | None, tuple[str, ...]]:
    """Of a bound nothing scatters: its range is that of the other's steps."""
    found: list[float | StepTimes] = []
    for side in (a, b):
        if side.kind != "compiled":
            if side.steps is None or not len(side.steps.seconds):
                return None, (f"{side.name} tells of no settled step",)
            found.append(side.steps)
        elif side.ledger is None:
            return None, (f"{side.name} did not compile, or its chip is not known",)
        else:
            found.append(side.ledger.chip_seconds / side.ledger.chips)
    one, other = found
    if isinstance(one, float) and isinstance(other, float):
        return change_of_exact(one, other, floor), ()
    first, second = (s.seconds if isinstance(s, StepTimes) else s for s in (one, other))
    change = change_beside_exact(first, second, floor)
    return change, ((change.why,) if change.why else ())


def _accounts(a: Side, b: Side) -> tuple[AccountChange, ...]:
    sides = [_step_accounts(s) for s in (a, b)]
    if any(s is None for s in sides):
        return ()
    return of_steps(*sides)  # type: ignore[arg-type]


def _step_accounts(side: Side) -> StepAccounts | Mapping[str, float] | None:
    """Of a compiled step the leaves of its ledger, in which nothing scatters."""
    if side.kind != "compiled":
        return side.profiled
    return None if side.ledger is None else leaves(side.ledger.account, side.ledger.chips)


def _may_be(a: Side, b: Side) -> Mapping[str, tuple[float, float]]:
    one, other = (s.profiled.may_be if s.kind != "compiled" and s.profiled is not None else {} for s in (a, b))
    return {name: (one.get(name, 0.0), other.get(name, 0.0)) for name in dict.fromkeys([*one, *other])}


def _whole(a: Side, b: Side) -> tuple[AccountChange, ...]:
    """All chip time a kept step, where both have kept steps and tell how many chips they held: on more of them a step
    may be quicker and cost more."""
    if a.ledger is None or b.ledger is None or not a.kept_steps or not b.kept_steps:
        return ()
    if not (a.ledger.chips_known and b.ledger.chips_known):
        return ()
    return of_ledgers(a.ledger.account, b.ledger.account, a.kept_steps, b.kept_steps)


def _bound(a: Side, b: Side) -> str:
    kinds = (a.kind == "compiled", b.kind == "compiled")
    return {(True, False): "a", (False, True): "b"}.get(kinds, "")


def _tokens(a: Side, b: Side) -> tuple[float, float] | None:
    told = [s.tokens_per_step_per_chip for s in (a, b) if s.tokens_per_step_per_chip]
    return (told[0], told[1]) if len(told) == 2 else None


def _unprofiled(a: Side, b: Side) -> str:
    none = [s.name for s in (a, b) if s.profiled is None]
    return f"no profile shows kept steps of {' and '.join(none)}: add one, and accounts tell what changed"


def _matched(ops: tuple[OpChange, ...]) -> float | None:
    """Of the time of both, the share in operations that both have."""
    whole = sum(o.a_s + o.b_s for o in ops)
    return sum(o.a_s + o.b_s for o in ops if o.status == "both") / whole if whole else None


def of_profiled_steps(side: Side) -> str:
    """That its accounts are those of steps that are set apart; empty where they are not."""
    if side.steps is None or side.profiled is None or not len(side.steps.profiled):
        return ""
    slower = side.steps.profiled_s / side.steps.mean_s - 1
    return (
        f"{side.name}: accounts and operations are those of {len(side.steps.profiled):,} profiled steps, which took "
        f"{fmt.change(slower, 2)} {'longer' if slower > 0 else 'less'} than the others."
    )


def _watched(a: Side, b: Side) -> str:
    """That a profiler watched the settled steps of one of the two alone; empty where of both or of none."""
    seen = [s for s in (a, b) if s.steps and s.steps.watched]
    if len(seen) != 1 or a.steps is None or b.steps is None:
        return ""
    [one] = seen
    return (
        f"A profiler watched {one.steps.watched if one.steps else 0:,} of the settled steps of {one.name} and none of "
        "the other's: what it costs is part of the difference."
    )


def _notes(a: Side, b: Side) -> tuple[str, ...]:
    said: list[str] = []
    for side in (a, b):
        if side.live:
            said.append(f"{side.name} is still running: what is compared is what it wrote so far.")
        if side.steps and side.steps.apart:
            told = ", ".join(f"{n:,} {why}" for why, n in side.steps.apart.items())
            said.append(f"{side.name}: steps set apart: {told}.")
        if said_of := of_profiled_steps(side):
            said.append(said_of)
        if side.steps and side.steps.moved:
            at = ", ".join(f"{n:,}" for n in side.steps.moved[:5])
            said.append(f"{side.name}: the pace itself changed at step {at}: the mean is over all of it.")
    if kept := [s.name for s in (a, b) if s.steps and s.steps.stalls_kept]:
        said.append(
            f"Of {' and '.join(kept)} too many steps take long to be stalls: they count as steps, in both runs."
        )
    if text := _watched(a, b):
        said.append(text)
    if a.kind != b.kind:
        said.append(f"{a.name} is {_kind(a.kind)}, {b.name} {_kind(b.kind)}: what one of them leaves out is no change.")
    return tuple(said)


def _kind(kind: str) -> str:
    return {"training": "measured", "compiled": "a compiler's bound", "simulated": "simulated"}.get(kind, kind)

"""A measured run beside what the model of training says: of its own setup, or of another to which it is carried over.

    own setup   the step of the run against the modelled step of the same layout, batch and chips, which knows nothing
                of the run: its range is that in which nine of ten published steps lay
    another     each account of the run's step carried over to it, as `whatif training --calibrate` does: its range is
                that of such changes between published runs

Of its own setup accounts stand together as far as the model tells them apart. What the model has no term for, such as
waits for input or for slow ranks, is the run's alone, and never a change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from analyzers.difference import of_profiled_steps
from analyzers.difference.accounts import of_steps
from analyzers.difference.step_time import Change, change_beside_exact
from analyzers.time.step_accounts import StepAccounts
from app.baselines import find_run
from app.comparing.sides import side_of
from app.whatif.training import TRAINING
from app.whatif.training.asked import Asked
from app.whatif.training.beside import PortedPlan, find_from
from app.whatif.training.measured import Ran, ran
from app.workspace import Workspace
from errors import QuestionError
from errors.nearest import did_you_mean
from simulators.training.ported import ported

SAME = "same"
SETUP = ("on", "chips", "seq", "global_batch_tokens", "layout", "remat", "precision")
EXPECTED = f"{SAME}, or OPTION=VALUE of {', '.join(SETUP)}, blanks between, such as 'chips=512 layout=tp=8'"
BEYOND = "beyond_useful_maths"
TOGETHER = {  # accounts of a measured step that the model does not tell apart, by what it calls them
    "padding": BEYOND,
    "recomputation": BEYOND,
    "below_roofline": BEYOND,
    "communication_or_wait": "exposed_communication",
    "pipeline_bubble": "exposed_communication",
}
OWN = ("useful_maths", BEYOND, "exposed_communication", "idle_launching")


@dataclass(frozen=True, kw_only=True)
class Row:
    """An account of a step, seconds on a chip. `modelled_s`: None where the model has no term for it; `low`, `high`: of
    modelled less measured, by the scatter of the profiled steps; `how`: what the modelled one rests on."""

    account: str
    measured_s: float
    modelled_s: float | None
    low: float | None = None
    high: float | None = None
    how: str = ""

    @property
    def change_s(self) -> float | None:
        return None if self.modelled_s is None else self.modelled_s - self.measured_s

    def to_dict(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "a": self.measured_s,
            "b": self.modelled_s,
            "change": self.change_s,
            "low": self.low,
            "high": self.high,
            "basis": "modelled",
            "how": self.how,
        }


@dataclass(frozen=True, kw_only=True)
class BesideModel:
    """`step`: the modelled step against the run's, whose scatter alone is in its range; `low_s`, `high_s`: between
    which the model says that a step lies. `plan`: where the run was carried over to another setup."""

    run: Ran
    step: Change
    low_s: float
    high_s: float
    rows: tuple[Row, ...]
    plan: PortedPlan | None = None
    notes: tuple[str, ...] = ()

    @property
    def within(self) -> bool:
        """Whether the run's step lies where the model says that one lies."""
        return self.low_s <= self.step.a <= self.high_s

    @property
    def told(self) -> bool:
        """Whether the two differ by more than the model can miss."""
        return not self.within and self.step.a > 0

    def to_dict(self) -> dict[str, Any]:
        told = {"a": self.run.run_id, "b": "whatif training", "told": self.told}
        between = {"b_low_s": self.low_s, "b_high_s": self.high_s, "b_basis": "modelled"}
        ledger = [row.to_dict() for row in self.rows]
        own = {} if self.plan is None else self.plan.carried[1].to_dict(self.run)
        return {
            **told,
            "step_time": {**self.step.to_dict(), **between},
            "ledger": ledger,
            **own,
            "notes": [*self.notes],
        }


def beside_model(run: str, setup: str, place: Workspace) -> BesideModel:
    """Raises QuestionError where the run's setup is not known, where the model is known to fail for it, and for a setup
    that cannot be."""
    name = find_run(place, run).run_id
    given = _asked(setup)
    return _own(name, place) if given is None else _other(name, given, place)


def _asked(setup: str) -> Mapping[str, str] | None:
    """The options of another setup; None for the run's own."""
    words = setup.split()
    if words in ([], [SAME]):
        return None
    pairs = [word.partition("=") for word in words]
    for name, sign, _ in pairs:
        if name not in SETUP or not sign:
            raise QuestionError(f"setup {name[:40]!r}", expected=EXPECTED, advice=did_you_mean(name[:40], SETUP))
    names = [name for name, _, _ in pairs]
    if len(set(names)) < len(names):
        raise QuestionError("a setup that says one thing twice", expected=EXPECTED)
    return {name: value for name, _, value in pairs}


def _own(name: str, place: Workspace) -> BesideModel:
    known = ran(name, place)
    if known.compiled:
        raise QuestionError(
            f"run {known.name[:80]!r} is a compiled program, whose step is itself modelled",
            expected="a run that took steps",
            advice="Compare it with a measured run, or carry it over: `--whatif chips=N`.",
        )
    ported(known.step, known.terms, known.terms, known.chips)  # refuses where the model is of another job
    side = side_of(place.store.find(name), place)
    if side.steps is None or not len(side.steps.seconds):
        raise QuestionError(f"run {known.name[:80]!r} tells of no settled step", expected="a run with steps")
    planned = known.planned
    return BesideModel(
        run=known,
        step=change_beside_exact(side.steps.seconds, planned.step_s),
        low_s=planned.low_s,
        high_s=planned.high_s,
        rows=() if side.profiled is None else tuple(_rows(side.profiled, planned.accounts)),
        notes=(*known.notes, *filter(None, (of_profiled_steps(side) if side.profiled else UNPROFILED,))),
    )


UNPROFILED = "No profile shows kept steps of the run: add one, and accounts tell where the two differ."


def _rows(profiled: StepAccounts, accounts: Mapping[str, float]) -> Iterable[Row]:
    """As the model tells accounts apart, what it has no term for last."""
    bubble, rest = accounts["device_idle"], max(accounts["below_roofline"], 0.0) + accounts["recomputation"]
    model = {
        "useful_maths": accounts["useful_maths"],
        BEYOND: rest,
        "exposed_communication": accounts["exposed_communication"] + bubble,
        "idle_launching": accounts["idle_launching"],
    }
    seconds = profiled.seconds.T.groupby(lambda name: TOGETHER.get(name, name)).sum().T
    found = {c.account: c for c in of_steps(replace(profiled, seconds=seconds), model)}
    for name in (*(n for n in OWN if n in found), *(n for n in found if n not in OWN)):
        row = found[name]
        if name in OWN:
            yield Row(account=name, measured_s=row.a, modelled_s=row.b, low=row.low, high=row.high)
        else:
            yield Row(account=name, measured_s=row.a, modelled_s=None)


def _other(name: str, given: Mapping[str, str], place: Workspace) -> BesideModel:
    asked: Asked = TRAINING.from_query({**given, "calibrate": name})
    plan = find_from(asked, place)
    _, other = plan.carried
    low, high = other.band_s
    step = other.step
    return BesideModel(
        run=plan.run,
        step=_exact(step.before_s, step.after_s),
        low_s=low,
        high_s=high,
        rows=tuple(
            Row(account=r.name, measured_s=r.measured_s, modelled_s=r.ported_s, how=r.rule)
            for r in sorted(step.rows, key=lambda r: -max(r.measured_s, r.ported_s))
        ),
        plan=plan,
        notes=plan.notes,
    )


def _exact(a: float, b: float) -> Change:
    """Of the mean of all kept steps, which the model carries over: no scatter is told of it."""
    return Change(a, b, b / a - 1, None, None, None, False)

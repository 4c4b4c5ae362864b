"""`whatif training --calibrate RUN`: every layout as the run's own step carried over to it, and the two ledgers side by
side."""

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from app.whatif.cost.answers import numbers_of
from app.whatif.prices import prices
from app.whatif.training import lives
from app.whatif.training.answers import NOTES, TrainingPlan, find, in_order, usual
from app.whatif.training.asked import ANY, AXES, PRECISIONS, REMAT, Asked
from app.whatif.training.choice import Choice, choice_of, fronted
from app.whatif.training.measured import Ran, ran
from app.whatif.training.reasons import Reason
from catalog import models
from errors import QuestionError
from errors import format as fmt
from simulators.training.changes import Past, Setup, differences, past
from simulators.training.plan import Planned
from simulators.training.ported import Ported, Terms, ported

if TYPE_CHECKING:
    from app.workspace import Workspace

CARRIED = (
    "Each account of the run's step is taken times what the model's terms for it become; what no term stands for, such "
    "as waits for input or for slow ranks, stays as it was for each step, and what is unattributed stays so.",
    "The range is that of changes of this kind between published runs of one model, predicted from one another in the "
    "same way by shares that were fitted without the run's source: nine of ten lay within.",
)
BOUND = (
    "The run was compiled and never ran: its step is the least time that the program can take, and what is carried "
    "over is an estimate of such a least time, not a forecast of a step."
)
KEPT = f"The run's layout is kept, as it has as many chips; --layout {ANY} tries all."
OF_A_PLAN = (NOTES[0], NOTES[2])  # true of plans alone
BATCH = "Whether another batch learns as well is not looked at, and the network is taken as uncontended by other jobs."
FASTER = 0.9  # of the step with the layout kept: less is told
SHOWN = ("dp", "fsdp", "tp", "pp", "cp", "ep", "vp")
PADDED = "Padding is taken as the same part of the maths, though matrix units of other chips pad otherwise."
OWN = "Nothing differs from the run: this is its own step."


@dataclass(frozen=True)
class Other:
    """A layout that the run's step was carried over to. `differ`: in what it differs from the run's setup; `error`: of
    such changes, None where nothing differs."""

    step: Ported
    differ: tuple[str, ...]
    error: Past | None

    @property
    def band_s(self) -> tuple[float, float]:
        low, high = (self.error.low, self.error.high) if self.error else (1.0, 1.0)
        return self.step.after_s * low, self.step.after_s * high

    def to_dict(self, run: Ran) -> dict[str, Any]:
        """`from_run` and `beside` of the JSON contract."""
        step, error = self.step, self.error
        return {
            "from_run": {
                "run": run.run_id,
                "name": run.name,
                "basis": "measured" if run.how == "measured" else "modelled",
                "step_s": step.before_s,
                "modelled_s": step.modelled_s,
                "unchanged_s": step.unchanged_s,
                "factor": step.factor,
                "ported_s": step.after_s,
                "kind_of_change": list(self.differ),
                "past_error": error and {k: v for k, v in asdict(error).items() if k not in ("low", "high")},
            },
            "beside": [
                {
                    "account": row.name,
                    "measured_s": row.measured_s,
                    "ported_s": row.ported_s,
                    "change_s": row.change_s,
                    "basis": "unattributed" if "unattributed" in row.path else "modelled",
                    "carried_over_by": row.rule,
                }
                for row in step.rows
            ],
        }


@dataclass(frozen=True)
class PortedPlan(TrainingPlan):
    """A plan whose steps are those of a run carried over; `others`: by the place of their choice; `faster`: that
    another layout than the run's is likely to be faster, a sentence."""

    run: Ran
    others: tuple[Other, ...]
    faster: str

    @property
    def carried(self) -> tuple[Choice, Other]:
        """The best choice, else the nearest, with its two ledgers."""
        return self.choices[0], self.others[0]

    def again(self, asked: Asked) -> TrainingPlan:
        return carried_over(asked, self.run)

    def of_any_number(self) -> TrainingPlan:
        return self.again(replace(self.asked, chips=usual(self)))  # else it would be the run's own

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **self.carried[1].to_dict(self.run)}


def find_from(asked: Asked, place: "Workspace | None") -> PortedPlan:
    """Raises QuestionError where the run cannot be carried over, or nothing that was asked can be planned."""
    return carried_over(asked, ran(str(asked.calibrate), place, asked.model))


def carried_over(asked: Asked, run: Ran) -> PortedPlan:
    """What was asked, of this run. Raises QuestionError where nothing that was asked can be planned."""
    filled = _filled(asked, run)
    made, said = _kept(filled, run) if _keeps(asked, filled, run) else (find(filled, run.model), ())
    both = _all_carried(made, run)
    first, other = both[0]
    faster = _faster(filled, run, first) if said == (KEPT,) else ""
    notes = (OWN,) if not other.differ else ()
    notes += (BOUND,) if run.compiled else ()
    notes += (PADDED,) if run.step.amount("padding") and {"maker", "chip"} & {*other.differ} else ()
    given = {f.name: getattr(made, f.name) for f in fields(TrainingPlan)} | {
        "asked": replace(made.asked, layout=ANY if asked.layout == ANY else made.asked.layout),
        "choices": tuple(fronted([choice for choice, _ in both])),
        "notes": (*notes, *said, *run.notes, *CARRIED, BATCH, *(n for n in made.notes if n not in OF_A_PLAN)),
    }
    return PortedPlan(**given, run=run, others=tuple(o for _, o in both), faster=faster)


def _filled(asked: Asked, run: Ran) -> Asked:
    """What is not asked is as in the run."""
    return replace(
        asked,
        model=run.model.name if run.model.name in models() else None,  # of its own dimensions: it has no name to ask by
        on=asked.on or run.chip.name,
        chips=asked.chips or str(run.chips),
        seq=asked.seq or run.seq,
        global_batch_tokens=asked.global_batch_tokens or float(run.batch * run.seq),
        precision=asked.precision or run.precision,
        remat=asked.remat or run.remat,
        layout=None if asked.layout == ANY else asked.layout,
    )


def _keeps(asked: Asked, filled: Asked, run: Ran) -> bool:
    """Whether the run's own layout is meant: none was asked for, and there are as many chips."""
    return not asked.layout and bool(run.axes) and set(numbers_of(filled.chips)) == {run.chips}


def _kept(filled: Asked, run: Ran) -> tuple[TrainingPlan, tuple[str, ...]]:
    """With the run's layout; where that cannot be, with any, and why."""
    written = {name: short for short, name in AXES.items()}
    own = ",".join(f"{written[name]}={size}" for name, size in run.axes.items())
    try:
        made = find(replace(filled, layout=own), run.model)
        return replace(made, asked=replace(made.asked, layout=None)), (KEPT,)
    except QuestionError as e:
        return find(filled, run.model), (f"The run's layout cannot be kept ({e.what}).",)


def _faster(filled: Asked, run: Ran, kept: Choice) -> str:
    """That another layout is likely to be a good deal faster than the one that was kept; empty where none is."""
    best, _ = _all_carried(find(filled, run.model), run)[0]
    if best.planned.step_s > FASTER * kept.planned.step_s:
        return ""
    laid = ",".join(f"{n}={size}" for n, size in best.planned.layout.items() if n in SHOWN and size != 1)
    return f"Another layout is likely to be faster, {laid}: {fmt.duration(best.planned.step_s)}."


def _all_carried(made: TrainingPlan, run: Ran) -> list[tuple[Choice, Other]]:
    """Every choice carried over, the best first."""
    paid = prices(made.asked.price)
    both = [_carried(choice, run, made, paid.get(choice.planned.chip)) for choice in made.choices]
    by = in_order([choice for choice, _ in both], made.asked)
    return sorted(both, key=lambda one: by(one[0]))


def _carried(choice: Choice, run: Ran, made: TrainingPlan, price: float | None) -> tuple[Choice, Other]:
    """The choice with the run's step carried over to it, its range, days and dollars."""
    planned = choice.planned
    step = ported(run.step, run.terms, Terms.of(planned.accounts, planned.recomputed), planned.chips)
    differ = differences(_setup_of(run), _setup(planned, made, told=bool(run.axes)))
    experts = any(b.experts for b in run.model.feedforward)
    other = Other(step, differ, past(differ, experts) if differ else None)
    low, high = other.band_s
    times = step.after_s / planned.step_s
    new = replace(
        planned,
        step_s=step.after_s,
        low_s=low,
        high_s=high,
        flops_per_s_per_chip=planned.flops_per_s_per_chip / times,
        mfu=planned.mfu / times,
        tokens_per_s_per_chip=planned.tokens_per_s_per_chip / times,
        accounts=_accounts(planned, step),
        parts={},  # of the plan alone: the run's own step has no such parts
    )
    reasons = list[Reason]()
    for one, lived in lives.told([new], made.asked, price, reasons):
        return choice_of(one, lived, made.asked, price), other
    raise QuestionError(reasons[0].text.removesuffix("."))


def _accounts(planned: Planned, step: Ported) -> dict[str, float]:
    """Seconds by account below the step, those that every plan has first."""
    found = dict.fromkeys(planned.accounts, 0.0)
    for row in step.rows:
        found[row.path[0]] = found.get(row.path[0], 0.0) + row.ported_s
    return found


def _setup_of(run: Ran) -> Setup:
    return Setup(
        chip=run.chip.name,
        chips=run.chips,
        tokens=float(run.batch * run.seq),
        seq=run.seq,
        precision=run.precision,
        cut=_cut(run.planned) if run.axes else None,
        remat=run.remat or REMAT,
    )


def _setup(planned: Planned, made: TrainingPlan, told: bool) -> Setup:
    return Setup(
        chip=planned.chip,
        chips=planned.chips,
        tokens=float(made.batch * made.seq),
        seq=made.seq,
        precision=made.asked.precision or PRECISIONS[0],
        cut=_cut(planned) if told else None,
        remat=made.asked.remat or REMAT,
    )


def _cut(planned: Planned) -> tuple[int, ...]:
    return tuple(int(planned.layout[short]) for short in ("tp", "pp", "cp", "ep"))

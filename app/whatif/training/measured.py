"""A run of the store that a plan starts from: its setup, as its facts tell it, and the ledger of one of its steps."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from analyzers.base import Facts, fact
from analyzers.device.parallelism import parallel_ways
from analyzers.flops.formats import format_said
from analyzers.subject import chip_of, devices_per_chip, model_of, sequence_of
from app.whatif.training.asked import PRECISIONS, REMATS
from app.words import listed
from catalog import model
from catalog.chips import Chip
from catalog.models import Model
from errors import QuestionError
from errors import format as fmt
from runs.ledger import Ledger
from simulators.training.machine import machine
from simulators.training.plan import Planned, check_fixed, plan
from simulators.training.ported import Terms
from simulators.training.refused import no_layout

if TYPE_CHECKING:
    from app.workspace import Workspace
    from runs.run import Run

INNER = ("tensor", "context", "pipeline", "expert")  # axes of a layout that its speed hangs on the most
OUTER = ("data", "fsdp")  # axes of copies
UNUSUAL = 0.2  # a mean step that is so much longer than the usual one is told
WRITTEN = {"chip": "NAME", "model": "NAME"}
RUNNING = ("following", "failing")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A run's setup and its mean kept step.

    axes      of its layout by the names of `simulators.training.layout`, as far as it tells and the model takes them
    remat     what it computes again; None where it does not tell
    planned   its step as the model has it
    how       measured; simulated; or compiled, of a program that never ran: `step` is the least time that it can take
    """

    name: str
    run_id: str
    model: Model
    chip: Chip
    chips: int
    seq: int
    batch: int
    precision: str
    axes: dict[str, int]
    remat: str | None
    step: Ledger
    planned: Planned
    how: Literal["measured", "simulated", "compiled"]
    notes: tuple[str, ...]

    @property
    def compiled(self) -> bool:
        return self.how == "compiled"

    @property
    def terms(self) -> Terms:
        return Terms.of(self.planned.accounts, self.planned.recomputed)


def ran(name: str, place: "Workspace | None", asked_model: str | None = None) -> Ran:
    """The run as the start of a plan. Raises QuestionError, with what to say of it, where something is not known."""
    if place is None:
        raise QuestionError(f"no store is open to look for run {name[:80]!r}")
    run = place.store.find(name)
    step, tokens, notes = _step(run, place)
    known = _known(run, asked_model, step.chips, tokens)
    planned, axes, assumed = _as_modelled(run, known)
    compiled = fact(run.manifest.facts, "outcome") is not None
    live = any(v.run_id == run.run_id and v.state in RUNNING for v in place.store.live.all())
    more = ("The run still goes on: its steps so far count.",) if live else ()
    return Ran(
        name=run.manifest.name,
        run_id=run.run_id,
        step=step,
        planned=planned,
        how="compiled" if compiled else "simulated" if run.manifest.simulated else "measured",
        notes=(*more, *notes, *assumed),
        **{**known, "axes": axes},
    )


def _step(run: "Run", place: "Workspace") -> tuple[Ledger, float | None, tuple[str, ...]]:
    """The ledger of a kept step: all kept steps over how many there were, or the one of a compiled program; the tokens
    that its lines print for it; and what is to be said of it."""
    from app.questions.asking import ask
    from app.questions.ledger import LEDGER
    from app.questions.steps import STEPS

    if run.manifest.kind == "serving":
        raise _unfit(run, "it served requests", "a run that trained, or a program that was compiled")
    found = ask(LEDGER, run, {}, place.registry)
    kept = found.ledger.account.child("productive")
    if found.serving or kept is None or kept.chip_seconds <= 0:
        raise _unfit(run, "it tells of no step that was kept", "a run with steps")
    ledger = Ledger(chips=found.ledger.chips, account=kept, chips_known=found.ledger.chips_known)
    if fact(run.manifest.facts, "outcome") is not None:
        return ledger, None, ()
    steps = ask(STEPS, run, {}, place.registry)
    count, usual = int(steps.rows["kept"].sum()), steps.median_step_s
    if not count:
        raise _unfit(run, "it tells of no step that was kept", "a run with steps")
    rate = steps.tokens_per_s_per_chip
    tokens = rate * ledger.chips * usual if rate and usual else None
    one = ledger.scaled(1 / count)
    return one, tokens, _unusual(one.chip_seconds / one.chips, usual)


def _unusual(mean_s: float, usual_s: float | None) -> tuple[str, ...]:
    if usual_s is None or mean_s <= usual_s * (1 + UNUSUAL):
        return ()
    said = f"The step is the mean of all kept ones, {fmt.duration(mean_s)}; a usual one takes {fmt.duration(usual_s)}."
    return (said,)


def _unfit(run: "Run", why: str, expected: str) -> QuestionError:
    return QuestionError(
        f"run {run.manifest.name[:80]!r} cannot be held against the model of training: {why}", expected=expected
    )


def _known(run: "Run", asked_model: str | None, chips: int, tokens: float | None) -> dict[str, Any]:
    """The setup by the run's facts. Raises QuestionError that names all facts that are missing."""
    facts = run.manifest.facts
    one, named = chip_of(facts), fact(facts, "chip")
    if one is None and named:
        why = f"of its chip, {str(named)[:80]}, neither memory rate nor network is published, so no model has its step"
        raise _unfit(run, why, "a run on a chip of the catalogue")
    wanted, seq = _model(run, asked_model), sequence_of(facts)
    batch = _batch(fact(facts, "global_batch"), tokens, seq)
    told = {"chip": one, "chips": fact(facts, "chips"), "model": wanted, "seq": seq, "global_batch": batch}
    missing = [n for n, value in told.items() if not value]
    if missing or one is None:
        lacks = listed([n.replace("_", " ") for n in missing])
        say = " ".join(f"{n}={WRITTEN.get(n, 'N')}" for n in missing)
        raise QuestionError(
            f"run {run.manifest.name[:80]!r} does not tell its {lacks}",
            expected=f"it said with `chipledger facts {run.run_id[:12]} {say}`",
        )
    precision = _precision(run, facts)
    machine(one, precision)  # a chip that lacks a number is told here
    return {
        "model": wanted,
        "chip": one,
        "chips": chips,
        "seq": seq,
        "batch": batch,
        "precision": precision,
        "axes": _axes(run, chips),
        "remat": _remat(facts),
    }


def _batch(stated: Any, tokens: float | None, seq: int | None) -> int | None:
    """Sequences of a step: as stated, else by the tokens that its lines print."""
    if isinstance(stated, int | float) and 1 <= stated < 1 << 40:
        return int(stated)
    return round(tokens / seq) or 1 if tokens and tokens > 0 and seq else None


def _model(run: "Run", asked: str | None) -> Model | None:
    """The run's model, else the one that is asked about. Raises QuestionError for another one than the run's."""
    try:
        known = model_of(run.manifest.facts)
    except QuestionError:  # a name of the user's own, which --model explains
        if asked is None:
            raise
        known = None
    if asked is None or known is None:
        return known if asked is None else model(asked)
    if (named := model(asked)).name != known.name:
        raise QuestionError(
            f"run {run.manifest.name[:80]!r} trained {known.name}, not {named.name}",
            expected="the same model on another setup",
            advice="Leave out --model, or plan without --calibrate",
        )
    return known


def _precision(run: "Run", facts: Facts) -> str:
    """The format of the matrix products; where nothing is said, BF16, as the ledger takes it."""
    said = fact(facts, "quantization") or fact(facts, "precision")
    word = format_said(facts) or (None if said else PRECISIONS[0])
    if word not in PRECISIONS:
        raise _unfit(run, f"it ran in {str(said)[:40]}", f"one of {', '.join(PRECISIONS)}")
    return word


def _axes(run: "Run", chips: int) -> dict[str, int]:
    """Axes of the layout that the run tells, all of them where they account for every chip; none if it tells none."""
    ways = _of_chips(parallel_ways(run.manifest.facts), chips, devices_per_chip(run.manifest.facts))
    if math.prod(ways.values()) == 1:
        return {}
    given = {n: ways[n] for n in INNER}
    try:
        check_fixed({n: s for n, s in ways.items() if s > 1}, chips)
    except QuestionError as e:
        raise QuestionError(
            f"run {run.manifest.name[:80]!r}: {e.what}",
            expected=e.expected,
            advice=f"Say it with `chipledger facts {run.run_id[:12]} chips=N parallelism=AXIS=N,...`",
        ) from e
    return given | ({n: ways[n] for n in OUTER} if math.prod(ways.values()) == chips else {})


def _of_chips(ways: dict[str, int], chips: int, per_chip: int) -> dict[str, int]:
    """Where a chip shows as several devices and the axes are of devices: of chips, the outermost axis that can be."""
    if per_chip > 1 and math.prod(ways.values()) == chips * per_chip:
        cut = next((n for n in (*OUTER, *reversed(INNER)) if ways[n] % per_chip == 0), None)
        return {n: size // per_chip if n == cut else size for n, size in ways.items()}
    return ways


def _remat(facts: Facts) -> str | None:
    said = str(fact(facts, "remat") or fact(facts, "remat_policy") or "").lower()
    return said if said in REMATS else None


def _as_modelled(run: "Run", known: dict[str, Any]) -> tuple[Planned, dict[str, int], tuple[str, ...]]:
    """The model's step of the run's own setup, the fastest of what the run leaves open; and the axes that were kept."""
    axes, why = known["axes"], ""
    inner = {n: s for n, s in axes.items() if n in INNER}
    for fixed in (axes, inner) if axes != inner else (axes,):
        found = plan(
            known["model"],
            known["chip"],
            known["chips"],
            known["batch"],
            known["seq"],
            precision=known["precision"],
            fixed=fixed,
            remat=known["remat"] or REMATS[1],
            most=1,
        )
        if found.layouts:
            return found.layouts[0], fixed, _assumed(axes, fixed)
        refused = no_layout(found, known["model"], known["batch"], known["seq"], fixed)
        why = "" if refused is None else refused.text.removesuffix(".")
    raise _unfit(run, f"the model has no step of its own setup ({why})", "facts that agree")


def _assumed(told: dict[str, int], fixed: dict[str, int]) -> tuple[str, ...]:
    if not told:
        return ("The run does not tell its layout: the fastest that fits stands for it.",)
    if fixed != told:
        said = "how its copies share weights and optimiser state"
        return (f"As told, the run's layout does not fit its chips by the model: {said} is taken as what fits.",)
    return ()

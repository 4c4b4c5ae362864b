"""How well a run does beside what could be: a ladder from the chip's peak down to the chip time paid for.

Each rung is a utilisation: the model's FLOPs over chips x peak x time, by one FLOP convention and at one peak; they
differ in the time alone. Between two rungs lies what would have to be won to climb from the lower to the higher. Rungs
that the inputs do not tell are missing, and it is said why.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analyzers.device.roofline import RooflineResult
from analyzers.findings.base import Seen
from analyzers.flops.mfu import OWN, MfuResult
from analyzers.flops.published import Reviewed, reviewed
from analyzers.subject import parameters_of
from analyzers.time.steps import StepsResult
from errors import format as fmt

SIZE_TIMES, CHIPS_TIMES = 4.0, 16.0
"""Times the parameters, and the chips, up to which a published run is like another."""
ORDER = ("peak", "roof", "compiled", "published", "store", "best_step", "usual_steps", "wall", "held")
"""Rungs of one height stand in this order."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One rung. `utilisation`: 0 to 1. `step_s`: how long a step takes there, where that is told; `over`: of which time
    it is the utilisation; `question`: whose page shows it (published: that page); `run_id`: of another run."""

    name: str
    title: str
    utilisation: float
    over: str
    basis: str
    step_s: float | None = None
    tokens_per_s_per_chip: float | None = None
    question: str = ""
    run_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        held = dict(vars(self))
        return {"peak_share" if name == "utilisation" else name: value for name, value in held.items()}


@dataclass(frozen=True)
class Grade:
    """`rungs`, the highest first; `missing`: sentences on those that cannot be told; `convention`: how FLOPs are
    counted on all of them."""

    rungs: tuple[Rung, ...] = ()
    missing: tuple[str, ...] = ()
    convention: str | None = None

    def with_rungs(self, more: Iterable[Rung]) -> "Grade":
        """The same with rungs of other runs among them."""
        return Grade(ordered((*self.rungs, *more)), self.missing, self.convention)

    def rung(self, name: str) -> Rung | None:
        return next((r for r in self.rungs if r.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "convention": self.convention,
            "rungs": [r.to_dict() for r in self.rungs],
            "missing": list(self.missing),
        }


def ordered(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    return tuple(sorted(rungs, key=lambda r: (-r.utilisation, ORDER.index(r.name))))


def grade(seen: Seen) -> Grade:
    """The ladder of a training run; of others, and of runs without MFU, why there is none."""
    found = seen.answer("mfu", MfuResult)
    if found is None or found.mfu is None:
        why = "which share of the peak was reached is not known"
        return Grade(missing=(f"{why}: {seen.answers.why('mfu') or 'nothing tells the peak of these chips'}",))
    if found.mfu > 1:
        return Grade(missing=("its steps show more than the peak, so peak or FLOPs are not what they are said to be",))
    rungs = [Rung(name="peak", title="The chips' peak", utilisation=1.0, over=found.peaks.source, basis="published")]
    rungs += _own(seen, found)
    missing: list[str] = []
    if not seen.amount("useful_maths"):
        missing.append("how much of all chip time held was useful is not known: no input prints the FLOPs of a step")
    for rung, why in (_roof(seen, found), _published(seen, found)):
        if rung is not None:
            rungs.append(rung)
        if why:
            missing.append(why)
    return Grade(ordered(rungs), tuple(missing), found.convention)


def _own(seen: Seen, found: MfuResult) -> list[Rung]:
    """The run itself: its best step, its usual steps, the wall time of its steps, and all chip time held."""
    steps = seen.answer("steps", StepsResult)
    usual_s, tokens = steps.median_step_s if steps else None, found.tokens_per_s_per_chip
    mfu = found.mfu or 0.0
    wall, held = "wall time, restarts and lost steps with it", "from the first start to the last sign of life"
    if found.profiled:
        wall, held = "wall time of the steps profiled", "as long as it was profiled"
    told = (
        ("best_step", "Its best step", found.best, "the quickest kept, plausible step", "mfu"),
        ("usual_steps", "Its usual steps", mfu, "the time of kept, plausible steps, first ones apart", "mfu"),
        ("wall", "From its first step to its last", found.average, wall, "mfu"),
        ("held", "All chip time held", _held(seen, found), held, "ledger"),
    )
    return [
        Rung(
            name=name,
            title=title,
            utilisation=value,
            over=over,
            basis="derived",
            step_s=usual_s if name == "usual_steps" else None,
            tokens_per_s_per_chip=tokens * value / mfu if tokens and mfu else None,
            question=question,
        )
        for name, title, value, over, question in told
        if value is not None and 0 < value <= 1
    ]


def _held(seen: Seen, found: MfuResult) -> float | None:
    """Useful maths of all chip time held, by the ledger; None where that counts FLOPs at another peak."""
    useful = seen.amount("useful_maths")
    if not useful or (found.average is not None and useful / seen.whole > found.average * 1.02):
        return None
    return useful / seen.whole


def _roof(seen: Seen, found: MfuResult) -> tuple[Rung | None, str]:
    """A step in which each operation takes no longer than the roofs of compute and memory allow, and nothing waits."""
    roofs = seen.answer("roofline", RooflineResult)
    if roofs is None or not len(roofs.points):
        return None, f"the roof of its program cannot be told: {seen.answers.why('roofline') or 'no profile'}"
    flops = float((found.rows["tflops_per_s_per_chip"] * found.rows["dur_s"]).median()) * 1e12  # of a step, on a chip
    if not roofs.roof_seconds or not roofs.device_steps or roofs.roof.bytes is None or not found.peaks.native:
        return None, "the roof of its program cannot be told: no roof holds for its operations on this chip"
    step_s = roofs.roof_seconds / roofs.device_steps
    value = flops / (found.peaks.native * step_s)
    if not 0 < value <= 1:
        return None, "the roof of its program cannot be told: its operations take less than the peak allows its FLOPs"
    if found.best is not None and value < found.best:
        return None, "the roof of its program cannot be told: a step was quicker than its operations at their roofs"
    return (
        Rung(
            name="roof",
            title="Each operation at its roof",
            utilisation=value,
            over="a step of its operations, each at its roof of compute or memory, and no waiting",
            basis="modelled",
            step_s=step_s,
            question="roofline",
        ),
        "",
    )


def _published(seen: Seen, found: MfuResult) -> tuple[Rung | None, str]:
    """The best published run on such chips, in the same format and by the same count, of a like size."""
    chip, precision = found.peaks.chip, found.peaks.precision
    usual = found.fingerprint.matching
    convention = found.convention if found.convention not in OWN else usual[0].name if usual else None
    needed = {"its chip": chip, "the format of its numbers": precision, "how its FLOPs were counted": convention}
    unknown = [what for what, known in needed.items() if known is None]
    if chip is None or precision is None or convention is None:
        return None, f"no published run can stand beside it: {', '.join(unknown)} is not known"
    size, chips = parameters_of(seen.facts), seen.chips
    there = [r for r in reviewed() if _like(r, chip.name, precision, convention, size, chips)]
    if not there:
        return None, f"no published run of a like size on {chip.name} in {precision} by the {convention} count"
    best = max(there, key=lambda r: r.utilisation or 0.0)
    run = best.run
    return (
        Rung(
            name="published",
            title=f"Published: {run.model} on {fmt.count(run.chips, 'chip')}",
            utilisation=best.utilisation or 0.0,
            over=f"as printed, by the {convention} count, in {precision}: {run.source}",
            basis="published",
            tokens_per_s_per_chip=run.tokens_per_s_per_chip,
            question="published",
        ),
        "",
    )


def _like(row: Reviewed, chip: str, precision: str, convention: str, size: float | None, chips: int) -> bool:
    run = row.run
    if run.chip != chip or run.precision != precision or run.convention != convention or run.task != "pretraining":
        return False
    if row.utilisation is None or row.utilisation > 1 or row.contradictions:
        return False
    near = size is None or row.parameters is None or abs(math.log(row.parameters / size)) <= math.log(SIZE_TIMES)
    return near and abs(math.log(run.chips / max(chips, 1))) <= math.log(CHIPS_TIMES)

"""From the options of `whatif scaling` to efficiencies, a curve, and what it says of other numbers of chips."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from app.whatif.scaling.asked import Asked
from errors import QuestionError
from errors.numbers import CHIPS, SPAN, Number
from simulators.training.scaling import (
    LEAST_POINTS,
    Curve,
    Kind,
    Point,
    Predicted,
    Scaled,
    curve,
    largest,
    scaled,
    smallest,
)

if TYPE_CHECKING:
    from app.workspace import Workspace

SAMPLES = Number(1e-9, 1e18)
MOST = 200  # points
EXPECTED = "CHIPS:SECONDS, and :SAMPLES where they differ, such as 512:13841:276480"
NOTES = (
    "Efficiency is what is left of the speed-up that the chips would give, whatever the MFU of the first point.",
    "The curve is a/n + b + c log2 n + d n, no coefficient below 0; its range is that of nine of ten fits to points "
    "that err as these do, wider the fewer they are. It knows nothing of a network that no point crossed.",
)
UNUSED = "Samples are not looked at in weak scaling, where the work of a chip is the same at each point."
SAME = "All points are taken to learn from as many samples."
MEDIANS = "Of several points at one number of chips the median counts, where others are held against them or told of."
STEPS = "A run's time is its usual step: interruptions, saves and start-up are not in it."


@dataclass(frozen=True)
class ScalingAnswer:
    """Points in the order of chips; the curve where there are enough, and what was asked of it."""

    kind: Kind
    rows: tuple[Scaled, ...]
    curve: Curve | None
    predicted: tuple[Predicted, ...]
    refused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(r.point for r in self.rows)

    @property
    def smallest(self) -> Point:
        return smallest(self.points)

    @property
    def largest(self) -> Scaled:
        return largest(self.points, self.kind)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "rows": [
                {
                    "chips": r.point.chips,
                    "seconds": r.point.seconds,
                    "samples": r.point.samples,
                    "speedup": r.speedup,
                    "ideal_speedup": r.ideal,
                    "efficiency": r.efficiency,
                    "system_efficiency": r.system,
                    "sample_efficiency": r.sample,
                }
                for r in self.rows
            ],
            "curve": None if self.curve is None else {**self.curve.coefficients, "worst_error": self.curve.worst},
            "predicted": [asdict(p) for p in self.predicted],
            "refused": list(self.refused),
            "notes": list(self.notes),
        }


def find(asked: Asked, place: "Workspace | None") -> ScalingAnswer:
    """Raises QuestionError where points are missing or cannot be."""
    points = [*_points(asked.points), *_of_runs(asked.runs, place)]
    if len(points) > MOST:
        raise QuestionError(f"{len(points)} points", expected=f"at most {MOST}")
    if len(at := _counts(asked.at)) > MOST:
        raise QuestionError(f"{len(at)} numbers of chips to reckon for", expected=f"at most {MOST}")
    if len({p.chips for p in points}) < 2:
        raise QuestionError(
            "fewer than two numbers of chips",
            expected="--points or --runs of at least two",
            advice=f"A point is {EXPECTED}",
        )
    kind = cast(Kind, asked.kind)
    rows, fitted = scaled(points, kind), curve(points, kind)
    told, refused = list[Predicted](), list[str]()
    for chips in at:
        try:
            if fitted is None:
                raise QuestionError(
                    f"{chips:,} chips: a curve takes {LEAST_POINTS} numbers of chips that were measured"
                )
            told.append(fitted.predicted(chips, smallest(points)))
        except QuestionError as e:
            refused.append(str(e))
    again = len({p.chips for p in points}) < len(points)
    more = (*((STEPS,) if asked.runs else ()), *((MEDIANS,) if again else ()), *_of_samples(kind, rows))
    return ScalingAnswer(kind, rows, fitted, tuple(told), tuple(refused), (*more, *NOTES))


def _of_samples(kind: Kind, rows: tuple[Scaled, ...]) -> tuple[str, ...]:
    """What is taken of the samples that points learned from."""
    without = sum(map(_bare, rows))
    if kind == "weak":
        return () if without == len(rows) else (UNUSED,)
    if without == len(rows):
        return (SAME,)
    if not without:
        return ()
    alone = any(_bare(r) for r in rows if r.point.chips == rows[0].point.chips)
    first = " The smallest is one of them: the others have nothing to be held against." if alone else ""
    return (f"Samples of {without} of {len(rows)} points are not given: what one teaches is not known there.{first}",)


def _bare(row: Scaled) -> bool:
    return row.point.samples is None


def _points(text: str | None) -> Iterator[Point]:
    for part in _parts(text):
        chips, _, rest = part.partition(":")
        seconds, _, samples = rest.partition(":")
        try:
            yield Point(
                CHIPS.read(chips, "chips"),
                SPAN.read(seconds, "seconds"),
                SAMPLES.read(samples, "samples") if samples else None,
            )
        except QuestionError as e:
            raise QuestionError(f"point {part[:40]!r}: {e}", expected=EXPECTED) from e


def _counts(text: str | None) -> list[int]:
    return list(dict.fromkeys(CHIPS.read(n, "a number of chips,") for n in _parts(text)))


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _of_runs(text: str | None, place: "Workspace | None") -> Iterator[Point]:
    """Chips and usual step of each run that is named."""
    from app.questions.asking import ask
    from app.questions.steps import STEPS as QUESTION

    for name in _parts(text):
        if place is None:
            raise QuestionError(f"no store is open to look for run {name[:80]!r}")
        run = place.store.find(name)
        usual = ask(QUESTION, run, {}, place.registry).median_step_s
        chips = run.manifest.fact("chips")
        if not usual or not chips:
            lacks = "its number of chips" if usual else "a usual step"
            raise QuestionError(f"run {run.manifest.name[:80]!r} does not tell {lacks}", advice="See its page Facts")
        yield Point(int(chips), usual)

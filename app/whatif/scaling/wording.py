"""How a job scales, in words: what the page's head and a terminal say."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.scaling.answers import ScalingAnswer
    from simulators.training.scaling import Predicted


def verdict(result: "ScalingAnswer") -> str:
    """What is left of the ideal at the most chips, what it is lost to, and what the curve says next."""
    first, last = result.rows[0], result.largest
    said = [
        f"From {first.point.chips:,} to {fmt.count(last.point.chips, 'chip')}, {fmt.share(last.efficiency)} of the "
        "ideal is left."
    ]
    if last.system is not None and last.sample is not None:
        said.append(
            f"A chip does {fmt.share(last.system)} of what it did, and "
            + (f"a sample teaches {fmt.share(last.sample)} as much." if last.sample < 1 else "samples teach no less.")
        )
    said += [prediction(p) for p in result.predicted]
    if result.curve is None:
        said.append("There are too few numbers of chips for a curve.")
    return headline(*said)


def prediction(p: "Predicted") -> str:
    """`16,384 chips would take 12 min (11 min to 21 min).`"""
    ends = f"{fmt.duration(p.low)} to {fmt.duration(p.high)}"
    far = ", more than twice as far as was measured" if p.far else ""
    return f"{fmt.count(p.chips, 'chip')} would take {fmt.duration(p.seconds)} ({ends}{far})."


def words(result: "ScalingAnswer") -> Words:
    """Each point, then what the curve says of other numbers of chips."""
    rows = [
        (
            f"{r.point.chips:,}",
            fmt.duration(r.point.seconds),
            fmt.number(r.speedup),
            fmt.number(r.ideal),
            fmt.share(r.efficiency),
            fmt.share(r.system),
            fmt.share(r.sample),
        )
        for r in result.rows
    ]
    head = ("chips", "time", "speed-up", "ideal", "efficiency", "system", "samples")
    curve = result.curve
    fit = () if curve is None else (f"The curve misses a point by at most {fmt.share(curve.worst)}.",)
    predicted = tuple(map(prediction, result.predicted))
    return Words(
        verdict(result),
        Table(head, tuple(rows), right=tuple(range(7))),
        (*predicted, *result.refused, *fit, *result.notes),
    )

"""How a series scales, in words and rows."""

from analyzers.several.scaling import Point, Scaling, Series
from app.words import Table, headline, listed, short
from errors import format as fmt
from runs.accounts import ACCOUNTS

MOST_EATERS, LEAST_EATEN = 2, 0.005
KINDS = {"strong": "Strong scaling", "weak": "Weak scaling"}
MEANS = {"strong": "the same batch on more chips", "weak": "the same batch a chip"}


def sentence(series: Series) -> str:
    """What is left of the ideal at the most chips, what eats the rest, and the serial share; by the quickest runs where
    there are several."""
    first, most = series.points[0], series.points[-1].chips
    there = [p for p in series.points if p.chips == most]
    last, several = there[0], len(there) > 1 or series.points[1].chips == first.chips
    left = f"{fmt.share(last.efficiency)}{_range(last)} of the ideal is left"
    ends = f"from {first.chips:,} to {fmt.count(most, 'chip')}{', by the quickest run on each' if several else ''}"
    said = f"{KINDS[series.kind]} ({MEANS[series.kind]}): {ends}, {left}."
    return str(headline(said, _eaters(last), _serial(series)))


def untold(series: Series) -> str:
    """Settings in which the runs may differ, as not all of them tell them."""
    if not series.untold:
        return ""
    names = [n.replace("_", " ") for n in series.untold]
    some = listed(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    return f"Whether these runs differ in {some} is not known: not all of them tell it."


def _range(point: Point) -> str:
    if point.low is None or point.high is None:
        return ""
    return f" ({fmt.share(point.low).removesuffix(' %')} to {fmt.share(point.high)})"


def _eaters(last: Point) -> str:
    """Of the chip time at the most chips, what grew most."""
    if last.eaten is None:
        return ""
    told = {n: v for n, v in last.eaten.items() if n not in last.moved}
    grew = sorted(((v, n) for n, v in told.items() if v >= LEAST_EATEN), reverse=True)[:MOST_EATERS]
    said = [f"{title(n).lower()} {fmt.share(v, 2)}" for v, n in grew]
    return f"Of its chip time more went into {listed(said)}." if said else ""


def _serial(series: Series) -> str:
    if series.serial is None:
        return ""
    s = series.serial
    ends = f"{fmt.share(s.low).removesuffix(' %')} to {fmt.share(s.high)}"
    return f"{fmt.share(s.share)} ({ends}) of a step on the fewest chips is not shortened by more of them."


def title(account: str) -> str:
    return ACCOUNTS[account].title if account in ACCOUNTS else account.replace("_", " ")


def left_out(found: Scaling) -> list[str]:
    """Runs that are in no series, those of one reason together."""
    reasons = dict.fromkeys(why for _, why in found.left_out)
    told = []
    for why in reasons:
        names = [short(n, 30) for n, w in found.left_out if w == why]
        some = listed(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
        told.append(f"Left out: {some}, because {why}.")
    return told


def table(series: Series) -> Table:
    """A row a run."""
    rows = [
        (
            short(p.name),
            f"{p.chips:,}",
            fmt.duration(p.step_s),
            fmt.share(p.efficiency),
            fmt.NO_VALUE if p.low is None or p.high is None else f"{fmt.share(p.low)} to {fmt.share(p.high)}",
        )
        for p in series.points
    ]
    return Table((series.kind, "chips", "step", "efficiency", "range"), tuple(rows), right=(1, 2, 3, 4))

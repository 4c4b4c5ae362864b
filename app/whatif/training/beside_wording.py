"""A run carried over, in words: what the page's head and a terminal say of the two ledgers."""

from typing import TYPE_CHECKING

from app import theme
from app.whatif.base import Words
from app.whatif.training import wording
from app.whatif.training.phrases import axes, keeps, takes, what
from app.words import Table, headline, short
from errors import format as fmt
from runs.accounts import ACCOUNTS

if TYPE_CHECKING:
    from app.whatif.training.beside import Other, PortedPlan
    from simulators.training.ported import Row

KINDS = {
    "maker": "from GPU to TPU or back",
    "chip": "to another chip",
    "chips": "to more or fewer chips with as many tokens each",
    "scaled": "to more or fewer chips with other tokens for each",
    "batch": "to another batch or sequence",
    "layout": "to another layout",
    "precision": "to another precision",
    "remat": "to other layers computed again",
    "several": "of several things at once",
}
TITLES = {
    "not_profiled": "All else, not profiled",
    "communication_or_wait": "Communication or waits",
    "compute_unsplit": "Computing, not split",
    "productive": "The step",
}
NEAR = 0.05  # a factor so near to 1 is not told
DUST = 0.0005  # of the step: an account that changes by less is not named


def verdict(result: "PortedPlan") -> str:
    """The step before and after, what it means for the job, what changes most, and how far off such changes were."""
    _, other = result.carried
    more = (result.faster, _most(other), _error(other), _factor(result, other))
    if result.best is None:  # that no limit is kept comes first
        return headline(_limits(result), *map(wording.needs, result.would_do), _steps(result), *more)
    return headline(_steps(result), _limits(result), *more)


def _steps(result: "PortedPlan") -> str:
    choice, other = result.carried
    run, after = result.run, fmt.duration(other.step.after_s)
    of = "The least time of a step" if run.compiled else "The step"
    name = f"{of} of {short(run.name)}, {fmt.duration(other.step.before_s)} on {run.chips:,} {run.chip.name}"
    if not other.differ:
        return f"{name}, is the same: nothing was changed."
    low, high = (fmt.duration(s) for s in other.band_s)
    verb = "becomes about" if run.compiled else "is likely to take"
    return f"{name}, {verb} {after} ({low} to {high}) on {what(choice)} as {axes(choice)}."


def _limits(result: "PortedPlan") -> str:
    choice, _ = result.carried
    if choice.days is None:
        return ""
    return f"The job takes {takes(choice)}{keeps(choice)}."


def _most(other: "Other") -> str:
    """The account that changes the most."""
    row = max(other.step.rows, key=lambda r: abs(r.change_s), default=None)
    if row is None or abs(row.change_s) < DUST * other.step.before_s:
        return ""
    return f"What changes most: {_title(row)}, {fmt.duration(row.measured_s)} to {fmt.duration(row.ported_s)}."


def _error(other: "Other") -> str:
    if other.error is None:
        return ""
    e = other.error
    off = f"{fmt.share(e.median)} in half of them and {fmt.share(e.ninth_tenth)} in nine of ten"
    if e.own:
        pairs = fmt.count(e.pairs, "pair")
        return f"In {pairs} of published runs, changes {KINDS[e.kind]} were predicted with errors up to {off}."
    return f"Too few published runs differ so: the range is the widest there is, of changes {KINDS[e.kind]}."


def _factor(result: "PortedPlan", other: "Other") -> str:
    """What the model misses of the run itself."""
    step = other.step
    if abs(step.factor - 1) <= NEAR:
        return ""
    seen = fmt.duration(step.before_s - step.unchanged_s)
    how = f"its program takes {seen} at the least" if result.run.compiled else f"{seen} were {result.run.how}"
    return (
        f"The model says {fmt.duration(step.modelled_s)} where {how}: what it models is carried over with that "
        f"factor, {fmt.number(step.factor)}."
    )


def title(row: "Row") -> str:
    """An account as a table has it; one that is no account of its own by what it is a part of."""
    name = row.path[-1]
    if name in TITLES or name in ACCOUNTS:
        return TITLES.get(name) or ACCOUNTS[name].title
    return f"{theme.title(theme.known(row.path))}: {name.replace('_', ' ')}"


def _title(row: "Row") -> str:
    """An account within a sentence."""
    return title(row)[:1].lower() + title(row)[1:]


def words(result: "PortedPlan") -> Words:
    """The two ledgers, account by account, and the other layouts below them; or the text that was asked for."""
    if result.asked.make:
        return wording.words(result)
    choice, other = result.carried
    rows = [
        (
            title(row),
            fmt.duration(row.measured_s),
            fmt.duration(row.ported_s),
            change(row.change_s),
            row.rule,
        )
        for row in sorted(other.step.rows, key=lambda r: -max(r.measured_s, r.ported_s))
    ]
    step = other.step
    rows.append(
        ("Step", fmt.duration(step.before_s), fmt.duration(step.after_s), change(step.after_s - step.before_s), "")
    )
    ran = "its program" if result.run.compiled else result.run.how
    head = ("account", ran, f"on {what(choice)}", "change", "carried over by")
    pairs = zip(result.choices, result.others, strict=True)
    said = tuple(
        f"{what(c)} as {axes(c)}: {takes(c) if o.differ else 'as it was'}." for c, o in pairs if c is not choice
    )
    return Words(verdict(result), Table(head, tuple(rows), right=(1, 2, 3)), (*said, *result.why_not, *result.notes))


def change(seconds: float) -> str:
    """`+12.3 ms`."""
    return f"+{fmt.duration(seconds)}" if seconds > 0 else fmt.duration(seconds)

"""Lives of a job in words: what a terminal says."""

from typing import TYPE_CHECKING

from app.whatif.base import Words
from app.words import Table, Verdict, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.goodput.answers import GoodputPlan

TITLES = {
    "saving": "saving",
    "lost_work": "work lost to failures",
    "restarting": "restarting",
    "waiting": "waiting for machines",
    "slices_away": "slices that are away",
}
NOTHING = 1e-3  # of all time


def verdict(result: "GoodputPlan") -> Verdict:
    """The goodput with its range, the largest loss, and what a better interval would give."""
    low, high = result.range
    between = f" ({fmt.share(low)} to {fmt.share(high)} in nine of ten lives)"
    first = f"{fmt.share(result.goodput)} of the time becomes kept work{between}."
    where, share = next(iter(result.badput.items()))
    loss = f"The largest loss is {TITLES[where]}, {fmt.share(share)}." if share > NOTHING else ""
    return headline(first, f"{_rate(result)} {loss}".strip(), gain(result), _spares(result), _interval(result))


def _rate(result: "GoodputPlan") -> str:
    failures = float(result.lives.failures.mean())
    if failures < 1:
        return f"{fmt.share(float((result.lives.failures > 0).mean()))} of such jobs see a failure at all."
    return f"Something fails every {fmt.duration(result.life.job.mttf_s)}, some {fmt.number(failures)} times in all."


def gain(result: "GoodputPlan") -> str:
    """What elastic training adds, in points of all time and as a ratio; empty for a job that is not elastic."""
    if result.whole is None or result.gain is None:
        return ""
    whole = float(result.whole.goodput.mean())
    if whole < NOTHING:
        return "Restarting the whole job at each failure would keep next to nothing."
    more = "more" if result.gain >= 0 else "less"
    ratio = fmt.share(abs(result.gain) / whole)
    points = fmt.number(100 * abs(result.gain))
    return f"Restarting the whole would keep {fmt.share(whole)}: elastic keeps {points} points ({ratio}) {more}."


def _spares(result: "GoodputPlan") -> str:
    if result.spare_is_free is None:
        return ""
    free = fmt.share(result.spare_is_free)
    return f"A spare is free at {free} of failures, were they as frequent while the job waits."


def _interval(result: "GoodputPlan") -> str:
    life, best = result.life, result.best
    every = f"It saves after every {fmt.duration(life.interval_s)} of work"
    if life.local:
        every += f", {remote(life.saves_per_remote, 'saves ')}"
    if best.saves_per_remote != life.saves_per_remote:
        return f"{every}; the best is {fmt.duration(best.interval_s)}, {remote(best.saves_per_remote)}."
    of_these = "the best for so many" if result.asked.saves_per_remote is not None else "the best"
    if abs(life.interval_s / best.interval_s - 1) < 0.01:
        return f"{every}, {of_these}."
    return f"{every}; {of_these} is {fmt.duration(best.interval_s)}."


def remote(saves: int, what: str = "") -> str:
    """`8 saves for one that is remote`."""
    return "to remote storage each time" if saves == 1 else f"{saves:,} {what}for one that is remote"


def words(result: "GoodputPlan") -> Words:
    """Where the time goes, the largest part first."""
    shares = {"kept work": result.goodput, **{TITLES[n]: s for n, s in result.badput.items() if s > 0}}
    span = result.life.span_s
    rows = tuple((name, fmt.share(s), fmt.duration(s * span)) for name, s in shares.items())
    form = (
        () if result.closed_form is None else (f"By formula, of a life without end: {fmt.share(result.closed_form)}.",)
    )
    return Words(verdict(result), Table(("what", "share", "of the job"), rows, right=(1, 2)), (*form, *result.notes))

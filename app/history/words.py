"""What is said of a metric's history: the verdict, a sentence for each change, the table, and what is left out."""

from collections.abc import Mapping

from analyzers.difference.step_time import STALLS_SHARE
from analyzers.history_of_metric import Change, HistoryResult, Point
from analyzers.history_of_metric.drift import Drift
from app.comparing.job_words import signed
from app.history.metrics import Metric
from app.words import Table, Verdict, headline, short
from errors import format as fmt

LEADS = "`chipledger compare {} {}` says what made it."


def verdict(of: Metric, result: HistoryResult) -> Verdict:
    over = fmt.count(len(result.points), "run" if all(len(p.runs) == 1 for p in result.points) else "point")
    if not result.judged:
        return headline(f"Whether {of.inside} changed cannot be told: {result.why[-1]}.")
    if result.drift is not None:
        return headline(_drifts(of, result.drift, over))
    if not result.changes:
        return headline(f"{of.title} did not change for good over {over}, as far as its scatter tells.")
    largest = max(result.changes, key=lambda c: abs(c.change))
    rest = len(result.changes) - 1
    more = f"{fmt.count(rest, 'other change')} {'is' if rest == 1 else 'are'} told below." if rest else ""
    return headline(said(of, largest), more)


def leads(result: HistoryResult) -> tuple[str, ...]:
    """For a terminal: what says more of each change."""
    return tuple(LEADS.format(c.last.runs[-1][:12], c.first.runs[0][:12]) for c in result.changes)


def said(of: Metric, c: Change) -> str:
    """`Step time rose by 6.1 % (5.2 to 7.0 %) between 1a2b and 3c4d: from 1.00 s to 1.06 s.`"""
    way, worse = _way(of, c.change)
    between = f"between {short(c.last.label)} and {short(c.first.label)}"
    levels = f"from {of.shown(c.before)} to {of.shown(c.after)}"
    return f"{of.title} {way} by {_shown(of, c)} {between}{worse}: {levels}."


def _drifts(of: Metric, d: Drift, over: str) -> str:
    """`Step time drifts, for the worse: no single change is sure, but it rose from 1.0 s to 2.0 s over 40 runs.`"""
    way, worse = _way(of, d.change)
    levels = f"from {of.shown(d.before)} to {of.shown(d.after)}"
    return f"{of.title} drifts{worse}: no single change is sure, but it {way} {levels} over {over}."


def _way(of: Metric, change: float) -> tuple[str, str]:
    """(rose or fell, whether that is worse)."""
    worse = "" if of.more is None else ", for the worse" if (change > 0) == of.more else ", for the better"
    return "rose" if change > 0 else "fell", worse


def _shown(of: Metric, c: Change) -> str:
    return f"{amount(of, abs(c.change))} ({amount(of, c.low, True)} to {amount(of, c.high, True)})"


def amount(of: Metric, change: float, sign: bool = False) -> str:
    """A change of a metric: in percent, of a share in points."""
    text = signed(change) if sign else fmt.share(change, 2)
    return f"{text.removesuffix(' %')} points" if of.of_shares else text


def notes(
    result: HistoryResult, left_out: Mapping[str, int], mixed: tuple[str, ...], stall: int = 0
) -> tuple[str, ...]:
    left = [f"{count:,} of the runs {why}." for why, count in left_out.items()]
    odd = [f"{why[:1].upper()}{why[1:]}." for why in result.why if result.judged]
    one = (
        [f"These runs differ in {', '.join(mixed)}: choose one job by its name, its group or a search."]
        if mixed
        else []
    )
    most = fmt.whole_share(STALLS_SHARE)
    stalls = [f"Stalls count as steps in all of these runs: in {stall:,} of them more than {most} of the steps stall."]
    return (*left, *odd, *one, *(stalls if stall else []))


def table(of: Metric, result: HistoryResult) -> Table:
    """Every point, and beside the first of a new level what changed there."""
    begins = {c.first.runs: c for c in result.changes}
    rows = [
        (
            p.label,
            fmt.date(p.at_ns),
            p.runs[0][:12] + (f" and {len(p.runs) - 1:,} more" if len(p.runs) > 1 else ""),
            of.shown(p.value),
            _ends(of, p),
            _shown(of, begins[p.runs]) if p.runs in begins else "",
        )
        for p in result.points
    ]
    return Table(("of", "when", "run", of.title, "range", "changed by"), tuple(rows), right=(3,))


def _ends(of: Metric, p: Point) -> str:
    return fmt.NO_VALUE if p.low is None or p.high is None else f"{of.shown(p.low)} to {of.shown(p.high)}"

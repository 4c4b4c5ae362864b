"""The history of a metric over the runs of a store: which runs, in which order, and what changed, in words and JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzers.history_of_metric import Change, HistoryResult, Point, history
from analyzers.history_of_metric.drift import Drift
from app.comparing.job_words import signed
from app.follow.alerts.evaluate import moment_of
from app.history.metrics import Metric, metric
from app.library.rows import library
from app.words import Table, Verdict, headline, short
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from runs.run import Run

TIME = "time"
MOST = 2_000  # runs
SETUP = ("chip", "chips", "model")  # what runs of one history should have in common
LEADS = "`chipledger compare {} {}` says what made it."


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of `options.ASKED`."""

    metric: str
    search: str = ""
    group: str = ""
    name: str = ""
    by: str = TIME


@dataclass(frozen=True, kw_only=True)
class Told:
    """`left_out`: runs that were meant and are no point, by why. `mixed`: what the others differ in, of SETUP."""

    metric: Metric
    result: HistoryResult
    left_out: Mapping[str, int]
    mixed: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return _verdict(self)

    @property
    def table(self) -> Table:
        return _table(self)

    def to_dict(self) -> dict[str, Any]:
        told = {"metric": self.metric.name, "title": self.metric.title, "of_shares": self.metric.of_shares}
        return {
            **told,
            "verdict": self.verdict.whole,
            **self.result.to_dict(),
            "left_out": dict(self.left_out),
            "mixed": list(self.mixed),
        }


def tell(asked: Asked, place: Workspace) -> Told:
    """Raises QuestionError for a metric or a search that cannot be, and where none of the runs tells it."""
    of = metric(asked.metric)
    runs, tags = _meant(asked, place)
    valued = [(run, found) for run in runs if (found := of.of(run, place)) is not None]
    left = {"do not tell it": len(runs) - len(valued)}
    names = Counter(run.manifest.name for run, _ in valued)
    points = [_point(run, found, alone=names[run.manifest.name] == 1) for run, found in valued]
    if asked.by != TIME:
        labels = [tags[run.run_id].get(asked.by) for run, _ in valued]
        left[f"have no tag {asked.by[:40]}"] = sum(label is None for label in labels)
        points = _joined((label, p) for label, p in zip(labels, points, strict=True) if label is not None)
    if not points:
        tagged = f" and has a tag {asked.by[:40]!r}" if valued else ""
        raise QuestionError(
            f"of {fmt.count(len(runs), 'run')} none tells {of.title}{tagged}",
            advice="`chipledger runs` lists them with their tags.",
        )
    result, left = history(points, of_shares=of.of_shares), {k: n for k, n in left.items() if n}
    return Told(metric=of, result=result, left_out=left, mixed=_mixed(run for run, _ in valued))


def _mixed(runs: Iterable[Run]) -> tuple[str, ...]:
    """What these runs do not have in common of what makes them one job."""
    runs = list(runs)
    facts = [run.manifest.facts for run in runs]
    told = {"kind": {run.manifest.kind for run in runs}}  # a compiler's bound is no measured step
    told |= {name: {str(f[name].value) for f in facts if name in f} for name in SETUP}
    return tuple(name for name, values in told.items() if len(values) > 1)


def _meant(asked: Asked, place: Workspace) -> tuple[list[Run], dict[str, Mapping[str, str]]]:
    """The runs in order of time, and the tags of each."""
    rows = [
        row
        for row in library(place, asked.search, numbers="now").rows
        if row.readable
        and (not asked.name or row.name == asked.name)
        and (not asked.group or row.group == asked.group or row.project == asked.group)
    ]
    if not rows:
        raise QuestionError("no run is meant", advice="`chipledger runs` lists what is there.")
    if len(rows) > MOST:
        raise QuestionError(f"{len(rows):,} runs are meant", expected=f"at most {MOST:,}, by search, group or name")
    found = [run for row in rows if (run := place.store.get(row.run_id)) is not None]
    found.sort(key=_moment)
    return found, {row.run_id: row.tags for row in rows}


def _moment(run: Run) -> tuple[int, int]:
    """When a run was, by its own times, else by when it was stored."""
    until, stored = moment_of(run)
    return until or stored, stored


def _point(run: Run, found: tuple[float, float | None, float | None], alone: bool) -> Point:
    """`alone`: no other of these runs is called so."""
    value, low, high = found
    name, at_ns = run.manifest.name, _moment(run)[0]
    name = name if alone else f"{name} ({run.run_id[:12]})"
    return Point(label=name, runs=(run.run_id,), at_ns=at_ns, value=value, low=low, high=high)


def _joined(labelled: Iterable[tuple[str, Point]]) -> list[Point]:
    """One point a label, in order of its first run; of several runs their mean, which has no range of its own."""
    found: dict[str, list[Point]] = {}
    for label, point in labelled:
        found.setdefault(label, []).append(point)
    return [_mean(label, points) for label, points in found.items()]


def _mean(label: str, points: Sequence[Point]) -> Point:
    first, alone = points[0], len(points) == 1
    return Point(
        label=label,
        runs=tuple(run for p in points for run in p.runs),
        at_ns=first.at_ns,
        value=sum(p.value for p in points) / len(points),
        low=first.low if alone else None,
        high=first.high if alone else None,
    )


def _verdict(told: Told) -> Verdict:
    result, title = told.result, told.metric.title
    over = fmt.count(len(result.points), "run" if all(len(p.runs) == 1 for p in result.points) else "point")
    if not result.judged:
        return headline(f"Whether {title} changed cannot be told: {result.why[-1]}.")
    if result.drift is not None:
        return headline(_drifts(told.metric, result.drift, over))
    if not result.changes:
        return headline(f"{title} did not change for good over {over}, as far as its scatter tells.")
    largest = max(result.changes, key=lambda c: abs(c.change))
    rest = len(result.changes) - 1
    more = f"{fmt.count(rest, 'other change')} {'is' if rest == 1 else 'are'} told below." if rest else ""
    ends = LEADS.format(largest.last.runs[-1][:12], largest.first.runs[0][:12])
    return headline(_said(told.metric, largest), more, ends)


def _said(of: Metric, c: Change) -> str:
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
    return f"{_amount(of, abs(c.change))} ({_amount(of, c.low, True)} to {_amount(of, c.high, True)})"


def _amount(of: Metric, change: float, sign: bool = False) -> str:
    text = signed(change) if sign else fmt.share(change, 2)
    return f"{text.removesuffix(' %')} points" if of.of_shares else text


def _table(told: Told) -> Table:
    """Every point, and beside the first of a new level what changed there."""
    begins = {c.first.runs: c for c in told.result.changes}
    rows = [
        (
            p.label,
            fmt.date(p.at_ns),
            p.runs[0][:12] + (f" and {len(p.runs) - 1:,} more" if len(p.runs) > 1 else ""),
            told.metric.shown(p.value),
            fmt.NO_VALUE
            if p.low is None or p.high is None
            else f"{told.metric.shown(p.low)} to {told.metric.shown(p.high)}",
            _shown(told.metric, begins[p.runs]) if p.runs in begins else "",
        )
        for p in told.result.points
    ]
    return Table(("of", "when", "run", told.metric.title, "range", "changed by"), tuple(rows), right=(3,))


def _ends(of: Metric, p: Point) -> str:
    return fmt.NO_VALUE if p.low is None or p.high is None else f"{of.shown(p.low)} to {of.shown(p.high)}"

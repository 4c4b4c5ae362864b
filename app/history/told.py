"""The history of a metric over the runs of a store: which runs, in which order, and what changed, in words and JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzers.history_of_metric import HistoryResult, Point, history
from app.comparing.several.growing import batch_of
from app.follow.alerts.evaluate import moment_of
from app.history import words
from app.history.metrics import Metric, metric
from app.history.options import BY, METRIC
from app.library.rows import found_ids, library
from app.library.search import read
from app.library.table import table
from app.words import Table, Verdict
from app.workspace import Workspace
from errors import QuestionError
from errors import format as fmt
from runs.run import Run

TIME = BY.default
MOST = 2_000  # runs
SETUP = ("chip", "chips", "model")  # what runs of one history should have in common


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of `options.ASKED`."""

    metric: str
    search: str = ""
    group: str = ""
    name: str = ""
    by: str = TIME

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Asked":
        """What was given by name. Raises QuestionError where no metric is."""
        if not given.get(METRIC.name):
            raise QuestionError("no metric is named", expected=METRIC.help)
        return cls(**given)


@dataclass(frozen=True, kw_only=True)
class Told:
    """`by`: what a point is; `left_out`: runs that were meant and are no point, by why. `mixed`: what the others differ
    in, of SETUP. `stall`: in how many so many steps stall that stalls are steps in all of them."""

    metric: Metric
    by: str
    result: HistoryResult
    left_out: Mapping[str, int]
    mixed: tuple[str, ...] = ()
    stall: int = 0

    @property
    def verdict(self) -> Verdict:
        return words.verdict(self.metric, self.result)

    @property
    def table(self) -> Table:
        return words.table(self.metric, self.result)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One of each change, in order."""
        return tuple(words.said(self.metric, c) for c in self.result.changes)

    @property
    def places(self) -> tuple[int, ...]:
        """Of each change, the first point of its new level."""
        at = {p.runs: n for n, p in enumerate(self.result.points)}
        return tuple(at[c.first.runs] for c in self.result.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is no point and why, and what these runs do not have in common."""
        return words.notes(self.result, self.left_out, self.mixed, self.stall)

    @property
    def leads(self) -> tuple[str, ...]:
        """The command that says what made each change."""
        return words.leads(self.result)

    @property
    def runs(self) -> int:
        return sum(len(p.runs) for p in self.result.points)

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
    valued, stall = of.values(runs, place)
    left = {"do not tell it": len(runs) - len(valued)}
    names = Counter(run.manifest.name for run, _ in valued)
    points = [_point(run, found, alone=names[run.manifest.name] == 1) for run, found in valued]
    if asked.by != TIME:
        labels = [tags[run.run_id].get(asked.by) for run, _ in valued]
        left[f"have no tag {asked.by[:40]}"] = sum(label is None for label in labels)
        labelled = ((label, p) for label, p in zip(labels, points, strict=True) if label is not None)
        points = _joined(labelled, of.bounded)
    if not points:
        tagged = f" and has a tag {asked.by[:40]!r}" if valued else ""
        raise QuestionError(
            f"of {fmt.count(len(runs), 'run')} none tells {of.title}{tagged}",
            advice="`chipledger runs` lists them with their tags.",
        )
    result = history(points, of_shares=of.of_shares, bounded=of.bounded)
    left = {k: n for k, n in left.items() if n}
    mixed = _mixed(run for run, _ in valued)
    return Told(metric=of, by=asked.by, result=result, left_out=left, mixed=mixed, stall=stall)


def _mixed(runs: Iterable[Run]) -> tuple[str, ...]:
    """What these runs do not have in common of what makes them one job, whose steps are the same work."""
    runs = list(runs)
    facts = [run.manifest.facts for run in runs]
    told = {"kind": {_kind(run) for run in runs}}
    told |= {name: {str(f[name].value) for f in facts if name in f} for name in SETUP}
    told["batch"] = {str(batch) for run in runs if (batch := batch_of(run)) is not None}
    return tuple(name for name, values in told.items() if len(values) > 1)


def _kind(run: Run) -> str:
    """A simulated run is of another kind than a measured one, as a compiler's bound is no measured step."""
    compiled = run.manifest.kind == "compiled"
    return "simulated" if run.manifest.simulated and not compiled else run.manifest.kind


def _meant(asked: Asked, place: Workspace) -> tuple[list[Run], dict[str, Mapping[str, str]]]:
    """The runs in order of time, and the tags of each."""
    if read(asked.search).worked_out:  # nothing else here reads a headline number
        library(place, asked.search, limit=0, numbers="now")
    ids = found_ids(place, asked.search, name=asked.name, group=asked.group)
    if not ids:
        raise QuestionError("no run is meant", advice="`chipledger runs` lists what is there.")
    if len(ids) > MOST:
        raise QuestionError(f"{len(ids):,} runs are meant", expected=f"at most {MOST:,}, by search, group or name")
    rows = table(place).made(ids)
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


def _joined(labelled: Iterable[tuple[str, Point]], bounded: bool) -> list[Point]:
    """One point a label, in order of its first run; of several runs their mean, which has no range of its own but for
    what it is at least and at most."""
    found: dict[str, list[Point]] = {}
    for label, point in labelled:
        found.setdefault(label, []).append(point)
    return [_mean(label, points, bounded) for label, points in found.items()]


def _mean(label: str, points: Sequence[Point], bounded: bool) -> Point:
    first, alone = points[0], len(points) == 1
    value = sum(p.value for p in points) / len(points)
    more = sum(p.unknown for p in points) / len(points) if bounded else 0.0
    return Point(
        label=label,
        runs=tuple(run for p in points for run in p.runs),
        at_ns=first.at_ns,
        value=value,
        low=first.low if alone else value if more else None,
        high=first.high if alone else value + more if more else None,
    )

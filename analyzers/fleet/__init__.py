"""A fleet: many runs over time, in one ledger, by team, model, chip, group or tag, and by day, week or month.

    counted time        every chip-second that a run's ledger accounts for, once (`once.py`), within the time asked for
    sums                over groups = over periods and what stands in none = over runs = over accounts: all of them add
                        up the same entries (`sums.py`), as ledgers add
    left out            told by reason and number: simulated and compiled runs are never summed with measured ones

ML productivity goodput = scheduling x runtime x program goodput (arXiv 2502.06982):

    scheduling    of the chips that the fleet has, the share that jobs held; runs alone cannot tell it: it needs the
                  number of chips (`capacity_chips`) and a time to look at
    runtime       of the time that jobs held chips, the share in steps that were kept (of serving, in answers)
    program       of the time in kept steps, the share that the model's FLOPs take at the chips' peak; the source takes
                  what the compiler's graph needs at peak, of which the model's own FLOPs are a part
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any

import numpy as np

from analyzers.fleet.base import Every, FleetRun, key_of
from analyzers.fleet.causes import MOST_CAUSES, Cause, causes
from analyzers.fleet.hours import Laid, cut, heading_in, laid_out, once
from analyzers.fleet.once import Twice, told_twice
from analyzers.fleet.periods import Period, edges, periods
from analyzers.fleet.sums import Columns, Sum, flags_of, sums
from errors import QuestionError

LEFT_OUT = {
    "damaged": "damaged, so that they cannot be read",
    "pending": "whose numbers are still being worked out",
    "simulated": "simulated",
    "compiled": "compiled and never run",
    "measured": "measured",
    "no_ledger": "without a ledger of their time",
    "chips_unknown": "of which no input tells how many chips they held",
    "told_again": "made of files that another run holds too",
    "told_elsewhere": "of a job of which another run tells the same time",
    "undated": "without a time of day, while a time was asked for",
    "outside": "wholly outside the time asked for",
}
"""Why runs are not counted, in the order in which it is looked."""


@dataclass(frozen=True, kw_only=True)
class FleetAsked:
    """`since_ns`, `until_ns`: the time that is counted, None: no bound. `every`: the periods of the trend; `zone`: the
    time zone of its days. `simulated`: simulated runs, and no others. `capacity_chips`: chips that the fleet has."""

    by: str = "team"
    every: Every = "week"
    since_ns: int | None = None
    until_ns: int | None = None
    zone: tzinfo = UTC
    simulated: bool = False
    capacity_chips: int | None = None


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A run's part: chip-seconds that are counted, of `whole_chip_s` that its ledger holds."""

    run: FleetRun
    chip_s: float
    whole_chip_s: float
    usd: float | None


@dataclass(frozen=True, kw_only=True)
class FleetResult:
    """`total` is the sum of `groups`, of `runs`, and of `trend` with `undated` (None where every run is dated).

    `left_out`: runs that are not counted, by reason (`LEFT_OUT`). `partly`: counted runs some of whose time another
    run of the job tells, `partly_chip_s` of it. `evenly_chip_s`: time of which no input tells the hours. `developers`:
    owners of the counted runs that tell their FLOPs, which are `flops_of_owned`; `unowned_runs`: counted runs without
    an owner. `scheduling`: None where it cannot be told.
    """

    asked: FleetAsked
    total: Sum
    groups: tuple[tuple[str, Sum], ...]
    trend: tuple[tuple[Period, Sum], ...]
    undated: Sum | None
    all_causes: tuple[Cause, ...]
    runs: tuple[Counted, ...]
    left_out: Mapping[str, int]
    partly: int = 0
    partly_chip_s: float = 0.0
    evenly_chip_s: float = 0.0
    developers: int = 0
    unowned_runs: int = 0
    flops_of_owned: float | None = None
    scheduling: float | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    marks: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The ten in which most was lost, the largest first."""
        return self.all_causes[:MOST_CAUSES]

    @property
    def flops_per_developer(self) -> float | None:
        """The model's FLOPs in kept steps of runs that tell them and name an owner, over the number of their owners."""
        return self.flops_of_owned / self.developers if self.flops_of_owned is not None and self.developers else None

    def to_dict(self, most_runs: int = 20) -> dict[str, Any]:
        shown, rest = self.runs[:most_runs], self.runs[most_runs:]
        return {
            "by": self.asked.by,
            "every": self.asked.every,
            "zone": str(self.asked.zone),
            "since_ns": self.asked.since_ns,
            "until_ns": self.asked.until_ns,
            "simulated": self.asked.simulated,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "total": self.total.to_dict(),
            "scheduling_goodput": self.scheduling,
            "capacity_chips": self.asked.capacity_chips,
            "groups": [{"key": key, **part.to_dict()} for key, part in self.groups],
            "trend": [
                {"period": p.name, "start_ns": p.start_ns, "end_ns": p.end_ns, **part.to_dict()}
                for p, part in self.trend
            ],
            "undated": self.undated and self.undated.to_dict(),
            "causes": [c.to_dict() for c in self.causes],
            "developers": self.developers,
            "runs_without_owner": self.unowned_runs,
            "model_flops_per_developer": self.flops_per_developer,
            "runs": [_run_dict(r) for r in shown],
            "other_runs": {"runs": len(rest), "chip_hours": sum(r.chip_s for r in rest) / 3600},
            "left_out": dict(self.left_out),
            "counted_in_part": {"runs": self.partly, "left_out_chip_hours": self.partly_chip_s / 3600},
            "spread_evenly_chip_hours": self.evenly_chip_s / 3600,
            "counted_of_which": dict(self.marks),
        }


def _run_dict(told: Counted) -> dict[str, Any]:
    return {
        "run_id": told.run.run_id,
        "name": told.run.name,
        "chip_hours": told.chip_s / 3600,
        "counted_share": told.chip_s / told.whole_chip_s if told.whole_chip_s > 0 else None,
        "usd": told.usd,
    }


def twice(runs: Sequence[FleetRun], asked: FleetAsked) -> Twice:
    """What is told twice among the runs that may be counted."""
    return told_twice([r for r in runs if not _why_not(r, asked)])


def fleet(runs: Sequence[FleetRun], asked: FleetAsked, known: Twice | None = None) -> FleetResult:
    """`known`: what is told twice, where these runs are a part of those among which it was looked for. Raises
    QuestionError where the time asked for is none, or more chips were held than the fleet has."""
    if asked.since_ns is not None and asked.until_ns is not None and asked.until_ns <= asked.since_ns:
        raise QuestionError("the time asked for ends before it begins", expected="since before until")
    told_before = twice(runs, asked) if known is None else known
    counted, left_out = _sorted_out(runs, asked, told_before.again)
    taken = told_before.elsewhere
    whole = laid_out(counted)
    window = _window(asked, whole)
    laid = _cut(once(whole, [r.run_id for r in counted], taken), window)
    columns = _columns(counted, laid, asked)
    kept = np.bincount(columns.run, columns.chip_s, len(counted)) if len(counted) else np.zeros(0)
    _account_for_the_rest(counted, kept, taken, asked, left_out)
    total = sums(columns, np.zeros(len(columns.run), dtype=np.int64), 1)[0]
    trend, undated = _trend(columns, laid, asked)
    told = kept > 0
    span = (int(laid.pieces.start.min()), int(laid.pieces.end.max())) if len(laid.pieces.lot) else (None, None)
    return FleetResult(
        asked=asked,
        total=total,
        groups=_groups(columns, asked.by),
        trend=trend,
        undated=undated,
        all_causes=causes(columns),
        runs=_runs(counted, kept, columns),
        left_out={name: left_out[name] for name in LEFT_OUT if left_out[name]},
        partly=sum(1 for n, r in enumerate(counted) if told[n] and r.run_id in taken),
        partly_chip_s=_taken_off(columns, _cut(whole, window), taken),
        evenly_chip_s=_evenly(columns),
        developers=len({r.owner for r in _telling_flops(counted, kept)}),
        unowned_runs=sum(1 for r, there in zip(counted, told, strict=True) if there and not r.owner),
        flops_of_owned=_flops_of_owned(columns),
        scheduling=_scheduling(total, undated, asked, span),
        first_ns=span[0],
        last_ns=span[1],
        marks=_marks([r for r, there in zip(counted, told, strict=True) if there]),
    )


def _sorted_out(
    runs: Sequence[FleetRun], asked: FleetAsked, again: Mapping[str, str]
) -> tuple[list[FleetRun], Counter[str]]:
    """Runs that may be counted, and why the others are not."""
    left_out, counted = Counter[str](), list[FleetRun]()
    for run in runs:
        if why := _why_not(run, asked) or ("told_again" if run.run_id in again else ""):
            left_out[why] += 1
        else:
            counted.append(run)
    return counted, left_out


def _why_not(run: FleetRun, asked: FleetAsked) -> str:
    if run.damaged:
        return "damaged"
    if run.kind == "compiled":
        return "compiled"
    if run.simulated != asked.simulated:
        return "simulated" if run.simulated else "measured"
    if run.pending:
        return "pending"
    if run.spent is None or run.spent.chip_s <= 0:
        return "no_ledger"
    if not run.spent.chips_known:
        return "chips_unknown"
    timed = asked.since_ns is not None or asked.until_ns is not None
    return "undated" if timed and not run.spent.held else ""


def _cut(laid: Laid, window: list[int]) -> Laid:
    return Laid(laid.lots, laid.lot_of, cut(laid.pieces, window))


def _window(asked: FleetAsked, laid: Laid) -> list[int]:
    first = int(laid.pieces.start.min()) if len(laid.pieces.start) else 0
    last = int(laid.pieces.end.max()) if len(laid.pieces.end) else 1
    since = first if asked.since_ns is None else asked.since_ns
    return [since, max(last if asked.until_ns is None else asked.until_ns, since + 1)]


def _columns(counted: Sequence[FleetRun], laid: Laid, asked: FleetAsked) -> Columns:
    """Every entry of every run, with the part of it that is counted. `flags["lot"]` is by entry: where it lies."""
    part = np.append(np.bincount(laid.pieces.lot, laid.pieces.share, len(laid.lots)), 1.0)  # the last: undated
    paths: dict[str, int] = {}
    run, path, amount, lot = list[int](), list[int](), list[float](), list[int]()
    for n, told in enumerate(counted):
        assert told.spent is not None
        for entry in told.spent.entries:
            run.append(n)
            path.append(paths.setdefault(entry.path, len(paths)))
            amount.append(entry.chip_s)
            lot.append(laid.lot_of[n, heading_in(told.spent, entry.path)] if told.spent.held else -1)
    lots, whole = np.array(lot, dtype=np.int64), np.array(amount, dtype=float)
    heads = np.array([p.partition("/")[0] in ("productive", "served") for p in paths], dtype=bool)
    runs_, paths_ = np.array(run, dtype=np.int64), np.array(path, dtype=np.int64)
    in_steps = whole * heads[paths_] if len(paths_) else whole
    return Columns(
        runs=counted,
        paths=tuple(paths),
        run=runs_,
        path=paths_,
        chip_s=whole * part[lots] if len(lots) else whole,
        whole_kept=np.bincount(runs_, in_steps, len(counted)) if len(counted) else np.zeros(0),
        flags=flags_of(counted),
        lot=lots,
        whole=whole,
    )


def _account_for_the_rest(
    counted: Sequence[FleetRun], kept: np.ndarray, taken: Mapping[str, Any], asked: FleetAsked, left_out: Counter[str]
) -> None:
    """Why runs of which nothing is counted are not: another tells of their time, or it is not the time asked for."""
    for run, chip_s in zip(counted, kept, strict=True):
        if chip_s <= 0:
            left_out["told_elsewhere" if run.run_id in taken and _within(run, asked) else "outside"] += 1


def _within(run: FleetRun, asked: FleetAsked) -> bool:
    held = run.spent.held if run.spent else ()
    return any(
        (asked.until_ns is None or a < asked.until_ns) and (asked.since_ns is None or b > asked.since_ns)
        for a, b in held
    )


def _groups(columns: Columns, by: str) -> tuple[tuple[str, Sum], ...]:
    """The largest first."""
    keys: dict[str, int] = {}
    of_run = np.array([keys.setdefault(key_of(r, by), len(keys)) for r in columns.runs], dtype=np.int64)
    told = sums(columns, of_run[columns.run], len(keys)) if len(columns.run) else []
    found = [(key, part) for key, part in zip(keys, told, strict=False) if part.chip_s > 0]
    return tuple(sorted(found, key=lambda pair: (-pair[1].chip_s, pair[0])))


def _trend(columns: Columns, laid: Laid, asked: FleetAsked) -> tuple[tuple[tuple[Period, Sum], ...], Sum | None]:
    """Sums by period, and of what has no time of day."""
    undated = columns.lot < 0
    without = sums(columns.of(undated), np.zeros(int(undated.sum()), dtype=np.int64), 1)[0] if undated.any() else None
    pieces = laid.pieces
    if not len(pieces.lot):
        return (), without
    told = periods(int(pieces.start.min()), int(pieces.end.max()) - 1, asked.every, asked.zone)
    bounds = edges(told)
    parts = cut(pieces, bounds)
    period = np.searchsorted(np.asarray(bounds), parts.start, side="right") - 1
    wide = len(told)
    at, cell = _cells(parts.lot * wide + period, parts.share)
    order = np.searchsorted(at // wide, np.arange(len(laid.lots) + 1))
    dated = np.flatnonzero(~undated)
    first, last = order[columns.lot[dated]], order[columns.lot[dated] + 1]
    entry = np.repeat(dated, last - first)
    nth = np.arange(len(entry)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    where = np.repeat(first, last - first) + nth
    spread = columns.of(entry, columns.whole[entry] * cell[where])
    return tuple(zip(told, sums(spread, at[where] % wide, wide), strict=True)), without


def _cells(key: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(keys, in order, the shares under each) where there are any: of all lots and periods few cells hold anything."""
    there, where = np.unique(key, return_inverse=True)
    summed = np.bincount(where, share, len(there))
    return there[summed != 0], summed[summed != 0]


def _runs(counted: Sequence[FleetRun], kept: np.ndarray, columns: Columns) -> tuple[Counted, ...]:
    """The largest first."""
    price = columns.flags["usd_per_chip_s"]
    found = [
        Counted(
            run=run,
            chip_s=float(kept[n]),
            whole_chip_s=run.spent.chip_s if run.spent else 0.0,
            usd=None if np.isnan(price[n]) else float(price[n] * kept[n]),
        )
        for n, run in enumerate(counted)
        if kept[n] > 0
    ]
    return tuple(sorted(found, key=lambda r: (-r.chip_s, r.run.run_id)))


def _taken_off(columns: Columns, whole: Laid, taken: Mapping[str, Any]) -> float:
    """Chip-seconds of runs that are counted in part, which another run of the job tells of. `whole`: all their time."""
    if not taken or not len(columns.run):
        return 0.0
    part = np.append(np.bincount(whole.pieces.lot, whole.pieces.share, len(whole.lots)), 1.0)
    counted = np.bincount(columns.run, columns.chip_s, len(columns.runs)) > 0
    partly = np.array([r.run_id in taken for r in columns.runs], dtype=bool) & counted
    lost = columns.whole * part[columns.lot] - columns.chip_s
    return float(lost[partly[columns.run]].sum())


def _evenly(columns: Columns) -> float:
    """Of the time that stands in periods, what no input tells the hours of."""
    even = [r.spent is not None and bool(r.spent.held) and r.spent.cells is None for r in columns.runs]
    return float(columns.chip_s[np.array(even, dtype=bool)[columns.run]].sum()) if len(columns.run) else 0.0


def _telling_flops(counted: Sequence[FleetRun], kept: np.ndarray) -> list[FleetRun]:
    """Those that name an owner and tell the FLOPs of their kept steps."""
    told = zip(counted, kept, strict=True)
    return [r for r, s in told if s > 0 and r.owner and r.spent is not None and r.spent.useful_flops is not None]


def _flops_of_owned(columns: Columns) -> float | None:
    owned = np.array([bool(r.owner) for r in columns.runs], dtype=bool)
    if not owned.any():
        return None
    mine = np.where(owned[columns.run], 0, -1)
    return sums(columns, mine, 1)[0].flops


def _scheduling(
    total: Sum, undated: Sum | None, asked: FleetAsked, span: tuple[int | None, int | None]
) -> float | None:
    """Chip time held over the chip time that the fleet had: capacity x time. Raises QuestionError where it is more."""
    if asked.capacity_chips is None or span[0] is None or span[1] is None:
        return None
    since = span[0] if asked.since_ns is None else asked.since_ns
    until = span[1] if asked.until_ns is None else asked.until_ns
    held, had = total.chip_s - (undated.chip_s if undated else 0.0), asked.capacity_chips * (until - since) / 1e9
    if held > had * (1 + 1e-6):
        raise QuestionError(
            f"the runs held more than {asked.capacity_chips:,} chips have in that time",
            expected=f"a capacity of {int(-(-held * 1e9 // (until - since))):,} chips or more",
            advice="Or narrow the search to the runs on these chips.",
        )
    return held / had if had > 0 else None


def _marks(counted: Sequence[FleetRun]) -> dict[str, int]:
    """What whoever reads the sums may want to know of the runs in them."""
    return {name: sum(getattr(r, name) for r in counted) for name in ("archived", "demo", "live")}

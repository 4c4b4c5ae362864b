"""Stragglers: which rank makes the others wait, why, for how long and at what cost, whatever the clocks say.

In synchronous training every rank has the same step time: the straggler is the one that waits least in collectives.
`blame.py` takes waits and lags from durations alone, `rules.py` and `verdict.py` decide, and
`rank_causes.py` splits what a rank does between collectives by its own clock. Offsets between clocks (`clocks.py`) are
shown and used for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.held import held
from analyzers.ranks.meetings import Meetings, meetings
from analyzers.ranks.stragglers.blame import Lateness, lateness
from analyzers.ranks.stragglers.clocks import clocks
from analyzers.ranks.stragglers.gain import Gain, gain
from analyzers.ranks.stragglers.rank_causes import CAUSES, UNKNOWN, excesses, peers_of, splits, traced
from analyzers.ranks.stragglers.steps import WINDOW
from analyzers.ranks.stragglers.verdict import Finding, Patterns, finding, intervals, patterns, unmatched
from analyzers.subject import devices_per_chip
from analyzers.time.step_changes import StepChanges, step_changes
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option("compare", str, None, "ranks whose time between collectives is split by cause as well, such as 3,17"),
)
VERDICTS = ("none", "persistent", "rotating", "one_step", "network", "imbalance", "unknown")
EXPLAINED = 0.2  # of its lag: what a rank did longer, at least, to be called the cause
SPLIT = 8  # ranks whose time is split by cause, besides those asked for
LISTED = 20
NAMED = [
    "rank",
    "host",
    "role",
    "blame_s",
    "share_of_steps",
    "cause",
    "confidence",
    "cause_share",
    "lag_s",
    "first_step",
    "last_step",
    "steps",
    "every",
    "charge_chip_s",
    "gain_chip_seconds",
    "gain_low_chip_seconds",
    "gain_high_chip_seconds",
]
EVERY = [
    "rank",
    "host",
    "device",
    "role",
    "blame_all_s",
    "blame_all_low_s",
    "blame_all_high_s",
    "share_of_steps",
    "lag_s",
    "offset_s",
    "drift",
]


@dataclass(frozen=True, kw_only=True)
class StragglersResult:
    """`verdict`: see VERDICTS. `why`: what of the pattern led to it, or what is missing, in a few words.

    `ranks`: those that the verdict names, most blamed first:
        blame_s         seconds of wall time that would be saved if only it were mended: in each collective second
                        smallest wait less the smallest (see `blame.py`), over the steps of its interval
        share_of_steps  in which it was late, of all steps that were compared
        cause           the largest excess over its peers (see `rank_causes.py`), or unknown; cause_share of all excess
        confidence      0 to 1: (1 - chance) x resolved x covered (`rules.py`); of rotating ranks the share of
                        steps in which one stood out, of one step 1 - 1 / (1 + z)
        lag_s           mean lateness against its peers in the `steps` it is named for, first_step to last_step
        every           it is late at every so many of them; 1: at all
        charge_chip_s   chip-seconds that others waited for it: blame_s x others
        gain_chip_seconds       what mending it would give back, with the steps that no profile covers (`gain.py`): of
                        the steps compared blame_s x (others + 1); gain_low_..., gain_high_...: its interval
    `every`: one row per rank with the same over all steps, blame (blame_all_s) with a 95 % interval by the scatter
        between steps, clock offset and drift (for display only).
    `steps`: one row per step compared: step, session, apart_s (waits of the first to arrive less those of the last),
        culprit (label of who stood out, or null), margin_s (what it cost each other rank), moved_s (mean time in
        collectives after the last had come), pace (that, times the run's own quiet pace).
    `lateness`: seconds by which each rank (rows, as `every`) was later than its peers in each step (columns, as
        `steps`); NaN where not compared. `causes`: rank, named, steps, and seconds of excess per step by cause.
    cost_chip_seconds   what others waited for those named, up to the margins; of a slow network what moved beyond the
                        quiet pace, of imbalance what all waited; None where not known
    gain                what mending those named would give back; None where nobody is, or it is not known
    resolution_s        of clock offsets (rho); blame_resolution_s: of waits in one step. None where not known
    `changes`: stretches of the step time by the job's own log; slowdown_chip_seconds: what its slow ones cost.
    """

    verdict: str
    why: str
    ranks: pd.DataFrame
    every: pd.DataFrame
    steps: pd.DataFrame
    lateness: pd.DataFrame
    causes: pd.DataFrame
    cost_chip_seconds: float | None
    gain: Gain | None
    step_s: float | None
    apart_s: float | None
    waiting_share: float | None
    resolution_s: float | None
    blame_resolution_s: float | None
    changes: StepChanges
    slowdown_chip_seconds: float | None
    notes: tuple[str, ...] = field(default=())

    @property
    def clock_offsets_s(self) -> dict[str, float]:
        known = self.every[self.every["offset_s"].notna()]
        return dict(zip(known["rank"], known["offset_s"].astype(float), strict=True))

    def to_dict(self) -> dict[str, Any]:
        worst = self.every[self.every["blame_all_s"] > 0].sort_values("blame_all_s", ascending=False, kind="stable")
        return {
            "verdict": self.verdict,
            "why": self.why,
            "ranks": _records(self.ranks),
            "cost_chip_seconds": self.cost_chip_seconds,
            "gain_chip_seconds": self.gain.to_dict() if self.gain else None,
            "clock_offsets_s": self.clock_offsets_s,
            "resolution_s": self.resolution_s,
            "blame_resolution_s": self.blame_resolution_s,
            "steps_used": len(self.steps),
            "steps_needed": WINDOW,
            "ranks_compared": int(self.every["lag_s"].notna().sum()),
            "step_s": self.step_s,
            "apart_s": self.apart_s,
            "waiting_share": self.waiting_share,
            "slowest_ranks": _records(worst.head(LISTED).drop(columns=["offset_s", "drift"])),
            "roles": _roles(self.every),
            "causes": _records(self.causes),
            "step_time": {
                "stretches": _records(self.changes.stretches),
                "slowdown_chip_seconds": self.slowdown_chip_seconds,
            },
            "notes": list(self.notes),
        }


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    rows = rows.assign(rank=[_rank(r) for r in rows["rank"]]) if "rank" in rows else rows
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def _rank(label: str) -> int | str:
    return int(label) if label.isdigit() else label


def _roles(every: pd.DataFrame) -> list[dict[str, Any]]:
    """Per role: its ranks, and which of them arrives last on average."""
    out = []
    for role, some in every[every["lag_s"].notna()].groupby("role", sort=True):
        worst = some.loc[some["lag_s"].idxmax()]
        out.append(
            {
                "role": role or None,
                "ranks": len(some),
                "latest_rank": _rank(worst["rank"]),
                "latest_lag_s": float(worst["lag_s"]),
            }
        )
    return out


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> StragglersResult:
    """The verdict. Raises QuestionError where no input tells of collectives or of steps."""
    changes, met = step_changes(tables, facts), meetings(tables)
    if not len(met.ranks) and not len(changes.rows):
        raise QuestionError(
            "nothing tells who waited for whom",
            advice="Add profiles of all ranks (*.xplane.pb, *.pt.trace.json) that were taken at the same time, over 20 "
            "steps or more.",
        )
    x = lateness(met, tables, facts)
    seen = patterns(x) if len(x.step) else None
    found = finding(tables, met, x, seen) if seen else _blind(met)
    every = _every(met, x, seen)
    asked = _asked(met, options.get("compare"))
    causes = _causes(tables, met, x, found, every, asked) if seen and traced(tables) else _no_causes()
    per_chip = devices_per_chip(facts)
    watched = clocks(met, x.column >= 0)
    apart = np.nanmax(x.wait_s, axis=0) - np.nanmin(x.wait_s, axis=0) if seen else np.zeros(0)
    whole = float(np.nanmean(x.wait_s)) if seen else None
    gains = {r: gain(x, r, w, changes.rows, found.every.get(r, 1), per_chip) for r, w in found.where.items()}
    return StragglersResult(
        verdict=found.verdict,
        why=found.why,
        ranks=_named(met, x, found, causes, gains, per_chip),
        every=every.assign(offset_s=watched.offset_s, drift=watched.drift)[EVERY],
        steps=_steps(met, x, seen, apart),
        lateness=pd.DataFrame(x.lag_s.astype(np.float32)),
        causes=causes,
        cost_chip_seconds=None if found.cost_s is None else found.cost_s / per_chip,
        gain=_joint_gain(x, found, gains, per_chip),
        step_s=x.step_s or None,
        apart_s=float(np.nanmedian(apart)) if seen else None,
        waiting_share=whole / x.step_s if whole is not None and x.step_s else None,
        resolution_s=watched.resolution_s,
        blame_resolution_s=x.resolution_s if seen else None,
        changes=changes,
        slowdown_chip_seconds=None if changes.excess_s is None else changes.excess_s * held(tables, facts).counted,
        notes=_notes(met, x, found, causes, changes),
    )


def _blind(met: Meetings) -> Finding:
    if not len(met.ranks):
        why = "step logs tell that a job is slow, not who makes it slow: profiles of all ranks are needed"
    else:
        why = unmatched(met)
    return Finding("unknown", why, cost_s=None)


def _every(met: Meetings, x: Lateness, seen: Patterns | None) -> pd.DataFrame:
    """All ranks with their blame and lag over all steps."""
    out = met.ranks[["host", "device", "role"]].assign(rank=met.ranks["label"].astype(str))
    if seen is None:
        return out.assign(**{n: np.nan for n in EVERY if n.startswith(("blame", "share", "lag"))})
    compared = (~np.isnan(x.lag_s)).sum(axis=1)
    blame = intervals(x.charge_s / np.maximum(x.others, 1)[:, None])
    some = np.maximum(compared, 1)
    lag = np.where(compared > 0, np.nansum(x.lag_s, axis=1) / some, np.nan)
    share = np.where(compared > 0, seen.hit.sum(axis=1) / some, np.nan)
    blame[compared == 0] = np.nan
    return out.assign(**blame, lag_s=lag, share_of_steps=share)


def _asked(met: Meetings, text: str | None) -> list[int]:
    """Positions of the ranks that the option names. Raises QuestionError for one that there is not."""
    labels = {label: i for i, label in enumerate(met.ranks["label"].astype(str))}
    out = []
    for name in (text or "").split(","):
        if name.strip() and name.strip() not in labels:
            known = list(labels)
            raise QuestionError(
                f"no rank {name.strip()!r} in this run",
                expected=f"one of {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}",
            )
        if name.strip():
            out.append(labels[name.strip()])
    return out


def _no_causes() -> pd.DataFrame:
    return pd.DataFrame({"rank": [], "named": [], "steps": [], **{c: [] for c in (*CAUSES, UNKNOWN)}})


def _causes(
    tables: Tables, met: Meetings, x: Lateness, found: Finding, every: pd.DataFrame, asked: Sequence[int]
) -> pd.DataFrame:
    """Excess by cause of the ranks named, of the most blamed besides, and of those asked for."""
    worst = every["blame_all_s"].fillna(-1).sort_values(ascending=False, kind="stable").index[:SPLIT]
    rest = [int(r) for r in worst][: max(SPLIT - len(found.where), 0)]
    ranks = list(dict.fromkeys([*list(found.where)[:SPLIT], *rest, *asked]))
    peers = {r: peers_of(x, r, set(found.where)) for r in ranks}
    amounts = splits(tables, met, x, sorted({*ranks, *(p for some in peers.values() for p in some)}))
    rows = []
    for r in ranks:
        if not peers[r]:
            continue
        where = found.where.get(r, np.ones(len(x.step), dtype=bool))
        with np.errstate(invalid="ignore"):
            late = where & (x.lag_s[r] > 0) if r in found.where else where
        excess = excesses(amounts, r, peers[r], late)
        rows.append(
            {
                "rank": met.ranks["label"].iloc[r],
                "named": r in found.where,
                "steps": int(late.sum()),
                **dict(zip((*CAUSES, UNKNOWN), excess.tolist(), strict=True)),
            }
        )
    return pd.DataFrame(rows) if rows else _no_causes()


def _joint_gain(x: Lateness, found: Finding, gains: dict[int, Gain], per_chip: int) -> Gain | None:
    """Of all ranks named together: a step that several make late is counted once."""
    if not gains or found.cost_s is None:
        return None
    ranks = np.array(list(gains))
    others = float(x.others[ranks].mean())
    beyond = found.cost_s / per_chip * (others + 1) / max(others, 1.0) - sum(g.low for g in gains.values())
    low, likely, high = (sum(getattr(g, n) for g in gains.values()) + beyond for n in ("low", "likely", "high"))
    return Gain(low, likely, high, max(g.steps for g in gains.values()))


def _named(
    met: Meetings, x: Lateness, found: Finding, causes: pd.DataFrame, gains: dict[int, Gain], per_chip: int
) -> pd.DataFrame:
    """The ranks of the verdict, most blamed first."""
    rows = []
    excess = causes.set_index("rank")
    for rank, where in found.where.items():
        label, columns = met.ranks["label"].iloc[rank], np.flatnonzero(where)
        charged = float(x.charge_s[rank, where].sum())
        lag = float(np.nanmean(x.lag_s[rank, where]))
        cause, share = _cause(excess.loc[label], lag) if label in excess.index else (UNKNOWN, None)
        compared = int((~np.isnan(x.lag_s[rank])).sum())
        with np.errstate(invalid="ignore"):
            late = int((where & (x.lag_s[rank] > 0)).sum())
        rows.append(
            {
                "rank": label,
                "host": met.ranks["host"].iloc[rank],
                "role": met.ranks["role"].iloc[rank] or None,
                "blame_s": charged / max(int(x.others[rank]), 1),
                "share_of_steps": late / compared,
                "cause": cause,
                "confidence": float(found.confidence[rank]),
                "cause_share": share,
                "lag_s": lag,
                "first_step": int(x.step[columns[0]]),
                "last_step": int(x.step[columns[-1]]),
                "steps": late,
                "every": found.every.get(rank, 1),
                "charge_chip_s": charged / per_chip,
                "gain_chip_seconds": gains[rank].likely,
                "gain_low_chip_seconds": gains[rank].low,
                "gain_high_chip_seconds": gains[rank].high,
            }
        )
    return pd.DataFrame(rows, columns=NAMED).sort_values("blame_s", ascending=False, kind="stable", ignore_index=True)


def _cause(excess: pd.Series, lag_s: float) -> tuple[str, float | None]:
    """The largest excess and its share of all that is positive. Unknown where all of it is little of the lag: a rank
    that comes late out of a slow link is late in the next collective, and did nothing longer itself."""
    beyond = excess[[*CAUSES, UNKNOWN]].astype(float).clip(lower=0)
    if not beyond.sum() or beyond.sum() < EXPLAINED * lag_s:
        return UNKNOWN, None
    return str(beyond.idxmax()), float(beyond.max() / beyond.sum())


def _steps(met: Meetings, x: Lateness, seen: Patterns | None, apart: np.ndarray) -> pd.DataFrame:
    names = ("step", "session", "apart_s", "culprit", "margin_s", "moved_s", "pace")
    if seen is None:
        return pd.DataFrame({n: [] for n in names})
    labels = met.ranks["label"].astype(str).to_numpy(dtype=object)
    culprit = np.where(seen.who.rank >= 0, labels[seen.who.rank], None)
    values = (x.step, x.session, apart, culprit, seen.who.margin_s, x.moved_s, seen.pace)
    return pd.DataFrame(dict(zip(names, values, strict=True)))


def _notes(met: Meetings, x: Lateness, found: Finding, causes: pd.DataFrame, changes: StepChanges) -> tuple[str, ...]:
    notes = list(found.others)
    nameless = int(met.nameless.sum())
    lone = int((~met.complete).sum()) - nameless
    unequal = int((met.complete & ~met.comparable & (met.step >= 0)).sum())
    if len(x.step):
        notes.append(
            f"{len(x.step):,} steps and {int((~np.isnan(x.lag_s)).any(axis=1).sum()):,} ranks were compared, by "
            "durations alone: clocks that differ change nothing. The first step of each capture is left out."
        )
        notes.append(
            f"Ranks leave the collectives of a step within {_time(x.resolution_s)} of each other, so a "
            f"lateness below {_time(3 * x.resolution_s)} says nothing."
        )
    if lone:
        notes.append(
            f"{lone:,} of {len(met.rank):,} rows of collectives were not found on every rank of their group: "
            "nothing is known of waiting in them."
        )
    if nameless:
        notes.append(
            f"{nameless:,} of {len(met.rank):,} rows of collectives are of groups of which it is not known "
            "which ranks they are: the trace does not say on which devices its program runs."
        )
    if unequal and len(x.step):
        notes.append(
            f"{unequal:,} rows are of collectives that do not make ranks wait for each other, or differ in "
            "kind or size between ranks; they are not compared."
        )
    if len(x.step) and x.how != "trace":
        by = {"marks": "by the hosts' own step marks", "repetition": "by the operation that repeats least often"}
        notes.append(f"The collectives name no step: steps are told {by[x.how]}.")
    if len(np.unique(x.peers)) > 1 and len(x.step):
        notes.append(f"Ranks are held against others of their role that they meet: {len(np.unique(x.peers))} sets.")
    if len(found.where) and not causes[list(CAUSES)].to_numpy().any():
        notes.append("No trace shows what these ranks did between collectives, so the cause is not known.")
    if not len(met.ranks) and len(changes.stretches) > 1:
        notes.append("Changes of the step time are taken from the job's own log.")
    return tuple(notes)


def _time(seconds: float) -> str:
    return f"{fmt.at_most(seconds * 1e3)} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.3g} µs"

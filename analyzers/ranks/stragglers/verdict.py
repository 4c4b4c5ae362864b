"""From patterns of lateness to one answer: persistent, network, imbalance, rotating, one step, none, or unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analyzers.ranks.meetings import Meetings
from analyzers.ranks.stragglers.blame import Lateness
from analyzers.ranks.stragglers.clear import Turn, few_steps, turns
from analyzers.ranks.stragglers.rules import (
    FEWEST,
    OFTEN,
    ROTATING_OFTEN,
    SAME_CAUSE,
    WIDE_SHARE,
    Culprits,
    Episode,
    culprits,
    episodes,
    late,
    one_steps,
    same_halves,
    slow_network,
)
from analyzers.ranks.stragglers.steps import WINDOW, watched_in_part
from runs.tables import Tables, frame

ONE_OF_FEW = 0.75  # of the steps in which one of so few ranks is late: no more, or it is not in turn
WORTH = 0.05  # of the time compared: a network that is slower than in its own quiet steps by less is not accused
MOST_NAMED = 64  # ranks of a verdict that is not about one of them


@dataclass(frozen=True)
class Finding:
    """`verdict` and `why`; `where`: for each rank named the columns it is named for, `confidence` likewise;
    `cost_s`: device-seconds, None where not known; `others`: sentences on what else was seen;
    `every`: ranks that are late at every so many steps only."""

    verdict: str
    why: str
    where: Mapping[int, np.ndarray] = field(default_factory=dict)
    confidence: Mapping[int, float] = field(default_factory=dict)
    cost_s: float | None = 0.0
    others: tuple[str, ...] = ()
    every: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Patterns:
    """What the rules find: see `rules`."""

    hit: np.ndarray
    who: Culprits
    found: list[Episode]
    turns: list[Turn]
    beyond_s: np.ndarray
    pace: np.ndarray


def patterns(x: Lateness) -> Patterns:
    """All patterns of a run with at least one step."""
    hit = late(x)
    return Patterns(hit, culprits(x), episodes(x, hit), turns(x), *slow_network(x))


def finding(tables: Tables, met: Meetings, x: Lateness, seen: Patterns) -> Finding:
    """The answer. The first that holds: too few steps, a persistent rank, uneven work, ranks late in turn, a slow
    network, single steps, none. A slow network that costs more than the ranks before it comes first; one that costs
    less than 5 % of the time compared is none. Where ranks have no profile, moving data cannot be told from
    waiting for them, and nobody can be cleared."""
    steps, ranks = len(x.step), len(met.ranks)
    if steps < WINDOW:
        if (one := few_steps(x)) is not None:
            return _few(x, *one)
        said = f"only {steps} {'step was' if steps == 1 else 'steps were'} captured; {WINDOW} are needed"
        return Finding("unknown", said, cost_s=None)
    if not (~np.isnan(x.lag_s)).any():
        lone = (met.synchronising & ~met.complete & ~met.alone & ~met.nameless).any()
        said = "those with a profile take part in different collectives, as other ranks have none"
        said = said if lone else "no two ranks of one role meet in the same collectives"
        return Finding("unknown", said, cost_s=None)
    unwatched = watched_in_part(met).any()
    network = 0.0 if unwatched else float(seen.beyond_s.sum()) * ranks
    network = network if network >= WORTH * steps * x.step_s * ranks else 0.0
    found = _persistent(met, x, seen) or _uneven(tables, met, x, seen)
    if network and (not found or network > (found.cost_s or 0)):
        return _network(x, seen, network, found)
    if found:
        said = (f"All collectives were slow in {int((seen.beyond_s > 0).sum())} steps as well.",) if network else ()
        return replace(found, others=said)
    found = _single(met, x, seen)
    if not found and unwatched:
        said = "none of the ranks that have a profile is late, and waiting for those that have none is not known"
        return Finding("unknown", said, cost_s=None)
    return found or _nobody(met, x, seen)


def _persistent(met: Meetings, x: Lateness, seen: Patterns) -> Finding | None:
    turns = {t.rank: t for t in seen.turns}
    always = [e for e in seen.found if e.rank not in turns]
    if not always and not turns:
        return None
    where: dict[int, np.ndarray] = {}
    for e in always:
        columns = where.setdefault(e.rank, np.zeros(len(x.step), dtype=bool))
        columns[e.first : e.last + 1] = True
    confidence = {r: max(e.confidence for e in always if e.rank == r) for r in where}
    n = len(where)
    why = [f"{n} {'rank is' if n == 1 else 'ranks are'} late in at least 60 % of {WINDOW} steps or more"] if n else []
    labels = met.ranks["label"]
    why += [f"rank {labels.iloc[t.rank]} is late in 1 of {t.period} steps, and not between" for t in turns.values()]
    where |= {t.rank: t.where for t in turns.values()}
    confidence |= {t.rank: 1 - t.chance for t in turns.values()}
    every = {t.rank: t.period for t in turns.values()}
    return Finding("persistent", "; ".join(why), where, confidence, _joint_cost(x, where), every=every)


def _few(x: Lateness, rank: int, chance: float) -> Finding:
    steps = len(x.step)
    where = {rank: np.ones(steps, dtype=bool)}
    why = f"1 rank is last in each of the {steps} steps captured, far beyond what the others' arrivals scatter"
    return Finding("persistent", why, where, {rank: 1 - chance}, _joint_cost(x, where))


def _joint_cost(x: Lateness, where: Mapping[int, np.ndarray]) -> float:
    """Device-seconds that others waited for these ranks: step by step what is charged to them, or what would be saved
    were they all mended, whichever is more."""
    out = 0.0
    mask = np.zeros(x.lag_s.shape, dtype=bool)
    for rank, columns in where.items():
        mask[rank] = columns
    for peers in np.unique(x.peers[list(where)]):
        mine = x.peers == peers
        named, wait = mask[mine], x.wait_s[mine]
        columns = np.flatnonzero(named.any(axis=0))
        named, wait = named[:, columns], wait[:, columns]
        charged = np.where(named, x.charge_s[mine][:, columns], 0).sum(axis=0)
        rest = np.where(named | np.isnan(wait), np.inf, wait)
        least = np.where(named & ~np.isnan(wait), wait, np.inf).min(axis=0)
        margin = rest.min(axis=0) - least
        margin = np.where(np.isfinite(margin), np.maximum(margin, 0), 0)
        joint = np.minimum(np.where(np.isinf(rest), 0, rest), margin).sum(axis=0)
        out += float(np.where(named.sum(axis=0) > 1, np.maximum(charged, joint), charged).sum())
    return out


def _network(x: Lateness, seen: Patterns, cost_s: float, beside: Finding | None) -> Finding:
    slow = seen.beyond_s > 0
    why = (
        f"moving data took {np.median(seen.pace[slow]):.1f} times as long as in the run's quietest steps, on all "
        f"ranks, in {int(slow.sum())} of {len(slow)} steps"
    )
    said = (f"Besides, {beside.why}.",) if beside else ()
    return Finding("network", why, cost_s=cost_s, others=said)


def _uneven(tables: Tables, met: Meetings, x: Lateness, seen: Patterns) -> Finding | None:
    """Imbalance or rotation: many ranks are late in turn."""
    named = seen.who.rank[seen.who.rank >= 0]
    often, wide = len(named) / len(x.step), float(np.median(x.spread_s)) > WIDE_SHARE * x.step_s
    ranks, times = np.unique(named, return_counts=True)
    least = OFTEN if len(met.ranks) <= FEWEST else ROTATING_OFTEN
    one = len(ranks) > 0 and times.max() > len(named) * (ONE_OF_FEW if len(met.ranks) <= FEWEST else 0.5)
    if not wide and (often < least or one):
        return None
    halves, data = same_halves(x), data_correlation(tables, met, x)
    waited = float(np.nansum(x.wait_s))
    if wide or not one:
        for value, words in (
            (data, "lateness follows the tokens of a rank's batch"),
            (halves, "a rank that is late in one half of a step is late in the other"),
        ):
            if value is not None and value >= SAME_CAUSE:
                why = f"{words} (correlation {value:.2f}), and the last rank changes"
                return Finding("imbalance", why, cost_s=waited)
    if often >= least and not one:
        where = {int(r): seen.who.rank == r for r in ranks[np.argsort(-times, kind="stable")][:MOST_NAMED]}
        cost = float(x.charge_s[named, np.flatnonzero(seen.who.rank >= 0)].sum())
        why = f"one rank stands out in {len(named)} of {len(x.step)} steps, {len(ranks)} different ones in turn"
        return Finding("rotating", why, where, {r: often for r in where}, cost)
    return None  # ranks apart in turn, and nothing tells whether by their work or by busy hosts


def data_correlation(tables: Tables, met: Meetings, x: Lateness) -> float | None:
    """Correlation of lag with the tokens that a rank's host processed in the step, each host's mean taken out; None
    where the inputs do not say how many they were, or they do not differ."""
    rows = frame(tables, "steps", ["host", "step", "dur_ns", "tokens_per_s_per_chip"]).dropna()
    if not len(rows):
        return None
    tokens = (
        (rows["tokens_per_s_per_chip"] * rows["dur_ns"])
        .astype(float)
        .groupby([rows["host"].astype(str), rows["step"].astype("int64")])
        .mean()
        .unstack()
    )
    grid = tokens.reindex(index=met.ranks["host"], columns=x.step).to_numpy(dtype=float)
    grid, lag = (v - np.nanmean(np.where(np.isnan(grid) | np.isnan(x.lag_s), np.nan, v)) for v in (grid, x.lag_s))
    there = ~(np.isnan(grid) | np.isnan(lag))
    if there.sum() < WINDOW or not np.ptp(grid[there]) or not np.ptp(lag[there]):
        return None
    return float(np.corrcoef(grid[there], lag[there])[0, 1])


def _single(met: Meetings, x: Lateness, seen: Patterns) -> Finding | None:
    columns = one_steps(x, seen.who)
    if not len(columns):
        return None
    where: dict[int, np.ndarray] = {}
    for c in columns:
        where.setdefault(int(seen.who.rank[c]), np.zeros(len(x.step), dtype=bool))[c] = True
    step = ", ".join(str(int(s)) for s in x.step[columns[:5]]) + (", ..." if len(columns) > 5 else "")
    why = f"single delays in steps {step}" if len(columns) > 1 else f"a large delay in step {step} alone"
    cost = float(x.charge_s[seen.who.rank[columns], columns].sum())
    confidence = {r: 1 - 1 / (1 + float(seen.who.z[w].max())) for r, w in where.items()}
    return Finding("one_step", why, where, confidence, cost)


def _nobody(met: Meetings, x: Lateness, seen: Patterns) -> Finding:
    named = seen.who.rank[seen.who.rank >= 0]
    others: tuple[str, ...] = ()
    if len(named):
        ranks, times = np.unique(named, return_counts=True)
        label = met.ranks["label"].iloc[int(ranks[times.argmax()])]
        others = (
            f"One rank stood out in {len(named)} of {len(x.step)} steps, rank {label} most often ({times.max()} "
            "times): not often enough to be a pattern.",
        )
    return Finding("none", "no rank is late often, and no step stands out", others=others)


def unmatched(met: Meetings) -> str:
    """Why nothing could be compared."""
    if len(met.ranks) < 2:
        return "collectives of one rank only were captured; its peers' profiles are needed"
    if not met.complete.any() and met.nameless.any():
        return "which ranks meet in which collective is not known: the trace does not say where its program runs"
    if not met.complete.any():
        return "no collective was captured on all ranks of its group; profiles of all ranks at the same time are needed"
    if not met.comparable.any():
        return "the ranks' sequences of collectives differ, or none of them makes ranks wait for each other"
    return "only the first step of each capture holds collectives of all ranks, and that one may be cut off"


def intervals(values: np.ndarray) -> pd.DataFrame:
    """Per row: the sum over columns, and its 95 % interval by the scatter between steps."""
    steps = values.shape[1]
    total = values.sum(axis=1)
    half = 1.96 * values.std(axis=1, ddof=1) * np.sqrt(steps) if steps > 1 else np.zeros(len(values))
    return pd.DataFrame(
        {"blame_all_s": total, "blame_all_low_s": np.maximum(total - half, 0), "blame_all_high_s": total + half}
    )

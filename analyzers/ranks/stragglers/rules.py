"""When lateness is a straggler: who stays late, and what else the pattern may be.

A rank enters as a straggler over 20 steps where it is late in at least 60 % of them, its mean lag has a robust z above
3.5 among its peers, and it stays one while that z is at least 2. In a step a rank is late by more than 2.5 % of the
step (and by three times what durations are good to):

    z = lag / (1.4826 MAD of the peers' lags + 1 % of the step)      one step
    z = the same of 20-step means, with 0.5 % of the step            20 steps

With fewer than 5 ranks a MAD says little: there late is 5 % of the step, and so must the mean lag be.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from analyzers.ranks.stragglers.blame import FEW_RANKS, Lateness, median
from analyzers.ranks.stragglers.clear import clear
from analyzers.ranks.stragglers.steps import WINDOW

OFTEN = 0.6  # of them
ENTER_Z, LEAVE_Z = 3.5, 2.0
LATE_SHARE, LATE_SHARE_FEW = 0.025, 0.05  # of the step
FLOOR_STEP, FLOOR_WINDOW = 0.01, 0.005  # of the step: spread that is always allowed for
MARGIN_SHARE = 0.02  # of the step: what a step's last rank must cost the others to be named for that step
FEWEST, FEWEST_SHARE = 3, 0.2
"""Ranks up to which the others' lags are mostly the late one's own, so that they tell no scatter; and the share of the
step that it must cost each of them there."""
SURE = 0.999  # of a stretch of one of so few ranks: that it is no run of luck in taking turns
ROTATING_OFTEN = 0.4  # of the steps have somebody to name
ALONE = 0.5  # of its lag: what a step's last rank costs where it stands apart from all others, not at the end of a tail
ONE_STEP_SHARE, ONE_STEP_TIMES, ONE_STEP_MOST = 0.25, 4.0, 3
WIDE_SHARE = 0.05  # of the step: ranks spread so far apart that the work itself is uneven
SAME_CAUSE = 0.8  # correlation of a rank's lag in the first and second half of its steps
GROWN, GROWN_SHARE = 1.5, 0.03  # times the quiet pace, and share of the step


@dataclass(frozen=True)
class Episode:
    """A rank late from column `first` to `last`, in `hits` of those, by `lag_s` on average; `z`: the highest of 20
    steps (None: too few peers); `confidence`: 0 to 1."""

    rank: int
    first: int
    last: int
    hits: int
    lag_s: float
    z: float | None
    confidence: float


@dataclass(frozen=True)
class Culprits:
    """Per column: the rank that stood out (-1: none), by how much (z), and what it cost each other rank (s)."""

    rank: np.ndarray
    z: np.ndarray
    margin_s: np.ndarray


def late(x: Lateness) -> np.ndarray:
    """Which rank was late in which step."""
    sizes = np.bincount(x.peers)[x.peers]
    share = np.where(sizes < FEW_RANKS, LATE_SHARE_FEW, LATE_SHARE)
    limit = np.maximum(share * x.step_s, 3 * x.resolution_s)
    with np.errstate(invalid="ignore"):
        return x.lag_s > limit[:, None]


def windows(values: np.ndarray, width: int = WINDOW) -> np.ndarray:
    """Sums over `width` columns, one for each place where so many begin."""
    total = np.cumsum(values, axis=-1, dtype=float)
    total[..., width:] = total[..., width:] - total[..., :-width]
    return total[..., width - 1 :]


def episodes(x: Lateness, hit: np.ndarray) -> list[Episode]:
    """Every stretch in which a rank is a persistent straggler, in order of rank."""
    found: list[Episode] = []
    if hit.shape[1] < WINDOW:
        return found
    often = windows(hit) >= OFTEN * WINDOW
    for peers in np.unique(x.peers[often.any(axis=1)]):
        mine = np.flatnonzero(x.peers == peers)
        few = len(mine) < FEW_RANKS
        some = x.lag_s if len(mine) == len(x.lag_s) else x.lag_s[mine]
        there = ~np.isnan(some)
        lag = windows(np.where(there, some, 0)) / np.maximum(windows(there), 1)
        middle = median(lag)
        score = (lag - middle) / (1.4826 * median(np.abs(lag - middle)) + FLOOR_WINDOW * x.step_s)
        enter, stay = (score > ENTER_Z) & (lag > LATE_SHARE * x.step_s), score >= LEAVE_Z
        if few:
            enter, stay = lag > LATE_SHARE_FEW * x.step_s, lag > LATE_SHARE_FEW / 2 * x.step_s
        for at in np.flatnonzero((enter & often[mine]).any(axis=1)):
            begun = enter[at] & often[mine[at]]
            for begin, end in _runs(stay[at] | begun):
                if begun[begin:end].any():
                    z = None if few else float(score[at, begin:end].max())
                    one = _episode(x, hit, int(mine[at]), begin, end + WINDOW - 1, z)
                    inside = np.zeros(hit.shape[1], dtype=bool)
                    inside[one.first : one.last + 1] = True
                    lucky = len(mine) <= FEWEST and _chance(x, hit, one.rank, inside, one.hits) > 1 - SURE
                    if not lucky and clear(x, one.rank, inside, one.hits):
                        found.append(one)
    return sorted(found, key=lambda e: (e.rank, e.first))


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Stretches of True as [begin, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _episode(x: Lateness, hit: np.ndarray, rank: int, begin: int, end: int, z: float | None) -> Episode:
    """The part of [begin, end) in which the rank is late often enough: where the sum of (late - 60 %) is greatest."""
    score = np.cumsum(np.concatenate(([0.0], hit[rank, begin:end] - OFTEN)))
    lowest = np.minimum.accumulate(score)
    stop = int((score - lowest).argmax())
    start = int(np.flatnonzero(score[: stop + 1] == lowest[stop])[-1])
    first, last = begin + start, begin + stop - 1
    inside = slice(first, last + 1)
    lag = float(np.nanmean(x.lag_s[rank, inside]))
    hits = int(hit[rank, inside].sum())
    return Episode(rank, first, last, hits, lag, z, _confidence(x, hit, rank, inside, hits, lag))


def _confidence(x: Lateness, hit: np.ndarray, rank: int, inside: slice, hits: int, lag_s: float) -> float:
    """(1 - chance) x resolved x covered.

    resolved: lag over three times what durations are good to, at most 1. covered: share of its steps compared.
    """
    resolved = min(1.0, lag_s / (3 * x.resolution_s)) if x.resolution_s else 1.0
    covered = float((~np.isnan(x.lag_s[rank, inside])).mean())
    return (1 - _chance(x, hit, rank, inside, hits)) * resolved * covered


def _chance(x: Lateness, hit: np.ndarray, rank: int, inside: slice | np.ndarray, hits: int) -> float:
    """Of as many late steps if this rank were late as often as the others are (of few ranks: as each would be if they
    took turns), for any rank and any 20 steps."""
    compared = ~np.isnan(x.lag_s)
    peers = x.peers == x.peers[rank]
    turn = float(hit[peers].any(axis=0).mean()) / int(peers.sum()) if peers.sum() <= FEWEST else 0.0
    others = peers.copy()
    others[rank] = False
    rate = max((int(hit[others].sum()) + 1) / (int(compared[others].sum()) + 2), turn)
    steps = int(compared[rank, inside].sum())
    tries = len(x.peers) * max(hit.shape[1] - WINDOW + 1, 1)
    return min(1.0, (float(bdtrc(hits - 1, steps, rate)) if hits else 1.0) * tries)


def culprits(x: Lateness) -> Culprits:
    """Who stood out in each step on its own: z above 3.5, late, and costing each other rank 2 % of a step and half of
    its lag (the next one is far behind it)."""
    steps = len(x.step)
    rank, best = np.full(steps, -1, dtype=np.int64), np.full(steps, -np.inf)
    z, margin = np.zeros(steps), np.zeros(steps)
    for peers in np.unique(x.peers):
        mine = np.flatnonzero(x.peers == peers)
        some = x.lag_s if len(mine) == len(x.lag_s) else x.lag_s[mine]
        lag = np.where(np.isnan(some), -np.inf, some)
        top = lag.argmax(axis=0)
        most = lag[top, np.arange(steps)]
        here = median(np.abs(some))
        usual = np.nanmedian(here) if not np.isnan(here).all() else 0.0
        scatter = np.fmax(here, usual) if len(mine) > FEWEST else 0.0
        score = most / (1.4826 * scatter + FLOOR_STEP * x.step_s)
        cost = x.charge_s[mine[top], np.arange(steps)] / max(int(x.others[mine[0]]), 1)
        share = LATE_SHARE_FEW if len(mine) < FEW_RANKS else LATE_SHARE
        beside = len(mine) < FEW_RANKS and (cost > FEWEST_SHARE * x.step_s)  # whatever scatter so few tell
        clear = ((score > ENTER_Z) | beside) & (most > share * x.step_s)
        clear &= cost > np.maximum((MARGIN_SHARE if len(mine) > FEWEST else FEWEST_SHARE) * x.step_s, ALONE * most)
        clear &= most > np.maximum(best, 3 * x.resolution_s)
        rank[clear], best[clear], z[clear], margin[clear] = mine[top[clear]], most[clear], score[clear], cost[clear]
    return Culprits(rank, z, margin)


def one_steps(x: Lateness, who: Culprits) -> np.ndarray:
    """Columns of up to three delays of a quarter of a step or more, each over four times the largest of all other
    steps: out of all proportion, not the end of a tail that the run has anyway."""
    cost = np.where(who.rank >= 0, who.margin_s, 0.0)
    order = np.argsort(-cost, kind="stable")
    floor = MARGIN_SHARE * x.step_s
    for n in range(min(ONE_STEP_MOST, len(cost) - 1), 0, -1):
        least, next_one = cost[order[n - 1]], max(cost[order[n]], floor)
        if least > ONE_STEP_SHARE * x.step_s and least > ONE_STEP_TIMES * next_one:
            return np.sort(order[:n])
    return np.zeros(0, dtype=np.int64)


def same_halves(x: Lateness) -> float | None:
    """Correlation of a rank's lag in the first with that in the second half of the same step, each rank's own mean
    taken out: a long batch makes both late, a pause only one. None where steps have one meeting."""
    if x.halves is None:
        return None
    a, b = (h - np.nanmean(h, axis=1, keepdims=True) for h in _some_rank_seen(x.halves))
    there = ~(np.isnan(a) | np.isnan(b))
    if there.sum() < WINDOW or not a[there].any() or not b[there].any():
        return None
    return float(np.corrcoef(a[there], b[there])[0, 1])


def _some_rank_seen(halves: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    seen = ~np.isnan(halves[0]).all(axis=1)
    return halves[0][seen], halves[1][seen]


def slow_network(x: Lateness) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of moving data beyond the run's own quiet pace in each step, where meetings of all ranks stay slow for
    20 steps (0 elsewhere), and the pace itself: times that of the quietest stretch of a fifth of the steps, 10 or more.

    Single quick steps are no reference: the quickest fifth of any steps is quick. And the slow steps must be slow
    against the scatter of the quiet ones, whose slowest tenth takes less than the quickest tenth of the slow."""
    pace = np.divide(x.moved_s, x.usual_s, out=np.ones_like(x.moved_s), where=x.usual_s > 0)
    if len(pace) < WINDOW:
        return np.zeros(len(pace)), pace
    width = max(WINDOW // 2, len(pace) // 5)
    each = np.lib.stride_tricks.sliding_window_view(pace, width)
    at = int(np.median(each, axis=1).argmin())
    quiet = float(np.median(each[at]))
    usual = float(np.quantile(each[at], 0.9)) / quiet
    pace = pace / quiet
    beyond = x.moved_s - x.usual_s * quiet
    grown = (pace > GROWN) & (beyond > GROWN_SHARE * x.step_s)
    inside = np.zeros(len(pace), dtype=bool)
    for begin in np.flatnonzero(windows(grown) >= OFTEN * WINDOW):
        inside[begin : begin + WINDOW] = True
    for begin, end in _runs(inside):
        slow = begin + np.flatnonzero(grown[begin:end])
        if float(np.quantile(pace[slow[0] : slow[-1] + 1], 0.1)) <= usual:
            inside[begin:end] = False
    return np.where(inside & grown, beyond, 0.0), pace

"""Whether a rank's lateness is clear: against its own scatter and its peers, at every n-th step, over few steps.

Of any 20 steps some rank is late in more than others by chance. The lag of the steps that it is named for must be more
than their scatter explains: median above 4 standard errors (1.2533 x 1.4826 MAD / sqrt n, with n (1 - r) / (1 + r) for
n where neighbouring steps are alike, r their correlation: a busy neighbour slows a host for some steps at a time).
Under five ranks the median of the others may be one of two: there it must also be half its lag behind the next to
arrive, or who is late and who is early cannot be told, and above what a rank's lag scatters from step to step, unless
it is last in nine of ten steps.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from analyzers.ranks.stragglers.blame import FEW_RANKS, Lateness, median

ERRORS = 4.0  # standard errors of the median
LEAST_HITS = 10  # late steps of a persistent rank
APART = 0.5  # of the lag: how far the next to arrive must be ahead
SHARE, SHARE_FEW = 0.025, 0.05  # of the step
SELDOM = 0.1  # of the steps: in so few a rank that is always last may be none
PERIODS = range(2, 11)
LEAST_TURNS = 4  # steps of a class
IN_CLASS, OUT_OF_CLASS = 0.8, 0.1  # late steps among those of the class, and among all others
BY_CHANCE = 1e-3  # over all ranks and classes tried
FEW_CHANCE = 0.02
FEW_TIMES = 3.5  # standard deviations of the others' lags by which each of few steps must be late


@dataclass(frozen=True)
class Turn:
    """A rank late at every `period`-th step: the columns, and how likely that is by chance, over all tried."""

    rank: int
    period: int
    where: np.ndarray
    chance: float


def clear(x: Lateness, rank: int, where: np.ndarray, hits: int) -> bool:
    """Whether the lag of these columns is beyond scatter, and the rank is apart from its peers."""
    return hits >= LEAST_HITS and _beyond(x, rank, where)


def _beyond(x: Lateness, rank: int, where: np.ndarray) -> bool:
    lag = x.lag_s[rank, where]
    lag = lag[~np.isnan(lag)]
    if not len(lag):
        return False
    middle = float(np.median(lag))
    spread = max(1.4826 * float(np.median(np.abs(lag - middle))), x.resolution_s)
    if middle <= ERRORS * 1.2533 * spread / np.sqrt(_independent(lag - middle, spread)):
        return False
    few = int((x.peers == x.peers[rank]).sum()) < FEW_RANKS
    if middle <= (SHARE_FEW if few else SHARE) * x.step_s:
        return False
    return not few or (_told_from_scatter(x, rank, lag) and behind(x, rank, where) >= APART * middle)


def _told_from_scatter(x: Lateness, rank: int, lag: np.ndarray) -> bool:
    """Whether a rank of few is late by more than lags scatter, or last in nearly every step, by however much more."""
    return float(np.median(lag)) > scatter(x, rank) or float(np.quantile(lag, SELDOM)) > SHARE * x.step_s


def _independent(off: np.ndarray, spread: float) -> float:
    """How many independent values these are worth: outliers cut at three standard deviations, then n (1 - r) / (1 + r)
    with r the correlation of neighbours, 0 to 0.9."""
    off = np.clip(off, -3 * spread, 3 * spread)
    square = float((off**2).sum())
    alike = float(np.clip((off[1:] * off[:-1]).sum() / square, 0, 0.9)) if square else 0.0
    return len(off) * (1 - alike) / (1 + alike)


def scatter(x: Lateness, rank: int) -> float:
    """1.4826 MAD of a rank's lag from step to step, the median over its peers; differences of neighbours, so that a
    rank late for long adds nothing."""
    some = x.lag_s[x.peers == x.peers[rank]]
    steps = np.abs(np.diff(some, axis=1))
    each = [float(np.median(s[~np.isnan(s)])) for s in steps if not np.isnan(s).all()]
    return 1.4826 / np.sqrt(2) * float(np.median(each)) if each else 0.0


def behind(x: Lateness, rank: int, where: np.ndarray) -> float:
    """Median over these columns of how much longer the next to arrive among its peers waited, those apart that are late
    as well."""
    peers = (x.peers == x.peers[rank]) & ~_as_late(x, rank, where)
    peers[rank] = False
    others = np.where(np.isnan(x.wait_s[peers]), np.inf, x.wait_s[peers])[:, where].min(axis=0, initial=np.inf)
    apart = others - x.wait_s[rank, where]
    known = np.isfinite(apart)
    return float(np.median(apart[known])) if known.any() else 0.0


def _as_late(x: Lateness, rank: int, where: np.ndarray) -> np.ndarray:
    """Peers about as late as this rank in these columns, step for step: two that are late for reasons of their own.
    None where they would be more than the others are, or where they take turns."""
    peers = x.peers == x.peers[rank]
    with np.errstate(invalid="ignore"):
        level = np.nanmedian(np.where(np.isnan(x.lag_s[:, where]), -np.inf, x.lag_s[:, where]), axis=1)
        apart = np.nanmedian(np.abs(x.lag_s[:, where] - x.lag_s[rank, where]), axis=1)
    late = peers & (level >= APART * level[rank]) & (apart < APART * level[rank])
    late[rank] = True
    none = np.zeros(len(peers), dtype=bool)
    return late if level[rank] > 0 and 2 <= late.sum() <= peers.sum() / 2 else none


def turns(x: Lateness) -> list[Turn]:
    """Ranks that are late at every n-th step and not between: for each the likeliest class. The chance is that of as
    many late steps in the class, were they as frequent there as elsewhere, times ranks and classes tried."""
    tries = len(x.lag_s) * sum(PERIODS)
    floor = max(SHARE_FEW * x.step_s, 3 * x.resolution_s)
    with np.errstate(invalid="ignore"):  # most ranks are late too seldom for any class
        often = ((x.lag_s > floor).sum(axis=1) >= LEAST_TURNS / 2) & ((x.lag_s > floor / 2).sum(axis=1) >= LEAST_TURNS)
    some = np.flatnonzero(often)
    best: dict[int, Turn] = {}
    for period in PERIODS:
        for residue in range(period):
            inside = x.step % period == residue
            if not LEAST_TURNS <= inside.sum() <= len(inside) - LEAST_TURNS:
                continue
            with np.errstate(invalid="ignore"):
                late = some[median(x.lag_s[some][:, inside].T) > floor]
            for rank in late.tolist():
                one = _turn(x, rank, inside, period, floor, tries)
                if one and (rank not in best or one.chance < best[rank].chance):
                    best[rank] = one
    return [best[rank] for rank in sorted(best)]


def _turn(x: Lateness, rank: int, turn: np.ndarray, period: int, floor: float, tries: int) -> Turn | None:
    lag = x.lag_s[rank]
    known = ~np.isnan(lag)
    inside = known & turn
    rest = known & ~inside
    if inside.sum() < LEAST_TURNS or rest.sum() < LEAST_TURNS:
        return None
    middle = float(np.median(lag[inside]))
    if middle <= floor:
        return None
    late = lag > middle / 2
    hits, other = int(late[inside].sum()), int(late[rest].sum())
    if hits < IN_CLASS * inside.sum() or other > OUT_OF_CLASS * rest.sum():
        return None
    rate = (other + 1) / (int(rest.sum()) + 2)
    chance = min(1.0, float(bdtrc(hits - 1, int(inside.sum()), rate)) * tries)
    if chance > BY_CHANCE or behind(x, rank, inside) < APART * middle:
        return None
    at = np.flatnonzero(inside & late)
    where = inside.copy()
    where[: at[0]] = False
    where[at[-1] + 1 :] = False
    return Turn(rank, period, where, chance)


def few_steps(x: Lateness) -> tuple[int, float] | None:
    """With fewer steps than the usual rule needs: the rank that is last in each of them, each time by 3.5 standard
    deviations of the others' lags, and the chance that one rank is last in all by luck alone (ranks ^ (1 - steps), at
    most 2 %). None where there is none."""
    if not len(x.step) or np.isnan(x.lag_s).all():
        return None
    top = np.where(np.isnan(x.lag_s), -np.inf, x.lag_s).argmax(axis=0)
    rank, steps = int(top[0]), len(x.step)
    peers = x.peers == x.peers[rank]
    chance = float(peers.sum()) ** (1 - steps)
    if (top != rank).any() or chance > FEW_CHANCE:
        return None
    peers[rank] = False
    others = np.abs(x.lag_s[peers])
    if peers.sum() == 1:  # its lag is the other's with its sign: of their scatter alone anything is known
        others = np.abs(x.lag_s[rank] - np.median(x.lag_s[rank]))[None]
    spread = 1.4826 * float(np.nanmedian(others)) + 0.01 * x.step_s
    least, where = float(x.lag_s[rank].min()), np.ones(steps, dtype=bool)
    if least <= max(FEW_TIMES * spread, SHARE_FEW * x.step_s, 3 * x.resolution_s):
        return None
    return (rank, chance) if behind(x, rank, where) >= APART * float(np.median(x.lag_s[rank])) else None

"""What first tokens wait for, as the times of requests alone tell it, whoever took them.

    ahead    requests that came before one and are not done when it arrives
    quiet    requests with nothing ahead; where hardly any has nothing, the tenth with the least ahead
    pass     time between two pieces of an answer ahead: what the engine's pass takes then
    beyond   what the first token of another takes without two passes, for which nobody queues: the one under way, and
             the one that reads beside others
    usual    mean of the quiet ones: it holds prompts of all lengths, as the others do

What others take beyond that and the usual they waited: for a seat, for memory, or for prompts before theirs. Whether
chance alone would put so much on them is told by ranks (Mann and Whitney): one pass that stood still accuses nobody.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

FEW = 5  # quiet requests, and others: of fewer nothing is judged
LEAST = 0.1  # of the requests: quiet ones, where hardly any has nothing ahead
JUDGED = 1000  # requests, taken evenly


@dataclass(frozen=True)
class Held:
    """`share`: what the `requests` that are held up wait beyond `usual_s`, by the time to first token of all that are
    compared; `chance`: how likely it is that they take so much longer than the others by chance; `free`: whether those
    others had nothing ahead, so that they tell what a request takes that waits for none."""

    share: float
    chance: float
    requests: int
    usual_s: float
    free: bool = True


def queue(rows: pd.DataFrame) -> Held | None:
    """What first tokens wait in a queue. None where that cannot be told: arrivals are not known, or too few requests
    are quiet, or too few others. Columns of `rows`, in order of arrival: arrival_ns, ttft_s, e2e_s, pass_s, replica."""
    if not len(rows) or rows[["arrival_ns", "pass_s"]].isna().any().any():
        return None
    parts = [_beside(mine) for _, mine in rows.groupby("replica", sort=False, dropna=False)]
    before, ttft, passes = (np.concatenate(p) for p in zip(*parts, strict=True))
    quiet = _quiet(before)
    if min(quiet.sum(), (~quiet).sum()) < FEW:
        return None
    usual, late = float(ttft[quiet].mean()), (ttft - passes)[~quiet]
    waited = max(float((late - usual).sum()), 0.0)
    free = bool((before[quiet] <= 0).all())
    return Held(waited / float(ttft.sum()), chance_of(late, ttft[quiet]), len(late), usual, free)


def held_up(rows: pd.DataFrame, long: np.ndarray) -> Held | None:
    """What the first tokens of other requests wait that come while one with a long prompt waits for its own. None where
    that cannot be told. `rows` as for `queue`."""
    if rows["arrival_ns"].isna().any():
        return None
    arrival, ttft = _times(rows)
    last = np.maximum.accumulate(np.where(long, arrival + ttft, -np.inf))
    until = np.concatenate(([-np.inf], last[:-1]))
    within = ~long & (until > arrival)
    others = ~long & ~within
    if min(within.sum(), others.sum()) < FEW:
        return None
    usual = float(ttft[others].mean())
    waited = np.minimum(ttft[within] - usual, until[within] - arrival[within])
    share = max(float(waited.sum()), 0.0) / float(ttft[~long].sum())
    return Held(share, chance_of(ttft[within], ttft[others]), int(within.sum()), usual)


def ahead(rows: pd.DataFrame) -> np.ndarray | None:
    """How many requests are ahead of each; None where arrivals are not known."""
    if rows["arrival_ns"].isna().any():
        return None
    arrival, _ = _times(rows)
    return _ahead(arrival, arrival + rows["e2e_s"].to_numpy(dtype=float))


def chance_of(late: np.ndarray, others: np.ndarray) -> float:
    """How likely chance alone would rank the one so high among the other, by the normal form of the sum of ranks.
    `scipy.stats` has it, and takes half a second to load."""
    both = np.concatenate([late, others])
    n, m, every = len(late), len(others), len(both)
    above = float(pd.Series(both).rank()[:n].sum()) - n * (n + 1) / 2 - n * m / 2
    ties = np.unique(both, return_counts=True)[1].astype(float)
    spread = math.sqrt(n * m / 12 * (every + 1 - float((ties**3 - ties).sum()) / (every * (every - 1))))
    return 0.5 * math.erfc((above - 0.5) / spread / math.sqrt(2)) if spread > 0 else 1.0


def _times(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(arrival, time to first token) in s, from the first arrival on."""
    since = (rows["arrival_ns"] - rows["arrival_ns"].min()) / 1e9
    return since.to_numpy(dtype=float), rows["ttft_s"].to_numpy(dtype=float)


def _ahead(arrival: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many requests are ahead of each."""
    return np.arange(len(arrival)) - np.searchsorted(np.sort(end), arrival, side="right")


def _quiet(before: np.ndarray) -> np.ndarray:
    free = before <= 0
    if free.sum() >= FEW:
        return free
    least = min(max(FEW, math.ceil(LEAST * len(before))), len(before))
    return before <= np.sort(before)[least - 1]


def _beside(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(how many are ahead, time to first token, time of two passes) of the judged requests of one replica."""
    arrival, ttft = _times(rows)
    end, each = arrival + rows["e2e_s"].to_numpy(dtype=float), rows["pass_s"].to_numpy(dtype=float)
    judged = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), JUDGED)).astype(np.int64))
    passes = np.fromiter(_passes(arrival, arrival + ttft, end, each, judged), dtype=float, count=len(judged))
    return _ahead(arrival, end)[judged], ttft[judged], passes


def _passes(
    arrival: np.ndarray, first: np.ndarray, end: np.ndarray, each: np.ndarray, judged: np.ndarray
) -> Iterator[float]:
    """Until one that is ahead was given two more pieces, or its last: what two passes take, s."""
    longest = float((end - arrival).max())
    for i in judged:
        begin = int(np.searchsorted(arrival, arrival[i] - longest))
        there = begin + np.flatnonzero(end[begin:i] > arrival[i])
        two = np.minimum(np.maximum(first[there] + each[there], arrival[i] + 2 * each[there]), end[there])
        yield float(two.min() - arrival[i]) if len(there) else 0.0

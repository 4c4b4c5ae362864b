"""The steady part of a load: after the ramp-up, before the drain, while the number of requests in flight is level.

The end is known: after the last arrival only a drain follows. The start is found by MSER (K. White, 1997): of all
numbers of first bins to leave out, at most half, the one that makes the mean of the rest most certain,
z(d) = sum of squares about the mean of bins d.. / (n - d)^2. It is asked of the requests in flight and of those that
generate (a closed loop is full at once, but its first prompts are still being read), the later of both, at several
widths of bin: their median is the start, their spread its uncertainty. The window counts as steady unless the means
of ten parts of it rise or fall (t-test at 1 %) by over a fifth of their mean.

Where requests in flight find no level (all arrive at once, or more than can be served) but the times of scheduling
are known, the requests running are looked at instead, up to the last that is scheduled: what a full server does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from analyzers.serving.load.pace import Pace, pace
from analyzers.serving.load.points import spans
from analyzers.serving.served import Served, summary

BINS = (100, 141, 200, 283, 400)  # widths in the ratio of a diagonal to its side: no common edges
PARTS = 10
T_95, T_99 = 2.262, 3.355  # two-sided quantiles of Student's t: 9 degrees of freedom for a mean, 8 for a slope
DRIFT = 0.2
LEVEL = 1e-6
FEWEST = 30  # requests; fewer tell nothing of a level
SHORTEST = 0.1  # of the load's duration


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A load along time, seconds since its first arrival.

    `requests`: start, first, end, tokens. `begun`: when each was counted as in flight. Tokens come in pieces (time,
    tokens) where gaps were recorded, else at the common `pace` of those that generate.
    """

    requests: pd.DataFrame
    begun: np.ndarray
    last_begin_s: float
    running: bool  # counted from scheduling
    piece_s: np.ndarray
    piece_tokens: np.ndarray  # summed up to each piece
    untimed: pd.DataFrame  # requests that made several tokens, of which only the first and the last are timed

    @property
    def exact(self) -> bool:
        """Whether each token's time was recorded."""
        return not len(self.untimed)

    @cached_property
    def pace(self) -> Pace | None:
        """The common pace of requests without recorded gaps; None where there are none."""
        if self.exact:
            return None
        return pace(*(self.untimed[c].to_numpy() for c in ("first", "end")), self.untimed["tokens"].to_numpy() - 1)

    def in_flight(self, at: np.ndarray) -> np.ndarray:
        """The integral of requests in flight from 0 to each time, request-seconds."""
        return _area(self.begun, at) - _area(self.requests["end"].to_numpy(), at)

    def generating(self, at: np.ndarray) -> np.ndarray:
        """The same of requests between their first token and their end."""
        return _area(self.requests["first"].to_numpy(), at) - _area(self.requests["end"].to_numpy(), at)

    def tokens(self, at: np.ndarray) -> np.ndarray:
        """Tokens generated up to each time."""
        done = np.searchsorted(self.piece_s, at, "right")
        stepped = np.concatenate(([0.0], self.piece_tokens))[done]
        return stepped if self.pace is None else stepped + self.pace.upto(at)

    def by_running(self, mine: Served) -> "Flow | None":
        """The same with each request counted from when it was scheduled; None where that is not known."""
        begun = self.begun + mine.rows["queue_s"].to_numpy(dtype=float)[self.requests["position"]]
        if np.isnan(begun).any():
            return None
        found = replace(self, begun=begun, last_begin_s=float(begun.max()), running=True)
        if "pace" in vars(self):
            vars(found)["pace"] = self.pace  # the same tokens: not found out twice
        return found

    def sampled(self, bins: int = 400) -> pd.DataFrame:
        """Means over equal bins: t_s (their middle), in_flight, generating, output_tokens_per_s."""
        edges = np.linspace(0, float(self.requests["end"].max()), bins + 1)
        width = np.diff(edges)
        return pd.DataFrame(
            {
                "t_s": edges[:-1] + width / 2,
                "in_flight": np.diff(self.in_flight(edges)) / width,
                "generating": np.diff(self.generating(edges)) / width,
                "output_tokens_per_s": np.diff(self.tokens(edges)) / width,
            }
        )


def _area(since: np.ndarray, at: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Sum over `since` before `at` of weight x (at - since)."""
    order = np.argsort(since, kind="stable")
    since = since[order]
    weight = np.ones(len(since)) if weight is None else weight[order]
    upto = np.searchsorted(since, at, "right")
    weights = np.concatenate(([0.0], np.cumsum(weight)))[upto]
    moments = np.concatenate(([0.0], np.cumsum(weight * since)))[upto]
    return at * weights - moments


def flow(mine: Served) -> Flow | None:
    """The load along time; None where arrivals or tokens are not known. An answer of which no first token was timed
    came in one piece, at its end: that is how tools that do not stream receive them."""
    requests = spans(mine)
    requests = requests[requests["tokens"].notna()]
    if not len(requests):
        return None
    requests = requests.assign(first=requests["first"].fillna(requests["end"]))
    begun = requests["start"].to_numpy()
    last = float((mine.rows["arrival_ns"].dropna().max() - mine.origin_ns) / 1e9)
    gaps, owner = mine.gaps
    place = np.full(len(mine.rows), -1)
    place[requests["position"]] = np.arange(len(requests))
    ours = place[owner] >= 0
    gaps, owner = gaps[ours], place[owner[ours]]
    first, tokens = requests["first"].to_numpy(), requests["tokens"].to_numpy()
    stepped = np.bincount(owner, minlength=len(requests)) > 0
    lasts = (requests["end"] > requests["first"]).to_numpy()
    at_once = np.where(stepped | lasts, np.minimum(tokens, 1), tokens)  # an answer in one piece comes with it
    times, weights = _pieces(first, tokens, at_once, gaps, owner)
    return Flow(
        requests=requests,
        begun=begun,
        last_begin_s=last,
        running=False,
        piece_s=times,
        piece_tokens=np.cumsum(weights),
        untimed=requests[~stepped & (tokens > 1) & lasts],
    )


def _pieces(
    first: np.ndarray, tokens: np.ndarray, at_once: np.ndarray, gaps: np.ndarray, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(times, tokens) in order: `at_once` with the first piece of each request, the rest shared by its later pieces."""
    pieces = np.bincount(owner, minlength=len(first))
    total = np.cumsum(gaps)
    begins = np.cumsum(pieces) - pieces
    before = np.where(begins > 0, total[begins - 1] if len(total) else 0.0, 0.0)
    later = first[owner] + total - before[owner]
    each = np.maximum(tokens - 1, 0)[owner] / pieces[owner] if len(owner) else np.zeros(0)
    times = np.concatenate((first, later))
    weights = np.concatenate((at_once, each))
    order = np.argsort(times, kind="stable")
    return times[order], weights[order]


def peak_per_s(flow: Flow) -> tuple[float, float]:
    """(most tokens generated in one second, its start): seconds counted from the first arrival, as vLLM does."""
    seconds = np.arange(0, np.ceil(flow.requests["end"].max()) + 1)
    made = np.diff(flow.tokens(seconds))
    at = int(np.argmax(made))
    return float(made[at]), float(seconds[at])


@dataclass(frozen=True, kw_only=True)
class Steady:
    """The steady window of one load and what it shows; `start_range_s`: over widths of bin. Times since first arrival.

    `is_steady` False: requests in flight still rise or fall within it, `drift` (over the window, by the mean), so that
    its figures describe no lasting state. `margin`: half the 95 % interval of a rate, from the means of ten parts.
    """

    stage: str
    start_s: float
    start_range_s: tuple[float, float]
    end_s: float
    duration_s: float
    counted: str
    is_steady: bool
    drift: float
    in_flight: float
    output_tokens_per_s: float
    output_tokens_per_s_margin: float
    request_rate_per_s: float
    whole_output_tokens_per_s: float
    ttft_s: dict[str, float] | None
    tpot_s: dict[str, float] | None
    e2e_s: dict[str, float] | None
    rate_times_latency: float | None
    exact_tokens: bool

    @property
    def outside(self) -> float:
        """Share of the steady rate of tokens that ramp-up and drain take from the rate of the whole."""
        return 1 - self.whole_output_tokens_per_s / self.output_tokens_per_s if self.output_tokens_per_s else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "start_range_s": list(self.start_range_s), "outside_share": self.outside}


def steady(stage: str, mine: Served, along: Flow, duration_s: float) -> tuple[Steady | None, str]:
    """(the steady window, or None and why there is none). `duration_s`: of the load, as its tool counts it."""
    if len(along.requests) < FEWEST:
        return None, f"{len(along.requests)} timed requests are too few to find a steady window: {FEWEST} are needed."
    end = along.last_begin_s
    if end < SHORTEST * along.requests["end"].max():
        return None, "All requests came at once: the load is one drain, and nothing in it is level."
    starts = [max(_mser(along.in_flight, end, bins), _mser(along.generating, end, bins)) for bins in BINS]
    start = float(np.median(starts))
    parts = np.linspace(start, end, PARTS + 1)
    width = np.diff(parts)
    level = np.diff(along.in_flight(parts)) / width
    made = np.diff(along.tokens(parts)) / width
    rises, drift = _drift(level)
    arrived = along.requests["start"].between(start, end, inclusive="left").to_numpy()
    rows = mine.rows.iloc[along.requests["position"][arrived]]
    per_s = float(arrived.sum() / (end - start))
    e2e = summary(rows["e2e_s"])
    ended = along.requests["end"].between(start, end, inclusive="left")
    return Steady(
        stage=stage,
        start_s=start,
        start_range_s=(min(starts), max(starts)),
        end_s=end,
        duration_s=end - start,
        counted="running" if along.running else "in flight",
        is_steady=not rises,
        drift=drift,
        in_flight=float(level.mean()),
        output_tokens_per_s=float(made.mean()),
        output_tokens_per_s_margin=float(T_95 * made.std(ddof=1) / np.sqrt(PARTS)),
        request_rate_per_s=float(ended.sum() / (end - start)),
        whole_output_tokens_per_s=float(along.requests["tokens"].sum() / duration_s),
        ttft_s=summary(rows["ttft_s"]),
        tpot_s=summary(rows["tpot_s"]),
        e2e_s=e2e,
        rate_times_latency=per_s * e2e["mean"] if e2e and not rises and not along.running else None,
        exact_tokens=along.exact,
    ), ""


def _mser(integral: Callable[[np.ndarray], np.ndarray], end: float, bins: int) -> float:
    edges = np.linspace(0, end, bins + 1)
    x = np.diff(integral(edges)) / np.diff(edges)
    left = bins - np.arange(bins)
    mean = np.cumsum(x[::-1])[::-1] / left
    squares = np.cumsum((x * x)[::-1])[::-1] - left * mean**2
    noise = (LEVEL * np.abs(x).max()) ** 2 * left  # what is level from the start is not cut by rounding
    z = (np.maximum(squares, noise) / left**2)[: bins // 2]
    return float(edges[int(np.argmin(z))])


def _drift(level: np.ndarray) -> tuple[bool, float]:
    """(whether it rises or falls beyond chance and by much, its change over the window by the mean)."""
    x = np.arange(len(level)) - (len(level) - 1) / 2
    slope = float((x * level).sum() / (x * x).sum())
    rest = level - level.mean() - slope * x
    error = float(np.sqrt((rest**2).sum() / (len(level) - 2) / (x * x).sum()))
    change = slope * len(level) / level.mean() if level.mean() else 0.0
    return bool(abs(slope) > T_99 * error and abs(change) > DRIFT), float(change)

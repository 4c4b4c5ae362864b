"""When tokens were generated, where only the first and the last of each request are timed.

Requests of a batch advance in step: each pass of the engine gives each of them a token. So one pace s(t), tokens per
second of a request, holds for all that generate at a time, and of request i, from first token f to last l,

    integral of s from f to l = tokens - 1

Solved by repeated proportional correction (as in iterative scaling): the share g_i by which a request's integral falls
short is spread over the time in which it generated, s(t) <- s(t) x mean of g_i over the requests generating at t. What
remains of g_i (draft tokens, several replicas) is kept as each request's own factor, so that every token is counted.
"""

from dataclasses import dataclass

import numpy as np

BINS = 400
ROUNDS = 200
WORK = 8_000_000  # requests x rounds
RELAXED = 1.9  # a larger step than proportional: converges some times sooner, and does not swing
CLOSE = 0.003  # standard deviation of g at which no round is worth it


@dataclass(frozen=True)
class Pace:
    """`tokens`: generated up to each of `edges` (s), first tokens not counted. `unevenness`: standard deviation of g,
    what the requests' own paces differ by; `even`: the same had each been spread evenly over its own time."""

    edges: np.ndarray
    tokens: np.ndarray
    unevenness: float
    even: float

    def upto(self, at: np.ndarray) -> np.ndarray:
        """Tokens generated up to each time."""
        return np.interp(at, self.edges, self.tokens)


class _Spread:
    """Sums over requests of weight x time in each bin, for weights that change while the times stay."""

    def __init__(self, times: np.ndarray, edges: np.ndarray):
        self.order = np.argsort(times, kind="stable")
        self.times = times[self.order]
        self.upto = np.searchsorted(self.times, edges, "right")
        self.edges = edges

    def area(self, weight: np.ndarray) -> np.ndarray:
        weight = weight[self.order]
        sums = np.concatenate(([0.0], np.cumsum(weight)))[self.upto]
        moments = np.concatenate(([0.0], np.cumsum(weight * self.times)))[self.upto]
        return self.edges * sums - moments


def pace(first: np.ndarray, last: np.ndarray, tokens: np.ndarray) -> Pace:
    """The pace of requests that each made `tokens` (at least 1) after the first, from `first` until `last` > first."""
    edges = np.linspace(0.0, float(last.max()), BINS + 1)
    begun, ended = _Spread(first, edges), _Spread(last, edges)

    def generating(weight: np.ndarray) -> np.ndarray:
        return np.diff(begun.area(weight) - ended.area(weight))

    present = generating(np.ones(len(first)))
    width = np.diff(edges)
    s = np.full(BINS, float(np.mean(tokens / (last - first))))
    even = None
    rounds = int(np.clip(WORK / len(first), 10, ROUNDS))
    for _ in range(rounds):
        upto = np.concatenate(([0.0], np.cumsum(s * width)))
        g = tokens / np.maximum(np.interp(last, edges, upto) - np.interp(first, edges, upto), 1e-12)
        spread = float(g.std() / g.mean())
        even = spread if even is None else even
        if spread < CLOSE:
            break
        means = np.divide(generating(g), present, out=np.ones(BINS), where=present > 1e-9 * width)
        s = s * np.maximum(means, 1e-6) ** RELAXED
    upto = np.concatenate(([0.0], np.cumsum(s * width)))
    g = tokens / np.maximum(np.interp(last, edges, upto) - np.interp(first, edges, upto), 1e-12)
    made = np.maximum(generating(g), 0.0) * s
    total = np.concatenate(([0.0], np.cumsum(made)))
    return Pace(edges, total * (tokens.sum() / total[-1]), float(g.std() / g.mean()), float(even or 0.0))

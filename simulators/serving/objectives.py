"""How much load a system bears before its answers come too late: found by serving more and more."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from errors import QuestionError
from simulators.serving.traffic import Traffic, gamma

Serve = Callable[[Traffic], pd.DataFrame]  # -> a row a request: arrival_s, last_token_s, ttft_s, tpot_s, e2e_s
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
LEAST, MOST = 300, 3000  # requests of one trial
FILLING = 1 / 3  # of a trial, in which the batch fills up: its latencies do not count
CLOSE = 1.04  # between the rate that is borne and one that is not
LARGEST_PER_S = 1e5
BEHIND = 0.9  # of the rate asked for; a system that answers less falls behind, whatever the latencies say


@dataclass(frozen=True)
class Objectives:
    """Latencies in seconds that the given percentile of the requests must keep; None: any will do."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    percentile: float = 99.0

    def __post_init__(self) -> None:
        if not 0 < self.percentile <= 100:
            raise QuestionError(f"percentile {self.percentile:g}", expected="above 0, up to 100")
        for name in LATENCIES:
            if (value := getattr(self, name)) is not None and value <= 0:
                raise QuestionError(f"{name} {value:g}", expected="a time above 0")

    def seen(self, rows: pd.DataFrame) -> dict[str, float]:
        """The percentile of each latency; NaN where no request has one (one token has no time per token)."""
        values = {n: rows[n].to_numpy(dtype=float) for n in LATENCIES}
        return {
            n: float(np.nanpercentile(v, self.percentile)) if np.isfinite(v).any() else float("nan")
            for n, v in values.items()
        }

    def broken(self, seen: dict[str, float]) -> str:
        """The objective that is missed by the most, by name; "" where all are kept."""
        over = {n: seen[n] / most for n in LATENCIES if (most := getattr(self, n)) is not None and seen[n] > most}
        return max(over, key=over.get) if over else ""


@dataclass(frozen=True)
class Shape:
    """Requests of equal lengths in tokens, `cached` of the prompt found in the cache; `cv` of the gaps between them."""

    prompt: int
    output: int
    cached: int = 0
    cv: float = 1.0

    def at(self, rate: float, requests: int, seed: int = 0) -> Traffic:
        return gamma(rate, self.cv, requests, self.prompt, self.output, self.cached, seed)


@dataclass(frozen=True)
class Capacity:
    """`rate_per_s`: the most that keeps the objectives, 0 where even one request alone does not. `seen`: latencies at
    that rate (of one alone where it is 0). `limit`: what breaks beyond it: a latency, `rate` (it falls behind), or "".
    """

    rate_per_s: float
    seen: dict[str, float] = field(default_factory=dict)
    limit: str = ""


def capacity(serve: Serve, shape: Shape, objectives: Objectives, guess_per_s: float | None = None) -> Capacity:
    """The highest rate of requests of this shape that `serve` bears, within a few per cent. A good guess saves time."""
    alone = objectives.seen(serve(shape.at(1e-4, 3)))
    if limit := objectives.broken(alone):
        return Capacity(0.0, alone, limit)
    good, bad, at, limit = 0.0, float("inf"), alone, ""
    rate = guess_per_s or 1.0 / alone["e2e_s"]
    while rate < LARGEST_PER_S and (bad > CLOSE * good if good else rate > 1e-4 / alone["e2e_s"]):
        seen, missed = _trial(serve, shape, objectives, rate, alone["e2e_s"])
        if missed:
            bad, limit = rate, missed
        else:
            good, at = rate, seen
        step = 1.3 if guess_per_s else 2.0
        rate = good * step if bad == float("inf") else bad / step if not good else (good * bad) ** 0.5
    return Capacity(good, at, limit)


def _trial(
    serve: Serve, shape: Shape, objectives: Objectives, rate: float, alone_s: float
) -> tuple[dict[str, float], str]:  # fmt: skip
    """Latencies at a rate, and what breaks. So many requests that those in flight are replaced several times."""
    requests = int(np.clip(8 * rate * alone_s, LEAST, MOST))
    rows = serve(shape.at(rate, requests))
    seen = objectives.seen(rows.iloc[int(requests * FILLING) :])
    if limit := objectives.broken(seen):
        return seen, limit
    arrival = rows["arrival_s"].to_numpy(dtype=float)
    last = float(np.nanmax(rows["last_token_s"].to_numpy(dtype=float)))
    grown = last - alone_s > (arrival[-1] - arrival[0]) / BEHIND + alone_s
    return seen, "rate" if grown else ""

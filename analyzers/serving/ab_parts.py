"""What a request's time is made of, in one served run and another: waiting, reading the prompt, writing the answer; and
whether a request takes longer at all, at the level at which jobs are told to differ.

    E2E = queue + prefill + decode, of requests that tell all of them; where no queue is told, E2E = TTFT + decode

Single figures have intervals of 95 %, of which one in twenty misses; a verdict rests on the time of a request alone,
whose range holds the truth in 99.5 of 100 comparisons (`difference.step_time`), each request less itself where both
answered the same ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from analyzers.difference.accounts import AccountChange
from analyzers.difference.step_time import (
    ALPHA,
    BETWEEN,
    FLOOR,
    LEAST_STEPS,
    POWER,
    Change,
    change_of,
    variance_of_mean,
)
from analyzers.serving.served import Served

PARTS: Mapping[str, str] = {
    "queue_s": "waiting in the queue",
    "prefill_s": "reading the prompt",
    "ttft_s": "time to the first token",
    "decode_s": "writing the answer",
}
SPLITS = (("queue_s", "prefill_s", "decode_s"), ("ttft_s", "decode_s"))


@dataclass(frozen=True)
class RequestChange:
    """`whole`: of the time of a request; None where too few tell it. `parts`: of what it is made of, the largest
    change first: they sum to the change of these requests."""

    whole: Change | None
    parts: tuple[AccountChange, ...]

    @property
    def told(self) -> bool:
        return self.whole is not None and self.whole.told

    def to_dict(self) -> dict[str, Any]:
        change = sum(p.change for p in self.parts)
        left = None if self.whole is None or not self.parts else (self.whole.b - self.whole.a) - change
        whole = 0.0 if self.whole is None else self.whole.b - self.whole.a
        return {
            "told": self.told,
            "request_time": self.whole and self.whole.to_dict(),
            "ledger": [p.to_dict() for p in self.parts],
            "explained_share": max(0.0, 1 - abs(left) / abs(whole)) if left is not None and whole else None,
            "unexplained_s": left,
        }


def request_change(a: Served, b: Served, pairs: pd.DataFrame | None) -> RequestChange:
    """B against A; `pairs`: rows that are the same request, None where the two did not answer the same ones."""
    for names in SPLITS:
        rows = _known(a, b, pairs, ("e2e_s", *names))
        if min(map(len, rows)) >= LEAST_STEPS:
            one, other = rows
            whole = _change(one["e2e_s"].to_numpy(float), other["e2e_s"].to_numpy(float), pairs is not None)
            parts = [_part(n, one[n].to_numpy(float), other[n].to_numpy(float), pairs is not None) for n in names]
            return RequestChange(whole, tuple(sorted(parts, key=lambda p: -abs(p.change))))
    rows = _known(a, b, pairs, ("e2e_s",))
    if min(map(len, rows)) < LEAST_STEPS:
        return RequestChange(None, ())
    one, other = (r["e2e_s"].to_numpy(float) for r in rows)
    return RequestChange(_change(one, other, pairs is not None), ())


def _known(a: Served, b: Served, pairs: pd.DataFrame | None, names: tuple[str, ...]) -> tuple[pd.DataFrame, ...]:
    """Requests that tell all of these; of pairs those that both tell."""
    columns = list(names)
    if pairs is None:
        return tuple(of.timed[columns].dropna() for of in (a, b))
    x, y = (of.rows[columns].iloc[pairs[at]].reset_index(drop=True) for of, at in ((a, "at_a"), (b, "at_b")))
    both = x.notna().all(axis=1) & y.notna().all(axis=1)
    return x[both], y[both]


def _reach(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(error of the mean difference of pairs, degrees of freedom); as far as two starts differ, of the mean of B."""
    v, freedom = variance_of_mean(y - x + float(x.mean()))
    return float(np.sqrt(v + (BETWEEN * y.mean()) ** 2)), freedom


def _change(x: np.ndarray, y: np.ndarray, paired: bool) -> Change:
    if not paired:
        return change_of(x, y, FLOOR, "request")
    mean_a, mean_b = float(x.mean()), float(y.mean())
    error, freedom = _reach(x, y)
    change = mean_b / mean_a - 1
    reach, power = (float(stdtrit(freedom, q)) * error / mean_a for q in (1 - ALPHA / 2, POWER))
    told = abs(change) > max(reach, FLOOR)
    return Change(mean_a, mean_b, change, change - reach, change + reach, max(reach + power, FLOOR), told)


def _part(name: str, x: np.ndarray, y: np.ndarray, paired: bool) -> AccountChange:
    change = float(y.mean() - x.mean())
    if paired:
        error, freedom = _reach(x, y)
    else:
        (vx, fx), (vy, fy) = variance_of_mean(x), variance_of_mean(y)
        error = float(np.sqrt(vx + vy))
        freedom = (vx + vy) ** 2 / (vx**2 / fx + vy**2 / fy) if vx + vy else 1.0
    reach = float(stdtrit(freedom, 1 - ALPHA / 2)) * error
    return AccountChange(name, float(x.mean()), float(y.mean()), change - reach, change + reach)

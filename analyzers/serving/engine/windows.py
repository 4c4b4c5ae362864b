"""Samples of an engine brought to windows of time: exact means and sums, whatever part of a sample a window covers.

What is known of a sample holds evenly over its time: a level as it is, an amount spread over it. A window's mean is
the integral over it by the time of it that is known; several replicas are windowed apart, and then added.
"""

import numpy as np
import pandas as pd

from analyzers.serving.engine.bounds import BOUNDS
from analyzers.serving.engine.samples import LEVELS

MOST = 1500
EDGES = 2.0  # usual samples, that replicas sampled one after the other are known for less than all together


class _Over:
    """Integrals over windows from `starts` to `ends` of what the samples of one replica say."""

    def __init__(self, rows: pd.DataFrame, starts: np.ndarray, ends: np.ndarray):
        self.rows, self.starts, self.ends = rows, starts, ends
        self.dt, self.told = rows["dt_s"].to_numpy(), rows["told_s"].to_numpy()
        self.at, self.told_at = self._edges(self.dt), self._edges(self.told)

    def _edges(self, lasts: np.ndarray) -> np.ndarray:
        ends = self.rows["t_s"].to_numpy()
        return np.maximum.accumulate(np.column_stack((ends - lasts, ends)).ravel())

    def total(self, of_samples: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        """Of an amount, given for each sample as a whole; `at`: the samples' begins and ends, if not in time."""
        at = self.at if at is None else at
        upto = np.concatenate(([0.0], np.cumsum(of_samples)))
        both = np.repeat(upto, 2)[1:-1]
        return np.interp(self.ends, at, both) - np.interp(self.starts, at, both)

    def told_for(self, column: str) -> np.ndarray:
        """The time of each window of which an amount is known."""
        return self.total(self.told * self.rows[column].notna().to_numpy(), self.told_at)

    def amount(self, column: str) -> np.ndarray:
        """Sum of the known amounts, NaN where none is known."""
        values = self.rows[column].to_numpy()
        known = ~np.isnan(values)
        if not known.any():
            return np.full(len(self.ends), np.nan)
        return np.where(self.told_for(column) > 0, self.total(np.where(known, values, 0.0), self.told_at), np.nan)

    def mean(self, column: str) -> np.ndarray:
        """Mean over the time in which the level is known, NaN where it never is."""
        values = self.rows[column].to_numpy()
        known = ~np.isnan(values)
        if not known.any():
            return np.full(len(self.ends), np.nan)
        return ratio(self.total(np.where(known, values, 0.0) * self.dt), self.total(self.dt * known))


def known_s(rows: pd.DataFrame, column: str, lasting: str = "dt_s") -> float:
    """The time in which at least one replica tells a level or (`lasting` told_s) an amount, s."""
    known = rows[rows[column].notna() & (rows[lasting] > 0)].sort_values("t_s", kind="stable")
    ends = known["t_s"].to_numpy()
    begins = np.minimum.accumulate((ends - known[lasting].to_numpy())[::-1])[::-1]
    before = np.concatenate(([-np.inf], ends[:-1]))
    return float(np.maximum(ends - np.maximum(begins, before), 0).sum())


def over_time(rows: pd.DataFrame, amount: pd.Series, column: str, lasting: str = "dt_s") -> float | None:
    """`amount` of the rows in which `column` is known, by time, summed over replicas; None where it never is.

    By the time in which any replica tells it, so that one that ran for an hour of a day counts for that; one that was
    sampled all the time, but for what lies between its first or last sample and another's, by its own. Lines of one
    second follow on one another in no time, and what they tell counts.
    """
    known = rows[rows[column].notna()]
    if not (known[lasting] > 0).any():
        return None
    whole, total = known_s(rows, column, lasting), 0.0
    for _, mine in known.groupby("replica", sort=False):
        lasts = mine[lasting][mine[lasting] > 0]
        own = float(lasts.sum())
        edges = EDGES * float(lasts.median()) if len(lasts) else 0.0
        total += float(amount[mine.index].sum()) / (own if own > 0 and whole - own <= edges else whole)
    return total


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, NaN where b is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(b > 0, a / b, np.nan)


def windows(rows: pd.DataFrame, words: np.ndarray) -> pd.DataFrame:
    """The samples themselves where there are few of one replica, else at most MOST equal windows.

    Columns as in `EngineResult.windows`; `words`: the bound of each sample.
    """
    begin, end = float((rows["t_s"] - rows["dt_s"]).min()), float(rows["t_s"].max())
    if rows["replica"].nunique() == 1 and len(rows) <= MOST:
        ends = rows["t_s"].to_numpy()
        starts = ends - rows["dt_s"].to_numpy()
        lasting = ends > starts
        starts, ends = starts[lasting], ends[lasting]
    else:
        usual = float(rows["dt_s"].median())
        count = int(np.clip((end - begin) / usual if usual > 0 else 1, 1, MOST))
        edges = np.linspace(begin, end, count + 1)
        starts, ends = edges[:-1], edges[1:]
    parts = [
        _of_replica(_Over(rows[mine].reset_index(drop=True), starts, ends), words[mine])
        for mine in ((rows["replica"] == name).to_numpy() for name in rows["replica"].unique())
    ]
    found = _added(parts, starts, ends)
    for column, values in ratios(rows, starts, ends).items():
        found[column] = values
    return found[found["replicas"] > 0].reset_index(drop=True)


def _of_replica(over: _Over, words: np.ndarray) -> dict[str, np.ndarray]:
    said = {level: over.mean(level) for level in LEVELS}
    said |= {name: over.amount(name) for name in ("prompt", "output", "padded")}
    said |= {f"{name}_told": over.told_for(name) for name in ("prompt", "output")}
    said["seen"] = over.total(over.dt)
    held = over.rows["preempted"].to_numpy()
    said["preempted"] = np.full(len(over.ends), np.nan)
    if (~np.isnan(held)).any():  # whole: each in the window in which its sample ends
        cell = np.clip(np.searchsorted(over.ends, over.rows["t_s"].to_numpy() - 1e-9), 0, len(over.ends) - 1)
        said["preempted"] = np.bincount(cell, np.nan_to_num(held), len(over.ends))
    return said | {bound: over.total(over.dt * (words == bound)) for bound in BOUNDS}


def _added(parts: list[dict[str, np.ndarray]], starts: np.ndarray, ends: np.ndarray) -> pd.DataFrame:
    def total(name: str) -> np.ndarray:
        each = np.array([p[name] for p in parts])
        return np.where(np.isnan(each).all(axis=0), np.nan, np.nansum(each, axis=0))

    width = ends - starts
    seen = total("seen")
    found = {"t_s": ends, "dt_s": width, "replicas": np.sum([p["seen"] > 1e-9 * width for p in parts], axis=0)}
    found |= {"running": total("running"), "waiting": total("waiting")}
    known = np.sum([~np.isnan(p["kv_usage"]) for p in parts], axis=0)
    found["kv_usage"] = ratio(total("kv_usage"), known)
    prompt, output, padded = total("prompt"), total("output"), total("padded")
    for name, tokens in (("prompt", prompt), ("output", output)):  # by the time of which any replica tells them
        found[f"{name}_tokens_per_s"] = ratio(tokens, np.max([p[f"{name}_told"] for p in parts], axis=0))
    found["preemptions"] = total("preempted")
    found["prompt_share"] = ratio(prompt, prompt + output)
    found["padded_share"] = ratio(padded, padded + np.nan_to_num(prompt) + np.nan_to_num(output))
    found |= {f"share_{bound}": ratio(total(bound), seen) for bound in BOUNDS}
    return pd.DataFrame(found)


def ratios(rows: pd.DataFrame, starts: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
    """prefix_hit_rate, acceptance_rate, acceptance_length of windows over all replicas: from counters, else printed."""
    overs = [_Over(some, starts, ends) for _, some in rows.groupby("replica", sort=False)]

    def total(name: str) -> np.ndarray:
        each = np.array([over.amount(name) for over in overs])
        return np.where(np.isnan(each).all(axis=0), np.nan, np.nansum(each, axis=0))

    def printed(name: str) -> np.ndarray:
        each = np.array([over.mean(name) for over in overs])
        known = (~np.isnan(each)).sum(axis=0)
        return ratio(np.nansum(each, axis=0), known)

    hit = ratio(total("hits"), total("queries"))
    length = ratio(total("accepted"), total("drafts")) + 1
    return {
        "prefix_hit_rate": np.where(np.isnan(hit), printed("hit_rate"), hit),
        "acceptance_rate": ratio(total("accepted"), total("drafted")),
        "acceptance_length": np.where(np.isnan(length), printed("acceptance_length"), length),
    }

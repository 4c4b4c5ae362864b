"""Histograms as an engine exposes them: what fell into their buckets while it was watched, and quantiles of that.

A bucket tells how many observations were at most so large. Between its bounds nobody knows where they lie.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from analyzers.serving.counters import restarted
from analyzers.serving.servers import servers
from analyzers.serving.untimed import in_order, processes
from runs.tables import Tables, frame


class Quantile(NamedTuple):
    """A quantile as far as buckets tell: it lies between `low` and `high`, and `value` is the best estimate.

    `value` is None where the quantile lies in the first bucket or beyond the last bound: there is nothing to
    interpolate from. `low`, `high` None: no bound. All None: no observation, or counts that cannot be.
    """

    value: float | None
    low: float | None
    high: float | None


UNKNOWN = Quantile(None, None, None)


def quantile(le: np.ndarray, count: np.ndarray, q: float) -> Quantile:
    """The `q`-quantile (0 to 1) by linear interpolation in its bucket, as Prometheus' `histogram_quantile` does it.

    `le`: upper bounds in rising order, the last may be infinite. `count`: observations up to each bound. Where
    Prometheus would interpolate from zero (first bucket) or give the last bound (beyond it), no value is given.
    """
    le, count = np.asarray(le, dtype=float), np.asarray(count, dtype=float)
    if not len(le) or not count[-1] > 0 or (np.diff(count) < 0).any() or count[0] < 0:
        return UNKNOWN
    rank = q * count[-1]
    at = int(np.searchsorted(count, rank, side="left"))
    high = float(le[at]) if np.isfinite(le[at]) else None
    if at == 0:
        return Quantile(None, 0.0 if high is not None and high > 0 else None, high)
    low = float(le[at - 1])
    if high is None:
        return Quantile(None, low, None)
    inside = float(count[at] - count[at - 1])
    return Quantile(low + (high - low) * (rank - float(count[at - 1])) / inside, low, high)


@dataclass(frozen=True)
class Histogram:
    """Observations in buckets: `le` upper bounds in rising order, `count` observations up to each, `total` their sum
    (None where unknown). `since_start`: they are all since the process started, for there is one scrape only."""

    name: str
    le: np.ndarray
    count: np.ndarray
    total: float | None
    since_start: bool
    notes: tuple[str, ...] = ()

    @cached_property
    def observations(self) -> int:
        return int(self.count[-1]) if len(self.count) else 0

    @property
    def mean(self) -> float | None:
        """The exact mean: the sum by the number."""
        return self.total / self.observations if self.observations and self.total is not None else None

    def quantile(self, q: float) -> Quantile:
        return quantile(self.le, self.count, q)

    def within(self, most: float) -> tuple[float, float] | None:
        """(least, most) share of observations that are at most so large: those up to the bounds around it."""
        if not self.observations:
            return None
        below = self.count[self.le <= most]
        above = self.count[self.le >= most]
        low = float(below[-1]) if len(below) else 0.0
        high = float(above[0]) if len(above) else float(self.count[-1])
        return low / self.observations, high / self.observations


def observed(tables: Tables, *names: str, replica: str | None = None) -> Histogram | None:
    """What a histogram has observed between its first and last scrape: of each server that of the first of these names
    that it has, since engines of several kinds and versions may serve in one run.

    Servers are added up (see `servers`); `replica` takes one. A process that started again begins anew; bounds that are
    not the same in all scrapes are left out. With one scrape of each server the counts are those since its process
    started; where others were scraped again, a server that was scraped once is left out, and said to be. None where the
    run has no such histogram.
    """
    columns = ["ts_ns", "order", "replica", "source", "le", "count", "total"]
    rows = frame(tables, "histograms", [*columns, "name"])
    name = rows["name"].astype(str)
    place = name.map({n: names.index(bare) for n in name.unique() if (bare := n.partition("{")[0]) in names})
    rows = rows.assign(place=place)[place.notna() & rows["le"].notna() & rows["count"].notna() & rows["order"].notna()]
    if replica is not None:
        rows = rows[(rows["replica"].astype(str) == replica) | (servers(tables, rows) == replica)]
    if not len(rows):
        return None
    rows = rows.assign(server=servers(tables, rows), process=processes(tables, rows))
    rows = rows[rows["place"] == rows.groupby("server")["place"].transform("min")]
    rows = pd.concat([_variants(mine) for _, mine in rows.groupby("server", sort=False)])
    told = " and ".join(names[int(n)] for n in sorted(rows["place"].unique()))
    return _observed(told, in_order(tables, rows))


def _variants(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a server's histogram: those without further labels or whose labels are empty, which are of all, if
    there are any; else those that its labels split, to be added up."""
    names = rows["name"].astype(str)
    split = names.str.contains("{", regex=False)
    whole = ~split
    if split.all():
        empty = {n for n in names.unique() if not re.search(r'="[^"]', n)}
        whole = names.isin(empty) if empty else split
    return rows[whole.to_numpy(dtype=bool)]


def _observed(name: str, rows: pd.DataFrame) -> Histogram:
    rows = rows.assign(at=rows.groupby(["ts_ns", "order"], sort=True, dropna=False).ngroup())
    scrapes = rows.groupby("server", sort=False)["at"].agg(["min", "nunique"])
    left_out = set(scrapes.index[scrapes["nunique"] == 1]) if (scrapes["nunique"] > 1).any() else set()
    parts, once = [], []
    watched = rows[~rows["server"].isin(left_out)]
    for (server, _), mine in watched.groupby(["server", "name"], sort=False, observed=True):
        counts = mine.pivot_table(index="at", columns="le", values="count", aggfunc="first").astype(float)
        told = mine.groupby("at")[["total", "process"]].first().astype(float)
        totals, process = (told[c].to_numpy(dtype=float, na_value=np.nan) for c in ("total", "process"))
        begun = int(scrapes.loc[server, "min"])
        if counts.index[0] > begun:  # labels appear with their first observation: all of it came since the first scrape
            counts = pd.concat([pd.DataFrame(0.0, index=[begun], columns=counts.columns), counts])
            totals, process = np.concatenate([[0.0], totals]), np.concatenate([process[:1], process])
        parts.append(_grown(counts, totals, process))
        once.append(len(counts) == 1)
    bounds = parts[0][0].index
    for grown, _ in parts[1:]:
        bounds = bounds.intersection(grown.index)
    notes = []
    if left_out:
        notes.append(
            f"Scraped once, and so left out of {name}, are {', '.join(sorted(map(str, left_out))[:5])}: what "
            "they tell is since their process began."
        )
    if (left := len(set().union(*(p[0].index for p in parts)) - set(bounds))) or any(p[0].attrs["left"] for p in parts):
        left += sum(p[0].attrs["left"] for p in parts)
        notes.append(f"{left} bounds of {name} are not the same in all scrapes and are left out.")
    if restarts := sum(p[0].attrs["restarts"] for p in parts):
        often = "once" if restarts == 1 else f"{restarts} times"
        notes.append(f"{name} began anew {often}: its process was started again.")
    bounds = bounds.sort_values()
    count = sum(p[0].reindex(bounds).to_numpy() for p in parts)
    totals = [p[1] for p in parts]
    total = None if any(t is None for t in totals) else float(sum(totals))
    return Histogram(name, bounds.to_numpy(dtype=float), np.asarray(count, dtype=float), total, all(once), tuple(notes))


def _grown(counts: pd.DataFrame, totals: np.ndarray, process: np.ndarray) -> tuple[pd.Series, float | None]:
    """(what each bound that all scrapes have grew by, what the sum grew by), over restarts. `process`: see
    `untimed.processes`."""
    kept = counts.dropna(axis=1)
    values = kept.to_numpy()
    restarts = 0
    if len(values) > 1:
        step = np.diff(values, axis=0)
        again = (step < 0).any(axis=1)  # one bucket that fell means that all began anew
        again |= restarted(process, np.arange(len(values)))
        grown = np.where(again[:, None], values[1:], step).sum(axis=0)
        total = float(np.where(again, totals[1:], np.diff(totals)).sum())
        restarts = int(again.sum())
    else:
        grown, total = values[0], float(totals[0])
    found = pd.Series(grown, index=kept.columns)
    found.attrs.update(left=counts.shape[1] - kept.shape[1], restarts=restarts)
    return found, None if np.isnan(total) else total

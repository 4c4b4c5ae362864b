"""Inputs without times that scrape one server: what /metrics told before a load, and after it.

They are of one server where the processes that both scraped were started at one moment and, put in order, none of their
counters ever falls; counters tell the order. Any other input without times is of a server of its own.
"""

from functools import reduce

import numpy as np
import pandas as pd

from analyzers.serving.counters import COUNTERS
from runs.tables import Tables, frame

BEGAN = "process_start_time_seconds"
SINCE_START = (
    "Each server was scraped once, or nothing says which scrapes are of one: all counts are since its process began, "
    "and may hold what came before the load."
)


def processes(tables: Tables, rows: pd.DataFrame) -> np.ndarray:
    """When the process of each row was started, s since the epoch; NaN where its scrape does not tell, or tells of
    several processes. Columns: source, ts_ns."""
    told = frame(tables, "scalars", ["ts_ns", "name", "value", "source"])
    told = told[told["name"].astype(str).str.startswith(BEGAN).to_numpy(dtype=bool)].dropna(subset=["ts_ns", "value"])
    if not len(told):
        return np.full(len(rows), np.nan)
    by = [told["source"].astype("string").fillna("").astype(str), told["ts_ns"].astype("int64")]
    each = told["value"].astype(float).groupby(by).agg(["min", "max"])
    start = each["min"].where(each["max"] - each["min"] < 1)
    source, at = rows["source"].astype("string").fillna("").astype(str), rows["ts_ns"].astype("Int64").fillna(-1)
    return start.reindex(pd.MultiIndex.from_arrays([source, at.astype("int64")])).to_numpy(dtype=float)


def began(tables: Tables) -> dict[str, frozenset[float]]:
    """When the processes that each input scraped were started, s since the epoch."""
    rows = frame(tables, "scalars", ["name", "value", "source"])
    rows = rows[rows["name"].astype(str).str.startswith(BEGAN).to_numpy(dtype=bool)].dropna(subset=["value"])
    return {str(k): frozenset(v.round(2)) for k, v in rows.groupby(rows["source"].astype(str))["value"]}


def chains(tables: Tables) -> list[list[str]]:
    """Inputs without times that scrape one server, in order of time; none that is alone."""
    starts: dict[frozenset[float], list[str]] = {}
    for source, start in began(tables).items():
        starts.setdefault(start, []).append(source)
    groups = [sources for sources in starts.values() if len(sources) > 1]
    if not groups:
        return []
    counts = _counts(tables)
    groups = [[s for s in sources if s in counts] for sources in groups]
    return [chain for sources in groups if len(chain := _in_order(sources, counts)) > 1]


def in_order(tables: Tables, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of which `order` goes on from one input of a server to the next. Columns: source, order."""
    found = chains(tables) if rows["source"].nunique() > 1 else []
    if not found:
        return rows
    place = {source: n for chain in found for n, source in enumerate(chain)}
    later = rows["source"].astype("string").map(place).fillna(0).astype("Int64")
    return rows.assign(order=rows["order"] + later * (int(rows["order"].max()) + 1))


def _counts(tables: Tables) -> dict[str, pd.DataFrame]:
    """What the counters of each input without times stood at: rows of them, columns first and last."""
    engine = frame(tables, "engine", ["source", "ts_ns", "order", "replica", *COUNTERS])
    engine = engine.melt(["source", "ts_ns", "order", "replica"], var_name="name", value_name="count")
    histograms = frame(tables, "histograms", ["source", "ts_ns", "order", "replica", "name", "le", "count"])
    rows = pd.concat([engine.assign(le=0.0), histograms], ignore_index=True)
    rows = rows.astype({"source": str, "replica": str, "name": str})
    timed = set(rows["source"][rows["ts_ns"].notna()])
    rows = rows[rows["count"].notna() & ~rows["source"].isin(timed)].sort_values("order", kind="stable")
    ends = rows.groupby(["source", "replica", "name", "le"], sort=False)["count"].agg(["first", "last"])
    return {str(source): mine.droplevel(0) for source, mine in ends.groupby(level=0, sort=False)}


def _in_order(sources: list[str], counts: dict[str, pd.DataFrame]) -> list[str]:
    """Inputs of one process start in the order of their counters; none where one of these falls, or none grows."""
    shared = reduce(pd.Index.intersection, (counts[s].index for s in sources)) if sources else pd.Index([])
    ordered = sorted(sources, key=lambda s: float(counts[s].loc[shared, "first"].sum()))
    pairs = list(zip(ordered, ordered[1:], strict=False))
    steps = [counts[b].loc[shared, "first"] - counts[a].loc[shared, "last"] for a, b in pairs]
    grows = any((step > 0).any() for step in steps) and not any((step < 0).any() for step in steps)
    return ordered if grows else []

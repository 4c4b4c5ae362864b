"""What else is known of operations: how long one execution takes, and what frameworks and compilers call them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.op_units import Units
from runs.tables import Tables, frame, int_column

EXECUTION = ("mean_execution_seconds", "least_execution_seconds", "longest_execution_seconds")
# Columns of texts, each with the statistics of `op_stats` that hold it, the first that is there.
TEXTS: dict[str, Sequence[str]] = {
    "framework_op": ("op_name", "tf_op", "launched by"),
    "kernel": ("kernel",),
    "launch_shape": ("launch shape",),
    "hlo": ("hlo",),
}
_PS = 1e12


@dataclass(frozen=True)
class Extremes:
    """Seconds of the shortest and the longest execution of each row of `units.members`, NaN where nothing ran."""

    least: np.ndarray
    longest: np.ndarray


def executions(units: Units, extremes: Extremes, key: pd.Series) -> pd.DataFrame:
    """EXECUTION by `key`, which each row of `units.members` has: seconds of one execution with what is nested in it,
    NaN where nothing ran."""
    members = units.members
    timed = members["total_s"].notna()
    sums = pd.DataFrame(
        {
            "total": members["total_s"],
            "count": members["count"].where(timed),
            EXECUTION[1]: extremes.least,
            EXECUTION[2]: extremes.longest,
        }
    ).groupby(key, sort=False)
    added, low, high = sums[["total", "count"]].sum(min_count=1), sums[EXECUTION[1]].min(), sums[EXECUTION[2]].max()
    mean = added["total"] / added["count"].where(added["count"] > 0)
    mean = mean.where(low.notna())  # modelled seconds are no executions
    return pd.DataFrame({EXECUTION[0]: mean.clip(low, high), EXECUTION[1]: low, EXECUTION[2]: high})


def extremes_of(tables: Tables, units: Units) -> Extremes:
    """The shortest and the longest executions, one capture's events at a time."""
    members = units.members
    least, longest = np.full(len(members), np.nan), np.full(len(members), np.nan)
    if not tables.rows("op_events"):
        return Extremes(least, longest)
    numbered = members["capture"].notna() & members["op_id"].notna()
    captures = members["capture"].where(numbered).to_numpy(dtype=float, na_value=np.nan)
    for capture in np.unique(captures[~np.isnan(captures)]).tolist():
        mine = np.flatnonzero(captures == capture)
        ids, place = np.unique(members["op_id"].iloc[mine].to_numpy(dtype=np.int64), return_inverse=True)
        low, high = _of_capture(tables, int(capture), ids)
        least[mine], longest[mine] = low[place], high[place]
    return Extremes(least, longest)


def _of_capture(tables: Tables, capture: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of the shortest and the longest execution of each operation; `ids`, sorted, may be any numbers."""
    events = tables.arrow("op_events", ["op_id", "dur_ps"], [("capture", "==", capture), ("device", ">=", 0)])
    op, took = int_column(events, "op_id"), int_column(events, "dur_ps")
    at = np.minimum(np.searchsorted(ids, op), len(ids) - 1)
    known = (ids[at] == op) & (took >= 0)
    at, took = at[known], took[known]
    low, high = np.full(len(ids), np.iinfo(np.int64).max), np.full(len(ids), -1, np.int64)
    np.minimum.at(low, at, took)
    np.maximum.at(high, at, took)
    none = high < 0
    return np.where(none, np.nan, low / _PS), np.where(none, np.nan, high / _PS)


def texts(tables: Tables, units: Units) -> pd.DataFrame:
    """TEXTS of each row of `units.rows`: of several operations in it what is told of the longest."""
    names = [name for several in TEXTS.values() for name in several]
    stats = frame(tables, "op_stats", ["capture", "op_id", "name", "text_value"], [("name", "in", names)])
    stats = stats.dropna().astype({"name": str, "text_value": object})
    members = units.members[["capture", "op_id", "unit"]].assign(place=np.arange(len(units.members)))
    told = members.merge(stats, on=["capture", "op_id"]).sort_values("place", kind="stable")
    first = told.drop_duplicates(["unit", "name"]).pivot(index="unit", columns="name", values="text_value")
    first = first.reindex(range(len(units.rows)))
    out = {}
    for column, several in TEXTS.items():
        values = pd.Series(None, index=first.index, dtype=object)
        for name in several:
            if name in first:
                values = values.where(values.notna(), first[name])
        out[column] = values.where(values.notna(), None)
    if (framework := out["framework_op"]).notna().any():
        out["framework_op"] = framework.map(lambda text: text.rstrip(":") if isinstance(text, str) else None)
    return pd.DataFrame(out)


def recomputed_share(units: Units, key: pd.Series) -> pd.Series:
    """Of the time by `key` (of executions, where nobody timed them) the part that is computed again for the backward
    pass; NaN where no pass is told."""
    members = units.members
    weight = members["self_s"] if units.seconds is not None else members["count"]
    told = weight.where(members["direction"].notna())
    again = weight.where((members["direction"] == "recompute").fillna(False), 0.0)
    sums = pd.DataFrame({"told": told, "again": again, "all": weight}).groupby(key, sort=False).sum(min_count=1)
    return (sums["again"] / sums["all"].where(sums["all"] > 0)).where(sums["told"].notna())

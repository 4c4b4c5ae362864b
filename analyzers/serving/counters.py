"""Counters that only grow until their process starts again: what they grew by, restarts counted as a fresh start.

A counter of /metrics began before it was first read. The sums that are made of what a log prints begin at zero in each
file, so that their first sample has grown too.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

Values = np.ndarray | pd.Series | Sequence[float | None]
COUNTERS = (
    "prompt_tokens",
    "computed_tokens",
    "output_tokens",
    "preemptions",
    "prefix_hits",
    "prefix_queries",
    "drafts",
    "drafted",
    "accepted",
)  # columns of `engine`
PRINTED = ["prompt_tokens_per_s", "output_tokens_per_s", "acceptance_length"]
_LATER_S = 1.0  # the same process may tell its start a little differently
EXPOSED = ["output_tokens", "drafts"]  # what no log counts


def increments(values: Values, begun: bool = False, process: np.ndarray | None = None) -> np.ndarray:
    """What each sample grew by since the known sample before it: float, NaN where it or every sample before is unknown.

    A sample below the one before means that the process started again and counted from zero: it grew by its own value.
    So does one of a process that was started later, however far it has come since. `begun`: it stood at zero before the
    first sample. `process`: when the process of each sample was started (see `untimed.processes`).
    """
    if begun:
        before = None if process is None else np.concatenate((process[:1], process))
        return increments(np.concatenate(([0.0], _floats(values))), process=before)[1:]
    samples = _floats(values)
    grown = np.full(len(samples), np.nan)
    known = np.flatnonzero(~np.isnan(samples))
    if len(known) > 1:
        found = samples[known]
        step = np.diff(found)
        grown[known[1:]] = np.where((step < 0) | restarted(process, known), found[1:], step)
    return grown


def restarted(process: np.ndarray | None, at: np.ndarray) -> np.ndarray:
    """Whether each sample but the first of those `at` is of a process that was started later than that before it."""
    if process is None:
        return np.zeros(max(len(at) - 1, 0), dtype=bool)
    return np.diff(pd.Series(process).ffill().to_numpy()[at]) > _LATER_S


def increase(values: Values) -> float | None:
    """What a counter grew by from its first to its last sample; None where fewer than two samples are known."""
    grown = increments(values)
    known = grown[~np.isnan(grown)]
    return float(known.sum()) if len(known) else None


def resets(values: Values) -> int:
    """How often a counter fell: how often its process started again while it was watched."""
    samples = _floats(values)
    return int((np.diff(samples[~np.isnan(samples)]) < 0).sum())


def of_logs(rows: pd.DataFrame) -> np.ndarray:
    """Which rows of `engine` are lines of a log: their input prints rates, and counts nothing that only /metrics do."""
    source = rows["source"].astype("string").fillna("")
    prints, counts = (rows[c].notna().any(axis=1).groupby(source).transform("any") for c in (PRINTED, EXPOSED))
    return (prints & ~counts).to_numpy(dtype=bool)


def grown(rows: pd.DataFrame, values: pd.Series) -> np.ndarray:
    """What a counter of servers grew by with each row, NaN where unknown. Columns: `replica` their names, `source`,
    `log` (see `of_logs`), `process` (see `untimed.processes`); in order of time."""
    result = np.full(len(rows), np.nan)
    if not values.notna().any():
        return result
    samples, log, process = _floats(values), rows["log"].to_numpy(dtype=bool), rows["process"].to_numpy(dtype=float)
    input_ = rows["source"].astype("string").fillna("").where(log, "")
    for at in rows.groupby([rows["replica"], input_], sort=False, dropna=False).indices.values():
        result[at] = increments(samples[at], begun=bool(log[at[0]]), process=process[at])
    return result


def _floats(values: Values) -> np.ndarray:
    if isinstance(values, pd.Series):
        return values.to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(values, dtype=float)

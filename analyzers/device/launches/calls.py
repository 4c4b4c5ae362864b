"""Calls that launch: how long each keeps its thread, how long until the device begins, and what it was for."""

import numpy as np
import pandas as pd

from analyzers.device.launches.seen import Launched

COLUMNS = (
    "call",
    "launches",
    "executions",
    "call_s",
    "call_median_s",
    "call_max_s",
    "delay_median_s",
    "delay_p99_s",
    "execution_s",
    "execution_median_s",
    "shorter_executions",
)


def calls(ran: list[Launched]) -> pd.DataFrame:
    """One row per call by name, the most executions first; see COLUMNS.

    delay: from the end of the call to the start on the device, 0 where the device began before the call returned; where
    earlier work kept the device busy, it holds that. `shorter_executions`: those that took less than their call, of
    launches of one execution. A graph's call is counted once, by its first execution.
    """
    rows = pd.concat([_rows(part) for part in ran], ignore_index=True)
    out = []
    for name, mine in rows.groupby("call", sort=True, observed=True):
        first = mine.drop_duplicates(["capture", "begin", "thread"]) if mine["graph"].any() else mine
        single = mine[~mine["graph"]]
        out.append(
            {
                "call": name,
                "launches": len(first),
                "executions": len(mine),
                "call_s": first["took"].sum() / 1e9,
                "call_median_s": first["took"].median() / 1e9,
                "call_max_s": first["took"].max() / 1e9,
                "delay_median_s": first["delay"].median() / 1e9,
                "delay_p99_s": first["delay"].quantile(0.99) / 1e9,
                "execution_s": mine["ran"].sum() / 1e9,
                "execution_median_s": mine["ran"].median() / 1e9,
                "shorter_executions": int((single["ran"] < single["took"]).sum()),
            }
        )
    return pd.DataFrame(out, columns=list(COLUMNS)).sort_values("executions", ascending=False, ignore_index=True)


def _rows(ran: Launched) -> pd.DataFrame:
    at = np.flatnonzero(ran.known)
    begin, end = ran.call_start[at], ran.call_end[at]
    names = np.array([*ran.calls, ""], dtype=object)
    return pd.DataFrame(
        {
            "capture": ran.capture,
            "call": pd.Categorical(names[ran.call[at]]),
            "thread": ran.thread[at],
            "begin": begin,
            "took": end - begin,
            "delay": np.maximum(ran.start[at] - end, 0),
            "ran": ran.end[at] - ran.start[at],
            "graph": ran.graph[at],
        }
    )

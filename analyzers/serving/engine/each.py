"""What the samples of an engine say of each replica: how long requests waited there, for what, and how many."""

import numpy as np
import pandas as pd

from analyzers.serving.engine.bounds import HELD

LONG_S = 600.0
"""Of a stretch without requests: so long it takes to notice, to stop and to start again."""


def each_replica(rows: pd.DataFrame, words: np.ndarray) -> pd.DataFrame:
    """One row a replica, by name. `rows`: columns SAMPLES; `words`: the bound of each. Columns, in seconds (or samples,
    where those are not timed):

    replica      its name
    dt_s         its time; begin_s, end_s: when that begins and ends
    known_s      of that, in which it tells whether requests wait; waited_s: in which some do; idle_s: in which it tells
                 that none was there; lead_s: of that, before its first request; long_idle_s: the same beyond LONG_S of
                 each stretch; told_s: in which it tells what was preempted; put_back_s: in which some were
    preempted    how many were, 0 where it does not tell
    <bound>_s    of waited_s, for each bound of HELD
    waiting, running, kv_usage   means over waited_s, waiting_max the most; NaN where not known
    queue        of the time that requests are there, in which they wait: mean waiting / (mean waiting + mean running),
                 which by Little's law is also the part of a request's own time that it waits; NaN where not known
    """
    dt, waits = rows["dt_s"].astype(float), rows["waiting"] > 0
    idle = pd.Series(words == "idle", index=rows.index)
    began = ~idle.to_numpy() & ~(words == "untold")
    began = pd.Series(began, index=rows.index).groupby(rows["replica"], sort=False).cummax()
    both = rows["waiting"].notna() & rows["running"].notna()
    parts = {
        "dt_s": dt,
        "known_s": dt.where(rows["waiting"].notna()),
        "waited_s": dt.where(waits),
        "idle_s": dt.where(idle),
        "lead_s": dt.where(idle & ~began),
        "told_s": dt.where(rows["preempted"].notna()),
        "put_back_s": dt.where(rows["preempted"] > 0),
        "preempted": rows["preempted"],
        **{f"{bound}_s": dt.where(waits & (words == bound)) for bound in HELD},
        "waited": (rows["waiting"] * dt).where(both),
        "ran": (rows["running"] * dt).where(both),
    }
    for name in ("waiting", "running", "kv_usage"):
        parts[name] = (rows[name] * dt).where(waits)
        parts[f"{name}_known_s"] = dt.where(waits & rows[name].notna())
    found = pd.DataFrame(parts).groupby(rows["replica"], sort=True).sum()
    for name in ("waiting", "running", "kv_usage"):
        found[name] = found[name] / found.pop(f"{name}_known_s").where(lambda known: known > 0)
    there = found["waited"] + found["ran"]
    found["queue"] = found.pop("waited") / there.where(there > 0)
    found["long_idle_s"] = _long(rows["replica"], dt, idle).reindex(found.index, fill_value=0.0)
    found["begin_s"] = (rows["t_s"] - dt).groupby(rows["replica"], sort=True).min()
    found["end_s"] = rows["t_s"].groupby(rows["replica"], sort=True).max()
    found["waiting_max"] = rows["waiting"].groupby(rows["replica"], sort=True).max()
    return found.drop(columns="ran").reset_index()


def _long(replica: pd.Series, dt: pd.Series, idle: pd.Series) -> pd.Series:
    """By replica, seconds in which stretches without requests go on beyond LONG_S. Rows by replica in order of time."""
    stretch = (idle.ne(idle.shift()) | replica.ne(replica.shift())).cumsum()
    lasted = dt[idle].groupby([replica[idle], stretch[idle]], sort=False).sum()
    return (lasted - LONG_S).clip(lower=0).groupby(level=0).sum()

"""The recorded iterations, server by server and none of them twice.

A log that is fetched while its server runs and again at the end holds its first lines twice. Iterations of one name in
two inputs are of one server where those in the time (or, without times, the numbers) that both tell of are alike: in
number, duration and tokens.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyzers.serving.servers import ONE, servers
from analyzers.serving.yearless import in_their_year
from runs.tables import Tables, frame

CHANGES = 3  # of the duration, from which inputs that are alike are copies: servers at one steady load look alike too
ALIKE = 0.9  # of the iterations that two inputs share in time; the second in which one ended may be cut through
NEAR_NS = 10**9  # a log tells the second in which one ended
_SAME = ["order", "dur_ns", "prefill_tokens", "decode_requests"]
NEEDED = ["replica", "source", "start_ns", *_SAME]


def recorded(tables: Tables, columns: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """(iterations with these columns and NEEDED, `replica` the name of the server, what must be said of them)."""
    rows = frame(tables, "iterations", list(dict.fromkeys([*NEEDED, *columns])))
    rows, notes = once(in_their_year(tables, rows, "start_ns"))
    source = rows["source"].astype("string").fillna("")
    began = rows["start_ns"].groupby(source).ffill()  # one without a time is of the server of those around it
    named = rows.assign(start_ns=began.groupby(source).bfill())
    return rows.assign(replica=servers(tables, named, "start_ns")), notes


def once(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Iterations without those that another, fuller input tells too. Columns: NEEDED."""
    if rows["source"].nunique() < 2:
        return rows, []
    drop, notes = np.zeros(len(rows), dtype=bool), []
    label = rows["replica"].astype("string").fillna(ONE).to_numpy(dtype=object)
    source = rows["source"].astype("string").fillna("").to_numpy(dtype=object)
    for _, mine in rows.groupby(label, sort=False).indices.items():
        inputs = sorted(pd.Series(mine).groupby(source[mine]), key=lambda part: -len(part[1]))
        for n, (name, lesser) in enumerate(inputs):
            twice = np.zeros(len(lesser), dtype=bool)
            for _, fuller in inputs[:n]:
                twice |= _told_too(rows.iloc[lesser], rows.iloc[fuller])
            drop[lesser[twice]] = True
            if twice.any():
                notes.append(f"{twice.sum():,} passes of {name} are in another log of that server too, and count once.")
    return rows[~drop].reset_index(drop=True), notes


def _told_too(lesser: pd.DataFrame, fuller: pd.DataFrame) -> np.ndarray:
    """Which iterations of one input another tells too; none where the two tell of different servers."""
    at, there = (x["start_ns"].to_numpy(dtype=float, na_value=np.nan) for x in (lesser, fuller))
    by = "order" if np.isnan(at).all() or np.isnan(there).all() else "start_ns"
    shared = lesser[by].between(fuller[by].min(), fuller[by].max()).fillna(False).to_numpy(dtype=bool)
    keys, held = (pd.MultiIndex.from_frame(x[_SAME].fillna(-1)) for x in (lesser, fuller))
    first = np.flatnonzero(~held.duplicated())
    found = held[first].get_indexer(keys)
    alike = (found >= 0) & ~(np.abs(there[first][found] - at) > NEAR_NS)  # one without a time has its number alone
    several = lesser["dur_ns"].to_numpy(dtype=float, na_value=0.0)[alike]
    changes = np.count_nonzero(np.diff(several))
    copied = shared.any() and alike[shared].mean() >= ALIKE and changes >= CHANGES
    return alike if copied else np.zeros(len(lesser), dtype=bool)

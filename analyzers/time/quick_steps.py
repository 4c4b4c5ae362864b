"""Steps far faster than the usual one: timed before they had run, or truly so fast.

A loop that does not wait for its devices notes steps as they are handed over, and one of them then waits for all. Where
a profile shows that devices were as busy within such a step as within others, it was as fast as it says: the others
were slow.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from analyzers.device.activity import activities, profiled_steps, steps_of
from analyzers.intervals import Spans, joined, overlap_with, union
from analyzers.time.history import TOO_FAST, History
from runs.tables import Tables

BUSY = 0.5  # of what devices work in the median step: as much shows that the step ran within its time


def as_run(past: History, tables: Tables) -> History:
    """The history, with no doubt of steps in which a profile saw the devices work."""
    rows = past.rows
    fast = rows["implausible"] == TOO_FAST
    if not fast.any() or not tables.rows("op_events"):
        return past
    ran = fast & rows["step"].isin(_worked(tables))
    return replace(past, rows=rows.assign(implausible=rows["implausible"].where(~ran, ""))) if ran.any() else past


def _worked(tables: Tables) -> set[int]:
    """Numbers of the steps within which every device worked about as much as usual."""
    steps, least = profiled_steps(tables), []
    for activity in activities(tables):
        mine = steps_of(steps, activity.host, activity.device)
        windows = Spans(mine["start_ns"].to_numpy(dtype=np.int64), mine["end_ns"].to_numpy(dtype=np.int64))
        busy = overlap_with(union(joined([activity.computation, activity.communication])), windows)
        usual = float(np.median(busy)) if len(busy) else 0.0
        least.append(pd.Series(busy >= BUSY * usual, index=mine["step"].to_numpy()) if usual else pd.Series(dtype=bool))
    if not least:
        return set()
    seen = pd.concat(least)
    worked = seen.groupby(level=0).all()
    return {int(step) for step in worked.index[worked]}

"""Steps far faster than the usual one: timed before they had run, or truly so fast.

A loop that does not wait for its devices notes steps as they are handed over, and one of them then waits for all, or
the job's end does. Where a profile shows that devices were as busy within such a step as within others, it was as fast
as it says: the others were slow. So it was where no later step, and not the end, took what the quick ones lack.
"""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pandas as pd

from analyzers.device.activity import activities, profiled_steps, steps_of
from analyzers.intervals import Spans, joined, overlap_with, union
from analyzers.time.history import TOO_FAST, History
from runs.tables import Tables

HELD = 0.5  # of what quick steps lack: where less is found in what came after them, nothing waited for them
BUSY = 0.5  # of what devices work in the median step: as much shows that the step ran within its time


def as_run(past: History, tables: Tables) -> History:
    """The history, with no doubt of steps in which a profile saw the devices work, or for which nothing waited."""
    rows = past.rows
    fast = rows["implausible"] == TOO_FAST
    if not fast.any():
        return past
    worked = _worked(tables) if tables.rows("op_events") else set[int]()
    ran = fast & (rows["step"].isin(worked) | rows["segment"].isin(_waited_for_by_none(past)))
    return replace(past, rows=rows.assign(implausible=rows["implausible"].where(~ran, ""))) if ran.any() else past


def _waited_for_by_none(past: History) -> list[Hashable]:
    """Segments, by number, after whose quick steps nothing took longer by what these lack. Only goodput entries tell
    it, by which each step lasts until the next begins and the last until the job has ended: whoever hands steps over
    waits for them by then."""
    if past.origin != "goodput entries" or past.jobs is None:
        return []
    found = list[Hashable]()
    for segment, rows in past.rows.groupby("segment", sort=False):
        start = rows["start_ns"].to_numpy(dtype=np.int64)
        ends = past.jobs.own_ends[past.jobs.own_ends >= start[-1]]
        others = past.rows["start_ns"].to_numpy(dtype=np.int64)
        if not len(ends) or ((others > start[-1]) & (others < ends[0])).any():
            continue  # it was cut off, and what it had handed over with it
        took = np.append(np.diff(start), ends[0] - start[-1]).astype(float)
        fast = (rows["implausible"] == TOO_FAST).to_numpy()
        usual = rows["implausible"].eq("").to_numpy() & ~rows["first"].to_numpy(dtype=bool)
        if not fast.any() or not usual.any():
            continue
        beyond = took - float(np.median(took[usual]))
        later = np.arange(len(took)) > int(fast.argmax())
        if beyond[later & ~fast].clip(min=0.0).sum() < -HELD * beyond[fast].sum():
            found.append(segment)
    return found


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

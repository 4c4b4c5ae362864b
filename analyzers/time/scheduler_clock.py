"""A scheduler's account of a job beside the job's own log: whether it goes by another time zone, and which steps the
log counts over what was not held.

Accounts are written in the local time of whoever asked, and name no zone. The machines were held whenever a step was
taken: where that is not so as the times stand, but is so for all steps once the account is moved by whole hours (or
half and quarter ones, as some zones lie), it was written in another zone. The steps must fill what was held, as those
of another job would not; of several moves that fit the one that begins nearest before the first step counts.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analyzers.time.job_times import BY_SCHEDULER, NEVER, ONE_START_NS, Jobs
from runs.tables import Tables, frame

HOUR_NS = 3600 * 10**9
_UNITS_NS = (HOUR_NS, HOUR_NS // 2, HOUR_NS // 4)
_FARTHEST = 26  # hours from UTC-12 to UTC+14
_FILLED = 0.75  # of the time held that lies between the first and the last step of each start
_MOST = 1000  # starts of a job
_LOOKED_AT = 20_000  # steps that tell whether a move fits


def scheduler_shifts(tables: Tables, step_ns: np.ndarray, log: tuple[str, ...]) -> dict[str, int]:
    """{source: ns that its times are to be moved by} of accounts by another zone than the steps. `log`: sources of the
    steps, which have told their own clock."""
    if not tables.rows("lifecycle") or not len(step_ns):
        return {}
    rows = frame(tables, "lifecycle", ["start_ns", "end_ns", "detail", "source"], [("kind", "==", "job")])
    by = rows["detail"].astype(str).str.contains(BY_SCHEDULER, regex=False).to_numpy(dtype=bool)
    rows = rows[by & rows["start_ns"].notna().to_numpy(dtype=bool) & ~rows["source"].isin(list(log))]
    steps, found = np.sort(step_ns), dict[str, int]()
    for source, one in rows.groupby(rows["source"].astype(str)):
        one = one.sort_values("start_ns", kind="stable")
        start = one["start_ns"].to_numpy(dtype=np.int64)
        end = one["end_ns"].to_numpy(dtype=np.int64, na_value=NEVER)
        if len(start) <= _MOST and (shift := _shift(start, end, steps)):
            found[str(source)] = shift
    return found


def _shift(start: np.ndarray, end: np.ndarray, steps: np.ndarray) -> int:
    """How far the times held are to be moved so that all steps lie in them; 0 where they do, or nothing fits."""
    if _holds(start, end, steps):
        return 0
    about, every = int(steps[0] - start[0]), max(1, len(steps) // _LOOKED_AT)
    steps = np.append(steps[::every], steps[-1])
    for unit in _UNITS_NS:
        most = about // unit
        for n in range(most, most - _FARTHEST * HOUR_NS // unit, -1):
            by = n * unit
            if abs(by) <= _FARTHEST * HOUR_NS and _holds(start, end, steps - by) and _fills(start, end, steps - by):
                return by
    return 0


def _holds(start: np.ndarray, end: np.ndarray, steps: np.ndarray) -> bool:
    """Whether each step began while the machines were held, but for what clocks are apart."""
    at = np.searchsorted(start, steps + ONE_START_NS, side="right") - 1
    return bool((at >= 0).all() and (steps - ONE_START_NS <= end[at]).all())


def _fills(start: np.ndarray, end: np.ndarray, steps: np.ndarray) -> bool:
    """Whether what was held is filled with steps."""
    at = np.maximum(np.searchsorted(start, steps, side="right") - 1, 0)
    first, last = np.full(len(start), NEVER), np.zeros(len(start), dtype=np.int64)
    np.minimum.at(first, at, steps)
    np.maximum.at(last, at, steps)
    held = np.where(end < NEVER, end, np.maximum(last, start)) - start
    taken = np.where(last > 0, last - first, 0)
    return bool(taken.sum() >= _FILLED * held.sum())


def moved_said(shifts: Mapping[str, int]) -> list[str]:
    """What a note says of accounts that were moved."""
    return [
        f"{source}: its times are taken as {abs(by) / HOUR_NS:g} h {'later' if by > 0 else 'earlier'}, as if written "
        "in another time zone: only so every step lies within a time in which it held machines."
        for source, by in shifts.items()
    ]


def begun_again(steps: pd.DataFrame, start: np.ndarray, end: np.ndarray, jobs: Jobs) -> tuple[np.ndarray, np.ndarray]:
    """When steps began and ended. One that reaches over the end that cut an attempt short and the next start was not
    taken meanwhile: a log that tells of no restart counts it from the last step before, which may be a little later
    than that end. It began after the start."""
    following = np.searchsorted(jobs.starts, jobs.cut)
    cut, again = jobs.cut[following < len(jobs.starts)], jobs.starts[following[following < len(jobs.starts)]]
    if not len(cut):
        return start, end
    at = np.searchsorted(again, end, side="left") - 1
    before, begun = cut[np.maximum(at, 0)] + ONE_START_NS, again[np.maximum(at, 0)]
    start = np.where((at >= 0) & (start < np.minimum(before, begun)), begun, start)
    steps["start_ns"] = pd.array(start, dtype="Int64")
    steps["dur_ns"] = pd.array(end - start, dtype="Int64")
    return start, end

"""Steps that hung: far longer than the steps beside them, and nothing recorded says why.

A step hangs if it takes HANG_TIMES a usual step and HANG_LEAST_NS at least, less what the job recorded inside it
(saves, evaluations, fetching data, events of its own). Ten minutes is after how long PyTorch gives up a collective of
NCCL by default: whoever waits longer is no longer training. What goes beyond a usual step moved nothing forward. First
steps compile, and are judged as start-up; so does a slow one after a pause, since the program may have begun anew there
without taking a step again.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from analyzers.intervals import Spans, overlap_with, spans
from analyzers.time.job_times import of_the_job
from analyzers.time.step_streams import spoken
from analyzers.time.step_takes import PAUSE_NS, PAUSE_STEPS
from runs.tables import Tables, frame

HANG_TIMES = 100
HANG_LEAST_NS = 600 * 10**9
HANGS_NAMED = 3  # steps that notes name one by one
PEERS = 5  # steps that a usual one is taken from, at least
SPANS_MORE = ("job", "queued", "slices")  # kinds of `lifecycle` that say nothing of a step


def hung_ns(
    steps: pd.DataFrame, tables: Tables, without: Collection[str] = (), shifts: Mapping[str, int] | None = None
) -> np.ndarray:
    """For each step how long it hung, ns; 0 where it did not. `without`: inputs whose times are not believed. `shifts`:
    how far the clock of an input is to be moved, ns."""
    took = steps["dur_ns"].to_numpy(dtype=np.int64, na_value=-1)
    first = steps["first"].to_numpy(dtype=bool)
    peers = took[(took >= 0) & ~first]
    out = np.zeros(len(steps), dtype=np.int64)
    if len(peers) < PEERS:
        return out
    usual = int(np.median(peers))
    limit = max(HANG_TIMES * usual, HANG_LEAST_NS)
    at = np.flatnonzero((took > limit) & ~first)
    if not len(at):
        return out
    paused, fetched = _recorded(steps.iloc[at], took[at], tables, without, shifts)
    hung = took[at] - paused > limit
    out[at[hung]] = (took[at] - fetched - usual)[hung]
    return out


def slow_after_pause(start_ns: np.ndarray, end_ns: np.ndarray) -> np.ndarray:
    """Which steps took far longer than a usual one and began long after the one before had ended."""
    took = end_ns - start_ns
    long = PAUSE_STEPS * float(np.median(took)) if len(took) else 0.0
    pause = np.diff(start_ns, prepend=start_ns[:1]) - np.append(0, took[:-1])
    return (took > long) & (pause > max(long, PAUSE_NS))


def _recorded(
    steps: pd.DataFrame,
    took: np.ndarray,
    tables: Tables,
    without: Collection[str],
    shifts: Mapping[str, int] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """What the job recorded inside each step, and what of it was fetching data, ns; 0 without times of day."""
    none = np.zeros(len(steps), dtype=np.int64)
    if steps["start_ns"].isna().any():
        return none, none
    start = steps["start_ns"].to_numpy(dtype=np.int64)
    behind = int(start.min()) - max((0, *(shifts or {}).values()))  # most inputs are not moved
    life = frame(tables, "lifecycle", ["kind", "start_ns", "end_ns", "source"], [("end_ns", ">", behind)])
    life = of_the_job(life[life["start_ns"].notna() & ~life["kind"].isin(SPANS_MORE)], shifts, without)
    begun, ended = (life[c].to_numpy(dtype=np.int64) for c in ("start_ns", "end_ns"))
    windows, fetch = Spans(start, start + took), (life["kind"] == "data_loading").to_numpy(dtype=bool)
    return overlap_with(spans(begun, ended), windows), overlap_with(spans(begun[fetch], ended[fetch]), windows)


def hangs_said(steps: pd.DataFrame) -> list[str]:
    """Which steps hung, for how long, beside a usual one."""
    hung = steps[steps["hung_ns"] > 0]
    usual = steps.loc[~steps["first"].astype(bool), "dur_ns"].dropna()
    named = [
        f"Step {step} took {spoken(took)}, where a usual one takes {spoken(int(usual.median()))}: it "
        "hung, and what goes beyond a usual step counts as a hang, not as training."
        for step, took in zip(hung["step"].head(HANGS_NAMED), hung["dur_ns"].head(HANGS_NAMED).tolist(), strict=True)
    ]
    more = len(hung) - len(named)
    return named + ([f"{more:,} more {'step' if more == 1 else 'steps'} hung likewise."] if more else [])

"""What each step of a job held besides training, step by step: fetches, compiling, logging and the like, from the
threads that feed the devices. What is left of a step's duration without them shows what the job's own steps did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.device.activity import profiled_steps
from analyzers.device.host_work import COMPILING, HOST_CODE, LAUNCHING, STEPS, WAITING, ThreadWork
from analyzers.device.launches.backlog import Backlog, ran_in
from analyzers.device.launches.seen import launched
from analyzers.device.waiting import Fetches, fetches_of, host_fetches
from analyzers.intervals import NOTHING, Spans, joined, overlap_with, spans, union
from analyzers.time.job_past import kept_by_state
from analyzers.time.step_changes import step_changes
from runs.kept import Answers
from runs.tables import Tables, frame

MOST_BYTES = 32 << 20
MOST_CAPTURES = 64
"""Hosts' captures that are looked at, the first ones: what one host does in a step holds up all of them."""
FETCH = "fetch"
LITTLE = 0.1  # of the most that a step holds: less is not what is looked for
SAME = 0.7
"""Of what a log says that steps took, as a profile saw the same: more or less apart, they are not the same."""
REPORTED = ("data_loading", "checkpoint_save", "checkpoint_restore", "custom", "eval")
_kept = Answers(MOST_BYTES)


@dataclass(frozen=True)
class StepParts:
    """`rows`: kept, usual steps in order: step, start_ns, dur_s; those that a profile saw as it saw them. `parts`:
    index as `rows`, seconds of the slowest host by what its thread did (kinds of `host_work` and `fetch`); NaN in steps
    that no profile saw. `told_s`: seconds of each step in saves, evaluations and other events that the job itself
    reports, fetches among them where `fetched`; `stopped_s`: those that are no fetch."""

    rows: pd.DataFrame
    parts: pd.DataFrame
    told_s: np.ndarray
    stopped_s: np.ndarray
    fetched: bool

    @property
    def own_s(self) -> np.ndarray:
        """Seconds of each step without what the job reports as something else, such as saves, and fetches left in."""
        return np.maximum(self.rows["dur_s"].to_numpy(dtype=float) - self.stopped_s, 0.0)

    @property
    def seen(self) -> np.ndarray:
        """Which steps a profile saw."""
        return self.parts.notna().any(axis=1).to_numpy() if len(self.parts.columns) else np.zeros(len(self.rows), bool)

    def of(self, kind: str) -> pd.Series:
        """Seconds by step number of one kind; 0 where none was seen."""
        values = self.parts[kind] if kind in self.parts else pd.Series(np.nan, index=self.rows.index)
        return pd.Series(values.fillna(0.0).to_numpy(dtype=float), index=self.rows["step"].to_numpy())

    def steps_with(self, kind: str, least_s: float) -> list[int]:
        """Numbers of the steps that held more than that of it, and a tenth of what the one that held most did."""
        mine = self.of(kind)
        return [int(s) for s in mine.index[mine > max(least_s, LITTLE * float(mine.max()))]] if len(mine) else []

    def bare(self, but: Sequence[str] = ()) -> pd.DataFrame:
        """The steps (step, start_ns, dur_s) without these parts: a fetch, compiling, logging and the like taken off, a
        save or an evaluation as well, and of launches what a step has more of than others. `but`: kinds left in."""
        out = [FETCH, *but] if self.fetched else list(but)
        parts = self.parts.drop(columns=out, errors="ignore").fillna(0.0)
        if LAUNCHING in parts:
            if COMPILING in parts:  # which lies within the call that launches
                parts[LAUNCHING] = (parts[LAUNCHING] - parts[COMPILING]).clip(lower=0.0)
            parts[LAUNCHING] = (parts[LAUNCHING] - parts[LAUNCHING].median()).clip(lower=0.0)
        held = parts.sum(axis=1).to_numpy(dtype=float) + self.told_s
        return self.rows.assign(dur_s=np.maximum(self.rows["dur_s"].to_numpy(dtype=float) - held, 0.0))


def step_parts(tables: Tables, facts: Facts) -> StepParts:
    """Of every kept, usual step. Of a stored run they are worked out once."""
    return kept_by_state(_kept, tables, facts, lambda: _step_parts(tables, facts))


def _step_parts(tables: Tables, facts: Facts) -> StepParts:
    steps = _until_next(profiled_steps(tables))
    rows = _as_profiled(step_changes(tables, facts).rows[["step", "start_ns", "dur_s"]].reset_index(drop=True), steps)
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna().head(MOST_CAPTURES)
    fetches = host_fetches(tables)
    found: dict[tuple[str, int], float] = {}
    for capture, start_ns in captures[["capture", "start_ns"]].itertuples(index=False):
        mine = steps[steps["capture"] == int(capture)]
        if not len(mine):
            continue
        for thread, taken, backlog in _threads(tables, int(capture), int(start_ns), mine):
            for kind, own in _held(thread, taken, backlog):
                for step, ns in zip(taken["step"], own, strict=True):
                    key = kind, int(step)
                    found[key] = max(found.get(key, 0.0), float(ns) / 1e9)
        for step, seconds in _fetched(fetches, mine):
            found[FETCH, step] = max(found.get((FETCH, step), 0.0), seconds)
    return StepParts(rows, _table(found, rows["step"]), *_told(tables, rows))


def _threads(
    tables: Tables, capture: int, start_ns: int, steps: pd.DataFrame
) -> Iterator[tuple[dict[str, Spans], pd.DataFrame, Backlog]]:
    """(work by kind, steps, what was launched) of the thread that takes the steps; of several processes, whose devices
    took them apart, of each one's: a stage of a pipeline takes them later than the stage before it."""
    work, first = ThreadWork(tables, capture, start_ns), steps.drop_duplicates("step")
    devices = steps["device"].dropna().unique()
    stepping = work.stepping() if len(devices) else [STEPS]
    every = ran_in(tables, capture, start_ns)
    own: dict[str, pd.DataFrame] = {}
    for device in devices if len(stepping) > 1 else ():
        thread = work.steps_of(launched(tables, capture, start_ns, int(device)).threads)
        own.setdefault(thread, steps[steps["device"] == device].drop_duplicates("step"))
    for thread in stepping:
        mine = [ran for ran in every if thread not in own or work.steps_of(ran.threads) == thread]
        yield work.of(thread), own.get(thread, first), Backlog.of(mine)


def _held(work: dict[str, Spans], steps: pd.DataFrame, backlog: Backlog) -> Iterator[tuple[str, np.ndarray]]:
    """(kind, ns of each step) of a thread's work: what it does while devices still run what was launched before holds
    up no step. Launching and compiling as a whole, since the one lies within the other."""
    windows = Spans(steps["start_ns"].to_numpy(dtype=np.int64), steps["end_ns"].to_numpy(dtype=np.int64))
    held = {kind: s for kind, s in work.items() if kind not in (HOST_CODE, WAITING)}
    held = {kind: s if kind in (LAUNCHING, COMPILING) else backlog.after(s) for kind, s in held.items()}
    for kind, taken in held.items():
        inside = held[COMPILING] if kind == "evaluation" else NOTHING  # which is told as compiling
        yield kind, overlap_with(union(joined([taken, inside])), windows) - overlap_with(inside, windows)


def _fetched(fetches: Fetches, steps: pd.DataFrame) -> Iterator[tuple[int, float]]:
    """(step, seconds fetched in it) of each device that took it, or of all together."""
    for _, mine in steps.drop_duplicates(["step", "device"]).groupby("device", dropna=False):
        if (own := fetches_of(fetches, mine)) is not None:
            start, end = (mine[name].to_numpy(dtype=np.int64) for name in ("start_ns", "end_ns"))
            for step, ns in zip(mine["step"], overlap_with(own, Spans(start, end)), strict=True):
                yield int(step), float(ns) / 1e9


def _told(tables: Tables, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, bool]:
    """Seconds of each step in events that the job reports by its own clock, in those that are no fetch, and whether
    fetches are among them."""
    events = frame(tables, "lifecycle", ["kind", "host", "start_ns", "end_ns"])
    events = events[events["host"].isna() & events["kind"].isin(REPORTED)].dropna(subset=["start_ns", "end_ns"])
    if not len(events) or rows["start_ns"].isna().any():
        return np.zeros(len(rows)), np.zeros(len(rows)), False
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    windows = Spans(start, start + (rows["dur_s"].to_numpy(dtype=float) * 1e9).astype(np.int64))
    fetch = (events["kind"] == "data_loading").to_numpy()
    return _inside(events, windows), _inside(events[~fetch], windows), bool(fetch.any())


def _inside(events: pd.DataFrame, windows: Spans) -> np.ndarray:
    taken = union(spans(events["start_ns"].to_numpy(dtype=np.int64), events["end_ns"].to_numpy(dtype=np.int64)))
    return overlap_with(taken, windows) / 1e9


def _as_profiled(rows: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Steps that a profile saw last from one annotation to the next. A log may begin them at another place of the loop:
    what its step 3 holds may be what the loop did at the start of step 4."""
    mine = steps[steps["whole"] & (steps["host"] == _by_the_logs_clock(rows, steps))]
    mine = mine.drop_duplicates("step").set_index("step")
    seen = rows["step"].isin(mine.index).to_numpy()
    if not seen.any():
        return rows
    there = mine.loc[rows["step"][seen]]
    taken = (there["end_ns"] - there["start_ns"]).to_numpy(dtype=float) / 1e9
    logged = rows.loc[seen, "dur_s"].to_numpy(dtype=float)
    if not SAME <= taken.sum() / max(logged.sum(), 1e-9) <= 1 / SAME:
        return rows  # the numbers mean other steps
    out = rows.copy()
    out.loc[seen, "dur_s"] = taken
    if rows["start_ns"].isna().any():
        return out
    start = there["start_ns"].to_numpy(dtype=np.int64)
    off = int(np.median(start - rows.loc[seen, "start_ns"].to_numpy(dtype=np.int64)))
    out.loc[seen, "start_ns"] = start - (off if abs(off) > float(np.median(taken)) * 1e9 else 0)  # clocks that differ
    return out


def _by_the_logs_clock(rows: pd.DataFrame, steps: pd.DataFrame) -> str | None:
    """Of the hosts with the most profiled steps that of which the clock is nearest to the log's."""
    hosts = list(steps["host"].mode())
    starts = rows.drop_duplicates("step").set_index("step")["start_ns"].dropna()
    if len(hosts) < 2 or not len(starts):
        return hosts[0] if hosts else None
    seen = steps[steps["host"].isin(hosts) & steps["step"].isin(starts.index)]
    off = (seen["start_ns"].astype(float) - starts.reindex(seen["step"]).astype(float).to_numpy()).abs()
    return str(off.groupby(seen["host"]).median().idxmin()) if len(off) else hosts[0]


def _until_next(steps: pd.DataFrame) -> pd.DataFrame:
    """Profiled steps up to the start of the next of their capture: a loop may do much between its annotations."""
    by = steps.groupby(["host", "capture", "device"], dropna=False)
    after = by["start_ns"].shift(-1)
    return steps.assign(
        end_ns=after.fillna(steps["end_ns"]).astype("int64").clip(lower=steps["end_ns"]),
        whole=by["step"].shift(-1) == steps["step"] + 1,
    )


def _table(found: dict[tuple[str, int], float], step: pd.Series) -> pd.DataFrame:
    if not found:
        return pd.DataFrame(index=step.index)
    wide = pd.Series(found).unstack(0)
    return wide.reindex(step.to_numpy()).set_axis(step.index)

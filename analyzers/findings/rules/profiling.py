"""A profiler that starts and stops again and again: each time takes long, and all ranks wait for it."""

import numpy as np
import pandas as pd

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Steps, Told, Where
from analyzers.findings.places import spaced
from analyzers.intervals import Spans, overlap_with, spans, union
from analyzers.time.step_changes import step_changes
from errors import format as fmt
from runs.tables import frame

CAUSE = "profiler_inside"
MANY, SHORT = 5, 3.0
"""Captures of one host from which on, and steps in each up to which, a profiler goes on and off all the time."""
QUIET = 2  # steps beside them, at least: what a step takes without
FIRM = 5  # of so many it is known; of fewer, a job's first ones, the quickest tells, and all else may be the cost
SPREAD = 0.25
WHERE = ("idle_profiling", "unattributed", "idle_host_code")


def captured(seen: Seen) -> list[int]:
    """Numbers of the steps in which a profiler that goes on and off all the time was at work."""
    return [step for f in find(seen).findings for step in _steps(f)]


def _steps(finding: Finding) -> list[int]:
    place = finding.where.steps
    return list(range(place.first, place.last + 1, place.every)) if isinstance(place, Steps) else []


def find(seen: Seen) -> Told:
    captures = frame(seen.tables, "captures", ["host", "start_ns", "stop_ns"]).dropna()
    rows = step_changes(seen.tables, seen.facts).rows
    if not len(captures) or not len(rows):
        return Told()
    most = int(captures.groupby("host", observed=True).size().max())
    long_s = float((captures["stop_ns"] - captures["start_ns"]).astype(float).median()) / 1e9
    usual_s = float(rows["dur_s"].median())
    if most < MANY or long_s > SHORT * usual_s:
        why = f"{fmt.count(most, 'capture')} of a host, {fmt.duration(long_s)} each"
        return Told(ruled_out=(RuledOut(CAUSE, why, "steps"),))
    ran_s = _ran_s(rows, captures)
    numbers = [int(s) for s in rows.loc[ran_s > 0, "step"]]
    gain = _gain(seen, rows, ran_s)
    if gain is not None and gain.likely < seen.least:
        return Told(ruled_out=(RuledOut(CAUSE, "steps with a capture are about as quick as others", "steps"),))
    return Told(
        (
            Finding(
                cause=CAUSE,
                title=f"A profiler is started and stopped {most:,} times on a host, for {fmt.duration(long_s)} each.",
                gain=gain,
                draws={} if gain is None else seen.drawn(gain.likely, *WHERE),
                question="steps",
                confidence=0.85,
                where=Where(steps=spaced(numbers)),
                evidence=(
                    Evidence("captures of one host", float(most), "", "steps"),
                    Evidence("a usual step", usual_s, "s", "steps"),
                ),
            ),
        )
    )


def _ran_s(rows: pd.DataFrame, captures: pd.DataFrame) -> np.ndarray:
    """Seconds of each step in which a capture ran, by the times of both: a host whose clock is off by more than a step
    tells others."""
    if rows["start_ns"].isna().any():
        return np.zeros(len(rows))
    start = rows["start_ns"].to_numpy(dtype=np.int64)
    windows = Spans(start, start + (rows["dur_s"].to_numpy(dtype=float) * 1e9).astype(np.int64))
    ran = union(spans(captures["start_ns"].to_numpy(dtype=np.int64), captures["stop_ns"].to_numpy(dtype=np.int64)))
    return overlap_with(ran, windows) / 1e9


def _gain(seen: Seen, rows: pd.DataFrame, ran_s: np.ndarray) -> Band | None:
    """What these steps took beyond those without a capture; None where there are none of these."""
    within = ran_s > 0
    quiet = rows.loc[~within, "dur_s"]
    if len(quiet) < QUIET or not within.any():
        return None
    firm = len(quiet) >= FIRM
    usual = float(quiet.median() if firm else quiet.min())
    excess = float((rows.loc[within, "dur_s"] - usual).clip(lower=0).sum()) * seen.chips
    band = Band.within(excess, SPREAD)
    if firm:
        return band
    outside = float((rows["dur_s"] - ran_s)[within].clip(lower=0).sum()) * seen.chips
    return Band(band.low, band.likely, max(band.high, outside))


RULE = Rule(name="profiling", causes=(CAUSE,), find=find)

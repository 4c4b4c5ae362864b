"""Steps of which no input tells, between two of which it does.

Entries and lines of a job get lost on the way to where they are kept, and in a log that was rotated nothing tells of
the steps since the last line of the part before. Where numbers go on by several while the time between two steps is
that of as many usual ones, each of these was taken in its part of it: as one step the time would be a stall, as none it
would be lost.
"""

import numpy as np
import pandas as pd

from analyzers.intervals import NOTHING, Spans, overlap_with

FAR = 1.5  # of as many usual steps: time further from theirs by this factor may have been anything
MOST = 1_000_000  # steps that are added: numbers that are far apart are no reason to have room for all between them


def with_untold(steps: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows with one for each step that is not told, of which number, attempt, segment and start are known; and what
    must be said of them. Columns: step, start_ns, attempt, segment, first; in order of time."""
    number, start = (steps[c].to_numpy(dtype=np.int64, na_value=-1) for c in ("step", "start_ns"))
    ahead, gap = np.diff(number), np.diff(start)
    within = ~steps["first"].to_numpy(dtype=bool)[1:] & steps["start_ns"].notna().to_numpy()[1:]
    usual = gap[within & (ahead == 1)]
    if not len(usual):
        return steps, []
    taken = ahead * float(np.median(usual))
    lost = within & (ahead > 1) & (gap <= FAR * taken) & (gap >= taken / FAR)
    if not 0 < (ahead[lost] - 1).sum() <= MOST:
        return steps, []
    times = np.append(np.where(lost, ahead, 1), 1)
    of = np.repeat(np.arange(len(steps)), times)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    found = steps.take(of).reset_index(drop=True)
    known = ["step", "start_ns", "attempt", "segment", "first"]
    found.loc[nth > 0, [c for c in found.columns if c not in known]] = pd.NA
    found["step"] = pd.array(number[of] + nth, dtype=steps["step"].dtype)
    each = np.append(np.where(lost, gap // np.maximum(ahead, 1), 0), 0)
    moved = start[of] + nth * each[of]
    found["start_ns"] = pd.array(moved, dtype="Int64")
    found.loc[steps["start_ns"].isna().to_numpy()[of], "start_ns"] = pd.NA
    found["first"] = found["first"].to_numpy(dtype=bool) & (nth == 0)
    return found, _said(int((nth > 0).sum()), "start")


def with_unprinted(steps: pd.DataFrame, paused: Spans = NOTHING) -> tuple[pd.DataFrame, list[str]]:
    """The same of steps by lines, which tell how long each took: the time is that from the end of a step to the start
    of the next that is told; their FLOPs are those of the median step. Where every so many steps alone have a row, none
    is added, nor around what the job records of itself (`paused`): nothing tells before or behind it which were taken.
    Columns: dur_ns and model_flops_per_chip too."""
    number, start, took = (steps[c].to_numpy(dtype=np.int64, na_value=-1) for c in ("step", "start_ns", "dur_ns"))
    first, end = steps["first"].to_numpy(dtype=bool), start + took
    missing, free = np.diff(number) - 1, start[1:] - end[:-1]
    within = ~first[1:]
    if not (missing[within] > 0).any() or 2 * (missing[within] == 0).sum() < within.sum():
        return steps, []
    taken = missing * float(np.median(took[~first]))
    lost = within & (missing > 0) & (free <= FAR * taken) & (free >= taken / FAR)
    lost &= overlap_with(paused, Spans(end[:-1], np.maximum(start[1:], end[:-1]))) == 0
    if not 0 < missing[lost].sum() <= MOST:
        return steps, []
    times = np.append(np.where(lost, missing + 1, 1), 1)
    of = np.repeat(np.arange(len(steps)), times)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    each = np.append(np.where(lost, free // np.maximum(missing, 1), 0), 0)[of]
    found, added = steps.take(of).reset_index(drop=True), nth > 0
    known = ["step", "start_ns", "dur_ns", "attempt", "segment", "first"]
    found.loc[added, [c for c in found.columns if c not in known]] = pd.NA
    found["step"] = pd.array(number[of] + nth, dtype=steps["step"].dtype)
    found["start_ns"] = pd.array(np.where(added, end[of] + (nth - 1) * each, start[of]), dtype="Int64")
    found["dur_ns"] = pd.array(np.where(added, each, took[of]), dtype="Int64")
    found["first"] = first[of] & ~added
    if (flops := steps["model_flops_per_chip"].dropna()).size:
        found.loc[added, "model_flops_per_chip"] = float(flops.median())  # they trained what the others did
    return found, _said(int(added.sum()), "line")


def _said(count: int, what: str) -> list[str]:
    one = count == 1
    return [
        f"{count:,} {'step has' if one else 'steps have'} no {what} of {'its' if one else 'their'} own: between those "
        f"that are told there was time for {'it' if one else 'them'}, and each is taken to have had an even part of it."
    ]

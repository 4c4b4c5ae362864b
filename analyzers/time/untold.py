"""Steps of which no start is told, between two of which it is.

Entries of a job get lost on the way to where they are kept. Where numbers go on by several while the time between two
starts is that of as many usual steps, each of these was taken in its part of it: as one step the time would be a stall.
"""

import numpy as np
import pandas as pd

FAR = 1.5  # of as many usual steps: time further from theirs by this factor may have been anything


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
    if not lost.any():
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
    count = int((nth > 0).sum())
    one = count == 1
    return found, [
        f"{count:,} {'step has' if one else 'steps have'} no start of {'its' if one else 'their'} own: between those "
        f"that are told there was time for {'it' if one else 'them'}, and each is taken to have had an even part of it."
    ]

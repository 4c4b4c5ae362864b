"""Where the time of a step changed for good: what step logs alone tell of a slowdown (when and how much, not who)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.time.job_past import steps_taken
from analyzers.time.steps_alone import alone_ns
from runs.tables import Tables

SHORTEST = 6  # steps on either side of a change
CHANGE_SHARE = 0.02  # of the step: a smaller change of the median is not told
SIGMA = 4.0  # robust standard deviations of the mean that a change must exceed


@dataclass(frozen=True)
class StepChanges:
    """`rows`: kept, usual steps in order: step, start_ns (nullable), dur_s, level_s (median of its stretch).
    `stretches`: first_step, last_step, steps, median_s, of each stretch between changes. `quickest_s`: the median of
    the quickest stretch of 12 steps or more (of any length where there is none so long). `excess_s`: seconds by which
    steps exceed that, summed over steps that belong to slower stretches. None without steps."""

    rows: pd.DataFrame
    stretches: pd.DataFrame
    quickest_s: float | None
    excess_s: float | None


def step_changes(tables: Tables, facts: Facts) -> StepChanges:
    """Change points of the step time of the job's kept, usual steps, less the pauses that it recorded."""
    past = steps_taken(tables, facts)
    rows = past.rows.assign(dur_ns=alone_ns(tables, facts, past))
    usual = rows["kept"].astype(bool) & (rows["implausible"] == "") & ~rows["first"].astype(bool)
    rows = rows[usual & (rows["hung_ns"] == 0) & rows["dur_ns"].notna()]
    return changes_of(
        pd.DataFrame(
            {
                "step": rows["step"].to_numpy(dtype=np.int64),
                "start_ns": rows["start_ns"].to_numpy(),
                "dur_s": rows["dur_ns"].to_numpy(dtype=float) / 1e9,
            }
        )
    )


def changes_of(rows: pd.DataFrame) -> StepChanges:
    """Change points of these steps (step, start_ns, dur_s, in order), by binary segmentation of winsorised durations.
    O(n log n)."""
    out, dur = rows.reset_index(drop=True), rows["dur_s"].to_numpy(dtype=float)
    cuts = [0, *sorted(_cuts(dur, 0)), len(dur)]
    pairs = [(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]
    levels = [float(np.median(dur[a:b])) for a, b in pairs]
    out["level_s"] = np.repeat(levels, [b - a for a, b in pairs]) if pairs else dur
    step = out["step"].to_numpy()
    stretches = pd.DataFrame(
        {
            "first_step": [int(step[a]) for a, _ in pairs],
            "last_step": [int(step[b - 1]) for _, b in pairs],
            "steps": [b - a for a, b in pairs],
            "median_s": levels,
        }
    )
    if not pairs:
        return StepChanges(out, stretches, None, None)
    long = stretches[stretches["steps"] >= 2 * SHORTEST]
    base = float((long if len(long) else stretches)["median_s"].min())
    slower = out["level_s"] > base * (1 + CHANGE_SHARE)
    return StepChanges(out, stretches, base, float((out["dur_s"] - base)[slower].clip(lower=0).sum()))


def _cuts(dur: np.ndarray, offset: int) -> list[int]:
    """Positions at which the level changes."""
    n = len(dur)
    if n < 2 * SHORTEST:
        return []
    middle = np.median(dur)
    steps = np.abs(np.diff(dur))
    spread = 1.4826 * np.median(steps) / np.sqrt(2) + 0.005 * middle  # of neighbours: a change hardly touches it
    z = np.clip((dur - middle) / spread, -5, 5)
    total = np.cumsum(z)
    k = np.arange(SHORTEST, n - SHORTEST + 1)
    apart = np.abs(total[k - 1] / k - (total[-1] - total[k - 1]) / (n - k)) * np.sqrt(k * (n - k) / n)
    best = int(apart.argmax())
    at = int(k[best])
    before, after = float(np.median(dur[:at])), float(np.median(dur[at:]))
    if apart[best] < SIGMA + np.sqrt(2 * np.log(n)) or abs(after - before) < CHANGE_SHARE * min(before, after):
        return _bump(dur, z, CHANGE_SHARE * middle / spread / 2, offset)
    return [*_cuts(dur[:at], offset), at + offset, *_cuts(dur[at:], offset + at)]


def _bump(dur: np.ndarray, z: np.ndarray, least: float, offset: int) -> list[int]:
    """Positions at which a stretch within begins and ends that is unlike all around it: of a long job it is too short
    to move the median of either side of any one cut. `z`: durations standardised, `least`: half a change, so."""
    n = len(dur)
    sign = max((1, -1), key=lambda way: _dearest(way * z - least)[2])
    begin, end, _ = _dearest(sign * z - least)
    if not 0 < end - begin < n:
        return []
    between = (z[begin:end].mean() + (z.sum() - z[begin:end].sum()) / (n - end + begin)) / 2
    begin, end, _ = _dearest(sign * (z - between))  # by half its own height its ends are sharpest
    inside = end - begin
    if inside < SHORTEST or n - inside < SHORTEST:
        return []
    apart = abs(z[begin:end].mean() - (z.sum() - z[begin:end].sum()) / (n - inside))
    apart *= np.sqrt(inside * (n - inside) / n)
    within = float(np.median(dur[begin:end]))
    around = float(np.median(np.concatenate((dur[:begin], dur[end:]))))
    if apart < SIGMA + np.sqrt(4 * np.log(n)) or abs(within - around) < CHANGE_SHARE * min(within, around):
        return []
    parts = [(a, b) for a, b in ((0, begin), (begin, end), (end, n)) if b > a]
    return sorted({a + offset for a, _ in parts if a} | {c for a, b in parts for c in _cuts(dur[a:b], offset + a)})


def _dearest(values: np.ndarray) -> tuple[int, int, float]:
    """Begin and end of the stretch with the largest sum, and that sum."""
    path = np.concatenate(([0.0], np.cumsum(values)))
    lowest = np.minimum.accumulate(path)
    end = int((path - lowest).argmax())
    return int(path[: end + 1].argmin()), end, float(path[end] - lowest[end])

"""What mending a straggler would give back: what the others waited for it, and its own excess.

In a step that was compared all ranks would have been done sooner by the margin, the late one as well: the gain is
blame x (others + 1). A profile covers some of a job's steps. Of steps that it does not cover, those next to steps in
which the rank was late (no compared step between) may have held it up as well; the job's own step times tell by how
much they exceed what a step takes without it.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.ranks.stragglers.blame import Lateness


@dataclass(frozen=True)
class Gain:
    """Chip-seconds. `low`: of the steps compared alone. `likely`: with the steps beside them that no profile covers,
    each by its own time beyond a step without the delay, up to the mean of those compared. `high`: with each of those
    steps at the mean and 1.96 standard errors. `steps`: how many such steps there are."""

    low: float
    likely: float
    high: float
    steps: int = 0

    def to_dict(self) -> dict[str, float | int | str]:
        return {
            "low": self.low,
            "likely": self.likely,
            "high": self.high,
            "basis": basis(self.steps),
        }


def basis(steps: int) -> str:
    """Where a gain comes from, in words."""
    if not steps:
        return "what the others waited and the late rank's own excess, in the steps compared"
    return (
        "what the others waited and the late rank's own excess, in the steps compared; of "
        f"{steps:,} {'step' if steps == 1 else 'steps'} beside them without a profile, by the job's own step times"
    )


def gain(x: Lateness, rank: int, where: np.ndarray, times: pd.DataFrame, period: int, per_chip: int) -> Gain:
    """The gain of one rank over the columns `where`. `times`: step and dur_s of the job's own log; `period`: it is
    late at every so many steps."""
    others = max(int(x.others[rank]), 1)
    each = x.charge_s[rank, where] / others
    chips = (others + 1) / per_chip
    measured = float(each.sum()) * chips
    beside = _beside(x, where, times, period)
    if not len(beside) or not len(each):
        return Gain(measured, measured, measured)
    mean = float(each.mean())
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else mean
    late = times["dur_s"][times["step"].isin(x.step[where])]
    quiet = float(late.median() - np.median(each)) if len(late) else 0.0
    excess = np.clip(beside["dur_s"].to_numpy(dtype=float) - quiet, 0, mean)
    high = len(beside) * (mean + 1.96 * error)
    return Gain(measured, measured + float(excess.sum()) * chips, measured + high * chips, len(beside))


def _beside(x: Lateness, where: np.ndarray, times: pd.DataFrame, period: int) -> pd.DataFrame:
    """Steps of the log that were not compared and lie next to the stretch in which the rank was late, or within it."""
    if x.how == "repetition" or not len(times):
        return times[:0]
    known = np.unique(x.step)
    first, last = int(x.step[where].min()), int(x.step[where].max())
    step = times["step"].to_numpy(dtype=np.int64)
    at = np.searchsorted(known, step)
    before = known[np.maximum(at - 1, 0)]
    after = known[np.minimum(at, len(known) - 1)]
    near = ((before >= first) & (before <= last) & (at > 0)) | ((after >= first) & (after <= last) & (at < len(known)))
    near &= ~np.isin(step, known)
    if period > 1:
        near &= step % period == first % period
    return times[near]

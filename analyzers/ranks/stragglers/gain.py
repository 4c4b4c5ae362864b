"""What mending a straggler would give back: what the others waited for it, and its own excess.

In a step that was compared all ranks would have been done sooner by the margin, the late one as well: the gain is
blame x (others + 1). A profile covers some of a job's steps. Of steps that it does not cover, those next to steps in
which the rank was late (no compared step between) may have been held up as well: those are counted whose stretch of the
job's own step times is as slow, by how much its level exceeds what a step takes without the delay. By single steps the
noise of a long job would add up to a loss that it never had.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.ranks.stragglers.blame import Lateness

SLOW = 0.5  # of the mean delay: what a stretch beside must exceed a step without it by


@dataclass(frozen=True)
class Gain:
    """Chip-seconds. `low`: of the steps compared alone. `likely`: with the steps beside them that no profile covers and
    that are as slow, by the level of their stretch beyond a step without the delay, up to the mean of those compared.
    `high`: with each of those steps at the mean and 1.96 standard errors. `steps`: how many such steps there are."""

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
        f"{steps:,} {'step' if steps == 1 else 'steps'} beside them that were not compared, by the job's own step times"
    )


def gain(x: Lateness, rank: int, where: np.ndarray, times: pd.DataFrame, period: int, per_chip: int) -> Gain:
    """The gain of one rank over the columns `where`. `times`: as `StepChanges.rows`; `period`: it is
    late at every so many steps."""
    others = max(int(x.others[rank]), 1)
    each = x.charge_s[rank, where] / others
    chips = (others + 1) / per_chip
    measured = float(each.sum()) * chips
    if x.how == "repetition" or not len(times) or not len(each):
        return Gain(measured, measured, measured)
    mean = float(each.mean())
    error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else mean
    late = times["dur_s"][times["step"].isin(x.step[where])]
    quiet = float(late.median() - np.median(each)) if len(late) else 0.0
    excess = _beside(x, where, times, period, quiet + SLOW * mean) - quiet
    excess = np.minimum(excess, mean)
    high = len(excess) * (mean + 1.96 * error)
    return Gain(measured, measured + float(excess.sum()) * chips, measured + high * chips, len(excess))


def _beside(x: Lateness, where: np.ndarray, times: pd.DataFrame, period: int, slow_s: float) -> np.ndarray:
    """Usual times of the steps of the log that were not compared, and that lie within the stretch in which the rank was
    late or next to it, with none quicker than `slow_s` between."""
    known = np.unique(x.step)
    first, last = int(x.step[where].min()), int(x.step[where].max())
    step = times["step"].to_numpy(dtype=np.int64)
    at = np.searchsorted(known, step)
    before = known[np.maximum(at - 1, 0)]
    after = known[np.minimum(at, len(known) - 1)]
    near = ((before >= first) & (before <= last) & (at > 0)) | ((after >= first) & (after <= last) & (at < len(known)))
    near &= ~np.isin(step, known)
    level = times["level_s"].to_numpy(dtype=float)
    if period > 1:  # no stretch, but steps of their own level
        near &= step % period == first % period
        own = np.median(times["dur_s"].to_numpy(dtype=float)[near]) if near.any() else 0.0
        return np.full(int(near.sum()) if own > slow_s else 0, own)
    slow = level > slow_s
    stretch = np.cumsum(np.concatenate(([0], np.diff(slow.astype(np.int8)) != 0)))
    mine = np.unique(stretch[(step >= first) & (step <= last)])
    return level[near & slow & np.isin(stretch, mine)]

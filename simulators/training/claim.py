"""A claim worked through: 15 % more goodput from elastic training on 49,152 chips. A talk made it, no paper was found.

Both jobs save at the best interval and fail every M = H / n seconds. One restarts the whole at each failure (a wait D,
a restart R), the other goes on with K - 1 of K slices for D, after a pause of constant length, and pauses again to take
the slice in (`simulators.recovery`). With the goodput of each by its closed form:

    gain(H, D) = elastic(H, D) - whole(H, D)

Whether 15 % are points of all time or a ratio is not said: `gains` tells the goodput of both, so either can be asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulators.checkpointing import Job, goodput, optimal_s
from simulators.recovery import elastic_goodput
from simulators.training.machine import Floats

CHIPS, GAIN = 49_152, 0.15
CHIPS_PER_NODE, SLICES = 4, 48
SAVE_S, RESTART_S, RESUME_S = 10.0, 120.0, 60.0
RATES = (2.34, 6.5)  # failures per 1,000 node-days, as published for two research clusters
MTTF_CHIP_H = tuple(24 * 1000 / rate * CHIPS_PER_NODE for rate in RATES)
WAITS_S = (300.0, 600.0, 1200.0)


@dataclass(frozen=True)
class Gains:
    """Goodput of both jobs by failure rate (rows, `mttf_chip_s`) and wait (columns, `wait_s`)."""

    mttf_chip_s: Floats
    wait_s: Floats
    whole: Floats
    elastic: Floats

    @property
    def points(self) -> Floats:
        """What elastic training adds, as a share of all time."""
        return self.elastic - self.whole

    @property
    def ratio(self) -> Floats:
        """By how much of the other's goodput it is more; infinite where the other keeps nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.whole > 0, self.points / self.whole, np.inf)

    def holds(self, gain: float = GAIN) -> np.ndarray:
        """Where it gains so much in points at least."""
        return self.points >= gain


def failing_where(
    job: Job, chips: int, slices: int, resume_s: float, mttf_chip_s: Sequence[float], gain: float = GAIN
) -> tuple[float, float] | None:
    """The least and the greatest of these mean times to failure of a chip at which the job of that wait gains so much
    in points; None where none does."""
    found = gains(job, chips, slices, resume_s, mttf_chip_s, [job.wait_s])
    holding = found.mttf_chip_s[found.holds(gain)[:, 0]]
    return (float(holding.min()), float(holding.max())) if len(holding) else None


def gains(
    job: Job, chips: int, slices: int, resume_s: float, mttf_chip_s: Sequence[float], wait_s: Sequence[float]
) -> Gains:
    """Over mean times to failure of a chip, each long enough for a save of the whole job, and waits; of `job` save and
    restart hold."""
    shape = (len(mttf_chip_s), len(wait_s))
    whole, elastic = np.empty(shape), np.empty(shape)
    for i, of_chip in enumerate(mttf_chip_s):
        for j, wait in enumerate(wait_s):
            this = replace(job, mttf_s=of_chip / chips, wait_s=wait)
            best = optimal_s(this)
            whole[i, j] = float(goodput(this, best))
            elastic[i, j] = elastic_goodput(this, best, slices, resume_s)
    return Gains(np.array(mttf_chip_s, float), np.array(wait_s, float), whole, elastic)

"""Lives of a training job: failures drawn one by one over its whole length, many times over.

A job on n chips, each of which fails every H hours, fails every M = H / n (Poisson). A life begins with a restart,
works for `interval_s`, saves, and so on (`simulators.checkpointing`). A failure takes it back to the last safe
checkpoint:

    waiting      until the machine is replaced: `wait_s`, or, with `spares`, until one is free. A failed machine comes
                 back as a spare after `repair_s`.
    elastic      on K slices it pauses for `resume_s` instead, goes on with those that are left, and pauses again when
                 the slice comes back after its wait; the last slice is never given up.

What a life's time went to adds up: kept work, saving, work lost to failures, restarting, waiting, and (elastic) slices
that were away. A closed form stands beside it: `checkpointing.goodput`, and `recovery.elastic_goodput`.
"""

from dataclasses import dataclass

import numpy as np

from errors import QuestionError
from simulators.checkpointing import Job, goodput, need_seconds
from simulators.recovery import elastic_goodput
from simulators.training.machine import Floats

ACCOUNTS = ("kept", "saving", "lost_work", "restarting", "waiting", "slices_away")
MOST_DRAWN = 50_000_000  # failures of all lives together: some minutes
MOST_SPARES, MOST_SLICES = 4096, 1024


@dataclass(frozen=True, kw_only=True)
class Life:
    """A job, how often it saves, and what it falls back on. `slices` above 1: elastic, with pauses of `resume_s`."""

    job: Job
    interval_s: float
    span_s: float
    spares: int = 0
    repair_s: float = 0.0
    slices: int = 1
    resume_s: float = 0.0

    def __post_init__(self) -> None:
        need_seconds("the interval", self.interval_s)
        need_seconds("the length of the job", self.span_s)
        if not 0 <= self.spares <= MOST_SPARES:
            raise QuestionError(f"{self.spares:,} spares", expected=f"at most {MOST_SPARES:,}")
        if not 1 <= self.slices <= MOST_SLICES:
            raise QuestionError(f"{self.slices:,} slices", expected=f"from 1 to {MOST_SLICES:,}")

    @property
    def failures(self) -> float:
        """How many are to be expected, at most: time in which none can happen counts as well."""
        return self.span_s / self.job.mttf_s

    def closed_form(self) -> float | None:
        """Goodput of a life without end; None with spares, for which there is none."""
        if self.spares:
            return None
        if self.slices > 1:
            return elastic_goodput(self.job, self.interval_s, self.slices, self.resume_s)
        return float(goodput(self.job, self.interval_s))


@dataclass(frozen=True)
class Lives:
    """Seconds of each life by account (ACCOUNTS), which add up to its span, and its failures."""

    seconds: dict[str, Floats]
    failures: Floats
    span_s: float

    @property
    def goodput(self) -> Floats:
        """The share of each life that became kept work."""
        return self.seconds["kept"] / self.span_s


def live(life: Life, lives: int, seed: int = 0) -> Lives:
    """So many lives. Raises QuestionError where more failures would be drawn than is reasonable."""
    if life.failures * lives > MOST_DRAWN:
        raise QuestionError(
            f"{life.failures:,.0f} failures in each of {lives:,} lives",
            expected=f"at most {MOST_DRAWN:,} together",
            advice="Draw fewer lives, or fewer days",
        )
    drawn = _Drawn(life, lives, np.random.default_rng(seed))
    while drawn.going.any():
        drawn.until_a_failure()
        drawn.fall_back()
    return Lives(drawn.seconds, drawn.failures, life.span_s)


class _Drawn:
    """All lives at once, from one failure to the next."""

    def __init__(self, life: Life, lives: int, rng: np.random.Generator):
        self.life, self.rng = life, rng
        self.now = np.zeros(lives)
        self.restart = np.full(lives, life.job.restart_s)  # what comes first after a failure
        self.seconds = {name: np.zeros(lives) for name in ACCOUNTS}
        self.failures = np.zeros(lives)
        self.free = np.zeros((lives, life.spares)) if life.spares else None  # when each spare is there
        self.back = np.full((lives, life.slices - 1), -np.inf)  # when slices that are away come back

    @property
    def going(self) -> np.ndarray:
        return self.now < self.life.span_s

    def _spend(self, account: str, seconds: Floats) -> None:
        """Time passes, but not beyond the end of the life."""
        spent = np.clip(np.minimum(seconds, self.life.span_s - self.now), 0.0, None)
        self.seconds[account] += spent
        self.now += spent

    def until_a_failure(self) -> None:
        """Restart and work until the clock runs out or the life does: what is safe by then is kept."""
        clock = self.rng.exponential(self.life.job.mttf_s, len(self.now))
        restarting = np.minimum(self.restart, clock)
        self._spend("restarting", restarting)
        running = np.clip(np.minimum(clock - restarting, self.life.span_s - self.now), 0.0, None)
        ended = self.now + running >= self.life.span_s
        paused, missing = self._away(running)
        self._work(running - paused, missing, ended)
        self._spend("restarting", paused)
        self.failed = ~ended & self.going

    def _work(self, running: Floats, missing: Floats, ended: np.ndarray) -> None:
        """Split a stretch into saved work, saves, and what the failure takes back. At a life's end nothing is."""
        job, tau = self.life.job, self.life.interval_s
        cycle = tau + job.blocking_s
        begun = np.floor(running / cycle)
        safe = np.where(running >= tau + job.save_s, np.floor((running - tau - job.save_s) / cycle) + 1, 0.0)
        within = running - begun * cycle
        worked = begun * tau + np.minimum(within, tau)
        kept = np.where(ended, worked, safe * tau)
        self.seconds["slices_away"] += kept * missing
        self.seconds["kept"] += kept * (1 - missing)
        self.seconds["lost_work"] += worked - kept
        self.seconds["saving"] += running - worked
        self.now += running

    def _away(self, running: Floats) -> tuple[Floats, Floats]:
        """(seconds of pauses in which slices come back, the share of slices that is missing on average)."""
        if self.life.slices == 1:
            return np.zeros_like(running), np.zeros_like(running)
        end = (self.now + running)[:, None]
        returning = ((self.back > self.now[:, None]) & (self.back <= end)).sum(axis=1)
        paused = np.minimum(returning * self.life.resume_s, running)
        away = np.clip(np.minimum(self.back, end) - self.now[:, None], 0.0, None).sum(axis=1)
        return paused, np.divide(away, running * self.life.slices, out=np.zeros_like(away), where=running > 0)

    def fall_back(self) -> None:
        """What a failure costs before work goes on: a wait and a restart, or a pause with fewer slices."""
        self.failures += self.failed
        wait = np.where(self.failed, self._wait(), 0.0)
        if self.life.slices == 1:
            self._spend("waiting", wait)
            self.restart = np.full_like(self.now, self.life.job.restart_s)
            return
        self.restart = np.full_like(self.now, self.life.resume_s)
        place = np.argmin(self.back, axis=1)
        rows = np.flatnonzero(self.failed & (self.back.min(axis=1) <= self.now))  # else the last one restarts in place
        self.back[rows, place[rows]] = (self.now + wait)[rows]

    def _wait(self) -> Floats:
        """Seconds until a machine is there: the earliest spare, whose place the failed machine takes once repaired."""
        if self.free is None:
            return np.full_like(self.now, self.life.job.wait_s)
        place = np.argmin(self.free, axis=1)
        rows = np.flatnonzero(self.failed)
        waits = np.zeros_like(self.now)
        waits[rows] = np.maximum(self.free[rows, place[rows]] - self.now[rows], 0.0) + self.life.job.wait_s
        self.free[rows, place[rows]] = self.now[rows] + self.life.repair_s
        return waits

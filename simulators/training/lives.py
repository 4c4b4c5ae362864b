"""Lives of a training job: failures drawn one by one over its whole length, many times over.

A job on n chips, each of which fails every H hours, fails every M = H / n (Poisson). A life begins with a restart,
works for `interval_s`, saves, and so on (`simulators.checkpointing`). A failure takes it back to the last safe
checkpoint:

    waiting      until the machine is replaced: `wait_s`, or, with `spares`, until one is free. A failed machine comes
                 back as a spare after `repair_s`.
    elastic      on K slices it pauses for `resume_s` instead, goes on with those that are left, and pauses again when
                 the slice comes back after its wait; one that comes back during a pause is taken in by one more after
                 it. The last slice is never given up.
    two tiers    every n-th save is remote, the others local: `simulators.two_tier` says which failure takes it how far
                 back. A life begins with a restart from remote storage.

What a life's time went to adds up: kept work, saving, work lost to failures, restarting, waiting, and (elastic) slices
that were away. A closed form stands beside it: `checkpointing.goodput`, `recovery.elastic_goodput`, and
`two_tier.two_tier_goodput`.
"""

from dataclasses import dataclass

import numpy as np

from errors import QuestionError
from simulators.checkpointing import LONGEST_S, Job, goodput, need_seconds
from simulators.recovery import elastic_goodput
from simulators.training.machine import Floats
from simulators.two_tier import MOST as MOST_LOCAL
from simulators.two_tier import Local, two_tier_goodput

ACCOUNTS = ("kept", "saving", "lost_work", "restarting", "waiting", "slices_away")
LOW, HIGH = 5, 95  # per cent of lives below the ends of a range
MOST_DRAWN = 50_000_000  # failures of all lives together, times the slices that are away at once: some minutes
MOST_FAILURES = 100_000  # of one life: as many steps, whatever the number of lives
MOST_SPARES, MOST_SLICES = 4096, 1024


@dataclass(frozen=True, kw_only=True)
class Life:
    """A job, how often it saves, and what it falls back on. `slices` above 1: elastic, with pauses of `resume_s`. With
    a `local` tier `interval_s` is the work between two saves of either kind, and every `saves_per_remote`-th is
    remote."""

    job: Job
    interval_s: float
    span_s: float
    spares: int = 0
    repair_s: float = 0.0
    slices: int = 1
    resume_s: float = 0.0
    local: Local | None = None
    saves_per_remote: int = 1

    def __post_init__(self) -> None:
        need_seconds("the interval", self.interval_s)
        need_seconds("the length of the job", self.span_s)
        if not 0 <= self.spares <= MOST_SPARES:
            raise QuestionError(f"{self.spares:,} spares", expected=f"at most {MOST_SPARES:,}")
        if not 1 <= self.slices <= MOST_SLICES:
            raise QuestionError(f"{self.slices:,} slices", expected=f"from 1 to {MOST_SLICES:,}")
        if not 1 <= self.saves_per_remote <= (MOST_LOCAL if self.local else 1):
            most = f"from 1 to {MOST_LOCAL:,}" if self.local else "1 without a local tier"
            raise QuestionError(f"{self.saves_per_remote:,} saves for one that is remote", expected=most)
        if self.local and self.local.save_s > self.job.mttf_s:
            raise QuestionError(
                f"a local save of {self.local.save_s:g} s where a failure comes every {self.job.mttf_s:g} s",
                expected="one shorter than the mean time to failure",
                advice=f"Leave the local tier away, or save within the {self.job.save_s:g} s that a remote save takes",
            )
        if 2 * self.resume_s > LONGEST_S:
            raise QuestionError(f"a pause of {self.resume_s:g} s", expected=f"at most {LONGEST_S / 2:g} s")
        if self.local and self.slices > 1:
            raise QuestionError("a local tier for an elastic job", expected="one of the two")

    @property
    def failures(self) -> float:
        """How many are to be expected, at most: restarts that fail count as well."""
        return self.span_s / (self.job.mttf_s + (self.job.wait_s if self.slices == 1 else 0.0))

    @property
    def away(self) -> float:
        """Slices that are away at once, to be expected: as many are held of each life. At least 1."""
        return max(1.0, min(self.slices - 1, self.job.wait_s / self.job.mttf_s + 1))

    def closed_form(self) -> float | None:
        """Goodput of a life without end; None with spares, for which there is none."""
        if self.spares:
            return None
        if self.slices > 1:
            return elastic_goodput(self.job, self.interval_s, self.slices, self.resume_s)
        if self.local:
            return two_tier_goodput(self.job, self.local, self.interval_s, self.saves_per_remote)
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

    @property
    def range(self) -> tuple[float, float]:
        """Between which nine of ten lives lie, the mean among them: where fewer than one in twenty fails, both ends are
        that of a life without a failure, which the mean is not."""
        low, high = np.percentile(self.goodput, (LOW, HIGH))
        mean = float(self.goodput.mean())
        return min(float(low), mean), max(float(high), mean)


def live(life: Life, lives: int, seed: int = 0) -> Lives:
    """So many lives. Raises QuestionError where more failures would be drawn than is reasonable."""
    if life.failures > (most := min(MOST_FAILURES, MOST_DRAWN / lives / life.away)):
        days = life.span_s / 86_400 * most / life.failures
        raise QuestionError(
            f"{life.failures:,.0f} failures in each of {lives:,} lives",
            expected=f"at most {most:,.0f} in each",
            advice=f"Draw fewer lives or fewer days: {days:.2g} d would do"
            if most < MOST_FAILURES
            else f"Draw fewer days: {days:.2g} d would do",
        )
    drawn = (_Tiered if life.local else _Drawn)(life, lives, np.random.default_rng(seed))
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
        self.back = np.full((lives, 1), -np.inf)  # when slices that are away come back, in as many columns as it takes
        self.late = np.zeros(lives, bool)  # whether one came back during the pause before a stretch

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
        restarting, begun = np.minimum(self.restart, clock), self.now.copy()
        self._spend("restarting", restarting)
        self.late = ((self.back >= begun[:, None]) & (self.back <= self.now[:, None])).any(axis=1)
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
        paused = np.minimum((returning + self.late) * self.life.resume_s, running)
        away = np.clip(np.minimum(self.back, end) - self.now[:, None], 0.0, None).sum(axis=1)
        return paused, np.divide(away, running * self.life.slices, out=np.zeros_like(away), where=running > 0)

    def fall_back(self) -> None:
        """What a failure costs before work goes on: a wait and a restart, or a pause with fewer slices."""
        self.failures += self.failed
        wait = np.where(self.failed, self._wait(), 0.0)
        if self.life.slices == 1:
            self._spend("waiting", wait)
            self.restart = self._restart()
            return
        self.restart = np.full_like(self.now, self.life.resume_s)
        if self.back.shape[1] < self.life.slices - 1 and (self.failed & (self.back.min(axis=1) > self.now)).any():
            self.back = np.column_stack((self.back, np.full(len(self.now), -np.inf)))
        place = np.argmin(self.back, axis=1)
        rows = np.flatnonzero(self.failed & (self.back.min(axis=1) <= self.now))  # else the last one restarts in place
        self.back[rows, place[rows]] = (self.now + wait)[rows]

    def _restart(self) -> Floats:
        """Seconds of the next restart of the whole job."""
        return np.full_like(self.now, self.life.job.restart_s)

    def _wait(self) -> Floats:
        """Seconds until a machine is there: the earliest spare, whose place the failed machine takes once repaired."""
        if self.free is None:
            return np.full_like(self.now, self.life.job.wait_s)
        rows = np.flatnonzero(self.failed)
        place = (self.failures[rows].astype(int) - 1) % self.life.spares  # a repair is as long for each: taken in turn
        waits = np.zeros_like(self.now)
        waits[rows] = np.maximum(self.free[rows, place] - self.now[rows], 0.0) + self.life.job.wait_s
        self.free[rows, place] = self.now[rows] + self.life.repair_s
        return waits


class _Tiered(_Drawn):
    """The same with two tiers. A failure that the local copies do not survive also takes back what was kept before."""

    def __init__(self, life: Life, lives: int, rng: np.random.Generator):
        super().__init__(life, lives, rng)
        self.saved = np.zeros(lives)  # saves since the last remote one that the next start finds
        self.from_remote = np.ones(lives, bool)

    def _work(self, running: Floats, missing: Floats, ended: np.ndarray) -> None:
        """As above. Saves are counted from the start of the stretch; the remote one before it lies `saved` back."""
        n, tau = self.life.saves_per_remote, self.life.interval_s
        done, remote, within = self._saves(running)
        survives = (self.rng.random(len(running)) < self._tier.share) & (n > 1)  # else there are no local copies
        worked = done * tau + np.minimum(within, tau)
        kept = np.where(ended, worked, np.where(survives, done, remote) * tau)
        self.seconds["kept"] += kept
        self.seconds["lost_work"] += worked - kept
        self.seconds["saving"] += running - worked
        self.now += running
        self.from_remote = ~survives | (self.from_remote & (running <= 0))  # a restart from remote storage stays one
        self.saved = np.where(survives, (self.saved + done) % n, 0.0)

    def _saves(self, running: Floats) -> tuple[Floats, Floats, Floats]:
        """(saves that ended in a stretch, up to the last remote one that is safe: below 0 where that lies before it,
        seconds since the last save)."""
        n = self.life.saves_per_remote
        near, far = self.life.interval_s + self._tier.save_s, self.life.interval_s + self.life.job.blocking_s
        first = (n - 1 - self.saved) * near + far  # until the first remote save ends
        beyond = running >= first
        period = (n - 1) * near + far
        periods = np.where(beyond, np.floor((running - first) / period), 0.0)
        rest = np.where(beyond, np.maximum(running - first - periods * period, 0.0), running)
        local = np.minimum(np.floor(rest / near), np.where(beyond, n - 1, n - 1 - self.saved))
        ended = np.where(beyond, n - self.saved + periods * n, 0.0)
        written = running - first - self.life.job.shortest_s
        remote = np.where(written >= 0, n - self.saved + np.floor(written / period) * n, -self.saved)
        return ended + local, remote, rest - local * near

    @property
    def _tier(self) -> Local:
        assert self.life.local is not None
        return self.life.local

    def _restart(self) -> Floats:
        return np.where(self.from_remote, self.life.job.restart_s, self._tier.restart_s)

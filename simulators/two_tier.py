"""Checkpoints in two tiers: frequent ones near the machine, rare ones in remote storage.

Model. The job saves locally (blocking `local.save_s`) after every `interval_s` of work; every n-th save goes to remote
storage instead (blocking `job.blocking_s`). Of failures a share `local.share` leaves the local copies usable: the job
goes back to the last save of either kind and restarts in `local.restart_s`. The others take it back to the last remote
save, and `job.restart_s`. A failure while restarting strikes anew, with the same shares; a restart from remote storage
stays one, since the local copies are gone. Failures are a Poisson process (see `checkpointing`). The expected time of
one remote period solves

    E_i = M (1 - q) + q E_(i+1) + (1 - q) (p S_i + (1 - p) H)          segment i of n, q = e^(-(tau + c)/M)
    S_i = (D + M (1 - r) + r E_i + (1 - r) (1 - p) H) / (1 - (1 - r) p)           local restart, r = e^(-R_local/M)
    H   = (D + M (1 - R)) / R + E_0                                               remote restart, R = e^(-R_remote/M)

and goodput = n tau / E_0. Local copies are safe as soon as their save ends; where every save is remote (n = 1) there
are none. A remote save that is written in the background, safe C after it began (b of it blocking), has the next one
wait for it: n tau + (n - 1) c is at least C - b. The failures that local copies do not survive also take what was done
while it was not yet safe: goodput x e^(-(1 - p)(C - b)/M), exact for p = 0 and to first order else.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from errors import QuestionError
from simulators.checkpointing import Job, goodput, need_seconds

MOST = 4096  # local saves for one remote


@dataclass(frozen=True, kw_only=True)
class Local:
    """The local tier: seconds that a save blocks, seconds of a restart from it, share of failures that it survives."""

    save_s: float
    restart_s: float
    share: float

    def __post_init__(self) -> None:
        need_seconds("the time of a local save", self.save_s)
        need_seconds("the time of a restart from local checkpoints", self.restart_s, zero=True)
        if not 0 <= self.share <= 1:
            raise QuestionError(f"local checkpoints survive {self.share:g} of failures", expected="a share from 0 to 1")


def two_tier_goodput(job: Job, local: Local, interval_s: float, n: int) -> float:
    """The goodput with `interval_s` of work between saves, every `n`-th (from 1) of which is remote."""
    if n == 1:
        return float(goodput(job, interval_s))
    mttf, wait, p = job.mttf_s, job.wait_s, local.share
    written = math.exp(-(1 - p) * job.shortest_s / mttf)
    r, remote = math.exp(-local.restart_s / mttf), math.exp(-job.restart_s / mttf)
    back = 1 - (1 - r) * p
    if remote == 0 or back == 0:
        return 0.0
    constant, factor = (wait + mttf * (1 - r)) / back, (1 - r) * (1 - p) / back  # S_i = r/back E_i + these of (1, H)

    def segment(length: float) -> tuple[float, float, float]:
        """E_i = a + b E_(i+1) + g H."""
        q = math.exp(-length / mttf)
        own = 1 - (1 - q) * p * r / back
        if own <= 0:
            return math.inf, 0.0, 0.0
        return ((mttf * (1 - q) + (1 - q) * p * constant) / own, q / own, (1 - q) * (p * factor + 1 - p) / own)

    a, b, g = segment(interval_s + local.save_s)
    last_a, _, last_g = segment(interval_s + job.blocking_s)
    power = b ** (n - 1)
    sums = n - 1 if abs(1 - b) < 1e-12 else (1 - power) / (1 - b)
    alone, of_h = a * sums + power * last_a, g * sums + power * last_g
    if not math.isfinite(alone) or of_h >= 1:
        return 0.0
    return written * n * interval_s * (1 - of_h) / (alone + of_h * (wait + mttf * (1 - remote)) / remote)


def two_tier_first_order(job: Job, local: Local, interval_s: float, remote_interval_s: float) -> float:
    """The same to first order: 1 - c_l/t_l - c_r/t_r - (p (t_l/2 + R_l) + (1 - p)(t_r/2 + R_r + C - b) + D)/M."""
    p, back = local.share, remote_interval_s / 2 + job.restart_s + job.shortest_s
    lost = p * (interval_s / 2 + local.restart_s) + (1 - p) * back + job.wait_s
    return 1 - local.save_s / interval_s - job.blocking_s / remote_interval_s - lost / job.mttf_s


def shortest_s(job: Job, local: Local, n: int) -> float:
    """The shortest work between saves where every `n`-th is remote, (C - b - (n - 1) c) / n: the next remote one waits
    until the one before is safe. 0 where local saves alone take as long."""
    return max((job.shortest_s - (n - 1) * local.save_s) / n, 0.0)


def fewest(job: Job, local: Local, interval_s: float) -> int:
    """The fewest saves for one that is remote, so that it is safe before the next: of n (tau + c) - c >= C - b."""
    n = max(math.ceil((job.shortest_s + local.save_s) / (interval_s + local.save_s) * (1 - 1e-12)), 1)
    if n > MOST:
        raise QuestionError(
            f"saves after every {interval_s:g} s of work, while a remote one is written for {job.shortest_s:g} s",
            expected=f"at least {shortest_s(job, local, MOST):g} s between two, with {MOST:,} for one that is remote",
        )
    return n


def best_two_tier(job: Job, local: Local) -> tuple[float, int, float]:
    """(seconds of work between saves, local and remote together; every how many-th is remote; goodput) at its best."""
    best = (0.0, 1, -1.0)
    counts = np.unique(np.round(np.geomspace(1, MOST, 73)).astype(int))
    for n in counts:
        found = best_interval(job, local, int(n))
        if found[1] > best[2]:
            best = (found[0], int(n), found[1])
    near = range(max(best[1] * 7 // 8, 1), best[1] * 8 // 7 + 2)
    for n in near if best[1] < 64 else ():
        found = best_interval(job, local, n)
        if found[1] > best[2]:
            best = (found[0], n, found[1])
    return best


def best_counted(job: Job, local: Local, interval_s: float) -> int:
    """Every how many-th save is best remote where the interval between two of any kind is given. Raises QuestionError
    where none of MOST is rare enough."""
    least = fewest(job, local, interval_s)
    counts = np.unique(np.round(np.geomspace(least, MOST, 73)).astype(int))
    best = max(counts, key=lambda n: two_tier_goodput(job, local, interval_s, int(n)))
    near = range(max(int(best) * 7 // 8, least), min(int(best) * 8 // 7 + 2, MOST + 1))
    return max(near, key=lambda n: two_tier_goodput(job, local, interval_s, n))


def best_interval(job: Job, local: Local, n: int) -> tuple[float, float]:
    """(seconds of work between saves where every `n`-th is remote, goodput) at its best that a remote save allows."""
    least = max(shortest_s(job, local, n), local.save_s / 10)
    low, high = math.log(least), math.log(max(20 * job.mttf_s, least * 2))
    from scipy.optimize import minimize_scalar  # late: a fifth of a second, that other pages do not wait for

    found: Any = minimize_scalar(
        lambda x: -two_tier_goodput(job, local, math.exp(x), n),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-6},
    )
    ends = (least, math.exp(float(found.x)))  # to the first of which a bounded search only comes close
    return max(((tau, two_tier_goodput(job, local, tau, n)) for tau in ends), key=lambda at: at[1])

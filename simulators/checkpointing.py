"""How often to save a checkpoint: Young, Daly and the exact optimum, and the goodput that any interval gives.

Model (J. T. Daly, A higher order estimate of the optimum checkpoint interval, 2006). Failures are a Poisson process
with a mean of `mttf_s` between them, while the job works, saves or restarts. The job works for `interval_s`, then is
blocked while it saves. A failure takes it back to the last safe checkpoint, after `wait_s` without machines (nothing
can fail then) and `restart_s` of restarting (a failure starts both again). With work tau, blocking save b, mean time to
failure M, restart R, wait D and a save that is safe C after it began (C = b where it is synchronous):

    goodput(tau) = tau e^(-(C - b)/M) / ((M + D) e^(R/M) (e^((tau + b)/M) - 1))
    young = sqrt(2 b M)
    daly  = sqrt(2 b M) (1 + sqrt(b/2M)/3 + (b/2M)/9) - b   for b < 2M, else M
    best  = M (1 + W(-e^(-1 - b/M)))                         W: Lambert's function, principal branch
    first order: 1 - b/tau - tau/2M - (D + R + C - b)/M

A save in the background (C > b) costs its blocking part and, after a failure, what was done while it was not yet safe;
work goes on at full speed meanwhile, and the next save waits for it: so tau is at least C - b. The first-order form
leaves out second powers. While tau + C + D + R stay below a tenth of M it is within two points; beyond, it may even
turn negative: `first_order_holds` says whether it may be used. All times in seconds; goodput is a share, 0 to 1.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from catalog.save_interval import best_interval_s
from errors import QuestionError

FIRST_ORDER_LIMIT = 0.1  # of the MTTF: up to it the first-order form is within 0.02 of the exact one
LONGEST_S = 1e12  # some thirty thousand years: what is longer was mistyped


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the goodput of a job with checkpoints depends on, besides how often it saves. Seconds.

    save_s      from the beginning of a save until the checkpoint is safe
    mttf_s      mean time to failure of the whole job
    restart_s   from having machines again to the first step: initialisation, restore, compilation
    wait_s      from a failure to having machines again; nothing can fail then
    blocked_s   the part of a save in which training stands still; None: all of it (a synchronous save)

    Raises QuestionError for what cannot be.
    """

    save_s: float
    mttf_s: float
    restart_s: float = 0.0
    wait_s: float = 0.0
    blocked_s: float | None = None

    def __post_init__(self) -> None:
        need_seconds("the time of a save", self.save_s)
        need_seconds("the mean time to failure", self.mttf_s)
        need_seconds("the time of a restart", self.restart_s, zero=True)
        need_seconds("the wait for machines", self.wait_s, zero=True)
        if self.blocked_s is not None:
            need_seconds("the blocking part of a save", self.blocked_s)
            if self.blocked_s > self.save_s:
                raise QuestionError(
                    f"a save that blocks for {self.blocked_s:g} s of its {self.save_s:g} s",
                    expected="a blocking part that is no longer than the save",
                )
        if self.save_s > self.mttf_s:
            raise QuestionError(
                f"a save of {self.save_s:g} s where a failure comes every {self.mttf_s:g} s",
                expected="a save shorter than the mean time to failure",
                advice="Most saves would not finish: make them faster, save to a nearer tier, or use fewer nodes.",
            )

    @property
    def blocking_s(self) -> float:
        return self.save_s if self.blocked_s is None else self.blocked_s

    @property
    def asynchronous(self) -> bool:
        return self.blocking_s < self.save_s

    @property
    def shortest_s(self) -> float:
        """The shortest interval: the next save waits until the one before is safe."""
        return self.save_s - self.blocking_s


def need_seconds(what: str, value: float, zero: bool = False) -> None:
    """Raises QuestionError unless `value` is a time: finite, above 0 (or 0, if allowed), no longer than LONGEST_S."""
    if not (math.isfinite(value) and (value >= 0 if zero else value > 0) and value <= LONGEST_S):
        least = "0 or more" if zero else "more than 0"
        raise QuestionError(f"{what} is {value:g} s", expected=f"{least} and at most {LONGEST_S:.0e} s")


def young_s(job: Job) -> float:
    """Young's interval, sqrt(2 b M)."""
    return math.sqrt(2 * job.blocking_s * job.mttf_s)


def daly_s(job: Job) -> float:
    """Daly's higher-order interval; the mean time to failure itself where a save takes twice as long."""
    return daly_interval_s(job.blocking_s, job.mttf_s)


def daly_interval_s(save_s: float, mttf_s: float) -> float:
    if save_s >= 2 * mttf_s:
        return mttf_s
    part = save_s / (2 * mttf_s)
    return math.sqrt(2 * save_s * mttf_s) * (1 + math.sqrt(part) / 3 + part / 9) - save_s


def optimal_s(job: Job) -> float:
    """The interval of the greatest goodput by the exact form, to 1e-10; not below what the write allows."""
    return max(best_interval_s(job.blocking_s, job.mttf_s), job.shortest_s)


def goodput(job: Job, interval_s: ArrayLike) -> np.ndarray:
    """The exact share of time that becomes kept work, at each interval (seconds of work between two saves)."""
    tau = np.asarray(interval_s, dtype=float)
    mttf = job.mttf_s
    with np.errstate(over="ignore"):
        cycle = (mttf + job.wait_s) * np.exp(job.restart_s / mttf) * np.expm1((tau + job.blocking_s) / mttf)
    return np.exp(-(job.save_s - job.blocking_s) / mttf) * tau / cycle


def wall_s(job: Job, interval_s: float, work_s: float) -> float:
    """Expected wall time of `work_s` of work; infinite where none gets done."""
    share = float(goodput(job, interval_s))
    return work_s / share if share > 0 else math.inf


def first_order_goodput(job: Job, interval_s: float) -> float:
    """What is left after each loss on its own; below 0 where it means nothing. See `first_order_holds`."""
    lost = job.wait_s + job.restart_s + job.shortest_s + interval_s / 2
    return 1 - job.blocking_s / interval_s - lost / job.mttf_s


def first_order_holds(job: Job, interval_s: float) -> bool:
    """Whether what a failure costs is short enough against the MTTF, and a save against the interval."""
    whole = interval_s + job.save_s + job.wait_s + job.restart_s
    return whole <= FIRST_ORDER_LIMIT * job.mttf_s and job.blocking_s <= FIRST_ORDER_LIMIT / 2 * interval_s


def curve(job: Job, interval_s: float | None = None, points: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """(intervals, goodput) around the optimum and, if given, around the interval in use; evenly spaced in log."""
    ends = [optimal_s(job)] + ([interval_s] if interval_s else [])
    low = max(min(ends) / 12, job.shortest_s)
    tau = np.geomspace(low, max(max(ends) * 12, low * 2), points)
    return tau, goodput(job, tau)


def with_mttf(job: Job, mttf_s: float) -> Job:
    """The same job where failures come more or less often; no more often than a save takes."""
    return replace(job, mttf_s=max(mttf_s, job.save_s))


def ettr(nodes: float, failures_per_node_day: float, restart_s: float, interval_s: float) -> float:
    """Share of time training runs, to first order and without the cost of saves: 1 - N r (u0 + tau/2).

    `restart_s`: u0, from a failure to training again. Below 0 where the first order no longer holds.
    """
    return 1 - nodes * failures_per_node_day * (restart_s + interval_s / 2) / 86_400


def mttf_of_nodes_s(nodes: float, failures_per_1000_node_days: float) -> float:
    """Mean time to failure of a job on so many nodes: 1 / (nodes x rate), failures independent of one another."""
    if not (math.isfinite(nodes) and 1 <= nodes <= 1e9):
        raise QuestionError(f"{nodes:g} nodes", expected="a number from 1")
    rate = failures_per_1000_node_days
    if not (math.isfinite(rate) and 0 < rate <= 1e6):
        raise QuestionError(f"{rate:g} failures per 1,000 node-days", expected="a number above 0")
    return 86_400 * 1000 / (nodes * rate)


def failures_per_1000_node_days(failures: float, nodes: float, days: float) -> float:
    """The rate that a fleet showed."""
    return failures / (nodes * days) * 1000

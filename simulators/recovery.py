"""What a job has to fall back on when machines fail: hot spares, and going on with fewer slices (elastic training).

Spares. Nodes under repair are Poisson distributed with mean (failures per second) x (time of a repair), whatever the
distribution of repair times (M/G/infinity). `S` spares are enough while at most S nodes are under repair; a failing
node finds one free while at most S - 1 others are.

Elastic. A job on K slices loses one of them with a failure. It pauses for `resume_s`, goes on with K - 1 slices for the
`wait_s` that a replacement takes, and pauses for `resume_s` again to take it in: to first order it loses
wait/K + pauses x resume per failure, where a job that waits loses wait + restart. Several slices may be away at once,
but never the last: a failure that strikes it is a restart in its place, after the same pauses. So the number away is
that of busy lines in Erlang's loss model (M/G/c/c, whatever the distribution of waits): Poisson with mean a = wait/M,
cut off at c = K - 1, and with B(c, a) the share of failures that find c away,

    missing of the throughput = a (1 - B(c, a)) / K        close to a/K while waits are short; (K - 1)/K at most

Failures come as often with fewer slices, and what a failure costs and what is missing count as independent of one
another: together within three points of failures drawn one by one, while two pauses take no more than a third of M; a
tenth with two or three slices, of which the last is struck often and pauses but once.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import gammaln, pdtr, pdtrik, xlogy  # scipy.stats has these by name, and takes half a second to load

from errors import QuestionError
from simulators.checkpointing import Job, goodput, need_seconds, optimal_s

MOST_SPARES = 100_000
LONGEST_WAIT, WAITS_TRIED = 1000.0, 25  # in mean times to failure


def _at_most(number: int, mean: float) -> float:
    """Probability that a Poisson variable of that mean is at most `number`."""
    return float(pdtr(number, mean)) if number >= 0 else 0.0


def spares_enough(spares: int, failures_per_day: float, repair_days: float) -> float:
    """Probability that at most `spares` nodes are under repair at an instant."""
    return _at_most(spares, failures_per_day * repair_days)


def spare_is_free(spares: int, failures_per_day: float, repair_days: float) -> float:
    """Probability that a node that fails finds a spare that is not standing in for another."""
    return _at_most(spares - 1, failures_per_day * repair_days)


def spares_needed(failures_per_day: float, repair_days: float, share: float = 0.99) -> int:
    """The fewest spares of which one is free at `share` (0 to 1) of failures."""
    under_repair = failures_per_day * repair_days
    at_most = math.ceil(min(float(pdtrik(share, under_repair)), MOST_SPARES))
    if at_most and _at_most(at_most - 1, under_repair) >= share:  # the inverse of a whole number may end just above it
        at_most -= 1
    return min(at_most + 1, MOST_SPARES)


def elastic_first_order(mttf_s: float, wait_s: float, slices: int, resume_s: float, pauses: int = 1) -> float:
    """Share of time and slices at work, losses of steps and saves apart: 1 - (wait/K + pauses x resume)/M."""
    return 1 - (wait_s / slices + pauses * resume_s) / mttf_s


def missing_share(waits_by_mttf: float, slices: int) -> float:
    """Share of a job's throughput that is missing on average while failed slices are replaced: a (1 - B)/K."""
    most = slices - 1
    fewer = _at_most(most, waits_by_mttf)
    if fewer == 0:  # waits so long that fewer are hardly ever away
        return most / slices
    exactly = float(xlogy(most, waits_by_mttf) - gammaln(most + 1)) - waits_by_mttf
    found_full = min(exactly - math.log(fewer), 0.0)
    return min(waits_by_mttf * -math.expm1(found_full), most) / slices


def elastic_goodput(job: Job, interval_s: float, slices: int, resume_s: float, pauses: int = 2) -> float:
    """The exact goodput of `job` if it went on with fewer slices: no wait, each pause a restart, slices missing.

    Raises QuestionError for fewer than two slices: with one there is nothing to go on with.
    """
    if slices < 2:
        raise QuestionError(f"elastic training on {slices} slice", expected="two slices or more")
    need_seconds("the time to resume", resume_s, zero=True)
    missing = missing_share(job.wait_s / job.mttf_s, slices)
    running = replace(job, wait_s=0.0, restart_s=pauses * resume_s)
    return float(goodput(running, interval_s)) * (1 - missing)


def wait_for_gain(job: Job, slices: int, resume_s: float, gain: float, pauses: int = 2) -> float | None:
    """Seconds that a replacement must take for elastic training to gain `gain` (a share of all time) over waiting.

    Each at the best interval, all else as in `job`: the least such wait, for the gain may fall again beyond. None where
    none of LONGEST_WAIT times the MTTF does.
    """

    def short_of(wait_s: float) -> float:
        waiting = replace(job, wait_s=wait_s)
        best = optimal_s(waiting)
        return elastic_goodput(waiting, best, slices, resume_s, pauses) - float(goodput(waiting, best)) - gain

    if short_of(0.0) >= 0:
        return 0.0
    # The gain rises up to about sqrt(slices), then missing slices take it back; of few slices it goes on to rise.
    tried = np.geomspace(math.sqrt(slices), LONGEST_WAIT, WAITS_TRIED) * job.mttf_s
    longest = next((wait for wait in tried.tolist() if short_of(wait) > 0), None)
    if longest is None:
        return None
    from scipy.optimize import root_scalar  # late: a third of a second, that other questions do not wait for

    return float(root_scalar(short_of, bracket=(0.0, longest), method="brentq").root)

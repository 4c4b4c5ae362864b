"""What `whatif goodput` says beside the job as it is asked: other intervals, other numbers of chips, other failures."""

from dataclasses import dataclass, replace

import numpy as np

from app.whatif.goodput.answers import GoodputPlan
from app.whatif.goodput.failing import life as life_of
from errors import QuestionError
from simulators.checkpointing import LONGEST_S, goodput
from simulators.training.claim import Gains, gains
from simulators.training.end_to_end import Band, kept, sure
from simulators.training.lives import Life
from simulators.two_tier import shortest_s, two_tier_goodput

AROUND = 12.0  # times the interval or the failures, to either side
COUNTS = 9  # numbers of chips, intervals with lives
GRID = 25  # failure rates, and waits
WAITS_S, WAIT_TO_S = 10.0, 4 * 3600.0


@dataclass(frozen=True)
class Along:
    """Goodput along something: its value, and the band of lives there."""

    at: tuple[float, ...]
    bands: tuple[Band, ...]


def over_interval(plan: GoodputPlan) -> tuple[Along, Along]:
    """(the closed form, empty where there is none, and lives) over the seconds of work between two saves."""
    life = plan.life
    ends = (plan.best_interval_s, life.interval_s)
    shortest = shortest_s(life.job, life.local, life.saves_per_remote) if life.local else life.job.shortest_s
    least = max(min(ends) / AROUND, shortest, 1e-9)
    most = max(min(max(ends) * AROUND, life.span_s), least * 1.01)
    fine = np.geomspace(least, most, 120) if plan.closed_form is not None else np.empty(0)
    closed = tuple(map(sure, map(float, _closed(life, fine))))
    coarse = tuple(float(t) for t in np.geomspace(least, most, COUNTS))
    return Along(tuple(fine.tolist()), closed), Along(coarse, tuple(kept(replace(life, interval_s=t)) for t in coarse))


def _closed(life: Life, intervals: np.ndarray) -> np.ndarray:
    """As `Life.closed_form`, at other intervals."""
    local = life.local
    if local is not None:
        return np.array([two_tier_goodput(life.job, local, float(t), life.saves_per_remote) for t in intervals])
    if life.slices > 1:
        return np.array([replace(life, interval_s=float(t)).closed_form() for t in intervals])
    return goodput(life.job, intervals)


def over_chips(plan: GoodputPlan) -> Along:
    """Lives on other numbers of chips, an eighth to eight times as many, each saving as this one is asked to. Numbers
    of which nothing would be kept are left out."""
    chips = plan.asked.chips or 1
    at, bands = list[float](), list[Band]()
    for number in np.unique(np.maximum(1, np.round(chips * 2.0 ** np.linspace(-3, 3, COUNTS)))):
        try:
            lived, _ = life_of(plan.asked, int(number), plan.life.span_s)
            band = kept(lived)
        except QuestionError:
            continue
        at.append(float(number))
        bands.append(band)
    return Along(tuple(at), tuple(bands))


def over_failures(plan: GoodputPlan) -> Gains:
    """What elastic training gains, over how often a chip fails and how long its replacement takes."""
    job, chips = plan.life.job, plan.asked.chips or 1
    of_chip = job.mttf_s * chips
    seldom = min(of_chip * AROUND, LONGEST_S * chips)
    rates = np.geomspace(max(of_chip / AROUND, 1.01 * job.save_s * chips), max(seldom, 1.02 * job.save_s * chips), GRID)
    longest = min(max(WAIT_TO_S, 2 * job.wait_s), LONGEST_S)
    waits = np.unique([*np.geomspace(WAITS_S, longest, GRID), *((job.wait_s,) if job.wait_s > WAITS_S else ())])
    return gains(job, chips, plan.life.slices, plan.life.resume_s, rates.tolist(), waits.tolist())

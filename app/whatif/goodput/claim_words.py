"""The claim of 15 % from elastic training in words: what was said, what would have to hold, and what is assumed."""

import numpy as np

from app.whatif.goodput.answers import GoodputPlan
from errors import format as fmt
from simulators.checkpointing import LONGEST_S
from simulators.recovery import wait_for_gain
from simulators.training.claim import CHIPS, GAIN, failing_where, gains

INTRODUCED = (
    f"A talk claims {100 * GAIN:g} % more goodput on {CHIPS:,} chips, where resuming takes as long on any number of "
    "them. No paper was found: it is a scenario here, not a fact, and whether points or a ratio were meant is not said."
)
ASSUMED = (
    "Assumed: failures independent, one slice lost with each; both jobs save at the best interval and lose the steps "
    "since the last save; two pauses for one failure. By closed forms, within three points of lives drawn one by one "
    "where both pauses take no more than a third of the time between failures, a tenth with two or three slices."
)
OFTEN, SELDOM, STEPS = 30.0, 30.0, 241  # times as often, and as seldom, as is asked
POINTS = f"{100 * GAIN:g} points"


def held(made: GoodputPlan) -> str:
    """From which wait on the gain is as claimed at this failure rate, and at which rates it is with this wait."""
    job, life = made.life.job, made.life
    wait = wait_for_gain(job, life.slices, life.resume_s, GAIN)
    failing = f"While a chip fails every {made.asked.mttf_chip_h:,.0f} h"
    if wait is None:
        return f"{failing}, no wait for a replacement gives {POINTS}. {_rates(made)}"
    at_wait = gains(job, 1, life.slices, life.resume_s, [job.mttf_s], [job.wait_s]).points[0, 0]
    here = fmt.duration(job.wait_s)
    no_longer = "" if at_wait >= GAIN else f", though no longer at the wait of {here} here"  # it falls again
    if wait == 0:
        return f"{failing}, it gains {POINTS} without any wait for a replacement{no_longer}. {_rates(made)}"
    if job.wait_s >= wait and no_longer:
        return f"{failing}, it gains {POINTS} from a wait of {fmt.duration(wait)}{no_longer}. {_rates(made)}"
    longer = "which the wait here is" if job.wait_s >= wait else f"while it is {here} here"
    asked = f"{failing}, a replacement must take {fmt.duration(wait)} or longer to gain {POINTS}, {longer}."
    return f"{asked} {_rates(made)}"


def _rates(made: GoodputPlan) -> str:
    """Between which failure rates it gains as much with the wait that is asked."""
    job, chips = made.life.job, made.asked.chips or 1
    of_chip = job.mttf_s * chips
    least, most = max(of_chip / OFTEN, 1.001 * job.save_s * chips), min(of_chip * SELDOM, LONGEST_S * chips)
    tried = np.geomspace(least, most, STEPS).tolist()
    found = failing_where(job, chips, made.life.slices, made.life.resume_s, tried)
    wait = f"With a wait of {fmt.duration(job.wait_s)}" if job.wait_s else "Without a wait"
    if found is None:
        return f"{wait} it gains as much at no failure rate that was tried."
    low, high = (f"{s / 3600:,.0f} h" for s in found)
    from_least, to_most = found[0] <= least * 1.001, found[1] >= most * 0.999
    if from_least and to_most:
        return f"{wait} it does at every failure rate that was tried: a chip fails every {low} to {high}."
    if to_most:
        return f"{wait} it does where a chip fails every {low} or less often, up to the {high} that were tried."
    if from_least:
        return f"{wait} it does where a chip fails at least every {high}."
    return f"{wait} it does where a chip fails every {low} to {high}."

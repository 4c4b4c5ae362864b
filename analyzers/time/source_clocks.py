"""Whether two inputs go by the same clock, and how far apart they are where they do not.

Hosts of one job take each step together. Where two inputs name the same steps and each lies by the same time after the
other's, within a step, they are copies of one attempt by two clocks, if nothing else can be meant: they run side by
side for several steps but for some minutes, or lie a whole number of half hours apart, as times without a zone do. A
later attempt that takes the same steps again lies any time after the first.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

HALF_HOUR_NS = 1800 * 10**9
ZONE_SLACK_NS = 5 * 10**9  # clocks that are kept, and lines written late, agree within this
TOGETHER = 0.1  # the least share of common steps that lie alike as clocks stand: of less, one job overtook another
IN_STEP = 0.9  # the share of common steps that must lie alike
LEAST_COMMON = 3
MEETING = 5  # steps, or times of what printed times are off by, that two inputs ran at once: no restart does that
SKEW_NS = 600 * 10**9  # clocks that nobody keeps are off by minutes
COARSE_NS = 2 * 10**9  # starts taken from times printed to the second are off by up to so much
MOST_ROWS, MOST_TAKES = 20_000, 50  # rows, and takes of a step, that a gap is looked for in
NEAR_NS = 3600 * 10**9  # what was recorded so long before the first sign of a job or an engine is still of it


def apart(
    step: np.ndarray, start_ns: np.ndarray, other_step: np.ndarray, other_ns: np.ndarray, usual_ns: int
) -> int | None:
    """By how much the second clock shows more than the first; None where they share too few steps, or where they need
    not be of one attempt."""
    slack = max(usual_ns, COARSE_NS)
    gap = _to_nearest(step, start_ns, other_step, other_ns)
    if not len(gap) or len(gap) < min(LEAST_COMMON, len(step)):
        return None
    middle = _middle(gap)
    together = gap[np.abs(gap) <= slack]
    least = max(min(LEAST_COMMON, len(step)), TOGETHER * len(gap))
    if len(together) >= max(least, (np.abs(gap - middle) <= slack).sum()):
        return _middle(together)
    if (np.abs(gap - middle) <= slack).mean() < IN_STEP:  # steps were taken again: the nearest may be another take
        middle = _most_common(step, start_ns, other_step, other_ns, slack)
        gap = _to_nearest(step, start_ns + middle, other_step, other_ns)
        if (np.abs(gap) <= slack).mean() < IN_STEP:
            return None
    if len(gap) < max(LEAST_COMMON, len(step) / 2):
        return None
    shared = min(start_ns.max(), other_ns.max()) - max(start_ns.min(), other_ns.min())
    enough = min(min(np.ptp(start_ns), np.ptp(other_ns)) / 2, MEETING * slack)
    side_by_side = shared >= enough and abs(middle) <= SKEW_NS
    off = abs(middle - round(middle / HALF_HOUR_NS) * HALF_HOUR_NS)
    return middle if side_by_side or off <= ZONE_SLACK_NS else None


def _middle(gap: np.ndarray) -> int:
    return int(np.sort(gap)[len(gap) // 2])


def _to_nearest(step: np.ndarray, at: np.ndarray, other_step: np.ndarray, other_at: np.ndarray) -> np.ndarray:
    """For each row whose step the other has, the time to the nearest row of it there, ns; of two as near the one
    before. In no order that means anything."""
    mine = np.repeat([False, True], [len(other_at), len(at)])
    steps, times = np.concatenate((other_step, step)), np.concatenate((other_at, at))
    order = np.lexsort((mine, times, steps))
    mine, steps, times = mine[order], steps[order], times[order]
    place = np.arange(len(order))
    before = np.maximum.accumulate(np.where(mine, -1, place))
    after = np.minimum.accumulate(np.where(mine, len(order), place)[::-1])[::-1]
    gaps, known = [], []
    for other in (before, after):
        found = other.clip(0, len(order) - 1)
        known.append(mine & (other == found) & (steps[found] == steps))
        gaps.append(times[found] - times)
    (back, ahead), (had, has) = gaps, known
    nearer = had & (~has | (-back <= ahead))
    return np.where(nearer, back, ahead)[had | has]


def _most_common(step: np.ndarray, at: np.ndarray, other_step: np.ndarray, other_at: np.ndarray, slack: int) -> int:
    """The time between two rows of the same step that occurs most often, within the slack; of MOST_ROWS at most."""
    every = max(1, len(step) // MOST_ROWS)
    mine = pd.DataFrame({"step": step[::every], "mine": np.arange(len(step))[::every]})
    theirs = pd.DataFrame({"step": other_step, "theirs": np.arange(len(other_step))})
    theirs = theirs[theirs.groupby("step").cumcount() < MOST_TAKES]
    both = mine.merge(theirs, on="step")
    gap = np.sort(other_at[both["theirs"].to_numpy()] - at[both["mine"].to_numpy()])
    reach = np.searchsorted(gap, gap + slack, side="right") - np.arange(len(gap))
    first = int(np.argmax(reach))
    return int(gap[first + int(reach[first]) // 2])


def meeting(
    ranges: Mapping[str, tuple[int, int]], near: tuple[str, ...] = ()
) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """The time from the first to the last sign of those ranges that meet, ns, and the names of those that do not.

    The first range sets the clock. One that does not meet what was taken so far at any moment runs on another clock (a
    log that counts from its start, a time without its zone) and says nothing of when; those in `near` may end up to
    an hour before.
    """
    whole, left_out = None, []
    for what, (low, high) in ranges.items():
        if whole is None:
            whole = low, high
        elif low <= whole[1] and high >= whole[0] or what in near and abs(low - whole[0]) < NEAR_NS:
            whole = min(whole[0], low), max(whole[1], high)
        else:
            left_out.append(what)
    return whole, tuple(left_out)

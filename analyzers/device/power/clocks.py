"""Clocks that were held down: by what, for how long, on which chips, and what steps took more meanwhile."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analyzers.device.power.chip import IDLE, Chip
from analyzers.device.power.energy import Stretches, within
from analyzers.device.power.result import FAULTS, Apart, Longer, Slowed
from analyzers.device.power.samples import CLOCK, Series
from analyzers.device.power.work import Work
from analyzers.intervals import Spans

LEAST = 0.02  # of the median clock: less is told of no chip
TIMES = 3.0  # times what chips differ by among one another (a robust standard deviation)
SIGMA = 1.4826  # of a median of deviations, to be one
FEWEST = 3  # chips of which one can be told to differ
FEWEST_STEPS = 8  # on either side
MOSTLY = 0.5  # of a step, from here on it is one while clocks were held down
SURE = 3.0  # standard errors
MOST_APART = 16


def apart(told: Sequence[Chip], rows: pd.DataFrame, of_one_job: bool) -> tuple[Apart, ...]:
    """Chips whose mean clock is lower than the median's by more than chips differ otherwise, the slowest first. Where
    not all are of one job, a chip that draws next to nothing, and that nothing holds down, may have nothing to do."""
    clocks = rows["clock_mhz"].to_numpy(dtype=float)
    if not of_one_job:
        watts, limit = rows["mean_watts"].astype(float), rows["limit_watts"].astype(float)
        idle = (watts < IDLE * limit.fillna(watts.max())) & rows["slowed_by"].isna()
        clocks = np.where(idle, np.nan, clocks)
    known = clocks[np.isfinite(clocks)]
    if len(known) < FEWEST or not (reference := float(np.median(known))):
        return ()
    spread = SIGMA * float(np.median(np.abs(known - reference))) / reference
    floor = max(LEAST, TIMES * spread)
    found = []
    for n in np.argsort(np.where(np.isfinite(clocks), clocks, np.inf), kind="stable")[:MOST_APART]:
        below = 1 - float(clocks[n]) / reference
        if not below > floor:
            break
        row, chip = rows.iloc[int(n)], told[int(n)].chip
        heat, by = row["mean_celsius"], row["slowed_by"]
        found.append(
            Apart(
                host=chip.host,
                device=chip.device,
                clock_mhz=float(clocks[n]),
                reference_mhz=reference,
                below_share=below,
                floor_share=floor,
                celsius=None if pd.isna(heat) else float(heat),
                slowed_by=by if isinstance(by, str) else None,
            )
        )
    return tuple(found)


def slowed_by(told: Sequence[Chip], work: Work) -> tuple[Slowed, ...] | None:
    """By reason, the longest first; None where no sample tells whether clocks were held down."""
    reasons = dict.fromkeys(by for one in told for by in one.slowed)
    if not reasons:
        return None
    found = []
    for by in reasons:
        each = [(*one.of(one.slowed[by]), one) for one in told if by in one.slowed]
        seconds = sum(known for _, known, _ in each)
        amount = sum(held for held, _, _ in each)
        if not seconds or not amount:
            continue
        low, high = _clocks([one for held, _, one in each if held], by, work.in_steps)
        most = max(held / known for held, known, _ in each if known)
        found.append(Slowed(by, amount / seconds, sum(held > 0 for held, _, _ in each), most, low, high))
    return tuple(sorted(found, key=lambda one: -one.share))


def _clocks(chips: Sequence[Chip], by: str, steps: Spans) -> tuple[float | None, float | None]:
    """The mean clock of these chips while it held them down, and else; where steps are known, within these: what a chip
    does while the job is down is no other clock."""
    low: list[np.ndarray] = []
    high: list[np.ndarray] = []
    for one in chips:
        clock, told = one.chip.of(CLOCK), one.slowed[by]
        if not len(clock.at) or not len(told.start):
            continue
        state = _at(told, clock)
        inside = (clock.at >= one.span.start[0]) & (clock.at <= one.span.end[0]) & np.isfinite(state)
        if len(steps.start):
            place = np.searchsorted(steps.start, clock.at, "right") - 1
            inside &= (place >= 0) & (clock.at < steps.end[np.maximum(place, 0)])
        low.append(clock.value[inside & (state > MOSTLY)])
        high.append(clock.value[inside & (state <= MOSTLY)])
    means = [float(np.concatenate(part).mean()) if part and sum(map(len, part)) else None for part in (low, high)]
    return means[0], means[1]


def _at(told: Stretches, samples: Series) -> np.ndarray:
    """For which share of the stretch that each sample lies in clocks were held down; NaN where it lies in none."""
    place = np.searchsorted(told.start, samples.at, "right") - 1
    inside = (place >= 0) & (samples.at < told.end[np.maximum(place, 0)])
    share = told.amount / np.maximum(told.seconds, 1e-9)
    return np.where(inside, share[np.maximum(place, 0)], np.nan)


def longer(told: Sequence[Chip], work: Work) -> tuple[Longer, ...]:
    """By reason, what steps took more while any chip was held down by it, where that is more than chance. Several may
    hold a chip down at once: such steps are told of a fault, and not of a limit too, which a busy chip meets anyhow."""
    steps = work.steps
    if len(steps) < 2 * FEWEST_STEPS:
        return ()
    start = steps["start_ns"].to_numpy(dtype=np.int64)
    took = steps["dur_ns"].to_numpy(dtype=float) / 1e9
    found, told_of = [], np.zeros(len(steps), bool)
    reasons = dict.fromkeys(by for one in told for by in one.slowed)
    for by in sorted(reasons, key=lambda by: by not in FAULTS):
        part = np.zeros(len(steps))
        known = np.zeros(len(steps), bool)
        for one in told:
            if by in one.slowed:
                held, seconds = _in_each(one.slowed[by], start, took)
                known |= seconds > MOSTLY * took
                part = np.maximum(part, held / np.maximum(took, 1e-9))
        known &= ~told_of
        slow, free = took[known & (part > MOSTLY)], took[known & (part <= MOSTLY)]
        if min(len(slow), len(free)) < FEWEST_STEPS:
            continue
        usual, now = float(np.median(free)), float(np.median(slow))
        spreads = (SIGMA * float(np.median(np.abs(one - np.median(one)))) / len(one) ** 0.5 for one in (slow, free))
        floor = max(SURE * sum(s * s for s in spreads) ** 0.5, 0.01 * usual)
        if now - usual > floor:
            told_of |= known & (part > MOSTLY)
            more = (now - usual) * len(slow)
            found.append(Longer(by, len(slow), now, len(free), usual, more, floor))
    return tuple(sorted(found, key=lambda one: -one.more_s))


def _in_each(told: Stretches, start: np.ndarray, took: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(seconds held down, seconds of which that is known) of each step."""
    windows: Spans = Spans(start, start + (took * 1e9).astype(np.int64))
    return within(told, windows)

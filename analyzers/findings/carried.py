"""What a profile saw in some steps of some ranks, carried over to those that none saw.

Steps, without what the job itself reports as something else: one that no profile saw holds as much of it as those seen
that took most nearly as long, and no more than it took beyond a step without. So a stop that makes a step ten times as
long is looked for in long steps alone, and what every step holds is in each of them; by so much less as those around
are quicker, which no profiler slows down. Ranks: all meet in each step, so that a rank without a profile spends as much
of it.
"""

import numpy as np
import pandas as pd

from analyzers.device.overlap import OverlapResult
from analyzers.findings.base import MEASURED, SHOWN, Band, Seen
from analyzers.findings.parts import StepParts, step_parts

ALIKE = 3  # steps seen that an unseen one is held against
QUICK = 0.1  # of the steps seen: what they took without it is a step without
AROUND = 10  # steps before and after profiled ones
SLOWED = 0.8  # times as long as those: what is quicker by less, a few steps are by chance
MOST_RANKS = 0.9  # of the chip time of the steps seen: where so much of it is profiled, all ranks are
OPEN = 0.3  # of what is carried over: by how much it may be off


def carried(
    seen: Seen,
    amount: float,
    kind: str = "",
    *,
    devices: str = "",
    of_all_ranks: bool = False,
    in_each: bool = False,
) -> Band:
    """The chip-seconds of all kept steps. `amount`: of those that a profile saw; `kind`: which part of `StepParts`
    tells how it spreads over them, `devices`: which column of the steps of the question `overlap` (else evenly);
    `of_all_ranks`: ranks without a profile are in it already; `in_each`: no step is without it."""
    held = step_parts(seen.tables, seen.facts)
    saw = held.seen
    if not saw.any() or amount <= 0:
        return seen.beyond_profile(amount)
    dur = held.own_s
    covered = _covered(seen, float(dur[saw].sum()))
    here = amount if of_all_ranks else amount / min(covered, 1.0)
    part = _of_devices(seen, held, devices) if devices and not saw.all() else held.of(kind).to_numpy(dtype=float)
    each = _each(part[saw], here / seen.chips / max(covered, 1.0))
    unseen = np.minimum(each.mean() * _slowed(dur, saw), dur[~saw]) if in_each else _alike(dur[saw], each, dur[~saw])
    rest = float(unseen.sum()) * seen.chips
    likely = here + rest
    low = amount * (1 - MEASURED) + 0.5 * (here - amount) + (1 - OPEN) * rest
    return Band(min(low, likely), likely, here * (1 + MEASURED) + (1 + OPEN) * rest)


def computing(seen: Seen, *more: str) -> Band:
    """Chip-seconds of computing in all kept steps, whether or not its FLOPs are known, and in these accounts: what a
    profile of some of them shows, carried over."""
    held = step_parts(seen.tables, seen.facts)
    ranks = min(_covered(seen, float(held.own_s[held.seen].sum())), 1.0)
    return carried(seen, seen.amount("below_roofline", "compute_unsplit", *more) + ranks * _useful(seen), in_each=True)


def covering(seen: Seen) -> Band:
    """Chip-seconds of whatever devices compute, beside which they could copy and send."""
    return computing(seen, "padding", "recomputation")


def _covered(seen: Seen, seconds: float) -> float:
    """Of the chip time of these steps, what profiles cover; above 1: more, such as an attempt's first step, which is no
    usual one."""
    productive = seen.ledger.find("productive")
    if productive is None or not seconds:
        return 1.0
    unseen = productive.unknown - sum(seen.amount(name) for name in SHOWN)
    shown = productive.chip_seconds - unseen - seen.amount("useful_maths")
    rest = seconds * seen.chips - _useful(seen)
    share = shown / rest if rest > 0 else 1.0
    return max(share, 1.0) if share >= MOST_RANKS else max(share, 1 / seen.chips)


def _useful(seen: Seen) -> float:
    """Chip-seconds of useful maths in the steps that a profile saw: it is booked of all kept ones, and of all ranks."""
    saw = step_parts(seen.tables, seen.facts).seen
    return (float(saw.mean()) if saw.any() else 1.0) * seen.amount("useful_maths")


def _of_devices(seen: Seen, held: StepParts, column: str) -> np.ndarray:
    """What devices spent in each step, 0 where that is not known: a copy of one step is no copy of all."""
    found = seen.answer("overlap", OverlapResult)
    if found is None:
        return np.zeros(len(held.rows))
    seconds = found.steps.groupby("step")[column].sum() if len(found.steps) else pd.Series(dtype=float)
    return seconds.reindex(held.rows["step"].to_numpy()).fillna(0.0).to_numpy(dtype=float)


def _each(part: np.ndarray, whole_s: float) -> np.ndarray:
    """Seconds in each step seen, `whole_s` in all: in proportion to these; evenly where there are none."""
    return part * (whole_s / part.sum()) if part.sum() else np.full(len(part), whole_s / len(part))


def _slowed(dur: np.ndarray, saw: np.ndarray) -> float:
    """Times as long as profiled steps those around them take: less than 1 where a profiler slows them down."""
    near = np.convolve(saw, np.ones(2 * AROUND + 1), mode="same")[: len(saw)] > 0
    around = dur[near & ~saw]
    times = float(np.median(around) / np.median(dur[saw])) if len(around) and dur[saw].any() else 1.0
    return times if times < SLOWED else 1.0


def _alike(dur: np.ndarray, each: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Seconds in steps of these durations, by the steps seen that took most nearly as long."""
    order = np.argsort(dur, kind="stable")
    dur, each = dur[order], each[order]
    width = min(ALIKE, len(dur))
    means = np.convolve(each, np.full(width, 1 / width), mode="valid")
    middle = np.convolve(dur, np.full(width, 1 / width), mode="valid")
    at = np.searchsorted((middle[1:] + middle[:-1]) / 2, unseen)  # the nearest
    without = float(np.quantile(np.maximum(dur - each, 0.0), QUICK))
    return np.minimum(means[at], np.maximum(unseen - without, 0.0))

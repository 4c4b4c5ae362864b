"""Pauses that a job recorded of itself: how much of each step they took."""

import numpy as np
from numpy.typing import NDArray

from analyzers.intervals import Painting
from analyzers.time.calendar import CODE

Ints = NDArray[np.int64]
FIRST = CODE["eval"]  # of the headings, from which on they are pauses


def paused_ns(painting: Painting, begin: Ints, until: Ints, lines: bool = False) -> Ints:
    """Nanoseconds of recorded pauses (saves, evaluations, custom events, elastic waits) in each step. `painting`: a
    calendar's. `lines`: lines of a log tell how long steps took, most of them without the pause beside them, and often
    to the second alone when: a pause of which most lies outside of a step is none of its time."""
    label, edges = painting.label, painting.edges
    pause = label >= FIRST
    if not pause.any():
        return np.zeros(len(begin), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(np.where(pause, painting.width, 0))))

    def cell(at: Ints) -> Ints:
        return np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(label) - 1)

    def until_then(at: Ints) -> Ints:
        here = cell(at)
        return before[here] + np.where(pause[here], np.clip(at, edges[0], edges[-1]) - edges[here], 0)

    took = until_then(until) - until_then(begin)
    if not lines:
        return took
    opens = np.flatnonzero(pause & ~np.concatenate(([False], pause[:-1])))  # of the pauses, whatever their kinds
    closes = np.flatnonzero(pause & ~np.concatenate((pause[1:], [False])))
    beside = np.zeros(len(begin), dtype=np.int64)
    for at in (begin, until):
        here = cell(at)
        held = np.clip(np.searchsorted(opens, here, side="right") - 1, 0, None)
        low, high = edges[opens[held]], edges[closes[held] + 1]
        inside = np.minimum(high, until) - np.maximum(low, begin)
        beside += np.where(pause[here] & (low < at) & (at < high) & (2 * inside <= high - low), inside, 0)
    return np.maximum(took - beside, 0)

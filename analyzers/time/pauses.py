"""Pauses that a job recorded of itself: how much of each step they took."""

import numpy as np
from numpy.typing import NDArray

from analyzers.intervals import Painting
from analyzers.time.calendar import CODE

Ints = NDArray[np.int64]
FIRST = CODE["eval"]  # of the headings, from which on they are pauses


def paused_ns(painting: Painting, begin: Ints, until: Ints) -> Ints:
    """Nanoseconds of recorded pauses (saves, evaluations, custom events, elastic waits) in each step. `painting`: a
    calendar's."""
    label, edges = painting.label, painting.edges
    pause = label >= FIRST
    if not pause.any():
        return np.zeros(len(begin), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(np.where(pause, painting.width, 0))))

    def until_then(at: Ints) -> Ints:
        cell = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(label) - 1)
        return before[cell] + np.where(pause[cell], np.clip(at, edges[0], edges[-1]) - edges[cell], 0)

    return until_then(until) - until_then(begin)

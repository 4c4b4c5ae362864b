"""How many servers ran side by side: one that was started as another ended took its place, and its chips.

A rolling update of three pods of Kubernetes leaves samples of six, of which three held chips at a time. Places are
given out in order of time: a server takes that of one that had ended by then, but for a short time in which both ran.
"""

from collections.abc import Sequence

import numpy as np

BOTH = 0.1  # of the time of the shorter of two: so long one may run beside the one whose place it takes


def seats(first: Sequence[float] | np.ndarray, last: Sequence[float] | np.ndarray) -> np.ndarray:
    """The place of each server, from 0 on. `first`, `last`: its first and last time, in any unit."""
    first, last = np.asarray(first, dtype=float), np.asarray(last, dtype=float)
    place, held = np.zeros(len(first), dtype=np.int64), np.zeros(0, dtype=np.int64)  # of each place, who has it
    for one in np.argsort(first, kind="stable"):
        shorter = np.minimum(last[held] - first[held], last[one] - first[one])
        gone = (last[held] - first[one] <= BOTH * shorter) & (last[held] <= last[one])
        if not gone.any():
            place[one], held = len(held), np.append(held, one)
            continue
        free = np.flatnonzero(gone)
        place[one] = max(free, key=lambda n: (last[held[n]] <= first[one], last[held[n]]))
        held[place[one]] = one
    return place

"""Steps whose lines were stamped to the whole second, laid out by how long each took.

A stamp without a fraction says of a step's end that it lies within the second that follows. Starts made of it, stamp
less duration, leave holes and overlaps of up to a second between steps that had neither: short steps would lose most
of their time to them. What the stamps cannot tell apart is taken to be no hole.
"""

import numpy as np

SECOND_NS = 1_000_000_000


def whole_seconds(logged: np.ndarray) -> bool:
    """Whether step lines that were written at these times, ns, say no closer than to the second when a step ended."""
    return len(logged) > 1 and not (logged % SECOND_NS).any()


def laid_end_to_end(start: np.ndarray, took: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Starts by which each step follows on the one before, as far as every end stays within the second of its stamp.
    More than that is a hole, after which the steps are laid anew, as where a new attempt begins (`fresh`)."""
    if len(start) < 2:
        return start
    ran = np.cumsum(took) - took
    begun = start - ran  # when the first step would have begun, by the stamp of each: at the earliest
    anew = fresh.copy()
    anew[1:] |= np.abs(np.diff(begun)) > SECOND_NS
    hole = anew.tolist()
    ahead = begun.tolist()  # where the steps up to the next hole would have it
    for n in range(len(ahead) - 2, -1, -1):
        if not hole[n + 1]:
            ahead[n] = _within(ahead[n + 1], ahead[n])
    held = ahead[0]
    laid = []
    for at, then, other in zip(begun.tolist(), ahead, hole, strict=True):
        held = then if other else _within(held, at)
        laid.append(held)
    return np.array(laid, dtype=np.int64) + ran


def _within(held: int, at: int) -> int:
    """`held`, moved no more than it must to lie within the second after `at`."""
    return min(max(held, at), at + SECOND_NS)

"""Which captures were taken together: a collective of one is never matched with what another rank did in another.

The k-th capture of every rank belongs together where every rank has as many, and nothing speaks against it: not the
steps that they show, nor, where one shows none, the times at which they began. Else a rank lacks some, and captures are
taken by time. One capture of each rank is one session: clocks alone may be wrong by any time.
"""

import numpy as np

from runs.tables import Tables, frame

_FAR = 2  # clocks that differ by more than so many times what all captures of a rank span are wrong: none is lacking


_MOST_APART_NS = 300 * 10**9  # hosts begin a profile within it, as their clocks tell, where none of these is wrong


def sessions(tables: Tables, rank: np.ndarray, capture: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The session of each row by its capture, from 0; -1 without a capture. `step`: -1 where it is not known."""
    width = int(rank.max()) + 1 if len(rank) else 1
    pairs = np.unique((capture + 1) * width + rank)
    taken, who = pairs // width - 1, pairs % width
    if len(pairs) == 0 or len(np.unique(taken)) == 1:
        return np.where(capture >= 0, 0, -1)
    times = _times(tables, taken)
    order = np.lexsort((taken, times))
    taken, who, times = taken[order], who[order], times[order]
    number = _in_turn(who, times, taken, _steps(capture, step))
    number = _by_time(who, times) if number is None else number
    session = np.full(int(capture.max()) + 2, -1, dtype=np.int64)
    session[taken + 1] = number
    session[0] = -1
    return session[capture + 1]


def _times(tables: Tables, taken: np.ndarray) -> np.ndarray:
    """When captures began, ns; 0 where that is not known."""
    known = frame(tables, "captures", ["capture", "start_ns"]).dropna()
    begun = dict(zip(known["capture"].astype(int), known["start_ns"].astype(int), strict=True))
    return np.array([begun.get(int(c), 0) for c in taken], dtype=np.int64)


def _steps(capture: np.ndarray, step: np.ndarray) -> dict[int, tuple[int, int]]:
    """(first, last) step that each capture shows, of those that show any."""
    known = step >= 0
    of, which = capture[known], step[known]
    order = np.argsort(of, kind="stable")
    of, which = of[order], which[order]
    begins = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if len(of) else np.zeros(0, np.int64)
    if not len(begins):
        return {}
    least, most = np.minimum.reduceat(which, begins), np.maximum.reduceat(which, begins)
    return dict(zip(of[begins].tolist(), zip(least.tolist(), most.tolist(), strict=True), strict=True))


def _in_turn(
    who: np.ndarray, times: np.ndarray, taken: np.ndarray, steps: dict[int, tuple[int, int]]
) -> np.ndarray | None:
    """The k-th capture of every rank as session k; None where ranks have not as many, or these are not of one time."""
    ranks, counts = np.unique(who, return_counts=True)
    if len(np.unique(counts)) > 1:
        return None
    by_who = np.argsort(who, kind="stable")
    table = by_who.reshape(len(ranks), -1)  # (rank, k)
    number = np.empty(len(who), dtype=np.int64)
    number[by_who] = np.arange(len(who)) % counts[0]
    told = [[steps.get(capture) for capture in taken[table[:, k]].tolist()] for k in range(int(counts[0]))]
    meet = _meet(told)
    meet = _at_one_time(times[table]) if meet is None else meet
    return number if meet else None


def _meet(told: list[list[tuple[int, int] | None]]) -> bool | None:
    """Whether the captures of each session show common steps; None where steps do not tell sessions apart: some are not
    known, or those of two sessions are of one range. `told`: (first, last) step of each rank's capture, by session."""
    known = [[steps for steps in session if steps is not None] for session in told]
    if any(len(some) < len(all_of) for some, all_of in zip(known, told, strict=True)):
        return None
    whole = sorted((min(a for a, _ in session), max(b for _, b in session)) for session in known)
    meets = all(max(a for a, _ in session) <= min(b for _, b in session) for session in known)
    apart = all(before[1] < after[0] for before, after in zip(whole[:-1], whole[1:], strict=True))
    return None if meets and not apart else meets


def _at_one_time(times: np.ndarray) -> bool:
    """Whether the k-th captures of all ranks may have begun together, but for wrong clocks. `times`: (rank, k)."""
    near = _near(times)
    ahead = times - times[0]
    clock = np.median(ahead, axis=1)
    spans = float((times[:, -1] - times[:, 0]).max())
    steady = (np.abs(ahead - clock[:, None]) < near).all()
    return bool(steady and ((np.abs(clock) < near) | (np.abs(clock) > _FAR * spans)).all())


def _near(times: np.ndarray) -> float:
    """Half of what lies between the beginnings of one rank's captures at least, ns. `times`: (rank, k), rising."""
    apart = np.diff(times, axis=1)
    return float(apart[apart > 0].min()) / 2 if (apart > 0).any() else np.inf


def _by_time(who: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sessions in order of time: one ends where a rank comes again, or where a capture begins so much later than the
    first that a rank could have come again."""
    near = min(_MOST_APART_NS, *(_near(times[None, who == rank]) for rank in np.unique(who)))
    number, seen, at, first = np.empty(len(who), dtype=np.int64), set[int](), 0, int(times[0])
    for i, (rank, begun) in enumerate(zip(who.tolist(), times.tolist(), strict=True)):
        if rank in seen or begun - first > near:
            seen, at, first = set(), at + 1, begun
        seen.add(rank)
        number[i] = at
    return number

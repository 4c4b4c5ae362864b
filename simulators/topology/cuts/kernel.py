"""The compiled loop that improves a cut into halves, after Fiduccia and Mattheyses: move by move, best prefix kept."""

from typing import NamedTuple

import numpy as np

from runs.compiled import compiler

_compiled = compiler(__package__)()
_NONE = -1


@_compiled
def _take_out(v, shelf, gain, above, below, top):
    """Takes node v from the list of its gain."""
    if above[v] >= 0:
        below[above[v]] = below[v]
    else:
        top[shelf, gain] = below[v]
    if below[v] >= 0:
        above[below[v]] = above[v]


@_compiled
def _put_in(v, shelf, gain, above, below, top, highest):
    """Puts node v on top of the list of its gain."""
    above[v] = _NONE
    below[v] = top[shelf, gain]
    if below[v] >= 0:
        above[below[v]] = v
    top[shelf, gain] = v
    highest[shelf] = max(highest[shelf], gain)


def improve(
    indptr: np.ndarray, neighbours: np.ndarray, weight: np.ndarray, side: np.ndarray, uneven: int, passes: int
) -> int:
    """Moves nodes between the sides until no pass finds a smaller cut whose sides differ by at most `uneven`.

    `weight` int64 (nodes,): chips in a node, 0 for a switch, which goes where it costs least. `side` uint8 (nodes,) is
    changed in place. Returns the links cut; -1 where no pass came to even sides. In a pass each node moves at most
    once, from the heavier side, best first; then all moves after the smallest cut are taken back.
    """
    nodes = len(indptr) - 1
    reach = max(1, int(np.diff(indptr).max(initial=1)))
    gain, above, below, moved = np.zeros((4, nodes), np.int64)
    top, locked = np.empty((4, 2 * reach + 1), np.int64), np.zeros(nodes, np.bool_)
    room = _Moving(gain, above, below, top, np.empty(4, np.int64), moved, locked)
    return _improve(indptr, neighbours, weight, side, uneven, passes, reach, room)


class _Moving(NamedTuple):
    """Room for the moves of a pass. `gain`: links no longer cut if a node moves, counted from `reach`, the most that a
    node has; shelves (`top`, `highest`): side, then whether it is a switch."""

    gain: np.ndarray
    above: np.ndarray
    below: np.ndarray
    top: np.ndarray
    highest: np.ndarray
    moved: np.ndarray
    locked: np.ndarray


@_compiled
def _improve(indptr, neighbours, weight, side, uneven, passes, reach, room):
    nodes = len(indptr) - 1
    gain, above, below, top = room.gain, room.above, room.below, room.top
    highest, moved, locked = room.highest, room.moved, room.locked
    result = -1
    for _ in range(passes):
        top[:], highest[:], locked[:] = _NONE, -1, False
        cut, heavier = 0, 0
        for v in range(nodes):
            heavier += weight[v] if side[v] == 0 else -weight[v]
            across = 0
            for e in range(indptr[v], indptr[v + 1]):
                across += side[neighbours[e]] != side[v]
            cut += across
            gain[v] = 2 * across - (indptr[v + 1] - indptr[v]) + reach
            _put_in(v, side[v] + 2 * (weight[v] == 0), gain[v], above, below, top, highest)
        cut //= 2
        best, kept = cut if abs(heavier) <= uneven else -1, 0
        before, count = best, 0
        while True:
            shelf = -1
            for s in range(4):
                while highest[s] >= 0 and top[s, highest[s]] < 0:
                    highest[s] -= 1
                open_to = s > 1 or heavier == 0 or (heavier > 0) == (s == 0)
                if open_to and highest[s] >= 0 and (shelf < 0 or highest[s] >= highest[shelf]):
                    shelf = s
            if shelf < 0:
                break
            v = top[shelf, highest[shelf]]
            _take_out(v, shelf, gain[v], above, below, top)
            locked[v] = True
            cut -= gain[v] - reach
            heavier += -2 * weight[v] if side[v] == 0 else 2 * weight[v]
            side[v] = 1 - side[v]
            moved[count] = v
            count += 1
            for e in range(indptr[v], indptr[v + 1]):
                u = neighbours[e]
                if locked[u]:
                    continue
                shelf = side[u] + 2 * (weight[u] == 0)
                _take_out(u, shelf, gain[u], above, below, top)
                gain[u] += 2 if side[u] != side[v] else -2
                _put_in(u, shelf, gain[u], above, below, top, highest)
            if abs(heavier) <= uneven and (best < 0 or cut < best):
                best, kept = cut, count
        for i in range(kept, count):
            side[moved[i]] = 1 - side[moved[i]]
        result = best
        if best < 0 or best == before:
            break
    return result

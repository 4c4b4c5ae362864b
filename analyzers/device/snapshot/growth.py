"""What a program holds more of at one equal point of its steps than at another."""

from dataclasses import dataclass

import numpy as np

FLOOR_SHARE = 0.01  # of the peak; less is no growth
FLOOR_BYTES = 16_000_000
LEAK_ROUNDS = 4  # rounds of which each must hold more than the one before
_LOW, _HIGH = 0.35, 0.65  # of the way from the least to the most; a round falls below the one and rises above the other


@dataclass(frozen=True)
class Points:
    """Two places in a history, `start` before `end`. `equal`: whether both are the low point of a round (a step, as a
    rule), so that what lies between is no part of a step's own rise and fall. `rounds`: rounds in the history.
    `steady`: whether every low point lies above the one before, over at least LEAK_ROUNDS rounds, as a leak would."""

    start: int
    end: int
    equal: bool
    rounds: int
    steady: bool


def floor_of(peak_bytes: int) -> int:
    """Growth that is told: at least a hundredth of the peak, and 16 MB."""
    return max(int(FLOOR_SHARE * peak_bytes), FLOOR_BYTES)


def points(level: np.ndarray) -> Points:
    """Which two places of a history may be compared: the low points of its first and its last whole round, or, with
    fewer than two rounds, its beginning and its end."""
    lows = low_points(level)
    if len(lows) < 2:
        return Points(0, len(level) - 1, False, len(lows), False)
    steps = np.diff(level[lows])
    steady = len(lows) >= LEAK_ROUNDS and bool((steps > 0).all())
    return Points(int(lows[0]), int(lows[-1]), True, len(lows), steady)


def low_points(level: np.ndarray) -> np.ndarray:
    """The lowest place of each fall: between two rises above the high mark, the level has fallen below the low mark.

    What lies before the first rise and after the last one is no whole fall and has no low point.
    """
    least, most = int(level.min()), int(level.max())
    if most == least:
        return np.empty(0, np.int64)
    mark = np.zeros(len(level), np.int8)
    mark[level >= least + _HIGH * (most - least)] = 1
    mark[level <= least + _LOW * (most - least)] = -1
    at = np.flatnonzero(mark)
    turn = at[np.r_[True, mark[at][1:] != mark[at][:-1]]]  # where another mark is crossed than the last
    ups = turn[mark[turn] == 1]
    return np.array([a + int(level[a:b].argmin()) for a, b in zip(ups[:-1], ups[1:], strict=True)], np.int64)

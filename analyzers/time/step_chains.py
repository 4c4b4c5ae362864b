"""Streams of which each goes on where another ended: parts of a log that was rotated, or of hosts of one clock."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analyzers.time.source_clocks import COARSE_NS
from analyzers.time.step_streams import Stream


def chains(told: Sequence[Stream]) -> list[list[int]]:
    """Positions of streams of which each goes on where the one before ended, at the next step and within a few usual
    ones: parts of a log that was rotated, or of hosts of one clock. Others stand alone."""
    by_start: dict[int, list[tuple[int, int]]] = {}
    in_turn = sorted((int(one.start_ns[0]), k) for k, one in enumerate(told))
    for at, k in in_turn:
        by_start.setdefault(int(told[k].step[0]), []).append((at, k))
    found, within = [], set()
    for first in in_turn:
        if first[1] in within:
            continue
        parts, after = [], first
        while after is not None:  # taken out, so that of hundreds of hosts none is looked at again
            one = told[after[1]]
            same = by_start[int(one.step[0])]
            same.pop(bisect_left(same, after))
            parts.append(after[1])
            after = _goes_on(one, by_start.get(int(one.step[-1]) + 1, []))
        within.update(parts)
        found.append(parts)
    return found


def _goes_on(one: Stream, starts: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Of streams (start, position) in order of time that which goes on nearest to where this one ended; None where none
    does."""
    reach, end = max(COARSE_NS, 2 * one.usual_ns), int(one.end_ns[-1])
    later = bisect_left(starts, (end,))
    near = [*starts[later : later + 1]]
    if later:
        near.append(starts[bisect_left(starts, (starts[later - 1][0],))])
    found = min(near, key=lambda start: (abs(start[0] - end), start[1]), default=None)
    return found if found is not None and abs(found[0] - end) <= reach else None


def joined(parts: Sequence[Stream]) -> Stream:
    """Streams one after the other, as one."""
    if len(parts) == 1:
        return parts[0]
    names = ("row", "place", "step", "start_ns", "end_ns", "fresh", "announced")
    return replace(max(parts, key=len), **{name: np.concatenate([getattr(s, name) for s in parts]) for name in names})

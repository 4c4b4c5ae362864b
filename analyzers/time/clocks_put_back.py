"""Logs that go on where another ended, by a clock that was put back between the two.

A log that was rotated after summer time had ended, its times without a zone, begins with the next step, an hour before
the log that it follows ended. No job goes back in time, so it is the clock that did: by half an hour or several.
"""

from collections.abc import Sequence

from analyzers.time.source_clocks import COARSE_NS, HALF_HOUR_NS
from analyzers.time.step_streams import Stream, spoken


def put_back(told: Sequence[Stream]) -> list[int]:
    """By how much the clock of each stream was put back since the one that it goes on from, which counts along, ns."""
    moves = [0] * len(told)
    ends: dict[tuple[str, str, int], list[int]] = {}  # positions of streams by format, host and the step after them
    for k, one in enumerate(told):
        ends.setdefault((one.format, one.host, int(one.step[-1]) + 1), []).append(k)
    for k in sorted(range(len(told)), key=lambda k: int(told[k].step[0])):
        one = told[k]
        before = [i for i in ends.get((one.format, one.host, int(one.step[0])), []) if i != k]
        gaps = [int(told[i].end_ns[-1]) + moves[i] - int(one.start_ns[0]) for i in before]
        reach = max(COARSE_NS, *(2 * told[i].usual_ns for i in before), 2 * one.usual_ns)
        if gaps and min(map(abs, gaps)) > reach:
            moves[k] = max(_half_hours(gap, reach) for gap in gaps)
    return moves


def _half_hours(gap: int, reach: int) -> int:
    """A gap back in time, if it is one of half hours, as far as that can be told."""
    whole = round(gap / HALF_HOUR_NS) * HALF_HOUR_NS
    return whole if whole > 0 and abs(gap - whole) <= reach < HALF_HOUR_NS // 2 else 0


def put_back_said(told: Sequence[Stream], behind: Sequence[int], moves: Sequence[int]) -> list[str]:
    """A sentence for each stream that was moved for that alone. `moves`: by how much each was moved beside it."""
    return [
        f"{one.name or 'One input'}: it goes on with the next step {spoken(ns)} before the log that it follows ended, "
        "as where a clock is put back: its times were moved on by as much."
        for one, ns, more in zip(told, behind, moves, strict=True)
        if ns and abs(more) <= COARSE_NS
    ]


def moved_said(told: Sequence[Stream], moved: Sequence[int], moves: Sequence[int]) -> list[str]:
    """A sentence for each stream whose clock is not that of others of the same steps. `moved`: by how much it was moved
    in all, `moves`: of that, for others."""
    return [
        f"{one.name or 'One input'}: its clock is {spoken(gap)} {'behind' if gap > 0 else 'ahead of'} that of the "
        "others, which took the same steps; its times were moved."
        for one, gap, more in zip(told, moved, moves, strict=True)
        if abs(gap) > COARSE_NS and abs(more) > COARSE_NS
    ]

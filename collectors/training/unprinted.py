"""Steps of which a log has no line of their own: where it prints one in so many, and how long that one took."""

import re
from collections.abc import Sequence
from itertools import pairwise

from collectors.base import Source

FAR = 1.5  # a mean further from the one step that was printed than by this factor is no time of steps alone
BETWEEN = "not each has a line: those between two took the mean since the line before, or as long as the printed one"
MOST = 100_000  # steps that one line can stand for; more are a gap in the log


def printed_every(source: Source, number: re.Pattern[bytes]) -> int:
    """How many steps lie from one printed to the next at the beginning of a log; 0 where that is not told."""
    printed = sorted({int(n) for n in number.findall(source.head)})
    return min((b - a for a, b in pairwise(printed)), default=0)


def stood_for(step: int, before: int | None, stride: int, printed_ns: int, gap_ns: int | None) -> tuple[int, int]:
    """How many steps the line of `step` stands for, itself and those since the line before, and how long each took.

    `before`: the step of that line, `gap_ns`: the time since it, `printed_ns`: how long `step` took. `stride`: from one
    printed step to the next as a rule, 0 where not known. Where steps as long as the printed one fill the gap, their
    mean is it; else (a pause, no times, lines missing) they are as long as the printed one, and no more than `stride`.
    """
    count = first_of(step, stride) if before is None else step - before
    if not 1 < count <= MOST:
        return 1, printed_ns
    if gap_ns is not None and before is not None and printed_ns / FAR <= gap_ns / count <= printed_ns * FAR:
        return count, gap_ns // count
    return min(count, stride or count), printed_ns


def first_of(step: int, stride: int) -> int:
    """Of the first line of a log, or after a restart. Steps are counted from 0 or from 1."""
    regular = stride and (step % stride == 0 or (step + 1) % stride == 0)
    return min(stride, step + 1) if regular else 1


def laid_around(end: int, took: Sequence[int], pauses: Sequence[tuple[int, int]]) -> list[int]:
    """When each of the iterations began that took so long, the last up to `end`: back from there, and before a pause
    (start, end) once most of an iteration would lie in it. Where the first behind a pause would begin in it, as times
    in whole seconds have it, those up to the next pause begin that much closer to one another. All in ns."""
    starts, waiting = [0] * len(took), sorted(pauses, key=lambda pause: pause[1])
    behind, until = len(took), end  # those since the last pause, and where they end
    for n in range(len(took) - 1, -2, -1):
        while waiting and waiting[-1][1] > end - (took[n] // 2 if n >= 0 else 0):
            begun, ended = waiting.pop()
            if end < ended < until:
                starts[n + 1 : behind] = [
                    until - (until - at) * (until - ended) // (until - end) for at in starts[n + 1 : behind]
                ]
            end = min(end, begun)
            behind, until = n + 1, end
        if n >= 0:
            end -= took[n]
            starts[n] = end
    return starts

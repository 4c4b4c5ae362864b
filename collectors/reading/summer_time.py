"""Logs whose times name no zone, in the nights in which summer time ends and begins.

Such a clock shows an hour twice, or leaves one out. Read as they stand, the lines of a job that went on as ever go back
by an hour, or an hour seems lost. What shows it is the clock itself: on a Sunday on which some country changes its
clocks, by night, it goes back within one hour by more than half of it, or from shortly before a full hour to shortly
after the next. From then on times are those of before, an hour added or taken off.
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime

from collectors.reading.textlog import NS_PER_S

_HOUR_NS = 3600 * NS_PER_S
_HALF_NS = _HOUR_NS // 2
_NEAR_NS = 300 * NS_PER_S  # lines of a job at work come so close before and after an hour that is left out
_LAST_HOUR = 3  # no country changes its clocks later in the night
_SUNDAY = 6
_ENDS = ((10, 25), (11, 1), (4, 1))  # month, and the first day of the week whose Sunday it is
_BEGINS = ((3, 8), (3, 25), (9, 24), (10, 1))
ENDED = (
    "the clock went back by an hour in the night in which summer time ends: what follows was read as an hour later, "
    "so that it goes on"
)
BEGAN = (
    "the clock left out an hour in the night in which summer time begins: what follows was read as an hour earlier, "
    "so that it goes on"
)


@dataclass(frozen=True, slots=True)
class _Line:
    offset: int
    written_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class _Change:
    """From `offset` on, a line after `before`, lines stand in the second showing of an hour, or again in the first."""

    offset: int
    second: bool
    before: _Line


class SummerTime:
    """Adds what a log's clock lost and gained in such nights. Lines may be asked for again, out of order."""

    def __init__(self) -> None:
        self._latest: _Line | None = None
        self._twice: dict[int, list[_Change]] = {}  # hours that were shown twice, by when they began as written
        self._resumed: list[int] = []  # where the clock went on after an hour that it left out
        self.said: str | None = None  # what must be told of the last line that was asked for

    def ns(self, written_ns: int, offset: int) -> int:
        """The time of a line by the clock with which the log began."""
        self.said, before = None, self._latest
        if before is not None and offset < before.offset:
            return written_ns + self._earlier(written_ns, offset)
        if before is not None:
            self._look(before, written_ns)
        ns = written_ns + (0 if before is None else self._added(before, written_ns, offset))
        self._latest = _Line(offset, written_ns, ns)
        return ns

    def _look(self, before: _Line, written_ns: int) -> None:
        """Whether the clock was changed since the line before."""
        back, hour = before.written_ns - written_ns, _hour_of(written_ns)
        if back > _HALF_NS:
            if hour == _hour_of(before.written_ns) and hour not in self._twice and _in_a_night(hour, _ENDS):
                self._twice[hour], self.said = [], ENDED
        elif -_HOUR_NS - 2 * _NEAR_NS < back <= -_HOUR_NS:
            near = written_ns - hour < _NEAR_NS and hour - _HOUR_NS - before.written_ns <= _NEAR_NS
            left_out = hour - _HOUR_NS
            if near and before.written_ns < left_out and hour not in self._resumed and _in_a_night(left_out, _BEGINS):
                self._resumed.append(hour)
                self.said = BEGAN

    def _added(self, before: _Line, written_ns: int, offset: int) -> int:
        added, hour = self._passed(written_ns), _hour_of(written_ns)
        if hour not in self._twice:
            return added
        first = written_ns + added - before.ns
        second = abs(first + _HOUR_NS) < abs(first)
        changes = self._twice[hour]
        if second != (bool(changes) and changes[-1].second):
            changes.append(_Change(offset, second, before))
        return added + second * _HOUR_NS

    def _earlier(self, written_ns: int, offset: int) -> int:
        """What was added to lines about `offset`, before the last."""
        added, changes = self._passed(written_ns), self._twice.get(_hour_of(written_ns), [])
        place = bisect_right(changes, offset, key=lambda change: change.offset)
        second = place > 0 and changes[place - 1].second
        if place < len(changes) and changes[place].second and offset > changes[place].before.offset:
            second = changes[place].before.written_ns - written_ns > _HALF_NS
        return added + second * _HOUR_NS

    def _passed(self, written_ns: int) -> int:
        if not self._twice and not self._resumed:
            return 0
        twice = sum(written_ns >= hour + _HOUR_NS for hour in self._twice)
        return (twice - sum(written_ns >= at for at in self._resumed)) * _HOUR_NS


def _hour_of(ns: int) -> int:
    return ns // _HOUR_NS * _HOUR_NS


def _in_a_night(hour_ns: int, weeks: tuple[tuple[int, int], ...]) -> bool:
    """Whether an hour begins in a night in which clocks are changed somewhere."""
    at = datetime.fromtimestamp(hour_ns // NS_PER_S, UTC)
    week = any(at.month == month and first <= at.day < first + 7 for month, first in weeks)
    return week and at.weekday() == _SUNDAY and at.hour <= _LAST_HOUR

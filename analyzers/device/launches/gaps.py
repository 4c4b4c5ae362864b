"""Why a device was idle, gap by gap: from what ended the gap, and from when that was launched.

late      the host had not begun the call that launches the next execution
delay     from the begin of that call to the execution's start, as far as the device was idle before
between   the call was done before the gap began: the device's own time between executions, or an execution that
          was held back for another stream, a copy or an event
untold    the profile does not hold the call
"""

from dataclasses import dataclass

import numpy as np

from analyzers.device.launches.seen import UNKNOWN, Launched
from analyzers.intervals import Spans, spans

DELAY, BETWEEN, UNTOLD = range(3)


@dataclass(frozen=True)
class Gaps:
    """Stretches in which a device was idle, in order. Up to `late_until` (from `start` to `end`) the host was late; the
    rest is of the kind `rest`. `next`: which execution of the capture ended it, -1 where none came; `thread`: the
    number of the thread that launched that, -1 where it is not known."""

    start: np.ndarray
    end: np.ndarray
    late_until: np.ndarray
    rest: np.ndarray
    next: np.ndarray
    thread: np.ndarray

    def late(self, thread: int | None = None) -> Spans:
        """When the host was late, or when one thread of it was."""
        mine = slice(None) if thread is None else self.thread == thread
        return spans(self.start[mine], self.late_until[mine])

    def of(self, rest: int) -> Spans:
        mine = self.rest == rest
        return spans(self.late_until[mine], self.end[mine])


def gaps_of(ran: Launched, stretches: Spans) -> Gaps:
    """Judges idle stretches of a device, sorted and disjoint, which lie within one capture. O(n log n)."""
    stretches = _cut(stretches, ran.start)
    at = np.searchsorted(ran.start, stretches.end, side="left")
    some = at < len(ran.start)
    which = np.where(some, at, 0)
    begin, done = (_of(values, which, UNKNOWN) for values in (ran.call_start, ran.call_end))
    known = some & (begin != UNKNOWN)
    late = np.where(known, np.clip(begin, stretches.start, stretches.end), stretches.start)
    late = np.where(some, late, stretches.end)  # nothing was launched any more
    rest = np.where(known, np.where(done <= stretches.start, BETWEEN, DELAY), UNTOLD)
    thread = np.where(known, _of(ran.thread, which, -1), -1)
    return Gaps(stretches.start, stretches.end, late, rest, np.where(some, at, -1), thread)


def _cut(stretches: Spans, at: np.ndarray) -> Spans:
    """The same, ended and begun again where one of sorted instants lies inside: an execution too short for the clock
    leaves its device idle, but was waited for."""
    which = np.searchsorted(stretches.start, at, side="right") - 1
    at, which = at[which >= 0], which[which >= 0]
    inner = np.unique(at[(at > stretches.start[which]) & (at < stretches.end[which])])
    if not len(inner):
        return stretches
    return Spans(np.sort(np.append(stretches.start, inner)), np.sort(np.append(stretches.end, inner)))


def _of(values: np.ndarray, which: np.ndarray, missing: int) -> np.ndarray:
    return values[which] if len(values) else np.full(len(which), missing)

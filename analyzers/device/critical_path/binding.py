"""What each execution waited for before it began: what had to end first, the call that launched it, or nothing known.

queued      the call was done before what ran before it on its stream (or what the stream was told to wait for)
            ended; of a call that copied and returned once that was done: it had begun before. It follows that;
            time in between is `between_kernels`
launched    else it follows its call, from whose begin on it is `launch_delay`
held back   queued or launched, it took more than LONG times as long as is usual on the device, and meanwhile
            another stream's execution ended: it is told to have waited for that (rule `other_stream`)
not known   no call is known. Where it begins the instant that its stream's last one ended it follows that; else
            what ended last on the device (rule `ended_last`), and while the device was idle the feeding thread
"""

import re
from dataclasses import dataclass

import numpy as np

from analyzers.device.critical_path.kinds import FED, FOLLOWS, LAUNCHED, RULE, UNBOUND
from analyzers.device.launches.seen import Launched

COPY = re.compile(r"^(cuda|hip|cu)Memcpy")
LONG = 3.0  # times the median from call to start, or from what ended to the start of what was queued
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Bound:
    """Of each execution: `how` (FOLLOWS `before`; LAUNCHED by its call; FED: `before` ended, and then the device was
    idle; UNBOUND: nothing is known), `before` (position in the lane, -1: none), the rule that says so, and
    what ran before it on its stream (`stream`, -1: none)."""

    how: np.ndarray
    before: np.ndarray
    rule: np.ndarray
    stream: np.ndarray


def bound(ran: Launched, start: np.ndarray, told: np.ndarray) -> Bound:
    """`start`: when each began to be what it is (an asynchronous collective earlier than its end on the device).
    `told`: the execution that its stream was told to wait for, -1 where none. O(n log n)."""
    n = len(start)
    stream = last_before(ran.stream, start, ran.end)
    anyone = last_before(np.zeros(n, np.int64), start, ran.end)
    stream_end, any_end, told_end = (_end(ran.end, which) for which in (stream, anyone, told))
    event = told_end > stream_end
    queue, queue_end = np.where(event, told, stream), np.maximum(stream_end, told_end)
    at_once = (start <= queue_end) & (queue >= 0)
    copied = np.array([*(bool(COPY.search(call)) for call in ran.calls), False])[ran.call]
    begun = np.where(copied & (ran.call_end >= ran.end), ran.call_start, ran.call_end)
    queued = ran.known & ((begun <= queue_end) | at_once)
    launch = ran.known & ~queued
    other = _long(start - queue_end, queued & ~at_once) & (any_end > queue_end)
    other |= (
        (_long(start - ran.call_start, launch) | _right_after(ran, start, any_end)) & launch & (any_end > ran.call_end)
    )
    fed = ~ran.known & ~at_once
    how = np.where(launch & ~other, LAUNCHED, np.where(fed, np.where(anyone >= 0, FED, UNBOUND), FOLLOWS))
    before = np.where(other | fed, anyone, queue)
    rule = np.where(event, RULE["event"], RULE["stream"])
    rule = np.where(other, RULE["other_stream"], np.where(fed, RULE["ended_last"], rule))
    return Bound(how, before, np.where(how == LAUNCHED, RULE["launch"], rule), stream)


def last_before(group: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Of each interval the one of its group that ended last before it began; of several that end at once the later one
    by position, and never one that comes after it. -1 where none did. O(n log n)."""
    n = len(start)
    position = np.arange(n)
    kind = np.repeat(np.array([0, 1]), n)  # of one that takes no time: its start, then its end
    order = np.lexsort((kind, np.tile(position, 2), np.concatenate([start, end]), np.tile(group, 2)))
    ends = kind[order] == 1
    at = np.where(ends, np.arange(2 * n), -1)
    at = np.maximum.accumulate(at) if n else at
    which, owner = order % max(n, 1), np.where(at >= 0, order[at] % max(n, 1), -1)
    mine = ~ends
    out = np.full(n, -1)
    found = owner[mine]
    same = (found >= 0) & (group[found] == group[which[mine]])
    out[which[mine]] = np.where(same, found, -1)
    return out


def _end(end: np.ndarray, which: np.ndarray) -> np.ndarray:
    return np.where(which >= 0, end[which], NEVER)


def _right_after(ran: Launched, start: np.ndarray, any_end: np.ndarray) -> np.ndarray:
    """Whether an execution began right after another ended, and long after its call: where nearly all that is launched
    is held back, as collectives on a stream of their own are, what is usual among these tells nothing."""
    took, calls = start - ran.call_start, (ran.call_end - ran.call_start)[ran.known]
    usual = float(np.median(calls)) if len(calls) else 0.0
    return ran.known & (took > LONG * usual) & (LONG * (start - any_end) < took)


def _long(took: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Whether one of these took much longer than is usual among them."""
    usual = float(np.median(took[mine])) if mine.any() else 0.0
    return mine & (took > LONG * usual)

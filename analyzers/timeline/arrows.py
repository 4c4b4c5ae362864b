"""What belongs to an event elsewhere: the call that launched it, what it launched, and its collective on other ranks.

Launches are those of the trace (`launches`): by the number that a driver writes beside a call and beside whatever that
made a device execute. Collectives are matched across ranks as `ranks/meetings.py` does it, by durations' order and not
by clocks; the events of a meeting are found by their ranks' own times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analyzers.ranks.meetings import Meetings
from analyzers.timeline import Timeline
from analyzers.timeline.lanes import CODE, DEVICE, NONE, PS_PER_NS
from analyzers.timeline.moments import lane_at, row_of, undated
from analyzers.timeline.pyramid import Ints
from runs.tables import Tables, int_column

MOST = 64  # that are told
CHUNK = 1 << 22  # events looked through at once
LAUNCH, COLLECTIVE = "launch", "collective"
OF_COLLECTIVES = CODE["exposed_communication"]


@dataclass(frozen=True)
class Arrow:
    """From one event to another, by number. `kind`: LAUNCH, from the call to what a device executed; COLLECTIVE, from
    the event that was asked about to the same collective of another rank."""

    source: int
    target: int
    kind: str


@dataclass(frozen=True)
class Arrows:
    """`more`: how many there are beside those told."""

    arrows: tuple[Arrow, ...]
    more: int


def arrows(of: Timeline, tables: Tables, met: Meetings | None, number: int) -> Arrows:
    """Those of one event. `met`: None where the run has no collectives with times."""
    if of.event[number] == NONE:
        return Arrows((), 0)
    found = list(_launches(of, tables, number))
    if met is not None and of.tiles.code[number] == OF_COLLECTIVES:
        if (late := undated(of, tables, met.capture)).any():
            met = replace(met, start_ns=met.start_ns + of.origin_ns * late)
        found += _meeting(of, met, number)
    return Arrows(tuple(found[:MOST]), max(len(found) - MOST, 0))


def _launches(of: Timeline, tables: Tables, number: int) -> Iterator[Arrow]:
    capture, event = int(of.capture[number]), int(of.event[number])
    for mine, other, turned in (("event", "call_event", True), ("call_event", "event", False)):
        rows = tables.arrow("launches", [other], [("capture", "==", capture), (mine, "==", event)])
        for there in _numbered(of, capture, np.unique(int_column(rows, other, NONE))):
            yield Arrow(there, number, LAUNCH) if turned else Arrow(number, there, LAUNCH)


def _numbered(of: Timeline, capture: int, events: Ints) -> list[int]:
    """Where events of a capture stand, in order of time; those that are not drawn are left out."""
    wanted = events[events != NONE]
    found: list[int] = []
    for at in range(0, of.events if len(wanted) else 0, CHUNK):
        mine = np.asarray(of.event[at : at + CHUNK])
        some = mine == wanted[0] if len(wanted) == 1 else np.isin(mine, wanted)
        hits = at + np.flatnonzero(some)
        found += hits[of.capture[hits] == capture].tolist()
    return sorted(found, key=lambda n: int(of.tiles.start[n]))


def _meeting(of: Timeline, met: Meetings, number: int) -> list[Arrow]:
    """To the parts of other ranks, in order of ranks."""
    lane = _lane(of, number)
    rank = np.flatnonzero((met.ranks["host"] == of.lanes[lane].lane.host) & _device(met, of.lanes[lane].lane.device))
    at = _start_ns(of, number)
    same = (met.capture == int(of.capture[number])) & (met.start_ns == at) & np.isin(met.rank, rank)
    mine = np.flatnonzero(same)
    if not len(mine):
        return []
    others = np.flatnonzero((met.meeting == met.meeting[mine[0]]) & (met.rank != met.rank[mine[0]]))
    others = others[np.argsort(met.rank[others], kind="stable")]
    like = of.lanes[lane].lane.role
    found = (_part(of, met, int(row), like) for row in others)
    return [Arrow(number, there, COLLECTIVE) for there in found if there is not None]


def _device(met: Meetings, device: int | None) -> np.ndarray:
    return (met.ranks["device"] == (0 if device is None else device)).to_numpy()


def _lane(of: Timeline, number: int) -> int:
    return lane_at(of, row_of(of, number))


def _start_ns(of: Timeline, number: int) -> int:
    """As tables have it, on the clock of the event's own host."""
    return of.origin_ns + int(of.tiles.start[number]) * of.tick_ps // PS_PER_NS


def _part(of: Timeline, met: Meetings, row: int, like: str) -> int | None:
    """The event of one rank's part in a collective, of a line of this role where it has one."""
    host, device = met.ranks["host"].iloc[met.rank[row]], int(met.ranks["device"].iloc[met.rank[row]])
    begin = (int(met.start_ns[row]) - of.origin_ns) * PS_PER_NS // of.tick_ps
    end = begin + max(PS_PER_NS // of.tick_ps, 1)
    lanes = [one for one in of.lanes if (one.lane.group, one.lane.host, one.lane.device) == (DEVICE, host, device)]
    for lane in sorted(lanes, key=lambda one: one.lane.role != like):
        for place in range(lane.first_row, lane.first_row + lane.rows):
            low, high = int(of.tiles.first[place]), int(of.tiles.first[place + 1])
            a, b = (low + int(n) for n in np.searchsorted(of.tiles.start[low:high], [begin, end]))
            some = (n for n in range(a, b) if of.tiles.code[n] == OF_COLLECTIVES and of.event[n] != NONE)
            if (found := next(some, None)) is not None:
                return found
    return None

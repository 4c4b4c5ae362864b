"""A timeline made: lanes one after another, so that no more than the largest of them is in memory.

gathered    every event is put down as it is read (`gathered.py`)
planned     once all are: what the clock is, where each lane stands, which number each name has
placed      lane by lane: its events get rows and are written in their order (`placing.py`)
levels      are summed from what was written, some rows at a time (`pyramid.py`)

Each of these but the second takes some of the events alone, and gives the same whichever others it takes with them: so
workers do them for the timeline of a run with many (`spread/`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.time.history import natural_key
from analyzers.timeline.booked import ACCOUNT, strips
from analyzers.timeline.clock import Clock, clock_of
from analyzers.timeline.columns import Columns
from analyzers.timeline.gathered import PutDown, few_enough, gathered
from analyzers.timeline.lanes import GROUPS, ROLES, Lane, parts
from analyzers.timeline.placing import Numbers, Placing, Source, Stretches
from analyzers.timeline.pyramid import Made, levels
from analyzers.timeline.record import Row
from analyzers.timeline.traced import traced
from errors import QuestionError
from runs.tables import Tables

EVENTS = ("op_events", "requests", "iterations", "steps", "lifecycle")


@dataclass(frozen=True, kw_only=True)
class Built:
    """What of a timeline is no column. `same`: columns that are not written, for all their values are one."""

    lanes: tuple[Row, ...]
    made: Made
    clock: Clock
    names: tuple[str, ...]
    stored: int
    strips: int
    notes: tuple[str, ...]
    same: dict[str, int]
    kinds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is known once all events are put down. `lanes`, `names`: in their order, whoever put them down; `numbers`:
    of each source, which number each of its names has."""

    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    clock: Clock
    stretches: Stretches
    numbers: tuple[NDArray[np.int32], ...]
    ranges: dict[str, tuple[int, int]]
    backwards: int
    traced: int

    def built(self, told: Sequence[Numbers], made: Made, kinds: set[int], tables: Tables, lost: Counter[str]) -> Built:
        """`told`: of each lane, its first row counted from that of the first lane; `lost`: see `lanes.parts`."""
        lanes = tuple(Row(lane, *numbers) for lane, numbers in zip(self.lanes, told, strict=True))
        beside = sum(row.events for row in lanes if row.lane.role == ACCOUNT)
        lost = Counter({**lost, "events": tables.rows("op_events") - self.traced})
        return Built(
            lanes=lanes,
            made=made,
            clock=self.clock,
            names=self.names,
            stored=int(self.stretches.told["size"].sum()) - beside + lost.total(),
            strips=beside,
            notes=tuple(self._notes(lost)),
            same={name: low for name, (low, high) in self.ranges.items() if low == high},
            kinds=tuple(sorted(kinds)),
        )

    def _notes(self, lost: Counter[str]) -> Iterator[str]:
        if self.backwards:
            yield f"{self.backwards:,} events end before they begin: they are drawn as instants."
        for what, count in lost.items():
            if count:
                why = "no operation, capture or time that the run holds" if what == "events" else "no begin or no end"
                yield f"{count:,} {what} are not drawn: they have {why}."
        if self.clock.dated and not self.stretches.told["dated"].all():
            yield "Some captures have no time of day: they stand at the beginning."


def build(tables: Tables, facts: Facts, put_down: Columns, into: Columns) -> Built:
    """Write the columns of a run's timeline. Raises QuestionError where nothing of it has a place in time."""
    lost = Counter[str]()
    every = chain(strips(tables, facts), parts(tables, facts, lost), traced(tables))
    plan = planned([gathered(every, put_down, sum(tables.rows(name) for name in EVENTS))])
    placing = Placing(plan.stretches, [Source(put_down, plan.numbers[0])], plan.clock, plan.ranges, into)
    told = placing.placed()
    made = levels(into, into.take("first", [(0, into.length("first"))]))
    return plan.built(told, made, placing.kinds, tables, lost)


def planned(sources: Sequence[PutDown]) -> Plan:
    """Raises QuestionError where nothing has a place in time, or there are too many lanes."""
    lanes = sorted(set().union(*(s.lanes for s in sources)), key=_place)
    if not lanes:
        raise QuestionError(
            "nothing of this run has a place in time",
            expected="a profile, steps or lifecycle entries with times, or requests",
        )
    few_enough(len(lanes))
    names = sorted(set().union(*(s.names for s in sources)))
    place, number = ({what: n for n, what in enumerate(known)} for known in (lanes, names))
    told = {name: np.concatenate([s.told[name] for s in sources]) for name in sources[0].told}
    told["lane"] = np.concatenate([_numbers(s.lanes, place, np.int64)[s.told["lane"]] for s in sources])
    return Plan(
        lanes=tuple(lanes),
        names=tuple(names),
        clock=clock_of(told),
        stretches=Stretches(len(lanes), told, np.repeat(np.arange(len(sources)), [len(s.told["at"]) for s in sources])),
        numbers=tuple(_numbers(s.names, number, np.int32) for s in sources),
        ranges=_widest([s.ranges for s in sources]),
        backwards=sum(s.backwards for s in sources),
        traced=sum(s.traced for s in sources),
    )


def _numbers(some: Sequence[Any], number: dict[Any, int], kind: type[Any]) -> NDArray[Any]:
    return np.array([number[one] for one in some], kind)


def _widest(ranges: Sequence[dict[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name, (low, high) in (one for of in ranges for one in of.items()):
        before = found.get(name, (low, high))
        found[name] = min(before[0], low), max(before[1], high)
    return found


def _place(lane: Lane) -> tuple[Any, ...]:
    role = -1 if lane.role == ACCOUNT else ROLES.index(lane.role) if lane.role in ROLES else len(ROLES)
    device = -1 if lane.device is None else lane.device
    named = GROUPS.index(lane.group), natural_key(lane.host), device, role, natural_key(lane.line)
    return *named, lane.host, lane.line, lane.role  # else those alike would stand as they were met

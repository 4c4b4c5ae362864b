"""The timeline of a run: every event that it holds, lane by lane, drawn from no more than a screen shows.

    lanes     what stands where (`lanes.py`), rows within them so that no event covers another (`pyramid.rows`)
    tiles     levels of bins over the events (`pyramid.py`), and what a window shows of them (`window.py`)

Shown is what is stored: of every level the events and the time of its bins sum to those of the events (`sums`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.base import Facts
from analyzers.time.history import natural_key
from analyzers.timeline.booked import ACCOUNT, strips
from analyzers.timeline.lanes import GROUPS, NONE, PS_PER_NS, ROLES, Lane, Part, parts
from analyzers.timeline.pyramid import Ints, Pyramid, pyramid, rows
from errors import QuestionError
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = ()
LONGEST_NS = (1 << 62) // PS_PER_NS  # beyond, some 53 days, times are whole nanoseconds


@dataclass(frozen=True)
class Row:
    """A lane with its rows. `first_row`: of the timeline's; `busy_ticks`: time that its events cover, nested ones
    counted once each in their own rows."""

    lane: Lane
    first_row: int
    rows: int
    events: int
    busy_ticks: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """Events in order of row and start, with what they are. Times in ticks of `tick_ps` since `origin_ns`; `dated`:
    whether that is a time of day. `name`: number in `names`; `number`, `capture`, `event`, `op`: see `Part`. `stored`:
    events that the run holds; `strips`: stretches of accounts, which are drawn beside them."""

    lanes: tuple[Row, ...]
    tiles: Pyramid
    tick_ps: int
    origin_ns: int
    dated: bool
    names: tuple[str, ...]
    name: NDArray[np.int32]
    number: Ints
    capture: NDArray[np.int32]
    event: Ints
    op: Ints
    stored: int
    strips: int
    notes: tuple[str, ...] = field(default=())

    @property
    def span(self) -> int:
        """Ticks from the first event to the end of the last."""
        return max((lane.end for lane in self.lanes), default=0)

    @property
    def events(self) -> int:
        return len(self.tiles.start)


def timeline(tables: Tables, facts: Facts) -> Timeline:
    """Raises QuestionError where nothing of the run has a place in time."""
    lost = Counter[str]()
    found = [part for part in (*strips(tables, facts), *parts(tables, facts, lost)) if len(part.start)]
    if not found:
        raise QuestionError(
            "nothing of this run has a place in time",
            expected="a profile, steps or lifecycle entries with times, or requests",
        )
    dated = [part for part in found if part.dated]
    origin = min(part.base_ns + int(part.start.min()) // part.per_ns for part in (dated or found))
    last = max(
        part.base_ns + int((part.start + np.maximum(part.dur, 0)).max()) // part.per_ns for part in (dated or found)
    )
    per_ns = PS_PER_NS if last - origin < LONGEST_NS else 1
    lanes = sorted(dict.fromkeys(part.lane for part in found), key=_place)
    lost["events"] = tables.rows("op_events") - sum(len(part.start) for part in found if part.event is not None)
    return _joined(found, lanes, origin, per_ns, bool(dated), lost)


def _place(lane: Lane) -> tuple[Any, ...]:
    role = -1 if lane.role == ACCOUNT else ROLES.index(lane.role) if lane.role in ROLES else len(ROLES)
    device = -1 if lane.device is None else lane.device
    return GROUPS.index(lane.group), natural_key(lane.host), device, role, natural_key(lane.line)


def _joined(
    found: list[Part], lanes: list[Lane], origin: int, per_ns: int, dated: bool, lost: Counter[str]
) -> Timeline:
    at = {lane: n for n, lane in enumerate(lanes)}
    sizes = [len(part.start) for part in found]
    lane = np.repeat([at[part.lane] for part in found], sizes).astype(np.int64)
    start = np.concatenate([_ticks(part, part.start, origin, per_ns) for part in found])
    end = np.concatenate([_ticks(part, part.start + np.maximum(part.dur, 0), origin, per_ns) for part in found])
    backwards = sum(int((part.dur < 0).sum()) for part in found)
    start -= (begin := min(int(start.min()), 0))  # undated beside dated ones
    end -= begin
    row, first = _rows(lane, start, end - start, found, len(lanes))
    code = np.concatenate([part.code for part in found])
    tiles = pyramid(first[lane] + row, start, end - start, code, int(first[-1]))
    names: dict[str, int] = {}
    name = np.concatenate([_numbered(part.text, names) for part in found])[tiles.order]
    none = [np.full(size, NONE, np.int64) for size in sizes]

    def column(values: list[Ints | None]) -> Ints:
        return np.concatenate([n if v is None else v for v, n in zip(values, none, strict=True)])[tiles.order]

    captures: list[Ints | None] = [np.full(len(p.start), p.capture, np.int64) for p in found]
    return Timeline(
        lanes=tuple(_told(lanes, lane, start, end, first)),
        tiles=tiles,
        tick_ps=PS_PER_NS // per_ns,
        origin_ns=origin + begin // per_ns,
        dated=dated,
        names=tuple(names),
        name=name,
        number=column([part.number for part in found]),
        capture=column(captures).astype(np.int32),
        event=column([part.event for part in found]),
        op=column([part.op for part in found]),
        stored=sum(sizes) - sum(_drawn_beside(found)) + lost.total(),
        strips=sum(_drawn_beside(found)),
        notes=_notes(backwards, lost, found, dated),
    )


def _drawn_beside(found: list[Part]) -> list[int]:
    return [len(part.start) for part in found if part.lane.role == ACCOUNT]


def _ticks(part: Part, times: Ints, origin: int, per_ns: int) -> Ints:
    since = (part.base_ns - origin) * per_ns if part.dated or origin <= 0 else 0
    return since + (times if part.per_ns == per_ns else times * per_ns if part.per_ns == 1 else times // part.per_ns)


def _rows(lane: Ints, start: Ints, dur: Ints, found: list[Part], count: int) -> tuple[Ints, Ints]:
    """(row of each event within its lane, the first row of each lane of all, and one more)."""
    row = np.empty(len(lane), dtype=np.int64)
    whole = np.concatenate([np.full(len(p.start), NONE, np.int64) if p.whole is None else p.whole for p in found])
    single = np.flatnonzero(whole == NONE)
    order, told = rows(lane[single], start[single], dur[single])
    row[single[order]] = told
    shared = np.flatnonzero(whole != NONE)
    if len(shared):
        row[shared] = _of_wholes(lane[shared], whole[shared], start[shared], dur[shared])
    depth = np.zeros(count, dtype=np.int64)
    np.maximum.at(depth, lane, row + 1)
    return row, np.concatenate([[0], np.cumsum(depth)])


def _of_wholes(lane: Ints, whole: Ints, start: Ints, dur: Ints) -> Ints:
    """The row of each of several events that stand in one."""
    _, group = np.unique(np.stack([lane, whole]), axis=1, return_inverse=True)
    group = group.ravel()
    begin, end = np.full(int(group.max()) + 1, np.iinfo(np.int64).max), np.zeros(int(group.max()) + 1, np.int64)
    of = np.zeros(len(begin), np.int64)
    np.minimum.at(begin, group, start)
    np.maximum.at(end, group, start + dur)
    of[group] = lane
    order, told = rows(of, begin, end - begin)
    row = np.empty(len(begin), np.int64)
    row[order] = told
    return row[group]


def _numbered(texts: NDArray[np.object_], names: dict[str, int]) -> NDArray[np.int32]:
    import pandas as pd

    codes, unique = pd.factorize(texts)
    at = np.array([names.setdefault(str(text), len(names)) for text in unique], dtype=np.int32)
    return at[codes]


def _told(lanes: list[Lane], lane: Ints, start: Ints, end: Ints, first: Ints) -> list[Row]:
    events, busy = np.bincount(lane, minlength=len(lanes)), np.zeros(len(lanes), np.int64)
    begins, ends = np.full(len(lanes), np.iinfo(np.int64).max), np.zeros(len(lanes), np.int64)
    np.add.at(busy, lane, end - start)
    np.minimum.at(begins, lane, start)
    np.maximum.at(ends, lane, end)
    return [
        Row(
            one, int(first[n]), int(first[n + 1] - first[n]), int(events[n]), int(busy[n]), int(begins[n]), int(ends[n])
        )
        for n, one in enumerate(lanes)
    ]


def _notes(backwards: int, lost: Counter[str], found: list[Part], dated: bool) -> tuple[str, ...]:
    said = []
    if backwards:
        said.append(f"{backwards:,} events end before they begin: they are drawn as instants.")
    for what, count in lost.items():
        if count:
            why = "no operation, capture or time that the run holds" if what == "events" else "no begin or no end"
            said.append(f"{count:,} {what} are not drawn: they have {why}.")
    if dated and any(not part.dated for part in found):
        said.append("Some captures have no time of day: they stand at the beginning.")
    return tuple(said)


@dataclass(frozen=True, kw_only=True)
class TimelineResult:
    """The lanes of a run, and what is stored beside what the levels hold."""

    timeline: Timeline
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        of = self.timeline
        seconds = of.tick_ps / 1e12
        sums = list(of.tiles.sums())
        return {
            "origin_ns": of.origin_ns if of.dated else None,
            "first_to_last_event_s": of.span * seconds,
            "tick_ps": of.tick_ps,
            "events_stored": of.stored,
            "events_in_tiles": min((events for _, events, _ in sums), default=of.events) - of.strips,
            "account_stretches": of.strips,
            "levels": [
                {"bin_s": (1 << shift) * seconds, "events": n, "busy_s": busy * seconds} for shift, n, busy in sums
            ],
            "lanes": [
                {
                    "group": row.lane.group,
                    "host": row.lane.host,
                    "device": row.lane.device,
                    "line": row.lane.line,
                    "role": row.lane.role,
                    "rows": row.rows,
                    "events": row.events,
                    "busy_s": row.busy_ticks * seconds,
                    "start_s": row.start * seconds,
                    "end_s": row.end * seconds,
                }
                for row in of.lanes
            ],
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: Mapping[str, Any]) -> TimelineResult:
    of = timeline(tables, facts)
    return TimelineResult(timeline=of, notes=of.notes)

"""Bookmarks and comments on a timeline: where they stand, by what stays when a timeline is made anew.

Ticks count from a run's first event and rows from its first lane, and both may change: a run that is followed grows,
and another version may order lanes otherwise. So a mark is kept at nanoseconds since 1970 (and picoseconds of these),
and on lanes by what they are. A lane that is gone since is left out when it is read.
"""

import json
from collections.abc import Mapping
from dataclasses import astuple
from functools import cache
from typing import Any

from analyzers.timeline import Timeline
from analyzers.timeline.lanes import PS_PER_NS
from analyzers.timeline.moments import lane_at
from app.identity.asking import who
from app.library.changes import clean_who
from app.timeline.ranges import ranges_of
from app.workspace import Workspace
from errors import InputError
from errors.numbers import Number
from errors.options import Option, parse_options
from runs.run import Run
from runs.timeline_book import Mark, TimelineBook

MOST_ROWS = 64
_TICK = Number(-(1 << 62), 1 << 62, whole=True)
AT = Option("at", _TICK, None, "the time that it is at, in ticks since the timeline's origin", "ticks")
FROM = Option("from", _TICK, None, "where the window begins that shows it", "ticks")
TO = Option("to", _TICK, None, "where that ends", "ticks")
ROWS = Option("rows", str, "", f"on which rows, at most {MOST_ROWS}: 0-3,7; default: on none", form="A-B,C")
CLOCKS = Option("clocks", ("recorded", "aligned"), "recorded", "by which clocks the times are")
TEXT = Option("text", str, "", "what is said; empty for a bookmark")
WHO = Option("who", str, "", "who says it, where the server does not know")
GIVEN = (AT, FROM, TO, ROWS, CLOCKS, TEXT, WHO)


@cache
def _book(place: Workspace) -> TimelineBook:
    return TimelineBook(place.registry.at)


def kept(place: Workspace, run: Run, of: Timeline) -> list[dict[str, Any]]:
    """All of a run, in order of time."""
    lanes = {astuple(row.lane): row for row in of.lanes}
    told = [_told(of, mark, lanes) for mark in _book(place).marks(run.run_id)]
    return sorted(told, key=lambda mark: (mark["at"], mark["id"]))


def keep(place: Workspace, run: Run, of: Timeline, given: Mapping[str, Any]) -> int:
    """The number of a new one. Raises InputError for what is no mark."""
    if unknown := sorted(set(given) - {o.name for o in GIVEN}):
        raise InputError(f"a mark has no {unknown[0][:40]!r}", expected=", ".join(o.name for o in GIVEN))
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{name!r} is neither a text nor a whole number", expected="one of these")
    asked = parse_options(GIVEN, {name: str(value) for name, value in given.items()})
    times = {name: asked[name] for name in ("at", "from", "to")}
    for name, value in times.items():
        if value is None:
            raise InputError(f"a mark without {name!r}", expected="ticks, as the timeline counts them")
    if times["to"] <= times["from"]:
        raise InputError(f"a window from {times['from']:,} to {times['to']:,}", expected="an end after the start")
    spot = {name: _moment(of, int(value)) for name, value in times.items()}
    spot |= {"clocks": asked["clocks"], "rows": _lanes(of, asked["rows"])}
    by = who().name or clean_who(asked["who"])
    return _book(place).add(run.run_id, asked["text"], json.dumps(spot), by)


def delete(place: Workspace, run: Run, number: int) -> None:
    _book(place).delete(run.run_id, number)


def _lanes(of: Timeline, text: str) -> list[list[Any]]:
    """Of each row its lane, and which of its rows that is."""
    found: list[list[Any]] = []
    for low, high in ranges_of(text, of.tiles.rows) if text.strip() else ():
        if len(found) + high - low >= MOST_ROWS:
            raise InputError("a mark on too many rows", expected=f"at most {MOST_ROWS}")
        for row in range(low, high + 1):
            lane = of.lanes[lane_at(of, row)]
            found.append([*astuple(lane.lane), row - lane.first_row])
    return found


def _moment(of: Timeline, tick: int) -> list[int]:
    ps = tick * of.tick_ps
    return [of.origin_ns + ps // PS_PER_NS, ps % PS_PER_NS]


def _tick(of: Timeline, moment: list[int]) -> int:
    ns, ps = moment
    return ((ns - of.origin_ns) * PS_PER_NS + ps) // of.tick_ps


def _told(of: Timeline, mark: Mark, lanes: Mapping[tuple[Any, ...], Any]) -> dict[str, Any]:
    spot = json.loads(mark.place)
    rows = [
        row.first_row + within
        for *lane, within in spot["rows"]
        if (row := lanes.get(tuple(lane))) is not None and within < row.rows
    ]
    return {
        "id": mark.id,
        "text": mark.text,
        "who": mark.who,
        "written_ns": mark.written_ns,
        **{name: _tick(of, spot[name]) for name in ("at", "from", "to")},
        "rows": sorted(rows),
        "clocks": spot["clocks"],
    }

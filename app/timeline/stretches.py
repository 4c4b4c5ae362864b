"""A stretch, the arrows of an event, and a step of a timeline as JSON."""

from typing import Any

from analyzers.ranks.meetings import Meetings, meetings
from analyzers.timeline import Timeline
from analyzers.timeline.arrows import arrows
from analyzers.timeline.lanes import CODES, NONE
from analyzers.timeline.moments import row_of, step
from analyzers.timeline.selection import selection
from app import theme
from app.timeline.packing import titles
from errors import QuestionError
from runs.kept import Answers
from runs.run import Run

_met = Answers(128 << 20)  # matches of collectives: of a run once


def selected(of: Timeline, rows: list[int], start: int, end: int) -> dict[str, Any]:
    """What rows hold from `start` to `end`: accounts, the largest first, and lanes in their order."""
    found, seconds = selection(of, rows, start, end), of.tick_ps / 1e12
    whole = sum(found.ticks.values())
    called = dict(zip(of.lanes, titles(of), strict=True))
    return {
        "start": start,
        "end": end,
        "seconds": (end - start) * seconds,
        "events": found.events,
        "accounts": [
            {
                "account": CODES[code],
                "title": found.titles[code],
                "colour": theme.COLOURS[CODES[code]],
                "seconds": ticks * seconds,
                "share": ticks / whole,
            }
            for code, ticks in sorted(found.ticks.items(), key=lambda one: -one[1])
        ],
        "lanes": [
            {"title": called[one.lane], "events": one.events, "busy_s": one.busy_ticks * seconds} for one in found.lanes
        ],
    }


def arrows_of(run: Run, of: Timeline, number: int) -> dict[str, Any]:
    """Raises QuestionError for an event that is not there."""
    if not 0 <= number < of.events:
        raise QuestionError(f"no event {number:,}", expected=f"a number below {of.events:,}")
    found = arrows(of, run.tables, _meetings(run) if of.event[number] != NONE else None, number)
    told = [{"from": _end(of, one.source), "to": _end(of, one.target), "kind": one.kind} for one in found.arrows]
    return {"arrows": told, "more": found.more}


def _meetings(run: Run) -> Meetings | None:
    tables = run.tables
    return (
        _met.get((run.run_id, run.written.created_ns), lambda: meetings(tables)) if tables.rows("collectives") else None
    )


def _end(of: Timeline, event: int) -> dict[str, int]:
    """An end of an arrow: at the beginning of its event."""
    return {"event": event, "row": row_of(of, event), "tick": int(of.tiles.start[event])}


def step_of(run: Run, of: Timeline, number: int) -> dict[str, int]:
    found = step(of, run.tables, number)
    return {"start": found.start, "end": found.end}

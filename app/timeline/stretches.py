"""A stretch, the arrows of an event, and a step of a timeline as JSON."""

from typing import Any

from analyzers.timeline import Timeline
from analyzers.timeline.arrows import arrows
from analyzers.timeline.lanes import CODES, NONE
from analyzers.timeline.moments import EACH_ITS_OWN, lane_at, row_of, step
from analyzers.timeline.ranked import Ranked
from analyzers.timeline.selection import selection
from app import theme
from app.timeline.packing import titles
from app.timeline.ranked import meetings_of
from errors import QuestionError
from runs.run import Run


def selected(of: Timeline, rows: list[int], start: int, end: int, aligned: Ranked | None = None) -> dict[str, Any]:
    """What rows hold from `start` to `end`: accounts, the largest first, and lanes in their order. `aligned`: by which
    clocks, if not each lane's own."""
    moved = (aligned.ahead, aligned.end) if aligned else (None, 0)
    found, seconds = selection(of, rows, start, end, *moved), of.tick_ps / 1e12
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


def arrows_of(run: Run, of: Timeline, number: int, aligned: Ranked | None = None) -> dict[str, Any]:
    """Raises QuestionError for an event that is not there."""
    if not 0 <= number < of.events:
        raise QuestionError(f"no event {number:,}", expected=f"a number below {of.events:,}")
    collective = of.event[number] != NONE and run.tables.rows("collectives") > 0
    found = arrows(of, run.tables, meetings_of(run) if collective else None, number)
    told = [
        {"from": _end(of, one.source, aligned), "to": _end(of, one.target, aligned), "kind": one.kind}
        for one in found.arrows
    ]
    return {"arrows": told, "more": found.more}


def _end(of: Timeline, event: int, aligned: Ranked | None) -> dict[str, int]:
    """An end of an arrow: at the beginning of its event."""
    row = row_of(of, event)
    ahead = 0 if aligned is None else aligned.ahead[lane_at(of, row)]
    return {"event": event, "row": row, "tick": int(of.tiles.start[event]) - ahead}


def step_of(run: Run, of: Timeline, number: int, aligned: Ranked | None = None) -> dict[str, int]:
    found = step(of, run.tables, number, ahead_ns=aligned.hosts_ns() if aligned else EACH_ITS_OWN)
    return {"start": found.start, "end": found.end}

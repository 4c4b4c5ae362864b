"""One event of a timeline, and which events bear a name."""

from typing import Any

import numpy as np

from analyzers.timeline import Row, Timeline
from analyzers.timeline.lanes import CODES, NONE
from analyzers.timeline.moments import lane_at, row_of
from analyzers.timeline.ranked import Ranked
from app.questions.timeline.words import title
from errors import QuestionError
from runs.run import Run

MOST_HITS = 500
LONGEST = 200  # characters of a lane's title: alone it has to tell one host from another
PIECE = 1 << 20  # events that are looked through at once
TOLD = ("module", "category", "scope", "source", "shape", "direction")
NUMBERS = ("flops", "bytes")


def one(run: Run, of: Timeline, number: int) -> dict[str, Any]:
    """What an event is. Raises QuestionError for one that is not there."""
    if not 0 <= number < of.events:
        raise QuestionError(f"no event {number:,}", expected=f"a number below {of.events:,}")
    lane = lane_of(of, number)
    seconds = of.tick_ps / 1e12
    step = int(of.number[number])
    told: dict[str, Any] = {
        "event": number,
        "row": row_of(of, number),
        "name": of.names[of.name[number]] + ("" if step == NONE else f" {step:,}"),
        "lane": title(lane.lane, LONGEST),
        "line": lane.lane.line,
        "start_tick": int(of.tiles.start[number]),
        "dur_ticks": int(of.tiles.dur[number]),
        "start_s": int(of.tiles.start[number]) * seconds,
        "dur_s": int(of.tiles.dur[number]) * seconds,
        "account": CODES[of.tiles.code[number]],
    }
    return told | _operation(run, of, number)


def lane_of(of: Timeline, number: int) -> Row:
    """The lane that an event stands in."""
    return of.lanes[lane_at(of, row_of(of, number))]


def _operation(run: Run, of: Timeline, number: int) -> dict[str, Any]:
    """What the trace says of an operation, and how long it usually takes."""
    if of.op[number] == NONE:
        return {}
    mine = [("capture", "==", int(of.capture[number])), ("op_id", "==", int(of.op[number]))]
    rows = run.tables.arrow("ops", ["device", *TOLD, *NUMBERS, "count", "total_ns"], mine).to_pylist()
    if not rows:
        return {}
    device = lane_of(of, number).lane.device  # devices may number their operations alike
    row = next((row for row in rows if row["device"] == device), rows[0])
    told = {name: row[name] for name in (*TOLD, *NUMBERS) if row[name] is not None}
    count, whole = row["count"] or 0, row["total_ns"] or 0.0
    return told | ({"count": count, "usual_s": whole / count / 1e9} if count else {})


def named(of: Timeline, text: str, aligned: Ranked | None = None) -> dict[str, Any]:
    """How many events bear a name that holds this text, and the first of them in order of time: by aligned clocks, if
    these are given."""
    wanted = text.casefold()
    which = np.array([wanted in name.casefold() for name in of.names], dtype=bool)
    ahead = aligned.rows(of) if aligned else np.zeros(0, np.int64)
    hits, earliest = 0, np.zeros(0, np.int64)

    def begins(events: np.ndarray) -> np.ndarray:
        told = of.tiles.start[events]
        return told - ahead[np.searchsorted(of.tiles.first, events, side="right") - 1] if aligned else told

    for at in range(0, of.events, PIECE):
        found = at + np.flatnonzero(which[of.name[at : at + PIECE]])
        hits += len(found)
        earliest = np.concatenate([earliest, found])
        earliest = earliest[np.argsort(begins(earliest), kind="stable")[:MOST_HITS]]
    return {
        "hits": hits,
        "events": [[int(n), int(at), int(of.tiles.dur[n])] for n, at in zip(earliest, begins(earliest), strict=True)],
        "names": [of.names[n] for n in np.flatnonzero(which)[:20]],
    }

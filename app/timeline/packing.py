"""A timeline for the browser: what its lanes are, and the marks of a window in a few bytes each.

A window is sent as

    4 bytes   length of the JSON that follows, little endian (all numbers are)
    JSON      marks, unit_ticks, start_tick, shift (bins of 2^shift ticks; null: every mark is an event), rows
    int32     of each mark its begin, in units since start_tick; as what it is more than that of the mark before
    int32     its width, in units
    int32     the event that it is, or the longest of those in it; as what it is more than the one before
    int32     the name of that event (`names` of the lanes' JSON)
    uint32    how many events begin in it
    float32   how long that event is, in ticks: what a mark shows is rounded to its unit, or as wide as a bin
    uint16    which of the rows that were asked for; as what it is more than that of the mark before
    uint8     the account's number (`codes` of the lanes' JSON), or by categories that of the kind (`kinds`)
    uint8     how much of it is covered, in 255ths

Of each column all lowest bytes stand first, then the next ones, and so on: marks lie near one another, and bytes that
are alike beside each other are sent, and compressed, in half. It comes compressed by gzip to whoever takes it so.
"""

import json
import struct
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.timeline import Row, Timeline
from analyzers.timeline.kernels import CODES as FROM
from analyzers.timeline.kinds import KINDS
from analyzers.timeline.lanes import CODES, Lane
from analyzers.timeline.window import Marks
from app import theme
from app.questions.timeline.words import title
from app.timeline.categories import CATEGORIES
from runs.accounts import ACCOUNTS

PARTS = 16  # of a pixel: how fine marks are placed
FARTHEST = (1 << 30) - 1  # units: what reaches farther out of a window is cut there; twice that is a width
MOST_NAMES, LONGEST = 50_000, 80  # that are written into events; all of them are told on a click
HOST_COLOUR = "#7C8894"
LOOK = {look.name: look for look in CATEGORIES}


def described(of: Timeline) -> dict[str, Any]:
    """Lanes, colours and the clock."""
    return {
        "span_ticks": of.span,
        "tick_ps": of.tick_ps,
        "origin_ns": of.origin_ns if of.dated else None,
        "events": of.events,
        "names": [name[:LONGEST] for name in of.names[:MOST_NAMES]],
        "lanes": _lanes(of),
        "codes": {n: _code(CODES[n]) for n in of.codes},
        "kinds": {n: _kind(n) for n in of.kinds},
    }


def _lanes(of: Timeline) -> list[dict[str, Any]]:
    return [_lane(row, told) for row, told in zip(of.lanes, titles(of), strict=True)]


def titles(of: Timeline) -> list[str]:
    """What lanes are called. Several of one title are told apart by their lines."""
    alike = Counter(title(row.lane) for row in of.lanes)
    return [_title(row.lane, alike[title(row.lane)] > 1) for row in of.lanes]


def _title(lane: Lane, alike: bool) -> str:
    if not alike or (lane.device is None and not lane.host):
        return title(lane)
    where = lane.host if lane.device is None else f"{lane.host}/{lane.device}"
    return f"{where}, {lane.line}"


def _lane(row: Row, told: str) -> dict[str, Any]:
    lane = row.lane
    return {
        "group": lane.group,
        "title": told,
        "line": lane.line,
        "role": lane.role,
        "host": lane.host,
        "device": lane.device,
        "row": row.first_row,
        "rows": row.rows,
        "events": row.events,
    }


def _code(name: str) -> dict[str, str]:
    if name == "host":
        return {"name": name, "title": "Host", "colour": HOST_COLOUR}
    return {"name": name, "title": ACCOUNTS[name].title, "colour": theme.COLOURS[name]}


def _kind(number: int) -> dict[str, str]:
    """What events have in common by kinds: those that are no operations have an account."""
    if number < len(CODES):
        return _code(CODES[number])
    look = LOOK[KINDS[number - FROM]]
    return {"name": look.name, "title": look.title, "colour": look.colour, "meaning": look.meaning}


def packed(of: Timeline, marks: Marks, start: int, end: int, pixels: int) -> bytes:
    """The marks of a window from `start` to `end`."""
    unit = max((end - start) // max(pixels, 1) // PARTS, 1)
    head = {"marks": len(marks.row), "unit_ticks": unit, "start_tick": start, "shift": marks.shift}
    begin = np.clip((marks.start - start) // unit, -FARTHEST, FARTHEST)
    finish = np.clip(-((start - marks.end) // unit), -FARTHEST, FARTHEST)
    columns = (
        _beyond(begin, "<i4"),
        (finish - begin).astype("<i4"),
        _beyond(marks.event, "<i4"),
        of.name[marks.event].astype("<i4"),
        marks.count.astype("<u4"),
        of.tiles.dur[marks.event].astype("<f4"),
        _beyond(marks.row, "<u2"),
        marks.code.astype("u1"),
        marks.share.astype("u1"),
    )
    text = json.dumps(head).encode()
    return struct.pack("<I", len(text)) + text + b"".join(_by_byte(c) for c in columns)


def _beyond(column: NDArray[Any], kind: str) -> NDArray[Any]:
    """Of each number what it is more than the one before. Sums of them end where they should, also beyond what `kind`
    holds: both wrap."""
    return np.diff(column.astype(np.int64), prepend=0).astype(kind)


def _by_byte(column: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()

"""The timeline over HTTP: lanes, the marks of a window, one event, and a search."""

import gzip
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from analyzers.timeline import Timeline
from analyzers.timeline.ranked import Ranked
from analyzers.timeline.window import window
from app.questions.asking import ask
from app.questions.timeline import TIMELINE
from app.serve.answering import answering, found
from app.timeline.events import named, one
from app.timeline.packing import described, packed
from app.timeline.ranges import ranges_of
from app.timeline.ranked import ranked_of
from app.workspace import Workspace
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option, once_each, parse_options
from runs.run import Run

FARTHEST = 1 << 62
MOST_ROWS = 400
TICK = Number(-FARTHEST, FARTHEST, whole=True)
START = Option("start", TICK, 0, "where the window begins, in ticks since the timeline's origin", "ticks")
END = Option("end", TICK, None, "where it ends; default: with the last event", "ticks")
PIXELS = Option("pixels", Number(1, 20_000, whole=True), 1_000, "how many pixels it is wide")
ROWS = Option("rows", str, "0", f"which rows, at most {MOST_ROWS}: 0-39,52", form="A-B,C")
EVENT = Option("event", Number(0, FARTHEST, whole=True), 0, "the event's number, as a mark tells it")
WRITTEN = Option("written", str, "", "any text: with it an answer may be kept for ever")
TEXT = Option("q", str, "", "part of a name")
CLOCKS = Option(
    "clocks", ("recorded", "aligned"), "recorded", "each lane's own, or aligned by collectives that ranks shared"
)
COLOURS = Option(
    "colours", ("accounts", "categories"), "accounts", "what a mark's number is of: its account, or its kind of work"
)
WINDOW = (START, END, PIXELS, ROWS, WRITTEN, CLOCKS, COLOURS)


class Timelines:
    """The handlers. `find`: a run by its name in an address; raises NotFound."""

    def __init__(self, place: Workspace, find: Callable[[str], Run]):
        self._place, self._find = place, find

    def routes(self) -> list[Route]:
        begin = "/api/runs/{run_id}/timeline"
        return [
            Route(begin, self.timeline, methods=["GET"]),
            Route(f"{begin}/tiles", self.tiles, methods=["GET"]),
            Route(f"{begin}/event", self.event, methods=["GET"]),
            Route(f"{begin}/search", self.search, methods=["GET"]),
        ]

    async def _of(self, request: Request) -> tuple[Run, Timeline]:
        run = await found(self._find, request.path_params["run_id"])
        answer = await run_in_threadpool(ask, TIMELINE, run, {}, self._place.registry)
        return run, answer.timeline

    @answering
    async def timeline(self, request: Request) -> Any:
        """The lanes of a run's timeline with their rows, and what colours mean: for who draws it."""
        _, of = await self._of(request)
        return described(of)

    @answering
    async def tiles(self, request: Request) -> Any:
        """The marks of some rows of a window, as bytes: see `app/timeline/packing.py` for their order."""
        given = _given(request, WINDOW)
        run, of = await self._of(request)
        body = await run_in_threadpool(_packed, of, given, await aligned_of(run, of, given))
        headers = {"Cache-Control": "private, max-age=31536000, immutable" if given["written"] else "no-cache"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            # here and quickly, or what compresses all answers would take many times as long for as many bytes
            body = await run_in_threadpool(gzip.compress, body, 1, mtime=0)
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(body, media_type="application/octet-stream", headers=headers)

    @answering
    async def event(self, request: Request) -> Any:
        """What an event is: name, lane, times, account, and what the trace says of its operation."""
        given = _given(request, (EVENT,))
        run, of = await self._of(request)
        return await run_in_threadpool(one, run, of, given["event"])

    @answering
    async def search(self, request: Request) -> Any:
        """How many events bear a name that holds `q`, and the first of them in order of time."""
        given = _given(request, (TEXT, CLOCKS))
        if not given["q"]:
            raise QuestionError("nothing to look for", expected="?q= with part of a name")
        run, of = await self._of(request)
        return await run_in_threadpool(named, of, given["q"], await aligned_of(run, of, given))


async def aligned_of(run: Run, of: Timeline, given: dict[str, Any]) -> Ranked | None:
    """The clocks that are asked for; None: each lane's own."""
    return await run_in_threadpool(ranked_of, run, of) if given["clocks"] == "aligned" else None


def _given(request: Request, options: tuple[Option, ...]) -> dict[str, Any]:
    return parse_options(options, once_each(request.query_params.multi_items(), [o.name for o in options]))


def _packed(of: Timeline, given: dict[str, Any], aligned: Ranked | None) -> bytes:
    start, end = int(given["start"]), int(of.span + 1 if given["end"] is None else given["end"])
    if end <= start:
        raise QuestionError(f"a window from {start:,} to {end:,}", expected="an end after the start")
    rows = np.array(rows_of(given["rows"], of.tiles.rows), dtype=np.int64)
    pixels = int(given["pixels"])
    ahead = aligned.rows(of)[rows] if aligned else None
    tiles = of.tiles.by_kind() if given["colours"] == "categories" else of.tiles
    return packed(of, window(tiles, rows, start, end, pixels, ahead), start, end, pixels)


def rows_of(text: str, count: int, most: int = MOST_ROWS) -> list[int]:
    """`0-39,52` as numbers. Raises QuestionError for what is no list of rows that are there."""
    found: list[int] = []
    for low, high in ranges_of(text, count):
        if len(found) + high - low >= most:
            raise QuestionError("too many rows at once", expected=f"at most {most}")
        found.extend(range(low, high + 1))
    return found

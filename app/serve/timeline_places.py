"""The timeline over HTTP, further: the ledger of a stretch, what belongs to an event elsewhere, and where a step is."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from analyzers.timeline import Timeline
from analyzers.timeline.ranked import Ranked
from app.serve.answering import answering
from app.serve.timeline import CLOCKS, END, EVENT, FARTHEST, START, Timelines, aligned_of, rows_of
from app.timeline.ranked import ranked_of, told
from app.timeline.stretches import arrows_of, selected, step_of
from errors import QuestionError
from errors.numbers import Number
from errors.options import Option, once_each, parse_options

SELECTED_ROWS = 4_000
ROWS = Option("rows", str, None, f"which rows, at most {SELECTED_ROWS:,}: 0-39,52; default: all", form="A-B,C")
NUMBER = Option("number", Number(0, FARTHEST, whole=True), None, "the step's number, as the job counts it")


class TimelinePlaces(Timelines):
    """The handlers."""

    def routes(self) -> list[Route]:
        begin = "/api/runs/{run_id}/timeline"
        return [
            Route(f"{begin}/selection", self.selection, methods=["GET"]),
            Route(f"{begin}/arrows", self.arrows, methods=["GET"]),
            Route(f"{begin}/step", self.step, methods=["GET"]),
            Route(f"{begin}/ranks", self.ranks, methods=["GET"]),
        ]

    @answering
    async def selection(self, request: Request) -> Any:
        """What a stretch from `start` to `end` holds: `accounts`, with the seconds of the account strips of the chosen
        `rows` and their shares of all of these (of devices' strips where some are chosen, else of the job's, else of
        all devices'), and `lanes`, with the events of the chosen rows that meet it and the seconds of it that at
        least one of them covers. Strips are no lanes here, and their stretches no events."""
        asked = _given(request, (START, END, ROWS, CLOCKS))
        run, of = await self._of(request)
        return await run_in_threadpool(_selected, of, asked, await aligned_of(run, of, asked))

    @answering
    async def arrows(self, request: Request) -> Any:
        """What belongs to an event elsewhere: `launch` leads from a host's call to what it made a device execute,
        `collective` from the event to the same collective on another rank. At most 64 are told, and how many `more`
        there are. The list is empty where the run does not tell."""
        asked = _given(request, (EVENT, CLOCKS))
        run, of = await self._of(request)
        return await run_in_threadpool(arrows_of, run, of, asked["event"], await aligned_of(run, of, asked))

    @answering
    async def step(self, request: Request) -> Any:
        """Where a step begins and ends, in ticks: as the job took it, of one that was taken again the one that was
        kept; where no job tells, as profiled devices did."""
        asked = _given(request, (NUMBER, CLOCKS))
        if asked["number"] is None:
            raise QuestionError("no step is asked for", expected="?number= with a step's number")
        run, of = await self._of(request)
        return await run_in_threadpool(step_of, run, of, asked["number"], await aligned_of(run, of, asked))

    @answering
    async def ranks(self, request: Request) -> Any:
        """How late each rank came to the collectives that all of its group recorded, by how much its clock is ahead,
        in which order lanes stand where the latest rank is first, and by how many ticks each moves to the left where
        clocks are aligned; both in a sentence. Other routes take `clocks=aligned`."""
        run, of = await self._of(request)
        return told(of, await run_in_threadpool(ranked_of, run, of))


def _given(request: Request, options: tuple[Option, ...]) -> dict[str, Any]:
    return parse_options(options, once_each(request.query_params.multi_items(), [o.name for o in options]))


def _selected(of: Timeline, asked: dict[str, Any], aligned: Ranked | None) -> dict[str, Any]:
    last = max(aligned.end if aligned else of.span, 1)
    start, end = int(asked["start"]), int(last if asked["end"] is None else asked["end"])
    if end <= start:
        raise QuestionError(f"a stretch from {start:,} to {end:,}", expected="an end after the start")
    rows = of.tiles.rows
    chosen = list(range(rows)) if asked["rows"] is None else rows_of(asked["rows"], rows, SELECTED_ROWS)
    return selected(of, chosen, start, end, aligned)

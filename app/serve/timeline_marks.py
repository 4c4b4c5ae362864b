"""Bookmarks and comments on a timeline over HTTP."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from app.serve.answering import NotFound, answering
from app.serve.requests import json_object
from app.serve.timeline import Timelines
from app.timeline import marks
from errors import QuestionError


class TimelineMarks(Timelines):
    """The handlers."""

    def routes(self) -> list[Route]:
        begin = "/api/runs/{run_id}/timeline/marks"
        return [
            Route(begin, self.marks, methods=["GET"]),
            Route(begin, self.add, methods=["POST"]),
            Route(f"{begin}/{{number}}", self.remove, methods=["DELETE"]),
        ]

    @answering
    async def marks(self, request: Request) -> Any:
        """The bookmarks and comments on a run's timeline, in order of time: `at` which tick, on which `rows`, by which
        `clocks`, and the window `from` and `to` that shows it; `text` as it was typed, empty for a bookmark."""
        run, of = await self._of(request)
        return {"marks": await run_in_threadpool(marks.kept, self._place, run, of)}

    @answering
    async def add(self, request: Request) -> Any:
        """Keep a bookmark, or a comment: `{"at": 5, "from": 0, "to": 10, "rows": "0-3,7", "clocks": "recorded", "text":
        "..."}`, in ticks. `who`: by whom, where the server does not know. Answers with all, and the number of it."""
        run, of = await self._of(request)
        number = await run_in_threadpool(marks.keep, self._place, run, of, await json_object(request))
        return {"id": number, "marks": await run_in_threadpool(marks.kept, self._place, run, of)}

    @answering
    async def remove(self, request: Request) -> Any:
        """Delete a bookmark or a comment."""
        run, of = await self._of(request)
        number = request.path_params["number"]
        if not (number.isascii() and number.isdecimal() and len(number) < 20):
            raise NotFound(f"no mark {number[:40]!r}")
        try:
            await run_in_threadpool(marks.delete, self._place, run, int(number))
        except QuestionError as e:
            raise NotFound(str(e)) from e
        return {"marks": await run_in_threadpool(marks.kept, self._place, run, of)}

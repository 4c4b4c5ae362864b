"""A run's timeline over the API as a file that Perfetto opens, sent as it is written."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from app.options import from_query
from app.serve.answering import answering, found
from app.timeline.perfetto.making import made, named
from app.timeline.perfetto.options import ASKED
from app.workspace import Workspace
from runs.run import Run

MEDIA = "application/octet-stream"


class Perfetto:
    """The handler. `find`: a run by its name in an address; raises NotFound."""

    def __init__(self, place: Workspace, find: Callable[[str], Run]):
        self._place, self._find = place, find

    def routes(self) -> list[Route]:
        return [Route("/api/runs/{run_id}/timeline/perfetto", self.perfetto, methods=["GET"])]

    @answering
    async def perfetto(self, request: Request) -> Any:
        """The timeline as a file that Perfetto opens (TrackEvent packets of protobuf): `start` and `end` in ticks since
        the timeline's origin, `rows` such as 0-39,52, `lanes` by name, `most` events."""
        given = from_query(request.query_params.multi_items(), ASKED, flags=False)
        run = await found(self._find, request.path_params["run_id"])
        told = await run_in_threadpool(made, run, given, self._place)
        kept = f"attachment; filename*=UTF-8''{quote(named(run))}"
        headers = {"Content-Disposition": kept, "X-Content-Type-Options": "nosniff"}
        return StreamingResponse(told.data, media_type=MEDIA, headers=headers)

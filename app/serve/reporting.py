"""Reports over the API: what `chipledger report` writes, to be looked at or taken away."""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.comparing.options import LOADS, SIDES
from app.options import from_query
from app.reporting.document import Document
from app.reporting.formats import AS, named, written
from app.serve.answering import answering
from app.workspace import Workspace
from errors import QuestionError
from runs.run import Run


class Reporting:
    """The handlers. `find`: a run by its name in an address; raises NotFound."""

    def __init__(self, place: Workspace, find: Callable[[str], Run]):
        self._place, self._find = place, find

    def routes(self) -> list[Route]:
        return [
            Route("/api/runs/{run_id}/report", self.report, methods=["GET"]),
            Route("/api/compare/report", self.report_of_two, methods=["GET"]),
        ]

    @answering
    async def report(self, request: Request) -> Any:
        """The report of a run as one file: `format=html`, which opens without a network, or `markdown`. A PDF
        `chipledger report` prints, or a browser of the HTML."""
        given = from_query(request.query_params.multi_items(), (AS,))
        run = self._find(request.path_params["run_id"])
        return await run_in_threadpool(self._given, given, lambda: _of_run(run, self._place))

    @answering
    async def report_of_two(self, request: Request) -> Any:
        """The report of run `b` held against run `a`; `load_a`, `load_b` of served runs, `format` as of one run."""
        given = from_query(request.query_params.multi_items(), (*SIDES, *LOADS, AS))
        if missing := [o.name for o in SIDES if given.get(o.name) is None]:
            raise QuestionError("two runs are compared", expected=" and ".join(missing))
        a, b = (self._find(given[o.name]) for o in SIDES)
        loads = [given.get(o.name) for o in LOADS]
        return await run_in_threadpool(self._given, given, lambda: _of_pair(a, b, self._place, *loads))

    def _given(self, given: dict[str, Any], make: Callable[[], Document]) -> Response:
        """Nothing of a report may be fetched or run but what its own policy names: a server says the same, and keeps
        it apart from the pages that it stands beside."""
        format = named(given.get(AS.name, AS.default))
        headers = {"Content-Security-Policy": "sandbox allow-scripts", "X-Content-Type-Options": "nosniff"}
        return Response(written(make(), format), media_type=format.media, headers=headers)


def _of_run(run: Run, place: Workspace) -> Document:
    from app.reporting.made import of_run  # late: a server starts without plotly

    return of_run(run, place)


def _of_pair(a: Run, b: Run, place: Workspace, load_a: str | None, load_b: str | None) -> Document:
    from app.reporting.made import of_pair

    return of_pair(a, b, place, load_a, load_b)

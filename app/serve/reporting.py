"""Reports over the API: what `chipledger report` writes, to be looked at or taken away."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.cells import file_name
from app.comparing.options import LOADS, SIDES
from app.options import from_query
from app.reporting.formats import AS, TAKEN, Format, named, written
from app.serve.answering import answering, found
from app.serve.comparing import both
from app.workspace import Workspace
from runs.run import Run

if TYPE_CHECKING:
    from app.reporting.document import Document


APART = "sandbox allow-scripts allow-downloads"  # of the origin of the pages that it stands beside


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
        """The report of a run as one file: `format=html`, which opens without a network, or `markdown`; `download`
        gives it as a file. A PDF `chipledger report` prints, or a browser of the HTML."""
        given = from_query(request.query_params.multi_items(), (AS, TAKEN))
        run = await found(self._find, request.path_params["run_id"])
        return await run_in_threadpool(self._given, given, lambda: _of_run(run, self._place))

    @answering
    async def report_of_two(self, request: Request) -> Any:
        """The report of run `b` held against run `a`; `load_a`, `load_b` of served runs; `format` and `download` as of
        one run."""
        given = from_query(request.query_params.multi_items(), (*SIDES, *LOADS, AS, TAKEN))
        a, b = await run_in_threadpool(both, self._place, given)
        loads = [given.get(o.name) for o in LOADS]
        return await run_in_threadpool(self._given, given, lambda: _of_pair(a, b, self._place, *loads))

    def _given(self, given: dict[str, Any], make: "Callable[[], Document]") -> Response:
        """Nothing of a report may be fetched or run but what its own policy names: a server says the same, and keeps
        it apart from the pages that it stands beside."""
        format, document = named(given.get(AS.name, AS.default)), make()
        headers = {"Content-Security-Policy": APART, "X-Content-Type-Options": "nosniff"}
        if given.get(TAKEN.name):
            headers["Content-Disposition"] = _kept_as(document, format)
        return Response(written(document, format), media_type=format.media, headers=headers)


def _kept_as(document: "Document", format: Format) -> str:
    """The name of the file, in the form that any letters may stand in."""
    return f"attachment; filename*=UTF-8''{quote(file_name(document.title) + format.endings[0])}"


def _of_run(run: Run, place: Workspace) -> "Document":
    from app.reporting.made import of_run  # late: a server starts without plotly

    return of_run(run, place)


def _of_pair(a: Run, b: Run, place: Workspace, load_a: str | None, load_b: str | None) -> "Document":
    from app.reporting.made import of_pair

    return of_pair(a, b, place, load_a, load_b)

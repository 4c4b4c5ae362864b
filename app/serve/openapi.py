"""The document of the API at `/api/openapi.json`, and a page of it at `/api/` that loads nothing."""

from collections.abc import Callable, Iterable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from app.serve.answering import answering
from app.workspace import Workspace

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


class OpenApi:
    """The handlers. `routes`: all that are told."""

    def __init__(self, place: Workspace, routes: Callable[[], Iterable[Route]]):
        self._place, self._routes = place, routes
        self._told: dict[str, Any] | None = None

    def routes(self) -> list[Route]:
        return [
            Route("/api/openapi.json", self.openapi, methods=["GET"]),
            Route("/api/", self.page, methods=["GET"]),
        ]

    def _document(self) -> dict[str, Any]:
        from app.openapi.document import document  # late: a server starts without it

        if self._told is None:
            self._told = document(self._routes())
        return self._told

    @answering
    async def openapi(self, request: Request) -> Any:
        """This API as an OpenAPI 3.1 document: every route, what it takes, and the schema of what it answers."""
        return await run_in_threadpool(self._document)

    @answering
    async def page(self, request: Request) -> Any:
        """The same as a page to be read."""
        from app.openapi.page import page

        text = page(await run_in_threadpool(self._document))
        return HTMLResponse(text, headers={"Content-Security-Policy": POLICY})

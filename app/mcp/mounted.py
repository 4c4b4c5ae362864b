"""The same over HTTP, beside the API: one POST a question, no sessions, behind the server's guard."""

import contextlib
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.mcp import ADVICE, MISSING, PATH, installed
from app.workspace import Workspace

BODY_BYTES = 1 << 16  # of a question


class Mounted:
    """The endpoint, and what must run while it is served."""

    def __init__(self, place: Workspace):
        self._place = place
        self._answers: ASGIApp | None = None

    def routes(self) -> list[Route]:
        return [Route(PATH, self)]  # of every method: what is not taken here would get the dashboard's page

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if not installed():
            yield
            return
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from app.mcp.server import server

        manager = StreamableHTTPSessionManager(
            server(self._place), json_response=True, stateless=True, max_request_body_size=BODY_BYTES
        )
        async with manager.run():
            self._answers = manager.handle_request
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # there is no stream to GET and no session to DELETE
            told = {"error": f"agents POST their questions to {PATH}; docs/mcp.md tells how one is connected"}
            await JSONResponse(told, status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        elif self._answers is None:
            await JSONResponse({"error": f"{MISSING}. {ADVICE}"}, status_code=503)(scope, receive, send)
        else:
            await self._answers(scope, receive, send)

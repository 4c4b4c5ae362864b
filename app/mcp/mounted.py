"""The same over HTTP, beside the API: one POST a question, no sessions, behind the server's guard.

The protocol's library takes half a second to load, which most servers never need: it is loaded at the first question.
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.mcp import ADVICE, MISSING, PATH, installed
from app.serve.requests import BODY_BYTES
from app.serve.upload_room import TooLarge
from app.workspace import Workspace
from errors import ChipledgerError, InputError

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class Mounted:
    """The endpoint, and what must run while it is served."""

    def __init__(self, place: Workspace):
        self._place = place
        self._answers: ASGIApp | None = None
        self._beside: anyio.abc.TaskGroup | None = None  # while it is served: what answers runs in it
        self._beginning = anyio.Lock()

    def routes(self) -> list[Route]:
        return [Route(PATH, self)]  # of every method: what is not taken here would get the dashboard's page

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self._beside:
            yield
            self._beside.cancel_scope.cancel()
        self._beside = self._answers = None

    async def _begun(self, beside: anyio.abc.TaskGroup) -> ASGIApp:
        async with self._beginning:
            answers = self._answers or await beside.start(self._run)
            self._answers = answers
            return answers

    async def _run(self, *, task_status: anyio.abc.TaskStatus[ASGIApp]) -> None:
        manager = await anyio.to_thread.run_sync(self._manager)
        async with manager.run():
            task_status.started(manager.handle_request)
            await anyio.sleep_forever()

    def _manager(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from app.mcp.server import server

        return StreamableHTTPSessionManager(
            server(self._place), json_response=True, stateless=True, max_request_body_size=BODY_BYTES
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # there is no stream to GET and no session to DELETE
            told = {"error": f"agents POST their questions to {PATH}; docs/mcp.md tells how one is connected"}
            await JSONResponse(told, status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        elif self._beside is None or not installed():
            await JSONResponse({"error": f"{MISSING}. {ADVICE}"}, status_code=503)(scope, receive, send)
        else:
            await self._answer(self._beside, scope, receive, send)

    async def _answer(self, beside: anyio.abc.TaskGroup, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _message(Request(scope, receive))
        except ClientDisconnect:
            return
        except ChipledgerError as e:
            # the rest of a refused body is not read: without the header it would be taken for the next request
            code, headers = 413 if isinstance(e, TooLarge) else 400, {"Connection": "close"}
            await JSONResponse({"error": str(e)}, status_code=code, headers=headers)(scope, receive, send)
            return
        waiting = [body]

        async def replayed() -> Message:
            if waiting:
                return {"type": "http.request", "body": waiting.pop(), "more_body": False}
            return await receive()

        answers = await self._begun(beside)
        await answers(scope, replayed, send)


async def _message(request: Request) -> bytes:
    """The body, a message of the protocol. Raises InputError for anything else, TooLarge for more than one may have."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise TooLarge(f"a request of more than {BODY_BYTES:,} bytes", expected="a question")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as e:
        why = "nested too deeply" if isinstance(e, RecursionError) else e
        raise InputError(f"the request is no JSON ({why})") from e
    if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0" or not isinstance(asked.get("method"), str):
        raise InputError("the request is no message of the Model Context Protocol", expected="a JSON-RPC 2.0 object")
    return bytes(body)

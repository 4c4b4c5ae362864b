"""Each request is watched from its first byte to its last: its id, how long it took, what it moved, who asked.

It lies outside of everything else, so that what the guard refuses is counted too. A request is told by the template of
its path (`/api/runs/{run_id}`), never by the path: names of runs and files stand there. Templates are those of routes,
so that there are only so many, whatever is asked.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.identity.asking import who
from app.operations import logs
from app.operations.metrics import Figures
from app.operations.policies import protect

ID_HEADER = "x-request-id"
METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
OTHER = "other"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # what may stand in a log, a header and a shell
_UNTOLD = frozenset(("/healthz", "/readyz", "/metrics", "/_stcore/health"))  # asked every few seconds by machines
_STREAMLITS = re.compile(r"/(_stcore|static|component|media|vendor)(/[a-z-]{1,20})?")


def request_id_of(headers: Headers) -> str:
    """The id that a request brought where it is one that can be written anywhere, else a new one."""
    given = headers.get(ID_HEADER, "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def template_of(scope: MutableMapping[str, Any]) -> str:
    """The template of a request that was routed; `other` for what no route of ours or Streamlit's answered."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:  # refused before it was routed, or nobody's
        return OTHER
    if path in ("", "/{path:path}") or "{rest" in path:  # what is left for Streamlit's own files, or for nothing
        found = _STREAMLITS.match(scope.get("path", ""))
        return f"/{found[1]}/{{file}}" if found else OTHER
    return path


class Watched:
    """ASGI middleware. `all_told`: whether all requests are logged, or those alone that ended in a defect."""

    def __init__(self, app: ASGIApp, figures: Figures, all_told: bool, clock: Callable[[], float] = time.perf_counter):
        self._app, self._figures, self._all, self._clock = app, figures, all_told, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope, request_id_of(Headers(scope=scope)), self._clock())
        with logs.answering_request(seen.request_id):
            if scope["type"] == "websocket":
                await self._session(seen, receive, send)
            else:
                await self._request(seen, receive, send)

    async def _request(self, seen: "_Seen", receive: Receive, send: Send) -> None:
        async def received() -> Message:
            message = await receive()
            got = len(message.get("body", b""))
            seen.received += got
            if got and seen.uploads:
                self._figures.uploaded(got)
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status, seen.who = message["status"], who().name
                headers = MutableHeaders(scope=message)
                headers[ID_HEADER] = seen.request_id
                protect(headers, seen.scope)
            elif message["type"] == "http.response.body":
                seen.sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(seen.scope, received, sent)
        except Exception:
            seen.status = seen.status or 500
            raise
        finally:
            self._answered(seen)

    def _answered(self, seen: "_Seen") -> None:
        method = seen.scope["method"] if seen.scope["method"] in METHODS else OTHER
        template, took_s = template_of(seen.scope), self._clock() - seen.began_s
        status = seen.status or 499  # nobody was there any more to be answered
        self._figures.answered(method, template, status, took_s, seen.sent)
        if not self._is_told(template, status):
            return
        logs.tell(
            "request",
            level=logging.ERROR if status >= 500 else logging.INFO,
            method=method,
            route=template,
            status=status,
            duration_s=round(took_s, 6),
            received_bytes=seen.received,
            sent_bytes=seen.sent,
            who=seen.who or None,
        )

    def _is_told(self, template: str, status: int) -> bool:
        if status >= 500:
            return True
        return self._all and (template not in _UNTOLD or status >= 400)

    async def _session(self, seen: "_Seen", receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "websocket.accept" and not seen.accepted:
                seen.accepted, seen.who = True, who().name
                self._figures.session_opened()
                if self._all:
                    logs.tell("session_opened", who=seen.who or None)
            await send(message)

        try:
            await self._app(seen.scope, receive, sent)
        finally:
            self._left(seen)

    def _left(self, seen: "_Seen") -> None:
        if not seen.accepted:
            self._figures.session_refused()
            if self._all:
                logs.tell("session_refused")
            return
        self._figures.session_closed()
        if self._all:
            logs.tell("session_closed", duration_s=round(self._clock() - seen.began_s, 3), who=seen.who or None)


class _Seen:
    """What is known of one request."""

    def __init__(self, scope: Scope, request_id: str, began_s: float):
        self.scope, self.request_id, self.began_s = scope, request_id, began_s
        self.status = self.received = self.sent = 0
        self.accepted, self.who = False, ""
        at, method = scope.get("path", ""), scope.get("method")
        self.uploads = method in ("PUT", "POST", "PATCH") and at.startswith(("/upload/", "/api/uploads/"))

"""Who may talk to the server: no page of another site may write to it or read from it through a visitor's browser.

A browser says where a request comes from (`Origin`, `Sec-Fetch-Site`); programs such as curl send neither and pass.
What starts something although it is a GET is held to the same by `from_elsewhere`. On a loopback address only loopback
host names are answered, so a name that some other site points here is refused.

Where identity is set up, the guard finds out who asks before anything else sees a request (`app/identity/`): without
the role that the record of its route needs (`rights.py`), nothing else sees it at all.
"""

import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.identity.asking import acting_as
from app.identity.base import OPEN, Identity
from app.identity.door import FORBIDDEN, UNKNOWN, Again, Door, navigates
from app.identity.header import with_identity
from app.identity.may import already_noted
from app.identity.plain_page import plain_page
from app.serve.addresses import is_loopback as is_loopback

if TYPE_CHECKING:
    from runs.audit_book import Outcome

LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
POLICY = 1008  # of a websocket: closed for what may not be
MOST_REASON = 120  # bytes of why a websocket is closed; its frame holds 123
HEADERS = {
    # Everything is served from here; 'unsafe-*' and blob: are what Streamlit's own front end needs.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; object-src 'none'; "
    "base-uri 'self'; frame-ancestors 'self'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def refusal(headers: Headers, method: str, websocket: bool, loopback: bool) -> str | None:
    """Why a request is refused, or None."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    if loopback and name.casefold() not in LOOPBACK_NAMES:
        return f"this server answers on this machine only, not as {name!r}"
    if method in SAFE_METHODS and not websocket:
        return None
    return "a page of another site may not write here" if from_elsewhere(headers) else None


def from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that a page of another origin sent this request: its link, form, script or picture.

    `Sec-Fetch-Site` decides where it is sent (to https and to loopback addresses), then `Origin` and `Referer`. A
    request that says nothing of where it comes from passes: curl's, an address typed in, and over plain http to a
    network address that of a page which withholds its address.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    here = headers.get("host", "").casefold()
    said = (headers.get("origin"), headers.get("referer"))
    return any(text is not None and _netloc(text) != here for text in said)


def _netloc(address: str) -> str | None:
    try:
        return urlsplit(address).netloc.casefold()
    except ValueError:
        return None


class Guard:
    """ASGI middleware before every route, pages' websocket included: refuses, says to what follows who asks, tells the
    audit log, and adds the headers that keep a page from loading anything from elsewhere. Without a `door` nobody is
    asked who they are."""

    def __init__(self, app: ASGIApp, loopback: bool, door: Door | None = None):
        self._app = app
        self._loopback = loopback
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        websocket = scope["type"] == "websocket"
        reason = refusal(Headers(scope=scope), scope.get("method", "GET"), websocket, self._loopback)
        if self._door is not None:
            await self._known(self._door, reason, scope, receive, send)
            return
        if reason:
            await _refuse(scope, receive, send, reason)
            return
        scope["headers"] = with_identity(scope["headers"], OPEN)  # in its place: what watches reads its route there
        with acting_as(OPEN):
            await self._app(scope, receive, _with_headers(send))

    async def _known(self, door: Door, reason: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Where identity is set up: refuse, or go on as whoever asks."""
        verdict = await door.verdict(scope)
        reason, status = (reason, FORBIDDEN) if reason else (verdict.refused, verdict.status)
        if reason:
            leads = verdict.sign_in if status != FORBIDDEN else ""
            if not leads:  # a browser that is led to sign in is no refusal
                await door.note(scope, verdict, "refused", reason)
            await _refuse(scope, receive, send, reason, status, leads, verdict.known.identity)
            return
        identity, given = verdict.known.identity, {**scope}
        scope["headers"] = with_identity(scope["headers"], identity, door.stripped)
        scope["chipledger.known"] = verdict.known
        if scope["type"] == "websocket":
            receive = _while_known(door, given, identity, receive, send)
        status = _Status(_with_headers(send))
        noted, told = already_noted() if scope["type"] == "http" else contextlib.nullcontext(()), ()
        try:
            with acting_as(identity), noted as told:
                await self._app(scope, receive, status)
        finally:
            if verdict.right.what:
                with anyio.CancelScope(shield=True):  # whoever asked may be gone: what was done is told all the same
                    await door.note(given, verdict, *status.outcome, told=told)


class _Status:
    """Sends on, and keeps what was answered."""

    def __init__(self, send: Send):
        self._send, self._code = send, 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._code = message["status"]
        await self._send(message)

    @property
    def outcome(self) -> "tuple[Outcome, str]":
        if self._code in (401, FORBIDDEN):
            return "refused", f"status {self._code}"
        return ("done", "") if self._code < 400 else ("failed", f"status {self._code}")


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for key, value in HEADERS.items():
                headers.setdefault(key, value)
        await send(message)

    return send_with_headers


def _while_known(door: Door, scope: Scope, identity: Identity, receive: Receive, send: Send) -> Receive:
    """What a websocket says, as long as whoever opened it is known: a login ends, a token is revoked."""
    again = Again()

    async def receive_while_known() -> Message:
        message = await receive()
        if message["type"] != "websocket.receive" or not again.due() or await door.still(scope, identity):
            return message
        with contextlib.suppress(Exception):  # it may be gone
            await send({"type": "websocket.close", "code": POLICY, "reason": "signed out"})
        return {"type": "websocket.disconnect", "code": POLICY}

    return receive_while_known


async def _refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    reason: str,
    status: int = FORBIDDEN,
    sign_in: str = "",
    asks: Identity | None = None,
) -> None:
    if scope["type"] == "websocket":
        await send(
            {"type": "websocket.close", "code": POLICY, "reason": reason.encode()[:MOST_REASON].decode(errors="ignore")}
        )
        return
    if sign_in:
        answer: Response = RedirectResponse(sign_in, 303)
    elif asks is not None and navigates(scope):
        link = ("Sign out", "/logout") if asks.how == "oidc" else None
        said = reason if asks.name else f"{reason[:1].upper()}{reason[1:]}"  # which begins with their name
        answer = plain_page("This cannot be opened", f"{said}.", link=link, status=status)
    else:
        answer = JSONResponse({"error": reason}, status)
    if status == UNKNOWN:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if sign_in or status == UNKNOWN:
        answer.headers["Cache-Control"] = "no-store"
    if sign_in or scope.get("method") not in SAFE_METHODS:
        answer.headers["Connection"] = "close"  # the body is not read: it would be taken for the next request
    await answer(scope, receive, send)  # what watches adds its headers: of JSON the strict ones

"""Who may talk to the server: no page of another site may write to it or read from it through a visitor's browser.

A browser says where a request comes from (`Origin`, `Sec-Fetch-Site`); programs such as curl send neither and pass.
What starts something although it is a GET is held to the same by `from_elsewhere`. On a loopback address only loopback
host names are answered, so a name that some other site points here is refused.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
HEADERS = {
    # Everything is served from here; 'unsafe-*' and blob: are what Streamlit's own front end needs.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; object-src 'none'; "
    "base-uri 'self'; frame-ancestors 'self'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def is_loopback(address: str) -> bool:
    return address in ("localhost", "::1") or address.startswith("127.")


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
    """ASGI middleware: refuses with 403, and adds the headers that keep a page from loading anything from elsewhere."""

    def __init__(self, app: ASGIApp, loopback: bool):
        self._app = app
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        websocket = scope["type"] == "websocket"
        reason = refusal(Headers(scope=scope), scope.get("method", "GET"), websocket, self._loopback)
        if reason and websocket:
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
            return
        if reason:
            await JSONResponse({"error": reason}, status_code=403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for key, value in HEADERS.items():
                    headers.setdefault(key, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)

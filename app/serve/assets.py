"""What Streamlit's front end is made of, from memory: read once, compressed once, and kept by browsers for good.

Each of these files is named by its content, so that one is never another under the same name. Streamlit reads them
from disk again for each who asks, piece by piece on threads, and sends them as they are: 4.7 MB for what draws figures
alone, which travels as 1.4 MB.
"""

import functools
import gzip
import mimetypes
import threading
from collections.abc import Mapping
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

AT = "/static"
FOR_GOOD = "public, immutable, max-age=31536000"  # seconds: a year, as Streamlit says
PACKED = frozenset((".js", ".css", ".svg"))  # the others are compressed as they are
LEVEL = 6  # of gzip: 9 takes three times as long for one part in a hundred
LEAST_BYTES = 1000  # a smaller file is not worth it


class Assets:
    """ASGI middleware: answers for the files below `folder`, all else is passed on. Streamlit lets nobody add a route
    below its own prefix. Only what lies there when the server starts is there."""

    def __init__(self, app: ASGIApp, folder: Path | None = None):
        self._app = app
        folder = folder or front_end()
        self._files: Mapping[str, Path] = {
            f"{AT}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()
        }
        self._read = functools.cache(self._read_once)
        self._reading = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and scope["path"] in self._files:
            await (await self.file(scope["path"], Headers(scope=scope)))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def file(self, path: str, asked: Headers) -> Response:
        """One of the files, as who sends these headers takes it."""
        data, packed = await run_in_threadpool(self._held, path)
        headers = {"Cache-Control": FOR_GOOD, "Vary": "Accept-Encoding"}
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        if packed and _takes_gzip(asked):
            return Response(data, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(data) if packed else data, media_type=kind, headers=headers)

    def _held(self, path: str) -> tuple[bytes, bool]:
        with self._reading:  # several who ask for one file at once wait for one reading
            return self._read(path)

    def _read_once(self, path: str) -> tuple[bytes, bool]:
        """The file, compressed where that is worth it, and whether it is."""
        plain = self._files[path].read_bytes()
        worth = len(plain) >= LEAST_BYTES and self._files[path].suffix in PACKED
        return (gzip.compress(plain, LEVEL, mtime=0), True) if worth else (plain, False)


def _takes_gzip(headers: Headers) -> bool:
    """Whether it says that it does: `gzip` without a weight of 0."""
    for word in headers.get("accept-encoding", "").split(","):
        name, _, weight = word.partition(";")
        if name.strip().casefold() == "gzip":
            return weight.replace(" ", "").casefold() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def front_end() -> Path:
    """Where the Streamlit that is installed has them."""
    import streamlit

    return Path(streamlit.__file__).parent / "static" / "static"

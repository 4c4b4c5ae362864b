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
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

AT = "/static"
FOR_GOOD = "public, immutable, max-age=31536000"  # seconds: a year, as Streamlit says
PACKED = frozenset((".js", ".css", ".svg"))  # the others are compressed as they are
LEVEL = 6  # of gzip: 9 takes three times as long for one part in a hundred
LEAST_BYTES = 1000  # a smaller file is not worth it
NO_FILE = "The dashboard has no such file. If the server was updated, load the page anew."


class Assets:
    """The files below `folder`. Only what lies there when the server starts is there."""

    def __init__(self, folder: Path):
        self._files: Mapping[str, Path] = {
            path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
        }
        self._read = functools.cache(self._read_once)
        self._reading = threading.Lock()

    def routes(self) -> list[Route]:
        return [Route(f"{AT}/{{name:path}}", self.file, methods=["GET"])]

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return Response(NO_FILE, status_code=404, media_type="text/plain", headers={"Cache-Control": "no-cache"})
        data, packed = await run_in_threadpool(self._held, name)
        headers = {"Cache-Control": FOR_GOOD, "Vary": "Accept-Encoding"}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if packed and _takes_gzip(request.headers):
            return Response(data, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(data) if packed else data, media_type=kind, headers=headers)

    def _held(self, name: str) -> tuple[bytes, bool]:
        with self._reading:  # several who ask for one file at once wait for one reading
            return self._read(name)

    def _read_once(self, name: str) -> tuple[bytes, bool]:
        """The file, compressed where that is worth it, and whether it is."""
        plain = self._files[name].read_bytes()
        worth = len(plain) >= LEAST_BYTES and self._files[name].suffix in PACKED
        return (gzip.compress(plain, LEVEL, mtime=0), True) if worth else (plain, False)


def _takes_gzip(headers: Headers) -> bool:
    """Whether it says that it does: `gzip` without a weight of 0."""
    for word in headers.get("accept-encoding", "").split(","):
        name, _, weight = word.partition(";")
        if name.strip().casefold() == "gzip":
            return weight.replace(" ", "").casefold() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def front_end() -> Assets:
    """Those of the Streamlit that is installed."""
    import streamlit

    return Assets(Path(streamlit.__file__).parent / "static" / "static")

"""Answers of XProf that are read before they are handed on: an error names no folder of this machine, and the cells of
a CSV file, which come from the names in a trace, run nothing in a spreadsheet."""

import gzip
from collections.abc import Mapping
from pathlib import Path

from starlette.responses import Response

from app.cells import harmless_csv
from app.serve.places import placeless

CSV = "/data_csv"
_ABOUT_THE_BYTES = ("content-encoding", "content-length")  # of those that XProf sent


def must_be_read(rest: str, status: int) -> bool:
    """Whether the answer to a route is read whole; any other is streamed as it is."""
    return status >= 400 or rest == CSV


def read_answer(body: bytes, status: int, headers: Mapping[str, str], root: Path) -> Response:
    """What is handed on of such an answer. `root`: the store."""
    packed = any(n.lower() == "content-encoding" and v == "gzip" for n, v in headers.items())
    text = (gzip.decompress(body) if packed else body).decode("utf-8", "replace")
    kept = {n: v for n, v in headers.items() if n.lower() not in _ABOUT_THE_BYTES}
    return Response(placeless(text, root) if status >= 400 else harmless_csv(text), status, kept)

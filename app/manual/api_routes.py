"""docs/api.md: every route of the HTTP API, with what its handler says of it."""

import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path

from starlette.routing import Route

from app.manual import marks
from app.mcp import PATH
from app.operations.metrics import Figures
from app.operations.readiness import Readiness
from app.operations.routes import Operations
from app.serve.api import Api
from app.serve.identifying import Identifying
from app.serve.jobs import Jobs
from app.workspace import Workspace
from runs.registry import Registry
from runs.store import Store

HEAD = (
    "Everything a page shows can be had as JSON from the server that shows it. Keys carry their units, what is not "
    'known is `null`, and an error is `{"error": "one sentence"}` with status 400, 404 where the address names what '
    "does not exist, or 413. Options of a [question](questions.md) or a [what-if](whatifs.md) are parameters of its "
    "address. Where the server knows who asks, a program sends a token (`Authorization: Bearer chipledger_...`): "
    "without one it is answered 401, and without the role that the route needs 403; [how it is secured](security.md) "
    "tells more. A server tells all of it with what is taken and the schemas of its answers at `/api/`, and as OpenAPI "
    "3.1 at `/api/openapi.json`; a parameter or field that is not named there is refused."
)
EXAMPLE = """```shell
curl -s http://127.0.0.1:8501/api/runs
curl -s "http://127.0.0.1:8501/api/runs/my_run/show/goodput?rules=ml-goodput"
```"""


def routes() -> list[Route]:
    """Those of the API that answer something."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        place = Workspace(store, Registry(store.root / "registry.db"))
        watched = Operations(place, Figures(), Readiness(place)).routes()
        told = [*Api(place, Jobs()).routes(), *Identifying(place, None).routes(), *watched]
    return [r for r in told if r.endpoint.__name__ != "nothing"]


def said(route: Route) -> str:
    """What the handler says of itself, as one paragraph; empty where it says nothing."""
    return " ".join((inspect.getdoc(route.endpoint) or "").split())


def api_text() -> str:
    more = f"Agents ask in the Model Context Protocol at `{PATH}`: see [MCP](mcp.md)."
    return marks.page("HTTP API", HEAD, EXAMPLE, *_parts(), "## For agents", more)


def _parts() -> Iterator[str]:
    for route in routes():
        methods = sorted((route.methods or set()) - {"HEAD"})
        yield f"## {' '.join(methods)} {route.path}\n\n{said(route)}"

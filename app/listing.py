"""The runs of a store, as listed by the library, the API and the command line."""

from typing import Any

from app.summary import run_dict
from app.workspace import Workspace


def list_runs(place: Workspace) -> dict[str, Any]:
    """`runs --json` and `GET /api/runs`: all runs, newest first, and what could not be read."""
    runs, problems = place.store.listing()
    extras = place.registry.all_extras([r.run_id for r in runs])
    live = {v.run_id: v for v in place.store.live.all()}
    return {"runs": [run_dict(r, extras[r.run_id], live.get(r.run_id)) for r in runs], "problems": problems}

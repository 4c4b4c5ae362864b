"""The runs of a store, as listed by the library, the API and the command line."""

from typing import Any

from app.summary import broken_dict, run_dict
from app.workspace import Workspace


def list_runs(place: Workspace) -> dict[str, Any]:
    """`runs --json` and `GET /api/runs`: all runs, newest first, those that cannot be read after them, each with its
    problem; `problems` are these sentences once more."""
    found = place.store.look()
    extras = place.registry.all_extras([r.run_id for r in found.runs])
    live = {v.run_id: v for v in place.store.live.all()}
    rows = [run_dict(r, extras[r.run_id], live.get(r.run_id)) for r in found.runs]
    read = {r.run_id for r in found.runs}
    rows += [broken_dict(run_id, found.broken[run_id]) for run_id in sorted(set(found.broken) - read)]
    return {"runs": rows, "problems": list(found.broken.values())}

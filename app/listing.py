"""The runs of a store, as listed by the library, the API and the command line."""

import functools
from pathlib import Path
from typing import Any

from app.summary import run_dict
from app.workspace import Workspace
from runs.errors import InputError
from runs.run import Run


def all_runs(place: Workspace) -> tuple[list[Run], list[str]]:
    """(runs that can be read, newest first; one line about each that cannot). One broken run hides no other."""
    runs, problems = [], []
    for run_id in place.store.ids():
        try:
            runs.append(_read(place.store.runs_folder / run_id))
        except (InputError, OSError) as e:  # OSError: removed between the listing and the reading
            problems.append(str(e))
    return sorted(runs, key=lambda r: -r.manifest.created_ns), problems


@functools.lru_cache(maxsize=10_000)
def _read(folder: Path) -> Run:
    """A run with its manifest read: it never changes, so a list of thousands is read once."""
    run = Run(folder)
    run.manifest  # noqa: B018 - read now, so that what cannot be read is told here
    return run


def list_runs(place: Workspace) -> dict[str, Any]:
    """`runs --json` and `GET /api/runs`: all runs, newest first, and what could not be read."""
    runs, problems = all_runs(place)
    extras = place.registry.all_extras([r.run_id for r in runs])
    return {"runs": [run_dict(r, extras[r.run_id]) for r in runs], "problems": problems}

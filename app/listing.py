"""The runs of a store, as listed by the API and the command line."""

from typing import Any

from app.library.rows import NEWEST, Numbers, library
from app.workspace import Workspace


def list_runs(
    place: Workspace,
    q: str = "",
    sort: str = NEWEST,
    limit: int | None = None,
    offset: int = 0,
    archived: bool = False,
    numbers: Numbers = "later",
) -> dict[str, Any]:
    """`runs --json` and `GET /api/runs`: the runs that are found, newest first unless sorted otherwise, those that
    cannot be read after them, each with its problem; `problems` are these sentences once more. `pending`: runs whose
    numbers are still being worked out, of all `total`."""
    found = library(place, q, sort=sort, limit=limit, offset=offset, archived=archived, hidden=True, numbers=numbers)
    return {
        "runs": [row.to_dict() for row in found.rows],
        "problems": list(found.damaged.values()),
        "found": found.found,
        "total": found.total,
        "archived": found.archived,
        "pending": found.pending,
    }

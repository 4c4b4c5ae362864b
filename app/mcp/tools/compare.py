"""`compare`: by how much two served runs differ, and whether that is more than chance."""

from collections.abc import Mapping
from typing import Any

from app.cli.commands.compare import ARGUMENTS, LOAD_A, LOAD_B
from app.comparing import compare_runs, words
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import named, to
from app.pages.compare import COMPARE as PAGE
from app.workspace import Workspace

A, B = ARGUMENTS


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    a, b = place.store.find(given[A.name]), place.store.find(given[B.name])
    result = compare_runs(a, b, given.get(LOAD_A.name), given.get(LOAD_B.name))
    told = {"a": a.run_id, "b": b.run_id, **result.to_dict()}
    links = {"page": to(f"/{PAGE.path}", ("run", named(a, place)), ("with", b.run_id))}
    return Told(words.verdict(result, a.manifest.name, b.manifest.name), told, links)


COMPARE = Tool(
    name="compare",
    title="Two served runs compared",
    help="Compare two served runs request by request: latencies and throughput with intervals, and which differences "
    "are more than chance.",
    options=(A, B, LOAD_A, LOAD_B),
    needed=(A.name, B.name),
    answer=answer,
)

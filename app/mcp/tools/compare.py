"""`compare`: by how much two runs differ, whether that is more than chance, and what makes it."""

from collections.abc import Mapping
from typing import Any

from app.baselines import find_run
from app.comparing.answer import Compared
from app.comparing.options import LOADS, SIDES
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import named, to
from app.pages.compare import COMPARE as PAGE
from app.workspace import Workspace

A, B = SIDES


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    a, b = find_run(place, given[A.name]), find_run(place, given[B.name])
    found = Compared(a, b, place, *(given.get(o.name) for o in LOADS))
    links = {"page": to(f"/{PAGE.path}", ("run", named(a, place)), ("with", b.run_id))}
    return Told(found.verdict, found.to_dict(), links)


COMPARE = Tool(
    name="compare",
    title="Two runs compared",
    help="Compare two runs: of jobs whether a step is slower, by how much and which accounts and operations make it; "
    "of served runs latencies and throughput. With intervals, and which differences are more than chance.",
    options=(*SIDES, *LOADS),
    needed=(A.name, B.name),
    answer=answer,
)

"""`topology`: how far, how narrow and how loaded a network of chips is, whole or after failures."""

from collections.abc import Mapping
from typing import Any

from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import to
from app.pages.topology import TOPOLOGY as PAGE
from app.serve.api import MOST_FAILURES, MOST_SPECS
from app.topology_options import FAIL, SPEC
from app.workspace import Workspace
from errors import QuestionError


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    from app.topologies import report
    from app.topologies.words import verdict

    specs, failed = _stated(given.get(SPEC.name, ())), _stated(given.get(FAIL.name, ()))
    for option, values, most in ((SPEC, specs, MOST_SPECS), (FAIL, failed, MOST_FAILURES)):
        if len(values) > most:
            raise QuestionError(f"{len(values)} times {option.name!r}", expected=f"at most {most}")
    reports = [report(spec, failed, place) for spec in specs]
    told = [r.to_dict() for r in reports]
    asked = [*((SPEC.name, spec) for spec in specs), *((FAIL.name, what) for what in failed)]
    links = {"page": to(f"/{PAGE.path}", *asked), "json": to("/api/topology", *asked)}
    return Told(" ".join(map(verdict, reports)), told if len(told) > 1 else told[0], links)


def _stated(values: tuple[str, ...]) -> list[str]:
    return [v for v in values if v.strip()]


TOPOLOGY = Tool(
    name="topology",
    title="A network of chips",
    help="Count hops, bisection and link loads of a torus, mesh, Boardfly, GPU network or kept edge list.",
    options=(SPEC, FAIL),
    needed=(SPEC.name,),
    answer=answer,
    slow=True,
)

"""`facts`: what is known of a run as a whole, and what one fact more would tell."""

from collections.abc import Mapping
from typing import Any

from app.facts.told import facts_told
from app.mcp.arguments import Pairs
from app.mcp.base import RUN, Told, Tool
from app.mcp.links import named, to
from app.pages.facts import FACTS as PAGE
from app.workspace import Workspace
from errors import format as fmt


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    run = place.store.find(given[RUN.name])
    told = facts_told(run, place)
    opening = [m for m in told.missing if m.opens]
    says = f"{fmt.count(len(told.known), 'fact')} known; {len(opening):,} missing that would tell more."
    wrong = " ".join(c.sentence for c in told.contradictions)
    links = {"page": to(f"/{PAGE.path}", ("run", named(run, place))), "json": f"/api/runs/{run.run_id}/facts"}
    return Told(f"{says} {wrong}".strip(), told.to_dict(), links)


FACTS = Tool(
    name="facts",
    title="Facts of a run",
    help="What is known of a run as a whole (chip, chips, model ...), who said so, what contradicts its files, and "
    "which missing fact would tell what, with guesses. Ask where an answer lacks a chip or a model.",
    options=(RUN,),
    needed=(RUN.name,),
    answer=answer,
)

"""`findings`: what is wrong with a run, where, what mending it gives back, and the cure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.mcp.arguments import Pairs
from app.mcp.base import RUN, Told, Tool
from app.mcp.links import page_links
from app.mcp.tools.show import shown
from app.questions import QUESTIONS
from app.questions.findings import FINDINGS
from app.workspace import Workspace


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    run = place.store.find(given[RUN.name])
    asked = [(o.name, str(given[o.name])) for o in FINDINGS.options if o.name in given]
    told = shown(FINDINGS, run, asked, place)
    rests_on = {found["question"] for found in told.answer["findings"]}
    pages = page_links((q for q in QUESTIONS if q.name in rests_on), run, place)
    return replace(told, links={**told.links, **pages})


FIND = Tool(
    name="findings",
    title="What is wrong with a run",
    help="Call this first when asked why a run is slow or costly: each cause with its place (ranks, hosts, steps, "
    "links), what mending it gives back in chip-seconds and as a share, how sure that is, the cure, and the question "
    "that shows the evidence; also what was ruled out and what cannot be told.",
    options=(RUN, *FINDINGS.options),
    needed=(RUN.name,),
    answer=answer,
)

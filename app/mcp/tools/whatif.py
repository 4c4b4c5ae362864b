"""`whatif`: what would be, asked of a job that does not exist."""

from collections.abc import Mapping
from typing import Any

from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import page_of, to
from app.whatif import WHATIFS
from app.whatif.base import named
from app.workspace import Workspace
from errors.options import Option

NAME = Option("name", tuple(w.name for w in WHATIFS), None, "; ".join(f"{w.name}: {w.help}" for w in WHATIFS))


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    whatif = named(WHATIFS, given[NAME.name])
    asked = whatif.from_query(more)
    if run := whatif.run_of(asked):
        place.store.find(run)
    result = whatif.answer(asked, place)
    links = {"json": to(f"/api/whatif/{whatif.name}", *more)}
    page = page_of(whatif.page)
    return Told(whatif.words(result).verdict, whatif.told(result), ({"page": to(page, *more)} if page else {}) | links)


WHATIF = Tool(
    name="whatif",
    title="What would be",
    help="Ask what would be, of a job that does not exist or of a run with something changed.",
    options=(NAME,),
    needed=(NAME.name,),
    choices={w.name: tuple(o for o in w.options if not o.local) for w in WHATIFS},
    answer=answer,
    slow=True,
)

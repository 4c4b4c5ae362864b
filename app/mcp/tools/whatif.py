"""`whatif` and `whatif_training`: what would be, asked of a job that does not exist. Those about training jobs are a
tool of their own: one description of all options would be too long for every call to pay."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import page_of, to
from app.whatif import WHATIFS
from app.whatif.base import WhatIf, named
from app.whatif.cost import COST
from app.whatif.goodput import GOODPUT_PLAN
from app.whatif.scaling import SCALING
from app.whatif.storage import STORAGE
from app.whatif.training import TRAINING
from app.workspace import Workspace
from errors.options import Option

NAME = "name"
OF_TRAINING: tuple[WhatIf[Any, Any], ...] = (TRAINING, COST, GOODPUT_PLAN, SCALING, STORAGE)


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    whatif = named(WHATIFS, given[NAME])
    asked = whatif.from_query(more)
    if run := whatif.run_of(asked):
        place.store.find(run)
    result = whatif.answer(asked, place)
    links = {"json": to(f"/api/whatif/{whatif.name}", *more)}
    page = page_of(whatif.page)
    return Told(whatif.words(result).verdict, whatif.told(result), ({"page": to(page, *more)} if page else {}) | links)


def _tool(name: str, title: str, said: str, whatifs: Sequence[WhatIf[Any, Any]]) -> Tool:
    """Asks one of `whatifs`."""
    which = Option(NAME, tuple(w.name for w in whatifs), None, "; ".join(f"{w.name}: {w.help}" for w in whatifs))
    return Tool(
        name=name,
        title=title,
        help=said,
        options=(which,),
        needed=(NAME,),
        choices={w.name: tuple(o for o in w.options if not o.local) for w in whatifs},
        answer=answer,
        slow=True,
    )


WHATIF = _tool(
    "whatif",
    "What would be",
    "Ask what would be, of a job that does not exist or of a run with something changed: serving, networks, saves.",
    [w for w in WHATIFS if w not in OF_TRAINING],
)
WHATIF_TRAINING = _tool(
    "whatif_training",
    "What would be, of training",
    "Plan a training job: chips and layouts, days and dollars, failures, scaling, and the storage that feeds it.",
    OF_TRAINING,
)

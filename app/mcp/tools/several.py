"""`compare_many`: what differs between several runs, and what each is against one of them."""

from collections.abc import Mapping
from typing import Any

from app.comparing.several import words
from app.comparing.several.answer import several
from app.comparing.several.options import ASKED, GROUP, OVER, QUERY, RUNS, SMOOTH, SORT
from app.comparing.several.told import several_dict
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import to
from app.pages.several import SEVERAL as PAGE
from app.workspace import Workspace

SELDOM = (SORT, OVER, SMOOTH)  # of use in a picture: every agent pays for the description of each


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    asked = {o.name: given[o.name] for o in ASKED if o.name in given}
    found = several(place, **asked, numbers="now")
    named = ",".join(m.run_id for m in found.members)
    links = {"page": to(f"/{PAGE.path}", (RUNS.name, named), ("baseline", found.baseline.run_id))}
    return Told(words.verdict(found), several_dict(found), links)


COMPARE_MANY = Tool(
    name="compare_many",
    title="Several runs compared",
    help="Lay 2 to 200 runs beside one another: settings and figures in which they differ, each against a baseline, "
    f"how a series scales with its chips, and curves. Runs by {RUNS.name}, by a search ({QUERY.name}) or {GROUP.name}.",
    options=tuple(o for o in ASKED if o not in SELDOM),
    answer=answer,
    slow=True,
)

"""`baselines`: the names that runs are held against."""

from collections.abc import Mapping
from typing import Any

from app.baselines import PREFIX, baselines, shown
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.workspace import Workspace
from errors import format as fmt
from errors.options import Option

NAME = Option("name", str, "", "one of them, to be told all that it ever led to")


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    if name := given.get(NAME.name, ""):
        now, past = shown(place, name)
        says = f"{now.name} leads to {now.now_called}, {now.where}." if now else f"{past[0].name} was removed."
        return Told(says, {"baseline": now.to_dict() if now else None, "history": [m.to_dict() for m in past]})
    found = baselines(place)
    return Told(f"{fmt.count(len(found), 'baseline')}.", {"baselines": [b.to_dict() for b in found]})


BASELINES = Tool(
    name="baselines",
    title="Baselines",
    help=f"List the baselines: names of the runs that others are held against. compare takes {PREFIX}NAME for a run.",
    options=(NAME,),
    answer=answer,
)

"""`fleet`: all runs as one ledger."""

from collections.abc import Mapping
from typing import Any

from app.fleet import words
from app.fleet.asking import ask_fleet
from app.fleet.options import CAPACITY, OPTIONS, RUNS, SIMULATED, ZONE
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import to
from app.sharing import counted
from app.workspace import Workspace

SELDOM = (ZONE, SIMULATED, CAPACITY)  # every agent pays for the description of each


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    result = ask_fleet(place, given)
    says = " ".join(
        [words.verdict(result).whole, *(words.left_out(result) if result.total.runs else ()), counted()]
    ).strip()
    asked = [(o.name, str(given[o.name])) for o in FLEET.options if o.name in given]
    links = {"page": to("/fleet", *asked), "json": to("/api/fleet", *asked)}
    return Told(says, result.to_dict(given.get(RUNS.name, RUNS.default)), links)


FLEET = Tool(
    name="fleet",
    title="Fleet",
    help="All runs over time as one ledger: chip-hours, dollars, goodput, MFU and losses with their owners, by team, "
    "chip, model or tag, by day, week or month.",
    options=tuple(o for o in OPTIONS if o not in SELDOM),
    answer=answer,
)

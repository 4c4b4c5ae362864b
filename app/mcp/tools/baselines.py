"""What `runs` tells of baselines: the names that runs are held against. No tool of their own, as every agent pays for
the description of each."""

from app.baselines import PREFIX, baselines, shown
from app.mcp.base import Told
from app.workspace import Workspace
from errors import format as fmt
from errors.options import Option

ALL = "*"
BASELINE = Option(
    "baseline",
    str,
    "",
    f"instead of runs: {ALL} for the baselines ({PREFIX}NAME), or one by name with its past",
)


def told_of(place: Workspace, name: str) -> Told:
    """All of them, or one. Raises QuestionError where there is none of that name."""
    if name != ALL:
        now, past = shown(place, name)
        says = f"{now.name} leads to {now.now_called}, {now.where}." if now else f"{past[0].name} was removed."
        return Told(says, {"baseline": now.to_dict() if now else None, "history": [m.to_dict() for m in past]})
    found = baselines(place)
    return Told(f"{fmt.count(len(found), 'baseline')}.", {"baselines": [b.to_dict() for b in found]})

"""What a fleet is made of: its runs, as columns, and what is asked of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from analyzers.fleet.spent import Spent

Every = Literal["day", "week", "month"]
OWNERS = ("owner", "who", "user", "developer")  # tags that say whose a run is, the first that it has
TEAM = "team"
NOT_TOLD = "not told"  # in place of a chip, a team, an owner ... that nothing tells


@dataclass(frozen=True, kw_only=True)
class FleetRun:
    """A run as the library lists it. `spent`: None where it has no ledger; `damaged`: it cannot be read, or not all of
    it; `goodput`, `mfu`: as its row shows them, None where not known; `live`: it is still being followed."""

    run_id: str
    name: str
    kind: str = "training"
    simulated: bool = False
    damaged: bool = False
    pending: bool = False
    created_ns: int = 0
    chip: str = ""
    chips: float | None = None
    model: str = ""
    group: str = ""
    job: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    goodput: float | None = None
    mfu: float | None = None
    archived: bool = False
    demo: bool = False
    live: bool = False
    spent: Spent | None = None

    @cached_property
    def team(self) -> str:
        return self.tag(TEAM)

    @cached_property
    def owner(self) -> str:
        return next((value for name in OWNERS if (value := self.tag(name))), "")

    def tag(self, key: str) -> str:
        """The value of a tag, whatever the case of its key; empty where it has none."""
        if key in self.tags:
            return self.tags[key].strip()
        return next((v.strip() for k, v in self.tags.items() if k.casefold() == key.casefold()), "")


WHOSE = "whose"  # the owner, where none is told the team
ITS_TEAM = "its team"  # empty where it has none


def key_of(run: FleetRun, by: str) -> str:
    """What a run is counted under; `by`: team, owner, model, chip, group, kind, tag:KEY, WHOSE, or ITS_TEAM."""
    if by == ITS_TEAM:
        return run.team
    if by == WHOSE:
        return run.owner or run.team or NOT_TOLD
    told = run.tag(by.partition(":")[2]) if by.startswith("tag:") else str(getattr(run, by))
    return told or NOT_TOLD

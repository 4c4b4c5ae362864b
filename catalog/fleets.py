"""Published fleets: how often large training jobs and clusters were interrupted, and by what.

Facts and figures only. A rate is unplanned failures per 1,000 node-days; a node is a host with its accelerators.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from catalog.causes import CAUSES
from catalog.entries import MARKS, read_data

FILE = "fleets.json"
DAY_S = 86_400


@dataclass(frozen=True, kw_only=True)
class PublishedCause:
    """One line of a published table. `cause`: a key of catalog.causes.CAUSES; `printed_percent`: the share beside it,
    as printed, where one is."""

    printed: str
    cause: str
    count: int
    printed_percent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """One job or cluster; None where the source does not say. `causes` add up to `unplanned`.

    `per_1000_node_days`: as printed, or as `note` derives it; where counts are published, from these.
    `mark`: one of `catalog.MARKS`.
    """

    id: str
    title: str
    chip: str
    chips: int | None
    chips_per_node: int
    days: float | None
    planned: int | None
    unplanned: int | None
    per_1000_node_days: float
    source: str
    mark: str
    note: str
    causes: tuple[PublishedCause, ...] = field(repr=False)

    @property
    def nodes(self) -> int | None:
        return None if self.chips is None else self.chips // self.chips_per_node

    @property
    def node_days(self) -> float | None:
        return self.nodes * self.days if self.nodes and self.days else None

    @property
    def mean_time_s(self) -> float | None:
        """Seconds between two interruptions of any kind, planned ones included."""
        if self.days is None or self.unplanned is None:
            return None
        return self.days * DAY_S / (self.unplanned + (self.planned or 0))

    def counts(self) -> dict[str, int]:
        """Unplanned interruptions by cause."""
        out: dict[str, int] = {}
        for entry in self.causes:
            out[entry.cause] = out.get(entry.cause, 0) + entry.count
        return out


def mttf_s(nodes: int, per_1000_node_days: float) -> float:
    """Seconds between failures of a job on so many nodes: 1 / (nodes x rate)."""
    return DAY_S * 1000 / (nodes * per_1000_node_days)


@cache
def fleets() -> tuple[Fleet, ...]:
    """Every fleet, in the order of the data file.

    Raises ValueError for a row that is not well formed: the data file is ours, so that is a defect.
    """
    data = read_data(FILE)
    rows = tuple(_parse(raw, data["sources"]) for raw in data["fleets"])
    if len({r.id for r in rows}) < len(rows):
        raise ValueError(f"{FILE}: an id stands twice")
    return rows


def _parse(raw: dict[str, Any], sources: dict[str, str]) -> Fleet:
    causes = tuple(PublishedCause(**c) for c in raw["causes"])
    rate = raw["per_1000_node_days"]
    if rate is None:
        rate = raw["unplanned"] / (raw["chips"] // raw["chips_per_node"] * raw["days"]) * 1000
    fields: dict[str, Any] = {**raw, "causes": causes, "source": sources[raw["source"]], "per_1000_node_days": rate}
    fleet = Fleet(**fields)
    if fleet.mark not in MARKS or not {c.cause for c in causes} <= set(CAUSES):
        raise ValueError(f"{FILE}: {fleet.id} is not well formed")
    if causes and sum(c.count for c in causes) != fleet.unplanned:
        raise ValueError(f"{FILE}: the causes of {fleet.id} do not add up to its unplanned interruptions")
    return fleet

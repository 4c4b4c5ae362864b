"""A run's interruptions beside those of published fleets: the rate per 1,000 node-days, and each cause's share."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from analyzers.base import Facts, fact
from analyzers.lost.mttf import rate_interval
from analyzers.subject import chip_of
from catalog.causes import CAUSES
from catalog.chip_count import chips_seen
from catalog.fleets import DAY_S, Fleet, fleets

DECIDED = ("maintenance", "time_limit", "requeue", "user")
"""Causes shown as one: tables count announced maintenance among planned interruptions, without saying of what kind."""


@dataclass(frozen=True)
class Rate:
    """Failures per 1,000 node-days with a two-sided 95 % interval (Garwood); None where it cannot be told."""

    mean: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, float | None]:
        return {"mean": self.mean, "low": self.low, "high": self.high}


UNCOUNTED = "how many chips were held is not told"


@dataclass(frozen=True)
class Nodes:
    """Hosts that were held at one time; `words`: how that is known. None where nothing tells."""

    count: int | None
    words: str


def nodes_of(
    facts: Facts, chips: int | None, devices_per_chip: int, seen: list[tuple[str, int]], stated: int | None
) -> Nodes:
    """From the option, what the run declares, the profile where it saw all chips, or the catalogue's usual host.

    `seen`: (host, device) of every profiled device, of which a chip has `devices_per_chip`.
    """
    if chips is None:
        return Nodes(None, UNCOUNTED)
    declared = stated or fact(facts, "chips_per_host")
    if declared:
        return Nodes(max(-(-chips // int(declared)), 1), f"{int(declared)} chips a host, as stated")
    if seen and chips_seen(len(seen), devices_per_chip) >= chips:
        return Nodes(len({host for host, _ in seen}), "the hosts that the profile shows")
    chip = chip_of(facts)
    usual = chip.value("chips_per_host") if chip else None
    if usual:
        return Nodes(max(-(-chips // int(usual)), 1), f"{int(usual)} chips a host, as is usual for {chip.name}")
    return Nodes(None, "how many chips share a host is not known")


def rate(count: int, nodes: int | None, held_s: float | None) -> Rate:
    """The rate of `count` failures among `nodes` in `held_s` seconds."""
    if not nodes or not held_s:
        return Rate(None, None, None)
    per = 1000 * DAY_S / (nodes * held_s)
    low, high = rate_interval(count)
    return Rate(count * per, low * per, high * per)


def compared(mine: Rate) -> list[dict[str, Any]]:
    """One dict per published fleet: its facts, its rate with an interval where counts are published, and `ratio`:
    this run's rate over it."""
    out = []
    for fleet in fleets():
        days = fleet.node_days
        low, high = rate_interval(fleet.unplanned) if days and fleet.unplanned else (None, None)
        out.append(
            {
                "id": fleet.id,
                "title": fleet.title,
                "chip": fleet.chip,
                "chips": fleet.chips,
                "nodes": fleet.nodes,
                "days": fleet.days,
                "planned": fleet.planned,
                "unplanned": fleet.unplanned,
                "mean_time_s": fleet.mean_time_s,
                "per_1000_node_days": fleet.per_1000_node_days,
                "low": None if low is None else low / days * 1000,
                "high": None if high is None else high / days * 1000,
                "ratio": None if mine.mean is None else mine.mean / fleet.per_1000_node_days,
                "causes": [{"cause": c, "count": n} for c, n in fleet.counts().items()],
                "mark": fleet.mark,
                "source": fleet.source,
                "note": fleet.note,
            }
        )
    return out


def shares(causes: pd.DataFrame, fleet: Fleet) -> pd.DataFrame:
    """Causes of this run and of a fleet side by side, largest share first: cause, title, family, count, share,
    fleet_count, fleet_share. Shares are of all interruptions, planned ones included, in both.

    Maintenance, time limits and what people stopped are one row: `decided`.
    """
    mine = causes.set_index("cause")["count"].to_dict()
    theirs = dict(fleet.counts())
    for counts, more in ((mine, 0), (theirs, fleet.planned or 0)):
        decided = sum(int(counts.pop(c, 0)) for c in DECIDED) + more
        if decided:
            counts["decided"] = decided
    names = list(dict.fromkeys([*mine, *theirs]))
    total, fleet_total = sum(mine.values()), sum(theirs.values())
    table = pd.DataFrame(
        {
            "cause": names,
            "title": [CAUSES[n].title if n in CAUSES else "Maintenance, a time limit or a person" for n in names],
            "family": [CAUSES[n].family if n in CAUSES else "maintenance" for n in names],
            "count": [int(mine.get(n, 0)) for n in names],
            "fleet_count": [int(theirs.get(n, 0)) for n in names],
        }
    )
    table["share"] = table["count"] / max(total, 1)
    table["fleet_share"] = table["fleet_count"] / max(fleet_total, 1)
    order = table[["share", "fleet_share"]].max(axis=1).sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)

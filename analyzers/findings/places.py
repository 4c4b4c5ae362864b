"""Where in the course of a job something happened: the steps during or after which its events lie."""

from collections.abc import Sequence

import numpy as np

from analyzers.findings.base import Seen, Steps
from analyzers.time.job_past import steps_taken
from runs.tables import frame


def spaced(steps: Sequence[int]) -> Steps | None:
    """Steps that follow one another at one distance mostly; None for fewer than two."""
    if len(steps) < 2:
        return None
    gaps = sorted(b - a for a, b in zip(steps[:-1], steps[1:], strict=True))
    return Steps(steps[0], steps[-1], gaps[len(gaps) // 2])


def steps_of_events(seen: Seen, details: Sequence[str]) -> list[int]:
    """The last step that began before each event of these names (kinds of `lifecycle`, or what custom events are
    called), in order; empty where steps or events have no time of day."""
    events = frame(seen.tables, "lifecycle", ["kind", "detail", "start_ns"]).dropna(subset=["start_ns"])
    mine = events[events["kind"].isin(details) | events["detail"].isin(details)]
    steps = steps_taken(seen.tables, seen.facts).rows.dropna(subset=["start_ns"])
    if not len(mine) or not len(steps):
        return []
    steps = steps.sort_values("start_ns", kind="stable")
    at = np.searchsorted(
        steps["start_ns"].to_numpy(dtype=np.int64), mine["start_ns"].to_numpy(dtype=np.int64), side="right"
    )
    known = steps["step"].to_numpy(dtype=np.int64)
    return sorted({int(known[i - 1]) for i in at if i > 0})


def rank_of(seen: Seen, host: str, otherwise: int | str) -> int | str:
    """The rank that a host is: the number of its process, where each host has one process with one device."""
    rows = frame(seen.tables, "captures", ["host", "process", "devices"]).dropna()
    mine = rows[rows["host"].astype(str) == host]
    alone = len(mine) and mine["process"].nunique() == 1 and (rows["devices"] == 1).all()
    return int(mine["process"].iloc[0]) if alone else otherwise

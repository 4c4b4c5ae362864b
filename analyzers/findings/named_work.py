"""What events of a late rank's host name that its peers' hosts do not do as long: logging, evaluating, saving."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzers.device.activity import profiled_steps
from analyzers.device.host_work import host_work
from analyzers.device.launches.backlog import Backlog, ran_in
from analyzers.findings.base import Seen
from analyzers.intervals import Spans, overlap_with, spans
from analyzers.ranks.stragglers import StragglersResult
from runs.tables import frame

MOSTLY = 0.5  # of what a rank is late by: so much longer its host must be at it
MOST_PEERS = 8


@dataclass(frozen=True)
class Named:
    """A kind of host work, as a cause of a rank's lateness: the finding's cause, the account of devices that are idle
    for it, and how it is said."""

    cause: str
    account: str
    says: str


KINDS = {
    "logging": Named("logging", "idle_logging", "its host logs or sends metrics"),
    "evaluation": Named("evaluation", "idle_evaluation", "its host evaluates"),
    "checkpointing": Named("slow_checkpoint", "idle_checkpointing", "its host works on a checkpoint"),
}


def named_work(seen: Seen, found: StragglersResult, row: Mapping[Hashable, Any]) -> Named | None:
    """What the host of a late rank does for longer than its peers', by most of what it is late by; None where events do
    not name it, or several ranks are of that host."""
    host = str(row["host"])
    hosts = found.every["host"].astype(str)
    if not host or (hosts == host).sum() != 1:
        return None
    steps = range(int(row["first_step"]), int(row["last_step"]) + 1, int(row["every"]))
    peers = [peer for peer in hosts.drop_duplicates() if peer and peer != host][:MOST_PEERS]
    mine, theirs = _seconds(seen, host, steps), [_seconds(seen, peer, steps) for peer in peers]
    beyond = {kind: mine[kind] - float(np.median([other[kind] for other in theirs] or [0.0])) for kind in KINDS}
    most = max(beyond, key=lambda kind: beyond[kind])
    return KINDS[most] if beyond[most] >= MOSTLY * float(row["lag_s"]) > 0 else None


def _seconds(seen: Seen, host: str, steps: range) -> dict[str, float]:
    """Seconds of each kind that a host spends in one of these steps once its device is done with what was launched
    before, mean over those that its profile shows."""
    captures = frame(seen.tables, "captures", ["capture", "host", "start_ns"]).dropna()
    mine = profiled_steps(seen.tables)
    mine = mine[(mine["host"].astype(str) == host) & mine["step"].isin(steps)].drop_duplicates(["capture", "step"])
    spent = dict.fromkeys(KINDS, 0.0)
    for capture, start_ns in captures.loc[captures["host"].astype(str) == host, ["capture", "start_ns"]].itertuples(
        index=False
    ):
        within = mine[mine["capture"] == capture]
        windows = Spans(within["start_ns"].to_numpy(dtype=np.int64), within["end_ns"].to_numpy(dtype=np.int64))
        work = host_work(seen.tables, int(capture), int(start_ns))
        backlog = Backlog.of(ran_in(seen.tables, int(capture), int(start_ns)))
        for kind in spent:
            spent[kind] += float(overlap_with(backlog.after(work.get(kind, spans())), windows).sum()) / 1e9
    return {kind: seconds / max(len(mine), 1) for kind, seconds in spent.items()}

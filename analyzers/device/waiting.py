"""What devices waited for, by the ledger's definitions, over any windows: other ranks, input, or nothing known.

The same painting as `analyzers.time.device_uses` does over kept steps: computing counts before all else; then waiting
for the last rank, what may be either, communication, copies, input, and idle.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import Activity, Split
from analyzers.grouped import Grouped
from analyzers.intervals import Spans, common, joined, overlap_with, spans, union
from analyzers.ranks.waits import Waits
from analyzers.shared import Shared
from runs.tables import Tables, frame

JOB = ""  # in fetches by host: what the job as a whole tells of


@dataclass(frozen=True)
class Waited:
    """Nanoseconds of each window. `communication + untold + ranks` is the window's exposed communication, `input +
    idle` its idle time."""

    communication: np.ndarray
    untold: np.ndarray
    ranks: np.ndarray
    input: np.ndarray
    idle: np.ndarray


@dataclass(frozen=True)
class Waiting:
    """One device's unions of instants, each with what counts before it: computing; waiting for ranks besides; what may
    be that or communication besides; all work; and input besides."""

    computing: Spans
    ranks: Spans
    untold: Spans
    working: Spans
    input: Spans

    def split(self, parts: Split, windows: Spans) -> Waited:
        computing, ranks, untold = (overlap_with(x, windows) for x in (self.computing, self.ranks, self.untold))
        fed = overlap_with(self.input, windows) - overlap_with(self.working, windows)
        return Waited(
            communication=parts.exposed - (untold - computing),
            untold=untold - ranks,
            ranks=ranks - computing,
            input=fed,
            idle=parts.idle - fed,
        )


def waiting(activity: Activity, waited: Waits, fetches: "Fetches") -> Waiting:
    """Of one device: its waits in collectives, and when its host fetched data or the device took it in."""
    rows = waited.rows[(waited.rows["host"] == activity.host) & (waited.rows["device"] == activity.device)]
    begin = rows["start_ns"].to_numpy(dtype=np.int64)
    come = begin + rows["wait_ns"].to_numpy(dtype=np.int64)
    sure = come + rows["unknown_ns"].to_numpy(dtype=np.int64)
    ranks = union(joined([activity.computation, _within(activity.communication, begin, come)]))
    working = union(joined([activity.computation, activity.communication, activity.memory]))
    own = fetches.of(activity.host, activity.device)
    if own is None:
        own = spans() if len(activity.infeed.start) else fetches.of_job
    return Waiting(
        computing=activity.computation,
        ranks=ranks,
        untold=union(joined([ranks, _within(activity.communication, come, sure)])),
        working=working,
        input=union(joined([working, activity.infeed, own])),
    )


def _within(communication: Spans, begin: np.ndarray, end: np.ndarray) -> Spans:
    """What lies in communication: a collective of no capture is not seen there."""
    return common(union(spans(begin, end)), communication)[0]


@dataclass(frozen=True)
class Fetches:
    """Unions of data loading, ns since the epoch, by host; JOB is the job as a whole. `every`: for all devices of a
    host; `shared`: what is for no device alone; `own`: the same with what is for one device."""

    every: dict[str, Spans]
    shared: dict[str, Spans]
    own: dict[tuple[str, int], Spans]

    def of(self, host: str, device: int | None = None) -> Spans | None:
        """When a host fetched for a device, or for any of them; None where nothing tells of the host's fetches."""
        if device is None or host not in self.every:
            return self.every.get(host)
        return self.own.get((host, device), self.shared.get(host, spans()))

    @property
    def of_job(self) -> Spans:
        return self.every.get(JOB, spans())

    @property
    def held_bytes(self) -> int:
        held = (one for by in (self.every, self.shared, self.own) for one in by.values())
        return sum(one.start.nbytes + one.end.nbytes for one in held)


def fetches_of(fetches: Fetches, steps: pd.DataFrame) -> Spans | None:
    """Those that steps of one host, all of one device or all of no device alone, may have waited for."""
    device = steps["device"].iloc[0]
    return fetches.of(str(steps["host"].iloc[0]), None if pd.isna(device) else int(device))


def fetched_for(rows: pd.DataFrame, device: int) -> pd.Series:
    """Which rows of `lifecycle` are of a device, or of all of its host's."""
    return rows["device"].isna() | (rows["device"] == device).fillna(False)


def host_fetches(tables: Tables) -> Fetches:
    """What the run tells of fetches."""
    return Shared(tables).get(("host fetches",), lambda: _host_fetches(tables))


def _host_fetches(tables: Tables) -> Fetches:
    names = ["kind", "host", "device", "start_ns", "end_ns"]
    rows = frame(tables, "lifecycle", names, [("kind", "==", "data_loading")]).dropna(subset=["start_ns", "end_ns"])
    rows = rows.assign(host=rows["host"].astype(object).where(rows["host"].notna(), JOB).astype(str))
    shared = {str(host): _spent(some) for host, some in rows[rows["device"].isna()].groupby("host")}
    alone = Grouped(rows[rows["device"].notna()], "host", "device")
    return Fetches(
        every={str(host): _spent(some) for host, some in rows.groupby("host")},
        shared=shared,
        own={
            (str(host), int(device)): union(joined([_spent(alone.of(host, device)), shared.get(host, spans())]))
            for host, device in alone.keys
        },
    )


def _spent(rows: pd.DataFrame) -> Spans:
    return union(spans(*(rows[name].to_numpy(dtype=np.int64) for name in ("start_ns", "end_ns"))))

"""What devices waited for, by the ledger's definitions, over any windows: other ranks, input, or nothing known.

The same painting as `analyzers.time.device_uses` does over kept steps: computing counts before all else; then waiting
for the last rank, what may be either, communication, copies, input, and idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analyzers.device.activity import Activity, Split
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


def waiting(activity: Activity, waited: Waits, fetches: Mapping[str, Spans]) -> Waiting:
    """Of one device: its waits in collectives, and when its host fetched data or the device took it in."""
    rows = waited.rows[(waited.rows["host"] == activity.host) & (waited.rows["device"] == activity.device)]
    begin = rows["start_ns"].to_numpy(dtype=np.int64)
    come = begin + rows["wait_ns"].to_numpy(dtype=np.int64)
    sure = come + rows["unknown_ns"].to_numpy(dtype=np.int64)
    ranks = union(joined([activity.computation, _within(activity.communication, begin, come)]))
    working = union(joined([activity.computation, activity.communication, activity.memory]))
    own = fetches.get(activity.host)
    if own is None:
        own = spans() if len(activity.infeed.start) else fetches.get(JOB, spans())
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


def host_fetches(tables: Tables) -> dict[str, Spans]:
    """Unions of data loading by host, ns since the epoch; JOB is the job as a whole."""
    return dict(Shared(tables).get(("host fetches",), lambda: _host_fetches(tables)))


def _host_fetches(tables: Tables) -> dict[str, Spans]:
    if not tables.rows("lifecycle"):
        return {}
    rows = frame(tables, "lifecycle", ["kind", "host", "start_ns", "end_ns"], [("kind", "==", "data_loading")])
    rows = rows.dropna(subset=["start_ns", "end_ns"])
    host = rows["host"].astype(object).where(rows["host"].notna(), JOB).astype(str)
    return {
        name: union(spans(g["start_ns"].to_numpy(dtype=np.int64), g["end_ns"].to_numpy(dtype=np.int64)))
        for name, g in rows.groupby(host)
    }

"""Why a rank is late: what it does between synchronising collectives, beyond what its peers do there.

The time of a step outside synchronising collectives is split by what the rank was doing, by its own clock alone; the
first that applies counts:

    compute               the device computes
    other_communication   a permute, broadcast or other collective under which it does not
    copies                copies and fills under neither
    input                 the host fetches data, or the device takes it in
    garbage_collection    the host's interpreter collects garbage
    launch                inside the host's step, none of the above: the launching thread is busy or late
    idle                  none of these

What exceeds the median of the peers of the same role, in the same steps, is the excess; the cause is the largest.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analyzers.device.activity import Activity, activities, profiled_steps, steps_of
from analyzers.device.host_work import COLLECTING, host_work
from analyzers.device.waiting import host_fetches
from analyzers.intervals import Spans, joined, overlap_with, paint, spans, union
from analyzers.ranks.meetings import SYNCHRONISING, Meetings
from analyzers.ranks.stragglers.blame import Lateness, median
from runs.schema import SCHEMAS
from runs.tables import Tables, Where, frame

CAUSES = ("compute", "other_communication", "copies", "input", "garbage_collection", "launch", "idle")
UNKNOWN = "unknown"
PEERS = 8  # ranks of the same role that one is held against
COLLECTS = r"(?i)(?:^|[^a-z])(?:gc|garbage)(?:[^a-z]|$)|garbage.?collect"  # as host events spell it
NOT_TRACED, MEETING = len(CAUSES), len(CAUSES) + 1  # rows beside those of CAUSES


def traced(tables: Tables) -> bool:
    """Whether anything tells what ranks do between collectives."""
    return bool(tables.rows("op_events") or tables.rows("lifecycle"))


def splits(tables: Tables, met: Meetings, x: Lateness, ranks: Sequence[int]) -> dict[int, np.ndarray]:
    """Seconds by cause (rows, as CAUSES and then what is not known) and step (columns) of each of these ranks; NaN in
    steps that it was not compared in. Ranks without a trace have all their own time in the last row."""
    chosen = _Chosen(tables, met, ranks)
    seen = {(a.host, a.device): a for a in activities(chosen)} if tables.rows("op_events") else {}
    steps = profiled_steps(chosen)
    fetches = host_fetches(tables)
    out = {}
    for rank in ranks:
        host, device = met.ranks["host"].iloc[rank], int(met.ranks["device"].iloc[rank])
        activity = seen.get((host, device))
        nothing = spans()
        collecting = _collecting(chosen, host) if activity else nothing
        own = steps_of(steps, host, device)
        launching = Spans(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
        if not len(own):
            launching = _host_work(chosen, host) if activity else nothing
        fetched = fetches.of(host, device)
        out[rank] = _split(met, x, rank, activity, nothing if fetched is None else fetched, collecting, launching)
    return out


def excesses(amounts: dict[int, np.ndarray], rank: int, peers: Sequence[int], where: np.ndarray) -> np.ndarray:
    """Mean seconds per step, over the columns `where`, by which each cause exceeds the median of the peers."""
    held = np.stack([amounts[p][:, where] for p in peers])
    usual = np.stack([median(held[:, row]) for row in range(held.shape[1])])
    beyond = amounts[rank][:, where] - usual
    there = ~np.isnan(beyond).any(axis=0)
    return beyond[:, there].mean(axis=1) if there.any() else np.zeros(len(beyond))


def peers_of(x: Lateness, rank: int, without: set[int]) -> list[int]:
    """Up to PEERS ranks of the same role, evenly spread, none of `without`; those where there are no others."""
    same = np.flatnonzero(x.peers == x.peers[rank])
    apart = same[~np.isin(same, list(without))]
    same = apart if len(apart[apart != rank]) else same
    some = same[np.linspace(0, len(same) - 1, min(PEERS + 1, len(same))).astype(int)] if len(same) else same
    return [int(r) for r in some if r != rank][:PEERS]


class _Chosen:
    """The tables of a few devices: their operations, captures and steps, without anybody's collectives."""

    def __init__(self, tables: Tables, met: Meetings, ranks: Sequence[int]):
        self._tables = tables
        rows = met.ranks.iloc[list(ranks)]
        hosts = pa.array(sorted(set(rows["host"])), pa.string())
        self._kept = {name: self._of(name, "host", hosts) for name in ("captures", "steps", "ops")}
        ops = self._kept["ops"]
        devices = pa.array(sorted(set(rows["device"].astype(int))), pa.int32())
        mine = pc.or_(pc.is_null(ops["device"]), pc.is_in(ops["device"], devices))
        self._kept["ops"] = ops.filter(mine)

    def _of(self, name: str, column: str, values: pa.Array) -> pa.Table:
        rows = self._tables.arrow(name)
        return rows.filter(pc.is_in(rows[column].cast(pa.string()), values)) if len(rows) else rows

    def rows(self, name: str) -> int:
        return len(self._kept[name]) if name in self._kept else self._tables.rows(name)

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        if name == "collectives":
            return SCHEMAS[name].arrow.empty_table().select(list(columns or SCHEMAS[name].arrow.names))
        if name not in self._kept or where is not None:
            return self._tables.arrow(name, columns, where)
        table = self._kept[name]
        return table if columns is None else table.select([f for f in table.schema.names if f in columns])


def _collecting(tables: Tables, host: str) -> Spans:
    begun = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna()
    mine = begun[begun["host"].astype(str) == host]
    work = [host_work(tables, int(c), int(s)) for c, s in zip(mine["capture"], mine["start_ns"], strict=True)]
    told = _host_events(tables, host, lambda names: names.str.contains(COLLECTS, regex=True))
    return union(joined([told, *(found[COLLECTING] for found in work if found)]))


def _host_work(tables: Tables, host: str) -> Spans:
    return _host_events(tables, host, lambda names: names != "")


def _host_events(tables: Tables, host: str, wanted) -> Spans:
    """When events on the host's threads ran whose names are wanted."""
    ops = frame(tables, "ops", ["capture", "op_id", "host", "role", "op"])
    ops = ops[(ops["host"].astype(str) == host) & (ops["role"].astype(str) == "host")]
    ops = ops[wanted(ops["op"].astype(object).fillna("").astype(str))]
    begun = frame(tables, "captures", ["capture", "start_ns"]).dropna().set_index("capture")["start_ns"]
    parts = []
    for capture, some in ops.groupby("capture"):
        if capture not in begun.index:
            continue
        events = tables.arrow("op_events", ["op_id", "start_ps", "dur_ps"], [("capture", "==", int(capture))])
        events = events.drop_null()
        events = events.filter(pc.is_in(events["op_id"], pa.array(some["op_id"].astype("int64"), pa.int64())))
        start = events["start_ps"].to_numpy() // 1000 + int(begun[capture])
        parts.append(spans(start, start + events["dur_ps"].to_numpy() // 1000))
    return union(joined(parts))


def _split(
    met: Meetings,
    x: Lateness,
    rank: int,
    activity: Activity | None,
    fetched: Spans,
    collecting: Spans,
    launching: Spans,
) -> np.ndarray:
    """Seconds by cause and step of one rank."""
    out = np.full((len(CAUSES) + 1, len(x.step)), np.nan)
    mine = np.flatnonzero(met.rank == rank)
    synchronising = np.isin(np.array(met.names["kind"]), SYNCHRONISING)[met.kind[mine]]
    meeting, other = mine[synchronising], mine[~synchronising]
    column = x.column[meeting]
    used = meeting[column >= 0]
    if not len(used):
        return out
    order = np.argsort(x.column[used], kind="stable")
    where = x.column[used][order]
    opens = np.flatnonzero(np.concatenate(([True], where[1:] != where[:-1])))
    columns = where[opens]
    first = np.minimum.reduceat(met.start_ns[used][order], opens)
    last = np.maximum.reduceat(met.end_ns[used][order], opens)
    ends = np.sort(met.end_ns[meeting])
    at = np.searchsorted(ends, first, side="right") - 1
    begin = np.where(at >= 0, ends[np.maximum(at, 0)], first)
    meetings, others = _spans(met, meeting), _spans(met, other)
    layers = [] if activity is None else [(CAUSES.index("launch"), launching)]
    layers += [(CAUSES.index("garbage_collection"), collecting), (CAUSES.index("input"), fetched)]
    if activity is not None:
        layers += [(CAUSES.index("input"), activity.infeed), (CAUSES.index("copies"), activity.memory)]
    talking = joined([others, activity.communication]) if activity is not None else others
    layers += [(CAUSES.index("other_communication"), talking), (MEETING, meetings)]
    if activity is not None:
        layers.append((CAUSES.index("compute"), activity.computation))
    ground = CAUSES.index("idle") if activity is not None else NOT_TRACED
    painting = paint(int(begin.min()), int(last.max()), layers, ground=ground)
    for cause in range(len(CAUSES) + 1):
        out[cause, columns] = overlap_with(painting.spans(cause), Spans(begin, last)) / 1e9
    out[:, np.isnan(x.wait_s[rank])] = np.nan
    return out


def _spans(met: Meetings, rows: np.ndarray) -> Spans:
    return spans(met.start_ns[rows], met.end_ns[rows])

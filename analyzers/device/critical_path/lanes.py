"""What every device executed, in one numbering, with the parts that executions have in collectives over ranks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.device.activity import CATEGORY_KIND, COMMUNICATION, COMPUTATION, INFEED, MEMORY, WORK
from analyzers.device.critical_path import kinds
from analyzers.device.launches.launches import INPUT
from analyzers.device.launches.seen import Launched, launched
from analyzers.ranks.meetings import Meetings, meetings
from analyzers.ranks.waits import COMPARED, waits
from analyzers.time.history import natural_key
from runs.tables import Tables, frame

KIND_OF = {
    COMPUTATION: kinds.CODE[kinds.COMPUTING],
    COMMUNICATION: kinds.CODE[kinds.COMMUNICATION_OR_WAIT],
    MEMORY: kinds.CODE[kinds.COPIES],
    INFEED: kinds.CODE[INPUT],
}
WAITED_SHARE = 0.01  # of an asynchronous collective: a shorter stay at its end was no waiting for it


@dataclass(frozen=True)
class Lane:
    """One device in one capture. Its executions are `first` to `first + len(ran.start) - 1` of all, by start."""

    host: str
    device: int
    capture: int
    start_ns: int
    first: int
    ran: Launched

    @property
    def ids(self) -> slice:
        return slice(self.first, self.first + len(self.ran.start))


@dataclass(frozen=True)
class Executions:
    """Of all lanes, in their order; times by the clock of the lane's host, ns since the epoch.

    kind      code of what it is (`kinds.CODE`)
    op        position in `operations`: op, category, by name
    transfer  ns from when the last rank came until its end; -1 where it is no collective of which that is known
    last      the execution of the last rank of its collective; itself where that is not known, or where its own rank
              came last, be it with others in the same ns. Of several others, that of the lowest rank
    meeting   one execution of its collective, the same on all ranks; itself where none is known
    margin    ns by which that rank came after the one before it; 0 where that is not known
    """

    lane: np.ndarray
    start: np.ndarray
    end: np.ndarray
    kind: np.ndarray
    op: np.ndarray
    transfer: np.ndarray
    last: np.ndarray
    meeting: np.ndarray
    margin: np.ndarray
    operations: pd.DataFrame


def lanes(tables: Tables) -> tuple[list[Lane], Executions]:
    """Every device of every capture, by host and device. O(n log n)."""
    captures = frame(tables, "captures", ["capture", "host", "start_ns"]).dropna()
    ops = frame(tables, "ops", ["capture", "op_id", "host", "device", "role", "op", "category"])
    ops = ops.dropna(subset=["capture", "op_id", "device"])
    ops = ops[ops["role"].isin(WORK)].astype({"op": object, "category": object, "host": object})
    name, operations = _operations(ops)
    found: list[Lane] = []
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    first = 0
    rows = zip(captures["capture"], captures["host"].astype(str), captures["start_ns"], strict=True)
    for capture, host, start in sorted(rows, key=lambda r: (natural_key(r[1]), r[2])):
        here = (ops["capture"] == capture).to_numpy(dtype=bool)
        for device in sorted({int(d) for d in ops["device"][here]}):
            mine = here & (ops["device"] == device).to_numpy(dtype=bool)
            ran, kind, op = _ran(launched(tables, int(capture), int(start), device), ops[mine], name[mine])
            if len(ran.start):
                found.append(Lane(host, device, int(capture), int(start), first, ran))
                parts.append((kind, op, np.full(len(kind), len(found) - 1)))
                first += len(kind)
    if not found:
        none = np.zeros(0, np.int64)
        return [], Executions(none, none, none, none, none, none, none, none, none, operations)
    kind, op, lane = (np.concatenate(column) for column in zip(*parts, strict=True))
    start, end = (np.concatenate([getattr(x.ran, f) for x in found]) for f in ("start", "end"))
    transfer, last, meeting, margin, start = _meet(tables, found, kind, start, end)
    kind = np.where(transfer >= 0, kinds.CODE[kinds.COMMUNICATION], kind)
    return found, Executions(lane, start, end, kind, op, transfer, last, meeting, margin, operations)


def _operations(ops: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """The number of each row's operation by name and category, and these."""
    told = ops[["op", "category"]].where(ops[["op", "category"]].notna(), None)
    told = told.assign(op=told["op"].fillna(""), category=told["category"].fillna("other"))
    number = told.groupby(["op", "category"], sort=True).ngroup().to_numpy(dtype=np.int64)
    return number, told.drop_duplicates().sort_values(["op", "category"]).reset_index(drop=True)


def _ran(ran: Launched, ops: pd.DataFrame, name: np.ndarray) -> tuple[Launched, np.ndarray, np.ndarray]:
    """Executions that occupy the device, their kinds and operations: between a start and its done anything may run."""
    size = int(ops["op_id"].max()) + 1 if len(ops) else 1
    kind = ops["category"].map(CATEGORY_KIND).fillna(COMPUTATION).to_numpy(dtype=np.int64)
    beside = (ops["role"].astype(str) == "async").to_numpy() & (kind == COMPUTATION)
    kind_of, op_of, ids = np.full(size, -1), np.zeros(size, np.int64), ops["op_id"].to_numpy(dtype=np.int64)
    kind_of[ids] = np.where(beside, -1, [KIND_OF[k] for k in kind.tolist()])
    op_of[ids] = name
    keep = np.flatnonzero((kind_of[ran.op] >= 0) & (ran.end >= ran.start))
    return taken(ran, keep), kind_of[ran.op[keep]], op_of[ran.op[keep]]


def taken(ran: Launched, keep: np.ndarray) -> Launched:
    """Some of the executions."""
    if len(keep) == len(ran.start):
        return ran
    fields = ("start", "end", "op", "stream", "call", "thread", "call_start", "call_end", "graph")
    arrays = {f: getattr(ran, f)[keep] for f in fields}
    return Launched(capture=ran.capture, streams=ran.streams, calls=ran.calls, threads=ran.threads, **arrays)


def _meet(
    tables: Tables, found: list[Lane], kind: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, ...]:
    """(transfer, last, meeting, margin, start) of each execution. One that ends a collective that was begun
    earlier, and that the device stayed at for more than WAITED_SHARE of it, begins where that did."""
    transfer, last, margin = np.full(len(start), -1), np.arange(len(start)), np.zeros(len(start), np.int64)
    meeting = last.copy()
    if not tables.rows("collectives"):
        return transfer, last, meeting, margin, start
    met = meetings(tables)
    node = _nodes(met, found, kind, start, end)
    least = met.least(met.dur_ns)[met.meeting]
    known = (waits(tables).rows["reason"].to_numpy() == COMPARED) | met.alone
    mine = np.flatnonzero((node >= 0) & known)
    at = node[mine]
    stay = (end - start)[at] >= WAITED_SHARE * met.dur_ns[mine]
    mine, at = mine[stay], at[stay]
    transfer[at] = np.minimum(least[mine], met.dur_ns[mine])
    start = start.copy()
    start[at] = np.minimum(start[at], met.start_ns[mine])
    latest, gap = _last(met, node)
    last[at], margin[at] = latest[met.meeting[mine]], gap[met.meeting[mine]]
    meeting[at] = np.where(last[at] >= 0, last[at], at)
    here = transfer[at] >= met.dur_ns[mine]
    last[at[here | (last[at] < 0)]] = at[here | (last[at] < 0)]
    return transfer, last, meeting, margin, start


def _nodes(met: Meetings, found: list[Lane], kind: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The execution of each row of collectives, -1 where none ends with it."""
    node = np.full(len(met.start_ns), -1)
    for lane in found:
        mine = met.ranks.index[(met.ranks["host"] == lane.host) & (met.ranks["device"] == lane.device)]
        rows = np.flatnonzero(np.isin(met.rank, mine) & (met.capture == lane.capture))
        ids = np.arange(lane.ids.start, lane.ids.stop)
        ids = ids[kind[ids] == kinds.CODE[kinds.COMMUNICATION_OR_WAIT]]
        told = pd.DataFrame({"node": ids, "start": start[ids], "end": end[ids]})
        asked = pd.DataFrame({"row": rows, "start": met.start_ns[rows], "end": met.end_ns[rows]})
        exact = asked.merge(told.drop_duplicates(["start", "end"]), on=["start", "end"])
        rest = asked[~asked["row"].isin(exact["row"])].merge(
            told[~told["node"].isin(exact["node"])].drop_duplicates("end").drop(columns="start"), on="end"
        )
        for pairs in (exact, rest):
            pairs = pairs.drop_duplicates("node")
            node[pairs["row"].to_numpy()] = pairs["node"].to_numpy()
    return node


def _last(met: Meetings, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each meeting the execution of the rank that took least, the last to come (-1 where it is not known), and how
    much longer the next one took."""
    order = np.lexsort((met.rank, met.dur_ns, met.meeting))
    first = np.unique(met.meeting[order], return_index=True)[1]
    second = np.minimum(first + 1, len(order) - 1)
    dur, same = met.dur_ns[order], met.meeting[order[second]] == met.meeting[order[first]]
    return node[order[first]], np.where(same, dur[second] - dur[first], 0)

"""Host threads: what each event took by itself, and what calls to the device were made for."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.gather import Gathered, drained, joined, reorder
from collectors.device.kineto.nesting import CALL, FOUND_COLUMNS, LAUNCH, STACK_COLUMNS, STACK_ROWS, sweep
from collectors.device.kineto.span import Span
from collectors.device.xplane.arrays import over
from runs.schema import SCHEMAS

LAUNCHES = np.dtype(
    [
        ("correlation", "i8"),
        ("start", "i8"),
        ("dur", "i8"),
        ("event", "u4"),
        ("name", "i4"),
        ("thread", "i4"),
        ("site", "i4"),
        ("call", "i8"),
        ("module", "i4"),
        ("frame", "i4"),
        ("note", "i4"),
        ("sequence", "i8"),
    ]
)
_FOUND = ("site", "call", "module", "frame", "note", "sequence")


@dataclass
class Host:
    """`launches`: LAUNCHES rows by correlation number. `calls`: (external id, site, event) of calls that kernels name,
    by external id. `count`, `total_ns`, `own_ns`: by operation of a thread."""

    launches: np.ndarray = field(default_factory=lambda: np.zeros(0, LAUNCHES))
    calls: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    own_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def forget_launches(self) -> None:
        """Gives up what is known of calls, once kernels are joined with them."""
        self.launches, self.calls = np.zeros(0, LAUNCHES), np.zeros((0, 3), np.int64)


class Sweeper:
    """Walks the host's events in order of time."""

    def __init__(self, gathered: Gathered, span: Span, capture: int):
        self._gathered, self._span, self._capture = gathered, span, capture
        n = len(gathered.ops)
        self.host = Host(count=np.zeros(n, np.int64), total_ns=np.zeros(n), own_ns=np.zeros(n, np.int64))
        self._stacks: dict[int, np.ndarray] = {}
        self._stack = np.zeros((STACK_ROWS, STACK_COLUMNS), np.int64)
        self._launches: list[np.ndarray] = []
        self._calls: list[np.ndarray] = []
        self._forward: list[np.ndarray] = []
        # Only what launched something, and calls that something names, are kept: most are neither.
        device = gathered.device
        self._launched_by = np.unique(joined([part["correlation"] for part in device], np.int64))
        named = [part["external"][part["external"] != part["correlation"]] for part in device]
        self._wanted = np.unique(joined(named, np.int64))

    def rows(self) -> Iterator[Rows]:
        """The events as rows of `op_events`; `host` is complete when they have all been taken."""
        for piece in self._gathered.host.pieces():
            near = self._span.near(piece["start"], piece["dur"])
            rows = piece if near.all() else piece[near]
            self._gathered.seen["stored"] -= len(piece) - len(rows)
            self._gathered.lost["events: their time is far from all others"] += len(piece) - len(rows)
            if not len(rows):
                continue
            rows = rows[np.lexsort((-rows["dur"], rows["start"], rows["thread"]))]
            self._piece(rows)
            for at in range(0, len(rows), 1 << 17):
                part = rows[at : at + (1 << 17)]
                yield event_rows(
                    self._capture, part["event"], None, part["op"], self._span.ps(part["start"]), part["dur"] * 1000
                )
        self._gathered.lost += type(self._gathered.lost)()  # reasons that nothing was lost for are none
        self._finish()

    def _piece(self, rows: np.ndarray) -> None:
        host, op = self.host, rows["op"].astype(np.int64)
        host.count += np.bincount(op, minlength=len(host.count))
        host.total_ns += np.bincount(op, rows["dur"].astype(float), len(host.count))
        cuts = np.flatnonzero(np.diff(rows["thread"])) + 1
        edges = [0, *cuts.tolist(), len(rows)]
        columns = {n: np.ascontiguousarray(rows[n]) for n in ("start", "dur", "event", "kind", "site", "name")}
        sequence = np.ascontiguousarray(rows["sequence"])
        launches = np.cumsum(np.append(0, rows["kind"] == LAUNCH))
        calls = np.cumsum(np.append(0, rows["kind"] == CALL))
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            thread = int(rows["thread"][a])
            before = self._stacks.get(thread)
            depth = np.array([0 if before is None else len(before)], np.int64)
            if before is not None:
                self._stack[: len(before)] = before
            found = np.empty((int(launches[b] - launches[a]), FOUND_COLUMNS), np.int64)
            marked = np.empty((int(calls[b] - calls[a]), 3), np.int64)
            n, m = sweep(
                *(columns[c][a:b] for c in ("start", "dur", "event")),
                op[a:b],
                *(columns[c][a:b] for c in ("kind", "site", "name")),
                sequence[a:b],
                self._stack,
                depth,
                host.own_ns,
                found,
                marked,
            )
            self._stacks[thread] = self._stack[: int(depth[0])].copy()
            if n:
                self._launched(rows[a:b], found[:n])
            if m:
                self._forward.append(marked[:m])
        if len(self._wanted):
            chosen = (rows["kind"] == CALL) & _among(rows["external"], self._wanted)
            self._calls.append(np.stack([rows[n][chosen] for n in ("external", "site", "event")], axis=1))

    def _launched(self, rows: np.ndarray, found: np.ndarray) -> None:
        found = found[_among(rows["correlation"][found[:, 0]], self._launched_by)]
        out = np.zeros(len(found), LAUNCHES)
        mine = rows[found[:, 0]]
        for name in ("correlation", "start", "dur", "event", "name", "thread"):
            out[name] = mine[name]
        for k, name in enumerate(_FOUND):
            out[name] = found[:, k + 1]
        self._launches.append(out)

    def _finish(self) -> None:
        launches = self.host.launches = drained(self._launches, LAUNCHES)
        # Of calls with one number the one within an operation tells more.
        reorder(launches, np.lexsort((launches["start"], launches["site"] < 0, launches["correlation"])))
        calls = joined(self._calls, np.int64).reshape(-1, 3)
        self.host.calls = calls[np.argsort(calls[:, 0], kind="stable")]
        self._backward(self.host.launches)
        self._calls, self._forward, self._stacks = [], [], {}

    def _backward(self, launches: np.ndarray) -> None:
        """Gives calls of the backward pass the module and frame of the forward call with their sequence number."""
        if not self._forward:
            return
        forward = np.concatenate(self._forward)
        _, first = np.unique(forward[:, 0], return_index=True)
        forward = forward[first]
        lacks = np.flatnonzero((launches["module"] < 0) & (launches["sequence"] >= 0))
        at = np.searchsorted(forward[:, 0], launches["sequence"][lacks])
        at = np.minimum(at, len(forward) - 1)
        hit = forward[at, 0] == launches["sequence"][lacks]
        lacks, at = lacks[hit], at[hit]
        launches["module"][lacks] = forward[at, 1]
        bare = launches["frame"][lacks] < 0
        launches["frame"][lacks[bare]] = forward[at[bare], 2]


def _among(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Whether each value is among `known`, which are sorted."""
    if not len(known):
        return np.zeros(len(values), bool)
    return known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values


def event_rows(
    capture: int,
    event: np.ndarray,
    device: np.ndarray | None,
    op: np.ndarray,
    start_ps: np.ndarray,
    dur_ps: np.ndarray,
) -> Rows:
    """Rows of `op_events`."""
    n = len(event)
    columns = [
        over(pa.int32(), np.full(n, capture, np.int32)),
        over(pa.int64(), event.astype(np.int64)),
        pa.nulls(n, pa.int32()) if device is None else over(pa.int32(), device.astype(np.int32), device >= 0),
        over(pa.int64(), op.astype(np.int64)),
        over(pa.int64(), start_ps.astype(np.int64)),
        over(pa.int64(), dur_ps.astype(np.int64)),
    ]
    return Rows("op_events", pa.RecordBatch.from_arrays(columns, schema=SCHEMAS["op_events"].arrow))

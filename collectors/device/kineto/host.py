"""Host threads: what each event took by itself, and what calls to the device were made for."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.chunks import Chunks
from collectors.device.kineto.gather import HOST, Gathered, joined, reorder
from collectors.device.kineto.graphs import FIRST_NODE, window_of, windows
from collectors.device.kineto.kinds import A_COPY_CALL, A_KERNEL_CALL, AN_UPDATE
from collectors.device.kineto.nesting import (
    AGAIN,
    CALLS,
    FOUND_COLUMNS,
    FRAME,
    GRADIENT,
    LAUNCH,
    MODULE,
    NOTE,
    RUNS,
    SENDS,
    STACK_COLUMNS,
    STACK_ROWS,
    UPDATE,
    Chains,
    new_chains,
    sweep,
    with_room,
)
from collectors.device.kineto.span import Span
from collectors.device.kineto.tokens import NONE
from collectors.device.xplane.arrays import over
from runs.schema import SCHEMAS

CALLED = np.dtype([("start", "i8"), ("dur", "i8"), ("event", "u4"), ("name", "i4"), ("thread", "i4")])
PLACED = np.dtype(
    [
        ("correlation", "i8"),
        ("site", "i4"),
        ("call", "i8"),
        ("module", "i4"),
        ("frame", "i4"),
        ("note", "i4"),
        ("sequence", "i8"),
        ("direction", "i1"),
    ]
)
NODE = np.dtype([*CALLED.descr, *PLACED.descr, ("kernel", "i4"), ("graph", "i4")])
NAMED = np.dtype([("external", "i8"), ("site", "i4"), ("event", "u4")])
_FOUND = ("site", "call", "module", "frame", "note", "sequence", "direction")


@dataclass
class Host:
    """`launches`: CALLED rows of calls, by correlation number, and `places` beside them: PLACED rows of what they lie
    in, until executions are joined with them. `calls`: NAMED rows of calls that kernels name, by external id. `nodes`:
    NODE rows of launches that were captured, by graph and start, `kernel` their kernel's name, -1 where it is not told;
    `numbered`: those of nodes that have numbers, by them. `count`, `total_ns`, `own_ns`: by operation of a thread.
    `chains`: those of modules, which `module` of calls refers to."""

    launches: np.ndarray = field(default_factory=lambda: np.zeros(0, CALLED))
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, PLACED))
    calls: np.ndarray = field(default_factory=lambda: np.zeros(0, NAMED))
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, NODE))
    numbered: np.ndarray = field(default_factory=lambda: np.zeros(0, NODE))
    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    own_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    chains: Chains = field(default_factory=new_chains)

    def forget_places(self) -> None:
        """Gives up what calls lie in, once executions are joined with it: it is as long as the trace."""
        self.places, self.calls = np.zeros(0, PLACED), np.zeros(0, NAMED)


class Sweeper:
    """Walks the host's events in order of time."""

    def __init__(self, gathered: Gathered, span: Span, capture: int, executed: np.ndarray):
        self._gathered, self._span, self._capture = gathered, span, capture
        self._executed = executed  # events of the host that are executions themselves, sorted
        n = len(gathered.ops)
        self.host = Host(count=np.zeros(n, np.int64), total_ns=np.zeros(n), own_ns=np.zeros(n, np.int64))
        self._stacks: dict[int, np.ndarray] = {}
        self._stack = np.zeros((STACK_ROWS, STACK_COLUMNS), np.int64)
        self._launches, self._places, self._nodes = Chunks(CALLED), Chunks(PLACED), Chunks(NODE)
        self._calls = Chunks(NAMED)
        self._windows = windows(gathered.captures)
        self._forward: list[np.ndarray] = []
        self._placed = False  # whether modules or frames tell where calls were made
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
            rows = _nested(rows)
            self._mark(rows)
            self._piece(rows)
            for at in range(0, len(rows), 1 << 17):
                part = rows[at : at + (1 << 17)]
                yield event_rows(
                    self._capture, part["event"], None, part["op"], self._span.ps(part["start"]), part["dur"] * 1000
                )
        piece = rows = part = None  # what follows needs their memory
        self._gathered.lost += type(self._gathered.lost)()  # reasons that nothing was lost for are none
        self._finish()

    def _mark(self, rows: np.ndarray) -> None:
        if len(self._executed):
            mine = _among(rows["event"], self._executed)
            rows["kind"][mine] = np.where(rows["kind"][mine] == NOTE, SENDS, RUNS)
            rows["correlation"][mine] = rows["event"][mine] + 1

    def _piece(self, rows: np.ndarray) -> None:
        host, op = self.host, rows["op"].astype(np.int64)
        host.count += np.bincount(op, minlength=len(host.count))
        host.total_ns += np.bincount(op, rows["dur"].astype(float), len(host.count))
        cuts = np.flatnonzero(np.diff(rows["thread"])) + 1
        edges = [0, *cuts.tolist(), len(rows)]
        columns = {n: rows[n].copy() for n in ("start", "dur", "event", "kind", "site", "name", "sequence")}
        launches = np.cumsum(np.append(0, np.isin(rows["kind"], (LAUNCH, RUNS, SENDS))))
        calls = np.cumsum(np.append(0, np.isin(rows["kind"], CALLS)))
        host.chains = with_room(host.chains, int(np.isin(rows["kind"], (MODULE, UPDATE)).sum()))
        self._placed |= bool(np.isin(rows["kind"], (MODULE, FRAME)).any())
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            thread = int(rows["thread"][a])
            before = self._stacks.get(thread)
            depth = np.array([0 if before is None else len(before)], np.int64)
            if before is not None:
                self._stack[: len(before)] = before
            found = np.empty((int(launches[b] - launches[a]), FOUND_COLUMNS), np.int64)
            marked = np.empty((int(calls[b] - calls[a]), 4), np.int64)
            marked[:, 3] = thread
            n, m = sweep(
                *(columns[c][a:b] for c in ("start", "dur", "event")),
                op[a:b],
                *(columns[c][a:b] for c in ("kind", "site", "name")),
                columns["sequence"][a:b],
                self._stack,
                depth,
                host.own_ns,
                found,
                marked,
                host.chains,
            )
            self._stacks[thread] = self._stack[: int(depth[0])].copy()
            if n:
                self._launched(rows[a:b], found[:n])
            if m and self._placed:
                self._forward.append(_last(marked[:m]))
        if len(self._wanted):
            chosen = np.isin(rows["kind"], CALLS) & _among(rows["external"], self._wanted)
            named = np.empty(int(chosen.sum()), NAMED)
            for name in NAMED.names or ():
                named[name] = rows[name][chosen]
            self._calls.append(named)

    def _launched(self, rows: np.ndarray, found: np.ndarray) -> None:
        executed = _among(rows["correlation"][found[:, 0]], self._launched_by)
        self._launches.append(_rows_of(CALLED, rows, found[executed]))
        self._places.append(_rows_of(PLACED, rows, found[executed]))
        if len(self._windows) or bool((rows["correlation"][found[:, 0]] >= FIRST_NODE).any()):
            self._captured(rows, found[~executed])

    def _captured(self, rows: np.ndarray, found: np.ndarray) -> None:
        """Keeps what was launched in a capture and not executed."""
        graph = window_of(rows["start"][found[:, 0]], self._windows)
        told = self._gathered.meanings.names(rows["name"][found[:, 0]])
        made = rows["correlation"][found[:, 0]] >= FIRST_NODE
        graph[made] = -1
        mine = made | ((graph >= 0) & np.isin(told, (A_KERNEL_CALL, A_COPY_CALL)))
        out = _rows_of(NODE, rows, found[mine])
        out["graph"], out["kernel"] = graph[mine], rows["site"][found[mine, 0]]
        self._nodes.append(out)

    def _finish(self) -> None:
        self._launched_by = self._wanted = np.zeros(0, np.int64)
        launches = self.host.launches = self._launches.drained()
        places = self.host.places = self._places.drained()
        # Of calls with one number the one within an operation tells more.
        order = np.lexsort((launches["start"], places["site"] < 0, places["correlation"]))
        reorder(launches, order)
        reorder(places, order)
        del order
        calls = self.host.calls = self._calls.drained()
        reorder(calls, np.argsort(calls["external"], kind="stable"))
        nodes = self._nodes.drained()
        self.host.numbered = nodes[nodes["graph"] < 0]
        reorder(self.host.numbered, np.lexsort((self.host.numbered["start"], self.host.numbered["correlation"])))
        nodes = self.host.nodes = nodes[nodes["graph"] >= 0]
        reorder(nodes, np.lexsort((nodes["start"], nodes["graph"])))
        self._backward(places, launches["thread"])
        for captured in (nodes, self.host.numbered):
            self._backward(captured, captured["thread"])
        self._forward, self._stacks = [], {}

    def _updates(self, chain: np.ndarray) -> np.ndarray:
        """Which chains are the optimiser's: its calls have no gradient."""
        names = self.host.chains.known[np.maximum(chain, 0), 1]
        return (chain >= 0) & (self._gathered.meanings.names(names) == AN_UPDATE)

    def _backward(self, launches: np.ndarray, thread: np.ndarray) -> None:
        """Gives calls of the backward pass the module and frame of the forward call with their sequence number: of
        several the last, since calls before it only tell which number comes next. What has such a number on the thread
        of the forward call, outside of the backward pass, is a call of that kind."""
        if not self._forward:
            return
        every, process = np.concatenate(self._forward), self._gathered.threads.rows[:, 0]
        whose = process[every[:, 3]]
        for one in np.unique(whose).tolist():  # each process counts sequences for itself
            self._backward_of(every[whose == one], launches, thread, process[thread] == one)

    def _backward_of(self, every: np.ndarray, launches: np.ndarray, thread: np.ndarray, mine: np.ndarray) -> None:
        forward = _last(every)
        forward = forward[((forward[:, 1] >= 0) | (forward[:, 2] >= 0)) & ~self._updates(forward[:, 1])]
        if not len(forward):
            return
        lacks = np.flatnonzero(mine & (launches["module"] < 0) & (launches["sequence"] >= 0))
        at = np.searchsorted(forward[:, 0], launches["sequence"][lacks])
        at = np.minimum(at, len(forward) - 1)
        hit = forward[at, 0] == launches["sequence"][lacks]
        hit &= (launches["direction"][lacks] == GRADIENT) | (thread[lacks] != forward[at, 3])
        lacks, at = lacks[hit], at[hit]
        launches["module"][lacks] = forward[at, 1]
        launches["direction"][lacks] = np.where(launches["direction"][lacks] == AGAIN, AGAIN, GRADIENT)
        bare = launches["frame"][lacks] < 0
        launches["frame"][lacks[bare]] = forward[at[bare], 2]


def _rows_of(kind: np.dtype, rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Rows of launches, from what was found of them."""
    out = np.zeros(len(found), kind)
    mine = rows[found[:, 0]]
    for name in kind.names or ():
        if name in _FOUND:
            out[name] = found[:, _FOUND.index(name) + 1]
        elif name in (HOST.names or ()):
            out[name] = mine[name]
    return out


def _nested(rows: np.ndarray) -> np.ndarray:
    """Events thread by thread, each before what lies in it. Of those with the same times the order in the file tells
    nothing: Python's frames are around calls and annotations, which are numbered as they begin, and these around what
    they launch."""
    rows = rows[np.lexsort((-rows["dur"], rows["start"], rows["thread"]))]
    same = np.ones(max(len(rows) - 1, 0), bool)
    for name in ("start", "dur", "thread"):
        same &= rows[name][1:] == rows[name][:-1]
    if not same.any():
        return rows
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = np.cumsum(np.append(False, ~same))[tied]
    some = rows[tied]
    told = np.isin(some["kind"], (*CALLS, NOTE, UPDATE, SENDS))
    depth = np.where(some["kind"] == LAUNCH, 2, told)
    rows[tied] = some[np.lexsort((np.where(told, some["external"], NONE), depth, group))]
    return rows


def _last(marked: np.ndarray) -> np.ndarray:
    """Of rows with the same sequence number the last, by number."""
    turned = marked[::-1]
    return turned[np.unique(turned[:, 0], return_index=True)[1]]


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

"""What devices ran: each kernel with the call that launched it, as operations and their executions."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from collectors.base import Rows
from collectors.device.kineto.gather import Gathered, reorder
from collectors.device.kineto.graphs import Captured, numbered
from collectors.device.kineto.host import PLACED, Host, event_rows
from collectors.device.kineto.kernels import is_collective
from collectors.device.kineto.kinds import A_GRAPH, COPY, KERNEL
from collectors.device.kineto.messages import named
from collectors.device.kineto.nesting import NEITHER, STACK_COLUMNS, STACK_ROWS, Numbered, new_chains, sweep
from collectors.device.kineto.scopes import Scopes, coded
from collectors.device.kineto.span import Span
from collectors.device.kineto.tokens import NONE

_ROWS = 1 << 17
# Columns of what makes an operation of a device; SCOPE is a number of `Scopes`.
ROW, NAME, KIND, SITE, SCOPE, FRAME, GRAPH, NOTE, COLLECTIVE_LABEL = range(9)
_DEVICES = 1 << 20  # numbers of devices beyond it are damage


@dataclass
class Devices:
    """`events`: DEVICE rows in order of start; beside each row `op`, its operation, `launch`, its row of
    `Host.launches` or -1, `site`, `note` and `call`: the call it
    was launched in, the annotation around that, and the call's event, each -1 where that is not known.

    `untold`: how many kernels of graphs have no operation, and of how many launches they are. `ops`: by number (row,
    name, kind, site, scope, frame, graph, note, collective's name) of operations, `scopes` their
    scopes. `number`: of each row of `Gathered.rows`, its device; `rank`: of each device that a merged trace tells the
    rank of.
    """

    events: np.ndarray
    op: np.ndarray
    launch: np.ndarray
    site: np.ndarray
    note: np.ndarray
    call: np.ndarray
    ops: np.ndarray
    number: np.ndarray
    scopes: Scopes
    untold: tuple[int, int] = (0, 0)
    rank: dict[int, int] = field(default_factory=dict)
    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))
    own_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def kernels(self) -> np.ndarray:
        """Which events occupy a device."""
        return np.isin(self.events["kind"], (KERNEL, COPY))


def devices_of(gathered: Gathered, host: Host, span: Span) -> Devices:
    """Joins what devices ran with what launched it."""
    events = gathered.device.drained()
    near = span.near(events["start"], events["dur"])
    if not near.all():
        gathered.seen["stored"] -= int((~near).sum())
        gathered.lost["events: their time is far from all others"] += int((~near).sum())
        events = events[near]
    reorder(events, np.argsort(events["start"], kind="stable"))
    launch = _launches(events["correlation"], host.places["correlation"])
    site, call = _sites(events, launch, host)
    told = host.places if len(host.places) else np.zeros(1, PLACED)
    at, found = np.maximum(launch, 0), launch >= 0
    module, frame, note = (np.where(found, told[c][at], -1) for c in ("module", "frame", "note"))
    direction = np.where(found, told["direction"][at], NEITHER)
    name = host.launches["name"][at] if len(host.launches) else at - 1
    graph = np.where(found & (gathered.meanings.names(name) == A_GRAPH), name, -1)
    fields = {"site": site, "call": call, "module": module, "frame": frame, "note": note, "direction": direction}
    for of_call in (site, call, module, frame):
        of_call[graph >= 0] = -1  # the call launched the graph, not its kernels
    direction[graph >= 0] = NEITHER
    untold = _attribute(gathered, host, events, np.where(graph >= 0, launch, -1), fields)
    scope = coded(module, direction)
    del at, found, told, name
    host.forget_places()
    label = _labels(gathered, events, site, note)
    shown = np.where(label >= 0, note, np.int32(-1))
    ops = Numbered(9)
    what = _what(gathered, site)
    op = ops.of(events["row"], events["name"], events["kind"], what, scope, frame, graph, shown, label)
    op = op.astype(np.int32)
    del label, shown, what, fields, module, direction, scope, frame, graph  # each as long as the trace
    number, rank = _numbers(gathered)
    scopes = Scopes(gathered.texts, host.chains, ops.rows[:, SCOPE])
    devices = Devices(events, op, launch, site, note, call, ops.rows.copy(), number, scopes, untold, rank)
    _sums(devices)
    return devices


def _attribute(
    gathered: Gathered, host: Host, events: np.ndarray, launch: np.ndarray, fields: dict[str, np.ndarray]
) -> tuple[int, int]:
    """Gives what graphs executed, `launch` being the row of its launch, the call, module and so on that it was captured
    in. Returns how many kernels are left, and of how many launches."""
    order = np.flatnonzero(launch >= 0)
    if not len(order):
        return 0, 0
    node = numbered(host.numbered, events["external"][order])
    by_number = order[node >= 0]
    for name, column in fields.items():
        column[by_number] = host.numbered[name][node[node >= 0]]
    fields["call"][by_number] |= (launch[by_number].astype(np.int64) + 1) << 32
    order = order[node < 0]
    order = order[np.argsort(launch[order], kind="stable")]
    captured = Captured(host.nodes, gathered.meanings, gathered.texts, gathered.sites)
    left, runs = 0, 0
    edges = np.flatnonzero(np.diff(launch[order])) + 1
    for rows in np.split(order, edges):
        rows = rows[np.isin(events["kind"][rows], (KERNEL, COPY))]
        if not len(rows):
            continue
        name, kind, row = (events[c][rows].astype(np.int64) for c in ("name", "kind", "row"))
        nodes = captured.of(name, kind, row, int(host.launches["start"][launch[rows[0]]]))
        if nodes is None:
            left, runs = left + len(rows), runs + 1
            continue
        for of_call, column in fields.items():
            column[rows] = nodes[of_call]
        fields["call"][rows] |= (int(launch[rows[0]]) + 1) << 32  # each run makes the calls anew
    return left, runs


def _launches(correlation: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Row of the launch of each correlation number, -1 where the trace holds none."""
    if not len(known):
        return np.full(len(correlation), -1, np.int32)
    at = np.searchsorted(known, correlation)
    at = np.minimum(at, len(known) - 1).astype(np.int32)
    return np.where((known[at] == correlation) & (correlation > 0), at, np.int32(-1))


def _sites(events: np.ndarray, launch: np.ndarray, host: Host) -> tuple[np.ndarray, np.ndarray]:
    """(site, call) that each event was launched in: where its launch lies, else the call of its external id."""
    site, call = np.full(len(events), -1, np.int32), np.full(len(events), -1, np.int64)
    found = launch >= 0
    site[found], call[found] = host.places["site"][launch[found]], host.places["call"][launch[found]]
    lacks = np.flatnonzero((site < 0) & (events["external"] != events["correlation"]) & (events["external"] != NONE))
    if len(lacks) and len(host.calls):
        known = host.calls["external"]
        at = np.minimum(np.searchsorted(known, events["external"][lacks]), len(known) - 1)
        hit = known[at] == events["external"][lacks]
        site[lacks[hit]], call[lacks[hit]] = (host.calls[c][at[hit]] for c in ("site", "event"))
    return site, call


def _what(gathered: Gathered, site: np.ndarray) -> np.ndarray:
    """A site for all that differ in their collectives alone: that number stands for each of them."""
    if not len(gathered.sites):
        return site
    plain = Numbered(5).of(*gathered.sites.rows[:, :5].T)
    _, first = np.unique(plain, return_index=True)
    return np.where(site >= 0, first[plain[np.maximum(site, 0)]], -1)


def _labels(gathered: Gathered, events: np.ndarray, site: np.ndarray, note: np.ndarray) -> np.ndarray:
    """For each event that is a collective a number of the texts that name it alike on all ranks, else -1."""
    out = np.full(len(events), -1, np.int32)
    names = np.unique(events["name"][events["kind"] == KERNEL])
    own = [n for n in names.tolist() if is_collective(gathered.texts[n])]
    chosen = np.flatnonzero((events["kind"] == KERNEL) & (np.isin(events["name"], own) | (events["collective"] >= 0)))
    if not len(chosen):
        return out
    keys = np.stack([events[c][chosen] for c in ("name", "collective")] + [site[chosen], note[chosen]], axis=1)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    labels = [gathered.texts.of(named(gathered, *row)) for row in unique.tolist()]
    out[chosen] = np.array(labels, np.int64)[inverse.reshape(-1)]
    return out


def _numbers(gathered: Gathered) -> tuple[np.ndarray, dict[int, int]]:
    """(device of each row, rank of each device). Where a merged trace has one device number for several ranks, the rank
    takes its place."""
    rows = gathered.rows.rows
    rank = np.where((rows[:, 2] >= 0) & (rows[:, 2] < _DEVICES), rows[:, 2], -1)
    number = np.full(len(rows), -1, np.int64)
    for i, (device, _, _, pid, _) in enumerate(rows.tolist()):
        told = device if device != NONE else _whole(gathered.texts[pid])
        number[i] = told if told is not None and 0 <= told < _DEVICES else -1
    pairs = {(d, r) for d, r in zip(number.tolist(), rank.tolist(), strict=True) if d >= 0 and r >= 0}
    if len({d for d, _ in pairs}) < len(pairs):
        number = np.where(rank >= 0, rank, number)
        pairs = {(r, r) for _, r in pairs}
    of_rank = {r: d for d, r in sorted(pairs)}
    lacks = number < 0
    number[lacks] = [of_rank.get(r, 0) for r in rank[lacks].tolist()]
    return number, dict(pairs)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def _sums(devices: Devices) -> None:
    """Counts and times of operations; what lies within another event of its stream is its own."""
    events, n = devices.events, len(devices.ops)
    devices.count = np.bincount(devices.op, minlength=n)
    devices.total_ns = np.bincount(devices.op, events["dur"].astype(float), n)
    devices.own_ns = np.zeros(n, np.int64)
    place = devices.number * (len(devices.number) + 1) + np.arange(len(devices.number))  # rows by device
    shown = np.isin(events["kind"], (KERNEL, COPY))
    stream = np.where(shown, 0, int(place.max(initial=0)) + 1) + (place[events["row"]] if len(events) else 0)
    order = np.lexsort((-events["dur"], events["start"], stream))
    del shown
    edges = [0, *(np.flatnonzero(np.diff(stream[order])) + 1).tolist(), len(order)]
    del stream
    stack, depth = np.zeros((STACK_ROWS, STACK_COLUMNS), np.int64), np.zeros(1, np.int64)
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        depth[0] = 0
        for at in range(a, b, _ROWS):
            _own_time(devices, order[at : min(at + _ROWS, b)], stack, depth)


def _own_time(devices: Devices, part: np.ndarray, stack: np.ndarray, depth: np.ndarray) -> None:
    """Enters the own times of a part of one stream; what is open at its end goes on with the next."""
    start, dur, event = (devices.events[c][part].astype(np.int64) for c in ("start", "dur", "event"))
    idle, nothing = np.zeros(len(part), np.int32), np.zeros((0, STACK_COLUMNS), np.int64)
    sweep(
        start,
        dur,
        event,
        devices.op[part].astype(np.int64),
        np.zeros(len(part), np.int8),
        idle,
        idle,
        idle.astype(np.int64),
        stack,
        depth,
        devices.own_ns,
        nothing,
        nothing,
        new_chains(1),
    )


def rows_of(devices: Devices, span: Span, capture: int, first_op: int) -> Iterator[Rows]:
    """Executions as rows of `op_events`; operations are numbered from `first_op`."""
    number = devices.number[devices.events["row"]] if len(devices.events) else devices.events["row"]
    for at in range(0, len(devices.events), _ROWS):
        part = slice(at, at + _ROWS)
        events = devices.events[part]
        yield event_rows(
            capture,
            events["event"],
            number[part],
            devices.op[part] + first_op,
            span.ps(events["start"]),
            events["dur"] * 1000,
        )

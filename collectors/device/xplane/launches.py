"""Which call of which thread launched each thing that a GPU executed.

The driver numbers its calls. The profiler writes that number, `correlation_id`, beside the call on the host's thread
and beside whatever it made a device execute; a call that launches a graph shares it with all of the graph's executions.
"""

import re
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.xplane.arrays import batch, column, over
from collectors.device.xplane.batches import Batches
from collectors.device.xplane.lines import Plane
from collectors.device.xplane.ops import Op, OpRows
from collectors.device.xplane.planes import Names, Numbers
from collectors.device.xplane.tables import INT, N_EVENTS, N_STATS, NEXT_EVENT
from runs.schema import SCHEMAS

UNNAMED = "kernel launch (unnamed)"
"""A call that the profiler names after the kernel."""
CORRELATION = b"correlation_id"
GRAPH = re.compile(r"Graph(?:Exec)?Launch")
_NO_LAUNCH = re.compile(r"StreamWait|Synchronize|HostFunc|EventRecord|Query")
"""Calls that make no device execute anything; ROCm's tracer gives a few kernels the number of one nearby."""
_HELD = 1 << 19  # rows of a kind in memory; further ones go to a temporary file
_JOINED = 1 << 21  # rows that are joined at once
_ROWS = 1 << 17
_TYPES = SCHEMAS["launches"].arrow

_CALL = np.dtype([("correlation", "<i8"), ("event", "<i8"), ("start", "<i8"), ("dur", "<i8"), ("op", "<i4")])
_RUN = np.dtype([("correlation", "<i8"), ("event", "<i8"), ("op", "<i4"), ("device", "<i4")])


class Pile:
    """Rows that are kept until all are known, in memory or, where they are many, in a temporary file."""

    def __init__(self, kind: np.dtype):
        self._kind = kind
        self._parts: list[np.ndarray] = []
        self._held = 0
        self._file: BinaryIO | None = None
        self.count = 0

    def add(self, rows: np.ndarray) -> None:
        self._parts.append(rows)
        self._held += len(rows)
        self.count += len(rows)
        if self._held > _HELD:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="chipledger-")  # noqa: SIM115 - as long as the pile lives
            self._file.seek(0, 2)
            self._file.writelines(part.tobytes() for part in self._parts)
            self._parts, self._held = [], 0

    def share(self, which: int, of: int) -> np.ndarray:
        """The rows of a share of all correlation numbers, `which` of `of`."""
        mine = [part[part["correlation"] % of == which] for part in self._kept()]
        return np.concatenate(mine) if mine else np.zeros(0, self._kind)

    def _kept(self) -> Iterator[np.ndarray]:
        if self._file is not None:
            self._file.seek(0)
            while raw := self._file.read(_HELD * self._kind.itemsize):
                yield np.frombuffer(raw, self._kind)
        yield from self._parts


class Launches:
    """Gathers calls and executions while lines are read; rows come at the end."""

    def __init__(self) -> None:
        self._calls, self._runs = Pile(_CALL), Pile(_RUN)
        self._number: int | None = None  # of the text `correlation_id`, where the plane at hand tells it

    def plane(self, names: Names, numbers: Numbers) -> None:
        """Must be called before lines of a plane are read."""
        self._number = numbers.text(CORRELATION) if CORRELATION in names.stat_names.values() else None

    def take(self, batches: Batches, plane: Plane, role: str, first: int, first_stat: int) -> None:
        """Takes the events that the decoder entered last: those from row `first` on, their stats from `first_stat`."""
        if self._number is None or role not in ("compute", "host"):
            return
        stats, n = batches.stats, int(batches.counters[N_STATS])
        at = first_stat + np.flatnonzero((stats.name[first_stat:n] == self._number) & (stats.kind[first_stat:n] == INT))
        base = int(batches.counters[NEXT_EVENT] - batches.counters[N_EVENTS])  # the number of the event in row 0
        row = stats.event[at] - base
        at, row = at[(row >= first) & (stats.value[at] > 0)], row[(row >= first) & (stats.value[at] > 0)]
        if not len(at):
            return
        found = np.zeros(len(at), _CALL if role == "host" else _RUN)
        found["correlation"], found["event"] = stats.value[at], stats.event[at]
        found["op"] = batches.events.op[row]
        if role == "host":
            found["start"], found["dur"] = batches.events.start[row], batches.events.dur[row]
            self._calls.add(found)
        elif plane.kind == "gpu":
            found["device"] = plane.device
            self._runs.add(found)

    def rows(self, ops: OpRows, capture: int) -> Iterator[Rows]:
        """Rows of `launches`: of what devices executed whose call the trace holds."""
        if not self._calls.count or not self._runs.count:
            return
        shares = 1 + max(self._calls.count, self._runs.count) // _JOINED
        for which in range(shares):
            calls, runs = self._calls.share(which, shares), self._runs.share(which, shares)
            calls = _first(calls[~_those(calls["op"], ops, _NO_LAUNCH)])
            at = np.minimum(np.searchsorted(calls["correlation"], runs["correlation"]), max(len(calls) - 1, 0))
            hit = calls["correlation"][at] == runs["correlation"] if len(calls) else np.zeros(len(runs), bool)
            runs, at = runs[hit], at[hit]
            for begin in range(0, len(runs), _ROWS):
                yield _batch(runs[begin : begin + _ROWS], calls[at[begin : begin + _ROWS]], ops, capture)


def _first(calls: np.ndarray) -> np.ndarray:
    """One call for each number: of calls within one another the outermost, of others the first."""
    calls = calls[np.lexsort((-calls["dur"], calls["start"], calls["correlation"]))]
    return calls[np.append(True, calls["correlation"][1:] != calls["correlation"][:-1])] if len(calls) else calls


def _those(op: np.ndarray, ops: OpRows, name: re.Pattern) -> np.ndarray:
    """Which rows are of operations of such a name."""
    used = np.unique(op)
    chosen = [bool(name.search(ops.ops[o].name or "")) for o in used.tolist()]
    return np.isin(op, used[np.array(chosen, bool)])


def _batch(runs: np.ndarray, calls: np.ndarray, ops: OpRows, capture: int) -> Rows:
    pairs = np.stack([calls["op"], runs["op"]], axis=1)
    used, place = np.unique(pairs, axis=0, return_inverse=True)
    place = place.reshape(-1)
    names = [_name(ops.ops[call], ops.ops[run]) for call, run in used.tolist()]
    graph = np.array([bool(GRAPH.search(name)) for name in names])
    columns = {
        "capture": over(pa.int32(), np.full(len(runs), capture, np.int32)),
        "event": over(pa.int64(), np.ascontiguousarray(runs["event"])),
        "device": over(pa.int32(), np.ascontiguousarray(runs["device"])),
        "call_event": over(pa.int64(), np.ascontiguousarray(calls["event"])),
        "call": column(_TYPES.field("call").type, names, place),
        "line": column(_TYPES.field("line").type, [ops.line(call) for call in used[:, 0].tolist()], place),
        "call_start_ps": over(pa.int64(), np.ascontiguousarray(calls["start"])),
        "call_dur_ps": over(pa.int64(), np.ascontiguousarray(calls["dur"])),
        "graph": column(pa.bool_(), graph[place].tolist()),
    }
    return Rows("launches", batch("launches", columns))


def _name(call: Op, run: Op) -> str:
    """The call's name. Some profilers write that of the kernel in its place."""
    name = call.name or ""
    return UNNAMED if run.category != "copy" and name == (run.kernel or run.name) else name

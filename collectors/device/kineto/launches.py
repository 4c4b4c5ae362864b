"""Which call of which thread launched each thing that a device executed."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.kineto.device import GRAPH, Devices
from collectors.device.kineto.gather import Gathered
from collectors.device.kineto.span import Span
from collectors.device.xplane.arrays import coded, column, over
from runs.schema import SCHEMAS

_ROWS = 1 << 17


def launch_rows(
    gathered: Gathered, devices: Devices, launches: np.ndarray, lines: Mapping[int, str], span: Span, capture: int
) -> Iterator[Rows]:
    """Rows of `launches`, in order of the start on the device: of kernels, copies and fills whose call the trace holds.

    One call that launches a graph has a row for each of the graph's executions.
    """
    chosen = np.flatnonzero(devices.kernels() & (devices.launch >= 0))
    calls, call_names = _named(launches["name"], gathered.texts.__getitem__)
    threads, thread_names = _named(launches["thread"], lines.__getitem__)
    graph = devices.ops[:, GRAPH] >= 0 if len(devices.ops) else np.zeros(0, bool)
    for at in range(0, len(chosen), _ROWS):
        mine = chosen[at : at + _ROWS]
        which, events = devices.launch[mine], devices.events[mine]
        told = launches[which]
        columns = [
            over(pa.int32(), np.full(len(mine), capture, np.int32)),
            over(pa.int64(), events["event"].astype(np.int64)),
            over(pa.int32(), devices.number[events["row"]].astype(np.int32)),
            over(pa.int64(), told["event"].astype(np.int64)),
            coded(calls[which], call_names),
            coded(threads[which], thread_names),
            over(pa.int64(), span.ps(told["start"]).astype(np.int64)),
            over(pa.int64(), told["dur"] * 1000),
            column(pa.bool_(), graph[devices.op[mine]].tolist()),
        ]
        yield Rows("launches", pa.RecordBatch.from_arrays(columns, schema=SCHEMAS["launches"].arrow))


def _named(codes: np.ndarray, name_of: Callable[[int], str]) -> tuple[np.ndarray, list[str]]:
    """Numbers of texts as numbers of a dictionary of those in use."""
    used, place = np.unique(codes, return_inverse=True)
    return place.astype(np.int32), [name_of(int(code)) for code in used]

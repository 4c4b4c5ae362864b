"""One line of a trace while it is decoded: its operations, their own time, and what they feed."""

from typing import TYPE_CHECKING

import numpy as np

from collectors.device.xplane.collectives import Site
from collectors.device.xplane.events import own_time
from collectors.device.xplane.lines import Plane
from collectors.device.xplane.marks import MARKS
from collectors.device.xplane.ops import Op, describe_device, describe_hlo
from collectors.device.xplane.planes import EventName
from collectors.device.xplane.tables import BY_NAME, COPY_OP, HOST_HLO, N_OPS, UNSORTED, Ops, rehash

if TYPE_CHECKING:
    from collectors.device.xplane.reader import Reader

STACK = 1024  # how deep operations may nest before their own times lose exactness


def new_ops(rows: int) -> Ops:
    """Empty tables for `rows` operations."""
    return Ops(
        np.full(4 * rows, -1, np.int32),
        np.zeros((rows, 7), np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows),
        np.zeros(rows),
    )


def grown(ops: Ops, used: int) -> Ops:
    """The same operations in tables twice as large."""
    larger = new_ops(2 * len(ops.count))
    for old, new in zip(ops[1:], larger[1:], strict=True):
        new[:used] = old[:used]
    rehash(larger, used)
    return larger


def by_start(start: np.ndarray, dur: np.ndarray) -> np.ndarray:
    """Positions by start, of equal starts the longer first; quick where nearly all are in order."""
    order = np.argsort(start, kind="stable")
    a, b = start[order], dur[order]
    return np.lexsort((-dur, start)) if ((a[1:] == a[:-1]) & (b[1:] > b[:-1])).any() else order


class Line:
    """A line between two calls of the decoder."""

    def __init__(self, reader: "Reader", plane: Plane, name: str, role: str, mode: int, moved: bool):
        self.reader, self.plane, self.name, self.role, self.mode = reader, plane, name, role, mode
        self._moved = moved  # onto the host's clock, while others of the plane tell the device's own times
        self._depth = np.zeros(2, np.int64)
        self._latest: int | None = None
        self.disorder = False
        self.marks = 0

    def took(self, first: int, last: int) -> None:
        """Works on the events that the decoder has just entered as rows [first, last)."""
        reader, batches = self.reader, self.reader.batches
        if batches.counters[N_OPS] > len(reader.op_rows.ops):
            self._describe(int(batches.counters[N_OPS]))
        if self._moved and first < last:
            self._move_back(first, last)
        self.marks, steps = reader.marked.take(batches)
        for i in steps:
            reader.op_rows.ops[i] = reader.op_rows.ops[i]._replace(category="annotation")
        if first == last:
            return
        events = batches.events
        start, dur, op = events.start[first:last], events.dur[first:last], events.op[first:last]
        order = np.arange(first, last)
        if batches.counters[UNSORTED]:
            batches.counters[UNSORTED] = 0
            order = first + by_start(start, dur)
        earliest, latest = int(start[order[0] - first]), int(start[order[-1] - first])
        if self._latest is not None and earliest < self._latest:
            self.disorder = True
        self._latest = latest if self._latest is None else max(self._latest, latest)
        own_time(events, order, reader.ops, reader.stack, self._depth)
        reader.saw(int((start + dur).max()))
        batches.device[first:last] = reader.op_rows.device[op]
        collective = reader.op_rows.collective[op]
        if collective.any():
            chosen = np.flatnonzero(collective)
            reader.collectives.add(op[chosen], start[chosen], dur[chosen])
        self._special_lines(start, dur, op)

    def _move_back(self, first: int, last: int) -> None:
        """Puts events [first, last) where the device's own clock has them."""
        reader, events = self.reader, self.reader.batches.events
        start, dur, op = events.start[first:last], events.dur[first:last], events.op[first:last]
        new, took = reader.clock.moved(start, dur)
        np.add.at(reader.ops.total, op, (took - dur).astype(float))
        start[:], dur[:] = new, took
        reader.batches.counters[UNSORTED] = 1  # what was in order need not be so now

    def _describe(self, n_ops: int) -> None:
        """Describes the operations that the decoder met for the first time."""
        reader = self.reader
        for i in range(len(reader.op_rows.ops), n_ops):
            _, number, is_op, hlo, program, device, module = reader.ops.key[i].tolist()
            event = reader.numbers.events[number]
            if is_op:
                given = device if device >= 0 else None
                if self.mode == HOST_HLO and given is not None:
                    reader.stand_ins.add(given)
                if self.plane.kind == "gpu":
                    reader.gpu_ops[hlo != -1] += 1
                op = describe_hlo(
                    event,
                    self.plane,
                    reader.batches.op_text(hlo),
                    None if program == -1 else program,
                    given,
                    reader.batches.op_text(module),
                    reader.programs,
                    is_op == COPY_OP,
                )
            elif self.plane.kind == "host":
                op = Op(event.name or None, None, "host", "annotation" if event.name.encode() in MARKS else "host")
            else:
                op = describe_device(event, self.plane, self.role, reader.programs)
            reader.op_rows.enter(self.name, op, event)
            if self.plane.kind == "gpu":
                reader.peaks.enter_kernel(i, op)
            elif self.plane.device is not None:
                reader.peaks.enter(i, op, event)
            if op.collective:
                runs_on = reader.programs.assignment(op.program, op.module)
                reader.collectives.sites[i] = Site(op.device, op.module, op.name or "", op.role, op.collective, runs_on)

    def _special_lines(self, start: np.ndarray, dur: np.ndarray, op: np.ndarray) -> None:
        """Steps and programs of a device, and which programs show the operations they ran."""
        reader, device = self.reader, self.plane.device
        if device is None or self.plane.sparse:
            return
        if self.role == "step":
            numbers = {i: _step_number(reader.numbers.events[reader.ops.key[i, 1]]) for i in np.unique(op).tolist()}
            for s, d, o in zip(start.tolist(), dur.tolist(), op.tolist(), strict=True):
                if (number := numbers[o]) is not None:
                    reader.steps.add(device, s, d, number)
        elif self.role == "module":
            reader.program_runs.ran(device, start, start + dur)
        elif self.role == "compute" and self.mode == BY_NAME:
            reader.program_runs.showed(device, start)
            reader.peaks.took(op, dur)


def _step_number(event: EventName) -> int | None:
    value = event.get("step_num")
    if isinstance(value, int):
        return value
    return int(event.name) if event.name.isascii() and event.name.isdigit() and len(event.name) < 19 else None

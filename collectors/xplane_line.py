"""One line of a trace while it is decoded: its operations, their own time, and what they feed."""

from typing import TYPE_CHECKING

import numpy as np

from collectors.xplane_collectives import Site
from collectors.xplane_events import own_time
from collectors.xplane_lines import Plane
from collectors.xplane_ops import Op, describe_device, describe_hlo
from collectors.xplane_planes import EventName, Names
from collectors.xplane_tables import BY_NAME, HOST_HLO, N_OPS, UNSORTED, Ops, rehash

if TYPE_CHECKING:
    from collectors.xplane_read import Reader

_STACK = 1024


def new_ops(rows: int) -> Ops:
    """Empty tables for `rows` operations."""
    return Ops(
        np.full(4 * rows, -1, np.int32), np.zeros((rows, 6), np.int64), np.zeros(rows, np.int64), np.zeros(rows),
        np.zeros(rows),
    )  # fmt: skip


def grown(ops: Ops, used: int) -> Ops:
    """The same operations in tables twice as large."""
    larger = new_ops(2 * len(ops.count))
    for old, new in zip(ops[1:], larger[1:], strict=True):
        new[:used] = old[:used]
    rehash(larger, used)
    return larger


class Line:
    """A line between two calls of the decoder."""

    def __init__(self, reader: "Reader", names: Names, plane: Plane, place: tuple, role: str, mode: int):
        """`place`: names of the plane and of the line."""
        self.reader, self.names, self.plane, self.role, self.mode = reader, names, plane, role, mode
        self.place = place
        self.numbers: list[int] = []  # of its operations in `ops`, by the decoder's own numbering
        self.events: list[EventName] = []
        self._devices: list[int] = []  # by operation, -1 for none
        self._is_collective: list[bool] = []
        self._stack = np.zeros((2, _STACK, 2), np.int64)
        self._depth = np.zeros(2, np.int64)
        self._latest: int | None = None
        self.disorder = False
        self.marks = 0

    def took(self, first: int, last: int) -> None:
        """Works on the events that the decoder has just entered as rows [first, last)."""
        reader, batches = self.reader, self.reader.batches
        self._describe(int(batches.counters[N_OPS]))
        self.marks, steps = reader.marked.take(batches)
        entered = reader.op_rows.ops
        for i in steps:
            entered[self.numbers[i]] = entered[self.numbers[i]]._replace(category="annotation")
        if first == last:
            return
        events = batches.events
        start, dur, op = events.start[first:last], events.dur[first:last], events.op[first:last]
        order = np.arange(first, last)
        if batches.counters[UNSORTED]:
            batches.counters[UNSORTED] = 0
            order = first + np.lexsort((-dur, start))
        if self._latest is not None and start[order[0] - first] < self._latest:
            self.disorder = True
        self._latest = max(self._latest or start[0], int(start[order[-1] - first]))
        own_time(events, order, reader.ops, self._stack, self._depth)
        reader.saw(int((start + dur).max()))
        numbers = np.array(self.numbers, np.int64)
        batches.device[first:last] = np.array(self._devices, np.int32)[op]
        if any(self._is_collective):
            chosen = np.flatnonzero(np.array(self._is_collective)[op])
            reader.collectives.add(numbers[op[chosen]], start[chosen], dur[chosen])
        self._special_lines(start, dur, op)
        op[:] = numbers[op]

    def _describe(self, n_ops: int) -> None:
        reader = self.reader
        for i in range(len(self.numbers), n_ops):
            row, is_op, hlo, program, device, module = reader.ops.key[i].tolist()
            event = self.names.events[row]
            words = (reader.batches.op_text(hlo), reader.batches.op_text(module)) if is_op else (None, None)
            key = (*self.place, event, is_op, *words, program, device)
            number = reader.op_rows.number(key)
            if number is None:
                op = self._op(event, row, is_op, words, program, device)
                number = reader.op_rows.enter(key, self.place[1], op, event)
            op = reader.op_rows.ops[number]
            self.numbers.append(number)
            self.events.append(event)
            self._devices.append(-1 if op.device is None else op.device)
            self._is_collective.append(op.collective is not None and self.role in ("compute", "async", "host"))
            if op.collective:
                reader.collectives.sites[number] = Site(op.device, op.module, op.name or "", op.role, op.collective)

    def _op(self, event: EventName, row: int, is_op: int, words: tuple, program: int, device: int) -> Op:
        reader = self.reader
        if is_op:
            given = device if device >= 0 else None
            if self.mode == HOST_HLO and given is not None:
                reader.stand_ins.add(given)
            if self.plane.kind == "gpu":
                reader.gpu_ops[words[0] is not None] += 1
            return describe_hlo(
                event, self.plane, words[0], None if program == -1 else program, given, words[1], reader.programs
            )
        if self.plane.kind == "host":
            return Op(event.name or None, None, "host", "annotation" if self.names.lookup.mark[row] else "host")
        return describe_device(event, self.plane, self.role, reader.programs)

    def _special_lines(self, start: np.ndarray, dur: np.ndarray, op: np.ndarray) -> None:
        """Steps and programs of a device, and which programs show the operations they ran."""
        reader, device = self.reader, self.plane.device
        if device is None or self.plane.sparse:
            return
        if self.role == "step":
            numbers = [_step_number(e) for e in self.events]
            for s, d, o in zip(start.tolist(), dur.tolist(), op.tolist(), strict=True):
                if numbers[o] is not None:
                    reader.steps.add(device, s, d, numbers[o])
        elif self.role == "module":
            reader.program_runs.setdefault(device, []).append(np.stack([start, start + dur], axis=1))
        elif self.role == "compute" and self.mode == BY_NAME:
            reader.op_starts(device, start)

    def close(self) -> None:
        """Adds up what the line's operations took."""
        n, ops = len(self.numbers), self.reader.ops
        own = ops.total[:n] if self.role == "async" else np.clip(ops.own[:n], 0, ops.total[:n])
        self.reader.op_rows.add(np.array(self.numbers, np.int64), ops.count[:n], ops.total[:n], own)


def _step_number(event: EventName) -> int | None:
    value = event.get("step_num")
    if isinstance(value, int):
        return value
    return int(event.name) if event.name.isascii() and event.name.isdigit() and len(event.name) < 19 else None

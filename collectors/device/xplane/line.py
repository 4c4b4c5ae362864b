"""One line of a trace while it is decoded: its operations, their own time, and what they feed."""

import numpy as np

from collectors.device.xplane.collectives import Site
from collectors.device.xplane.lines import Plane
from collectors.device.xplane.marks import MARKS
from collectors.device.xplane.ops import Op, describe_device, describe_hlo
from collectors.device.xplane.own_time import own_time
from collectors.device.xplane.planes import EventName
from collectors.device.xplane.state import State
from collectors.device.xplane.tables import BY_NAME, COPY_OP, HOST_HLO, N_OPS, UNSORTED


def by_start(start: np.ndarray, dur: np.ndarray) -> np.ndarray:
    """Positions by start, of equal starts the longer first; quick where nearly all are in order."""
    order = np.argsort(start, kind="stable")
    a, b = start[order], dur[order]
    return np.lexsort((-dur, start)) if ((a[1:] == a[:-1]) & (b[1:] > b[:-1])).any() else order


class Line:
    """A line between two calls of the decoder, and between the pieces of it that a profile in several parts holds."""

    def __init__(self, state: State, plane: Plane, name: str, role: str, mode: int, number: int):
        self.state, self.plane, self.name, self.role, self.mode = state, plane, name, role, mode
        self.number = number  # among all lines
        self._moved = False
        self._depth = np.zeros(2, np.int64)
        self._open = state.stack[:, :0].copy()  # the operations that a piece left open
        self._latest: int | None = None
        self.disorder = False
        self.marks = 0

    def begin(self, moved: bool) -> None:
        """Must be called before each piece. `moved`: onto the host's clock, while others of the plane tell the device's
        own times."""
        self._moved = moved
        self.state.stack[:, : self._open.shape[1]] = self._open

    def end(self) -> None:
        """Must be called after each piece."""
        self._open = self.state.stack[:, : int(self._depth.max())].copy()

    def took(self, first: int, last: int, first_stat: int) -> None:
        """Works on the events that the decoder has just entered as rows [first, last), with stats from `first_stat`."""
        state, batches = self.state, self.state.batches
        if batches.counters[N_OPS] > len(state.op_rows.ops):
            self._describe(int(batches.counters[N_OPS]))
        if self._moved and first < last:
            self._move_back(first, last)
        self.marks, steps = state.marked.take(batches)
        for i in steps:
            state.op_rows.ops[i] = state.op_rows.ops[i]._replace(category="annotation")
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
        own_time(events, order, state.ops, state.stack, self._depth)
        state.saw(int((start + dur).max()))
        batches.device[first:last] = state.op_rows.device[op]
        state.launches.take(batches, self.plane, self.role, first, first_stat)
        collective = state.op_rows.collective[op]
        if collective.any():
            chosen = np.flatnonzero(collective)
            state.collectives.add(op[chosen], start[chosen], dur[chosen])
        self._special_lines(start, dur, op)

    def _move_back(self, first: int, last: int) -> None:
        """Puts events [first, last) where the device's own clock has them."""
        state, events = self.state, self.state.batches.events
        start, dur, op = events.start[first:last], events.dur[first:last], events.op[first:last]
        new, took = state.clock.moved(start, dur)
        np.add.at(state.ops.total, op, (took - dur).astype(float))
        start[:], dur[:] = new, took
        state.batches.counters[UNSORTED] = 1  # what was in order need not be so now

    def _describe(self, n_ops: int) -> None:
        """Describes the operations that the decoder met for the first time."""
        state = self.state
        for i in range(len(state.op_rows.ops), n_ops):
            _, number, is_op, hlo, program, device, module = state.ops.key[i].tolist()
            event = state.numbers.events[number]
            if is_op:
                given = device if device >= 0 else None
                if self.mode == HOST_HLO and given is not None:
                    state.stand_ins.add(given)
                if self.plane.kind == "gpu":
                    state.gpu_ops[hlo != -1] += 1
                op = describe_hlo(
                    event,
                    self.plane,
                    state.batches.op_text(hlo),
                    None if program == -1 else program,
                    given,
                    state.batches.op_text(module),
                    state.programs,
                    is_op == COPY_OP,
                )
            elif self.plane.kind == "host":
                op = Op(event.name or None, None, "host", "annotation" if event.name.encode() in MARKS else "host")
            else:
                op = describe_device(event, self.plane, self.role, state.programs)
            state.op_rows.enter(self.name, op, event)
            if self.plane.kind == "gpu":
                state.peaks.enter_kernel(i, op)
            elif self.plane.device is not None:
                state.peaks.enter(i, op, event)
            if op.collective:
                runs_on = state.programs.assignment(op.program, op.module)
                state.collectives.sites[i] = Site(op.device, op.module, op.name or "", op.role, op.collective, runs_on)

    def _special_lines(self, start: np.ndarray, dur: np.ndarray, op: np.ndarray) -> None:
        """Steps and programs of a device, and which programs show the operations they ran."""
        state, device = self.state, self.plane.device
        if device is None or self.plane.sparse:
            return
        if self.role == "step":
            numbers = {i: _step_number(state.numbers.events[state.ops.key[i, 1]]) for i in np.unique(op).tolist()}
            for s, d, o in zip(start.tolist(), dur.tolist(), op.tolist(), strict=True):
                if (number := numbers[o]) is not None:
                    state.steps.add(device, s, d, number)
        elif self.role == "module":
            state.program_runs.ran(device, start, start + dur)
        elif self.role == "compute":
            state.marked.worked(start, dur)
            if self.mode == BY_NAME:
                state.program_runs.showed(device, start)
                state.peaks.took(op, dur)


def _step_number(event: EventName) -> int | None:
    value = event.get("step_num")
    if isinstance(value, int):
        return value
    return int(event.name) if event.name.isascii() and event.name.isdigit() and len(event.name) < 19 else None

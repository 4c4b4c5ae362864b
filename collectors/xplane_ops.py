"""What each operation of a trace is, and the rows of `ops` and `op_stats`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from collectors.arrays import batch
from collectors.base import Rows
from collectors.hlo import Module, Operation
from collectors.hlo_shapes import Collective
from collectors.hlo_text import collective_of_text
from collectors.xplane_lines import Plane, category_of, collective_of, is_gpu_copy, nccl_kind
from collectors.xplane_planes import EventName, Value

_HLO_TEXT = re.compile(r"^%?([\w.\-]+) = ")
_MODULE_RUN = re.compile(r"^(.*)\((\d+)\)$")
_RAW_SHOWN = 256
CPU_DEVICES_PER_PROCESS = 2048  # XLA numbers the CPU devices of process p from 2048 p
_BATCH = 1 << 16
INT64 = 1 << 63


class Op(NamedTuple):
    """An operation as `ops` describes it, and what makes it a collective, if it is one."""

    name: str | None
    device: int | None
    role: str
    category: str
    module: str | None = None
    program: int | None = None
    flops: float | None = None
    bytes: float | None = None
    source: str | None = None
    shape: str | None = None
    kernel: str | None = None
    collective: Collective | None = None


def signed(value: int) -> int:
    """An integer as 64 bits with sign, the way tables hold it."""
    value &= 2 * INT64 - 1
    return value - 2 * INT64 if value >= INT64 else value


class Programs:
    """The HLO modules of a capture, by program number and by name."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._by_program: dict[int, Module] = {}
        self._by_name: dict[str, Module] = {}
        self._seen: set[tuple[int | None, int]] = set()
        self.devices = 0  # devices that collectives reach, as far as programs tell

    def seen(self, program: int | None, proto: bytes) -> bool:
        """Whether this very module came before: the planes of joined traces repeat theirs."""
        key = (program, hash(proto))
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def add(self, program: int | None, name: str, module: Module | None) -> None:
        if program is not None:
            self.names[program] = name
            if module is not None:
                self._by_program[program] = module
        if module is not None:
            self._by_name[name] = module
            self.devices = max(self.devices, module.devices)

    def operation(self, program: int | None, module: str | None, op: str) -> Operation | None:
        found = self._by_program.get(program) if program is not None else None
        found = found or (self._by_name.get(module) if module else None)
        return found.operations.get(op) if found else None


def describe_device(event: EventName, plane: Plane, role: str, programs: Programs) -> Op:
    """An operation of an accelerator's own line, whose metadata says what it costs (TPU)."""
    program, module = None, None
    if role == "module":
        match = _MODULE_RUN.match(event.name)
        if match and len(match[2]) < 21:
            module, program = match[1], signed(int(match[2]))
        return Op(event.name or None, plane.device, role, "other", module, program)
    if role not in ("compute", "async"):
        return Op(event.name or None, plane.device, role, "annotation" if role == "step" else "other")
    match = _HLO_TEXT.match(event.name)
    name = match[1] if match else event.display or event.name
    stats = dict(event.stats)
    if isinstance(stats.get("program_id"), int):
        program = signed(stats["program_id"])
        module = programs.names.get(program)
    hlo = programs.operation(program, module, name)
    opcode = stats.get("hlo_category")
    opcode = opcode if isinstance(opcode, str) else hlo.opcode if hlo else name.split(".")[0]
    collective = hlo.collective if hlo else collective_of_text(event.name) if collective_of(name) else None
    category = "collective" if collective else category_of(opcode)
    if hlo and hlo.category in ("matmul", "convolution"):
        category = hlo.category
    cost = [_number(stats.get("flops")), _number(stats.get("bytes_accessed"))]
    if hlo:
        cost = [own if own is not None else other for own, other in zip(cost, (hlo.flops, hlo.bytes), strict=True)]
    if category == "control":
        cost = [None, None]  # it only contains others, which count for themselves
    source, shape = stats.get("source"), stats.get("shape_with_layout")
    return Op(
        name or None, plane.device, role, category, module, program, cost[0], cost[1],
        source if isinstance(source, str) else hlo.source if hlo else None,
        shape if isinstance(shape, str) else hlo.shape if hlo else None, collective=collective,
    )  # fmt: skip


def describe_hlo(
    event: EventName, plane: Plane, hlo_op: str | None, program: int | None, device: int | None, module: str | None,
    programs: Programs,
) -> Op:  # fmt: skip
    """An operation that events tie to an HLO instruction: a GPU kernel, or host threads standing in for a device."""
    name = hlo_op or event.name or None
    if module is None and program is not None:
        module = programs.names.get(program)
    hlo = programs.operation(program, module, hlo_op) if hlo_op else None
    role, kernel = "compute", None
    category = hlo.category if hlo else category_of(hlo_op.split(".")[0]) if hlo_op else "other"
    collective = hlo.collective if hlo else None
    if plane.kind == "gpu":
        kernel = event.name if hlo_op else None
        kind = nccl_kind(event.name)
        if kind:
            known = collective or Collective(kind, "", None, None, None)
            collective, category, role = replace(known, part=""), "collective", "async"
        elif is_gpu_copy(event.name):
            category, role = "copy", "async" if not hlo_op else "compute"
        else:
            collective = None  # a kernel beside the collective, such as a copy into its buffer
    elif device is not None:
        device %= CPU_DEVICES_PER_PROCESS
    return Op(
        name, plane.device if plane.kind == "gpu" else device, role, category, module, program,
        hlo.flops if hlo else None, hlo.bytes if hlo else None, hlo.source if hlo else None, hlo.shape if hlo else None,
        kernel, collective,
    )  # fmt: skip


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


class OpRows:
    """Rows of `ops` and `op_stats`, kept until the host's name is known."""

    def __init__(self, capture: int):
        self.capture = capture
        self._ops: dict[str, list] = {}
        self._stats: dict[str, list] = {}

    def add(self, first: int, line: str, ops: list[Op], events: list[EventName], count, total_ps, own_ps) -> None:
        """Enters the operations of one line; `first` is the number of the first. Sums are in ps."""
        costly = _main_kernels(ops, total_ps)
        columns = self._ops
        for i, op in enumerate(ops):
            # A line's other kernels of the same operation share its cost in a way the trace does not tell.
            flops, moved = (op.flops, op.bytes) if i in costly else (None, None)
            values = {
                "capture": self.capture, "op_id": first + i, "device": op.device, "line": line, "role": op.role,
                "module": op.module, "program": op.program, "op": op.name, "category": op.category,
                "count": int(count[i]), "total_ns": total_ps[i] / 1000, "self_ns": own_ps[i] / 1000, "flops": flops,
                "bytes": moved, "source": op.source, "shape": op.shape,
            }  # fmt: skip
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
            for name, value in events[i].stats:
                self._stat(first + i, name, value)
            if op.kernel:
                self._stat(first + i, "kernel", op.kernel)

    def _stat(self, op_id: int, name: str, value: Value) -> None:
        if isinstance(value, bytes):
            value = value[:_RAW_SHOWN].hex() + ("..." if len(value) > _RAW_SHOWN else "")
        values = {
            "capture": self.capture, "op_id": op_id, "name": name,
            "int_value": signed(value) if isinstance(value, int) else None,
            "float_value": value if isinstance(value, float) else None,
            "text_value": value if isinstance(value, str) else None,
        }  # fmt: skip
        for column, entry in values.items():
            self._stats.setdefault(column, []).append(entry)

    def rows(self, host: str | None) -> Iterator[Rows]:
        """Everything entered, in batches."""
        self._ops["host"] = [host] * len(self._ops.get("op_id", ()))
        for table, columns in (("ops", self._ops), ("op_stats", self._stats)):
            size = len(columns.get("op_id", ()))
            for at in range(0, size, _BATCH):
                part = {name: values[at : at + _BATCH] for name, values in columns.items()}
                yield Rows(table, batch(table, part))


def _main_kernels(ops: list[Op], total_ps: np.ndarray) -> set[int]:
    """Which operations carry a cost: of several kernels for one HLO operation, the one that took longest."""
    best: dict[tuple, int] = {}
    for i, op in enumerate(ops):
        key = (op.module, op.program, op.name) if op.kernel else i
        if key not in best or total_ps[i] > total_ps[best[key]]:
            best[key] = i
    return set(best.values())

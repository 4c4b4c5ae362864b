"""What each operation of a trace is, and the rows of `ops` and `op_stats`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from collectors.base import Rows
from collectors.device.hlo.analysed import Module, Operation
from collectors.device.hlo.assignment import Assignment
from collectors.device.hlo.names import category_of, collective_of
from collectors.device.hlo.scopes import NOWHERE, Scope, scope_of
from collectors.device.hlo.shapes import Collective
from collectors.device.hlo.text import collective_of_text, fused_collective, transfer_of_text
from collectors.device.xplane.arrays import batch, over
from collectors.device.xplane.lines import Plane, is_gpu_copy, nccl_kind, of_collective
from collectors.device.xplane.planes import EventName, Value
from collectors.device.xplane.tables import Ops

_HLO_TEXT = re.compile(r"^%?([\w.\-]+) = ")
_MODULE_RUN = re.compile(r"^(.*)\((\d+)\)$")
_RAW_SHOWN = 256
_EXPRESSION = 2000  # letters of an operation's HLO that are kept
CPU_DEVICES_PER_PROCESS = 2048  # XLA numbers the CPU devices of process p from 2048 p
_BATCH = 1 << 16
# categories that a program tells better than a trace: what fusions hold, and whom transfers reach
_BY_PROGRAM = ("matmul", "convolution", "collective", "host")
_MAY_HOLD = "megacore fusion"  # of chips whose two cores are one device
_OF_OP = {
    "device": attrgetter("device"),
    "role": attrgetter("role"),
    "module": attrgetter("module"),
    "program": attrgetter("program"),
    "op": attrgetter("name"),
    "category": attrgetter("category"),
    "source": attrgetter("source"),
    "shape": attrgetter("shape"),
    "scope": attrgetter("scope.path"),
    "direction": attrgetter("scope.direction"),
}
INT64 = 1 << 63


class Op(NamedTuple):
    """An operation as `ops` describes it, and what makes it a collective, if it is one. `framework`: what the
    framework calls it; `expression`: its HLO, where the trace spells it; `may_hold`: whether its line may list what it
    consists of as operations, too."""

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
    scope: Scope = NOWHERE
    framework: str | None = None
    expression: str | None = None
    may_hold: bool = False


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
        self.widest: Assignment | None = None  # of the program that runs on the most devices

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
            own = module.assignment
            if own and (self.widest is None or len(own.order) > len(self.widest.order)):
                self.widest = own

    def operation(self, program: int | None, module: str | None, op: str) -> Operation | None:
        found = self._module(program, module)
        return found.operations.get(op) if found else None

    def assignment(self, program: int | None, module: str | None) -> Assignment | None:
        """On which devices a program runs."""
        found = self._module(program, module)
        return found.assignment if found else None

    def _module(self, program: int | None, module: str | None) -> Module | None:
        found = self._by_program.get(program) if program is not None else None
        return found or (self._by_name.get(module) if module else None)


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
    number = stats.get("program_id")
    if isinstance(number, int):
        program = signed(number)
        module = programs.names.get(program)
    hlo = programs.operation(program, module, name)
    opcode = stats.get("hlo_category")
    opcode = opcode if isinstance(opcode, str) else hlo.opcode if hlo else name.split(".")[0]
    collective = hlo.collective if hlo else _collective(event.name, name, opcode)
    category = "collective" if collective else category_of(transfer_of_text(opcode, event.name))
    if hlo and hlo.category in _BY_PROGRAM:
        category = hlo.category
    cost = [_number(stats.get("flops")), _number(stats.get("bytes_accessed"))]
    if hlo:
        cost = [own if own is not None else other for own, other in zip(cost, (hlo.flops, hlo.bytes), strict=True)]
    if category == "control":
        cost = [None, None]  # it only contains others, which count for themselves
    source, shape = stats.get("source"), stats.get("shape_with_layout")
    return Op(
        name or None,
        plane.device,
        role,
        category,
        module,
        program,
        cost[0],
        cost[1],
        source if isinstance(source, str) else hlo.source if hlo else None,
        shape if isinstance(shape, str) else hlo.shape if hlo else None,
        collective=collective,
        scope=_scope(stats.get("tf_op"), ".remat" in name, hlo),
        framework=hlo.framework if hlo and "tf_op" not in stats else None,
        expression=event.name[:_EXPRESSION] if match else None,
        may_hold=opcode == _MAY_HOLD,
    )


def _collective(text: str, name: str, category: str) -> Collective | None:
    """What a trace alone tells of an operation as a collective."""
    return collective_of_text(text) or fused_collective(name, category)


def _scope(framework: Value, again: bool, hlo: Operation | None) -> Scope:
    """The scopes that a trace's own name of an operation tells, else its program's; `again`: whether the compiler named
    it as one that it computes again."""
    told = scope_of(framework if isinstance(framework, str) else "", again)
    return told if told != NOWHERE or hlo is None else hlo.scope


def describe_hlo(
    event: EventName,
    plane: Plane,
    hlo_op: str | None,
    program: int | None,
    device: int | None,
    module: str | None,
    programs: Programs,
    copies: bool = False,
) -> Op:
    """An operation that events tie to an HLO instruction: a GPU kernel, or host threads standing in for a device.

    `copies`: whether its events tell what they copied or filled, whatever they are called.
    """
    name = hlo_op or event.name or None
    if module is None and program is not None:
        module = programs.names.get(program)
    hlo = programs.operation(program, module, hlo_op) if hlo_op else None
    kernel = None
    category = hlo.category if hlo else category_of(hlo_op.split(".")[0]) if hlo_op else "other"
    collective = hlo.collective if hlo else None
    if plane.kind == "gpu":
        kernel = event.name if hlo_op else None
        if of_collective(event.name):
            said, _ = (collective_of(hlo_op) if hlo_op else None) or (nccl_kind(event.name), "")
            known = collective or Collective(said, "", None, None, None)
            collective, category = replace(known, part=""), "collective"
        elif copies or is_gpu_copy(event.name):
            category = "copy"
        else:
            collective = None  # a kernel beside the collective, such as a copy into its buffer
    elif device is not None:
        device %= CPU_DEVICES_PER_PROCESS
    return Op(
        name,
        plane.device if plane.kind == "gpu" else device,
        "compute",
        category,
        module,
        program,
        hlo.flops if hlo else None,
        hlo.bytes if hlo else None,
        hlo.source if hlo else None,
        hlo.shape if hlo else None,
        kernel,
        collective,
        hlo.scope if hlo else NOWHERE,
        hlo.framework if hlo else None,
    )


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


class OpRows:
    """Rows of `ops` and `op_stats`, kept until the host's name is known.

    An operation is one row a line, however many planes of that name joined traces repeat.
    """

    def __init__(self, capture: int):
        self.capture = capture
        self.ops: list[Op] = []
        self.device = np.full(1024, -1, np.int32)  # by operation; -1 is none
        self.collective = np.zeros(1024, bool)  # by operation: whether its executions go to `collectives`
        self._lines: list[str] = []
        self._stats: dict[str, list] = {}

    def enter(self, line: str, op: Op, event: EventName) -> None:
        """Enters the next operation, of a line."""
        number = len(self.ops)
        if number == len(self.device):
            self.device = np.concatenate([self.device, np.full(number, -1, np.int32)])
            self.collective = np.concatenate([self.collective, np.zeros(number, bool)])
        self.ops.append(op)
        self._lines.append(line)
        self.device[number] = -1 if op.device is None else op.device
        self.collective[number] = op.collective is not None
        for name, value in event.stats:
            self._stat(number, name, value)
        for name, text in (("kernel", op.kernel), ("op_name", op.framework), ("hlo", op.expression)):
            if text:
                self._stat(number, name, text)

    def line(self, number: int) -> str:
        """The line on which an operation ran."""
        return self._lines[number]

    def _stat(self, op_id: int, name: str, value: Value) -> None:
        if isinstance(value, bytes):
            value = value[:_RAW_SHOWN].hex() + ("..." if len(value) > _RAW_SHOWN else "")
        values = {
            "capture": self.capture,
            "op_id": op_id,
            "name": name,
            "int_value": signed(value) if isinstance(value, int) else None,
            "float_value": value if isinstance(value, float) else None,
            "text_value": value if isinstance(value, str) else None,
        }
        for column, entry in values.items():
            self._stats.setdefault(column, []).append(entry)

    def rows(self, host: str | None, sums: Ops) -> Iterator[Rows]:
        """Everything entered, in batches; `sums`: what the decoder counted."""
        n = len(self.ops)
        total = sums.total[:n]
        # Asynchronous operations overlap without containing each other.
        alone = np.fromiter((op.role == "async" for op in self.ops), bool, n)
        own = np.where(alone, total, np.clip(sums.own[:n], 0, total))
        costless = self._lesser_kernels(total) | self._holders(total, own)
        for at in range(0, n, _BATCH):
            ops = self.ops[at : at + _BATCH]
            rows = slice(at, at + len(ops))
            part: dict = {name: [of(op) for op in ops] for name, of in _OF_OP.items()}
            for name in ("flops", "bytes"):
                part[name] = [None if at + i in costless else getattr(op, name) for i, op in enumerate(ops)]
            part |= {
                "capture": [self.capture] * len(ops),
                "host": [host] * len(ops),
                "line": self._lines[at : at + _BATCH],
                "op_id": over(pa.int64(), np.arange(at, at + len(ops))),
                "count": over(pa.int64(), sums.count[rows]),
                "total_ns": over(pa.float64(), total[rows] / 1000),
                "self_ns": over(pa.float64(), own[rows] / 1000),
            }
            yield Rows("ops", batch("ops", part))
        for at in range(0, len(self._stats.get("op_id", ())), _BATCH):
            part = {name: values[at : at + _BATCH] for name, values in self._stats.items()}
            yield Rows("op_stats", batch("op_stats", part))

    def _holders(self, total: np.ndarray, own: np.ndarray) -> set[int]:
        """Operations that mostly consist of others of their line, which count for themselves."""
        return {i for i, op in enumerate(self.ops) if op.may_hold and 2 * own[i] < total[i]}

    def _lesser_kernels(self, total: np.ndarray) -> set[int]:
        """Of several kernels for one HLO operation on a line, all but the one that took longest: they share the
        operation's cost in a way that the trace does not tell. One that fills memory for another is no such share."""
        best: dict[tuple, int] = {}
        lesser = set()
        for i, op in enumerate(self.ops):
            if not op.kernel:
                continue
            key = (self._lines[i], op.device, op.module, op.program, op.name)
            other = best.setdefault(key, i)
            if other != i:
                longer = (op.category != "copy", total[i]) > (self.ops[other].category != "copy", total[other])
                best[key] = i if longer else other
                lesser.add(other if longer else i)
        return lesser

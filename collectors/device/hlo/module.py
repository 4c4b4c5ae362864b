"""What an HLO module costs: FLOPs and bytes of its operations, its matrix products, its collectives, its loops.

FLOPs follow XLA's own cost analysis (a multiply-add is two, transcendental functions are not counted), except that
the body of a loop is counted as often as the loop runs, that what runs an unknown number of times has no sum, and
that a kernel which no compiler looks into counts with the FLOPs that its author states of it, if any.
Bytes are those of operands and results, without what a fusion keeps to itself.
"""

import hashlib
import math
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Error

from collectors.device.hlo.analysed import Argument, Matmul, Module, Operation
from collectors.device.hlo.assignment import assignment_of
from collectors.device.hlo.buffers import device_memory
from collectors.device.hlo.collectives import Collectives, program_collective
from collectors.device.hlo.cost import CALLERS, Product, cycles_of, flops_of, moves_nothing, product_of
from collectors.device.hlo.fusions import fused_of, holders
from collectors.device.hlo.layouts import padded_bytes
from collectors.device.hlo.loops import Loops
from collectors.device.hlo.names import category_of
from collectors.device.hlo.scopes import scope_of
from collectors.device.hlo.shapes import HLO, dtype, shape_text, size_bytes
from collectors.device.hlo.shardings import copies_of
from collectors.device.hlo.traffic import bytes_of
from errors import InputError

_analysed: dict[bytes, Module] = {}
_REMEMBERED = 200_000  # instructions of all modules together, some hundred megabytes
_MOST_MODULES = 4_096  # that are remembered, however small they are: all are counted whenever one comes


def analyse(data: bytes) -> Module:
    """Analyses a serialised HloProto. Raises InputError where the bytes are none.

    The captures of a job carry the same programs again and again: each is analysed once, so do not change the result.
    """
    try:
        proto = _told_of(data)
        key = hashlib.blake2b(proto.SerializeToString(), digest_size=16).digest()
        module = _analysed.get(key)
        if module is None:
            module = _analyse(proto)
            _forget_some(module.instructions)
            _analysed[key] = module
        return module
    except (Error, RecursionError, OverflowError) as error:
        raise InputError(f"not an HloProto: {error}", expected="the bytes of stat `Hlo Proto`") from error


def _forget_some(instructions: int) -> None:
    """Of the modules that are remembered those that came first, until there is room for one of so many."""
    while _analysed and (
        len(_analysed) >= _MOST_MODULES or sum(m.instructions for m in _analysed.values()) + instructions > _REMEMBERED
    ):
        _analysed.pop(next(iter(_analysed)), None)


def _told_of(data: bytes) -> Any:
    """The HloProto without what no analysis reads: each profile numbers the same program anew, and lists its schedule
    in another order."""
    proto = HLO["HloProto"].FromString(data)
    proto.DiscardUnknownFields()
    proto.hlo_module.ClearField("schedule")
    return proto


def as_hlo_proto(data: bytes) -> bytes:
    """A serialised HloProto of what may be one, or the HloModuleProto that it would hold."""
    try:
        if HLO["HloProto"].FromString(data).hlo_module.computations:
            return data
    except DecodeError:
        pass
    size, length = len(data), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return b"\x0a" + bytes([*length, size]) + data


def _analyse(proto: Any) -> Module:
    analysis = Analysis(proto.hlo_module)
    result = analysis.run()
    copies = {a.op: a.copies for a in result.arguments}
    result.memory = device_memory(proto, analysis.describe, copies)
    return result


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _told(amount: float) -> float | None:
    """An amount as others see it: None where it hangs on an unknown number of rounds."""
    return None if math.isnan(amount) else amount


def _dearest(amount: float) -> float:
    return math.inf if math.isnan(amount) else amount


def _times(amount: float, times: int | None) -> float:
    """So many times an amount; NaN for an unknown number of times, except of nothing."""
    if times is None:
        return math.nan if amount else 0.0
    return amount * times


def is_repeated(instruction: Any) -> bool:
    """Whether the compiler added it to compute a value again: it names the copy so, and nothing of what it calls."""
    return b".remat" in instruction.name


class Own(NamedTuple):
    """What an instruction costs by itself, and the matrix product that it may be."""

    flops: float
    bytes: float
    product: Product | None


_NOTHING = Own(0.0, 0.0, None)
# half of all instructions: they do nothing, and call nothing that would
_STILL = (b"parameter", b"constant", b"get-tuple-element", b"tuple", b"bitcast")


class Analysis:
    def __init__(self, module: Any):
        self.module = module
        self.computations = {c.id: c for c in module.computations}
        # Held, so that no wrapper of a message is made twice, and an instruction may be known by its identity.
        self._listed = [(c, list(c.instructions)) for c in module.computations]
        self._within = {c.id: instructions for c, instructions in self._listed}
        self._own: dict[int, Own] = {}  # by identity: a damaged module may give a number twice
        self.by_id = {i.id: i for _, instructions in self._listed for i in instructions}
        self._costs: dict[int, tuple[float, float, float]] = {}  # computation -> flops, recomputed flops, bytes
        self._order: list[int] = []  # computations, callees before callers
        self._inside: dict[int, str] = {}  # computation -> "", matmul or convolution: what it contains
        self._trips: dict[int, int | None] = {}
        self._loops = Loops(self.computations, self.by_id)
        self._chosen: dict[int, int] = {}  # conditional -> the costliest branch
        self.result = Module(_text(module.name), assignment=assignment_of(module))
        self._collectives = Collectives(self.computations, self.by_id, self.result.assignment)
        self.entry = module.entry_computation_id
        if self.entry not in self.computations and self.computations:
            self.entry = list(self.computations)[-1]

    def run(self) -> Module:
        result = self.result
        fused = fused_of(i for _, instructions in self._listed for i in instructions)
        entry = self.entry
        if entry in self.computations:
            result.flops, result.remat_flops, result.bytes = map(_told, self.cost(entry))
        result.instructions = sum(len(instructions) for _, instructions in self._listed)
        runs = self.runs(entry)
        wrapped = self.reached_from(b"async-start")
        again = self._reached(
            i for _, listed in self._listed for i in listed if i.opcode == b"fusion" and is_repeated(i)
        )
        for comp, instructions in self._listed:
            if comp.id not in fused:
                self.enter(instructions, 0 if comp.id in wrapped else runs.get(comp.id, 0))
        held = holders(self._within, fused)
        for comp_id, count in runs.items():
            for instruction in self._within.get(comp_id, ()) if count != 0 else ():
                if product := self.own(instruction).product:
                    within = held[comp_id] if comp_id in held else _text(instruction.name)
                    result.matmuls.append(self.matmul(instruction, product, count, comp_id in again, within))
        if entry in self.computations:
            parameters = [i for i in self._within[entry] if i.opcode == b"parameter"]
            copies = copies_of(parameters)
            parameters.sort(key=lambda i: i.parameter_number)
            result.arguments = [self.argument(i, copies.get(i.id)) for i in parameters]
        return result

    def runs(self, entry: int) -> dict[int, int | None]:
        """How often one run of the module executes each computation; None where nothing tells."""
        runs: dict[int, int | None] = {entry: 1}
        for comp_id in reversed(self._order):
            own = runs.get(comp_id, 0)
            for instruction in self._within[comp_id] if own != 0 else ():
                for callee, times in self.calls(instruction):
                    before = runs.get(callee, 0)
                    if times == 0:  # whatever else calls it decides
                        runs[callee] = before
                    elif own is None or times is None or before is None:
                        runs[callee] = None
                    else:
                        runs[callee] = before + own * times
        return runs

    def trips_of(self, instruction: Any) -> int | None:
        """How often a loop runs, once `run` was called; None: not known, or no loop."""
        return self._trips.get(instruction.id)

    def reached_from(self, opcode: bytes) -> set[int]:
        """Computations that instructions of an opcode call, and those called from there."""
        return self._reached(i for _, instructions in self._listed for i in instructions if i.opcode == opcode)

    def _reached(self, instructions: Iterable[Any]) -> set[int]:
        found: set[int] = set()
        waiting = [c for i in instructions for c in i.called_computation_ids]
        while waiting:
            comp_id = waiting.pop()
            if comp_id in self.computations and comp_id not in found:
                found.add(comp_id)
                waiting += [c for i in self._within[comp_id] for c in i.called_computation_ids]
        return found

    def enter(self, instructions: list[Any], count: int | None) -> None:
        """The instructions of a computation outside fusions, executed so often (None: not known)."""
        result = self.result
        for instruction in instructions:
            operation = self.operation(instruction, count)
            result.operations[operation.name] = operation
            if operation.collective and operation.collective.groups:
                result.devices = max(result.devices, len(set(chain(*operation.collective.groups))))
            if count != 0 and (operation.collective or instruction.opcode == b"send"):
                found = program_collective(self._collectives, instruction, count, self.source)
                if found is not None:
                    result.collectives.append(found)

    def own(self, instruction: Any) -> Own:
        """Of an instruction of this module; each is looked at once."""
        if instruction.opcode in _STILL:
            return _NOTHING
        found = self._own.get(id(instruction))
        if found is None:
            operands = self.operands(instruction)
            found = self._own[id(instruction)] = Own(
                self._flops(instruction, operands),
                self._bytes(instruction, operands),
                product_of(instruction, operands),
            )
        return found

    def _flops(self, instruction: Any, operands: list[Any]) -> float:
        applied = []
        called = instruction.called_computation_ids
        if called and _text(instruction.opcode) not in CALLERS and instruction.opcode not in (b"while", b"conditional"):
            applied = [self.cost(c)[0] for c in called if c in self.computations]
        return flops_of(instruction, operands, applied)

    def _bytes(self, instruction: Any, operands: list[Any]) -> float:
        if instruction.opcode == b"async-start":  # it moves what the wrapped operation moves
            return sum(self.cost(c)[2] for c in instruction.called_computation_ids if c in self.computations)
        return bytes_of(instruction, operands, self.computations)

    def operands(self, instruction: Any) -> list[Any]:
        return [self.by_id[i] for i in instruction.operand_ids if i in self.by_id]

    def calls(self, instruction: Any) -> list[tuple[int, int | None]]:
        """(computation, times it runs) for what an instruction calls as a whole program, not once per element."""
        if not instruction.called_computation_ids:
            return []
        called = [c for c in instruction.called_computation_ids if c in self.computations]
        if instruction.opcode == b"while":
            trips = self._trips.get(instruction.id)
            # XLA lists the body, then the condition.
            return [(c, trips if i == 0 or trips is None else trips + 1) for i, c in enumerate(called)]
        if instruction.opcode == b"conditional":
            return [(self._chosen[instruction.id], 1)] if instruction.id in self._chosen else []
        if _text(instruction.opcode) in CALLERS:
            return [(c, 1) for c in called]
        return []

    def cost(self, comp_id: int) -> tuple[float, float, float]:
        """FLOPs, recomputed FLOPs and bytes of one run of a computation."""
        if comp_id in self._costs:
            return self._costs[comp_id]
        self._costs[comp_id] = (0.0, 0.0, 0.0)  # holds for a cycle, which no valid module has
        flops = again = moved = 0.0
        inside = ""
        for instruction in self._within[comp_id]:
            if instruction.opcode in _STILL:
                continue
            opcode = _text(instruction.opcode)
            if opcode == "while":
                self._trips[instruction.id] = trips = self._loops.trips(instruction)
                if trips is None:
                    self.result.unknown_loops.append(_text(instruction.name))
            called = [c for c in instruction.called_computation_ids if c in self.computations]
            if opcode == "conditional" and called:
                self._chosen[instruction.id] = max(called, key=self._dearness)
            own, bytes_moved, product = self.own(instruction)
            part_again = own if self.is_remat(instruction) else 0.0
            for callee, times in self.calls(instruction):
                inner = self.cost(callee)
                own += _times(inner[0], times)
                part_again += _times(inner[1], times)
                if opcode not in ("fusion", "async-start"):
                    moved += _times(inner[2], times)
                inside = inside or self._inside.get(callee, "")
            if product:
                inside = "matmul" if "matmul" in (inside, product.kind) else product.kind
            if is_repeated(instruction):
                part_again = own
            moved += bytes_moved
            flops += own
            again += part_again if math.isnan(part_again) or math.isnan(own) else min(part_again, own)
        self._costs[comp_id] = (flops, again, moved)
        self._inside[comp_id] = inside
        self._order.append(comp_id)
        return self._costs[comp_id]

    def _dearness(self, comp_id: int) -> tuple[float, float]:
        """What branches are weighed by: FLOPs, then bytes, for many a branch only moves data."""
        flops, _, moved = self.cost(comp_id)
        return _dearest(flops), _dearest(moved)

    def is_remat(self, instruction: Any) -> bool:
        return b"rematted_computation" in instruction.metadata.op_name or is_repeated(instruction)

    def source(self, instruction: Any) -> str | None:
        """File and line of the user's program, innermost frame."""
        meta = instruction.metadata
        if meta.source_file:
            return f"{_text(meta.source_file)}:{meta.source_line}"
        index = self.module.stack_frame_index
        if 0 < meta.stack_frame_id <= len(index.stack_frames):
            location_id = index.stack_frames[meta.stack_frame_id - 1].file_location_id
            if 0 < location_id <= len(index.file_locations):
                location = index.file_locations[location_id - 1]
                if 0 < location.file_name_id <= len(index.file_names):
                    return f"{_text(index.file_names[location.file_name_id - 1])}:{location.line}"
        return None

    def describe(self, instruction: Any) -> tuple[str, str | None]:
        """What the framework calls the value that an instruction makes, and its source line."""
        return _text(instruction.metadata.op_name or instruction.name), self.source(instruction)

    def argument(self, instruction: Any, copies: int | None) -> Argument:
        shape = instruction.shape
        name = self.describe(instruction)[0]
        op = _text(instruction.name)
        return Argument(name, size_bytes(shape), padded_bytes(shape), shape_text(shape), op, copies)

    def operation(self, instruction: Any, count: int | None) -> Operation:
        opcode = _text(instruction.opcode)
        flops, moved, product = self.own(instruction)
        contraction = product.kind if product else ""
        if opcode in ("fusion", "async-start"):
            for callee in instruction.called_computation_ids:
                if callee in self.computations:
                    flops += self.cost(callee)[0]
                    contraction = contraction or self._inside.get(callee, "")
            opcode = self.wrapped(instruction) if opcode == "async-start" else opcode
        if self._collectives.with_host(instruction):
            opcode = f"host {opcode}"
        elif moves_nothing(instruction):
            opcode = "bitcast"  # no kernel whose work nobody tells
        container = opcode in ("while", "conditional", "call")
        collective = self._collectives.of(instruction)
        name = _text(instruction.metadata.op_name)
        return Operation(
            _text(instruction.name),
            _text(instruction.opcode),
            "collective" if collective else category_of(opcode, contraction),
            None if container else _told(flops),
            None if container else _told(moved),
            shape_text(instruction.shape),
            self.source(instruction),
            collective,
            cycles_of(instruction),
            count,
            name or None,
            scope_of(name, self.is_remat(instruction)),
        )

    def wrapped(self, start: Any) -> str:
        """The opcode of what an `async-start` starts; its own where that is not known."""
        for comp_id in start.called_computation_ids:
            root = self.by_id.get(self.computations[comp_id].root_id) if comp_id in self.computations else None
            if root is not None and root.opcode not in (b"call", b"async-start"):
                return _text(root.opcode)
        return _text(start.opcode)

    def matmul(self, instruction: Any, product: Product, count: int | None, again: bool, within: str | None) -> Matmul:
        """`again`: whether it lies in a fusion that is computed again as a whole. `within`: see Matmul."""
        left, right = (o.shape for o in self.operands(instruction)[:2])
        layout = f"{shape_text(left)} x {shape_text(right)} -> {shape_text(instruction.shape)}"
        return Matmul(
            _text(instruction.name),
            product,
            count,
            dtype(left),
            layout,
            again or self.is_remat(instruction),
            self.source(instruction),
            within,
        )

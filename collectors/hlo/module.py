"""What an HLO module costs: FLOPs and bytes of its operations, its matrix products, its collectives, its loops.

FLOPs follow XLA's own cost analysis (a multiply-add is two, transcendental functions are not counted), except that
the body of a loop is counted as often as the loop runs. Bytes are those of operands and results, without what a
fusion keeps to itself.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from google.protobuf.message import DecodeError

from collectors.hlo.cost import CALLERS, Product, bytes_of, config_of, flops_of, product_of
from collectors.hlo.names import category_of, collective_of
from collectors.hlo.shapes import HLO, Collective, dtype, linked, replica_groups, shape_text, size_bytes
from errors import InputError


@dataclass(frozen=True)
class Operation:
    """One instruction as a trace may name it. `flops`, `bytes`: of one execution; None if it only contains others."""

    name: str
    opcode: str
    category: str
    flops: float | None
    bytes: float | None
    shape: str
    source: str | None
    collective: Collective | None


@dataclass(frozen=True)
class Matmul:
    """A matrix product of a module and how often one run of the module executes it."""

    op: str
    product: Product
    count: int
    dtype: str | None
    layout: str
    remat: bool
    source: str | None


@dataclass
class Module:
    """The analysis of one module. `operations` holds every instruction outside fusions, by name."""

    name: str
    flops: float = 0.0
    remat_flops: float = 0.0
    bytes: float = 0.0
    instructions: int = 0
    devices: int = 0  # devices in the replica groups of its collectives, 0 where there are none
    operations: dict[str, Operation] = field(default_factory=dict)
    matmuls: list[Matmul] = field(default_factory=list)
    unknown_loops: list[str] = field(default_factory=list)  # loops whose trip count is unknown, counted once


_analysed: dict[bytes, "Module"] = {}
_REMEMBERED = 200_000  # instructions of all modules together, some hundred megabytes


def analyse(data: bytes) -> Module:
    """Analyses a serialised HloProto. Raises InputError where the bytes are none.

    The captures of a job carry the same programs again and again: each is analysed once, so do not change the result.
    """
    key = hashlib.blake2b(data, digest_size=16).digest()
    module = _analysed.get(key)
    if module is None:
        module = _analyse(data)
        while _analysed and sum(m.instructions for m in _analysed.values()) + module.instructions > _REMEMBERED:
            _analysed.pop(next(iter(_analysed)), None)
        _analysed[key] = module
    return module


def _analyse(data: bytes) -> Module:
    try:
        module = HLO["HloProto"].FromString(data).hlo_module
        return _Analysis(module).run()
    except (DecodeError, RecursionError, OverflowError) as error:
        raise InputError(f"not an HloProto: {error}", expected="the bytes of stat `Hlo Proto`") from error


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


class _Analysis:
    def __init__(self, module: Any):
        self.module = module
        self.computations = {c.id: c for c in module.computations}
        self.by_id = {i.id: i for c in module.computations for i in c.instructions}
        self._costs: dict[int, tuple[float, float, float]] = {}  # computation -> flops, recomputed flops, bytes
        self._order: list[int] = []  # computations, callees before callers
        self._inside: dict[int, str] = {}  # computation -> "", matmul or convolution: what it contains
        self._trips: dict[int, int] = {}
        self._chosen: dict[int, int] = {}  # conditional -> the costliest branch
        self.result = Module(_text(module.name))

    def run(self) -> Module:
        result = self.result
        fused = {
            c for comp in self.module.computations for i in comp.instructions if i.opcode == b"fusion"
            for c in i.called_computation_ids
        }  # fmt: skip
        entry = self.module.entry_computation_id
        if entry not in self.computations and self.computations:
            entry = list(self.computations)[-1]
        if entry in self.computations:
            result.flops, result.remat_flops, result.bytes = self.cost(entry)
        result.instructions = sum(len(c.instructions) for c in self.module.computations)
        for comp in self.module.computations:
            if comp.id not in fused:
                for instruction in comp.instructions:
                    operation = self.operation(instruction)
                    result.operations[operation.name] = operation
                    if operation.collective and operation.collective.groups:
                        result.devices = max(result.devices, len(set(chain(*operation.collective.groups))))
        runs = {entry: 1}
        for comp_id in reversed(self._order):
            for instruction in self.computations[comp_id].instructions:
                for callee, times in self.calls(instruction):
                    runs[callee] = runs.get(callee, 0) + runs.get(comp_id, 0) * times
        for comp_id, count in runs.items():
            for instruction in self.computations[comp_id].instructions if comp_id in self.computations else ():
                product = self.product(instruction)
                if product and count:
                    result.matmuls.append(self.matmul(instruction, product, count))
        return result

    def flops(self, instruction: Any) -> float:
        applied = []
        if _text(instruction.opcode) not in CALLERS and instruction.opcode not in (b"while", b"conditional"):
            applied = [self.cost(c)[0] for c in instruction.called_computation_ids if c in self.computations]
        return flops_of(instruction, self.operands(instruction), applied)

    def bytes(self, instruction: Any) -> float:
        called = instruction.called_computation_ids if instruction.opcode == b"fusion" else ()
        fused = self.computations.get(called[0]) if called else None
        return bytes_of(instruction, self.operands(instruction), fused)

    def product(self, instruction: Any) -> Product | None:
        return product_of(instruction, self.operands(instruction))

    def operands(self, instruction: Any) -> list[Any]:
        return [self.by_id[i] for i in instruction.operand_ids if i in self.by_id]

    def calls(self, instruction: Any) -> list[tuple[int, int]]:
        """(computation, times it runs) for what an instruction calls as a whole program, not once per element."""
        called = [c for c in instruction.called_computation_ids if c in self.computations]
        if instruction.opcode == b"while":
            trips = self._trips.get(instruction.id, 1)
            # XLA lists the body, then the condition.
            return [(c, trips if i == 0 else trips + 1) for i, c in enumerate(called)]
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
        for instruction in self.computations[comp_id].instructions:
            opcode = _text(instruction.opcode)
            if opcode == "while":
                self._trips[instruction.id] = self.trips(instruction)
            called = [c for c in instruction.called_computation_ids if c in self.computations]
            if opcode == "conditional" and called:
                self._chosen[instruction.id] = max(called, key=lambda c: self.cost(c)[:1])
            own = self.flops(instruction)
            part_again = own if self.is_remat(instruction) else 0.0
            for callee, times in self.calls(instruction):
                inner = self.cost(callee)
                own += inner[0] * times
                part_again += inner[1] * times
                if opcode not in ("fusion", "async-start"):
                    moved += inner[2] * times
                inside = inside or self._inside.get(callee, "")
            if product := self.product(instruction):
                inside = "matmul" if "matmul" in (inside, product.kind) else product.kind
            moved += self.bytes(instruction)
            flops += own
            again += min(part_again, own)
        self._costs[comp_id] = (flops, again, moved)
        self._inside[comp_id] = inside
        self._order.append(comp_id)
        return self._costs[comp_id]

    def is_remat(self, instruction: Any) -> bool:
        return b"rematted_computation" in instruction.metadata.op_name or b".remat" in instruction.name

    def trips(self, instruction: Any) -> int:
        """Trip count of a loop: as the compiler noted it, else from a comparison with a constant, else 1."""
        known = config_of(instruction).get("known_trip_count")
        try:
            if isinstance(known, dict) and int(known.get("n", -1)) >= 0:
                return int(known["n"])
        except (TypeError, ValueError):
            pass
        bounds = []
        for comp_id in instruction.called_computation_ids[1:]:
            for compare in self.find(comp_id, b"compare", set()):
                limit = [v for v in map(self.constant, self.operands(compare)) if v is not None]
                if limit and compare.comparison_direction in (b"LT", b"LE"):
                    bounds.append(limit[0] + (compare.comparison_direction == b"LE"))
        if len(bounds) == 1 and bounds[0] >= 0:
            return bounds[0]
        self.result.unknown_loops.append(_text(instruction.name))
        return 1

    def find(self, comp_id: int, opcode: bytes, seen: set[int]) -> Iterable[Any]:
        if comp_id in seen or comp_id not in self.computations:
            return
        seen.add(comp_id)
        for instruction in self.computations[comp_id].instructions:
            if instruction.opcode == opcode:
                yield instruction
            for callee in instruction.called_computation_ids:
                yield from self.find(callee, opcode, seen)

    def constant(self, instruction: Any) -> int | None:
        if instruction.opcode == b"parameter":  # of a fused comparison: what the fusion is given
            for caller in self.module.computations:
                for user in caller.instructions:
                    if user.opcode == b"fusion" and any(
                        instruction.id in (i.id for i in self.computations[c].instructions)
                        for c in user.called_computation_ids if c in self.computations
                    ):  # fmt: skip
                        given = self.operands(user)
                        if instruction.parameter_number < len(given):
                            return self.constant(given[instruction.parameter_number])
            return None
        values = [*instruction.literal.s32s, *instruction.literal.s64s]
        return values[0] if instruction.opcode == b"constant" and len(values) == 1 else None

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

    def collective(self, instruction: Any) -> Collective | None:
        found = collective_of(_text(instruction.opcode))
        wrapped = instruction
        if found is None and instruction.opcode == b"async-start":
            for comp_id in instruction.called_computation_ids:
                for inner in self.computations[comp_id].instructions if comp_id in self.computations else ():
                    if found := collective_of(_text(inner.opcode)):
                        found, wrapped = (found[0], "start"), inner
        if found is None:
            return None
        operands = self.operands(wrapped)
        if found[1] == "done":
            return Collective(found[0], "done", 0.0, None, None)
        groups = replica_groups(wrapped)
        if found[0] == "permute":
            groups = linked((p.source, p.target) for p in wrapped.source_target_pairs)
        return Collective(
            found[0], found[1], float(sum(size_bytes(o.shape) for o in operands)),
            dtype(operands[0].shape) if operands else None, groups,
        )  # fmt: skip

    def operation(self, instruction: Any) -> Operation:
        opcode = _text(instruction.opcode)
        flops, moved = self.flops(instruction), self.bytes(instruction)
        product = self.product(instruction)
        contraction = product.kind if product else ""
        if opcode in ("fusion", "async-start"):
            for callee in instruction.called_computation_ids:
                if callee in self.computations:
                    flops += self.cost(callee)[0]
                    contraction = contraction or self._inside.get(callee, "")
        container = opcode in ("while", "conditional", "call")
        collective = self.collective(instruction)
        return Operation(
            _text(instruction.name), opcode,
            "collective" if collective else category_of(opcode, contraction),
            None if container else flops, None if container else moved,
            shape_text(instruction.shape), self.source(instruction), collective,
        )  # fmt: skip

    def matmul(self, instruction: Any, product: Product, count: int) -> Matmul:
        left, right = (o.shape for o in self.operands(instruction)[:2])
        layout = f"{shape_text(left)} x {shape_text(right)} -> {shape_text(instruction.shape)}"
        return Matmul(
            _text(instruction.name), product, count, dtype(left), layout, self.is_remat(instruction),
            self.source(instruction),
        )  # fmt: skip

"""A program as columns, for who looks at one: instructions, computations, what feeds what, and its heap."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from collectors.device.hlo.attributes import attributes_text, given_text
from collectors.device.hlo.buffers import device_memory
from collectors.device.hlo.heap import heap_of
from collectors.device.hlo.module import Analysis
from collectors.device.hlo.shapes import HLO, dtype, shape_text, size_bytes
from errors import InputError
from runs.programs import PROGRAM_TABLES, Program

MAX_INSTRUCTIONS = 1_000_000  # some gigabytes while they are read
_INT64 = 1 << 63
_KINDS = {"fusion": ("fusion",), "while": ("body", "condition"), "conditional": ("called",), "call": ("called",)}
_CALLED = ("async-start", "custom-call")


def program_of(data: bytes) -> Program:
    """The columns of a serialised HloProto. Raises InputError where the bytes are none, or too many."""
    try:
        proto = HLO["HloProto"].FromString(data)
        count = sum(len(c.instructions) for c in proto.hlo_module.computations)
        if not 0 < count <= MAX_INSTRUCTIONS:
            raise InputError(
                f"a program of {count:,} instructions", expected=f"one with 1 to {MAX_INSTRUCTIONS:,} of them"
            )
        return _Columns(proto).program()
    except (DecodeError, RecursionError, OverflowError) as error:
        raise InputError(f"not an HloProto: {error}", expected="a program as the profiler wrote it") from error


class _Columns:
    def __init__(self, proto: Any):
        self._proto = proto
        self._module = module = proto.hlo_module
        self._analysis = Analysis(module)
        self._told = self._analysis.run()
        self._entry = self._analysis.entry
        self._runs = self._analysis.runs(self._entry)
        self._names = {c.id: _text(c.name) for c in module.computations}
        self._places = {c.id: n for n, c in enumerate(module.computations)}
        self._instructions = [(n, c, i) for n, c in enumerate(module.computations) for i in c.instructions]
        self._numbers = {i.id: n for n, (_, _, i) in enumerate(self._instructions)}
        self._called_by = self._kinds()

    def program(self) -> Program:
        heap, arenas, events = heap_of(self._proto, self._analysis.describe)
        memory = device_memory(self._proto, self._analysis.describe, {})
        rows = {
            "instructions": self._rows(),
            "computations": self._computations(),
            "operands": self._operands(),
            "calls": self._calls(),
            "heap": heap,
            "heap_events": events,
        }
        return Program(
            name=_text(self._module.name),
            scheduled=self._module.HasField("schedule"),
            entry=self._places.get(self._entry, 0),
            tables={name: _table(name, list(found)) for name, found in rows.items()},
            memory_bytes=memory.peak if memory else None,
            arenas=arenas,
        )

    def _kinds(self) -> dict[int, str]:
        """What each computation is to those that call it."""
        kinds: dict[int, str] = {}
        for _, _, i in self._instructions:
            opcode = _text(i.opcode)
            words = _KINDS.get(opcode, ("called",) if opcode in _CALLED else ("applied",))
            for n, comp_id in enumerate(i.called_computation_ids):
                kinds.setdefault(comp_id, words[min(n, len(words) - 1)])
        return kinds | {self._entry: "entry"}

    def _computations(self) -> Iterator[dict[str, Any]]:
        first = 0
        for c in self._module.computations:
            kind = self._called_by.get(c.id, "called")
            yield {"name": _text(c.name), "kind": kind, "first": first, "instructions": len(c.instructions)}
            first += len(c.instructions)

    def _rows(self) -> Iterator[dict[str, Any]]:
        names = {i.id: _text(i.name) for _, _, i in self._instructions}
        truths = {i.id for _, _, i in self._instructions if dtype(i.shape) == "pred"}
        within = self._within_elements()
        for place, comp, i in self._instructions:
            executed = self._called_by.get(comp.id) not in ("fusion", "applied") and comp.id not in within
            yield self._row(place, comp, i, executed) | {"attributes": attributes_text(i, self._names, names, truths)}

    def _within_elements(self) -> set[int]:
        """Computations below fusions, below what is applied to elements, and in an asynchronous operation, which stands
        for what it wraps: no device executes them as operations."""
        waiting = [c for c, kind in self._called_by.items() if kind in ("fusion", "applied")]
        waiting += self._analysis.reached_from(b"async-start")
        found: set[int] = set()
        while waiting:
            comp = self._analysis.computations.get(waiting.pop())
            if comp is not None and comp.id not in found:
                found.add(comp.id)
                waiting += [c for i in comp.instructions for c in i.called_computation_ids]
        return found

    def _row(self, place: int, comp: Any, i: Any, executed: bool) -> dict[str, Any]:
        told = self._analysis.operation(i, 0)
        size, count = size_bytes(i.shape), self._runs.get(comp.id, 0)
        return {
            "computation": place,
            "name": told.name,
            "opcode": told.opcode,
            "category": told.category,
            "shape": shape_text(i.shape),
            "result_bytes": _fit(size),
            "flops": told.flops,
            "bytes": told.bytes if executed else None,
            "count": _fit(count),
            "trip_count": _fit(self._analysis.trips_of(i)),
            "executed": executed,
            "root": i.id == comp.root_id,
            "op_name": _text(i.metadata.op_name) or None,
            "source": told.source,
            "fusion_kind": _text(i.fusion_kind) or None,
            "given": given_text(i),
            "backend": _text(i.backend_config) or None,
        }

    def _operands(self) -> Iterator[dict[str, Any]]:
        for n, (_, _, i) in enumerate(self._instructions):
            for position, operand in enumerate(i.operand_ids):
                if operand in self._numbers:
                    yield {"instruction": n, "position": position, "operand": self._numbers[operand]}

    def _calls(self) -> Iterator[dict[str, Any]]:
        for n, (_, _, i) in enumerate(self._instructions):
            for position, comp_id in enumerate(i.called_computation_ids):
                if comp_id in self._places:
                    yield {"instruction": n, "position": position, "computation": self._places[comp_id]}


def _fit(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < _INT64 else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    columns = {c.name: [row[c.name] for row in rows] for c in PROGRAM_TABLES[name].columns}
    return pa.Table.from_batches([PROGRAM_TABLES[name].batch(columns)])

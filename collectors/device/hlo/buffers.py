"""What a program holds in device memory when it needs most, from the compiler's buffer assignment.

An `HloProto` carries the assignment beside the module (field 3): allocations, the values placed in them, and for the
one that temporaries share a trace of when each begins and ends to be needed. TPU, GPU and CPU profiles have it;
serialised executables and dumps of a module alone do not.

`peak` is the sum of all allocations in device memory: inputs, results that do not reuse them, constants, and the
arena of temporaries, which is as large as the compiler's packing needs. Buffers are those alive when the arena is
fullest; what the packing leaves unused at that moment is `fragmentation`. Where no trace came with the assignment, a
place counts as the largest value that it ever holds. A trace may name another allocation than the one that holds its
values, as XLA's for CPU do: it is that of the values.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from collectors.device.hlo.layouts import HOST, at_index, is_tiled
from collectors.device.hlo.lifetimes import FREE, SHARE, Backward
from collectors.device.hlo.shapes import TUPLE, shape_text, size_bytes

CATEGORIES = ("argument", "output", "constant", "temporary", "fragmentation")
SMALLER = "smaller buffers"
SHOWN = 200


@dataclass(frozen=True)
class Buffer:
    """A buffer at the peak. `bytes`: logical; `padded_bytes`: as placed by the compiler; `name`: the framework's.

    `copies`: of an argument, devices that hold the same piece of it, this one included; None where that is not told.
    `reused`: of an argument, whether a result takes its place, as of a donated one; None of others.
    `awaits_backward`: of a temporary, whether the backward pass uses it or runs while it lives; None where no trace
    tells, and of others.
    """

    name: str
    category: str
    bytes: int
    padded_bytes: int
    shape: str | None = None
    op: str | None = None
    source: str | None = None
    copies: int | None = None
    reused: bool | None = None
    awaits_backward: bool | None = None


@dataclass(frozen=True)
class DeviceMemory:
    """What one device holds for a program, in bytes as placed: `peak` = arguments + outputs + temporaries.

    `temporaries` include constants. `host`: bytes of arguments, results and temporaries in the host's memory.
    `buffers`: the largest at the peak, the others of a category as one; their `padded_bytes` add up to `peak`.
    """

    arguments: int
    outputs: int
    temporaries: int
    peak: int
    host: int
    buffers: tuple[Buffer, ...]


Describe = Callable[[Any], tuple[str, str | None]]
Fullest = tuple[Any, int, int]  # trace, events of it until an allocation is fullest, bytes then


def device_memory(
    proto: Any, describe: Describe, copies: Mapping[str, int | None], shown: int = SHOWN
) -> DeviceMemory | None:
    """The buffers of an `HloProto` message at its peak; None where it carries no assignment.

    `describe(instruction)`: the framework's name for what an instruction computes, and its source line. `copies`: by
    instruction name, for inputs.
    """
    assignment = proto.buffer_assignment
    if not assignment.buffer_allocations:
        return None
    reader = Assigned(proto, describe, copies)
    sizes: Counter[str] = Counter()
    buffers: list[Buffer] = []
    host = 0
    for allocation in assignment.buffer_allocations:
        if allocation.is_thread_local or allocation.size <= 0:
            continue
        if allocation.color == HOST:
            host += allocation.size
        elif reader.on_device(allocation):
            found = reader.of_allocation(allocation)
            buffers += found
            sizes[category_of_allocation(allocation)] += sum(b.padded_bytes for b in found)
    return DeviceMemory(
        sizes["argument"],
        sizes["output"],
        sizes["temporary"] + sizes["constant"],
        sum(sizes.values()),
        host,
        tuple(_largest(buffers, shown)),
    )


def category_of_allocation(allocation: Any) -> str:
    if allocation.is_entry_computation_parameter:
        return "argument"
    return "output" if allocation.maybe_live_out else "constant" if allocation.is_constant else "temporary"


def _largest(buffers: Iterable[Buffer], shown: int) -> Iterable[Buffer]:
    """The largest buffers, and one for the rest of each category."""
    ordered = sorted(buffers, key=lambda b: -b.padded_bytes)
    yield from ordered[:shown]
    for category in CATEGORIES:
        rest = [b for b in ordered[shown:] if b.category == category]
        if rest:
            yield Buffer(SMALLER, category, sum(b.bytes for b in rest), sum(b.padded_bytes for b in rest))


class Assigned:
    """The buffer assignment of an `HloProto` message, with the instructions that make its values."""

    def __init__(self, proto: Any, describe: Describe, copies: Mapping[str, int | None]):
        self._describe = describe
        self._copies = copies
        self._values = {b.id: b for b in proto.buffer_assignment.logical_buffers}
        self._traces = _by_allocation(proto.buffer_assignment)
        instructions = [i for c in proto.hlo_module.computations for i in c.instructions]
        self._by_id = {i.id: i for i in instructions}
        self._by_name = {i.name: i for i in instructions}
        self._instructions = instructions
        self._backward = Backward(instructions)
        entry = proto.hlo_module.entry_computation_id
        self._inputs = {
            i.id
            for c in proto.hlo_module.computations
            if c.id == entry
            for i in c.instructions
            if i.opcode == b"parameter"
        }

    @cached_property
    def _tpu(self) -> bool:
        return any(is_tiled(i.shape) for i in self._instructions)

    def on_device(self, allocation: Any) -> bool:
        """Colour 0 is device memory; other colours are on-chip memories of a TPU, but parts of a GPU's own memory."""
        return allocation.color == 0 or (not self._tpu and allocation.color != HOST)

    def shared(self, allocation: Any) -> bool:
        """Whether values take turns in it."""
        return category_of_allocation(allocation) in ("temporary", "output") and len(allocation.assigned) > 1

    def of_allocation(self, allocation: Any) -> list[Buffer]:
        """Buffers that fill an allocation at its fullest; their `padded_bytes` add up to its size."""
        category = category_of_allocation(allocation)
        fullest = self.fullest(allocation) if self.shared(allocation) else None
        if self.shared(allocation):
            live = self._alive(allocation, fullest) or self._places(allocation)
        else:
            live = self._largest_value(allocation)
        awaiting = self._awaiting(fullest, live) if category == "temporary" else None
        found, room = [], allocation.size
        for value, size in live:
            if 0 < size <= room:
                buffer = self.buffer(value, size, category)
                found.append(buffer if awaiting is None else replace(buffer, awaits_backward=value in awaiting))
                room -= size
        if room and len(found) == 1 and category != "temporary":
            found = [replace(found[0], padded_bytes=allocation.size)]
        elif room:
            found.append(Buffer("room between buffers", "fragmentation", 0, room))
        if category == "argument":
            found = [replace(b, reused=allocation.maybe_live_out) if b.category == category else b for b in found]
        return found

    def _awaiting(self, fullest: Fullest | None, live: list[tuple[int, int]]) -> set[int] | None:
        """Which of the values the backward pass needs; None where no trace tells."""
        if fullest is None:
            return None
        makers = {value: made for value, _ in live if (made := self._maker(value)) is not None}
        return self._backward.needing(fullest[0], makers)

    def _largest_value(self, allocation: Any) -> list[tuple[int, int]]:
        """(value, bytes) of what fills an allocation that holds one thing. Of several as large (results may take the
        place of an input, in a loop each round's) it is the input."""
        found = [(a.size, self._is_input(a.logical_buffer_id), a.logical_buffer_id) for a in allocation.assigned]
        most = max(found, key=lambda v: v[:2], default=None)
        return [(most[2], most[0])] if most else []

    def _is_input(self, value: int) -> bool:
        made = self._maker(value)
        return made is not None and made.id in self._inputs

    def fullest(self, allocation: Any) -> Fullest | None:
        """(trace, events of it until the allocation is fullest, bytes then); None where no trace tells of it."""
        sizes = sizes_of(allocation)
        peaks = [(trace, *_peak(trace, sizes)) for trace in self._traces.get(allocation.index, ())]
        return max((p for p in peaks if p[2] > 0), key=lambda p: p[2], default=None)

    def _alive(self, allocation: Any, fullest: Fullest | None) -> list[tuple[int, int]]:
        """(value, bytes) that are alive at the fullest moment, from the trace; empty where there is none."""
        if fullest is None:
            return []
        sizes = sizes_of(allocation)
        alive = sorted(_replay(*fullest[:2]).items(), key=lambda v: -sizes.get(v[0], 0))
        return [(value, sizes[value]) for value, _ in alive if value in sizes]

    def _places(self, allocation: Any) -> list[tuple[int, int]]:
        """(value, bytes) of the largest values whose places in the allocation do not overlap."""
        found = []
        ordered = sorted(allocation.assigned, key=lambda a: (-a.size, a.offset))
        cells: dict[int, list[tuple[int, int]]] = {}  # places by coarse position, so that thousands stay quick
        width = max(allocation.size // 4096, 1)
        for a in ordered:
            end = a.offset + a.size
            if a.size <= 0 or a.offset < 0 or end > allocation.size:
                continue
            reach = range(a.offset // width, (end - 1) // width + 1)
            if any(low < end and a.offset < high for cell in reach for low, high in cells.get(cell, ())):
                continue
            for cell in reach:
                cells.setdefault(cell, []).append((a.offset, end))
            found.append((a.logical_buffer_id, a.size))
        return found

    def _maker(self, value: int) -> Any:
        """The instruction that makes a value; None where nothing tells."""
        if value not in self._values:
            return None
        at = self._values[value].defined_at
        return self._by_id.get(at.instruction_id) or self._by_name.get(at.instruction_name)

    def buffer(self, value: int, size: int, category: str) -> Buffer:
        instruction = self._maker(value)
        if instruction is None:
            return Buffer(f"buffer {value}", category, size, size)
        at = self._values[value].defined_at
        name, source = self._describe(instruction)
        shape = at_index(instruction.shape, at.shape_index)
        op = instruction.name.decode("utf-8", "replace")
        copies = self._copies.get(op) if category == "argument" else None
        if shape is None or shape.element_type == TUPLE:
            return Buffer(name, category, size, size, None, op, source)
        return Buffer(name, category, min(size_bytes(shape), size), size, shape_text(shape), op, source, copies)


def sizes_of(allocation: Any) -> dict[int, int]:
    """Bytes of each value in an allocation, by its number."""
    return {a.logical_buffer_id: a.size for a in allocation.assigned}


def _by_allocation(assignment: Any) -> dict[int, list[Any]]:
    """Traces by the number of the allocation that holds their values: mostly the one that they name."""
    homes = {a.logical_buffer_id: n.index for n in assignment.buffer_allocations for a in n.assigned}
    found: dict[int, list[Any]] = {}
    for trace in assignment.heap_simulator_traces:
        told = Counter(homes[e.buffer_id] for e in trace.events if e.buffer_id in homes)
        named = trace.buffer_allocation_index
        home = max(told, key=lambda n: (told[n], n == named), default=named)
        found.setdefault(home, []).append(trace)
    return found


def _peak(trace: Any, sizes: dict[int, int]) -> tuple[int, int]:
    """(events until the fullest moment, bytes then) of a trace."""
    users: Counter[int] = Counter()
    owner: dict[int, int] = {}
    now = top = at = 0
    for n, event in enumerate(trace.events, 1):
        value = event.buffer_id
        if event.kind == FREE:
            holder = owner.pop(value, value)
            users[holder] -= 1
            if users[holder] == 0:
                now -= sizes.get(holder, 0)
            continue
        holder = event.share_with_canonical_id if event.kind == SHARE else value
        owner[value] = holder
        users[holder] += 1
        if users[holder] == 1:
            now += sizes.get(holder, 0)
        if now > top:
            top, at = now, n
    return at, top


def _replay(trace: Any, until: int) -> dict[int, int]:
    """Values in memory after so many events of a trace, with how many share each."""
    users: Counter[int] = Counter()
    owner: dict[int, int] = {}
    for event in trace.events[:until]:
        value = event.buffer_id
        if event.kind == FREE:
            users[owner.pop(value, value)] -= 1
        else:
            owner[value] = event.share_with_canonical_id if event.kind == SHARE else value
            users[owner[value]] += 1
    return {value: n for value, n in users.items() if n > 0}

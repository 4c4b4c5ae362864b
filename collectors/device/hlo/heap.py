"""When each value of a program is in device memory: from the compiler's trace of its own packing.

The trace is a list of events in the order in which the program runs: a value is made, is gone, or shares the place of
another. An allocation that values take turns in (an arena) has one; whatever else a program holds, its inputs, results
and constants, it holds from its first event to its last.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from collectors.device.hlo.buffers import (
    Assigned,
    Buffer,
    Describe,
    category_of_allocation,
    sizes_of,
)
from collectors.device.hlo.layouts import HOST
from collectors.device.hlo.lifetimes import lifetimes


def heap_of(proto: Any, describe: Describe) -> tuple[list[dict[str, Any]], dict[int, int], list[dict[str, Any]]]:
    """(rows of `heap`, bytes of each arena by number, rows of `heap_events`) of an `HloProto` message."""
    reader = Assigned(proto, describe, {})
    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    arenas: dict[int, int] = {}
    for allocation in proto.buffer_assignment.buffer_allocations:
        if allocation.is_thread_local or allocation.size <= 0 or allocation.color == HOST:
            continue
        if not reader.on_device(allocation):
            continue
        trace = _trace(reader, allocation)
        if trace is None:
            found = reader.of_allocation(allocation)
            rows += (_row(b, allocation, b.padded_bytes, None) for b in found)
            continue
        arenas[allocation.index] = allocation.size
        rows += _over_time(reader, allocation, trace)
        events += _events(allocation, trace)
    return rows, arenas, events


def _trace(reader: Assigned, allocation: Any) -> Any:
    """The trace of an arena; None where there is none, or one that does not fit into it."""
    found = reader.fullest(allocation) if reader.shared(allocation) else None
    if found is None or max(found[2], _most(found[0], sizes_of(allocation))) > allocation.size:
        return None
    return found[0]


def _most(trace: Any, sizes: dict[int, int]) -> int:
    """The most bytes that lifetimes hold at once."""
    change: Counter[int] = Counter()
    for value, start, end in lifetimes(trace):
        change[start] += sizes.get(value, 0)
        change[end] -= sizes.get(value, 0)
    return max(accumulate(change[n] for n in sorted(change)), default=0)


def _over_time(reader: Assigned, allocation: Any, trace: Any) -> Iterator[dict[str, Any]]:
    sizes = sizes_of(allocation)
    category = category_of_allocation(allocation)
    for value, start, end in lifetimes(trace):
        if sizes.get(value, 0) > 0:
            yield _row(reader.buffer(value, sizes[value], category), allocation, sizes[value], (start, end))


def _row(buffer: Buffer, allocation: Any, size: int, when: tuple[int, int] | None) -> dict[str, Any]:
    return {
        "name": buffer.name,
        "op": buffer.op,
        "shape": buffer.shape,
        "source": buffer.source,
        "category": buffer.category,
        "bytes": size,
        "start": when[0] if when else None,
        "end": when[1] if when else None,
        "allocation": allocation.index,
    }


def _events(allocation: Any, trace: Any) -> Iterator[dict[str, Any]]:
    for n, event in enumerate(trace.events, 1):
        name = event.instruction_name.decode("utf-8", "replace") or None
        yield {"allocation": allocation.index, "event": n, "op": name}

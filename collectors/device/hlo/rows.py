"""Rows of an analysed module: its matrix products, its collectives, and what it holds in device memory."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from collectors.base import Rows
from collectors.device.hlo.analysed import Module
from collectors.device.hlo.collectives import ProgramCollective
from collectors.device.xplane.arrays import batch

INT64 = 1 << 63
_IDLE = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "after-all",
    "while",
    "conditional",
    "call",
    "partition-id",
    "replica-id",
    "opt-barrier",
    "add-dependency",
    "domain",
}
_STARTS = {"async-start", "copy-start", "send", "recv"}
_DONE = re.compile(r"-(done|update)$")
AxisOf = Callable[[ProgramCollective], str | None]


def program_rows(
    capture: int, program: int | None, name: str, module: Module, axis: AxisOf | None = None, runs: int = 1
) -> Iterator[Rows]:
    """Rows of `matmuls`, `program_collectives` and `memory`.

    `axis` tells along which mesh axis a collective runs; `runs` multiplies executions.
    """
    fixed = {"capture": capture, "program": program, "module": name}
    yield from table("matmuls", fixed, (_matmul(m, runs) for m in module.matmuls))
    yield from table("program_collectives", fixed, (_collective(c, axis, runs) for c in module.collectives))
    fixed.pop("module")
    yield from table("memory", fixed, _memory(module))


def compiled_rows(
    capture: int, program: int, name: str, module: Module, runs: int, axis: AxisOf | None
) -> Iterator[Rows]:
    """Rows of a program that nobody timed: as `program_rows`, and its instructions as `ops`, per `runs` executions.

    `ops.count` is executions with trip counts multiplied; instructions that only pass values on, or end what another
    began, have no row.
    """

    def ops() -> Iterator[dict[str, Any]]:
        for number, found in enumerate(module.operations.values()):
            count = _counted(found.count, runs)
            if found.count == 0 or not _fits(count) or found.opcode in _IDLE or _DONE.search(found.opcode):
                continue
            part = found.collective.part if found.collective else ""
            if part == "done":
                continue
            yield {
                "op_id": (program << 32) + number,
                "op": found.name,
                "role": "async" if part == "start" or found.opcode in _STARTS else "compute",
                "category": found.category,
                "count": count,
                "flops": found.flops,
                "bytes": found.bytes,
                "cycles": found.cycles,
                "source": found.source,
                "shape": found.shape,
                "scope": found.scope.path,
                "direction": found.scope.direction,
            }

    fixed = {"capture": capture, "program": program, "module": name, "line": "program"}
    yield from table("ops", fixed, ops())
    yield from program_rows(capture, program, name, module, axis, runs)


def table(name: str, fixed: dict[str, Any], rows: Iterable[dict[str, Any] | None]) -> Iterator[Rows]:
    """Rows of one table from dictionaries with the same keys; `fixed`: columns of one value. None is passed over."""
    kept = [row for row in rows if row is not None]
    if kept:
        columns = {key: [row[key] for row in kept] for key in kept[0]}
        columns |= {key: [value] * len(kept) for key, value in fixed.items()}
        yield Rows(name, batch(name, columns))


def _counted(count: int | None, runs: int) -> int | None:
    return None if count is None else count * runs


def _fits(value: int | None) -> bool:
    return value is None or 0 <= value < INT64


def _matmul(found: Any, runs: int) -> dict[str, Any] | None:
    product = found.product
    row = {key: getattr(product, key) for key in ("m", "k", "n", "batch")} | {"count": _counted(found.count, runs)}
    if not all(map(_fits, row.values())):
        return None
    row |= {key: getattr(found, key) for key in ("op", "within", "dtype", "layout", "remat", "source")}
    return row | {"convolution": product.kind == "convolution"}


def _collective(found: ProgramCollective, axis: AxisOf | None, runs: int) -> dict[str, Any] | None:
    groups = found.groups
    count = _counted(found.count, runs)
    if not _fits(count):
        return None
    return {
        "op": found.op,
        "kind": found.kind,
        "axis": axis(found) if axis else None,
        "groups": len(groups or ()) or 1,
        "group_size": max(map(len, groups)) if groups else None,
        "bytes": found.bytes,
        "dtype": found.dtype,
        "count": count,
        "asynchronous": found.asynchronous,
        "source": found.source,
    }


def _memory(module: Module) -> Iterator[dict[str, Any]]:
    """The totals at the peak, `bytes` without padding, and the buffers that make them up."""
    memory = module.memory
    if memory is None or not 0 < memory.peak < INT64:
        return
    shares: dict[str, int] = {}
    for buffer in memory.buffers:
        shares[buffer.category] = shares.get(buffer.category, 0) + buffer.bytes
    rest = sum(n for category, n in shares.items() if category not in ("argument", "output"))
    totals = (
        ("arguments", shares.get("argument", 0), memory.arguments),
        ("outputs", shares.get("output", 0), memory.outputs),
        ("temporaries", rest, memory.temporaries),
        ("peak", sum(shares.values()), memory.peak),
    )
    nothing = dict.fromkeys(("name", "category", "shape", "op", "source", "copies", "reused", "awaits_backward"))
    for kind, logical, padded in totals:
        yield {"kind": kind, "bytes": logical, "padded_bytes": padded} | nothing
    for b in memory.buffers:
        yield {
            "kind": "peak_buffer",
            "bytes": b.bytes,
            "padded_bytes": b.padded_bytes,
            "name": b.name,
            "category": b.category,
            "shape": b.shape,
            "op": b.op,
            "source": b.source,
            "copies": b.copies,
            "reused": b.reused,
            "awaits_backward": b.awaits_backward,
        }

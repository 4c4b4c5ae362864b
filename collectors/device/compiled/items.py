"""A compiled program as rows, facts and blobs."""

from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Lost, Source
from collectors.device.compiled.contract import HLO_LIMIT_BYTES, MEMORY, Compiled, Program, parse
from collectors.device.hlo.analysed import Module
from collectors.device.hlo.axes import Mesh
from collectors.device.hlo.kept import kept
from collectors.device.hlo.module import analyse, as_hlo_proto
from collectors.device.hlo.rows import INT64, AxisOf, compiled_rows, table
from collectors.device.hlo.texts import hlo_proto_of_text
from errors import InputError

FILE_LIMIT_BYTES = 1 << 29
TEXT_LIMIT_BYTES = 1 << 26
TEXT = b"HloModule "
_ANSWERED = (
    "compiler",
    "jax",
    "compiler_flags",
    "compile_s",
    "rule",
)  # facts that the compile step found; the others were asked for


def items(source: Source) -> Iterator[Item]:
    """The programs as rows, facts and blobs. Raises InputError for what is no such file or goes beyond the limits."""
    head = source.head
    if head.lstrip()[:1] in (b"{", b"\xef"):
        yield from _compiled(parse(_bytes(source, FILE_LIMIT_BYTES), source.name), source)
        return
    text = head.startswith(TEXT)
    data = _bytes(source, TEXT_LIMIT_BYTES if text else HLO_LIMIT_BYTES)
    proto = hlo_proto_of_text(data, source.name) if text else as_hlo_proto(data)
    module = _analysed(proto, source.name)
    yield Fact("kind", "compiled", "declared")
    yield Fact("outcome", "compiled", "measured")
    yield from _module(module, proto, module.name, source.index, 0, 1, None)
    yield from table("memory", {"capture": source.index, "program": 0}, _argument_rows(module, None))


def _bytes(source: Source, limit: int) -> bytes:
    with source.open() as f:
        data = f.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"longer than {limit:,} bytes", where=source.name, expected="a compiled program")
    return data


def _analysed(proto: bytes, where: str) -> Module:
    try:
        module = analyse(proto)
    except InputError as error:
        raise InputError(error.what, where=where, expected="a serialised HloProto or HloModuleProto") from error
    if not module.instructions:
        raise InputError("no HLO module with instructions", where=where, expected="a compiled program")
    return module


def _compiled(said: Compiled, source: Source) -> Iterator[Item]:
    modules: list[tuple[Module, bytes] | None] = []
    for program in said.programs:
        proto = program.proto(source.name)
        if proto is not None:
            proto = as_hlo_proto(proto)
        where = f"{source.name}: program {program.name!r}"
        modules.append(None if proto is None else (_analysed(proto, where), proto))
    yield from _facts(said)
    capture = source.index
    if said.limit_bytes is not None:
        yield from table("memory", {"capture": capture}, [{"kind": "bytes_limit", "bytes": said.limit_bytes}])
    axis = Mesh(said.mesh, said.devices).axis if said.mesh else None
    for number, (program, found) in enumerate(zip(said.programs, modules, strict=True)):
        module = found[0] if found else None
        if found:
            shapes = program.matmuls is None
            yield from _module(*found, program.name, capture, number, program.runs_per_step, axis, matmuls=shapes)
        fixed = {"capture": capture, "program": number}
        yield from table("matmuls", fixed | {"module": program.name}, _matmul_rows(program))
        if module is None or module.memory is None:
            yield from table("memory", fixed, _totals(program))
        yield from table("memory", fixed, _argument_rows(module, program))


def _facts(said: Compiled) -> Iterator[Fact]:
    yield Fact("kind", "compiled", "declared")
    for name, value in said.facts.items():
        if name not in ("kind", "outcome", "fits", "message", "needed_bytes", "limit_bytes"):
            yield Fact(name, value, "measured" if name in _ANSWERED else "declared")
    yield Fact("outcome", said.outcome, "measured")
    yield Fact("fits", said.outcome == "compiled", "derived")
    flops = [p.model_flops * p.runs_per_step for p in said.programs if p.model_flops is not None]
    answers = {
        "message": said.message or None,
        "needed_bytes": said.needed_bytes,
        "limit_bytes": said.limit_bytes,
        "model_flops_per_step": sum(flops) if flops else None,
    }
    for name, value in answers.items():
        if value is not None:
            yield Fact(name, value, "derived" if name == "model_flops_per_step" else "measured")


def _module(
    module: Module,
    proto: bytes,
    name: str,
    capture: int,
    number: int,
    runs: int,
    axis: AxisOf | None,
    matmuls: bool = True,
) -> Iterator[Item]:
    yield (blob := kept(proto))
    yield from table(
        "modules",
        {"capture": capture, "program": number},
        [
            {
                "name": name,
                "file": blob.name,
                "flops": module.flops,
                "remat_flops": module.remat_flops,
                "bytes": module.bytes,
                "instructions": module.instructions,
                "runs_per_step": runs,
            }
        ],
    )
    if module.unknown_loops:
        yield Lost(
            f"the trip count of {len(module.unknown_loops)} loops of program {name}",
            "neither the compiler nor the program tells it, so what they hold is not summed: "
            + ", ".join(module.unknown_loops[:5]),
        )
    for rows in compiled_rows(capture, number, name, module, runs, axis):
        if matmuls or rows.table != "matmuls":
            yield rows


def _matmul_rows(program: Program) -> Iterator[dict[str, Any]]:
    for row in program.matmuls or ():
        if (count := row["count"] * program.runs_per_step) < INT64:
            yield row | {"count": count}


def _totals(program: Program) -> Iterator[dict[str, Any]]:
    """The compiler's own account of one device, padded; outputs less those that reuse the memory of inputs, and a peak
    of at most all that it lays out in main memory: a TPU compiler's counts what lies in on-chip memory as well."""
    held = dict(program.memory)
    aliased = held.pop("aliased") or 0
    if held["outputs"] is not None:
        held["outputs"] = max(held["outputs"] - aliased, 0)
    laid_out = [size for kind in ("arguments", "outputs", "temporaries") if (size := held[kind]) is not None]
    if held["peak"] is not None and len(laid_out) == 3:
        held["peak"] = min(held["peak"], sum(laid_out))
    for kind in MEMORY:
        if held.get(kind) is not None:
            yield {"kind": kind, "bytes": None, "padded_bytes": held[kind]}


def _argument_rows(module: Module | None, program: Program | None) -> Iterator[dict[str, Any]]:
    """One row per input. Sizes come from the program's own layouts, names from what was asked, where both agree."""
    told = program.arguments if program else ()
    if module is None:
        for a in told:
            yield {
                "kind": "argument",
                "name": a.name,
                "bytes": a.bytes,
                "padded_bytes": None,
                "shape": a.shape,
                "op": None,
                "copies": None,
            }
        return
    named = len(told) == len(module.arguments)
    for n, a in enumerate(module.arguments):
        if 0 <= a.bytes < INT64 and a.padded_bytes < INT64:
            yield {
                "kind": "argument",
                "name": told[n].name if named else a.name,
                "bytes": a.bytes,
                "padded_bytes": a.padded_bytes,
                "shape": a.shape,
                "op": a.op,
                "copies": a.copies,
            }

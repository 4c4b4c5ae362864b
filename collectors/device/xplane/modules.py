"""The compiled programs that a trace carries: kept as they are, analysed, listed with their matrix products."""

import re
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from collectors.base import Item, Lost, Rows
from collectors.device.hlo.kept import kept
from collectors.device.hlo.module import analyse
from collectors.device.hlo.rows import program_rows
from collectors.device.xplane.arrays import batch
from collectors.device.xplane.ops import Programs, signed
from collectors.device.xplane.planes import STAT_NAME, XPLANE, PlaneIndex, text
from collectors.device.xplane.wire import Window
from errors import InputError

_ANALYSED_BYTES = 1 << 28  # a larger module is kept but not analysed: as a message it would take gigabytes
_PROGRAM = re.compile(r"\((\d{1,20})\)$")


def modules_of(window: Window, index: PlaneIndex, capture: int, programs: Programs) -> Iterator[Item]:
    """HLO modules in a plane's metadata as blobs, rows of `modules` and `matmuls`, and entries of `programs`.

    One module at a time is in memory.
    """
    names, damaged = window.names(index.stat_names, STAT_NAME)
    if damaged:
        yield Lost(f"{damaged} names of plane {index.name!r}", "their metadata are damaged", index.start)
    for start, length in index.events.tolist():
        try:
            meta = XPLANE["EventEntry"].FromString(window.bytes(start, length)).value
        except DecodeError:
            yield Lost(f"a program of plane {index.name!r}", "damaged", start)
            continue
        proto = program = None
        for stat in meta.stats:
            name = names.get(stat.metadata_id, b"").lower()
            if name in (b"hlo proto", b"hlo_proto") and stat.HasField("bytes_value"):
                proto = stat.bytes_value
            elif name == b"program_id":
                program = stat.uint64_value if stat.HasField("uint64_value") else stat.int64_value
        if proto is not None and not programs.seen(program, proto):
            yield from _module(capture, programs, text(meta.name), program, proto, start)


def _module(
    capture: int, programs: Programs, title: str, program: int | None, proto: bytes, offset: int
) -> Iterator[Item]:
    if program is None and (match := _PROGRAM.search(title)):
        program = int(match[1])
    name = _PROGRAM.sub("", title)
    program = None if program is None else signed(program)
    yield (blob := kept(proto))
    module = None
    if len(proto) > _ANALYSED_BYTES:
        yield Lost(f"the analysis of module {title}", f"its {len(proto):,} bytes are too many; it is kept", offset)
    else:
        try:
            module = analyse(proto)
        except InputError as error:
            yield Lost(f"the analysis of module {title}", error.what, offset)
    name = module.name if module and module.name else name
    programs.add(program, name, module)
    columns = {"capture": [capture], "program": [program], "name": [name], "file": [blob.name]}
    if module:
        for column in ("flops", "remat_flops", "bytes", "instructions"):
            columns[column] = [getattr(module, column)]
    yield Rows("modules", batch("modules", columns))
    if module and module.unknown_loops:
        yield Lost(
            f"the trip count of {len(module.unknown_loops)} loops of module {name}",
            "neither the compiler nor the program tells it, so what they hold is not summed: "
            + ", ".join(module.unknown_loops[:5]),
            offset,
        )
    if module:
        yield from program_rows(capture, program, name, module)

"""Collectives as traces print them: HLO text in the name of an operation, for traces that keep no module."""

import re
from math import prod

from collectors.device.hlo.names import COLLECTIVES, collective_of
from collectors.device.hlo.shapes import HLO, Collective, Groups, iota_devices, linked, mesh_groups, type_bytes

_NAME = re.compile(r"%?([\w.\-]+) = ")
_ASYNC_FUSION = re.compile(r"async-collective-(start|done)(?:\.[\w.]+)?$")
_DOES = re.compile(r" ([a-z][a-z\-]*)\((?=[a-z(%])(.*)")  # opcode, operands and attributes
_OPERAND = re.compile(r"\b(pred|[suf]\d\w*+|bf16|c64|c128)\[([\d,]*)\]")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTED = re.compile(r"replica_groups=\{(\{[\d,{} ]*\})\}")
_PAIRS = re.compile(r"source_target_pairs=\{(\{[\d,{} ]*\})\}")
_MESH = re.compile(r"replica_groups=mesh\[([^\]\[]*)\] \{([^{}]*+)\}")
_AXIS = re.compile(r"'([^']*)'=(\d+)")
_AXIS_REF = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")


def collective_of_text(line: str) -> Collective | None:
    """The collective that a line of HLO text is, whatever it is called; None for anything else.

    Its bytes and type are None where the text leaves out the shapes of operands.
    """
    name = _NAME.match(line)
    if name is None:
        return None
    does = _DOES.search(line[name.end() - 1 :])
    found = (collective_of(does[1]) if does else None) or collective_of(name[1])
    if found is None:
        return None
    if found[1] == "done":
        return Collective(*found, 0.0, None, None)
    opcode, operands = does.groups() if does else ("", "")
    told = opcode if collective_of(opcode) else name[1]
    # the other operands of a ragged exchange are where the result is put, and which rows go where
    return Collective(*found, *_size(operands, 1 if told.startswith("ragged") else None), groups_of_text(line))


def fused_collective(name: str, category: str) -> Collective | None:
    """The collective that a TPU's fusion starts or ends, by its name, of the kind that its category tells, if any;
    None for every other operation."""
    match = _ASYNC_FUSION.match(name)
    if match is None:
        return None
    kinds = (kind for word, kind in (("reduce-scatter", "reduce-scatter"), *COLLECTIVES.items()) if word in category)
    return Collective(next(kinds, None), match[1], 0.0 if match[1] == "done" else None, None, None)


def transfer_of_text(opcode: str, line: str) -> str:
    """An opcode, or a trace's category, with "host " before a `send` or `recv` that is between a device and its host.

    What goes to other slices leaves by the host too, and is marked the same: it is a collective's, so has no "host ".
    """
    plain = opcode.removeprefix("host ")
    if plain.removesuffix("-done") not in ("send", "recv"):
        return opcode
    if "megascale" in line:
        return plain
    return f"host {plain}" if "is_host_transfer=true" in line else opcode


def _size(operands: str, some: int | None) -> tuple[float | None, str | None]:
    """Bytes of `some` first operands (None: of all), and the type of the first."""
    shapes = _OPERAND.findall(operands.split("), ")[0])[:some]
    try:
        total = float(sum(prod(int(d) for d in dims.split(",") if d) * type_bytes(kind) for kind, dims in shapes))
    except (ValueError, OverflowError):  # numbers that nothing has
        return None, None
    return (total, shapes[0][0]) if shapes else (None, None)


def _numbers(text: str | None) -> list[int]:
    return [int(d) for d in (text or "").split(",") if d.strip()]


def groups_of_text(line: str) -> Groups | None:
    """Replica groups as HLO text prints them; for a permutation, the devices that it connects.

    `{{0,1},{2,3}}`, `[4,2]<=[8]`, `[4,2]<=[2,4]T(1,0)`, `mesh['x'=2,'y'=2] {'y'}`.
    """
    if match := _IOTA.search(line):
        table = iota_devices(*map(_numbers, match.groups()))
        return None if table is None or table.ndim != 2 else tuple(map(tuple, table.tolist()))
    if match := _LISTED.search(line):
        return tuple(tuple(_numbers(g)) for g in re.findall(r"\{([\d, ]+)\}", match[1])) or None
    if match := _PAIRS.search(line):
        pairs = (_numbers(p) for p in re.findall(r"\{([\d, ]+)\}", match[1]))
        return linked((p[0], p[1]) for p in pairs if len(p) == 2)
    if match := _MESH.search(line):
        message = HLO["MeshAxes"]()
        names = []
        for name, size in _AXIS.findall(match[1]):
            names.append(name)
            message.mesh.axes.add(size=min(int(size), 1 << 40))
        for name, before, size in _AXIS_REF.findall(match[2]):
            if name not in names:
                return None
            ref = message.axes.add(mesh_axis_index=names.index(name))
            if before:
                ref.sub_axis_info.pre_size, ref.sub_axis_info.size = (min(int(n), 1 << 40) for n in (before, size))
        return mesh_groups(message)
    return None

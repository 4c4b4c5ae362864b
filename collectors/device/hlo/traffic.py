"""Bytes that an HLO instruction moves to and from the device's main memory.

What lies in on-chip memory (a layout's memory space other than 0: VMEM is 1 on a TPU, the host's memory 5) costs no
traffic there; it did when it was fetched. Of an operand of which only slices are read, those count; of one that is
updated in place, the update. Scratch space that a library call is given is neither an operand nor a result: how much
of it is used, nobody says.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from collectors.device.hlo.cost import FREE, config_of, moves_nothing, scratch_shape
from collectors.device.hlo.shapes import TUPLE, elements, size_bytes

_SLICES = (b"dynamic-slice", b"slice", b"gather")
_FORMS = (b"bitcast", b"copy", b"convert", b"reshape", b"transpose")
_GIVEN = (b"parameter", b"bitcast", b"reshape")  # what is an operand of a fusion still, as it lies in memory
_COPIED = (*_GIVEN, b"copy")  # the same where the result lies in the operand's place: to copy it moves nothing
_SHARED = (*_COPIED, b"fusion")
_DEEP = 16  # fusions and bitcasts within one another; more is damage

Computations = Mapping[int, Any]


def main_bytes(shape: Any) -> int:
    """Logical bytes of a shape that lie in main memory, all leaves of a tuple included."""
    if shape.element_type == TUPLE:
        return sum(main_bytes(s) for s in shape.tuple_shapes)
    return 0 if shape.layout.memory_space else size_bytes(shape)


def bytes_of(instruction: Any, operands: list[Any], computations: Computations) -> float:
    """Bytes that one execution reads from and writes to main memory; `computations` by number, for fusions."""
    opcode = instruction.opcode.decode("utf-8", "replace")
    if opcode in FREE or opcode.endswith("-done") or moves_nothing(instruction):
        return 0.0
    shape = instruction.shape
    written = main_bytes(shape)
    if opcode in ("dynamic-slice", "slice", "gather"):
        indices = main_bytes(operands[1].shape) if opcode == "gather" and len(operands) > 1 else 0
        return float(written + indices + _part(operands[0] if operands else None, size_bytes(shape)))
    if opcode == "dynamic-update-slice" and len(operands) > 1:
        return float(main_bytes(operands[1].shape) + _part(operands[0], size_bytes(operands[1].shape)))
    if opcode == "scatter" and len(operands) > 2:
        update = size_bytes(operands[-1].shape)
        return float(sum(main_bytes(o.shape) for o in operands[1:]) + 2 * _part(operands[0], update))
    if opcode == "ragged-all-to-all":  # what it writes into is its second operand, in place
        return float(written + sum(main_bytes(o.shape) for n, o in enumerate(operands) if n != 1))
    if opcode == "send":  # its result is the operand itself, with marks for waiting
        return float(sum(main_bytes(o.shape) for o in operands))
    if opcode.endswith("-start") and shape.tuple_shapes:
        return float(sum(main_bytes(o.shape) for o in operands) + main_bytes(_result(opcode, shape)))
    if opcode == "fusion":
        called = [c for c in instruction.called_computation_ids if c in computations]
        if called:
            forms = _SHARED if _shares(instruction, len(operands)) else _GIVEN
            return float(_fusion(computations[called[0]], operands, shape, computations, forms))
    if opcode == "custom-call" and (scratch := scratch_shape(instruction)) is not None:
        written -= main_bytes(scratch)
    return float(written + sum(main_bytes(o.shape) for o in operands))


def _part(whole: Any, size: int) -> int:
    """`size` bytes of an operand, if they lie in main memory."""
    return size if whole is not None and main_bytes(whole.shape) else 0


def _result(opcode: str, shape: Any) -> Any:
    """What a split operation makes: its tuple may hold its operands, and marks for waiting, as well."""
    if opcode == "copy-start":
        return shape.tuple_shapes[0]
    if opcode in ("all-gather-start", "collective-permute-start") and len(shape.tuple_shapes) > 1:
        return shape.tuple_shapes[1]
    return shape


def _shares(fusion: Any, operands: int) -> bool:
    """Whether a result of a fusion shares the place of an operand, as a TPU's compiler writes: in each list operands,
    and results numbered on behind them."""
    if b"aliasing_operands" not in fusion.backend_config:
        return False
    aliasing = config_of(fusion).get("aliasing_operands")
    lists = aliasing.get("lists") if isinstance(aliasing, dict) else None
    told = [one.get("indices") for one in lists if isinstance(one, dict)] if isinstance(lists, list) else []
    numbers = [[int(n) for n in some if re.fullmatch(r"[0-9]{1,9}", str(n))] for some in told if isinstance(some, list)]
    return any(some and min(some) < operands <= max(some) for some in numbers)


def _fusion(comp: Any, operands: list[Any], shape: Any, computations: Computations, forms: tuple[bytes, ...]) -> float:
    """Bytes of a fusion: what is read of each operand, and what is written of each result. `forms`: what leaves an
    operand as it lies in memory."""
    parameters = {i.parameter_number: i for i in comp.instructions if i.opcode == b"parameter"}
    moved, users = 0, _users(comp)
    for number, operand in enumerate(operands):
        whole = main_bytes(operand.shape)
        if whole and number in parameters:
            part = _read(users, parameters[number], computations, _DEEP, forms)
            whole = whole if part is None else min(int(part), whole)
        moved += whole
    roots = _roots(comp, shape, computations)
    return moved + sum(_written(root, of, inner, computations, forms) for root, of, inner in roots)


def _users(comp: Any) -> dict[int, list[Any]]:
    """The instructions that take each value of a computation."""
    users: dict[int, list[Any]] = {}
    for instruction in comp.instructions:
        for operand in set(instruction.operand_ids):
            users.setdefault(operand, []).append(instruction)
    return users


def _read(
    users: Mapping[int, list[Any]], source: Any, computations: Computations, deep: int, given: tuple[bytes, ...]
) -> float | None:
    """Bytes that a computation reads of a value of its own; None: all of it. `given`: what leaves an operand of the
    fusion as it lies in memory; nothing once it is not that any more.

    Inside a fusion nothing is made before it is asked for: where a value only changes its form on the way to a slice,
    no more than the slice is read.
    """
    total, given = 0.0, given if source.opcode in given else ()
    for user in users.get(source.id, ()):
        at = list(user.operand_ids).index(source.id)
        part: float | None = None
        if user.opcode in _SLICES and at == 0:
            part = size_bytes(user.shape)
        elif at == 0 and _changes(user):
            part = _read_after(users, user, _DEEP) if given else None
        elif deep:
            if user.opcode == b"fusion":
                part = _read_within(user, source, computations, deep - 1, given)
            if part is None and (user.opcode in _FORMS or user.opcode == b"fusion"):
                part = _passed_on(users, source, user, computations, deep - 1, given)
        if part is None:
            return None
        total += part
    return total


def _changes(instruction: Any) -> bool:
    """Whether an instruction changes a part of its first operand, in place where it may."""
    return instruction.opcode == b"dynamic-update-slice" or (
        instruction.opcode == b"scatter" and len(instruction.operand_ids) == 3
    )


def _read_after(users: Mapping[int, list[Any]], change: Any, deep: int) -> float | None:
    """Bytes that a computation reads of a value that it has changed; None: all of it, so that nothing is in place."""
    total = 0.0
    for user in users.get(change.id, ()):
        if user.opcode == b"tuple":  # it is given out
            continue
        if not deep or user.operand_ids[0] != change.id:
            return None
        part = None
        if user.opcode in _SLICES:
            part = float(size_bytes(user.shape))
        elif user.opcode == b"bitcast" or _changes(user):
            part = _read_after(users, user, deep - 1)
        if part is None:
            return None
        total += part
    return total


def _passed_on(
    users: Mapping[int, list[Any]],
    source: Any,
    user: Any,
    computations: Computations,
    deep: int,
    given: tuple[bytes, ...],
) -> float | None:
    """Bytes read of a value that its user gives on element by element; None: all of it."""
    if user.shape.element_type == TUPLE or elements(user.shape) != elements(source.shape) or user.id not in users:
        return None
    part = _read(users, user, computations, deep, given)
    return None if part is None else part * size_bytes(source.shape) / max(size_bytes(user.shape), 1)


def _read_within(
    fusion: Any, source: Any, computations: Computations, deep: int, given: tuple[bytes, ...]
) -> float | None:
    inner = computations.get(fusion.called_computation_ids[0]) if fusion.called_computation_ids else None
    if inner is None:
        return None
    total, users = 0.0, _users(inner)
    parameters = {i.parameter_number: i for i in inner.instructions if i.opcode == b"parameter"}
    for number, operand in enumerate(fusion.operand_ids):
        if operand == source.id:
            mine = parameters.get(number)
            # what it gives out as a whole is not read here, but by whoever uses the result
            part = None if mine is None or inner.root_id == mine.id else _read(users, mine, computations, deep, given)
            if mine is None or part is None or not users.get(mine.id):
                return None
            total += part
    return total


def _roots(comp: Any, shape: Any, computations: Computations) -> Iterator[tuple[Any, Any, Any]]:
    """(instruction that makes it, shape as the fusion gives it, its computation) of each result of a fusion."""
    inner = {i.id: i for i in comp.instructions}
    root = _maker(inner.get(comp.root_id), inner)
    if root is not None and root.opcode == b"tuple" and len(root.operand_ids) == len(shape.tuple_shapes):
        for operand, of in zip(root.operand_ids, shape.tuple_shapes, strict=True):
            yield _maker(inner.get(operand), inner), of, inner
    else:
        yield root, shape, inner


def _maker(instruction: Any, inner: Mapping[int, Any]) -> Any:
    """The instruction itself, or what a chain of bitcasts begins with."""
    for _ in range(_DEEP):
        if instruction is None or instruction.opcode != b"bitcast" or not instruction.operand_ids:
            break
        instruction = inner.get(instruction.operand_ids[0])
    return instruction


def _written(
    root: Any, shape: Any, inner: Mapping[int, Any], computations: Computations, forms: tuple[bytes, ...]
) -> float:
    whole = main_bytes(shape)
    around: list[tuple[Any, Mapping[int, Any]]] = []  # the fusions that it stands in, each with what is beside it
    for _ in range(_DEEP):
        if not whole or root is None:
            return whole
        if root.opcode == b"fusion" and root.called_computation_ids and not shape.tuple_shapes:
            comp = computations.get(root.called_computation_ids[0])
            if comp is None:
                return whole
            around.append((root, inner))
            inner = {i.id: i for i in comp.instructions}
            root = _maker(inner.get(comp.root_id), inner)
            continue
        changed, given = _changed(root, inner, computations, forms)
        for fusion, beside in reversed(around):
            given = _operand(fusion, given, beside, computations, forms)
        return whole if given is None else min(changed, 2 * whole)
    return whole


def _changed(
    root: Any, inner: Mapping[int, Any], computations: Computations, forms: tuple[bytes, ...]
) -> tuple[int, Any]:
    """(bytes that changes in place write, one after the other: a scatter reads what it adds to as well; the operand
    that they change). None where that is no operand, so that all of it is made anew."""
    total = 0
    if not _changes(root):
        return total, None
    for _ in range(_DEEP):
        if root is None or not _changes(root) or len(root.operand_ids) < 2:
            break
        scatter = root.opcode == b"scatter"
        update = inner.get(root.operand_ids[2 if scatter else 1])
        if update is None:
            return total, None
        total += (2 if scatter else 1) * size_bytes(update.shape)
        root = inner.get(root.operand_ids[0])
    return total, _given(root, inner, computations, forms)


def _given(value: Any, inner: Mapping[int, Any], computations: Computations, forms: tuple[bytes, ...]) -> Any:
    """The operand of the fusion that a value is, as it lies in memory; None where it is none."""
    for _ in range(_DEEP):
        if value is None or value.opcode not in forms or not value.operand_ids:
            break
        at = 0
        if value.opcode == b"fusion":
            comp = computations.get(value.called_computation_ids[0]) if value.called_computation_ids else None
            within = {} if comp is None else {i.id: i for i in comp.instructions}
            made = None if comp is None else _given(within.get(comp.root_id), within, computations, _COPIED)
            if made is None or made.parameter_number >= len(value.operand_ids):
                return None
            at = made.parameter_number
        value = inner.get(value.operand_ids[at])
    return value if value is not None and value.opcode == b"parameter" else None


def _operand(
    fusion: Any, given: Any, beside: Mapping[int, Any], computations: Computations, forms: tuple[bytes, ...]
) -> Any:
    """The operand of the fusion around it that a fusion's own operand is; None where that is made for it."""
    if given is None or given.parameter_number >= len(fusion.operand_ids):
        return None
    return _given(beside.get(fusion.operand_ids[given.parameter_number]), beside, computations, forms)

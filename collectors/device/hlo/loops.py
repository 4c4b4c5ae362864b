"""How often a loop of a program runs, where that can be told before it runs.

XLA notes a trip count on some loops. Elsewhere it follows from three things, all of which must be known: the value that
a counter begins with, what is added to it each time round, and the constant that it is compared with. A comparison with
a constant alone is no trip count: a search that gives up after 1,000 rounds may need two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collectors.device.hlo.cost import config_of
from collectors.device.hlo.shapes import TUPLE

_DEEP = 64  # operations between a counter and its comparison; more is damage
_SAME = (b"copy", b"bitcast", b"convert", b"reshape", b"broadcast", b"opt-barrier", b"copy-start", b"copy-done")
_MIRRORED = {b"GT": b"LT", b"GE": b"LE"}


@dataclass(frozen=True)
class Linear:
    """A whole number: element `index` of a loop's state as a round finds it, plus `offset`; None: `offset` alone."""

    index: int | None
    offset: int


@dataclass(frozen=True)
class _Scope:
    """What the parameters of a fused computation stand for: instructions of another scope (None: a loop's or entry)."""

    given: tuple[Any, ...]
    outer: "_Scope | None"


class Loops:
    """The loops of one module, from its computations and instructions by number."""

    def __init__(self, computations: Mapping[int, Any], by_id: Mapping[int, Any]):
        self._computations, self._by_id = computations, by_id
        self._loop_of: dict[int, Any] = {}  # body -> the one loop around it; None where there are several
        self._home: dict[int, int] = {}  # instruction -> its computation
        for comp in computations.values():
            for instruction in comp.instructions:
                self._home[instruction.id] = comp.id
                if instruction.opcode == b"while" and instruction.called_computation_ids:
                    body = instruction.called_computation_ids[0]
                    self._loop_of[body] = None if body in self._loop_of else instruction

    def trips(self, loop: Any) -> int | None:
        """How often the body of a `while` runs; None where neither the compiler nor the program tells."""
        known = config_of(loop).get("known_trip_count")
        try:
            if isinstance(known, dict) and int(known.get("n", -1)) >= 0:
                return int(known["n"])
        except (TypeError, ValueError):
            pass
        return self._counted(loop)

    def _counted(self, loop: Any) -> int | None:
        called = [self._computations.get(c) for c in loop.called_computation_ids]
        if len(called) != 2 or called[0] is None or called[1] is None or len(loop.operand_ids) != 1:
            return None
        compare, scope = self._through(self._by_id.get(called[1].root_id), None)
        if compare is None or compare.opcode != b"compare" or len(compare.operand_ids) != 2:
            return None
        left, right = (self._line(loop, self._value(self._by_id.get(i), scope, _DEEP)) for i in compare.operand_ids)
        if left is None or right is None:
            return None
        return _rounds(left[0] - right[0], left[1] - right[1], compare.comparison_direction)

    def _line(self, loop: Any, value: Linear | None) -> tuple[int, int] | None:
        """(value in the first round, what each round adds to it); None where either is not known."""
        if value is None:
            return None
        if value.index is None:
            return value.offset, 0
        first, step = self._first(loop, value.index), self._step(loop, value.index)
        return None if first is None or step is None else (first + value.offset, step)

    def _step(self, loop: Any, index: int) -> int | None:
        """What a round adds to an element of the state."""
        body = self._computations.get(loop.called_computation_ids[0])
        root = self._by_id.get(body.root_id) if body is not None else None
        after = self._element(root, index, None, _DEEP)
        return after.offset if after is not None and after.index == index else None

    def _first(self, loop: Any, index: int, deep: int = 8) -> int | None:
        """What an element of the state is before the first round: a constant, or one that a loop around it carries."""
        value = self._element(self._by_id.get(loop.operand_ids[0]), index, None, _DEEP)
        if value is None or value.index is None:
            return None if value is None else value.offset
        around = self._loop_of.get(self._home.get(loop.id, -1))
        if around is None or not deep or len(around.operand_ids) != 1 or self._step(around, value.index) != 0:
            return None
        first = self._first(around, value.index, deep - 1)
        return None if first is None else first + value.offset

    def _value(self, instruction: Any, scope: _Scope | None, deep: int) -> Linear | None:
        """What an instruction of a scope makes, as far as it is a counter or a constant."""
        instruction, scope = self._through(instruction, scope)
        if instruction is None or not deep:
            return None
        operands = [self._by_id.get(i) for i in instruction.operand_ids]
        match instruction.opcode:
            case b"constant":
                literal = instruction.literal
                values = [*literal.s32s, *literal.s64s, *literal.u32s, *literal.u64s]
                return Linear(None, values[0]) if len(values) == 1 else None
            case b"parameter":
                return Linear(0, 0) if instruction.shape.element_type != TUPLE else None
            case b"get-tuple-element" if operands:
                return self._element(operands[0], instruction.tuple_index, scope, deep - 1)
            case b"add" | b"subtract" if len(operands) == 2:
                left, right = (self._value(o, scope, deep - 1) for o in operands)
                return _sum(left, right, -1 if instruction.opcode == b"subtract" else 1)
        return None

    def _element(self, instruction: Any, index: int, scope: _Scope | None, deep: int) -> Linear | None:
        """Element `index` of a tuple that an instruction makes; what is no tuple is its own only element."""
        made, inner = self._through(instruction, scope)
        if made is None or not deep:
            return None
        if made.opcode == b"tuple" and 0 <= index < len(made.operand_ids):
            return self._value(self._by_id.get(made.operand_ids[index]), inner, deep - 1)
        if made.shape.element_type != TUPLE:
            return self._value(made, inner, deep - 1) if index == 0 else None
        return Linear(index, 0) if made.opcode == b"parameter" else None

    def _through(self, instruction: Any, scope: _Scope | None) -> tuple[Any, _Scope | None]:
        """What an instruction passes on: past copies and other forms, into fusions, out of their parameters."""
        for _ in range(_DEEP):
            if instruction is None:
                return None, scope
            if instruction.opcode in _SAME and instruction.operand_ids:
                instruction = self._by_id.get(instruction.operand_ids[0])
            elif instruction.opcode == b"parameter" and scope is not None:
                number = instruction.parameter_number
                instruction = scope.given[number] if 0 <= number < len(scope.given) else None
                scope = scope.outer
            elif instruction.opcode in (b"fusion", b"call") and instruction.called_computation_ids:
                scope = _Scope(tuple(self._by_id.get(i) for i in instruction.operand_ids), scope)
                comp = self._computations.get(instruction.called_computation_ids[0])
                instruction = self._by_id.get(comp.root_id) if comp is not None else None
            else:
                return instruction, scope
        return None, scope


def _sum(left: Linear | None, right: Linear | None, sign: int) -> Linear | None:
    if left is None or right is None or (right.index is not None and (left.index is not None or sign < 0)):
        return None
    return Linear(right.index if left.index is None else left.index, left.offset + sign * right.offset)


def _rounds(first: int, step: int, direction: bytes) -> int | None:
    """For how many rounds t from 0 on first + step t compares with 0 as `direction` says; None: for ever."""
    if direction in _MIRRORED:
        first, step, direction = -first, -step, _MIRRORED[direction]
    if direction == b"NE":
        if first == 0:
            return 0
        return -first // step if step and first % step == 0 and -first // step > 0 else None
    if direction == b"EQ":
        return 0 if first else (1 if step else None)
    if direction not in (b"LT", b"LE"):
        return None
    last = first - (direction == b"LE")  # below 0 while it goes on
    if last >= 0:
        return 0
    return -(last // step) if step > 0 else None

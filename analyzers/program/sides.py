"""A program as one side of a comparison: what tells an instruction from others, whatever it is called or numbered.

own    what an instruction is: opcode, shape with layout, attributes, literal, and what it calls
deep   the same with all that feeds it, within its computation
scope  where its computation stands: below which loops and calls, by what the framework calls those
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from analyzers.device.untold_kernels import untold_of_program
from runs.programs import Program

_NAMES = re.compile(r"%[^\s,(){}]+")
_NUMBERED = re.compile(r"channel_id=\d+|control-predecessors=\{[^}]*\}")  # renumbered at will
_LAYOUT = re.compile(r"\{[^{}]*\}")
_COLUMNS = (
    *("computation", "name", "opcode", "category", "shape", "flops", "bytes", "count", "executed", "root", "op_name"),
    *("source", "fusion_kind", "given", "attributes", "result_bytes"),
)
_PASSING = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


class Side:
    """Of instructions by number, as lists."""

    def __init__(self, program: Program):
        self.program = program
        self.of: dict[str, list[Any]] = {c: program.column("instructions", c) for c in _COLUMNS}
        self.size = program.tables["instructions"].num_rows
        blind = untold_of_program(program.frame("instructions"))
        self.untold = frozenset(np.flatnonzero(blind))  # kernels whose FLOPs nobody tells: not known, and not 0
        self.of["flops"] = [None if i in self.untold else flops for i, flops in enumerate(self.of["flops"])]
        self.operands = _lists(program, "operands", "operand", self.size)
        self.calls = _lists(program, "calls", "computation", self.size)
        computations = program.frame("computations")
        self._firsts: list[int] = computations["first"].tolist()
        self._counts: list[int] = computations["instructions"].tolist()
        self.bare = [_LAYOUT.sub("", s) for s in self.of["shape"]]
        self.own: list[int] = [0] * self.size
        self.deep: list[int] = [0] * self.size
        self.inside: list[int] = [0] * len(self._firsts)  # what each computation does
        for computation in self._callees_first():
            self._hash(computation)

    def members(self, computation: int) -> range:
        first = self._firsts[computation]
        return range(first, first + self._counts[computation])

    def _callees_first(self) -> list[int]:
        order: list[int] = []
        state = [0] * len(self._firsts)
        for start in range(len(self._firsts)):
            walk = [] if state[start] else [(start, self._called(start))]
            while walk:
                at, rest = walk[-1]
                state[at] = 1
                callee = next((c for c in rest if state[c] == 0), None)
                if callee is None:
                    state[at] = 2
                    order.append(at)
                    walk.pop()
                else:
                    walk.append((callee, self._called(callee)))
        return order

    def _called(self, computation: int) -> Iterator[int]:
        return (c for i in self.members(computation) for c in self.calls[i])

    def _hash(self, computation: int) -> None:
        used: set[int] = set()
        for i in self.members(computation):
            called = tuple(self.inside[c] for c in self.calls[i])
            self.own[i] = hash((self._said(i), called))
            self.deep[i] = hash((self.own[i], tuple(self.deep[o] for o in self.operands[i])))
            used.update(self.operands[i])
        ends = sorted(self.deep[i] for i in self.members(computation) if i not in used)
        root = next((self.deep[i] for i in self.members(computation) if self.of["root"][i]), 0)
        self.inside[computation] = hash((root, tuple(ends)))

    def _said(self, i: int) -> tuple[Any, ...]:
        of = self.of
        return of["opcode"][i], of["shape"][i], self.attributes[i], of["given"][i], of["fusion_kind"][i]

    @cached_property
    def attributes(self) -> list[str]:
        """Attributes without names and numbers that another compile would give otherwise."""
        return [_NUMBERED.sub("", _NAMES.sub("%", text or "")) for text in self.of["attributes"]]

    @cached_property
    def scope(self) -> list[int]:
        """Of each computation; of one that several call, that of the first."""
        caller: dict[int, tuple[int, int]] = {}
        for i in range(self.size):
            for position, c in enumerate(self.calls[i]):
                caller.setdefault(c, (i, position))
        return [self._scope(c, caller) for c in range(len(self._firsts))]

    def _scope(self, computation: int, caller: dict[int, tuple[int, int]]) -> int:
        path: list[Any] = []
        seen: set[int] = set()
        while computation in caller and computation not in seen:
            seen.add(computation)
            i, position = caller[computation]
            if self.of["opcode"][i] != "fusion":
                path.append((self.of["opcode"][i], self.of["op_name"][i], position))
            computation = self.of["computation"][i]
        return hash(tuple(path))

    @cached_property
    def units(self) -> list[int]:
        """Instructions that a device executes as one operation."""
        return [i for i in range(self.size) if self.of["executed"][i]]

    @cached_property
    def leaves(self) -> dict[int, list[int]]:
        """What an executed instruction is made of: of a fusion all that it holds, else itself."""
        return {u: self._leaves(u) for u in self.units}

    def _leaves(self, unit: int) -> list[int]:
        if self.of["opcode"][unit] != "fusion":
            return [unit]
        found: list[int] = []
        waiting, seen = list(self.calls[unit]), set(self.calls[unit])
        while waiting:
            for i in self.members(waiting.pop()):
                if self.of["opcode"][i] == "fusion":
                    waiting += [c for c in self.calls[i] if c not in seen]
                    seen.update(self.calls[i])
                elif self.of["opcode"][i] not in _PASSING:
                    found.append(i)
        return found or [unit]

    def total(self, i: int, column: str) -> float:
        """FLOPs or bytes of all executions of an instruction in one run; 0 where either is not known."""
        value, count = self.of[column][i], self.of["count"][i]
        return float(value) * count if value is not None and count is not None else 0.0

    def scope_of(self, i: int) -> int:
        return self.scope[self.of["computation"][i]]


def _lists(program: Program, table: str, column: str, size: int) -> list[Sequence[int]]:
    rows = program.tables[table]
    users, values = rows["instruction"].to_numpy(), program.column(table, column)
    starts = np.searchsorted(users, np.arange(size + 1)).tolist()
    return [values[a:b] for a, b in zip(starts, starts[1:], strict=False)]

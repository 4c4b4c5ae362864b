"""Small HLO programs for tests: random ones from plain data, and the same program by other names and numbers."""

import random
from typing import Any

from hypothesis import strategies as st

from collectors.device.hlo.program import program_of
from collectors.device.hlo.shapes import HLO
from runs.programs import Program

F32 = 11
OPCODES = ("add", "multiply", "subtract", "maximum", "negate")


@st.composite
def plans(draw: st.DrawFn, most: int = 14) -> list[dict[str, Any]]:
    """What a computation holds: parameters, operations on what is before them, fusions of such plans, loops."""
    parameters = draw(st.integers(1, 3))
    found: list[dict[str, Any]] = [{"opcode": "parameter"} for _ in range(parameters)]
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(("plain", "plain", "plain", "fusion", "while")))
        operands = draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=3))
        told = {"operands": operands, "op_name": draw(st.sampled_from(("", "a/dot", "b/add", "c/mul")))}
        if kind == "plain":
            opcode = draw(st.sampled_from(OPCODES))
            count = 1 if opcode == "negate" else 2
            told |= {"opcode": opcode, "operands": (operands * 2)[:count], "side": draw(st.sampled_from((4, 8)))}
        elif kind == "fusion":
            told |= {"opcode": "fusion", "inner": draw(_inner(len(operands))), "side": 8}
        else:
            told |= {"opcode": "while", "operands": operands[:1], "inner": draw(_inner(1)), "side": 8}
            told["trips"] = draw(st.integers(1, 5))
        found.append(told)
    return found


@st.composite
def _inner(draw: st.DrawFn, parameters: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"opcode": "parameter"} for _ in range(parameters)]
    for _ in range(draw(st.integers(1, 4))):
        opcode = draw(st.sampled_from(OPCODES))
        count = 1 if opcode == "negate" else 2
        operands = draw(st.lists(st.integers(0, len(found) - 1), min_size=count, max_size=count))
        found.append({"opcode": opcode, "operands": operands, "side": 4, "op_name": draw(st.sampled_from(("x", "y")))})
    return found


def module(plan: list[dict[str, Any]], seed: int | None = None) -> bytes:
    """A HloProto of a plan. With a `seed` names, numbers and the order of independent instructions are others."""
    return _Builder(seed).proto(plan)


def program(plan: list[dict[str, Any]], seed: int | None = None) -> Program:
    return program_of(module(plan, seed))


class _Builder:
    def __init__(self, seed: int | None):
        self._dice = random.Random(seed) if seed is not None else None
        self._next = 0
        self._proto = HLO["HloProto"]()

    def proto(self, plan: list[dict[str, Any]]) -> bytes:
        self._proto.hlo_module.name = b"jit_made"
        self._proto.hlo_module.entry_computation_id = self._computation(plan, "entry")
        return self._proto.SerializeToString()

    def _number(self) -> int:
        self._next += 1 if self._dice is None else self._dice.randint(1, 9)
        return self._next

    def _computation(self, plan: list[dict[str, Any]], name: str) -> int:
        ids = [self._number() for _ in plan]
        inner = {
            n: self._computation(told["inner"], f"inner{ids[n]}") for n, told in enumerate(plan) if "inner" in told
        }
        comp = self._proto.hlo_module.computations.add(id=self._number(), root_id=ids[-1], name=name.encode())
        places = {n: number for number, n in enumerate(n for n, t in enumerate(plan) if t["opcode"] == "parameter")}
        for n in self._order(plan):
            self._instruction(comp, plan[n], ids, n, places, inner)
        return comp.id

    def _order(self, plan: list[dict[str, Any]]) -> list[int]:
        """An order in which each follows its operands; the plan's own without dice."""
        left, done, order = list(range(len(plan))), set(), []
        while left:
            ready = [n for n in left if set(plan[n].get("operands", ())) <= done]
            chosen = ready[0] if self._dice is None else self._dice.choice(ready)
            order.append(chosen)
            done.add(chosen)
            left.remove(chosen)
        return order

    def _instruction(self, comp: Any, told: dict, ids: list[int], n: int, places: dict, inner: dict) -> None:
        side = told.get("side", 8)
        layout = {"minor_to_major": told.get("layout", [1, 0])}
        made = comp.instructions.add(
            id=ids[n],
            name=f"{told['opcode']}.{ids[n]}".encode(),
            opcode=told["opcode"].encode(),
            shape={"element_type": F32, "dimensions": [side, 8], "layout": layout},
            operand_ids=[ids[o] for o in told.get("operands", ())],
        )
        if told["opcode"] == "parameter":
            made.parameter_number = places[n]
        if told.get("op_name"):
            made.metadata.op_name = told["op_name"].encode()
        if n in inner:
            made.called_computation_ids.append(inner[n])
        if told["opcode"] == "fusion":
            made.fusion_kind = b"kLoop"
        if "trips" in told:
            made.backend_config = f'{{"known_trip_count":{{"n":"{told["trips"]}"}}}}'.encode()

"""What feeds what in a program, with fusions, loops and calls opened where that is asked for."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from runs.programs import Program

_DEEP = 10_000  # steps from a result to who made it; more is damage
OPENS = ("fusion", "while", "call", "conditional", "async-start")


class Wiring:
    """Edges from the maker of a value to its users, by numbers of instructions.

    `opened`: instructions that are replaced by what the computation in them does: their operands are its parameters,
    its result is theirs. A loop's body stands there as its first round finds it, of a choice its first branch.
    """

    def __init__(self, program: Program, opened: Iterable[int] = ()):
        self._program = program
        operands = program.tables["operands"]
        self._users = operands["instruction"].to_numpy()
        self._makers = operands["operand"].to_numpy()
        self._positions = operands["position"].to_numpy()
        self.rows: pd.DataFrame = program.frame("instructions")
        self.computations: pd.DataFrame = program.frame("computations")
        self.names: list[str] = program.column("instructions", "name")
        self.opcodes: list[str] = program.column("instructions", "opcode")
        self._given_texts: list[str] = program.column("instructions", "given")
        self._of = self.rows["computation"].to_numpy(dtype=np.int64)
        self.opened = {n: c for n in opened if (c := self._first_called(n)) is not None}
        self._within = {c: n for n, c in self.opened.items()}

    @cached_property
    def calls(self) -> dict[int, list[int]]:
        """Computations that an instruction calls, in order."""
        found: dict[int, list[int]] = {}
        for n, c in zip(*(self._program.column("calls", k) for k in ("instruction", "computation")), strict=True):
            found.setdefault(n, []).append(c)
        return found

    def callers(self, computation: int) -> list[int]:
        """Instructions that call a computation."""
        table = self._program.tables["calls"]
        return table["instruction"].to_numpy()[table["computation"].to_numpy() == computation].tolist()

    def members(self, computation: int) -> range:
        row = self.computations.iloc[computation]
        return range(int(row["first"]), int(row["first"] + row["instructions"]))

    def computation_of(self, number: int) -> int:
        return int(self._of[number])

    def root(self, computation: int) -> int | None:
        """The instruction that gives a computation's result."""
        inside = self.members(computation)
        roots = np.flatnonzero(self.rows["root"].to_numpy(dtype=bool)[inside.start : inside.stop])
        return inside.start + int(roots[0]) if len(roots) else None

    def shown(self, number: int) -> int:
        """What stands for an instruction: itself; of one that is opened, of a parameter in it, who makes the value."""
        for _ in range(_DEEP):
            if (comp := self.opened.get(number)) is not None and (root := self.root(comp)) is not None:
                number = root
            elif (maker := self._given(number)) is not None:
                number = maker
            else:
                return number
        return number

    def makers(self, number: int) -> list[tuple[int, int]]:
        """(who makes it, which operand it is) of what an instruction takes."""
        low, high = np.searchsorted(self._users, [number, number + 1])
        return list(zip(self._shown[low:high].tolist(), self._positions[low:high].tolist(), strict=True))

    def users(self, number: int) -> list[int]:
        """Who takes the value of an instruction, each once, in order."""
        order, starts = self._by_maker
        found = self._users[order[starts[number] : starts[number + 1]]].tolist()
        return sorted(set(found) - set(self.opened))

    @cached_property
    def _shown(self) -> np.ndarray:
        """What stands for each operand."""
        makers = self._makers.copy()
        inside = [n for c in self._within for n in self.members(c) if self.opcodes[n] == "parameter"]
        for number in (*self.opened, *inside):
            makers[self._makers == number] = self.shown(number)
        return makers

    def _number(self, parameter: int) -> int:
        return int(self._given_texts[parameter])

    def _given(self, number: int) -> int | None:
        """What a parameter in something opened stands for."""
        outer = self._within.get(int(self._of[number]))
        if outer is None or self.opcodes[number] != "parameter":
            return None
        low, high = np.searchsorted(self._users, [outer, outer + 1])
        place = self._number(number) + (self.opcodes[outer] == "conditional")  # after what chooses, one of each branch
        found = [m for m, p in zip(self._makers[low:high], self._positions[low:high], strict=True) if p == place]
        return int(found[0]) if found else None

    @cached_property
    def _by_maker(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self._shown, kind="stable")
        return order, np.searchsorted(self._shown[order], np.arange(len(self.rows) + 1))

    def _first_called(self, number: int) -> int | None:
        called = self.calls.get(number)
        return called[0] if called and self.opcodes[number] in OPENS else None


def neighbourhood(
    wiring: Wiring, centre: int, levels: int, most: int, ways: Sequence[str], weight: np.ndarray
) -> tuple[dict[int, int], int]:
    """({instruction: its distance, below zero for what feeds the centre}, how many more there are in so many levels).

    Nearer ones come first, among equally near ones the heavier. `ways`: operands, users or both.
    """
    kept = {centre: 0}
    more: set[int] = set()
    for way, sign in (("operands", -1), ("users", 1)):
        edge, reached = [centre], {centre}
        for level in range(1, levels + 1 if way in ways else 1):
            step = [n for at in edge for n in _next(wiring, at, way)]
            edge = sorted({n for n in step if n not in reached}, key=lambda n: (-weight[n], n))
            reached.update(edge)
            more.update(edge)
            kept = {**kept, **{n: sign * level for n in edge if n not in kept}}
    order = sorted(kept, key=lambda n: (abs(kept[n]), -weight[n], n))[:most]
    return {n: kept[n] for n in order}, len({centre, *more}) - len(order)


def _next(wiring: Wiring, number: int, way: str) -> list[int]:
    return [n for n, _ in wiring.makers(number)] if way == "operands" else wiring.users(number)

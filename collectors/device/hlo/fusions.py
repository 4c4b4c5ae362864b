"""Which computations of a module lie in fusions, and in which: a profile shows the fusion, not what is in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


def fused_of(instructions: Iterable[Any]) -> set[int]:
    """Computations that fusions hold."""
    return {c for i in instructions if i.opcode == b"fusion" for c in i.called_computation_ids}


def holders(within: Mapping[int, Sequence[Any]], fused: set[int]) -> dict[int, str | None]:
    """Of each computation inside fusions the name of the outermost around it; None where several are. `within`: the
    instructions of each computation."""
    found: dict[int, str | None] = {}
    waiting: list[tuple[int, str | None]] = [
        (comp, fusion.name.decode("utf-8", "replace"))
        for outside, instructions in within.items()
        if outside not in fused
        for fusion in instructions
        if fusion.opcode == b"fusion"
        for comp in _called(fusion, within)
    ]
    while waiting:  # each is looked at twice at most: when it is found, and when another is found to hold it
        comp, name = waiting.pop()
        if comp in found:
            if found[comp] is None or found[comp] == name:
                continue
            name = None
        found[comp] = name
        waiting += [(inner, name) for i in within[comp] for inner in _called(i, within)]
    return found


def _called(instruction: Any, within: Mapping[int, Sequence[Any]]) -> Iterator[int]:
    return (c for c in instruction.called_computation_ids if c in within)

"""Python that lays a mesh as a placement says, to copy into a program."""

from math import prod
from typing import TYPE_CHECKING

from simulators.placement.machine import closed_walk, closure

if TYPE_CHECKING:
    from app.whatif.placement.answers import Answer
    from simulators.placement.search import Placement


def mesh_code(answer: "Answer", placement: "Placement") -> str:
    """Devices by their coordinates as an array, cut into the pieces and turned into the order of the mesh."""
    machine, shares = answer.machine, placement.shares
    names = [(q, p) for p, nest in enumerate(placement.nesting) for q in nest]
    cut = [shares[q][p] for q, p in names]
    turned = sorted(range(len(cut)), key=lambda i: names[i])
    shape = tuple(prod(s) for s in shares)
    walks = [
        f"devices = np.take(devices, {closed_walk([p.count for p in pieces])}, axis={q})  # {axis.name} as a ring"
        for q, (axis, pieces) in enumerate(zip(answer.axes, placement.pieces, strict=True))
        if closure(pieces, machine) == "fold" and all(machine.axes[p.axis].kind == "link" for p in pieces)
    ]
    return "\n".join(
        (
            "import jax, numpy as np",
            f"devices = sorted(jax.devices(), key=lambda d: {_key(answer)})",
            f"devices = np.array(devices).reshape({_tuple(cut)}).transpose({_tuple(turned)}).reshape({_tuple(shape)})",
            *walks,
            f"mesh = jax.sharding.Mesh(devices, {tuple(a.name for a in answer.axes)!r})",
        )
    )


def _key(answer: "Answer") -> str:
    """By what devices are to be sorted so that the last physical axis counts fastest."""
    if answer.machine.levels:
        return "d.id"
    parts = [f"d.coords[{i}]" for i in range(sum(a.kind == "link" for a in answer.machine.axes))]
    if any(a.kind == "dcn" for a in answer.machine.axes):
        parts.insert(0, "d.slice_index")
    if any(a.kind == "core" for a in answer.machine.axes):
        parts.append("d.core_on_chip")
    return f"({', '.join(parts)})"


def _tuple(numbers) -> str:
    return repr(tuple(int(n) for n in numbers))

"""Meshes near one that does not fit: the same axes with sizes that the machine can take."""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import log

from simulators.placement.jax_order import parts
from simulators.placement.mesh import LogicalAxis, shown

MOST_TRIED = 50_000


def nearest(devices: int, axes: Sequence[LogicalAxis], slices: int = 1) -> str | None:
    """The mesh of the same axes over so many devices that is nearest in its sizes, and that so many slices cut.

    None where it is the mesh itself.
    """
    sizes = [a.size for a in axes]
    fitting = (s for s in islice(_sizes(devices, len(axes)), MOST_TRIED) if any(parts(slices, s)))
    found = min(fitting, key=lambda s: sum(abs(log(n / k)) for n, k in zip(s, sizes, strict=True)), default=None)
    if found is None or list(found) == sizes:
        return None
    return shown([LogicalAxis(a.name, n) for a, n in zip(axes, found, strict=True)])


def _sizes(devices: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `devices` as a product of so many sizes."""
    if axes == 1:
        yield (devices,)
        return
    for n in range(1, devices + 1):
        if devices % n == 0:
            yield from ((n, *rest) for rest in _sizes(devices // n, axes - 1))

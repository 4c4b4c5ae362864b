"""Along which axes of a mesh a collective runs, from its replica groups."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from collectors.device.hlo.collectives import ProgramCollective
from collectors.device.hlo.shapes import Groups

_MAX_DEVICES = 1 << 20


def axis_of(
    groups: Groups | None, mesh: Mapping[str, int], positions: Mapping[int, int] | None = None, paired: bool = False
) -> str | None:
    """The axes along which the members of a group differ, joined by `+`; None where the groups fit no axes.

    `mesh`: axes with their sizes, in order; partition p stands at row-major position p, or at `positions[p]`.
    `groups`: None stands for one group of everybody. Every group must differ along the same axes and fill a box of
    the mesh (it may fill part of an axis: a hierarchical collective does). `paired`: the groups are what a
    permutation links, which need not fill a box; then the axes are those along which any link goes.
    """
    where = None if positions is None else tuple(sorted(positions.items()))
    return _axis_of(groups, tuple(mesh.items()), where, paired)


@lru_cache(maxsize=4096)
def _axis_of(
    groups: Groups | None, mesh: tuple[tuple[str, int], ...], where: tuple[tuple[int, int], ...] | None, paired: bool
) -> str | None:
    sizes = [size for _, size in mesh]
    devices = prod(sizes)
    if not mesh or min(sizes) < 1 or devices > _MAX_DEVICES:
        return None
    if groups is None:
        return "+".join(name for name, size in mesh if size > 1) or None
    place = None if where is None else dict(where)
    found: set[tuple[int, ...]] = set()
    for group in groups:
        members = list(group) if place is None else [place.get(p, -1) for p in group]
        if len(set(members)) != len(members) or not all(0 <= p < devices for p in members):
            return None
        coordinates = np.stack(np.unravel_index(members, sizes))
        spread = [len(np.unique(c)) for c in coordinates]
        if not paired and prod(spread) != len(members):
            return None
        found.add(tuple(axis for axis, n in enumerate(spread) if n > 1))
    if paired:
        found = {tuple(sorted({axis for axes in found for axis in axes}))}
    if len(found) != 1:
        return None
    return "+".join(mesh[axis][0] for axis in found.pop()) or None


class Mesh:
    """The mesh that a program was compiled for, to name the axes of its collectives.

    `axes` with their sizes, in order. `devices`: (identifier, slice) of each device in mesh order, where known. With
    several slices a program counts the partitions of its own slice only, in mesh order, and names devices of others
    by their identifiers.
    """

    def __init__(self, axes: Mapping[str, int], devices: Sequence[tuple[int, int]] = ()):
        self._axes = dict(axes)
        self._by_id = {identifier: place for place, (identifier, _) in enumerate(devices)}
        first = [place for place, (_, part) in enumerate(devices) if part == devices[0][1]]
        self._own = dict(enumerate(first)) if 0 < len(first) < len(devices) else None

    def axis(self, found: ProgramCollective) -> str | None:
        """The axis or axes that a collective runs over; None where its groups fit none."""
        groups, places = found.groups, self._by_id if found.across_slices else self._own
        if groups is None and places is not None:
            groups = (tuple(places),)
        return axis_of(groups, self._axes, places, found.kind == "permute")

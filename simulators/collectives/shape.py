"""The mesh or torus that a network is, was before its failures, or that each of its slices is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from errors import QuestionError
from simulators.topology.lattice import AXES
from simulators.topology.network import KIND_OF, Network

_CLOSING = [KIND_OF["wrap"], KIND_OF["twist"]]


@dataclass(frozen=True)
class Shape:
    """`wraps`: axes that close into rings, shifted or not; `shifted`: those whose closing link shifts along others.

    `whole`: nothing of it has failed.
    """

    axes: tuple[str, ...]
    dims: tuple[int, ...]
    wraps: tuple[bool, ...]
    shifted: tuple[bool, ...]
    whole: bool

    @property
    def rings(self) -> tuple[bool, ...]:
        """Axes that are rings of their own: a shifted one comes back on another line, so that it is none."""
        return tuple(w and not s for w, s in zip(self.wraps, self.shifted, strict=True))

    def all_of(self, axes: Sequence[int]) -> bool:
        """Whether the chips that differ along these axes (positions) are all that there are."""
        return all(k == 1 or i in axes for i, k in enumerate(self.dims))

    def chosen(self, axes: Sequence[str]) -> tuple[int, ...]:
        """Positions of the named axes, in the lattice's order. Raises QuestionError for a name it does not have."""
        for name in axes:
            if name not in self.axes:
                raise QuestionError(f"no axis {name!r} here", expected=f"one or more of {', '.join(self.axes)}")
        return tuple(i for i, name in enumerate(self.axes) if name in axes)


def shape_of(network: Network) -> Shape | None:
    """Read from where chips stand and which kinds of links join them; None where the network is no lattice."""
    if not set(network.axes) <= set(AXES) or network.switches:
        return None
    dims = tuple(int(n) + 1 for n in network.coordinates.max(axis=0))
    if prod(dims) * network.slices != network.chips:
        return None
    closing = np.isin(network.link_kind, _CLOSING)
    ends = network.coordinates[network.links]
    apart = np.abs(ends[:, 0] - ends[:, 1])
    wraps, shifted = [], []
    for axis, k in enumerate(dims):
        mine = closing & (apart[:, axis] == k - 1) & (k > 1)
        wraps.append(bool(mine.any()))
        shifted.append(bool((mine & (network.link_kind == KIND_OF["twist"])).any()))
    count = sum(network.chips // k * (k if w else k - 1) for k, w in zip(dims, wraps, strict=True) if k > 1)
    whole = bool(network.alive.all()) and len(network.links) == count
    return Shape(network.axes, dims, tuple(wraps), tuple(shifted), whole)

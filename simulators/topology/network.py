"""What every network is here: chips, perhaps switches, and links between them, as arrays.

A hop is one link crossed. Optical circuit switches are light paths, not hops: a link through one is one link. Packet
switches (NVLink switches, leaves, spines) are nodes of their own, so that a path through one crosses two links.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from simulators.topology.lattice import Lattice

LINK_KINDS: tuple[tuple[str, str], ...] = (
    ("copper", "between neighbours over copper: inside a cube or a 2D pod, or between boards of a group"),
    ("optical", "between cubes, through an optical circuit switch"),
    ("wrap", "closes an axis into a ring"),
    ("twist", "closes an axis into a ring and shifts along another"),
    ("board", "around the ring of a board"),
    ("ocs", "between groups, through an optical circuit switch"),
    ("nvlink", "from a GPU to a switch of its NVLink domain"),
    ("direct", "from a GPU straight to another"),
    ("rail", "from a GPU's network card to its leaf switch"),
    ("spine", "from a leaf switch to a spine switch"),
    ("core", "from a spine switch to a core switch"),
    ("given", "from an edge list"),
)
"""(name, meaning); `Network.link_kind` holds positions in this tuple."""

KIND_OF = {name: number for number, (name, _) in enumerate(LINK_KINDS)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Nodes `0 .. chips - 1` are chips, then come `switches`. Arrays are never changed in place.

    links         int32 (links, 2): the nodes that each link joins, each link once; parallel links are rows of their own
    link_kind     uint8 (links,): position in LINK_KINDS
    coordinates   int32 (chips, axes): where a chip stands; of a torus its coordinates, else position by part
    axes          names of those columns
    parts         what a chip belongs to: part -> int32 (chips,), such as host, cube, board, group, node, slice
    link_parts    what a link runs through: part -> int32 (links,), -1 where none, such as ocs
    oneway_bytes_per_s   link kind -> bytes/s one way of one such link; a kind may be missing: not known
    lattice       where the network is a mesh or torus without faults: closed forms hold
    alive         bool (nodes,): False for nodes that failed; links of failed nodes are left out of `links`
    slices        equal slices joined by the data-centre network alone; their links are all in `links`
    uniform       every chip sees the same network, and any two links of one kind can be exchanged without changing it
    inferred      sentences on what of the wiring is not published
    """

    spec: str
    kind: str
    chip: str | None
    chips: int
    switches: int = 0
    links: np.ndarray
    link_kind: np.ndarray
    coordinates: np.ndarray
    axes: tuple[str, ...]
    parts: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    link_parts: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    oneway_bytes_per_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    lattice: "Lattice | None" = None
    alive: np.ndarray
    slices: int = 1
    uniform: bool = False
    inferred: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        return self.chips + self.switches

    @property
    def chips_alive(self) -> int:
        return int(np.count_nonzero(self.alive[: self.chips]))

    def degrees(self) -> np.ndarray:
        """Links of each node, int64 (nodes,)."""
        return np.bincount(self.links.ravel(), minlength=self.nodes)

    def without(self, nodes: np.ndarray, links: np.ndarray) -> "Network":
        """The network after failures. `nodes`: bool (nodes,), `links`: bool (links,), True where one failed."""
        alive = self.alive & ~nodes
        kept = ~links & alive[self.links].all(axis=1)
        whole = kept.all() and np.array_equal(alive, self.alive)
        return replace(
            self,
            links=self.links[kept],
            link_kind=self.link_kind[kept],
            alive=alive,
            link_parts={k: v[kept] for k, v in self.link_parts.items()},
            lattice=self.lattice if whole else None,
            uniform=self.uniform and whole,
        )


def make(
    *,
    spec: str,
    kind: str,
    chip: str | None,
    chips: int,
    links: np.ndarray,
    link_kind: np.ndarray,
    coordinates: np.ndarray,
    axes: tuple[str, ...],
    switches: int = 0,
    **more: Any,
) -> Network:
    """A network where nothing has failed; arrays become the types above."""
    return Network(
        spec=spec,
        kind=kind,
        chip=chip,
        chips=chips,
        switches=switches,
        links=np.ascontiguousarray(links, np.int32).reshape(-1, 2),
        link_kind=np.asarray(link_kind, np.uint8),
        coordinates=np.asarray(coordinates, np.int32).reshape(chips, -1),
        axes=axes,
        alive=np.ones(chips + switches, bool),
        **more,
    )

"""Equal slices, computed once: slices share no link, so what holds for one holds for all that look the same."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from simulators.topology.lattice import AXES, Lattice, twist_of
from simulators.topology.network import Network


@dataclass(frozen=True, eq=False)
class Alike:
    """`network`: one slice by itself, its chips numbered from 0. `slices`: the numbers of all slices like it, and
    `rows` int64 (slices, links): where each one's links stand in the whole network.
    """

    network: Network
    slices: np.ndarray
    rows: np.ndarray


def several(network: Network) -> bool:
    """Whether the network falls into slices that can be looked at one by one."""
    return network.slices > 1 and not network.switches


def alike(network: Network) -> Iterator[Alike]:
    """The slices of a network, those that are equal together. Only where `several` says so."""
    size = network.chips // network.slices
    owner = network.links[:, 0] // size
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(network.slices + 1))
    same: dict[bytes, list[int]] = {}
    for s in range(network.slices):
        links = network.links[order[ends[s] : ends[s + 1]]] - s * size
        kinds = network.link_kind[order[ends[s] : ends[s + 1]]]
        alive = network.alive[s * size : (s + 1) * size]
        same.setdefault(links.tobytes() + kinds.tobytes() + alive.tobytes(), []).append(s)
    for slices in same.values():
        rows = np.stack([order[ends[s] : ends[s + 1]] for s in slices])
        yield Alike(_one(network, slices[0], rows[0], size), np.array(slices), rows)


def _one(network: Network, number: int, rows: np.ndarray, size: int) -> Network:
    chips = slice(number * size, (number + 1) * size)
    parts = {k: v[chips] - v[chips].min() for k, v in network.parts.items() if k != "slice"}
    one = replace(
        network,
        chips=size,
        links=network.links[rows] - number * size,
        link_kind=network.link_kind[rows],
        coordinates=network.coordinates[chips],
        alive=network.alive[chips],
        slices=1,
        parts=parts,
        link_parts={k: v[rows] for k, v in network.link_parts.items()},
    )
    lattice = lattice_of(one)
    whole = lattice is not None and one.alive.all() and len(one.links) == len(lattice.links()[0])
    return replace(one, lattice=lattice if whole else None)


def lattice_of(network: Network) -> Lattice | None:
    """The smallest lattice that has all of these links, as the network was before anything failed; None where its
    axes are no lattice's. An axis that lost every link that closes it counts as a line.
    """
    if network.lattice is not None:
        return network.lattice
    if network.switches or network.slices > 1 or network.axes != AXES[: len(network.axes)]:
        return None
    dims = tuple(int(n) + 1 for n in network.coordinates.max(0))
    twists = [t for t in ((), twist_of(dims)) if t is not None]
    for wraps, twist in product(product((False, True), repeat=len(dims)), twists):
        lattice = Lattice(dims, wraps, twist)
        if lattice.chips == network.chips and np.isin(_codes(network.links), _codes(lattice.links()[0])).all():
            return lattice
    return None


def _codes(links: np.ndarray) -> np.ndarray:
    return links[:, 0].astype(np.int64) << 32 | links[:, 1]

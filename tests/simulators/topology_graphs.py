"""Small networks for tests of the topology lab, and slow, plain answers about them."""

from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from simulators.topology.network import KIND_OF, Network, make


def network(chips: int, links: list[tuple[int, int]], switches: int = 0) -> Network:
    return make(
        spec="edges",
        kind="given",
        chip=None,
        chips=chips,
        switches=switches,
        links=np.array(links),
        link_kind=np.full(len(links), KIND_OF["given"]),
        coordinates=np.arange(chips)[:, None],
        axes=("chip",),
    )


@st.composite
def broken(draw: st.DrawFn, chips: int = 12) -> Network:
    """A random graph with parallel links and a switch, some of whose nodes and links have failed."""
    n = draw(st.integers(2, chips))
    nodes = st.integers(0, n)
    ends = st.tuples(nodes, nodes).filter(lambda e: e[0] != e[1])
    links = draw(st.lists(ends, min_size=1, max_size=30))
    found = network(n, links, switches=1)
    dead = draw(st.lists(st.booleans(), min_size=n + 1, max_size=n + 1))
    cut = draw(st.lists(st.booleans(), min_size=len(links), max_size=len(links)))
    often = draw(st.booleans())
    return found.without(np.array(dead) & often, np.array(cut) & often)


def distances(net: Network) -> np.ndarray:
    """Hops between living chips by scipy, inf where there is no way."""
    n = net.nodes
    ones = csr_array((np.ones(len(net.links)), net.links.T), shape=(n, n))
    ones.data[:] = 1  # parallel links are one
    alive = np.flatnonzero(net.alive[: net.chips])
    return shortest_path(ones, directed=False, unweighted=True)[np.ix_(alive, alive)]


def all_paths(net: Network, a: int, b: int) -> list[tuple[tuple[int, bool], ...]]:
    """Every shortest way from a to b as (row of links, forward) steps, found by walking all of them."""
    steps: dict[int, list[tuple[int, int, bool]]] = {}
    for row, (u, v) in enumerate(net.links.tolist()):
        steps.setdefault(u, []).append((v, row, True))
        steps.setdefault(v, []).append((u, row, False))
    ways = [(a, ())]
    for _ in range(net.nodes):
        found = [way for node, way in ways if node == b]
        if found or not ways:
            return found
        met = {node for node, _ in ways}
        ways = [
            (v, (*way, (row, forward)))
            for node, way in ways
            for v, row, forward in steps.get(node, ())
            if v not in met and v not in {net.links[r][0 if f else 1] for r, f in way}
        ]
    return []


def plain_loads(net: Network, pairs: list[tuple[int, int]] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Loads of shortest-path routing by listing every way of every pair."""
    loads = np.zeros((2, len(net.links)))
    chips = np.flatnonzero(net.alive[: net.chips]).tolist()
    for a, b in product(chips, chips) if pairs is None else pairs:
        ways = all_paths(net, a, b) if a != b else []
        for way in ways:
            for row, forward in way:
                loads[0 if forward else 1, row] += 1 / len(ways)
    return loads[0], loads[1]

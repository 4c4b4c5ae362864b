"""One way between two chips, and how many there are as short."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from errors import QuestionError
from simulators.topology.csr import Csr, csr, one_ocs_csr
from simulators.topology.flow import ROUTINGS, require_routing
from simulators.topology.lattice import Lattice
from simulators.topology.network import Network
from simulators.topology.search import require_node


@dataclass(frozen=True)
class Route:
    """`nodes` from one chip to the other, `links`: the rows of `network.links` between them, one fewer.

    `paths`: how many ways are as short and follow the rule; parallel links make ways of their own. `rule`: in words.
    """

    nodes: tuple[int, ...]
    links: tuple[int, ...]
    paths: float
    rule: str

    @property
    def hops(self) -> int:
        return len(self.links)

    def to_dict(self) -> dict[str, Any]:
        paths = self.paths if np.isfinite(self.paths) else None
        return {
            "nodes": list(self.nodes),
            "links": list(self.links),
            "hops": self.hops,
            "paths": paths,
            "rule": self.rule,
        }


def route(network: Network, a: int, b: int, routing: str = "shortest") -> Route:
    """A way from a to b: of several that are as short, the one that goes along the earliest axes first.

    Raises QuestionError where there is none, a node has failed or the network does not have this routing.
    """
    require_routing(network, routing)
    a, b = require_node(network, a), require_node(network, b)
    graph, end = csr(network), b
    if routing == "one_ocs":
        group = network.parts["group"]
        graph, end = one_ocs_csr(network), b + network.nodes * int(group[a] != group[b])
    found = _walk(graph, a, end)
    if found is None:
        raise QuestionError(
            f"no way from {a} to {b} of {network.spec}",
            expected="two chips that links join",
            advice=_why(network, a, b),
        )
    nodes, links, paths = found
    if routing == "dimension_order" and network.lattice is not None:
        paths = float(2 ** _ties(network.lattice, a, b))
    return Route(tuple(n % network.nodes for n in nodes), links, paths, ROUTINGS[routing])


def _walk(graph: Csr, start: int, end: int) -> tuple[tuple[int, ...], tuple[int, ...], float] | None:
    """(nodes, links, number of shortest ways) by the lowest links; None where there is no way."""
    from simulators.topology.kernels import hops  # late: closed forms need no compiler

    far = hops(graph.indptr, graph.neighbours, start)
    if far[end] < 0:
        return None
    tails = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    onward = np.flatnonzero((far[tails] >= 0) & (far[tails] < far[end]) & (far[graph.neighbours] == far[tails] + 1))
    onward = onward[np.lexsort((graph.link[onward], far[tails[onward]]))]
    levels = np.searchsorted(far[tails[onward]], np.arange(far[end] + 1))
    ways_on = np.zeros(graph.nodes)
    ways_on[end] = 1.0
    with np.errstate(over="ignore"):  # more ways than a float can count are infinitely many here
        for level in range(far[end] - 1, -1, -1):
            entries = onward[levels[level] : levels[level + 1]]
            np.add.at(ways_on, tails[entries], ways_on[graph.neighbours[entries]])
    nodes, links = [start], []
    for level in range(far[end]):
        entries = onward[levels[level] : levels[level + 1]]
        good = entries[(tails[entries] == nodes[-1]) & (ways_on[graph.neighbours[entries]] > 0)]
        nodes.append(int(graph.neighbours[good[0]]))
        links.append(int(graph.link[good[0]]))
    return tuple(nodes), tuple(links), float(ways_on[start])


def _ties(lattice: Lattice, a: int, b: int) -> int:
    """Rings on which both ways around are as long."""
    apart = abs(np.diff(np.array(np.unravel_index([a, b], lattice.dims)), axis=1)[:, 0])
    return sum(w and 2 * d == k for d, k, w in zip(apart, lattice.dims, lattice.wraps, strict=True))


def _why(network: Network, a: int, b: int) -> str:
    owner = network.parts.get("slice")
    if owner is not None and max(a, b) < network.chips and owner[a] != owner[b]:
        return "They are in different slices, which only the data-centre network joins"
    return "What failed, or what was never linked, lies between them"

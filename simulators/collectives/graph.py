"""What collectives need to know of any network, whole or broken: its weakest chip, busiest link, reach and cuts."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, maximum_flow

from errors import QuestionError
from simulators.topology.cuts.bisection import bisection
from simulators.topology.loads import link_loads
from simulators.topology.network import KIND_OF, LINK_KINDS, Network
from simulators.topology.search import HopCounts, hop_counts

_KEPT = 16  # networks whose numbers are remembered: a page asks for the same ones again at each click
_FLOW_UNIT = 1e6  # bytes/s; the search for flows counts in whole numbers


@lru_cache(_KEPT)
def reach(network: Network) -> HopCounts:
    """Hops between living chips. Raises QuestionError where some cannot reach others: no collective ends there."""
    joined = coo_array((np.ones(len(network.links), bool), tuple(network.links.T)), shape=(network.nodes,) * 2)
    _, part = connected_components(joined, directed=False)
    pieces = len(set(part[: network.chips][network.alive[: network.chips]].tolist()))
    if pieces != 1:
        raise QuestionError(
            f"{network.spec} is in {pieces} pieces: no collective over all of it ends"
            if pieces
            else f"{network.spec} has no chip left",
            advice="Take back a failure.",
        )
    return hop_counts(network)


@lru_cache(_KEPT)
def links_of_chips(network: Network) -> np.ndarray:
    """How many links of each kind each living chip has, int64 (living chips, kinds)."""
    kinds = np.repeat(network.link_kind.astype(np.int64), 2)
    ends = network.links.ravel().astype(np.int64)
    counts = np.bincount(ends * len(LINK_KINDS) + kinds, minlength=network.nodes * len(LINK_KINDS))
    return counts.reshape(network.nodes, -1)[: network.chips][network.alive[: network.chips]]


def chip_rates(network: Network, rates: Mapping[str, float], leave_out: tuple[str, ...] = ()) -> np.ndarray:
    """Bytes/s one way of all links of each living chip together, but for those of some kinds; float64 (chips,)."""
    each = np.array([0.0 if name in leave_out else rates.get(name, 0.0) for name, _ in LINK_KINDS])
    return links_of_chips(network) @ each


def link_rates(network: Network, rates: Mapping[str, float]) -> np.ndarray:
    """Bytes/s one way of each link, float64 (links,)."""
    return np.array([rates.get(name, 0.0) for name, _ in LINK_KINDS])[network.link_kind]


@lru_cache(_KEPT * 4)
def loads_by_kind(network: Network, pattern: str, routing: str) -> Mapping[str, float]:
    """Kind of link -> messages on the busiest link of that kind, one way."""
    return {kind: most for kind, (_, _, most) in link_loads(network, pattern, routing).by_kind().items()}


def busiest(network: Network, rates: Mapping[str, float], pattern: str, routing: str) -> float:
    """Seconds that the busiest link takes where every message has one byte."""
    return max((most / rates[kind] for kind, most in loads_by_kind(network, pattern, routing).items()), default=0.0)


@lru_cache(_KEPT)
def _cuts(network: Network) -> tuple[tuple[np.ndarray, int], ...]:
    """(links across, ordered pairs across one way) of some halvings: any of them bounds an all-to-all from below.

    The narrowest found, and but for an edge list, where nothing is known of places, the middle of each axis.
    """
    found = bisection(network).side
    sides = [] if found is None else [found]
    if set(network.link_kind.tolist()) != {KIND_OF["given"]}:
        halves = network.coordinates.max(axis=0) // 2
        sides += [network.coordinates[:, axis] <= half for axis, half in enumerate(halves)]
    alive = network.alive[: network.chips]
    return tuple(
        (
            side[network.links[:, 0]] != side[network.links[:, 1]],
            int(np.count_nonzero(side & alive)) * int(np.count_nonzero(~side & alive)),
        )
        for side in sides
    )


def least_all_to_all(network: Network, rates: Mapping[str, float]) -> float:
    """Seconds below which no routing brings an all-to-all of one byte a pair.

    The greater of two bounds: all hops together over all links together; pairs across a halving over its links.
    """
    each = link_rates(network, rates)
    counts = reach(network).counts
    bound = float(counts @ np.arange(len(counts))) / (2 * each.sum()) if each.sum() else 0.0
    if network.switches:
        return bound
    return max([bound, *(pairs / float(each[across].sum()) for across, pairs in _cuts(network) if across.any())])


def flow(network: Network, rates: Mapping[str, float], inside: np.ndarray) -> float:
    """Bytes/s that can leave a set of chips for all other living ones, one way. `inside`: bool (chips,)."""
    each = np.maximum(link_rates(network, rates) / _FLOW_UNIT, 1).astype(np.int64)
    source, sink = network.nodes, network.nodes + 1
    alive = network.alive[: network.chips]
    ours, others = np.flatnonzero(inside & alive), np.flatnonzero(~inside & alive)
    a, b = network.links.T
    endless = np.int64(2**30)
    rows = np.concatenate([a, b, np.full(len(ours), source), others])
    columns = np.concatenate([b, a, ours, np.full(len(others), sink)])
    most = np.concatenate([each, each, np.full(len(ours) + len(others), endless)])
    graph = coo_array((most, (rows, columns)), shape=(sink + 1,) * 2).tocsr()
    return maximum_flow(graph.astype(np.int32), source, sink).flow_value * _FLOW_UNIT

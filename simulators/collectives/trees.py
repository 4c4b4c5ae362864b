"""The fastest an array can be gathered on any graph: by the cut that is narrowest for what must cross it.

Every chip must get V/N from each other one, so a set S of chips that is not all of them sends V |S|/N over the links
that leave it. The least x = (bytes/s leaving S) / |S| over all S is what each chip can send at once, and trees packed
into the links reach it (ForestColl, arXiv:2402.06787): an all-gather takes (V/N) / x. It is found by maximum flows: a
source that gives x to every chip must be able to bring N x to each sink; where it cannot, its minimum cut is narrower,
and x is taken from that cut.
"""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from simulators.collectives.graph import chip_rates, link_rates
from simulators.topology.network import Network

MOST_SINKS = 256  # chips up to which every sink is tried
SOME_SINKS = 64  # tried beyond: half of them the chips with the fewest links, the others spread evenly
_MOST = np.iinfo(np.int32).max  # more than all links of a chip: no flow to one is held back by it
_UNITS = 1e9  # of all links of a chip together: flows are searched in whole numbers of 32 bits
_CLOSE = 1e-3  # a cut narrower by less is rounding


def gathering_bytes_per_s(network: Network, rates: Mapping[str, float]) -> float:
    """Bytes/s at which a chip receives what it lacks of the array, V (N-1)/N of it, at best. Needs two living chips."""
    chips = np.flatnonzero(network.alive[: network.chips])
    each = chip_rates(network, rates)
    share = float(each.min()) / (len(chips) - 1)
    unit = float(each.max()) / _UNITS
    for sink in chips[_sinks(each)]:
        share = _narrowed(network, rates, chips, int(sink), share, unit)
    return share * (len(chips) - 1)


def _sinks(each: np.ndarray) -> np.ndarray:
    """Which of the living chips to try as a sink, the weakest first."""
    order = np.argsort(each, kind="stable")
    if len(order) <= MOST_SINKS:
        return order
    half = SOME_SINKS // 2
    return np.concatenate([order[:half], order[half :: len(order) // half]])


def _narrowed(
    network: Network, rates: Mapping[str, float], chips: np.ndarray, sink: int, share: float, unit: float
) -> float:
    """`share`, or less where a cut before this sink is narrower."""
    capacity = link_rates(network, rates)
    source = network.nodes
    a, b = network.links.T
    rows = np.concatenate([a, b, np.full(len(chips), source)])
    columns = np.concatenate([b, a, chips])
    while True:
        given = np.full(len(chips), share)
        most = np.maximum(np.rint(np.concatenate([capacity, capacity, given]) / unit), 1)
        graph = csr_array(coo_array((most, (rows, columns)), shape=(source + 1,) * 2))
        graph.data = np.minimum(graph.data, _MOST).astype(np.int32)  # parallel links of switches add up to more
        found = maximum_flow(graph, source, sink)
        if found.flow_value >= (1 - _CLOSE) * len(chips) * share / unit:
            return share
        left = csr_array(graph - found.flow)
        left.eliminate_zeros()
        inside = np.zeros(source + 1, bool)
        inside[breadth_first_order(left, source, return_predecessors=False)] = True
        behind = np.count_nonzero(inside[chips])
        narrower = float(capacity[inside[a] != inside[b]].sum()) / max(behind, 1)
        if not behind or narrower >= share * (1 - _CLOSE):
            return share
        share = narrower

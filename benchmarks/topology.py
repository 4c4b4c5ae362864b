"""Hops and link loads side by side: `python -m benchmarks.topology`, our searches and scipy's all-pairs search.

The peer is `scipy.sparse.csgraph.shortest_path` (unweighted, from every chip; of large graphs from some of the chips,
and its time scaled: it is linear in them). It counts no loads. Both count the same pairs on the same graphs.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from simulators.topology import build
from simulators.topology.cuts.bisection import bisection
from simulators.topology.flow import living
from simulators.topology.loads import link_loads
from simulators.topology.network import Network
from simulators.topology.search import hop_counts, hops_from

FAILED = 0.01  # share of chips and of links
PEER = 400  # chips that the peer searches from
CASES = (
    "torus:16x24x24",
    "torus:20x20x24",
    "torus:12x24x24:twisted",
    "boardfly:1152",
    "torus:20x20x25!",
    "mesh:20x20x25!",
    "v5e:16x16:slices=199",
)
"""A name with `!`: after random failures."""


def main() -> int:
    hop_counts(build("boardfly:64")), bisection(build("boardfly:64"))  # compiles, where nobody has
    off = 0
    print(f"{'':24}{'hops':>10}{'loads':>10}{'bisection':>11}{'scipy hops':>12}{'ratio':>10}")
    for name in CASES:
        net = build(name.rstrip("!"))
        net = broken(net) if name.endswith("!") else net
        counts, hops_s = timed(lambda net=net: hop_counts(net))
        _, loads_s = timed(lambda net=net: link_loads(net))
        _, cut_s = timed(lambda net=net: bisection(net))
        peer_s, wrong = peer(net)
        off += wrong
        print(
            f"{name:24}{seconds(hops_s):>10}{seconds(loads_s):>10}{seconds(cut_s):>11}{seconds(peer_s):>12}"
            f"{peer_s / hops_s:>9,.0f}x"
        )
    print(f"pairs that the two count differently: {off}")
    return 0 if off == 0 else 1


def broken(net: Network) -> Network:
    rng = np.random.default_rng(1)
    return net.without(rng.random(net.nodes) < FAILED, rng.random(len(net.links)) < FAILED)


def peer(net: Network) -> tuple[float, int]:
    """(seconds of the peer for all chips, pairs of a few sources that it and we count differently)."""
    ends = net.links.T
    graph = coo_array((np.ones(len(net.links)), ends), shape=(net.nodes, net.nodes)).tocsr()
    chips = living(net)
    some = chips[:: -(-len(chips) // PEER)]
    far, took = timed(lambda: shortest_path(graph, method="D", directed=False, unweighted=True, indices=some))
    mine = np.stack([hops_from(net, int(chip)) for chip in some[:20]])
    wrong = np.count_nonzero(np.where(mine < 0, np.inf, mine) != far[:20])
    return took / len(some) * len(chips), int(wrong)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def seconds(value: float) -> str:
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1e3:,.2f} ms"


if __name__ == "__main__":
    sys.exit(main())

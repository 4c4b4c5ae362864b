"""What each link carries when all chips talk, by pattern and routing; nothing is timed here, messages are counted."""

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from errors import QuestionError
from simulators.topology import one_ocs
from simulators.topology.alike import alike, several
from simulators.topology.dimension_order import dimension_order
from simulators.topology.flow import (
    ROUTINGS,
    TooMany,
    flow,
    living,
    require_routing,
    routings,
    straight_lattice,
    usual_routing,
)
from simulators.topology.network import LINK_KINDS, Network
from simulators.topology.patterns import ALL_TO_ALL, PATTERNS, pairs
from simulators.topology.search import hop_counts

__all__ = (
    "ALL_TO_ALL",
    "PATTERNS",
    "ROUTINGS",
    "LinkLoads",
    "TooMany",
    "by_routing",
    "link_loads",
    "routings",
    "usual_routing",
    "without_way",
)


@dataclass(frozen=True, eq=False)
class LinkLoads:
    """What runs over each link from its first node to its second and back, float64 (links,), in rows of
    `network.links`, exact up to rounding.
    """

    forward: np.ndarray
    backward: np.ndarray
    link_kind: np.ndarray
    pattern: str
    routing: str
    unit: str

    @property
    def max(self) -> float:
        """The busiest link's load in its busier direction; 0 without links."""
        return max(float(self.forward.max(initial=0.0)), float(self.backward.max(initial=0.0)))

    def by_kind(self) -> dict[str, tuple[float, float, float]]:
        """Kind of link -> (least, mean, most) over its links in both directions."""
        found = {}
        for number in np.unique(self.link_kind):
            chosen = self.link_kind == number
            both = np.concatenate([self.forward[chosen], self.backward[chosen]])
            found[LINK_KINDS[number][0]] = (float(both.min()), float(both.mean()), float(both.max()))
        return found


def link_loads(network: Network, pattern: str = ALL_TO_ALL, routing: str = "shortest", seed: int = 0) -> LinkLoads:
    """The load of every link. Pairs without a way between them load nothing. Each slice has the
    pattern to itself: nothing crosses from one to another over these links. `seed` is for the pattern "random".

    Raises QuestionError for a pattern or routing that does not exist, or that this network does not have; TooMany where
    there are more ways to follow than `flow.MOST_STEPS`.
    """
    if pattern not in PATTERNS:
        raise QuestionError(f"no pattern {pattern!r}", expected=" or ".join(PATTERNS))
    require_routing(network, routing)
    return _loads(network, pattern, routing, seed if pattern == "random" else 0)


def by_routing(network: Network, pattern: str = ALL_TO_ALL) -> dict[str, LinkLoads]:
    """By every routing that the network has, the usual one first; without those that take too long to count, and those
    that have no way for pairs that links join: their links would seem to carry less.
    """
    usual, found = usual_routing(network), {}
    for routing in sorted(routings(network), key=lambda r: r != usual):
        if without_way(network, routing):
            continue
        with suppress(TooMany):
            found[routing] = link_loads(network, pattern, routing)
    return found


def without_way(network: Network, routing: str) -> int:
    """Ordered pairs of chips that links join, but that this routing has no way for."""
    if routing != "one_ocs":
        return 0
    return hop_counts(network, routing).unreachable - hop_counts(network).unreachable


@lru_cache(maxsize=8)
def _loads(network: Network, pattern: str, routing: str, seed: int) -> LinkLoads:
    if several(network):
        forward, backward = np.zeros((2, len(network.links)))
        for part in alike(network):
            one = link_loads(part.network, pattern, routing, seed)
            forward[part.rows], backward[part.rows] = one.forward, one.backward
    else:
        listed = None if pattern == ALL_TO_ALL else pairs(network, pattern, seed)
        if routing == "dimension_order":
            forward, backward = dimension_order(straight_lattice(network), listed)
        elif routing == "one_ocs":
            forward, backward = one_ocs.loads(network, listed)
        elif listed is not None:
            forward, backward = flow(network, *listed)
        else:
            forward, backward = _all_to_all(network)
    what = "ordered pairs of chips" if pattern == ALL_TO_ALL else "messages"
    unit = f"{what} per directed link"
    forward.flags.writeable = backward.flags.writeable = False  # kept for the next who asks
    return LinkLoads(forward, backward, network.link_kind, pattern, routing, unit)


def _all_to_all(network: Network) -> tuple[np.ndarray, np.ndarray]:
    chips, lattice = living(network), network.lattice
    if lattice is not None and lattice.transitive and len(network.links):
        axis = lattice.links()[1]  # moving every chip along moves each link to all others of its axis
        forward, backward = (np.bincount(axis, way)[axis] for way in flow(network, chips[:1]))
        return forward, backward
    if network.uniform:
        return _spread(network, *flow(network, chips[:1]))
    return flow(network, chips)


def _spread(network: Network, forward: np.ndarray, backward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What all chips send, from what one does: on a uniform network the links of a kind share it alike.

    A link from a chip to a switch tells its two directions apart; one between two chips does not.
    """
    kind, links = network.link_kind, np.maximum(np.bincount(network.link_kind), 1)
    up, down = (np.bincount(kind, way) * network.chips / links for way in (forward, backward))
    level = np.bincount(kind, (network.links < network.chips).all(axis=1)) > 0
    up[level] = down[level] = (up[level] + down[level]) / 2
    return up[kind], down[kind]

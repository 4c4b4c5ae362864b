"""What each link carries when all chips talk, by pattern and routing; nothing is timed here, messages are counted."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from errors import QuestionError
from simulators.topology import one_ocs
from simulators.topology.alike import alike, several
from simulators.topology.dimension_order import dimension_order
from simulators.topology.flow import ROUTINGS, flow, living, require_routing, routings, usual_routing
from simulators.topology.network import LINK_KINDS, Network
from simulators.topology.patterns import ALL_TO_ALL, PATTERNS, pairs

__all__ = ("ALL_TO_ALL", "PATTERNS", "ROUTINGS", "LinkLoads", "link_loads", "routings", "usual_routing")
MOST_STEPS = 2e9  # senders times entries of the graph that are followed one by one: some seconds on two cores


@dataclass(frozen=True, eq=False)
class LinkLoads:
    """What runs over each link from its first node to its second and back, float64 (links,), in rows of
    `network.links`. `exact`: False where a sample of the chips sent and the loads were scaled up to all.
    """

    forward: np.ndarray
    backward: np.ndarray
    link_kind: np.ndarray
    pattern: str
    routing: str
    unit: str
    exact: bool = True

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
    """The load of every link, exact up to rounding. Pairs without a way between them load nothing. Each slice has the
    pattern to itself: nothing crosses from one to another over these links. `seed` is for the pattern "random".

    Raises QuestionError for a pattern or routing that does not exist, or that this network does not have.
    """
    if pattern not in PATTERNS:
        raise QuestionError(f"no pattern {pattern!r}", expected=" or ".join(PATTERNS))
    require_routing(network, routing)
    return _loads(network, pattern, routing, seed if pattern == "random" else 0)


@lru_cache(maxsize=8)
def _loads(network: Network, pattern: str, routing: str, seed: int) -> LinkLoads:
    exact = True
    if several(network):
        forward, backward = np.zeros((2, len(network.links)))
        for part in alike(network):
            one = link_loads(part.network, pattern, routing, seed)
            forward[part.rows], backward[part.rows] = one.forward, one.backward
            exact = exact and one.exact
    else:
        listed = None if pattern == ALL_TO_ALL else pairs(network, pattern, seed)
        if routing == "dimension_order":
            forward, backward = dimension_order(network.lattice, listed)
        elif routing == "one_ocs":
            forward, backward = one_ocs.loads(network, listed)
        elif listed is not None:
            forward, backward = flow(network, *listed)
        else:
            forward, backward, exact = _all_to_all(network)
    what = "ordered pairs of chips" if pattern == ALL_TO_ALL else "messages"
    unit = f"{what} per directed link" + ("" if exact else ", estimated from a sample of senders")
    forward.flags.writeable = backward.flags.writeable = False  # kept for the next who asks
    return LinkLoads(forward, backward, network.link_kind, pattern, routing, unit, exact)


def _all_to_all(network: Network) -> tuple[np.ndarray, np.ndarray, bool]:
    chips, lattice = living(network), network.lattice
    if lattice is not None and lattice.transitive and len(network.links):
        axis = lattice.links()[1]  # moving every chip along moves each link to all others of its axis
        forward, backward = (np.bincount(axis, way)[axis] for way in flow(network, chips[:1]))
        return forward, backward, True
    if network.uniform:
        return *_spread(network, *flow(network, chips[:1])), True
    most = max(1, int(MOST_STEPS / max(1, 2 * len(network.links))))
    sample = np.sort(np.random.default_rng(0).choice(chips, most, replace=False)) if most < len(chips) else chips
    forward, backward = flow(network, sample)
    scale = len(chips) / max(1, len(sample))
    return forward * scale, backward * scale, len(sample) == len(chips)


def _spread(network: Network, forward: np.ndarray, backward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What all chips send, from what one does: on a uniform network the links of a kind share it alike.

    A link from a chip to a switch tells its two directions apart; one between two chips does not.
    """
    kind, links = network.link_kind, np.maximum(np.bincount(network.link_kind), 1)
    up, down = (np.bincount(kind, way) * network.chips / links for way in (forward, backward))
    level = np.bincount(kind, (network.links < network.chips).all(axis=1)) > 0
    up[level] = down[level] = (up[level] + down[level]) / 2
    return up[kind], down[kind]

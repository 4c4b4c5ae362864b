"""Hops between chips, exactly: how far each pair is apart, and which way one takes.

Closed forms serve whole tori and meshes; where every chip sees the same network, a search from one chip is enough;
elsewhere each chip is searched from, 512 at a time.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from errors import QuestionError
from simulators.topology import one_ocs
from simulators.topology.alike import alike, several
from simulators.topology.csr import csr
from simulators.topology.flow import added, living, require_routing, threaded
from simulators.topology.network import Network

CLOSED_FORM = "closed form, exact"
ONE_SEARCH = "search from one chip, exact: every chip of this network sees the same"
EVERY_CHIP = "search from every chip, exact"
_BLOCK = 8  # along each axis: 512 chips of a three-dimensional torus, as many as one pass serves
ALIKE = "equal slices counted once, exact"


@dataclass(frozen=True, eq=False)
class HopCounts:
    """Ordered pairs of living chips by hops, int64 (diameter + 1,); a hop is one link crossed and counts[0] is 0.

    `unreachable`: ordered pairs with no way between them over these links. `basis`: how the counts were found.
    """

    counts: np.ndarray
    unreachable: int
    basis: str

    @property
    def diameter(self) -> int | None:
        """Hops between the two chips farthest apart that reach each other; None where no chip reaches another."""
        return len(self.counts) - 1 or None

    @property
    def mean(self) -> float | None:
        """Hops on average over ordered pairs of different chips that reach each other; None where none does."""
        pairs = int(self.counts.sum())
        return int(self.counts @ np.arange(len(self.counts))) / pairs if pairs else None

    @property
    def connected(self) -> bool:
        return self.unreachable == 0

    def to_dict(self) -> dict[str, int]:
        """Hops -> ordered pairs."""
        return {str(hops): int(pairs) for hops, pairs in enumerate(self.counts) if pairs}


@lru_cache(maxsize=16)
def hop_counts(network: Network, routing: str = "shortest") -> HopCounts:
    """How many ordered pairs of living chips are how many hops apart. Chips of different slices share no link and
    count as unreachable. With the routing "one_ocs" a way crosses at most one optical link.

    Raises QuestionError for a routing that this network does not have.
    """
    require_routing(network, routing)
    if several(network):
        found = [(hop_counts(part.network, routing), len(part.slices)) for part in alike(network)]
        counts, basis = added([one.counts * times for one, times in found]), ALIKE
    elif routing == "one_ocs":
        counts, basis = one_ocs.counts(network), EVERY_CHIP
    else:
        counts, basis = _shortest(network)
    counts = counts[: int(np.flatnonzero(counts).max(initial=0)) + 1]
    counts.flags.writeable = False  # kept for the next who asks
    chips = network.chips_alive
    return HopCounts(counts, chips * (chips - 1) - int(counts.sum()), basis)


def _shortest(network: Network) -> tuple[np.ndarray, str]:
    lattice = network.lattice
    if lattice is not None and (lattice.transitive or not lattice.twisted):
        once = np.bincount(hops_from(network, 0)) * lattice.chips if lattice.twisted else lattice.hop_counts()
        return np.concatenate([[0], once[1:]]), ONE_SEARCH if lattice.twisted else CLOSED_FORM
    from simulators.topology.kernels import BATCH, counts  # late: closed forms need no compiler

    graph, chips = csr(network), living(network)
    blocks = network.coordinates[chips] // _BLOCK  # chips near each other reach others at nearly the same time
    chips = chips[np.lexsort(blocks.T[::-1])]
    batches = [chips[at : at + BATCH] for at in range(0, len(chips), BATCH)]
    found = threaded(lambda batch: counts(graph.indptr, graph.neighbours, network.chips, batch), batches)
    return added(found), EVERY_CHIP


def hops_from(network: Network, source: int) -> np.ndarray:
    """Hops from one living node to every node, int32 (nodes,); -1 where there is no way. Raises QuestionError."""
    from simulators.topology.kernels import hops  # late: closed forms need no compiler

    graph = csr(network)
    return hops(graph.indptr, graph.neighbours, require_node(network, source))


def require_node(network: Network, number: int) -> int:
    """The number. Raises QuestionError where the network has no such node, or it has failed."""
    if not 0 <= number < network.nodes:
        raise QuestionError(f"{network.spec} has no node {number}", expected=f"0 to {network.nodes - 1:,}")
    if not network.alive[number]:
        what = "chip" if number < network.chips else "switch"
        raise QuestionError(
            f"{what} {number} of {network.spec} has failed: nothing starts or ends there", expected="one that is alive"
        )
    return int(number)

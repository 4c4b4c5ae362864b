"""The bisection: fewest links between two halves of the living chips, exactly or between what is found and proved.

Halves differ by one chip at most; a switch stands on the side where it costs least. Of a whole torus or mesh the
smallest cut across an even axis of k chips is 2 N/k links on a ring, N/k on a line. All-to-all with dimension order
loads the links of an axis with N k/8 or N k/4 pairs at most, and N^2/4 pairs must cross any halves: so no cut is below
N over the longest axis (a line counting twice), and the cut across that axis is exact where it is even.
"""

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from simulators.topology.alike import alike, several
from simulators.topology.cuts.bounds import flow_bound, spectral_bound, spectrum
from simulators.topology.cuts.search import search
from simulators.topology.dimension_order import dimension_order
from simulators.topology.flow import living
from simulators.topology.lattice import Lattice
from simulators.topology.network import Network

MOST_TRIED = 16  # chips up to which every cut is tried
TRIED = "exact: every cut into halves was tried"
AXIS = "exact: across the longest axis, which link loads prove to be the least"
STAR = "exact: every switch is joined to all chips alike"


@dataclass(frozen=True, eq=False)
class Bisection:
    """`links`: of the best cut found; `low`: what no cut is below; `basis` starts with "exact" where both are equal.

    `side` bool (chips,): one half of that cut. With several slices all of this is of one slice, the weakest: between
    slices there are no such links. `links` is None where fewer than two chips live.
    """

    links: int | None
    low: int | None
    basis: str
    side: np.ndarray | None

    @property
    def exact(self) -> bool:
        return self.links is not None and self.links == self.low


def bisection(network: Network) -> Bisection:
    """The bisection of the living chips of a network. Takes milliseconds on a whole lattice, seconds elsewhere."""
    if several(network):
        return _weakest(network)
    chips = network.chips_alive
    if chips < 2:
        return Bisection(None, None, "unknown: fewer than two chips live", None)
    if network.lattice is not None and not network.lattice.twisted:
        found = _across(network.lattice)
        if found.exact:
            return found
    if network.switches:
        star = _star(network)
        if star is not None:
            return star
    elif chips <= MOST_TRIED:
        return _tried(network)
    return _searched(network)


def _across(lattice: Lattice) -> Bisection:
    """Across the even axis that costs least; `low` from the loads of dimension order."""
    n = lattice.chips
    axes = enumerate(zip(lattice.dims, lattice.wraps, strict=True))
    even = [(n // k * (2 if w else 1), axis) for axis, (k, w) in axes if k % 2 == 0]
    low = ceil((n // 2) * (n - n // 2) / np.max(dimension_order(lattice, None)) - 1e-9)
    if not even:
        return Bisection(None, low, "", None)
    links, axis = min(even)
    side = lattice.coordinates()[:, axis] < lattice.dims[axis] // 2
    return Bisection(links, low, AXIS, side)


def _star(network: Network) -> Bisection | None:
    """Of chips that only meet in switches, each joined to every living chip by as many links; None where not so."""
    chips = living(network)
    ends = np.sort(network.links, axis=1)
    if (ends[:, 0] >= network.chips).any() or (ends[:, 1] < network.chips).any():
        return None
    joined = np.zeros((network.switches, network.chips), np.int64)
    np.add.at(joined, (ends[:, 1] - network.chips, ends[:, 0]), 1)
    joined = joined[:, chips]
    if (joined != joined[:, :1]).any():
        return None
    links = int(joined[:, 0].sum()) * (len(chips) // 2)
    side = np.zeros(network.chips, bool)
    side[chips[: len(chips) // 2]] = True
    return Bisection(links, links, STAR, side)


def _tried(network: Network) -> Bisection:
    chips = living(network)
    n = len(chips)
    cuts = np.arange(1 << (n - 1), dtype=np.uint32)  # the last chip always stands on the other side
    cuts = cuts[abs(2 * np.bitwise_count(cuts).astype(int) - n) <= 1]
    place = np.zeros(network.nodes, np.uint32)
    place[chips] = np.arange(n)
    crossed = np.zeros(len(cuts), np.int64)
    for a, b in place[network.links]:
        crossed += (cuts >> a ^ cuts >> b) & 1
    best = int(crossed.argmin())
    side = np.zeros(network.chips, bool)
    side[chips] = cuts[best] >> np.arange(n, dtype=np.uint32) & 1
    return Bisection(int(crossed[best]), int(crossed[best]), TRIED, side)


def _searched(network: Network) -> Bisection:
    value, vectors = spectrum(network)
    bounds = {"flow": flow_bound(network)}
    if value is not None:
        bounds["spectral"] = spectral_bound(value, network.chips_alive)
    links, side = search(network, vectors)
    name, low = max(bounds.items(), key=lambda bound: bound[1])
    if low >= links:
        return Bisection(links, links, f"exact: the cut found meets the {name} bound", side)
    proved = f"at least {low:,} by the {name} bound" if low else "no bound proved"
    return Bisection(links, low, f"best cut found, {proved}", side)


def _weakest(network: Network) -> Bisection:
    found = [(bisection(part.network), part.slices) for part in alike(network)]
    known = [(one, slices) for one, slices in found if one.links is not None]
    if not known:
        return found[0][0]
    worst = min((one for one, _ in known), key=lambda one: one.links or 0)
    side = np.zeros((network.slices, network.chips // network.slices), bool)
    for one, slices in known:
        side[slices] = one.side
    return replace(worst, basis=f"{worst.basis}; of one slice" + ", the weakest" * (len(found) > 1), side=side.ravel())

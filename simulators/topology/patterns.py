"""Who sends to whom: the patterns that are lists of pairs. All-to-all is every ordered pair and needs no list."""

from collections.abc import Mapping
from math import isqrt
from types import MappingProxyType

import numpy as np

from simulators.topology.alike import lattice_of
from simulators.topology.flow import living
from simulators.topology.network import Network

ALL_TO_ALL = "all_to_all"
PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        ALL_TO_ALL: "each chip sends one message to each other",
        "ring": "each chip sends one message to its neighbour each way along every ring or line; where there are no "
        "axes, "
        "to the chips numbered just above and below it",
        "shift": "each chip sends one message to the chip numbered half the machine further on",
        "transpose": "chips stand in a rectangle, as near a square as their number allows, and send across its "
        "diagonal",
        "random": "each chip sends one message to one other drawn at random; every chip receives one",
    }
)


def pairs(network: Network, pattern: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(sources, destinations), chips that live; a chip that would send to itself sends nothing."""
    if pattern == "ring":
        return _ring(network)
    chips = living(network)
    n = len(chips)
    if pattern == "shift":
        to = np.roll(chips, -(n // 2))
    elif pattern == "transpose":
        rows = next((d for d in range(isqrt(n), 0, -1) if n % d == 0), 1)
        to = chips.reshape(rows, -1).T.ravel()
        to = chips[np.argsort(to, kind="stable")] if n else chips
    else:
        to = np.random.default_rng(seed).permutation(chips)
    apart = chips != to
    return chips[apart], to[apart]


def _ring(network: Network) -> tuple[np.ndarray, np.ndarray]:
    lattice = lattice_of(network)
    if lattice is None:
        chips = living(network)
        here, on = chips, np.roll(chips, -1)
    else:
        here, on = lattice.links()[0].T
    kept = network.alive[here] & network.alive[on] & (here != on)
    here, on = here[kept], on[kept]
    return np.concatenate([here, on]), np.concatenate([on, here])

"""Packet switches of a network told apart by what hangs on them: NVLink switches, leaves, spines, cores."""

import numpy as np

from simulators.topology.network import KIND_OF, Network

SWITCHES: tuple[tuple[str, str, str], ...] = (  # (name, the lowest kind of link that it holds, meaning)
    ("nvswitch", "nvlink", "a switch of an NVLink domain"),
    ("leaf", "rail", "the switch that network cards are joined to"),
    ("spine", "spine", "a switch that joins leaves"),
    ("core", "core", "a switch that joins the spines of several pods"),
)


def switch_kinds(network: Network) -> np.ndarray:
    """Position in SWITCHES of each switch, int8 (switches,); -1 where its links do not tell, as in edge lists."""
    kinds = np.full(network.switches, -1, np.int8)
    for number in reversed(range(len(SWITCHES))):  # what is found last is the lowest kind, and stays
        ends = network.links[network.link_kind == KIND_OF[SWITCHES[number][1]]]
        kinds[ends[ends >= network.chips] - network.chips] = number
    return kinds


def of_kind(network: Network, name: str) -> np.ndarray:
    """Nodes that are switches of this name of SWITCHES, ascending."""
    number = [s[0] for s in SWITCHES].index(name)
    return network.chips + np.flatnonzero(switch_kinds(network) == number)

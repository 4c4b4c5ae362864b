"""Collectives over GPUs under packet switches: an NVLink domain, or nodes under leaves and spines.

A level is (D, w): D equal groups, of which each has w bytes/s one way to the others of its level: 8 GPUs of 450 GB/s
in a node, 32 nodes of 400 GB/s in a unit, units in the whole. Array of V bytes, N GPUs:

    all-gather    V max over levels of (D-1)/(D w); so does a reduce-scatter; an all-reduce is both
    all-reduce    with reduction in the switches (SHARP) V/w in theory instead of 2 V (D-1)/(D w)
    all-to-all    V (M-1)/(M^2 w) for the M groups that the whole has of each level

Source: How to Scale Your Model (scaling book), "How to think about GPUs".
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from simulators.collectives.cost import PASSES, Cost, Setting, one
from simulators.collectives.general import PRACTICE
from simulators.collectives.graph import busiest, chip_rates, flow, reach
from simulators.collectives.rings import Time, one_way_all_gather, point_to_point
from simulators.topology.network import LINK_KINDS, Network

SCALE_UP = ("nvlink", "direct")
NESTED = ("host", "unit", "pod")

Level = tuple[int, float]  # (groups, bytes/s one way of each)


def all_gather(array_bytes: float, levels: Sequence[Level]) -> float:
    """Seconds of the slowest level."""
    return array_bytes * max(((d - 1) / (d * w) for d, w in levels if d > 1), default=0.0)


def all_reduce(array_bytes: float, levels: Sequence[Level], sharp: bool = False) -> float:
    """Seconds. `sharp`: the switches add up, so that each byte crosses a level once each way at the same time."""
    if sharp:
        return array_bytes * max((1 / w for d, w in levels if d > 1), default=0.0)
    return 2 * all_gather(array_bytes, levels)


def all_to_all(array_bytes: float, groups: Sequence[Level]) -> float:
    """Seconds. `groups`: here each level's groups in the whole machine, not in the group above."""
    return array_bytes * max(((m - 1) / (m * m * w) for m, w in groups if m > 1), default=0.0)


def gathering_bytes_per_s(groups: int, oneway_bytes_per_s: float) -> float:
    """The rate at which an array seems to be gathered: w D/(D-1), above the links' own as a part is there already."""
    return oneway_bytes_per_s * groups / (groups - 1)


def egress_bytes_per_s(gpus: int, cards_bits_per_s: float) -> float:
    """Bytes/s one way that leave a node or rack of so many GPUs, each with a network card of so many bits/s."""
    return gpus * cards_bits_per_s / 8


def cost(
    network: Network, kind: str, setting: Setting, end: str, routing: str = "shortest", sharp: bool = False
) -> Cost:
    """Over all living GPUs. Raises QuestionError where they are in pieces."""
    hops = (reach(network).diameter or 0) * setting.hop_s
    rates = tuple(sorted(setting.link_bytes_per_s.items()))
    levels, groups = levels_of(network, rates), groups_of(network, rates)
    slower = PRACTICE if end == "high" else 1.0
    where = "switches of one domain" if len(levels) == 1 else f"{len(levels)} levels of switches"
    if kind in PASSES:
        seconds, name = all_gather(1.0, levels) * PASSES[kind], f"rings or trees over {where}"
        if kind == "all_reduce" and (sharp or end == "low"):
            seconds, name = min(seconds, all_reduce(1.0, levels, True)), f"added up in {where} (SHARP)"
        if end == "high" and len(levels) == 1:
            ring = one_way_all_gather(1.0, *levels[0], 2 * setting.hop_s)
            return one(kind, Time(ring.latency_s * PASSES[kind], seconds * slower), "one ring of all GPUs")
        return one(kind, Time(hops * PASSES[kind], seconds * slower), name)
    if kind == "permute":
        if end == "high":
            far = max((1 / (m * w) for m, w in groups), default=0.0)
            return one(kind, Time(hops, far * slower, False), "to the GPU half the machine away")
        near = point_to_point(1 / network.chips_alive, 1, 2, groups[0][1], setting.hop_s)
        return one(kind, near, "to a neighbour under the same switches")
    seconds = all_to_all(1.0, groups)
    if end == "high":
        each = dict(rates)
        seconds = max(seconds * slower, busiest(network, each, "all_to_all", routing) / network.chips_alive**2)
    return one(kind, Time(hops, seconds, end == "low"), f"direct sends over {where}")


@lru_cache(64)
def levels_of(network: Network, rates: tuple[tuple[str, float], ...]) -> tuple[Level, ...]:
    """The levels of the network's largest groups, from GPUs up."""
    counts = _nested(network)
    return tuple(
        (_most_inside(network, name, above), _rate(network, dict(rates), name))
        for (name, _), (above, _) in zip(counts[:-1], counts[1:], strict=True)
    )


def groups_of(network: Network, rates: tuple[tuple[str, float], ...]) -> tuple[Level, ...]:
    """Each level's groups in the whole network, with what leaves one of them."""
    counts = _nested(network)
    levels = levels_of(network, rates)
    return tuple((below, rate) for (_, below), (_, rate) in zip(counts[:-1], levels, strict=True))


def _nested(network: Network) -> list[tuple[str, int]]:
    """(part, groups with a living GPU), from single GPUs to the whole; parts that divide nothing are left out."""
    found = [("gpu", network.chips_alive)]
    scale_out = any(LINK_KINDS[k][0] not in SCALE_UP for k in set(network.link_kind.tolist()))
    for name in NESTED:
        if name in network.parts and scale_out:
            count = len(np.unique(_owner(network, name)))
            if 1 < count < found[-1][1]:
                found.append((name, count))
    return [*found, ("all", 1)]


def _owner(network: Network, name: str) -> np.ndarray:
    """The group of each living GPU."""
    alive = np.flatnonzero(network.alive[: network.chips])
    if name == "gpu":
        return alive
    return np.zeros(len(alive), int) if name == "all" else network.parts[name][alive]


def _most_inside(network: Network, name: str, above: str) -> int:
    """Groups of one part in the fullest group of the part above."""
    pairs = np.unique(np.stack([_owner(network, above), _owner(network, name)], axis=1), axis=0)
    return int(np.unique(pairs[:, 0], return_counts=True)[1].max())


def _rate(network: Network, rates: dict[str, float], name: str) -> float:
    """Bytes/s one way that leave the narrowest group of a part: of a GPU, its links inside the domain."""
    if name == "gpu":
        kinds = [LINK_KINDS[k][0] for k in set(network.link_kind.tolist())]
        inner = [k for k in kinds if k in SCALE_UP] or kinds
        return float(chip_rates(network, rates, tuple(k for k in kinds if k not in inner)).min())
    owner = network.parts[name]
    sizes = {g: int(n) for g, n in zip(*np.unique(_owner(network, name), return_counts=True), strict=True)}
    full = max(sizes.values())
    alike = [g for g, n in sizes.items() if n == full]
    links = np.bincount(owner, weights=network.degrees()[: network.chips])
    return flow(network, rates, owner == min(alike, key=lambda g: links[g]))

"""Collectives over GPUs under packet switches: an NVLink domain, or nodes under leaves and spines.

A level is (D, w): D equal groups, of which each has w bytes/s one way to the others of its level: 8 GPUs of 450 GB/s
in a node, 32 nodes of 400 GB/s in a unit, units in the whole. Array of V bytes, N GPUs:

    all-gather    V max over levels of (D-1)/(D w); so does a reduce-scatter; an all-reduce is both
    all-reduce    with reduction in the switches (SHARP) V/w in theory instead of 2 V (D-1)/(D w)
    all-to-all    V (M-1)/(M^2 w) for the M groups that the whole has of each level

A group that is narrower than the largest of its level counts by its own share of GPUs, D = GPUs above / its GPUs: what
failures left of a node, inside and outwards, the last unit, the nodes under a leaf with fewer uplinks than downlinks.
And so does the GPU with the fewest links of all, D = N: one without NVLink is left to its network card, one without a
card to NVLink.

Source: How to Scale Your Model (scaling book), "How to think about GPUs".
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from simulators.collectives.cost import PASSES, Cost, Setting, one
from simulators.collectives.general import PRACTICE
from simulators.collectives.graph import busiest, chip_rates, flow, reach
from simulators.collectives.rings import Time, one_way_all_gather, point_to_point
from simulators.topology.network import KIND_OF, LINK_KINDS, Network
from simulators.topology.systems.fat_tree import DOWN

SCALE_UP = ("nvlink", "direct")
NESTED = ("host", "unit", "pod")
SHOWN = {
    "gpu": "a GPU that its network card alone joins",
    "no card": "a GPU without a network card",
    "links": "the GPU with the fewest links",
    "inside": "the links left inside a node",
    "host": "the narrowest node",
    "leaf": "the narrowest leaf",
    "unit": "the narrowest unit",
    "pod": "the narrowest pod",
}
_CLOSE = 1e-9

Level = tuple[int, float]  # (groups, bytes/s one way of each)
Narrow = tuple[str, float, float, float]  # (part, GPUs above it by its own, GPUs of the whole by its own, bytes/s)


def all_gather(array_bytes: float, levels: Sequence[tuple[float, float]]) -> float:
    """Seconds of the slowest level."""
    return array_bytes * max(((d - 1) / (d * w) for d, w in levels if d > 1), default=0.0)


def all_reduce(array_bytes: float, levels: Sequence[tuple[float, float]], sharp: bool = False) -> float:
    """Seconds. `sharp`: the switches add up, so that each byte crosses a level once each way at the same time."""
    if sharp:
        return array_bytes * max((1 / w for d, w in levels if d > 1), default=0.0)
    return 2 * all_gather(array_bytes, levels)


def all_to_all(array_bytes: float, groups: Sequence[tuple[float, float]]) -> float:
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
    if network.chips_alive < 2:
        return one(kind, Time(0.0, 0.0), "nothing to move")
    hops = (reach(network).diameter or 0) * setting.hop_s
    rates = tuple(sorted(setting.link_bytes_per_s.items()))
    levels, narrow = levels_of(network, rates), narrow_of(network, rates)
    slower = PRACTICE if end == "high" else 1.0
    where = "switches of one domain" if len(levels) == 1 else f"{len(levels)} levels of switches"
    if kind in PASSES:
        gathering = [*levels, *((d, w) for _, d, _, w in narrow)]
        held = _held_back(levels, narrow)
        seconds, name = all_gather(1.0, gathering) * PASSES[kind], f"rings or trees over {where}{held}"
        if kind == "all_reduce" and (sharp or end == "low"):
            seconds, name = min(seconds, all_reduce(1.0, gathering, True)), f"added up in {where} (SHARP){held}"
        if end == "high" and len(levels) == 1:
            ring = one_way_all_gather(1.0, *levels[0], 2 * setting.hop_s)
            return one(kind, Time(ring.latency_s * PASSES[kind], seconds * slower), "one ring of all GPUs")
        return one(kind, Time(hops * PASSES[kind], seconds * slower), name)
    groups = [*groups_of(network, rates), *((m, w) for part, _, m, w in narrow if part != "inside")]
    if kind == "permute":
        if end == "high":
            far = max((1 / (m * w) for m, w in groups), default=0.0)
            return one(kind, Time(hops, far * slower, False), "to the GPU half the machine away")
        beside = min([levels[0][1], *(w for part, _, _, w in narrow if part == "gpu"), _least_inside(network, rates)])
        near = point_to_point(1 / network.chips_alive, 1, 2, beside, setting.hop_s)
        return one(kind, near, "to a neighbour under the same switches")
    seconds = all_to_all(1.0, groups)
    if end == "high":
        each = dict(rates)
        seconds = max(seconds * slower, busiest(network, each, "all_to_all", routing) / network.chips_alive**2)
    return one(kind, Time(hops, seconds, end == "low"), f"direct sends over {where}")


def _held_back(levels: Sequence[Level], narrow: Sequence[Narrow]) -> str:
    """`, held back by the narrowest leaf`, where a narrow group takes longer to gather an array than every level."""
    slow = {all_gather(1.0, [(d, w)]): part for part, d, _, w in narrow}
    most = max(slow, default=0.0)
    return f", held back by {SHOWN[slow[most]]}" if most > (1 + _CLOSE) * all_gather(1.0, levels) else ""


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


@lru_cache(64)
def narrow_of(network: Network, rates: tuple[tuple[str, float], ...]) -> tuple[Narrow, ...]:
    """Of each part the narrowest group of every size, inside nodes as well, and the weakest GPU."""
    if not _scales_out(network):
        return ()
    names = [name for name, _ in _nested(network)[1:]]
    parts = list(pairwise(names))
    if network.kind == "fat tree":
        parts.append(("leaf", "all"))  # of no level, as its uplinks are as many as its GPUs unless oversubscribed
    found = [*(_inside(network, dict(rates)) if "host" in names else ()), *_weakest(network, dict(rates))]
    for name, above in parts:
        found += _narrowest(network, dict(rates), name, above)
    return tuple(found)


def _narrowest(network: Network, rates: dict[str, float], name: str, above: str) -> Iterator[Narrow]:
    """The group of each size with the fewest links at its GPUs and at what these are joined to."""
    alive = np.flatnonzero(network.alive[: network.chips])
    degrees = network.degrees()
    ends = network.links[network.link_kind == KIND_OF["rail"]]
    links = degrees[: network.chips] + np.bincount(ends[:, 0], degrees[ends[:, 1]], network.chips)
    owner, upper = _owner(network, name), _owner(network, above)
    numbers, first, group, sizes = np.unique(owner, return_index=True, return_inverse=True, return_counts=True)
    within = np.bincount(upper)[upper[first]]
    by_size = np.lexsort((-within, np.bincount(group, links[alive]), sizes))
    for i in by_size[np.unique(sizes[by_size], return_index=True)[1]]:
        if within[i] > sizes[i]:
            inside = np.zeros(network.chips, bool)
            inside[alive[owner == numbers[i]]] = True
            yield name, float(within[i] / sizes[i]), float(len(alive) / sizes[i]), flow(network, rates, inside)


def _weakest(network: Network, rates: dict[str, float]) -> Iterator[Narrow]:
    """The GPU with the least bytes/s over all its links; one that no NVLink joins to another has the others alone."""
    outside, whole = chip_rates(network, rates, SCALE_UP), chip_rates(network, rates)
    joined, host = whole > outside, _owner(network, "host")
    lone = ~joined | (np.bincount(host, joined)[host] < 2)
    usable = np.where(lone, outside, whole)
    at, many = int(usable.argmin()), float(network.chips_alive)
    if many > 1:
        yield "gpu" if lone[at] else "links" if outside[at] else "no card", many, many, float(usable[at])


def _inside(network: Network, rates: dict[str, float]) -> Iterator[Narrow]:
    """Within nodes with fewer living GPUs than the fullest. It holds a gathering back alone: to all others a GPU sends
    over its network card as well."""
    many = float(network.chips_alive)
    yield from (("inside", float(size), many, rate) for size, rate in _by_size(network, rates)[:-1] if size > 1)


def _by_size(network: Network, rates: dict[str, float]) -> list[tuple[int, float]]:
    """(living GPUs of a node, bytes/s one way of its best joined GPU, in the worst of such nodes), the fullest last.

    A GPU there that lost NVLinks of its own gets what these do not bring over its network card: see `_weakest`."""
    host = _owner(network, "host")
    inner = _inner_rates(network, rates)
    best = np.zeros(int(host.max()) + 1)
    np.maximum.at(best, host, inner)
    sizes = np.bincount(host)
    there = sorted({int(n) for n in sizes if n})
    found = ((n, best[(sizes == n) & (best > 0)]) for n in there)
    return [(n, float(of.min())) for n, of in found if of.size]


def _inner_rates(network: Network, rates: dict[str, float]) -> np.ndarray:
    """Bytes/s one way of each living GPU over NVLink, or what takes its place."""
    return chip_rates(network, rates) - chip_rates(network, rates, SCALE_UP)


def _least_inside(network: Network, rates: tuple[tuple[str, float], ...]) -> float:
    """Of the GPUs that have any of these."""
    inner = _inner_rates(network, dict(rates))
    return float(inner[inner > 0].min(initial=np.inf))


def _scales_out(network: Network) -> bool:
    """Whether GPUs are joined by more than the links of one domain."""
    return any(LINK_KINDS[k][0] not in SCALE_UP for k in set(network.link_kind.tolist()))


def _nested(network: Network) -> list[tuple[str, int]]:
    """(part, groups with a living GPU), from single GPUs to the whole; parts that divide nothing are left out."""
    found = [("gpu", network.chips_alive)]
    for name in NESTED:
        if name in network.parts and _scales_out(network):
            count = len(np.unique(_owner(network, name)))
            if 1 < count < found[-1][1]:
                found.append((name, count))
    return [*found, ("all", 1)]


def _owner(network: Network, name: str) -> np.ndarray:
    """The group of each living GPU."""
    alive = np.flatnonzero(network.alive[: network.chips])
    if name == "gpu":
        return alive
    if name == "leaf":
        return alive // DOWN
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
        each = chip_rates(network, rates, tuple(k for k in kinds if k not in inner))
        if "host" in dict(_nested(network)) and (by_size := _by_size(network, rates)):
            return by_size[-1][1]
        return float(each[each > 0].min()) if each.any() else float(chip_rates(network, rates).min())
    owner = network.parts[name]
    sizes = {g: int(n) for g, n in zip(*np.unique(_owner(network, name), return_counts=True), strict=True)}
    full = max(sizes.values())
    alike = [g for g, n in sizes.items() if n == full]
    links = np.bincount(owner, weights=network.degrees()[: network.chips])
    return flow(network, rates, owner == min(alike, key=lambda g: links[g]))

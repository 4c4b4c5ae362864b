"""Collectives over all chips of any network, whole or broken, from what its links allow.

N living chips, an array of V bytes:

    all-gather    V (N-1)/N by the rate at which every chip can receive it at best (see `trees`): mostly that of
                  the chip with the fewest links. High end: everything runs over one tree, of which each link carries
                  V (N-1)/N one way at most.
    all-to-all    (V/N^2) times the busiest link's ordered pairs under the routing, by its rate, plus diameter hops.
                  Low end: what no routing can go below, by cut and by hops added up.
    permute       each chip's V/N to a neighbour; high end: to the chip half the machine away.
"""

from functools import lru_cache

from errors import QuestionError
from simulators.collectives.cost import PASSES, Cost, Setting, one
from simulators.collectives.graph import busiest, chip_rates, least_all_to_all, link_rates, reach
from simulators.collectives.rings import Time, point_to_point
from simulators.collectives.shape import shape_of
from simulators.collectives.trees import gathering_bytes_per_s
from simulators.topology.loads import without_way
from simulators.topology.network import KIND_OF, Network

PRACTICE = 1.5 / 1.0439  # an H100 node gathers 512 MiB in about 1.5 ms, as the scaling book measured; 1.04 by formula
LOCAL = "trees inside groups of 32, optics meanwhile"
GATHER = "trees over all links"


def all_to_all_time(
    array_bytes: float, chips: int, busiest_pairs: float, oneway_bytes_per_s: float, diameter: int, hop_s: float
) -> Time:
    """(V/N^2) L/w + diameter t: `busiest_pairs` L is what the busiest link carries one way, in ordered pairs."""
    return Time(diameter * hop_s, array_bytes / chips**2 * busiest_pairs / oneway_bytes_per_s, False)


def cost(network: Network, kind: str, setting: Setting, end: str, routing: str = "shortest") -> Cost:
    """Over all living chips of a network without packet switches. Raises QuestionError where it is in pieces."""
    chips = network.chips_alive
    hops = (reach(network).diameter or 0) * setting.hop_s
    if chips < 2:
        return one(kind, Time(0.0, 0.0), "nothing to move")
    if kind in PASSES:
        name, rate = _gathering(network, setting, end)
        return one(kind, Time(hops, (chips - 1) / chips / rate).times(PASSES[kind]), name)
    if lost := without_way(network, routing):
        raise QuestionError(
            f"{lost:,} pairs of chips of {network.spec} have no way by the routing {routing} after the failure",
            expected="routing shortest",
        )
    if kind == "permute":
        return _permute(network, setting, end, routing)
    rates = setting.link_bytes_per_s
    seconds = (
        least_all_to_all(network, rates)
        if end == "low"
        else max(busiest(network, rates, "all_to_all", r) for r in _routings(network, end, routing))
    )
    return one(kind, Time(hops, seconds / chips**2, end == "low"), f"direct sends, routing {routing}")


def is_boardfly(network: Network) -> bool:
    return network.kind == "boardfly" and "group" in network.parts


def _gathering(network: Network, setting: Setting, end: str) -> tuple[str, float]:
    """(algorithm, bytes/s at which the slowest chip receives the array)."""
    rates = setting.link_bytes_per_s
    top = max(rates.values())
    best = top * _best(network, tuple(sorted((kind, rate / top) for kind, rate in rates.items())))
    if end == "low":
        return GATHER, best
    if is_boardfly(network):
        local = chip_rates(network, rates, leave_out=("ocs",))
        return LOCAL, min(best, float(local.min() if end == "high" else local.mean()))
    if end == "high" and set(network.link_kind.tolist()) == {KIND_OF["direct"]}:
        return GATHER, best / PRACTICE
    if end == "high":
        return "one tree", float(link_rates(network, rates).min())
    return GATHER, best


@lru_cache(maxsize=64)
def _best(network: Network, rates: tuple[tuple[str, float], ...]) -> float:
    """How fast the slowest chip can receive, in the unit of the rates.

    No cut of a whole lattice is narrower than the one around a single chip.
    """
    shape = shape_of(network)
    if shape is not None and shape.whole:
        return float(chip_rates(network, dict(rates)).min())
    return gathering_bytes_per_s(network, dict(rates))


def _routings(network: Network, end: str, routing: str) -> set[str]:
    """The routings whose worst counts: at the high end of a Boardfly both, as nobody says which it has."""
    return {routing, "shortest", "one_ocs"} if end == "high" and is_boardfly(network) else {routing}


def _permute(network: Network, setting: Setting, end: str, routing: str) -> Cost:
    chips, rates = network.chips_alive, setting.link_bytes_per_s
    near = point_to_point(1 / chips, 1, 1, float(link_rates(network, rates).min()), setting.hop_s)
    if end == "high":
        hops = (reach(network).diameter or 0) * setting.hop_s
        far = busiest(network, rates, "shift", routing) / chips  # less than near where it goes over links side by side
        return one("permute", Time(hops, max(far, near.bandwidth_s), False), "to the chip half the machine away")
    return one("permute", near, "to a neighbour")

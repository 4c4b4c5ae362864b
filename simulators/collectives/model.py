"""How long a collective takes on a network: the model's number, its band, which term binds, and from which size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from errors import QuestionError
from simulators.collectives import general, hierarchical, over_axes, switched
from simulators.collectives.cost import ENDS, NAMES, PASSES, Cost, Setting
from simulators.collectives.notes import notes_on
from simulators.collectives.settings import Settings, settings
from simulators.collectives.shape import Shape, shape_of
from simulators.collectives.switched import gathering_bytes_per_s
from simulators.topology.alike import alike, several
from simulators.topology.loads import routings
from simulators.topology.network import LINK_KINDS, Network

MOST_BYTES = 1e18
SWITCHED = {"nvlink", "rail", "spine", "core"}


@dataclass(frozen=True, kw_only=True)
class Collective:
    """A collective of an array of `bytes` over `chips` chips (of each group, where axes are named).

    `cost`: the model's; `low` and `high`: the ends of its band. Everything follows from them for any size.
    """

    spec: str
    kind: str
    bytes: float
    chips: int
    axes: tuple[str, ...]
    cost: Cost
    low: Cost
    high: Cost
    settings: Settings
    routing: str
    shards: int
    levels: tuple[switched.Level, ...]
    notes: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return float(self.cost.seconds(self._moved))

    @property
    def low_s(self) -> float:
        return float(self.low.seconds(self._moved))

    @property
    def high_s(self) -> float:
        return float(self.high.seconds(self._moved))

    @property
    def bound(self) -> str:
        """latency or bandwidth, whichever term is the longer."""
        return self.cost.bound(self._moved)

    @property
    def crossover_bytes(self) -> float | None:
        """The array for which both terms are as long; None where nothing moves."""
        found = self.cost.crossover_bytes
        return None if found is None else found * self.shards

    @property
    def _moved(self) -> float:
        """Bytes of the array that one group works on: it is cut over axes that are not named as well."""
        return self.bytes / self.shards

    def to_dict(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "bound": self.bound,
            "crossover_bytes": self.crossover_bytes,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "latency_s": self.cost.latency_s,
            "bandwidth_s": self.cost.seconds_per_byte * self._moved,
            "topology": self.spec,
            "kind": self.kind,
            "bytes": self.bytes,
            "chips": self.chips,
            "axes": list(self.axes),
            "shards": self.shards,
            "algorithm": self.cost.algorithm,
            "routing": self.routing,
            "hop_s": self.settings.value.hop_s,
            "link_bytes_per_s": dict(self.settings.value.link_bytes_per_s),
            "link_basis": self.settings.link_basis,
            "dcn_bytes_per_s": self.settings.value.dcn_bytes_per_s,
            "basis": "modelled",
            "phases": [
                {"name": p.name, "latency_s": p.one_byte.latency_s, "bandwidth_s": p.one_byte.bandwidth_s * self._moved}
                for p in self.cost.phases
            ],
            "levels": [
                {"groups": d, "egress_bytes_per_s": w, "gathering_bytes_per_s": gathering_bytes_per_s(d, w)}
                for d, w in self.levels
                if d > 1
            ],
            "notes": list(self.notes),
        }


def collective(
    network: Network,
    kind: str,
    array_bytes: float,
    axes: Sequence[str] | None = None,
    *,
    rates: str = "docs",
    link_bytes_per_s: float | None = None,
    hop_s: float | None = None,
    dcn_bytes_per_s: float | None = None,
    routing: str = "shortest",
    sharp: bool = False,
    shards: int = 1,
) -> Collective:
    """A collective over all living chips, or within each group of chips along some axes of a mesh or torus.

    array_bytes   the whole array, as it is spread over the chips of a group and `shards` further ways
    axes          names such as ("x", "y"); None: all chips, of all slices
    rates         "docs" or "scaling-book"; a link rate or hop time that is given is taken as it is
    routing       of an all-to-all or a permutation (see `simulators.topology.loads.ROUTINGS`)
    sharp         an all-reduce is added up in the switches

    Raises QuestionError for what cannot be asked of this network, or where it is in pieces.
    """
    if kind not in NAMES:
        raise QuestionError(f"no collective {kind!r}", expected=f"one of {', '.join(NAMES)}")
    if not 0 < array_bytes <= MOST_BYTES:
        raise QuestionError(f"an array of {array_bytes:g} bytes", expected=f"more than 0, at most {MOST_BYTES:g}")
    if not 1 <= shards <= network.chips:
        raise QuestionError(f"an array cut {shards} further ways", expected=f"1 to {network.chips:,}")
    if routing not in routings(network):
        raise QuestionError(f"no routing {routing!r} on {network.spec}", expected=" or ".join(routings(network)))
    named = tuple(axes or ())
    asked = _Asked(network, kind, named, routing, sharp)
    if sharp and not (asked.switches and kind == "all_reduce"):
        raise QuestionError(
            "adding up in switches is for an all-reduce on a network that has them",
            expected="kind all_reduce on nvl:, h100:, rail: or fattree:",
        )
    notes = notes_on(network, asked.shape, kind, named, sharp, asked.switches)
    used = settings(network, rates, link_bytes_per_s, hop_s, dcn_bytes_per_s)
    found = [asked.cost(s, end) for s, end in zip((used.value, used.fast, used.slow), ENDS, strict=True)]
    return Collective(
        spec=network.spec,
        kind=kind,
        bytes=float(array_bytes),
        chips=asked.chips,
        axes=named,
        cost=found[0],
        low=found[1],
        high=found[2],
        settings=used,
        routing=routing,
        shards=shards,
        levels=asked.levels(used.value),
        notes=(*notes, *used.notes),
    )


@lru_cache(maxsize=8)
def slices_of(network: Network) -> tuple[tuple[Network, int], ...]:
    """(one slice, how many are like it) for each sort of slice that has a living chip; (the network, 1) without any."""
    if not several(network):
        return ((network, 1),)
    return tuple((part.network, len(part.slices)) for part in alike(network) if part.network.chips_alive)


class _Asked:
    """One question, costed under several settings."""

    def __init__(self, network: Network, kind: str, axes: Sequence[str], routing: str, sharp: bool):
        self.network, self.kind, self.routing, self.sharp = network, kind, routing, sharp
        self.switches = bool(SWITCHED & {LINK_KINDS[k][0] for k in set(network.link_kind.tolist())})
        if network.chips_alive == 0:
            raise QuestionError(f"{network.spec} has no chip left", advice="Take back a failure.")
        self.parts = [(part, shape_of(part), count) for part, count in slices_of(network)]
        self.shape = self.parts[0][1]
        self.axes, self.chips = None, network.chips_alive
        if not axes:
            return
        if self.shape is None:
            raise QuestionError(
                f"{network.spec} has no axes of its own: it is no mesh or torus",
                advice="Leave the axes out: all chips take part.",
            )
        self.axes = self.shape.chosen(axes)
        self.chips = max(_largest_group(part, self.shape, self.axes) for part, _, _ in self.parts)

    def levels(self, setting: Setting) -> tuple[switched.Level, ...]:
        """Of GPUs under packet switches: groups of each level, and what leaves one of them."""
        rates = tuple(sorted(setting.link_bytes_per_s.items()))
        return switched.levels_of(self.network, rates) if self.switches else ()

    def cost(self, setting: Setting, end: str) -> Cost:
        """Of the slowest slice where they differ, and over the data-centre network where there are several."""
        inside = self._slowest(self.kind, setting, end)
        slices = sum(count for _, _, count in self.parts)
        if self.axes is not None or slices == 1:
            return inside
        gather = self._slowest("all_gather", setting, end)
        chips = _limiting(self.kind, [(part.chips_alive, count) for part, _, count in self.parts])
        return hierarchical.cost(self.kind, gather, inside, chips, slices, setting, end)

    def _slowest(self, kind: str, setting: Setting, end: str) -> Cost:
        found = [self._one(part, shape, kind, setting, end) for part, shape, _ in self.parts]
        return max(found, key=lambda c: (c.seconds_per_byte, c.latency_s))

    def _one(self, part: Network, shape: Shape | None, kind: str, setting: Setting, end: str) -> Cost:
        if self.axes is not None and shape is not None and (kind == "permute" or not shape.all_of(self.axes)):
            return over_axes.cost(part, shape, self.axes, kind, setting, end)
        if self.switches:
            return switched.cost(part, kind, setting, end, self.routing, self.sharp)
        if shape is not None:
            return over_axes.all_axes(part, shape, kind, setting, end, self.routing)
        return general.cost(part, kind, setting, end, self.routing)


def _largest_group(part: Network, shape: Shape, axes: tuple[int, ...]) -> int:
    """The most living chips that differ along these axes alone."""
    return int(part.alive[: part.chips].reshape(shape.dims).sum(axis=axes).max())


def _limiting(kind: str, slices: Sequence[tuple[int, int]]) -> float:
    """Chips of a slice, as what crosses the data-centre network counts them, from (chips, slices of so many): of the
    smallest, whose chips pass on the whole array; on average where each chip sends its own share."""
    if kind in PASSES:
        return min(chips for chips, _ in slices)
    return sum(chips * count for chips, count in slices) / sum(count for _, count in slices)

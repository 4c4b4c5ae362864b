"""Everything counted of one topology: size, hops, bisection, link loads, what creates it; whole or after failures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulators.topology.cuts.bisection import Bisection, bisection
from simulators.topology.failures import Broken
from simulators.topology.loads import ROUTINGS, LinkLoads, by_routing, usual_routing
from simulators.topology.manifests.manifest import manifest
from simulators.topology.network import LINK_KINDS, Network
from simulators.topology.search import HopCounts, hop_counts
from simulators.topology.spec import Spec

PATTERN = "all_to_all"
UNIT = "ordered pairs of chips per directed link"


@dataclass(frozen=True, kw_only=True)
class KindLoad:
    """Loads of the links of one kind under all-to-all: ordered pairs of chips that cross each direction of a link."""

    routing: str
    kind: str
    links: int
    least: float
    mean: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is known of a topology. Counts are of living parts.

    chips, links          alive; parallel links count one each
    degrees               least, mean and greatest number of links at a chip
    hops                  ordered pairs of chips by links crossed on a shortest path
    bisection             fewest links found between two halves of the chips, with its basis
    loads                 by routing and kind; `routing`: the usual one
    busiest               routing -> ordered pairs on the busiest direction of a link, without a routing that has no way
                          for pairs that links join; empty where they were not counted, since there are too many ways to
                          follow each
    dcn_pairs             ordered pairs in different slices: they have no path of links, but the data-centre network
    inferred              whether part of the wiring is not published; `notes` says which
    after                 what the failures took and what they mean for a job, as `Broken.to_dict`; None without any
    """

    spec: Spec
    kind: str
    chips: int
    switches: int
    links: int
    links_by_kind: Mapping[str, int]
    degrees: tuple[int, float, int]
    axes: tuple[str, ...]
    hops: HopCounts
    dcn_pairs: int
    bisection: Bisection
    loads: tuple[KindLoad, ...]
    routing: str
    busiest: Mapping[str, float]
    load_unit: str
    hosts: int | None
    cubes: int | None
    manifest: Mapping[str, Any]
    notes: tuple[str, ...]
    inferred: bool
    after: Mapping[str, Any] | None = None

    @property
    def connected(self) -> bool:
        """Whether every chip reaches every other of its slice over links."""
        return self.hops.unreachable <= self.dcn_pairs

    @property
    def wraps(self) -> tuple[str, ...]:
        """The axes that are rings."""
        return tuple(a for a, w in zip(self.axes, self.spec.wraps, strict=False) if w)

    @property
    def max_link_load(self) -> float | None:
        """Ordered pairs on the busiest direction of a link under the usual routing; None where it is not known."""
        return self.busiest.get(self.routing) if self.links else None

    @property
    def cut_bound(self) -> float | None:
        """No routing can keep the busiest link below this under all-to-all, in ordered pairs: with N chips in a slice,
        the floor(N/2) ceil(N/2) pairs that cross the bisection one way, by its links. None of unequal slices, and where
        pairs have no path: these load no link."""
        cut, chips = self.bisection.links, self.chips // self.spec.slices
        if not cut or not self.connected or (self.spec.slices > 1 and self.after):
            return None
        return (chips // 2) * (chips - chips // 2) / cut

    def share_within(self, share: float) -> int | None:
        """The fewest hops that reach at least this share of the pairs that have a path."""
        pairs = np.cumsum(self.hops.counts[1:])
        if not len(pairs) or not pairs[-1]:
            return None
        return int(np.searchsorted(pairs, share * pairs[-1])) + 1

    @property
    def basis(self) -> str:
        """How it is known, in one sentence."""
        wiring = "partly inferred" if self.inferred else "as given" if self.kind == "graph" else "by the maker's rule"
        loads = ROUTINGS[self.routing] if self.busiest else "not counted: too many ways to follow each"
        return (
            f"derived: wiring {wiring}; hops by {self.hops.basis}; bisection {self.bisection.basis}; loads of "
            f"all-to-all {loads}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract of `chipledger topology SPEC --json`."""
        least, mean, most = self.degrees
        told = {
            "spec": self.spec.text,
            "kind": self.kind,
            "chip": self.spec.chip,
            "chips": self.chips,
            "switches": self.switches,
            "links": self.links,
            "links_by_kind": dict(self.links_by_kind),
            "degree": most,
            "degree_least": least,
            "degree_mean": mean,
            "diameter_hops": self.hops.diameter,
            "mean_hops": self.hops.mean,
            "hop_histogram": self.hops.to_dict(),
            "hops_of_half": self.share_within(0.5),
            "hops_of_99_percent": self.share_within(0.99),
            "unreachable_pairs": self.hops.unreachable,
            "dcn_pairs": self.dcn_pairs,
            "connected": self.connected,
            "bisection_links": self.bisection.links,
            "bisection_low_links": self.bisection.low,
            "bisection_basis": self.bisection.basis,
            "max_link_load": self.max_link_load,
            "max_link_load_routing": self.routing,
            "max_link_load_by_routing": dict(self.busiest),
            "max_link_load_bound": self.cut_bound,
            "load_unit": self.load_unit,
            "load_by_kind": [vars(row) for row in self.loads],
            "dims": list(self.spec.dims),
            "axes": list(self.axes),
            "wraps": list(self.wraps),
            "twisted": self.spec.twisted,
            "slices": self.spec.slices,
            "hosts": self.hosts,
            "cubes": self.cubes,
            "machine_type": self.manifest.get("machine_type"),
            "manifest": dict(self.manifest),
            "basis": self.basis,
            "notes": list(self.notes),
        }
        return told | dict(self.after or {})


def report(spec: Spec, network: Network, broken: Broken | None = None) -> Report:
    """Counts it. `network`: without faults; `broken`: what failures left of it, or None where nothing failed.

    Loads are of all-to-all, every chip to every other, by each routing that the network has: the usual one first, and
    dimension order only where it differs from all shortest paths used alike. Hosts, cubes and the manifest are those of
    the whole topology.
    """
    left = broken.network if broken else network
    kinds = np.bincount(left.link_kind, minlength=len(LINK_KINDS))
    by_kind = {name: int(n) for (name, _), n in zip(LINK_KINDS, kinds, strict=True) if n}
    degrees = left.degrees()[: left.chips][left.alive[: left.chips]]
    loads = _loads(left)
    rows = [
        KindLoad(routing=routing, kind=kind, links=by_kind[kind], least=float(a), mean=float(b), most=float(c))
        for routing, found in loads.items()
        for kind, (a, b, c) in found.by_kind().items()
    ]
    created = manifest(spec)
    return Report(
        spec=spec,
        kind=left.kind,
        chips=left.chips_alive,
        links=len(left.links),
        links_by_kind=by_kind,
        switches=int(np.count_nonzero(left.alive[left.chips :])),
        degrees=(int(degrees.min()), float(degrees.mean()), int(degrees.max())) if len(degrees) else (0, 0.0, 0),
        axes=left.axes,
        hops=hop_counts(left),
        dcn_pairs=_between_slices(left),
        bisection=bisection(left),
        loads=tuple(rows),
        routing=next(iter(loads), usual_routing(left)),
        busiest={r: round(float(found.max), 6) for r, found in loads.items()},
        load_unit=UNIT,
        hosts=created.get("hosts") or _parts(network, "host", "node"),
        cubes=_parts(network, "cube"),
        manifest=created,
        notes=(*spec.notes, *network.inferred),
        inferred=spec.inferred or bool(network.inferred),
        after=broken.to_dict() if broken else None,
    )


def _loads(network: Network) -> dict[str, LinkLoads]:
    """By routing, the usual one first; dimension order only where it differs from all shortest paths."""
    found = by_routing(network, PATTERN)
    by_axes, shortest = found.get("dimension_order"), found.get("shortest")
    if by_axes and shortest and np.allclose([by_axes.forward, by_axes.backward], [shortest.forward, shortest.backward]):
        del found["dimension_order"]
    return found


def _parts(network: Network, *names: str) -> int | None:
    """How many parts of the first of these names that there is."""
    for name in names:
        if name in network.parts:
            return len(np.unique(network.parts[name]))
    return None


def _between_slices(network: Network) -> int:
    if network.slices == 1:
        return 0
    alive = network.alive[: network.chips]
    sizes = np.bincount(network.parts["slice"][alive])
    return int(sizes.sum() ** 2 - (sizes**2).sum())

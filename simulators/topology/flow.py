"""Which routings a network has, and what flows over its links along all shortest paths."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import numpy as np

from errors import QuestionError
from simulators.topology.alike import alike, several
from simulators.topology.csr import csr
from simulators.topology.lattice import Lattice
from simulators.topology.network import Network

ROUTINGS: Mapping[str, str] = MappingProxyType(
    {
        "shortest": "over all shortest paths, each carrying the same share",
        "one_ocs": "over the shortest of the paths that cross at most one optical link: each such link that lies on "
        "one "
        "carries the same share, and so does each shortest path before and after it",
        "dimension_order": "along the first axis, then the next; half each way where both ways around a ring are as "
        "long",
    }
)
MOST_STEPS = 5e9  # senders times entries of the graph: ten seconds on two cores
_PARTS = 8  # shares of the sources, each with flows of its own


class TooMany(QuestionError):
    """What each link carries would take too long to count."""


def routings(network: Network) -> tuple[str, ...]:
    """The routings that this network has."""
    parts = [p.network for p in alike(network)] if several(network) else [network]
    straight = all(p.lattice is not None and not p.lattice.twisted for p in parts)
    boardfly = network.kind == "boardfly"
    return ("shortest",) + ("one_ocs",) * boardfly + ("dimension_order",) * straight


def usual_routing(network: Network) -> str:
    """The routing that is meant where none is named: dimension order where a network has it, since no other keeps the
    busiest link of an all-to-all below it on even axes; else all shortest paths.
    """
    return "dimension_order" if "dimension_order" in routings(network) else "shortest"


def require_routing(network: Network, routing: str) -> None:
    """Raises QuestionError for a routing that does not exist, or that this network does not have."""
    if routing not in routings(network):
        raise _without(network, routing)


def straight_lattice(network: Network) -> Lattice:
    """The lattice that dimension order walks. Raises QuestionError for anything but a whole torus or mesh."""
    if network.lattice is None or network.lattice.twisted:
        raise _without(network, "dimension_order")
    return network.lattice


def _without(network: Network, routing: str) -> QuestionError:
    what = f"no routing {routing!r}" if routing not in ROUTINGS else f"{network.spec} as it is has no routing {routing}"
    why = {
        "one_ocs": "it is for a Boardfly, whose groups are joined by optical links",
        "dimension_order": "it is for whole tori and meshes without a twist",
    }.get(routing, "")
    return QuestionError(what, expected=" or ".join(routings(network)), advice=why)


def flow(network: Network, sources: np.ndarray, ends: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(forward, backward) flow over each link over all shortest paths, float64. Each source sends 1 to its chip of
    `ends`, or to every chip that it reaches. Raises TooMany where that takes more than MOST_STEPS: a part of the
    senders would not do, since the links beside them carry far more of it than of the whole.
    """
    from simulators.topology.kernels import flows  # late: closed forms need no compiler

    graph = csr(network)
    if len(sources) * len(graph.neighbours) > MOST_STEPS:
        raise TooMany(
            f"{network.spec}: {len(sources):,} senders over {len(network.links):,} links are too many to follow each "
            "way",
            expected="fewer chips",
            advice="Whole tori and trees of any size are counted by their symmetry.",
        )
    sources = sources.astype(np.int32)
    ends = np.full(len(sources), -1, np.int32) if ends is None else ends.astype(np.int32)
    edges = np.linspace(0, len(sources), min(_PARTS, len(sources)) + 1).astype(int)
    total = np.zeros(len(graph.neighbours))
    for one in threaded(
        lambda part: flows(graph.indptr, graph.neighbours, network.chips, sources[part], ends[part]),
        [slice(*edge) for edge in zip(edges, edges[1:], strict=False)],
    ):
        total += one
    return graph.totals(total, len(network.links))


def living(network: Network) -> np.ndarray:
    """The chips that have not failed, int32."""
    return np.flatnonzero(network.alive[: network.chips]).astype(np.int32)


def threaded(work: Callable, batches: Sequence) -> list:
    """`work` of each batch, in order. Compiled loops hold no lock of the interpreter: each core has its own batch."""
    if len(batches) < 2:
        return [work(batch) for batch in batches]
    with ThreadPoolExecutor(max_workers=min(len(batches), len(os.sched_getaffinity(0)))) as pool:
        return list(pool.map(work, batches))


def added(many: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of counts of different lengths."""
    total = np.zeros(max((len(one) for one in many), default=1), np.int64)
    for one in many:
        total[: len(one)] += one
    return total

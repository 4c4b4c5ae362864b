"""The smallest cut into halves that a search finds: from arcs of parts, halves along axes and eigenvectors."""

from collections.abc import Iterator

import numpy as np

from simulators.topology.csr import csr
from simulators.topology.flow import living
from simulators.topology.network import Network

_ARCS = 4  # how many stripes each half may be laid in
_TURNS = 64  # places where the first stripe may begin
_KEPT = 8  # starts that are improved, of each number of stripes; fewer where a network has more than _LARGE links
_LARGE = 50_000
_PASSES = 30
_WORK = 1e8  # links times starts that are counted


def search(network: Network, vectors: np.ndarray | None = None) -> tuple[int, np.ndarray]:
    """(links cut, side bool (chips,)): halves of the living chips, as even as can be. Seeded: the same every time.

    `vectors` (living chips, few): eigenvectors whose signs divide the chips well.
    """
    from simulators.topology.cuts.kernel import improve  # late: closed forms need no compiler

    chips, graph = living(network), csr(network)
    weight = (network.alive & (np.arange(network.nodes) < network.chips)).astype(np.int64)
    best, best_side = -1, np.zeros(network.nodes, np.uint8)
    for start in _starts(network, chips, vectors):
        side = np.zeros(network.nodes, np.uint8)
        side[chips] = start
        _settle(network, side)
        cut = improve(graph.indptr, graph.neighbours, weight, side, len(chips) % 2, _PASSES)
        if cut >= 0 and (best < 0 or cut < best):
            best, best_side = int(cut), side
    return best, best_side[: network.chips].astype(bool) & network.alive[: network.chips]


def _starts(network: Network, chips: np.ndarray, vectors: np.ndarray | None) -> Iterator[np.ndarray]:
    """Halves of the living chips, bool (chips,), that are worth improving."""
    n, kept = len(chips), max(1, _KEPT * _LARGE // max(_LARGE, len(network.links)))
    for stripes in range(1, _ARCS + 1):
        found = [half for order, unit in _orders(network, chips) for half in _stripes(order, unit, stripes)]
        room = max(kept, int(_WORK / _ARCS / max(1, len(network.links))))
        halves = np.stack(found[:: -(-len(found) // room)])
        yield from halves[np.argsort(_cuts(network, chips, halves), kind="stable")[:kept]]
    for vector in vectors.T if vectors is not None else ():
        yield _upper(vector)
    if vectors is not None and vectors.shape[1] > 1:
        for a, b in ((1, 1), (1, -1)):
            yield _upper(a * vectors[:, 0] + b * vectors[:, 1])
    rng = np.random.default_rng(0)
    for _ in range(2):
        yield _upper(rng.random(n))


def _orders(network: Network, chips: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """(chips in an order, chips of a step in it): along each axis, and part by part."""
    at = network.coordinates[chips]
    for axis in range(at.shape[1]):
        others = [at[:, i] for i in range(at.shape[1]) if i != axis]
        values = len(np.unique(at[:, axis]))
        if values > 1:
            yield np.lexsort((*others[::-1], at[:, axis])), max(1, len(chips) // values)
    for part in network.parts.values():
        values = len(np.unique(part[chips]))
        if 1 < values < len(chips):
            yield np.argsort(part[chips], kind="stable"), len(chips) // values


def _stripes(order: np.ndarray, unit: int, stripes: int) -> Iterator[np.ndarray]:
    """Every other stripe of the order, the first beginning at each step."""
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    period = n // stripes
    turns = np.unique(np.linspace(0, period, _TURNS, endpoint=False).astype(int) // unit * unit)
    for turn in turns:
        place_there = (place + turn) % n
        half = place_there * 2 * stripes // n % 2 == 0
        yield half if n % 2 == 0 or abs(2 * np.count_nonzero(half) - n) == 1 else _upper(-half.astype(float))


def _cuts(network: Network, chips: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Links that each half cuts."""
    cuts = []
    for half in halves:
        side = np.zeros(network.nodes, np.uint8)
        side[chips] = half
        _settle(network, side)
        cuts.append(np.count_nonzero(side[network.links[:, 0]] != side[network.links[:, 1]]))
    return np.array(cuts)


def _settle(network: Network, side: np.ndarray) -> None:
    """Puts each switch where most of its links lead, from the leaves upwards."""
    if not network.switches:
        return
    a, b = network.links.T
    lean = np.where(np.arange(network.nodes) < network.chips, 2.0 * side - 1, 0.0)
    for _ in range(3):
        pull = np.bincount(a, lean[b], network.nodes) + np.bincount(b, lean[a], network.nodes)
        lean[network.chips :] = np.sign(pull[network.chips :])
    side[network.chips :] = lean[network.chips :] > 0


def _upper(value: np.ndarray) -> np.ndarray:
    """The half with the larger values."""
    half = np.zeros(len(value), bool)
    half[np.argsort(value, kind="stable")[len(value) // 2 :]] = True
    return half

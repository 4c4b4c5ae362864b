"""Who waits for whom, followed to its ends.

Points are operations that had not completed, and ranks that have not entered one. An operation waits for the ranks
that have not entered it, and for what is open before it on a rank that has: a device takes what it was given in order.
That is so of one stream; operations of two groups may overlap, so that a wait of this second kind is possible, not
certain. A rank that has not entered an operation waits for the last that it had handed over, if that is still open.

Where the ranks' calls differ, that is the end: who else has not entered it is no matter.

An end is what waits for nothing, or what waits for itself in a ring.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from analyzers.ranks.blocked.operations import Operation


@dataclass(frozen=True)
class End:
    """Where waiting ends: `ranks` that have not entered an operation, and `operations` (positions); several points
    are a ring. `held`: ranks with an open operation that leads here."""

    ranks: tuple[int, ...]
    operations: tuple[int, ...]
    held: tuple[int, ...]

    @property
    def ring(self) -> bool:
        return len(self.ranks) + len(self.operations) > 1


def ends(operations: list[Operation], orders: dict[int, list[int]]) -> list[End]:
    """The ends. `orders`: {rank: the operations that it has open, in the order in which its host enqueued them}."""
    missing = sorted({rank for one in operations if not one.differs for rank in one.missing})
    point = {rank: len(operations) + n for n, rank in enumerate(missing)}
    edges = {(n, point[rank]) for n, one in enumerate(operations) for rank in one.missing if not one.differs}
    for rank, mine in orders.items():
        edges |= {(b, a) for a, b in zip(mine, mine[1:], strict=False) if a != b and not operations[b].differs}
        if rank in point and mine:
            edges.add((point[rank], mine[-1]))
    count = len(operations) + len(missing)
    if not count:
        return []
    graph = _matrix(edges, count)
    parts, part = connected_components(graph, directed=True, connection="strong")
    last = _last_parts(edges, part, parts)
    back = graph.T.tocsr()
    return [_end(np.flatnonzero(part == p), operations, missing, back) for p in last]


def _matrix(edges: set[tuple[int, int]], count: int) -> csr_array:
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return csr_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))


def _last_parts(edges: set[tuple[int, int]], part: np.ndarray, parts: int) -> list[int]:
    """The parts that nothing leads out of."""
    left = {int(part[a]) for a, b in edges if part[a] != part[b]}
    return [p for p in range(parts) if p not in left]


def _end(points: np.ndarray, operations: list[Operation], missing: list[int], back: csr_array) -> End:
    reached = breadth_first_order(back, int(points[0]), directed=True, return_predecessors=False)
    held: set[int] = set()
    for at in reached.tolist():
        if at < len(operations):
            held |= {*operations[at].rows}
    ranks = tuple(missing[at - len(operations)] for at in points.tolist() if at >= len(operations))
    return End(ranks, tuple(at for at in points.tolist() if at < len(operations)), tuple(sorted(held - {*ranks})))


def orders(operations: list[Operation]) -> dict[int, list[int]]:
    """{rank: positions of its open operations in the order of its host}: rows of a rank rise in that order."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for n, one in enumerate(operations):
        for rank, row in one.rows.items():
            found[rank].append((row, n))
    return {rank: [n for _, n in sorted(rows)] for rank, rows in found.items()}

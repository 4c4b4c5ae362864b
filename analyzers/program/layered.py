"""A small directed graph as rows of nodes: every edge leads from an upper row to a lower one, with few crossings.

Rows by longest path, sources moved down to just above what uses them first; order by barycentres, up and down in turn;
places as near to the neighbours as a distance of 1 between nodes of a row allows. What bends around other nodes goes
through corners, one in each row between.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SWEEPS = 8


@dataclass(frozen=True)
class Layout:
    """`row` and `x` of each node; `corners`: of each edge, the (row, x) of its bends from start to end."""

    row: tuple[int, ...]
    x: tuple[float, ...]
    corners: tuple[tuple[tuple[int, float], ...], ...]


def laid_out(nodes: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Places of nodes 0, 1, ... Edges that would close a circle are drawn, and do not count for rows."""
    forward = _without_circles(nodes, edges)
    row = _rows(nodes, forward)
    chains, owners, total = _chains(nodes, forward, row)
    rows: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for n in range(nodes):
        rows[row[n]].append(n)
    for corner, at in owners:
        rows[at].append(corner)
    above, below = _neighbours(total, chains)
    _order(rows, above, below)
    x = _places(rows, above, below, total)
    of_row = {n: r for r, members in enumerate(rows) for n in members}
    bends = {edge: tuple((of_row[c], x[c]) for c in chain[1:-1]) for edge, chain in chains.items()}
    return Layout(tuple(row), tuple(x[:nodes]), tuple(bends.get(edge, ()) for edge in edges))


def _without_circles(nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Edges, each once, without those that lead back on a walk from the first node on."""
    after: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in dict.fromkeys(edges):
        if a != b:
            after[a].append(b)
    state = [0] * nodes  # 1: on the walk, 2: left
    kept: list[tuple[int, int]] = []
    for first in range(nodes):
        if state[first]:
            continue
        walk = [(first, iter(after[first]))]
        state[first] = 1
        while walk:
            at, rest = walk[-1]
            b = next(rest, None)
            if b is None:
                state[at] = 2
                walk.pop()
            elif state[b] != 1:
                kept.append((at, b))
                if state[b] == 0:
                    state[b] = 1
                    walk.append((b, iter(after[b])))
    return kept


def _rows(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    after: list[list[int]] = [[] for _ in range(nodes)]
    waits = [0] * nodes
    for a, b in edges:
        after[a].append(b)
        waits[b] += 1
    row, ready, order = [0] * nodes, [n for n in range(nodes) if not waits[n]], []
    sources = list(ready)
    while ready:
        at = ready.pop()
        order.append(at)
        for b in after[at]:
            row[b] = max(row[b], row[at] + 1)
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
    for n in sources:
        if after[n]:
            row[n] = min(row[b] for b in after[n]) - 1
    return row


def _chains(
    nodes: int, edges: Sequence[tuple[int, int]], row: Sequence[int]
) -> tuple[dict[tuple[int, int], list[int]], list[tuple[int, int]], int]:
    """(nodes and corners along each edge, (corner, its row) of all corners, nodes and corners together)."""
    chains: dict[tuple[int, int], list[int]] = {}
    owners: list[tuple[int, int]] = []
    total = nodes
    for a, b in edges:
        between = range(row[a] + 1, row[b])
        corners = list(range(total, total + len(between)))
        owners += zip(corners, between, strict=True)
        total += len(corners)
        chains[a, b] = [a, *corners, b]
    return chains, owners, total


def _neighbours(total: int, chains: dict[tuple[int, int], list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(total)]
    below: list[list[int]] = [[] for _ in range(total)]
    for chain in chains.values():
        for a, b in zip(chain, chain[1:], strict=False):
            below[a].append(b)
            above[b].append(a)
    return above, below


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Each row by the mean place of its neighbours in the row before, downwards and upwards in turn."""
    place = {n: float(i) for members in rows for i, n in enumerate(members)}
    best, fewest = [list(r) for r in rows], _crossings(rows, below, place)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        beside = above if down else below
        for members in rows if down else reversed(rows):
            mean = {n: _mean([place[m] for m in beside[n]], place[n]) for n in members}
            members.sort(key=mean.__getitem__)
            place.update({n: float(i) for i, n in enumerate(members)})
        crossings = _crossings(rows, below, place)
        if crossings < fewest:
            best, fewest = [list(r) for r in rows], crossings
    for members, kept in zip(rows, best, strict=True):
        members[:] = kept


def _crossings(rows: list[list[int]], below: list[list[int]], place: dict[int, float]) -> int:
    """How many pairs of edges between neighbouring rows cross."""
    count = 0
    for members in rows:
        ends: list[float] = []
        for n in sorted(members, key=place.__getitem__):
            own = sorted(place[m] for m in below[n])
            count += sum(1 for e in own for other in ends if other > e)
            ends += own
    return count


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _places(rows: list[list[int]], above: list[list[int]], below: list[list[int]], total: int) -> list[float]:
    x = [0.0] * total
    for members in rows:
        for i, n in enumerate(members):
            x[n] = i - (len(members) - 1) / 2
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for members in rows if down else reversed(rows):
            wanted = [_mean([x[m] for m in (above if down else below)[n]], x[n]) for n in members]
            for n, at in zip(members, spread(wanted), strict=True):
                x[n] = at
    return x


def spread(wanted: Sequence[float]) -> list[float]:
    """Places nearest to those wanted (least squares), in their order, no two nearer than 1."""
    blocks: list[tuple[float, int]] = []  # (mean of wanted less position, members)
    for i, value in enumerate(wanted):
        mean, size = value - i, 1
        while blocks and blocks[-1][0] > mean:
            before, members = blocks.pop()
            mean, size = (before * members + mean * size) / (members + size), members + size
        blocks.append((mean, size))
    flat = [mean for mean, size in blocks for _ in range(size)]
    return [mean + i for i, mean in enumerate(flat)]

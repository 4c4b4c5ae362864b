"""What waits for what in pipeline-parallel steps, and a replay of them with other durations.

A rank starts an operation once those are over that were over when it started in the trace: of computing, of sends and
receives, and of collectives, the last of each (sends and receives that start as one count as one). An operation of
communication moves once all of its group have started. So, with w = duration or transfer,

    ready(group) = max over its members m, over what m waits for, of ready(group of it) + w(it) [+ launch delay(m)]
    end(operation) = ready(its group) + w(operation)

which is the longest path through the groups, found level by level for all steps at once.
"""

from dataclasses import dataclass

import numpy as np

from analyzers.ranks.slowdown.ops import COMPUTE, P2P, PipelineOps, codes, joined

TOLERANCE_NS = 100_000  # clocks of traces jitter: an operation counts as over this much before its recorded end,
TOLERANCE_SHARE = 0.1  # or this part of its duration, if that is more
_CLASSES = (COMPUTE, P2P)  # the others are collectives


@dataclass(frozen=True, kw_only=True)
class Waits:
    """Edges: the operation `before` must end before operation `after` starts. `roots`: operations that wait for none.

    `delay_ns`: by operation, what passed between the end of all it waited for and its start (roots: since the start
    of the step); never negative.
    """

    before: np.ndarray
    after: np.ndarray
    roots: np.ndarray
    delay_ns: np.ndarray


def waits(ops: PipelineOps) -> Waits:
    """What each operation waits for on its own rank, as the trace shows it."""
    slot, begin, end, over, kind, key = _slots(ops)
    before, after = _slot_edges(begin, over, kind, key)
    last = np.full(len(begin), np.iinfo(np.int64).min)
    np.maximum.at(last, after, end[before])
    rooted = last == np.iinfo(np.int64).min
    delay = np.where(rooted, begin, np.maximum(begin - last, 0))
    member = np.argsort(slot, kind="stable").astype(np.int32)  # operations, slot by slot
    first = np.searchsorted(slot[member], np.arange(len(begin) + 1))
    size = np.diff(first)
    pairs = size[before] * size[after]
    edge = np.repeat(np.arange(len(before)), pairs)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    ahead, behind = np.divmod(nth, size[after][edge])
    return Waits(
        before=member[first[before[edge]] + ahead],
        after=member[first[after[edge]] + behind],
        roots=np.flatnonzero(rooted[slot]),
        delay_ns=delay[slot],
    )


def _slots(ops: PipelineOps) -> tuple[np.ndarray, ...]:
    """Operations that start as one: (slot of each operation; of each slot begin, end, when it is over, class, rank).

    Slots are numbered by rank (of a step), then begin. Only sends and receives share one.
    """
    key = joined(ops.step, ops.worker)
    tolerance = np.maximum(TOLERANCE_NS, (TOLERANCE_SHARE * ops.dur_ns).astype(np.int64))
    over = np.maximum(ops.start_ns, ops.end_ns - tolerance)
    kind = np.full(len(ops), len(_CLASSES))
    for number, kinds in enumerate(_CLASSES):
        kind[np.isin(ops.kind, codes(*kinds))] = number
    p2p = np.flatnonzero(kind == _CLASSES.index(P2P))
    a, b = p2p[:-1], p2p[1:]
    together = (key[a] == key[b]) & (
        (ops.start_ns[b] - ops.start_ns[a] < TOLERANCE_NS) & (ops.start_ns[b] < over[a])
        | (ops.start_ns[b] == ops.start_ns[a])
    )
    head = np.arange(len(ops))
    leads = np.r_[p2p[:1] >= 0, ~together]
    head[p2p] = p2p[leads][np.cumsum(leads) - 1]
    heads, slot = np.unique(head, return_inverse=True)
    ends, overs = np.zeros(len(heads), np.int64), np.zeros(len(heads), np.int64)
    np.maximum.at(ends, slot, ops.end_ns)
    np.maximum.at(overs, slot, over)
    return slot, ops.start_ns[heads], ends, overs, kind[heads], key[heads]


def _slot_edges(begin: np.ndarray, over: np.ndarray, kind: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, ...]:
    """(slot, slot that waits for it): the last of each class that was over, unless another of them waited for it."""
    n = len(begin)
    moments, ranks = np.empty(2 * n, np.int64), np.repeat(key, 2)
    moments[0::2], moments[1::2] = begin, over
    order = np.lexsort((moments, ranks))  # stable: what has no length ends after it begins, before the next begins
    position = np.empty(2 * n, np.int64)
    position[order] = np.arange(2 * n)
    starts, ends = position[0::2], position[1::2]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    floor = np.repeat(2 * first, np.diff(np.r_[first, n]))  # the first position of a slot's rank
    ended = np.full((len(_CLASSES) + 1, n), -1)  # by class: the last position at which one was over
    for number in range(len(ended)):
        last = np.full(2 * n, -1)
        last[ends[kind == number]] = ends[kind == number]
        np.maximum.accumulate(last, out=last)
        ended[number] = last[starts]
    ended[ended < floor] = -1
    latest = ended.max(axis=0)
    known = latest >= 0
    latest_start = np.where(known, starts[order[latest] // 2], 0)
    before, after = [], []
    for number in range(len(ended)):
        at = np.flatnonzero((ended[number] >= 0) & (ended[number] > latest_start))
        before.append(order[ended[number][at]] // 2)
        after.append(at)
    return np.concatenate(before), np.concatenate(after)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Groups by level, ready to be replayed.

    `group`: of each operation, numbered by level; `level`: of each operation. Edge e goes from operation `before[e]`
    to operation `after[e]`; edges are sorted by the group of `after`. `reached[i]` is the i-th group that has any,
    `first[i]` its first edge; those of level l + 1 are i = `levels[l]` to `levels[l + 1]`. `circular`: operations of
    steps whose waits form a circle, left out.
    """

    group: np.ndarray
    groups: int
    level: np.ndarray
    before: np.ndarray
    after: np.ndarray
    reached: np.ndarray
    first: np.ndarray
    levels: np.ndarray
    circular: np.ndarray


def graph(ops: PipelineOps, edges: Waits) -> Graph:
    """The waits between the groups of the operations."""
    groups = int(ops.group.max()) + 1
    level = _levels(ops.group[edges.before], ops.group[edges.after], groups)[ops.group]
    stuck = np.zeros(len(ops.steps), bool)
    stuck[ops.step[level < 0]] = True
    circular = stuck[ops.step]
    return _by_level(edges, ops.group, np.where(circular, 0, level), circular)


def regrouped(g: Graph, edges: Waits, group: np.ndarray) -> Graph:
    """The same with groups that are parts of those of `g`: what comes after in levels still does."""
    return _by_level(edges, group, g.level, g.circular)


def _by_level(edges: Waits, group: np.ndarray, level: np.ndarray, circular: np.ndarray) -> Graph:
    groups = int(group.max()) + 1
    of_group = np.zeros(groups, np.int64)
    of_group[group] = level
    rank = np.argsort(of_group, kind="stable")
    number = np.empty(groups, np.int32)
    number[rank] = np.arange(groups, dtype=np.int32)
    numbered = number[group]
    to = numbered[edges.after]
    order = np.argsort(to, kind="stable")
    order = order[~circular[edges.before[order]]]
    to = to[order]
    first = np.flatnonzero(np.r_[to[:1] >= 0, to[1:] != to[:-1]])
    return Graph(
        group=numbered,
        groups=groups,
        level=level,
        before=edges.before[order],
        after=edges.after[order],
        reached=to[first],
        first=first,
        circular=circular,
        levels=np.searchsorted(of_group[rank][to[first]], np.arange(1, int(level.max()) + 2)),
    )


def _levels(source: np.ndarray, target: np.ndarray, groups: int) -> np.ndarray:
    """Of each group the longest way to it in waits; -1 where it waits for itself, by whatever way."""
    level = np.full(groups, -1)
    missing = np.bincount(target, minlength=groups)
    order = np.argsort(source, kind="stable")
    onward = target[order]
    first = np.searchsorted(source[order], np.arange(groups + 1))
    front, depth = np.flatnonzero(missing == 0), 0
    while len(front):
        level[front] = depth
        n = first[front + 1] - first[front]
        edges = np.repeat(first[front] - np.cumsum(n) + n, n) + np.arange(int(n.sum()))
        reached = onward[edges]
        np.subtract.at(missing, reached, 1)
        front, depth = np.unique(reached[missing[reached] == 0]), depth + 1
    return level


def replay(g: Graph, spent_ns: np.ndarray, edges: Waits | None = None, tied: np.ndarray | None = None) -> np.ndarray:
    """When each operation ends, (operations, columns): `spent_ns` holds a duration or transfer each, in columns.

    `edges`: with the launch delays of these waits, else without any. `tied`: groups (as in `g.group`) at which all
    columns go on together, at the time of the last.
    """
    ready = np.zeros((g.groups, spent_ns.shape[1]))
    if edges is not None:
        roots = edges.roots[~g.circular[edges.roots]]
        np.maximum.at(ready, g.group[roots], edges.delay_ns[roots, None].astype(float))
    bounds = np.r_[g.first, len(g.before)]
    source = g.group[g.before]
    for a, b in zip(g.levels[:-1], g.levels[1:], strict=True):
        here = slice(bounds[a], bounds[b])
        ends = ready[source[here]] + spent_ns[g.before[here]]
        if edges is not None:
            ends += edges.delay_ns[g.after[here], None]
        reached = np.maximum.reduceat(ends, bounds[a:b] - bounds[a], axis=0)
        at = g.reached[a:b]
        reached = np.maximum(ready[at], reached)
        if tied is not None:
            reached = np.where(tied[at, None], reached.max(axis=1, keepdims=True), reached)
        ready[at] = reached
    return ready[g.group] + spent_ns

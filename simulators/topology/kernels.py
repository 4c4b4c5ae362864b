"""The compiled loops of the topology lab: searches and the flows of shortest paths. Arrays in, arrays out.

They hold no lock of the interpreter: several threads run them side by side, each on sources of its own.
"""

from typing import NamedTuple

import numpy as np

from runs.compiled import compiler

_compiler = compiler(__package__)
_compiled = _compiler()

WORDS = 8
BATCH = 64 * WORDS  # sources that one pass over the network serves: one bit each
_HUGE = 1e200
_UNSEEN = 1 << 30


def hops(indptr: np.ndarray, neighbours: np.ndarray, source: int) -> np.ndarray:
    """Links crossed from one node to each, int32 (nodes,), -1 where there is no way."""
    nodes = len(indptr) - 1
    found = np.full(nodes, -1, np.int32)
    _hops(indptr, neighbours, source, found, np.empty(nodes, np.int32))
    return found


@_compiled
def _hops(indptr, neighbours, source, found, queue):
    found[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbours[e]
            if found[v] < 0:
                found[v] = found[u] + 1
                queue[tail] = v
                tail += 1


@_compiled
def _ones(word):
    """Bits that are set in a word of 64."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


def counts(indptr: np.ndarray, neighbours: np.ndarray, chips: int, sources: np.ndarray) -> np.ndarray:
    """Ordered pairs of a source and another chip by hops, int64 (farthest + 1,), of at most BATCH sources.

    All sources search at once: bit i of a node's row says whether source i has reached it. Only nodes that were
    reached in the last step pass anything on, so that a long chain costs no more than a dense network.
    """
    nodes = len(indptr) - 1
    bits = np.zeros((3, nodes, WORDS), np.uint64)
    reached, marked = np.empty((2, nodes), np.int32), np.zeros(nodes, np.bool_)
    found = np.zeros(nodes + 1, np.int64)
    farthest = _counts(indptr, neighbours, chips, sources, *bits, *reached, marked, found)
    return found[: farthest + 1]


@_compiled
def _counts(indptr, neighbours, chips, sources, seen, front, coming, active, touched, marked, found):
    """Fill `found`; returns how far the farthest is. `active`: what was reached in the last step, `touched` in this."""
    for i in range(len(sources)):
        bit = np.uint64(1) << np.uint64(i % 64)
        seen[sources[i], i // 64] |= bit
        front[sources[i], i // 64] |= bit
        active[i] = sources[i]
    reached, level, farthest = len(sources), 0, 0
    while reached:
        level += 1
        met = 0
        for i in range(reached):
            u = active[i]
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbours[e]
                if not marked[v]:
                    marked[v] = True
                    touched[met] = v
                    met += 1
                for w in range(WORDS):
                    coming[v, w] |= front[u, w]
        for i in range(reached):
            for w in range(WORDS):
                front[active[i], w] = 0
        reached = 0
        for i in range(met):
            v = touched[i]
            marked[v] = False
            ones = 0
            fresh = np.uint64(0)
            for w in range(WORDS):
                new = coming[v, w] & ~seen[v, w]
                coming[v, w] = 0
                seen[v, w] |= new
                front[v, w] = new
                fresh |= new
                ones += _ones(new)
            if fresh:
                active[reached] = v
                reached += 1
                if v < chips:
                    found[level] += ones
                    farthest = level
    return farthest


def flows(indptr: np.ndarray, neighbours: np.ndarray, chips: int, sources: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """What shortest paths carry, each path between two nodes an equal share: Brandes' accumulation from each source.

    Each source sends 1 to its node of `ends`, or to every chip that it reaches where that is -1. Returns the flow over
    each entry, float64.
    """
    flow = np.zeros(len(neighbours))
    starts, heads = indptr.view(np.uint64), neighbours.view(np.uint32)  # unsigned: no index is ever below zero
    _flows(starts, heads, chips, sources, ends, _room(len(indptr) - 1, len(neighbours)), flow)
    return flow


class _Flowing(NamedTuple):
    """Room for the flows of one source. `share`: what reaches a node or passes it, divided by the number of paths to
    it; `onward`: entries to the next level, by place of their node in the queue, each one's from `first` on."""

    distance: np.ndarray
    paths: np.ndarray
    share: np.ndarray
    scale: np.ndarray
    queue: np.ndarray
    onward: np.ndarray
    first: np.ndarray


def _room(nodes: int, entries: int) -> _Flowing:
    distance, paths, share = np.full(nodes, _UNSEEN, np.int32), np.zeros(nodes), np.zeros(nodes)
    queue, onward = np.empty(nodes + 1, np.uint32), np.empty(entries + 1, np.uint32)
    return _Flowing(distance, paths, share, np.ones(nodes + 2), queue, onward, np.empty(nodes + 1, np.int64))


@_compiler(error_model="numpy")
def _flows(starts, heads, chips, sources, ends, room, flow):
    distance, paths, share, scale = room.distance, room.paths, room.share, room.scale
    queue, onward, first = room.queue, room.onward, room.first
    for i in range(len(sources)):
        source, last = sources[i], ends[i]
        distance[source] = 0
        paths[source] = 1.0
        queue[0] = source
        head, tail, kept, level = 0, 1, 0, 0
        while head < tail and (last < 0 or distance[last] == _UNSEEN):
            end = tail  # nodes of this level: head .. end
            for at in range(head, end):
                u = queue[at]
                first[at] = kept
                to_u = paths[u]
                for e in range(starts[u], starts[u + 1]):  # without branches: none could be foreseen
                    v = heads[e]
                    was = distance[v]
                    queue[tail] = v
                    tail += was > level + 1
                    onward[kept] = e
                    kept += was > level
                    distance[v] = min(was, level + 1)
                    paths[v] += to_u if was > level else 0.0
            head = end
            level += 1
            most = 0.0
            for at in range(head, tail):
                most = max(most, paths[queue[at]])
            scale[level] = 1.0
            if most > _HUGE:  # only ratios between neighbouring levels matter
                scale[level] = 1.0 / most
                for at in range(head, tail):
                    paths[queue[at]] = max(paths[queue[at]] / most, 1.0 / _HUGE)
        for at in range(head, tail):  # the last level, where nothing goes on
            first[at] = kept
        first[tail] = kept
        for at in range(tail - 1, -1, -1):
            u = queue[at]
            passed = 0.0
            per_share = paths[u] * scale[distance[u] + 1]
            for k in range(first[at], first[at + 1]):
                e = onward[k]
                part = per_share * share[heads[e]]
                flow[e] += part
                passed += part
            wanted = 1.0 if u == last or (last < 0 and u < chips) else 0.0
            share[u] = (wanted + passed) / paths[u]
        for at in range(tail):
            distance[queue[at]] = _UNSEEN
            paths[queue[at]] = 0.0
            share[queue[at]] = 0.0

"""The compiled loops of the topology lab: searches and the flows of shortest paths. Arrays in, arrays out.

They hold no lock of the interpreter: several threads run them side by side, each on sources of its own.
"""

import numpy as np

from runs.compiled import compiler

_compiler = compiler(__package__)
_allocating = _compiler()
_compiled = _compiler(_nrt=False)

WORDS = 8
BATCH = 64 * WORDS  # sources that one pass over the network serves: one bit each
_HUGE = 1e200
_UNSEEN = 1 << 30


@_allocating
def hops(indptr, neighbours, source):
    """Links crossed from one node to each, int32 (nodes,), -1 where there is no way."""
    nodes = len(indptr) - 1
    found = np.full(nodes, -1, np.int32)
    queue = np.empty(nodes, np.int32)
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
    return found


@_compiled
def _ones(word):
    """Bits that are set in a word of 64."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_allocating
def counts(indptr, neighbours, chips, sources):
    """Ordered pairs of a source and another chip by hops, int64 (farthest + 1,), of at most BATCH sources.

    All sources search at once: bit i of a node's row says whether source i has reached it. Only nodes that were
    reached in the last step pass anything on, so that a long chain costs no more than a dense network.
    """
    nodes = len(indptr) - 1
    seen = np.zeros((nodes, WORDS), np.uint64)
    front = np.zeros((nodes, WORDS), np.uint64)
    coming = np.zeros((nodes, WORDS), np.uint64)
    active = np.empty(nodes, np.int32)
    touched = np.empty(nodes, np.int32)
    marked = np.zeros(nodes, np.bool_)
    found = np.zeros(nodes + 1, np.int64)
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
    return found[: farthest + 1]


@_compiler(error_model="numpy")
def flows(indptr, neighbours, chips, sources, ends):
    """What shortest paths carry, each path between two nodes an equal share: Brandes' accumulation from each source.

    Each source sends 1 to its node of `ends`, or to every chip that it reaches where that is -1. Returns the flow over
    each entry, float64.
    """
    nodes = len(indptr) - 1
    starts, heads = indptr.view(np.uint64), neighbours.view(np.uint32)  # unsigned: no index is ever below zero
    flow = np.zeros(len(neighbours))
    distance = np.full(nodes, _UNSEEN, np.int32)
    paths = np.zeros(nodes)
    share = np.zeros(nodes)  # what reaches a node or passes it, divided by the number of paths to it
    scale = np.ones(nodes + 2)
    queue = np.empty(nodes + 1, np.uint32)
    onward = np.empty(len(neighbours) + 1, np.uint32)  # entries to the next level, by place of their node in the queue
    first = np.empty(nodes + 1, np.int64)
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
    return flow

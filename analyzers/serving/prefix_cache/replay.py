"""A prefix cache replayed at every size at once: from the block identities of prompts, in order of arrival.

A cache of C blocks that gives up the least recently used one holds, at any time, the C distinct blocks touched last:
so a block is found by every cache larger than its depth, the number of distinct blocks touched since it was (Mattson's
stack distance). Depths do not depend on C, and one pass answers for all sizes.

    depth     distinct blocks touched after this one was, when the request arrives, before any of its own is touched
    reach     the greatest depth of a block and of all before it in its prompt: a prefix is found from its start
    found     in a cache of C blocks: reach < C;   hit rate = blocks found / blocks asked for

A request touches its blocks from the last to the first, as engines give them back: of a prompt, its end goes first.
"""

from dataclasses import dataclass

import numpy as np

from runs.compiled import compiler

_compiled = compiler(__package__)()
NEVER = np.iinfo(np.int64).max  # reach of a block that no cache, however large, would find


@_compiled
def _reaches(blocks, starts, arrivals, reach, age, tree, last, when):  # pragma: no cover - compiled
    """Fill `reach` and `age` (ns since the block was last touched, -1 for never) of each block.

    A Fenwick tree (`tree`, one longer than blocks are asked for) over touches counts the blocks whose last touch lies
    after one: O(log n) each. By block: `last`, the position of its last touch, -1 for none, and `when` that was.
    """
    n = len(blocks)
    alive = 0
    now = 0
    for r in range(len(starts) - 1):
        worst = np.int64(0)
        for i in range(starts[r], starts[r + 1]):
            b = blocks[i]
            if last[b] < 0:
                worst = np.iinfo(np.int64).max
            else:
                older = np.int64(0)
                p = last[b] + 1
                while p > 0:
                    older += tree[p]
                    p -= p & -p
                worst = max(worst, alive - older)
                age[i] = arrivals[r] - when[b]
            reach[i] = worst
        for i in range(starts[r + 1] - 1, starts[r] - 1, -1):
            b = blocks[i]
            if last[b] >= 0:
                p = last[b] + 1
                while p <= n:
                    tree[p] -= 1
                    p += p & -p
            else:
                alive += 1
            last[b] = now
            when[b] = arrivals[r]
            p = now + 1
            while p <= n:
                tree[p] += 1
                p += p & -p
            now += 1


@dataclass(frozen=True)
class Replay:
    """Every block asked for, in order: `reach` (NEVER: not found by any cache), `age_ns` (since its last touch, -1
    never), `request` (position of its request). `distinct`: blocks that differ, of all caches together."""

    reach: np.ndarray
    age_ns: np.ndarray
    request: np.ndarray
    distinct: int

    @property
    def blocks(self) -> int:
        return len(self.reach)

    def found(self, size: float | None = None) -> np.ndarray:
        """Which blocks a cache of `size` blocks finds; without a size, one that never gives any up."""
        return self.reach != NEVER if size is None else self.reach < size

    def hit_rate(self, size: float | None = None) -> float:
        return float(self.found(size).mean()) if self.blocks else 0.0

    def rates(self, sizes: np.ndarray) -> np.ndarray:
        """The hit rate at each size."""
        ordered = np.sort(self.reach)
        return np.searchsorted(ordered, sizes, side="left") / max(self.blocks, 1)

    def size_for(self, share: float) -> int | None:
        """The least size that finds `share` of what a cache without end finds; None where that finds nothing."""
        attainable = np.sort(self.reach[self.reach != NEVER])
        if not len(attainable):
            return None
        return int(attainable[max(int(np.ceil(share * len(attainable))) - 1, 0)]) + 1


def replay(
    blocks: np.ndarray, starts: np.ndarray, arrivals: np.ndarray | None = None, caches: np.ndarray | None = None
) -> Replay:
    """Replay requests in the order given.

    `blocks`: identities of all blocks, request after request; `starts`: where each request's begin, and the end;
    `arrivals`: ns of each request; `caches`: number of the cache that each request looks in (default: one for all).
    """
    requests = len(starts) - 1
    counts = np.diff(starts)
    owner = np.repeat(np.arange(requests), counts)
    reach = np.full(len(blocks), NEVER, dtype=np.int64)
    age = np.full(len(blocks), -1, dtype=np.int64)
    times = np.zeros(requests, dtype=np.int64) if arrivals is None else np.ascontiguousarray(arrivals, dtype=np.int64)
    cache = np.zeros(requests, dtype=np.int64) if caches is None else np.asarray(caches)
    distinct = 0
    for mine, at in zip(_together(cache, cache), _together(np.repeat(cache, counts), cache), strict=True):
        known, dense = np.unique(blocks[at], return_inverse=True)
        edges = np.concatenate([[0], np.cumsum(counts[mine])]).astype(np.int64)
        part, seen = np.full(len(at), NEVER, dtype=np.int64), np.full(len(at), -1, dtype=np.int64)
        tree, last, when = np.zeros(len(at) + 1, np.int64), np.full(len(known), -1), np.zeros(len(known), np.int64)
        _reaches(dense.astype(np.int64), edges, times[mine], part, seen, tree, last, when)
        reach[at], age[at] = part, seen
        distinct += len(known)
    return Replay(reach, age, owner, distinct)


def _together(cache: np.ndarray, caches: np.ndarray) -> list[np.ndarray]:
    """Where each of `caches`, in their order, stands in `cache`: of all at once, since they may be many."""
    order, numbers = np.argsort(cache, kind="stable"), np.unique(caches)
    begins = np.searchsorted(cache[order], numbers)
    return np.split(order, begins)[1:]


def warm() -> None:
    """Runs the compiled loop once, so that the first question need not wait for its compilation."""
    replay(np.arange(2), np.array([0, 2]))


def sizes_to_show(largest: int, points: int = 60) -> np.ndarray:
    """Whole sizes from 1 to `largest` blocks, evenly on a logarithmic scale, each once."""
    return np.unique(np.round(np.geomspace(1, max(largest, 1), points)).astype(np.int64))

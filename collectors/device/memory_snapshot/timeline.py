"""One device's history: the lives of its blocks, and what was held over time, as samples of a bounded number."""

from dataclasses import dataclass

import numpy as np

from collectors.device.memory_snapshot.lives import COUNTS, LIVES, ODD_ALLOC, ODD_FREE, ODD_LIVE, levels, pair
from collectors.device.memory_snapshot.shapes import (
    ALLOC,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
)
from collectors.device.memory_snapshot.state import State

MOST_BYTES = 1 << 41  # of one block; a size beyond it is none
_MOST_SUM = 2.0**62
LATEST_US = 4_102_444_800_000_000  # the year 2100; a time beyond it is none
BUCKETS = 4000  # of a device's samples; each keeps its first, its last, its least and its most


@dataclass(frozen=True)
class History:
    """`life`: see `lives.pair`; `event_ns`: when each event was, 0 where it tells no time that can be; `level`: bytes
    held before the first event and after each; `pool`: likewise what the allocator has from the device. `odd`: events
    and blocks that contradict others; `unsized`: events without size or address, which are left out."""

    life: np.ndarray
    life_stack: np.ndarray
    event_ns: np.ndarray
    level: np.ndarray
    pool: np.ndarray
    odd: int
    unsized: int


def of_device(state: State, which: np.ndarray, live: np.ndarray, live_stack: np.ndarray, reserved: int) -> History:
    """The history of the events at `which`; `live`: address, requested size and size of what is held at the end;
    `reserved`: bytes of its segments at the end."""
    rows = state.rows
    action, addr, size = rows.event_action[which], rows.event_addr[which], rows.event_size[which]
    told = (size >= 0) & (size < MOST_BYTES) & (addr >= 0)
    useful = np.isin(action, (ALLOC, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP))
    action[~told] = 0
    n = len(which)
    given = np.isin(action, (ALLOC, FREE_COMPLETED))
    life = np.empty((int(given.sum()) + len(live), 5), np.int64)
    life_stack = np.empty(len(life), np.int32)
    places = len(np.unique(addr[given])) + len(live)  # far fewer than events: addresses are given again and again
    room = 1 << max((2 * places).bit_length(), 4)
    counts = np.zeros(COUNTS, np.int64)
    table = np.zeros(room, np.int64), np.zeros(room, np.uint8), np.full(room, -1, np.int32)
    pair(action, addr, size, rows.event_stack[which], live, live_stack, *table, life, life_stack, counts)
    del table, addr
    if (
        max(life[: counts[LIVES], 0].sum(dtype=float), size[told & useful].sum(dtype=float), float(reserved))
        > _MOST_SUM
    ):
        raise OverflowError("its sizes add up to more than 64 bits hold")
    level = np.zeros(n + 1, np.int64)
    levels(life, int(counts[LIVES]), level)
    kept = life[: counts[LIVES], 0] > 0
    return History(
        life=life[: counts[LIVES]][kept],
        life_stack=life_stack[: counts[LIVES]][kept],
        event_ns=_times(rows.event_time[which]),
        level=level,
        pool=_pool(action, size, reserved),
        odd=int(counts[[ODD_ALLOC, ODD_FREE, ODD_LIVE]].sum()),
        unsized=int((useful & ~told).sum()),
    )


def _times(us: np.ndarray) -> np.ndarray:
    """Times in ns; 0 for one that cannot be."""
    return np.where((us > 0) & (us < LATEST_US), us, 0) * 1000


def _pool(action: np.ndarray, size: np.ndarray, reserved: int) -> np.ndarray:
    """What the allocator had from the device before the first event and after each, backwards from what it has."""
    change = np.where(np.isin(action, (SEGMENT_ALLOC, SEGMENT_MAP)), size, 0)
    change -= np.where(np.isin(action, (SEGMENT_FREE, SEGMENT_UNMAP)), size, 0)
    pool = np.empty(len(change) + 1, np.int64)
    pool[0] = 0
    np.cumsum(change, out=pool[1:])
    pool += reserved - pool[-1]
    return np.maximum(pool, 0, out=pool)


def samples(event_ns: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times in ns, bytes): what was held over time, by at most 4 BUCKETS samples, the very most among them.

    An event without a time, or with one before that of the event before it, counts at the latest so far.

    Of events of one instant the most counts; of the last instant the last, unless it is the most of all. Between two
    samples nothing changes, or what does lies between their numbers and those beside them.
    """
    ns = np.maximum.accumulate(event_ns)
    known = ns > 0
    if not known.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ns, held = ns[known], level[1:][known]
    starts = np.flatnonzero(np.r_[True, ns[1:] != ns[:-1]])
    most = np.maximum.reduceat(held, starts)
    first = int(np.flatnonzero(known)[0])
    most[0] = max(most[0], level[first])
    if len(most) > 1 and most[-1] < most.max():
        most[-1] = held[-1]
    changed = np.r_[True, most[1:] != most[:-1]]
    changed[-1] = True
    ns, most = ns[starts][changed], most[changed]
    if len(ns) <= 4 * BUCKETS:
        return ns, most
    kept = _extremes(most)
    return ns[kept], most[kept]


def _extremes(values: np.ndarray) -> np.ndarray:
    """Places of the first, last, least and most value in each of BUCKETS equal parts."""
    edges = np.linspace(0, len(values), BUCKETS + 1).astype(np.int64)
    places = [edges[:-1], edges[1:] - 1]
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = values[a:b]
        places.append(np.array([a + int(part.argmin()), a + int(part.argmax())]))
    return np.unique(np.concatenate(places))

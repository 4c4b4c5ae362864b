"""The flat tables that decoding fills, and their compiled look-ups: identifiers, inline texts, operations."""

from typing import NamedTuple

import numpy as np

from collectors.device.xplane.wire import kernel, part

# What a stat's value is (`Stats.kind`); inline text and bytes are interned and count as text afterwards.
NONE, INT, REAL, TEXT = 0, 1, 2, 3
# Stats with a meaning of their own (`Lookup.special`): which place in an event's scratch array they take.
HLO_OP, HLO_MODULE, PROGRAM, DEVICE, STEP, ROOT, COPY, OWN_OFFSET, OWN_DURATION = 1, 2, 3, 4, 5, 6, 7, 8, 9
SCRATCH = 16
# What an event with a key of its own is (`Ops.key[:, 2]`): no operation, one, or one that copies or fills memory.
NO_OP, AN_OP, COPY_OP = 0, 1, 2
# How operations are told apart (`mode`): by metadata alone; by metadata, HLO op and program; like that where the
# event names an HLO op, as host threads that stand in for a device do.
BY_NAME, BY_HLO, HOST_HLO = 0, 1, 2
# Counters, kept in one array between calls.
(
    POS,
    N_EVENTS,
    N_STATS,
    N_OPS,
    N_MARKS,
    BAD_EVENTS,
    BAD_STATS,
    BAD_AT,
    NEXT_EVENT,
    N_INLINE,
    ARENA,
    GENERATION,
    NEED,
    LAST_START,
    LAST_DUR,
    UNSORTED,
    COUNTERS,
) = range(17)
# The device's own clock while a line is decoded (`own`): 0 not told, 1 told, 2 and met; ps to add to its times; the
# least change of the lag that makes a knot; knots so far, the last one's lag; time and lag of the last point met.
OWN, OWN_SHIFT, KNOT_STEP, N_KNOTS, KNOT_LAG, NEAR_HOST, NEAR_LAG, CLOCK = range(8)
MAX_PS = np.int64(1) << 53  # two and a half hours: a time beyond it is damage, and sums below it stay exact
FAR_PS = np.int64(10**13)  # a device's own time 10 s from where the host puts it is damage
EVENT_TAG = 0x22
MARK_STEP = 1


class Lookup(NamedTuple):
    """A plane's tables: metadata identifiers to rows, rows to numbers that hold for all planes."""

    event_dense: np.ndarray  # identifier -> row where identifiers are small, else -1
    event_ids: np.ndarray  # sorted identifiers beyond the dense table, and their rows
    event_rows: np.ndarray
    stat_dense: np.ndarray
    stat_ids: np.ndarray
    stat_rows: np.ndarray
    special: np.ndarray  # stat row -> HLO_OP.. or 0
    text: np.ndarray  # stat row -> text number of its name
    event: np.ndarray  # event row (and one more for unknown ones) -> event number
    mark: np.ndarray  # the same -> mark or 0


class Ops(NamedTuple):
    """The operations of all lines: a hash table over keys, and sums."""

    table: np.ndarray  # open addressing, -1 is free
    key: np.ndarray  # (op, 7): line, event number, NO_OP.., HLO op text, program, device, module text
    count: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride]  # nobody asks a table where a value is
    total: np.ndarray  # ps
    own: np.ndarray  # ps, without nested operations


class Events(NamedTuple):
    op: np.ndarray
    start: np.ndarray  # ps since the capture's start
    dur: np.ndarray  # ps


class Stats(NamedTuple):
    event: np.ndarray
    name: np.ndarray  # text number, -1 unknown
    kind: np.ndarray
    value: np.ndarray  # int, or the bits of a real number
    text: np.ndarray  # text number, or -(inline number) - 2


class Inline(NamedTuple):
    """Texts that stand in the events themselves, each kept once."""

    table: np.ndarray
    start: np.ndarray  # places in the arena, one more than texts
    raw: np.ndarray  # whether it was bytes, not text
    arena: np.ndarray


class Marks(NamedTuple):
    """Events that mean more than their duration: (event row, operation, first stat, end of stats, mark, step)."""

    rows: np.ndarray


@part
def find(dense, ids, rows, key):
    """Row of an identifier, -1 where there is none."""
    if 0 <= key < dense.shape[0]:
        return dense[key]
    lo, hi = 0, ids.shape[0]
    while lo < hi:
        mid = (lo + hi) >> 1
        if ids[mid] < key:
            lo = mid + 1
        else:
            hi = mid
    if lo < ids.shape[0] and ids[lo] == key:
        return rows[lo]
    return np.int32(-1)


@kernel
def intern(table, starts, raws, arena, counters, buf, start, length, raw):
    """Number of an inline text; -1 where the tables are full."""
    h = np.int64(1469598103934665603) ^ raw
    for i in range(start, start + length):
        h = (h ^ np.int64(buf[i])) * np.int64(1099511628211)
    mask = table.shape[0] - 1
    slot = (h ^ (h >> 29)) & mask
    while True:
        n = table[slot]
        if n < 0:
            break
        a = starts[n]
        if starts[n + 1] - a == length and raws[n] == raw:
            same = True
            for i in range(length):
                if arena[a + i] != buf[start + i]:
                    same = False
                    break
            if same:
                return n
        slot = (slot + 1) & mask
    n = counters[N_INLINE]
    if n + 1 >= raws.shape[0] or counters[ARENA] + length > arena.shape[0]:
        return -1
    a = counters[ARENA]
    for i in range(length):
        arena[a + i] = buf[start + i]
    table[slot] = n
    raws[n] = raw
    starts[n] = a
    starts[n + 1] = a + length
    counters[ARENA] = a + length
    counters[N_INLINE] = n + 1
    return n


@part
def _hash(place, event, is_op, hlo, program, device):
    h = event * np.int64(-7046029254386353131) ^ place * np.int64(-2960836687246104469)
    if is_op:
        h ^= (hlo + 1) * np.int64(1609587929392839161)
        h ^= (program + 3) * np.int64(-4417276706812531889)
        h ^= (device + 7) * np.int64(7809847782465536323)
    return h ^ (h >> 31)


@part
def op_slot(table, keys, count, total, own, counters, place, event, is_op, hlo, program, device, module):
    """Number of the operation with this key; -1 where the table is full."""
    mask = table.shape[0] - 1
    slot = _hash(place, event, is_op, hlo, program, device) & mask
    while True:
        n = table[slot]
        if n < 0:
            break
        if (
            keys[n, 0] == place
            and keys[n, 1] == event
            and keys[n, 2] == is_op
            and keys[n, 3] == hlo
            and keys[n, 4] == program
            and keys[n, 5] == device
            and keys[n, 6] == module
        ):
            return n
        slot = (slot + 1) & mask
    n = counters[N_OPS]
    if n >= count.shape[0]:
        return -1
    table[slot] = n
    keys[n, 0], keys[n, 1], keys[n, 2], keys[n, 3] = place, event, is_op, hlo
    keys[n, 4], keys[n, 5], keys[n, 6] = program, device, module
    count[n] = 0
    total[n] = 0.0
    own[n] = 0.0
    counters[N_OPS] = n + 1
    return n


@kernel
def rehash(ops, n_ops):
    """Enters the first `n_ops` keys in an empty, larger table."""
    mask = ops.table.shape[0] - 1
    for n in range(n_ops):
        k = ops.key[n]
        slot = _hash(k[0], k[1], k[2], k[3], k[4], k[5]) & mask
        while ops.table[slot] >= 0:
            slot = (slot + 1) & mask
        ops.table[slot] = n


@kernel
def compact(values, n, texts, inlines, used):
    """Renumbers text numbers in place to those in use; returns how many. `used[i]` is the old number of new i.

    `texts` and `inlines` are scratch tables of -1, long enough for all numbers, and are -1 again afterwards.
    """
    m = 0
    for i in range(n):
        v = values[i]
        if v >= 0:
            if texts[v] < 0:
                texts[v] = m
                used[m] = v
                m += 1
            values[i] = texts[v]
        elif v < -1:
            if inlines[-2 - v] < 0:
                inlines[-2 - v] = m
                used[m] = v
                m += 1
            values[i] = inlines[-2 - v]
    for i in range(m):
        v = used[i]
        if v >= 0:
            texts[v] = -1
        else:
            inlines[-2 - v] = -1
    return m

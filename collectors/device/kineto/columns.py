"""The flat arrays that decoding fills, and the arguments of events that have a meaning of their own."""

from typing import NamedTuple

import numpy as np

from collectors.device.kineto.texts import Texts
from collectors.device.kineto.tokens import hashed, kernel

DONE, NEEDS_BYTES, NEEDS_ROWS, NEEDS_STATS, NEEDS_TEXTS, DAMAGED = range(6)  # how a call ended
# Counters, kept in one array between calls.
POS, ROWS, STATS, READ, ODD, STRAY, NEED, DROPPED, COUNTERS = range(9)
# Arguments with a meaning of their own: the column of `Batch.args` that holds each, and its names in the file.
FIELDS = (
    ("correlation",),
    ("External id", "external id"),
    ("device",),
    ("stream",),
    ("Sequence number",),
    ("Input Dims", "Input dims"),
    ("Input type",),
    ("Concrete Inputs",),
    ("Call stack",),
    ("Collective name",),
    ("In msg nelems",),
    ("Out msg nelems",),
    ("dtype",),
    ("Group size",),
    ("Process Group Name",),
    ("Process Group Description",),
    ("Process Group Ranks",),
    ("Seq",),
    ("Total Allocated",),
    ("Bytes",),
    ("Device Id",),
    ("Device Type",),
    ("rank",),
    ("name",),
    ("grid",),
    ("block",),
    ("kernel",),
)
(
    CORRELATION,
    EXTERNAL,
    DEVICE,
    STREAM,
    SEQUENCE,
    DIMS,
    TYPES,
    GIVEN,
    STACK,
    COLLECTIVE,
    IN_NELEMS,
    OUT_NELEMS,
    DTYPE,
    GROUP_SIZE,
    PG_NAME,
    PG_DESC,
    PG_RANKS,
    SEQ,
    ALLOCATED,
    BYTES,
    DEVICE_ID,
    DEVICE_TYPE,
    RANK,
    ROW_NAME,
    GRID,
    BLOCK,
    KERNEL_NAME,
) = range(len(FIELDS))
TEXTUAL = (STREAM, DIMS, TYPES, GIVEN, STACK, COLLECTIVE, DTYPE, PG_NAME, PG_DESC, PG_RANKS, ROW_NAME, GRID, BLOCK)
TEXTUAL += (KERNEL_NAME,)
INT, REAL, WORD = 1, 2, 3  # what a stat's value is
_KEYS = 256  # slots for the names of arguments that have a meaning


class Batch(NamedTuple):
    """Events in the order of the file. Texts are numbers of `Texts`, -1 where an event has none."""

    ordinal: np.ndarray  # which event of the file it is
    phase: np.ndarray  # the letter of `ph`
    cat: np.ndarray
    name: np.ndarray
    pid: np.ndarray
    tid: np.ndarray
    ts: np.ndarray  # ns as written, NONE where there is none
    dur: np.ndarray
    args: np.ndarray  # (row, FIELDS), NONE where an event has none


class Stats(NamedTuple):
    """Arguments of events, one after another."""

    event: np.ndarray
    name: np.ndarray
    kind: np.ndarray
    value: np.ndarray  # a whole number, the bits of a real one, or the number of a text


class Keys(NamedTuple):
    """Names of the arguments that have a meaning: a hash table over their bytes."""

    table: np.ndarray
    start: np.ndarray
    raw: np.ndarray
    field: np.ndarray
    text: np.ndarray  # number of the name in `Texts`
    textual: np.ndarray  # by field: whether its value is kept as a text


def new_batch(rows: int) -> Batch:
    """Room for `rows` events."""
    cat, name, pid, tid = (np.zeros(rows, np.int32) for _ in range(4))
    ordinal, ts, dur = (np.zeros(rows, np.int64) for _ in range(3))
    args = np.zeros((rows, len(FIELDS)), np.int64)
    return Batch(ordinal, np.zeros(rows, np.uint8), cat, name, pid, tid, ts, dur, args)


def new_stats(rows: int) -> Stats:
    """Room for `rows` arguments."""
    return Stats(np.zeros(rows, np.int64), np.zeros(rows, np.int32), np.zeros(rows, np.uint8), np.zeros(rows, np.int64))


def keys_of(texts: Texts) -> Keys:
    """The table of all names in FIELDS."""
    names = [(name.encode(), field) for field, known in enumerate(FIELDS) for name in known]
    raw = np.frombuffer(b"".join(name for name, _ in names), np.uint8).copy()
    start = np.cumsum([0, *(len(name) for name, _ in names)]).astype(np.int64)
    table = np.full(_KEYS, -1, np.int16)
    enter_keys(table, start, raw)
    textual = np.zeros(len(FIELDS), np.bool_)
    textual[list(TEXTUAL)] = True
    field = np.array([field for _, field in names], np.int64)
    text = np.array([texts.of(name.decode()) for name, _ in names], np.int32)
    return Keys(table, start, raw, field, text, textual)


@kernel
def enter_keys(table, start, raw):
    """Fills the table of `Keys`."""
    for n in range(start.shape[0] - 1):
        slot = hashed(raw, start[n], start[n + 1]) & (_KEYS - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (_KEYS - 1)
        table[slot] = n


@kernel
def known(keys, buf, pos, end):
    """Row of `Keys` of the name in [pos, end), -1 where it is none of them."""
    slot = hashed(buf, pos, end) & (_KEYS - 1)
    while True:
        n = np.int64(keys.table[slot])
        if n < 0:
            return n
        at = keys.start[n]
        if keys.start[n + 1] - at == end - pos:
            same = True
            for i in range(end - pos):
                if keys.raw[at + i] != buf[pos + i]:
                    same = False
                    break
            if same:
                return n
        slot = (slot + 1) & (_KEYS - 1)

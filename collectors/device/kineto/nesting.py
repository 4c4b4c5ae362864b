"""Compiled walks over events in order of time: what lies in what, and numbers for rows of whole numbers."""

import numpy as np

from collectors.device.kineto.tokens import NONE, kernel

# What an event on a host's thread is to those within it.
PLAIN, CALL, NOTE, MODULE, FRAME, LAUNCH = range(6)
# Columns of a stack: end in ns, operation, and the innermost of each kind above.
END, OP, SITE, IN_CALL, IN_MODULE, IN_FRAME, IN_NOTE, SEQUENCE, STACK_COLUMNS = range(9)
STACK_ROWS = 1024  # how deep events may nest before what is deeper loses exactness
FOUND_COLUMNS = 7
_PIECE = 1 << 16  # rows that are numbered at a time


@kernel
def sweep(start, dur, event, op, kind, site, name, sequence, stack, depth, own, found, marked):
    """Walks the events of one thread, in order of start and the longer first.

    `own[op]` gains each event's duration less that of the events in it, ns. `found` gets a row for each LAUNCH: its
    row, and the innermost site, call (its event), module, frame, note (its site) and sequence number around it, -1 for
    none. `marked` gets (sequence
    number, module, frame) of each CALL that has one. Returns how many rows of both.
    """
    n, m = 0, 0
    d = depth[0]
    for j in range(start.shape[0]):
        begin, end = start[j], start[j] + dur[j]
        own[op[j]] += dur[j]
        while d > 0 and stack[d - 1, END] <= begin:
            d -= 1
        if d > 0:
            own[stack[d - 1, OP]] -= min(end, stack[d - 1, END]) - begin
        in_site, in_call, in_module, in_frame, in_note, in_sequence = -1, -1, -1, -1, -1, -1
        if d > 0:
            in_site, in_call, in_module = stack[d - 1, SITE], stack[d - 1, IN_CALL], stack[d - 1, IN_MODULE]
            in_frame, in_note = stack[d - 1, IN_FRAME], stack[d - 1, IN_NOTE]
            in_sequence = stack[d - 1, SEQUENCE]
        if kind[j] == LAUNCH:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = j, in_site, in_call, in_module
            found[n, 4], found[n, 5], found[n, 6] = in_frame, in_note, in_sequence
            n += 1
        elif kind[j] == CALL:
            in_site, in_call = site[j], event[j]
            if sequence[j] != NONE and sequence[j] >= 0:
                in_sequence = sequence[j]
                if in_module >= 0 or in_frame >= 0:
                    marked[m, 0], marked[m, 1], marked[m, 2] = in_sequence, in_module, in_frame
                    m += 1
        elif kind[j] == NOTE:
            in_note = site[j]
        elif kind[j] == MODULE:
            in_module = name[j]
        elif kind[j] == FRAME:
            in_frame = name[j]
        if d < stack.shape[0] and dur[j] > 0:
            stack[d, END], stack[d, OP], stack[d, SITE], stack[d, IN_MODULE] = end, op[j], in_site, in_module
            stack[d, IN_CALL] = in_call
            stack[d, IN_FRAME], stack[d, IN_NOTE], stack[d, SEQUENCE] = in_frame, in_note, in_sequence
            d += 1
    depth[0] = d
    return n, m


@kernel
def number_rows(table, known, counters, rows, out):
    """Fills `out` with the number of each row, a new one where the row is new; returns how many were done before there
    was no room. `known` holds the rows by number, counters[0] how many there are."""
    mask = table.shape[0] - 1
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        h = np.int64(0)
        for k in range(width):
            h = (h ^ rows[i, k]) * np.int64(-7046029254386353131)
            h ^= h >> 29
        slot = h & mask
        while True:
            n = np.int64(table[slot])
            if n < 0:
                break
            same = True
            for k in range(width):
                if known[n, k] != rows[i, k]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
        if n < 0:
            n = counters[0]
            if n == known.shape[0]:
                return i
            table[slot] = n
            for k in range(width):
                known[n, k] = rows[i, k]
            counters[0] = n + 1
        out[i] = n
    return rows.shape[0]


class Numbered:
    """Rows of whole numbers, each kept once and known by its number."""

    def __init__(self, width: int, room: int = 1 << 10) -> None:
        self._table = np.full(4 * room, -1, np.int32)
        self._known = np.zeros((room, width), np.int64)
        self._count = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def rows(self) -> np.ndarray:
        """All rows by number."""
        return self._known[: len(self)]

    def of(self, *columns: np.ndarray) -> np.ndarray:
        """Number of each row, given by columns."""
        out = np.empty(len(columns[0]), np.int64)
        for at in range(0, len(out), _PIECE):
            part = slice(at, at + _PIECE)
            rows = np.empty((len(out[part]), self._known.shape[1]), np.int64)
            for k, column in enumerate(columns):
                rows[:, k] = column[part]
            self._number(rows, out[part])
        return out

    def _number(self, rows: np.ndarray, out: np.ndarray) -> None:
        done = 0
        while (done := done + number_rows(self._table, self._known, self._count, rows[done:], out[done:])) < len(rows):
            self._grow()

    def _grow(self) -> None:
        n = len(self)
        known = np.zeros((2 * len(self._known), self._known.shape[1]), np.int64)
        known[:n] = self._known[:n]
        self._table, self._known = np.full(2 * len(self._table), -1, np.int32), known
        number_rows(self._table, np.zeros_like(known), np.zeros(1, np.int64), known[:n], np.empty(n, np.int64))

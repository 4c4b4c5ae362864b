"""Compiled walks over events in order of time: what lies in what, and numbers for rows of whole numbers."""

from typing import NamedTuple

import numpy as np

from collectors.device.kineto.tokens import NONE, kernel

# What an event on a host's thread is to those within it.
PLAIN, CALL, NOTE, MODULE, FRAME, LAUNCH, BACKWARD, CHECKPOINT, UPDATE, RUNS, SENDS = range(11)
# A BACKWARD call is one of the engine that computes gradients, a CHECKPOINT one that computes a part of the forward
# pass again, an UPDATE a note that is a scope of its own. RUNS and SENDS are a call and a note that are executions
# themselves, where no device is.
CALLS = (CALL, BACKWARD, CHECKPOINT, RUNS)
NEITHER, GRADIENT, AGAIN = range(3)  # what lies in a BACKWARD call is GRADIENT, in a module within it AGAIN
# Columns of a stack: end in ns, operation, the innermost of each kind above (of modules the whole chain), and the pass.
END, OP, SITE, IN_CALL, IN_MODULE, IN_FRAME, IN_NOTE, SEQUENCE, IN_PASS, STACK_COLUMNS = range(10)
STACK_ROWS = 1024  # how deep events may nest before what is deeper loses exactness
FOUND_COLUMNS = 8
MOST_CHAINS = 1 << 20  # of modules within modules: what is in a new one beyond them counts to the module around it
_PIECE = 1 << 16  # rows that are numbered at a time


@kernel
def chained(chains, around, name):
    """Number of the chain of a module of this name within the chain `around`; `around` where there is no room."""
    mask = chains.table.shape[0] - 1
    h = (around * np.int64(-7046029254386353131)) ^ name
    h = h * np.int64(-7046029254386353131)
    h ^= h >> 29
    slot = h & mask
    while True:
        n = np.int64(chains.table[slot])
        if n < 0:
            break
        if chains.known[n, 0] == around and chains.known[n, 1] == name:
            return n
        slot = (slot + 1) & mask
    n = chains.counters[0]
    if n == chains.known.shape[0]:
        chains.counters[1] += 1
        return around
    chains.table[slot] = n
    chains.known[n, 0], chains.known[n, 1] = around, name
    chains.counters[0] = n + 1
    return n


@kernel
def enter_chains(chains):
    """Enters all chains in an empty table."""
    count = chains.counters[0]
    chains.counters[0] = 0
    for n in range(count):
        chained(chains, chains.known[n, 0], chains.known[n, 1])


@kernel
def sweep(start, dur, event, op, kind, site, name, sequence, stack, depth, own, found, marked, chains):
    """Walks the events of one thread, in order of start and the longer first.

    `own[op]` gains each event's duration less what events that begin later cover of it, ns: each instant is one event's
    alone; ends fall along `stack`. `found` gets a row for each LAUNCH (and for each that RUNS or SENDS, which then are
    what is around them): its row, and the innermost site, call (its event), chain of modules, frame, note (its site)
    and sequence number around it, -1 for none, and the pass. `marked` gets (sequence number, chain of modules, frame)
    of each call outside of the backward pass that has a number. `chains` gains those that are new. Returns how many
    rows of `found` and `marked`.
    """
    n, m = 0, 0
    d = depth[0]
    for j in range(start.shape[0]):
        begin, end = start[j], start[j] + dur[j]
        own[op[j]] += dur[j]
        while d > 0 and stack[d - 1, END] <= begin:
            d -= 1
        k, taken = d, begin  # what lies beneath owns the time from where what covers it ends
        while k > 0 and taken < end:
            k -= 1
            until = min(end, stack[k, END])
            own[stack[k, OP]] -= until - taken
            taken = until
        in_site, in_call, in_module, in_frame, in_note, in_sequence, in_pass = -1, -1, -1, -1, -1, -1, NEITHER
        # Times that were rounded let an event begin before the one ahead of it ends: it lies in what holds half of it.
        k = d
        while k > 0 and stack[k - 1, END] < end and 2 * (stack[k - 1, END] - begin) < dur[j]:
            k -= 1
        if k > 0:
            in_site, in_call, in_module = stack[k - 1, SITE], stack[k - 1, IN_CALL], stack[k - 1, IN_MODULE]
            in_frame, in_note = stack[k - 1, IN_FRAME], stack[k - 1, IN_NOTE]
            in_sequence, in_pass = stack[k - 1, SEQUENCE], stack[k - 1, IN_PASS]
        if kind[j] == LAUNCH:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = j, in_site, in_call, in_module
            found[n, 4], found[n, 5], found[n, 6], found[n, 7] = in_frame, in_note, in_sequence, in_pass
            n += 1
        elif kind[j] == CALL or kind[j] == RUNS or kind[j] == BACKWARD or kind[j] == CHECKPOINT:
            in_site, in_call = site[j], event[j]
            if kind[j] == BACKWARD or kind[j] == CHECKPOINT:
                in_module, in_pass = -1, GRADIENT if kind[j] == BACKWARD else AGAIN
            if sequence[j] != NONE and sequence[j] >= 0:
                in_sequence = sequence[j]
                if in_pass != GRADIENT:
                    marked[m, 0], marked[m, 1], marked[m, 2] = in_sequence, in_module, in_frame
                    m += 1
        elif kind[j] == NOTE or kind[j] == SENDS:
            in_note = site[j]
        elif kind[j] == UPDATE:
            in_note, in_module = site[j], chained(chains, np.int64(in_module), np.int64(name[j]))
        elif kind[j] == MODULE:
            in_module = chained(chains, np.int64(in_module), np.int64(name[j]))
            if in_pass == GRADIENT:
                in_pass = AGAIN
        elif kind[j] == FRAME:
            in_frame = name[j]
        if kind[j] == RUNS or kind[j] == SENDS:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = j, in_site, in_call, in_module
            found[n, 4], found[n, 5], found[n, 6], found[n, 7] = in_frame, in_note, in_sequence, in_pass
            n += 1
        if dur[j] > 0:
            while d > 0 and stack[d - 1, END] <= end:  # covered to its end: it owns and holds nothing more
                d -= 1
        if d < stack.shape[0] and dur[j] > 0:
            stack[d, END], stack[d, OP], stack[d, SITE], stack[d, IN_MODULE] = end, op[j], in_site, in_module
            stack[d, IN_CALL] = in_call
            stack[d, IN_FRAME], stack[d, IN_NOTE], stack[d, SEQUENCE] = in_frame, in_note, in_sequence
            stack[d, IN_PASS] = in_pass
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


class Chains(NamedTuple):
    """Chains of modules within modules: a hash table over (chain around, name), each by number."""

    table: np.ndarray  # open addressing, -1 is free
    known: np.ndarray  # by number: the chain around it, -1 for none, and the number of its own name
    counters: np.ndarray  # how many there are, and how often there was no room for one


def new_chains(room: int = 1 << 10) -> Chains:
    """No chains, and room for so many."""
    return Chains(np.full(4 * room, -1, np.int32), np.zeros((room, 2), np.int64), np.zeros(2, np.int64))


def with_room(chains: Chains, more: int) -> Chains:
    """The same chains with room for so many more, as far as MOST_CHAINS allows."""
    need = min(int(chains.counters[0]) + more, MOST_CHAINS)
    room = len(chains.known)
    if room >= need:
        return chains
    while room < need:
        room *= 2
    grown = new_chains(room)
    grown.known[: len(chains.known)], grown.counters[:] = chains.known, chains.counters
    enter_chains(grown)
    return grown


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

"""Texts, frames and stacks of calls, each kept once: compiled look-up by content."""

import numpy as np

from collectors.device.memory_snapshot.shapes import (
    ARENA,
    FRAME_ROWS,
    REFS,
    REFUSED_STACKS,
    REFUSED_TEXTS,
    STACK_ROWS,
    TEXTS,
)
from runs.compiled import compiler

MOST_TEXTS = 1 << 21
MOST_ARENA = 1 << 28
MOST_FRAMES = 1 << 21
MOST_STACKS = 1 << 21
MOST_REFS = 1 << 23  # frames of all different stacks together
NO_ROOM = -3  # tables must grow first

_compiler = compiler(__package__)
kernel = _compiler()
part = _compiler(forceinline=True)
_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)


@part
def mixed(seed, value):
    """A hash with one more number in it."""
    h = (seed ^ np.uint64(value)) * _PRIME
    return h ^ (h >> np.uint64(29))


@kernel
def text(kept, c, buf, pos, end):
    """Number of the text in [pos, end); NO_ROOM; -1 where no more different ones are kept."""
    h = _BASIS
    for i in range(pos, end):
        h = mixed(h, buf[i])
    mask = kept.text_table.shape[0] - 1
    slot = np.int64(h & np.uint64(mask))
    size = end - pos
    while True:
        n = np.int64(kept.text_table[slot])
        if n < 0:
            break
        at = kept.text_start[n]
        same = kept.text_start[n + 1] - at == size
        if same:
            for i in range(size):
                if kept.arena[at + i] != buf[pos + i]:
                    same = False
                    break
        if same:
            return n
        slot = (slot + 1) & mask
    n, at = c[TEXTS], c[ARENA]
    if n >= MOST_TEXTS or at + size > MOST_ARENA:
        c[REFUSED_TEXTS] += 1
        return np.int64(-1)
    if n + 1 >= kept.text_start.shape[0] or at + size > kept.arena.shape[0]:
        return np.int64(NO_ROOM)
    kept.text_table[slot] = n
    for i in range(size):
        kept.arena[at + i] = buf[pos + i]
    kept.text_start[n + 1] = at + size
    c[TEXTS] = n + 1
    c[ARENA] = at + size
    return n


@part
def frame_hash(name, file, line):
    return mixed(mixed(mixed(_BASIS, name), file), line)


@kernel
def frame(kept, c, name, file, line):
    """Number of the frame; -1 where no more different ones are kept. There is room for one: callers see to it."""
    mask = kept.frame_table.shape[0] - 1
    slot = np.int64(frame_hash(name, file, line) & np.uint64(mask))
    while True:
        n = np.int64(kept.frame_table[slot])
        if n < 0:
            break
        if kept.frame[n, 0] == name and kept.frame[n, 1] == file and kept.frame[n, 2] == line:
            return n
        slot = (slot + 1) & mask
    n = c[FRAME_ROWS]
    if n >= MOST_FRAMES:
        return np.int64(-1)
    kept.frame_table[slot] = n
    kept.frame[n, 0], kept.frame[n, 1], kept.frame[n, 2] = name, file, line
    c[FRAME_ROWS] = n + 1
    return n


@part
def stack_hash(refs, start, end):
    h = _BASIS
    for i in range(start, end):
        h = mixed(h, refs[i])
    return h


@kernel
def stack(kept, c, end):
    """Number of the stack whose frames stand in `refs` from REFS to `end`, which are kept if it is new; -1 where no
    more different ones are kept. There is room for one: callers see to it."""
    start = c[REFS]
    mask = kept.stack_table.shape[0] - 1
    slot = np.int64(stack_hash(kept.refs, start, end) & np.uint64(mask))
    while True:
        n = np.int64(kept.stack_table[slot])
        if n < 0:
            break
        at = kept.stack_start[n]
        same = kept.stack_start[n + 1] - at == end - start
        if same:
            for i in range(end - start):
                if kept.refs[at + i] != kept.refs[start + i]:
                    same = False
                    break
        if same:
            return n
        slot = (slot + 1) & mask
    n = c[STACK_ROWS]
    if n >= MOST_STACKS or end > MOST_REFS:
        c[REFUSED_STACKS] += 1
        return np.int64(-1)
    kept.stack_table[slot] = n
    kept.stack_start[n + 1] = end
    c[STACK_ROWS] = n + 1
    c[REFS] = end
    return n


@kernel
def enter_again(kept, c, which):
    """Enters all texts (0), frames (1) or stacks (2) in an empty, larger table."""
    if which == 0:
        mask = kept.text_table.shape[0] - 1
        for n in range(c[TEXTS]):
            h = _BASIS
            for i in range(kept.text_start[n], kept.text_start[n + 1]):
                h = mixed(h, kept.arena[i])
            _enter(kept.text_table, h, n, mask)
    elif which == 1:
        mask = kept.frame_table.shape[0] - 1
        for n in range(c[FRAME_ROWS]):
            _enter(kept.frame_table, frame_hash(kept.frame[n, 0], kept.frame[n, 1], kept.frame[n, 2]), n, mask)
    else:
        mask = kept.stack_table.shape[0] - 1
        for n in range(c[STACK_ROWS]):
            _enter(kept.stack_table, stack_hash(kept.refs, kept.stack_start[n], kept.stack_start[n + 1]), n, mask)


@part
def _enter(table, h, n, mask):
    slot = np.int64(h & np.uint64(mask))
    while table[slot] >= 0:
        slot = (slot + 1) & mask
    table[slot] = n

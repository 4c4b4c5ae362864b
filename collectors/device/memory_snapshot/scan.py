"""Compiled reading of a pickle's opcodes, those of plain containers alone, into flat arrays.

Nothing is made of the pickle: an opcode that would import, call or build anything ends the reading (REFUSED). All
arrays are allocated by the caller; a kernel that runs out of bytes or of room says so, and goes on at the opcode where
it stopped.
"""

import numpy as np

from collectors.device.memory_snapshot.keeping import (
    MOST_FRAMES,
    MOST_REFS,
    MOST_STACKS,
    NO_ROOM,
    frame,
    kernel,
    part,
    stack,
    text,
)
from collectors.device.memory_snapshot.shapes import (
    ACTION,
    ADDR,
    ADDRESS,
    BLOCK,
    BLOCK_ROWS,
    BLOCKS,
    DEVICE,
    DEVICE_FREE,
    DICT,
    DICTS,
    EMPTY,
    EVENT,
    EVENTS,
    EXPANDABLE,
    FILENAME,
    FLAG,
    FRAME,
    FRAME_ROWS,
    FRAMES,
    HUGE,
    INT,
    KEYS,
    KIND_BITS,
    LINE,
    LIST,
    LISTS,
    MARKED,
    MEMOED,
    MIXED,
    NAME,
    NONE,
    NOTHING,
    OTHER,
    PLAIN,
    POS,
    REFS,
    REFUSED_STACKS,
    REQUESTED,
    ROOT,
    ROOT_DICT,
    ROOT_SEGMENTS,
    ROOT_TRACES,
    SEGMENT,
    SEGMENT_ROWS,
    SEGMENTS,
    SIZE,
    STACK,
    STACK_ROWS,
    STACKED,
    STATE,
    TEXT,
    TIME,
    TOP,
    TOTAL,
    TRACES,
)
from collectors.device.memory_snapshot.values import (
    REFUSED_OP,
    WIDTH,
    kind_of,
    listed,
    little,
    number,
    packed,
    whole,
    word,
)

NEEDS_BYTES, NEEDS_ROOM, DONE, REFUSED, DAMAGED = range(5)
STRIDE = 1024  # opcodes between two looks at whether there is room for as many more
_BATCH = 1000  # items that picklers append to a list at once


@part
def stack_of(m, value):
    """The stack of calls that a list of frames is; -1 for whatever else."""
    n = listed(value)
    return m.list_value[n] if n >= 0 and m.list_what[n] == FRAMES else np.int32(-1)


@kernel
def items(m, kept, rows, c, field, base, sp):
    """Gives the dictionary below `base` the pairs between `base` and `sp`, and notes what it is. False: damaged."""
    if (sp - base) % 2 or base < 1 or kind_of(m.stack[base - 1]) != DICT:
        return False
    d = m.stack[base - 1] >> KIND_BITS
    for k in range(KEYS):
        field[k] = NOTHING
    seen = 0
    for at in range(base, sp, 2):
        k = word(m.stack[at])
        if 0 <= k < KEYS:
            field[k] = m.stack[at + 1]
            seen |= 1 << k
    if m.dict_kind[d] != PLAIN:  # no writer gives such a dictionary its keys in two parts
        return not seen
    if seen & 1 << ACTION:
        n = c[EVENTS]
        addr = number(field[ADDR])
        rows.event_addr[n] = addr if addr != NONE else number(field[DEVICE_FREE])
        rows.event_action[n] = min(word(field[ACTION]), 127)
        rows.event_size[n] = number(field[SIZE])
        rows.event_time[n] = number(field[TIME])
        rows.event_stack[n] = stack_of(m, field[STACK])
        rows.event_list[n] = -1
        c[EVENTS] = n + 1
        m.dict_kind[d], m.dict_row[d] = EVENT, n
    elif seen & 1 << FILENAME:
        line = number(field[LINE])
        m.dict_row[d] = frame(kept, c, word(field[NAME]), word(field[FILENAME]), line if line != NONE else 0)
        m.dict_kind[d] = FRAME
    elif seen & 1 << TOTAL:
        n = c[SEGMENT_ROWS]
        rows.segment[n, 0] = number(field[DEVICE])
        rows.segment[n, 1] = number(field[ADDRESS])
        rows.segment[n, 2] = number(field[TOTAL])
        rows.segment[n, 3] = listed(field[BLOCKS])
        rows.segment[n, 4] = field[EXPANDABLE] >> KIND_BITS if kind_of(field[EXPANDABLE]) == FLAG else 0
        rows.segment_list[n] = -1
        c[SEGMENT_ROWS] = n + 1
        m.dict_kind[d], m.dict_row[d] = SEGMENT, n
    elif seen & 1 << STATE:
        n = c[BLOCK_ROWS]
        rows.block[n, 0] = number(field[ADDRESS])
        rows.block[n, 1] = number(field[SIZE])
        rows.block[n, 2] = number(field[REQUESTED])
        rows.block[n, 3] = word(field[STATE])
        rows.block_stack[n] = stack_of(m, field[STACK])
        rows.block_list[n] = -1
        c[BLOCK_ROWS] = n + 1
        m.dict_kind[d], m.dict_row[d] = BLOCK, n
    elif seen & 1 << SEGMENTS:
        m.dict_kind[d] = ROOT
        c[ROOT_DICT] = d
        c[ROOT_SEGMENTS] = listed(field[SEGMENTS])
        c[ROOT_TRACES] = listed(field[TRACES])
    return True


@kernel
def append(m, kept, rows, c, base, sp):
    """Gives the list below `base` what lies between `base` and `sp`. False: damaged."""
    if base < 1 or kind_of(m.stack[base - 1]) != LIST:
        return False
    n = m.stack[base - 1] >> KIND_BITS
    frames = 0
    for at in range(base, sp):
        v = m.stack[at]
        row = v >> KIND_BITS
        if kind_of(v) == DICT:
            kind = m.dict_kind[row]
            if kind == FRAME:
                frames += 1
            elif kind == EVENT:
                rows.event_list[m.dict_row[row]] = n
            elif kind == BLOCK:
                rows.block_list[m.dict_row[row]] = n
            elif kind == SEGMENT:
                rows.segment_list[m.dict_row[row]] = n
        elif kind_of(v) == LIST and m.list_what[row] != FRAMES:
            m.list_value[row], m.list_place[row] = n, m.list_length[n] + at - base
    if frames and frames == sp - base and m.list_what[n] != MIXED:
        _frames(m, kept, c, n, base, sp)
    elif sp > base and m.list_what[n] != MIXED:
        m.list_value[n] = m.list_value[n] if m.list_what[n] == EMPTY else -1
        m.list_what[n] = MIXED
    m.list_length[n] = min(m.list_length[n] + sp - base, 1 << 30)
    return True


@part
def _frames(m, kept, c, n, base, sp):
    """Makes the list a stack of calls: what it held, and the frames between `base` and `sp`."""
    end = c[REFS]
    if m.list_what[n] == FRAMES:
        old = m.list_value[n]
        if old < 0:
            return
        a, b = kept.stack_start[old], kept.stack_start[old + 1]
        if (b - a) % _BATCH or end + b - a + sp - base > kept.refs.shape[0]:
            c[REFUSED_STACKS] += 1
            m.list_value[n] = -1
            return
        for i in range(a, b):
            kept.refs[end] = kept.refs[i]
            end += 1
    m.list_what[n] = FRAMES
    if end + sp - base > kept.refs.shape[0]:
        c[REFUSED_STACKS] += 1
        m.list_value[n] = -1
        return
    for at in range(base, sp):
        kept.refs[end] = m.dict_row[m.stack[at] >> KIND_BITS]
        end += 1
    m.list_value[n] = stack(kept, c, end)


@part
def short(m, kept, rows, c, sp, mp, memo):
    """Whether some table has no room for STRIDE more rows."""
    return (
        sp + STRIDE > m.stack.shape[0]
        or mp + STRIDE > m.marks.shape[0]
        or memo + STRIDE > m.memo.shape[0]
        or c[DICTS] + STRIDE > m.dict_kind.shape[0]
        or c[LISTS] + STRIDE > m.list_what.shape[0]
        or c[EVENTS] + STRIDE > rows.event_addr.shape[0]
        or c[BLOCK_ROWS] + STRIDE > rows.block.shape[0]
        or c[SEGMENT_ROWS] + STRIDE > rows.segment.shape[0]
        or (c[FRAME_ROWS] + STRIDE > kept.frame.shape[0] and c[FRAME_ROWS] < MOST_FRAMES)
        or (c[STACK_ROWS] + STRIDE > kept.stack_start.shape[0] - 1 and c[STACK_ROWS] < MOST_STACKS)
        or (c[REFS] + sp + 65536 > kept.refs.shape[0] and c[REFS] <= MOST_REFS)
    )


@kernel
def run(buf, stop, m, kept, rows, c, field):
    """Reads opcodes from c[POS] on, `stop` being the end of the bytes at hand; returns how it ended."""
    pos, sp, mp, memo = c[POS], c[STACKED], c[MARKED], c[MEMOED]
    how = np.int64(-1)
    while how < 0:
        if short(m, kept, rows, c, sp, mp, memo):
            how = NEEDS_ROOM
            break
        for _ in range(STRIDE):
            if pos >= stop:
                how = NEEDS_BYTES
                break
            op = buf[pos]
            width = WIDTH[op]
            if width == REFUSED_OP:
                how = REFUSED
                break
            floor = m.marks[mp - 1] if mp else 0
            at, size = pos + 1, width
            if width >= 0:
                end = at + width
                if end > stop:
                    how = NEEDS_BYTES
                    break
            else:  # a length, and so many bytes
                n = 8 if op == 0x8D else 1 if op == 0x8A or op == 0x8C or op == 67 else 4
                if at + n > stop:
                    how = NEEDS_BYTES
                    break
                size = little(buf, at, n)
                at += n
                if size < 0 or size > 1 << 40:
                    how = DAMAGED
                    break
                end = at + size
                if end > stop:
                    how = NEEDS_BYTES
                    break
            if op == 0x6A or op == 0x68:  # LONG_BINGET, BINGET
                i = little(buf, at, width)
                if i >= memo:
                    how = DAMAGED
                    break
                m.stack[sp] = m.memo[i]
                sp += 1
            elif op == 0x94 or op == 113 or op == 114:  # MEMOIZE, BINPUT, LONG_BINPUT
                i = memo if op == 0x94 else little(buf, at, width)
                if sp <= floor or i > memo:
                    how = DAMAGED
                    break
                m.memo[i] = m.stack[sp - 1]
                memo += i == memo
            elif op == 0x8A or op == 0x8B:  # LONG1, LONG4
                if size > 8:
                    m.stack[sp] = packed(0, HUGE)
                else:
                    v = little(buf, at, size)
                    if 0 < size < 8 and buf[end - 1] & 128:
                        v -= np.int64(1) << (8 * size)
                    m.stack[sp] = whole(v)
                sp += 1
            elif op == 40:  # MARK
                m.marks[mp] = sp
                mp += 1
            elif op == 75 or op == 77:  # BININT1, BININT2
                m.stack[sp] = packed(little(buf, at, width), INT)
                sp += 1
            elif op == 74:  # BININT
                v = little(buf, at, 4)
                m.stack[sp] = packed(v - (np.int64(1) << 32) if v >= 1 << 31 else v, INT)
                sp += 1
            elif op == 125:  # EMPTY_DICT
                n = c[DICTS]
                m.dict_kind[n], m.dict_row[n] = PLAIN, -1
                c[DICTS] = n + 1
                m.stack[sp] = packed(n, DICT)
                sp += 1
            elif op == 93:  # EMPTY_LIST
                n = c[LISTS]
                m.list_what[n], m.list_value[n], m.list_length[n], m.list_place[n] = EMPTY, -1, 0, -1
                c[LISTS] = n + 1
                m.stack[sp] = packed(n, LIST)
                sp += 1
            elif op == 117 or op == 101:  # SETITEMS, APPENDS
                below = m.marks[mp - 2] if mp > 1 else 0
                if mp == 0 or floor <= below:
                    how = DAMAGED
                    break
                if not (
                    items(m, kept, rows, c, field, floor, sp) if op == 117 else append(m, kept, rows, c, floor, sp)
                ):
                    how = DAMAGED
                    break
                sp = floor
                mp -= 1
            elif op == 115 or op == 97:  # SETITEM, APPEND
                base = sp - (2 if op == 115 else 1)
                if base <= floor:
                    how = DAMAGED
                    break
                fine = items(m, kept, rows, c, field, base, sp) if op == 115 else append(m, kept, rows, c, base, sp)
                if not fine:
                    how = DAMAGED
                    break
                sp = base
            elif op == 0x8C or op == 88 or op == 0x8D:  # texts
                n = text(kept, c, buf, at, end)
                if n == NO_ROOM:
                    how = NEEDS_ROOM
                    break
                m.stack[sp] = packed(n, TEXT) if n >= 0 else packed(0, OTHER)
                sp += 1
            elif op == 0x88 or op == 0x89:  # NEWTRUE, NEWFALSE
                m.stack[sp] = packed(op == 0x88, FLAG)
                sp += 1
            elif 0x85 <= op <= 0x87:  # TUPLE1, TUPLE2, TUPLE3
                if sp - (op - 0x84) < floor:
                    how = DAMAGED
                    break
                sp -= op - 0x84
                m.stack[sp] = packed(0, OTHER)
                sp += 1
            elif op == 116 or op == 49:  # TUPLE, POP_MARK
                if mp == 0:
                    how = DAMAGED
                    break
                sp = floor
                mp -= 1
                if op == 116:
                    m.stack[sp] = packed(0, OTHER)
                    sp += 1
            elif op == 78 or op == 41 or op == 71 or op == 66 or op == 67:  # NONE, EMPTY_TUPLE, BINFLOAT, bytes
                m.stack[sp] = packed(0, NOTHING if op == 78 else OTHER)
                sp += 1
            elif op == 48 or op == 50:  # POP, DUP
                if sp <= floor:
                    how = DAMAGED
                    break
                if op == 50:
                    m.stack[sp] = m.stack[sp - 1]
                sp += 1 if op == 50 else -1
            elif op == 46:  # STOP
                if sp != 1 or mp:
                    how = DAMAGED
                    break
                c[TOP] = m.stack[0]
                how = DONE
                pos = end
                break
            pos = end  # PROTO and FRAME tell nothing
    c[POS], c[STACKED], c[MARKED], c[MEMOED] = pos, sp, mp, memo
    return how

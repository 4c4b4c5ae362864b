"""Compiled look through a pickle's codes, before anything is made of them.

It follows what Python's unpickler would do, with the kind of each value in place of the value. Nothing is allocated
here: no more values lie on the stack, and no place of the memo is further up, than there were codes.
"""

import numpy as np

from collectors.reading.plain_pickle.codes import (
    CODES,
    CONTAINERS,
    CUT,
    DEPTH,
    DICT,
    DONE,
    FAR_PLACE,
    LIST,
    LONG_NUMBER,
    LONGEST_NUMBER,
    NEWEST,
    NO_DICT,
    NO_LIST,
    NO_MARK,
    NO_PLAIN_CODE,
    NO_REFERENCE,
    NO_TEXT_KEYS,
    NO_VALUE,
    NOT_KEPT,
    NOTED,
    OLDEST,
    OTHER,
    POS,
    PROTOCOL,
    TEXT,
    TEXT_BYTES,
    TOLD,
    UNKNOWN,
    WIDTH,
    ascii_alone,
    kernel,
    little,
    part,
)


@part
def note(noted, c, pos):
    """Remembers a code by its place; where there is no room, that there is one more."""
    if c[NOTED] < noted.shape[0]:
        noted[c[NOTED]] = pos
    c[NOTED] += 1


@part
def fill(stack, base, sp, target):
    """How giving the container below `base` what lies between `base` and `sp` ends; `target` is what it must be."""
    if target == DICT:
        if (sp - base) % 2:
            return NO_TEXT_KEYS
        for at in range(base, sp, 2):
            if stack[at] != TEXT:
                return NO_TEXT_KEYS
    return DONE


@kernel
def scan(buf, stack, marks, memo, noted, c, most_codes, most_containers, most_text):
    """How it ends. c[POS]: behind the last code, or at the one that is refused; c[NOTED]: how many frames, and texts
    that are not of ASCII alone, `noted` tells the places of, as far as it has room."""
    stop = buf.shape[0]
    pos, sp, mp, kept, containers, texts = np.int64(0), np.int64(0), np.int64(0), np.int64(0), 0, np.int64(0)
    how, cut = np.int64(-1), False
    for codes in range(most_codes):
        if pos >= stop:
            how = CUT
            break
        op = buf[pos]
        width = WIDTH[op]
        if width == UNKNOWN:
            how = NO_PLAIN_CODE
            break
        at, floor = pos + 1, marks[mp - 1] if mp else np.int64(0)
        end = at + width
        if end > stop:
            how = CUT
            break
        if op == 104 or op == 106:  # BINGET, LONG_BINGET
            place = little(buf, at, width)
            if place > codes or memo[place] == 0:
                how = NO_REFERENCE
                break
            stack[sp] = memo[place]
            sp += 1
        elif op == 113 or op == 114 or op == 0x94:  # BINPUT, LONG_BINPUT, MEMOIZE
            place = kept if op == 0x94 else little(buf, at, width)
            if sp <= floor:
                how = NOT_KEPT
                break
            if place > codes:
                c[TOLD] = place
                how = FAR_PLACE
                break
            kept += memo[place] == 0
            memo[place] = stack[sp - 1]
        elif op == 88 or op == 0x8C or op == 0x8D:  # texts
            size = little(buf, at, width)
            if size < 0 or size > stop - end:
                how = CUT
                break
            texts += size
            if texts > most_text:
                how = TEXT_BYTES
                break
            if not ascii_alone(buf, end, end + size):
                note(noted, c, pos)
            end += size
            stack[sp] = TEXT
            sp += 1
        elif op == 40:  # MARK
            if mp == marks.shape[0]:
                how = DEPTH
                break
            marks[mp] = sp
            mp += 1
        elif op == 0x8A:  # LONG1
            size = np.int64(buf[at])
            if size > LONGEST_NUMBER:
                c[TOLD] = size
                how = LONG_NUMBER
                break
            end += size
            if end > stop:
                how = CUT
                break
            stack[sp] = OTHER
            sp += 1
        elif op == 117 or op == 101:  # SETITEMS, APPENDS
            if mp == 0:
                how = NO_MARK
                break
            mp -= 1
            below = marks[mp - 1] if mp else np.int64(0)
            target = DICT if op == 117 else LIST
            if floor <= below or stack[floor - 1] != target:
                how = NO_DICT if op == 117 else NO_LIST
                break
            how = fill(stack, floor, sp, target)
            if how != DONE:
                break
            how = np.int64(-1)
            sp = floor
        elif op == 115 or op == 97:  # SETITEM, APPEND
            base = sp - (2 if op == 115 else 1)
            if base < floor:
                how = NO_VALUE
                break
            target = DICT if op == 115 else LIST
            if base == floor or stack[base - 1] != target:
                how = NO_DICT if op == 115 else NO_LIST
                break
            how = fill(stack, base, sp, target)
            if how != DONE:
                break
            how = np.int64(-1)
            sp = base
        elif op == 125 or op == 93 or op == 116 or 0x85 <= op <= 0x87:  # EMPTY_DICT, EMPTY_LIST, tuples of something
            if op == 116:
                if mp == 0:
                    how = NO_MARK
                    break
                mp -= 1
                sp = floor
            elif op >= 0x85:
                if sp - (op - 0x84) < floor:
                    how = NO_VALUE
                    break
                sp -= op - 0x84
            containers += 1
            if containers > most_containers:
                how = CONTAINERS
                break
            stack[sp] = DICT if op == 125 else LIST if op == 93 else OTHER
            sp += 1
        elif op == 0x95:  # FRAME: how many bytes belong together; nothing depends on it
            size = little(buf, at, 8)
            cut |= size < 0 or size > stop - end
            note(noted, c, pos)
        elif op == 0x80:  # PROTO
            if buf[at] < OLDEST or buf[at] > NEWEST:
                c[TOLD] = buf[at]
                how = PROTOCOL
                break
        elif op == 46:  # STOP
            how = NO_VALUE if sp <= floor else CUT if cut else DONE
            pos = end if how == DONE else pos
            break
        else:  # numbers, true, false, none, the empty tuple
            stack[sp] = OTHER
            sp += 1
        pos = end
    c[POS] = pos
    return how if how >= 0 else np.int64(CODES)

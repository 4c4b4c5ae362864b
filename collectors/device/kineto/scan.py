"""Compiled decoding of trace events: one pass over their bytes fills flat arrays, a row for each event.

All arrays are allocated by the caller and never grow here: a kernel that runs out of room, or of bytes, says so and is
called again from the event where it stopped. Nothing of an event that was not read to its end is kept.
"""

import numpy as np

from collectors.device.kineto.columns import (
    DAMAGED,
    DONE,
    INT,
    NEEDS_BYTES,
    NEEDS_ROWS,
    NEEDS_STATS,
    NEEDS_TEXTS,
    ODD,
    POS,
    READ,
    REAL,
    ROWS,
    STATS,
    STRAY,
    WORD,
    known,
)
from collectors.device.kineto.texts import number
from collectors.device.kineto.tokens import (
    BAD,
    BARE,
    MORE,
    NESTED,
    NONE,
    NUMBER,
    TEXT,
    blank,
    closing,
    kernel,
    part,
    real,
    scaled,
    value,
)

PH, CAT, NAME, PID, TID, TS, DUR, ARGS = 1, 2, 3, 4, 5, 6, 7, 8


@part
def which(buf, a, b):
    """Which of an event's own fields is called [a, b); 0: none of those above."""
    size = b - a
    c = buf[a]
    if size == 2:
        if c == 112 and buf[a + 1] == 104:
            return PH
        if c == 116 and buf[a + 1] == 115:
            return TS
    elif size == 3:
        d, e = buf[a + 1], buf[a + 2]
        if c == 99 and d == 97 and e == 116:
            return CAT
        if c == 112 and d == 105 and e == 100:
            return PID
        if c == 116 and d == 105 and e == 100:
            return TID
        if c == 100 and d == 117 and e == 114:
            return DUR
    elif size == 4:
        d, e, f = buf[a + 1], buf[a + 2], buf[a + 3]
        if c == 110 and d == 97 and e == 109 and f == 101:
            return NAME
        if c == 97 and d == 114 and e == 103 and f == 115:
            return ARGS
    return 0


@part
def odd(buf, a, b):
    """Whether a bare token is none that JSON knows (true, false, null)."""
    c = buf[a]
    return not ((c == 116 and b - a == 4) or (c == 102 and b - a == 5) or (c == 110 and b - a == 4))


@part
def key(buf, pos, stop):
    """(where a key begins, where it ends, position of its value). Positions below 0 as those of tokens."""
    end = closing(buf, pos + 1, stop)
    if end < 0:
        return pos, end, end
    at = end + 1
    while at < stop and (buf[at] == 32 or buf[at] == 10 or buf[at] == 13 or buf[at] == 9):
        at += 1
    if at >= stop:
        return pos, np.int64(MORE), np.int64(MORE)
    if buf[at] != 58:
        return pos, np.int64(BAD), np.int64(BAD)
    at += 1
    while at < stop and (buf[at] == 32 or buf[at] == 10 or buf[at] == 13 or buf[at] == 9):
        at += 1
    if at >= stop:
        return pos, np.int64(MORE), np.int64(MORE)
    return pos + 1, end, at


@kernel
def arguments(buf, pos, stop, keys, batch, row, stats, at, store, keep, tell):
    """Reads the arguments of an event, the brace of which opens at `pos`.

    Returns (position behind them, next row of stats, how it ended where the position is below 0); `tell[0]` counts
    values that are no JSON, `tell[1]` arguments for which there was no room.
    """
    event = batch.ordinal[row]
    p = pos + 1
    while True:
        p = blank(buf, p, stop)
        if p >= stop:
            return np.int64(MORE), at, NEEDS_BYTES
        if buf[p] == 125:
            return p + 1, at, DONE
        if buf[p] != 34:  # the rest of a number with a decimal comma
            _, _, _, q = value(buf, p, stop)
            if q < 0:
                return q, at, NEEDS_BYTES if q == MORE else DAMAGED
            tell[0] += 1
            p = q
            continue
        a, b, v = key(buf, p, stop)
        if v < 0:
            return v, at, NEEDS_BYTES if v == MORE else DAMAGED
        kind, c, d, p = value(buf, v, stop)
        if p < 0:
            return p, at, NEEDS_BYTES if p == MORE else DAMAGED
        if kind == BARE:
            tell[0] += odd(buf, c, d)
            if buf[c] != 116 and buf[c] != 102:
                continue
        n = known(keys, buf, a, b)
        field = np.int64(-1)
        if n >= 0:
            field = keys.field[n]
        text = np.int64(-1)
        whole = NONE
        if field >= 0 and keys.textual[field] or kind in (TEXT, NESTED):
            text = number(store, buf, c, d)
            if text == -1:
                return np.int64(MORE), at, NEEDS_TEXTS
        if kind in (NUMBER, TEXT):
            whole = scaled(buf, c, d, 0)
        if field >= 0:
            batch.args[row, field] = text if keys.textual[field] else whole
        if not keep:
            continue
        if n >= 0:
            name = np.int64(keys.text[n])
        else:
            name = number(store, buf, a, b)
            if name == -1:
                return np.int64(MORE), at, NEEDS_TEXTS
        if at == stats.kind.shape[0]:
            return np.int64(MORE), at, NEEDS_STATS
        stats.event[at] = event
        stats.name[at] = name
        if kind == NUMBER:
            is_whole = True
            for i in range(c, d):
                is_whole &= 48 <= buf[i] <= 57 or buf[i] == 45
            if is_whole and whole != NONE:
                stats.kind[at], stats.value[at] = INT, whole
            else:
                stats.kind[at], stats.value[at] = REAL, np.float64(real(buf, c, d)).view(np.int64)
        elif kind == BARE:
            stats.kind[at], stats.value[at] = INT, np.int64(buf[c] == 116)
        else:
            stats.kind[at], stats.value[at] = WORD, text
        at += 1


@kernel
def events(buf, pos, stop, keys, batch, stats, store, quiet, counters, tell):
    """Decodes events of an array from `pos` on, `stop` being the end of the bytes at hand.

    `quiet`: by number of a category, whether its arguments are left out (numbers beyond it: they are not). How it ended
    is DONE (behind the array's bracket), NEEDS_.. or DAMAGED; where is counters[POS].
    """
    while True:
        pos = blank(buf, pos, stop)
        counters[POS] = pos
        if pos >= stop:
            return NEEDS_BYTES
        if buf[pos] == 93:
            counters[POS] = pos + 1
            return DONE
        if buf[pos] != 123:
            _, _, _, end = value(buf, pos, stop)
            if end < 0:
                return NEEDS_BYTES if end == MORE else DAMAGED
            counters[STRAY] += 1
            pos = end
            continue
        n, at = counters[ROWS], counters[STATS]
        if n == batch.ts.shape[0]:
            return NEEDS_ROWS
        batch.ordinal[n] = counters[READ]
        batch.phase[n] = 0
        batch.cat[n] = batch.name[n] = batch.pid[n] = batch.tid[n] = -1
        batch.ts[n] = batch.dur[n] = NONE
        for i in range(batch.args.shape[1]):
            batch.args[n, i] = NONE
        tell[0] = 0
        p = pos + 1
        while True:
            p = blank(buf, p, stop)
            if p >= stop:
                return NEEDS_BYTES
            if buf[p] == 125:
                p += 1
                break
            if buf[p] != 34:
                _, _, _, q = value(buf, p, stop)
                if q < 0:
                    return NEEDS_BYTES if q == MORE else DAMAGED
                tell[0] += 1
                p = q
                continue
            a, b, v = key(buf, p, stop)
            if v < 0:
                return NEEDS_BYTES if v == MORE else DAMAGED
            field = which(buf, a, b)
            if field == ARGS and buf[v] == 123:
                cat = batch.cat[n]
                if cat < 0 or cat >= quiet.shape[0] or not quiet[cat]:
                    keep = batch.phase[n] == 88 or batch.phase[n] == 0  # its phase may stand behind its arguments
                    p, at, how = arguments(buf, v, stop, keys, batch, n, stats, at, store, keep, tell)
                    if p < 0:
                        return how
                    continue
            kind, c, d, p = value(buf, v, stop)
            if p < 0:
                return NEEDS_BYTES if p == MORE else DAMAGED
            if kind == BARE:
                tell[0] += odd(buf, c, d)
            if field == 0 or field == ARGS:
                continue
            if field == PH:
                batch.phase[n] = buf[c] if d > c else 0
            elif field == TS:
                batch.ts[n] = scaled(buf, c, d, 3)
            elif field == DUR:
                batch.dur[n] = scaled(buf, c, d, 3)
            elif kind != BARE:
                text = number(store, buf, c, d)
                if text == -1:
                    return NEEDS_TEXTS
                if field == CAT:
                    batch.cat[n] = text
                elif field == NAME:
                    batch.name[n] = text
                elif field == PID:
                    batch.pid[n] = text
                else:
                    batch.tid[n] = text
        if batch.phase[n] != 88:
            at = counters[STATS]
        counters[ODD] += tell[0]
        counters[ROWS] = n + 1
        counters[STATS] = at
        counters[READ] += 1
        pos = p

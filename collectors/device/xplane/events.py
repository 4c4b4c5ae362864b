"""Compiled decoding of XPlane events: one pass over a line's bytes fills flat arrays of events, stats and operations.

All arrays are allocated by the caller and never grow here: a kernel that runs out of room, or of bytes, says so and
is called again from where it stopped. Every read is checked against the bytes that are there.
"""

import numpy as np

from collectors.device.xplane.tables import (
    AN_OP,
    BAD_AT,
    BAD_EVENTS,
    BAD_STATS,
    BY_HLO,
    COPY,
    COPY_OP,
    DEVICE,
    EVENT_TAG,
    FAR_PS,
    GENERATION,
    HLO_MODULE,
    HLO_OP,
    HOST_HLO,
    INT,
    KNOT_LAG,
    KNOT_STEP,
    LAST_DUR,
    LAST_START,
    MARK_STEP,
    MAX_PS,
    N_EVENTS,
    N_KNOTS,
    N_MARKS,
    N_STATS,
    NEAR_HOST,
    NEAR_LAG,
    NEED,
    NEXT_EVENT,
    NO_OP,
    NONE,
    OWN,
    OWN_DURATION,
    OWN_OFFSET,
    OWN_SHIFT,
    POS,
    PROGRAM,
    REAL,
    ROOT,
    STEP,
    TEXT,
    UNSORTED,
    find,
    intern,
    op_slot,
)
from collectors.device.xplane.wire import BAD, BYTES, DONE, FULL, MORE, kernel, part, skip, varint

_TIMED = (1 << OWN_OFFSET) | (1 << OWN_DURATION)


@part
def note_lag(own, knots, host, lag):
    """Notes by how much the host's clock is ahead of the device's at `host`, where that changed since the last note.

    The point before the change is noted, too: between notes the lag may be taken as a straight line.
    """
    change = lag - own[KNOT_LAG]
    if own[OWN] == 1 or change > own[KNOT_STEP] or -change > own[KNOT_STEP]:
        n = own[N_KNOTS]
        if own[OWN] == 2:
            knots[n, 0], knots[n, 1] = own[NEAR_HOST], own[NEAR_LAG]
            n += 1
        knots[n, 0], knots[n, 1] = host, lag
        own[N_KNOTS] = n + 1
        own[KNOT_LAG] = lag
        own[OWN] = 2
    own[NEAR_HOST] = host
    own[NEAR_LAG] = lag


@part
def stat(
    buf,
    pos,
    stop,
    dense,
    ids,
    rows,
    special_of,
    text_of,
    event_out,
    name_out,
    kind_out,
    value_out,
    text_out,
    at,
    table,
    starts,
    raws,
    arena,
    counters,
    scratch,
):
    """Decodes one stat into row `at`. 1: entered; 0: damaged, skipped; -1: no room for its text."""
    key = np.int64(0)
    kind = NONE
    value = np.int64(0)
    length = np.int64(0)
    raw = np.int64(-1)
    if stop - pos > 3 and buf[pos] == 0x08 and buf[pos + 1] < 128:  # nearly always: a small id, then the value
        key = np.int64(buf[pos + 1])
        pos += 2
    while pos < stop:
        tag = np.int64(buf[pos])
        pos += 1
        if tag >= 128:
            tag, pos = varint(buf, pos - 1, stop)
            if pos < 0:
                return 0
        if tag == 0x08:
            key, pos = varint(buf, pos, stop)
        elif tag == 0x38:
            value, pos = varint(buf, pos, stop)
            kind, raw = TEXT, np.int64(-1)
        elif tag == 0x18 or tag == 0x20:
            value, pos = varint(buf, pos, stop)
            kind, raw = INT, np.int64(-1)
        elif tag == 0x11:
            if stop - pos < 8:
                return 0
            value = np.int64(0)
            for i in range(8):
                value |= np.int64(buf[pos + i]) << (8 * i)
            pos += 8
            kind, raw = REAL, np.int64(-1)
        elif tag == 0x2A or tag == 0x32:
            length, pos = varint(buf, pos, stop)
            if pos < 0 or length < 0 or length > stop - pos:
                return 0
            value = pos
            pos += length
            kind, raw = TEXT, np.int64(tag == 0x32)
        else:
            pos = skip(buf, tag, pos, stop)
        if pos < 0:
            return 0
    row = find(dense, ids, rows, key)
    text = np.int64(-1)
    if kind == TEXT:
        if raw >= 0:
            n = intern(table, starts, raws, arena, counters, buf, value, length, raw)
            if n < 0:
                return -1
            text = -2 - n
        else:
            ref = find(dense, ids, rows, value)
            if ref >= 0:
                text = np.int64(text_of[ref])
            else:
                kind = NONE
        value = np.int64(0)
    event_out[at] = counters[NEXT_EVENT]
    kind_out[at] = kind
    value_out[at] = value
    text_out[at] = text
    if row < 0:
        name_out[at] = -1
        return 1
    name_out[at] = text_of[row]
    special = np.int64(special_of[row])
    if special:
        if special <= HLO_MODULE:
            if kind == TEXT:
                # An inline text's number must stay its own when the tables are emptied between two batches.
                scratch[special] = text if text >= 0 else text - counters[GENERATION]
                scratch[0] |= 1 << special
        elif special == COPY:
            scratch[0] |= 1 << COPY  # that it is there tells, not what it says
        elif kind == INT:
            scratch[special] = value
            scratch[0] |= 1 << special
    return 1


@kernel
def decode(
    buf, pos, stop, limit, shift, place, mode, look, ops, events, stats, inline, marks, counters, scratch, own, knots
):
    """Decodes the events of a line from `pos` on; how it ended is DONE, MORE, FULL or BAD, and where is counters[POS].

    `stop`: end of the window's bytes; `limit`: end of the line; `shift`: ps to add to an event's offset; `place`: the
    line's number; `own`, `knots`: the device's own clock (see `clock`), by which events that tell it are placed.
    An event that is damaged inside is left out and counted (BAD_EVENTS, first one at BAD_AT), for its length still
    tells where the next begins. A damaged length ends the line.
    """
    # Taking an array out of a tuple counts references, so each is taken out once.
    event_dense, event_ids, event_rows, stat_dense, stat_ids, stat_rows, special_of, text_of, event_of, mark_of = look
    op_table, op_keys, op_count, op_total, op_own = ops
    event_op, event_start, event_dur = events
    stat_event, stat_name, stat_kind, stat_value, stat_text = stats
    table, starts, raws, arena = inline
    (mark_rows,) = marks
    while pos < limit:
        counters[POS] = pos
        counters[NEED] = 20
        if pos >= stop:
            return MORE
        tag, p = varint(buf, pos, stop)
        size = np.int64(0)
        if p >= 0:
            if tag & 7 == BYTES:
                size, p = varint(buf, p, stop)
            else:
                q = skip(buf, tag, p, stop)
                if q >= 0:
                    pos = q
                    continue
                p = q
        if p == -1 and stop < limit and stop - pos < 20:
            return MORE
        if p < 0 or tag >> 3 <= 0 or size < 0 or size > limit - p:
            return BAD
        if tag != EVENT_TAG:
            pos = p + size
            continue
        if size > stop - p:
            counters[NEED] = p + size - pos
            return MORE
        end = p + size
        n = counters[N_EVENTS]
        at = counters[N_STATS]
        if n == event_dur.shape[0] or counters[N_MARKS] == mark_rows.shape[0] or own[N_KNOTS] + 4 > knots.shape[0]:
            return FULL
        key = np.int64(0)
        start = np.int64(0)
        dur = np.int64(0)
        good = True
        scratch[0] = 0
        while p < end:
            tag, p = varint(buf, p, end)
            if p < 0:
                good = False
                break
            if tag == 0x22:
                size, p = varint(buf, p, end)
                if p < 0 or size < 0 or size > end - p:
                    good = False
                    break
                if at == stat_kind.shape[0]:
                    if counters[N_STATS] == 0:
                        good = False  # more stats than a whole batch holds: no real event has
                        break
                    return FULL
                entered = stat(
                    buf,
                    p,
                    p + size,
                    stat_dense,
                    stat_ids,
                    stat_rows,
                    special_of,
                    text_of,
                    stat_event,
                    stat_name,
                    stat_kind,
                    stat_value,
                    stat_text,
                    at,
                    table,
                    starts,
                    raws,
                    arena,
                    counters,
                    scratch,
                )
                if entered < 0:
                    return FULL
                if entered:
                    at += 1
                else:
                    counters[BAD_STATS] += 1
                    if counters[BAD_AT] < 0:
                        counters[BAD_AT] = p
                p += size
            elif tag == 0x08:
                key, p = varint(buf, p, end)
            elif tag == 0x10:
                start, p = varint(buf, p, end)
            elif tag == 0x18:
                dur, p = varint(buf, p, end)
            else:
                p = skip(buf, tag, p, end)
            if p < 0:
                good = False
                break
        if not good or dur < 0 or dur > MAX_PS or start < -MAX_PS or start > MAX_PS:
            counters[BAD_EVENTS] += 1
            if counters[BAD_AT] < 0:
                counters[BAD_AT] = pos
            pos = end
            continue
        start += shift
        row = np.int64(find(event_dense, event_ids, event_rows, key))
        if row < 0:
            row = np.int64(mark_of.shape[0] - 1)
        seen = scratch[0]
        is_op = np.int64(NO_OP)
        if mode == BY_HLO or (mode == HOST_HLO and seen & (1 << HLO_OP)):
            is_op = np.int64(COPY_OP if seen & (1 << COPY) else AN_OP)
        hlo, program, device, module = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
        if is_op:
            if seen & (1 << HLO_OP):
                hlo = scratch[HLO_OP]
            if seen & (1 << HLO_MODULE):
                module = scratch[HLO_MODULE]
            if seen & (1 << PROGRAM):
                program = scratch[PROGRAM]
            if mode == HOST_HLO and seen & (1 << DEVICE):
                device = scratch[DEVICE]
        op = op_slot(
            op_table,
            op_keys,
            op_count,
            op_total,
            op_own,
            counters,
            place,
            event_of[row],
            is_op,
            hlo,
            program,
            device,
            module,
        )
        if op < 0:
            return FULL
        if own[OWN]:
            lag = own[NEAR_LAG]
            if seen & _TIMED == _TIMED:
                at_own = scratch[OWN_OFFSET] + own[OWN_SHIFT]
                took = scratch[OWN_DURATION]
                if 0 <= took <= MAX_PS and -FAR_PS < start - at_own < FAR_PS:
                    lag = start - at_own
                    note_lag(own, knots, start, lag)
                    note_lag(own, knots, start + dur, start + dur - at_own - took)
                    dur = took
            start -= lag
        mark = np.int64(mark_of[row])
        if seen & (1 << STEP) and seen & (1 << ROOT) and scratch[ROOT]:
            mark = MARK_STEP
        if mark:
            m = counters[N_MARKS]
            mark_rows[m, 0] = n
            mark_rows[m, 1] = op
            mark_rows[m, 2] = counters[N_STATS]
            mark_rows[m, 3] = at
            mark_rows[m, 4] = mark
            mark_rows[m, 5] = scratch[STEP]
            counters[N_MARKS] = m + 1
        if start < counters[LAST_START] or (start == counters[LAST_START] and dur > counters[LAST_DUR]):
            counters[UNSORTED] += 1
        counters[LAST_START] = start
        counters[LAST_DUR] = dur
        op_count[op] += 1
        op_total[op] += dur
        event_op[n] = op
        event_start[n] = start
        event_dur[n] = dur
        counters[N_EVENTS] = n + 1
        counters[N_STATS] = at
        counters[NEXT_EVENT] += 1
        pos = end
    counters[POS] = pos
    return DONE

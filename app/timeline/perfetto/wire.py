"""Events as packets of a trace, compiled: a varint of protobuf holds seven bits a byte, the lowest first.

A packet is `packet` of a trace: timestamp, sequence, flags, and the event with type, category, name, track and
annotations, each by the number under which its text was interned. Field numbers are those of Perfetto's
trace_packet.proto, track_event.proto and debug_annotation.proto.
"""

import numpy as np

from runs.compiled import compiler

_compiled = compiler(__package__)()
SEQUENCE = 1  # all packets are of one
MOST_BYTES = 192  # of an event, both packets, without its facts
BEGIN, END, INSTANT = 1, 2, 3
START_PS, DUR_PS = 1, 2  # names of annotations, by number: see NAMES of facts.py
NOT_TOLD = -1


@_compiled
def size(value):  # pragma: no cover - compiled
    """Bytes of a varint."""
    n = 1
    while value >= np.uint64(128):
        value >>= np.uint64(7)
        n += 1
    return n


@_compiled
def put(out, at, value):  # pragma: no cover - compiled
    """Write a varint; returns where it ends."""
    while value >= np.uint64(128):
        out[at] = np.uint8((value & np.uint64(127)) | np.uint64(128))
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@_compiled
def copied(out, at, told, begin, length):  # pragma: no cover - compiled
    """Write so many bytes of `told`, from `begin` on; returns where they end."""
    for k in range(length):
        out[at + k] = told[begin + k]
    return at + length


@_compiled
def noted(out, at, name, tag, value):  # pragma: no cover - compiled
    """Write an annotation: its name by number, and a whole number in the field of `tag`."""
    out[at], out[at + 1] = 0x22, np.uint8(size(np.uint64(name)) + size(value) + 2)
    out[at + 2] = 0x08
    at = put(out, at + 3, np.uint64(name))
    out[at] = tag
    return put(out, at + 1, value)


@_compiled
def opened(out, at, ns, length):  # pragma: no cover - compiled
    """Write what stands before an event of `length` bytes: packet, timestamp, sequence, flags, and the event's head."""
    whole = 1 + size(ns) + 2 + 2 + 1 + size(np.uint64(length)) + length
    out[at] = 0x0A
    at = put(out, at + 1, np.uint64(whole))
    out[at] = 0x40
    at = put(out, at + 1, ns)
    out[at], out[at + 1], out[at + 2], out[at + 3] = 0x50, SEQUENCE, 0x68, 0x02
    out[at + 4] = 0x5A
    return put(out, at + 5, np.uint64(length))


@_compiled
def written(  # pragma: no cover - compiled
    out, spare, ns, end_ns, instant, track, category, name, called, number, start_ps, dur_ps, facts, first, some
):
    """Write each event as a begin and an end, or as an instant; returns how many bytes. `called`: the annotation that
    `number` is told under, NOT_TOLD where there is none; `start_ps`, `dur_ps`: NOT_TOLD where nanoseconds say all;
    `some`: which stretch of `facts`, from `first`, an event has, NOT_TOLD for none. `spare`: room for one event."""
    at = 0
    for i in range(len(ns)):
        n = 0
        spare[0], spare[1], spare[2] = 0x48, INSTANT if instant[i] else BEGIN, 0x18
        n = put(spare, 3, np.uint64(category[i]))
        spare[n] = 0x50
        n = put(spare, n + 1, np.uint64(name[i]))
        spare[n] = 0x58
        n = put(spare, n + 1, np.uint64(track))
        if called[i] != NOT_TOLD:
            n = noted(spare, n, called[i], 0x20, np.uint64(number[i]))
        if start_ps[i] != NOT_TOLD:
            n = noted(spare, n, START_PS, 0x18, np.uint64(start_ps[i]))
            n = noted(spare, n, DUR_PS, 0x18, np.uint64(dur_ps[i]))
        more = 0
        if some[i] != NOT_TOLD:
            more = first[some[i] + 1] - first[some[i]]
        at = opened(out, at, np.uint64(ns[i]), n + more)
        at = copied(out, at, spare, 0, n)
        if more:
            at = copied(out, at, facts, first[some[i]], more)
        if not instant[i]:
            at = opened(out, at, np.uint64(end_ns[i]), 3 + size(np.uint64(track)))
            out[at], out[at + 1], out[at + 2] = 0x48, END, 0x58
            at = put(out, at + 3, np.uint64(track))
    return at

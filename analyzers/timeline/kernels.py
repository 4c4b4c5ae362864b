"""Rows and bins of a timeline, compiled."""

from typing import Any

import numpy as np

from runs.compiled import compiler

_compiled = compiler(__package__)()
CODES = 64  # accounts that an event may be of
KINDS = 64  # kinds, with numbers beyond those
_ROOM = 64  # rows that the tree has room for at first
NEAR = 32  # rows of a lane that are tried one by one; those below, which may be as many as there are events, by a tree
FREE = np.int64(-(1 << 63))  # the end of a row in which nothing is yet


def rows_of(lane: np.ndarray, start: np.ndarray, end: np.ndarray, row: np.ndarray) -> None:
    """Fill `row` with the lowest row of its lane in which each event meets no other: nested ones below what holds them,
    those that overlap side by side. Events in order of lane, start, and the longest first."""
    ends, deep, done = np.zeros(NEAR, np.int64), np.full(2 * _ROOM, FREE), np.zeros(2, np.int64)
    while _rows_of(lane, start, end, row, ends, deep, done):
        deep = _twice(deep)


def _twice(tree: np.ndarray) -> np.ndarray:
    """A tree of least values with room for as many more."""
    room = len(tree)  # at its bottom, where the smaller one has half of that
    more = np.full(2 * room, FREE)
    more[room : room + room // 2] = tree[room // 2 :]
    while room > 1:
        below = more[room : 2 * room]
        room //= 2
        more[room : 2 * room] = np.minimum(below[0::2], below[1::2])
    return more


@_compiled
def _rows_of(lane, start, end, row, ends, deep, done):  # pragma: no cover - compiled
    """Go on with event done[0], which finds done[1] rows of its lane used, until all have a row (False), or `deep` has
    no room (True): a tree, each node the earliest end of the two below it, rows at the bottom."""
    room, used = len(deep) // 2, done[1]
    for i in range(done[0], len(start)):
        if i == 0 or lane[i] != lane[i - 1]:
            for r in range(NEAR, used):
                _set(deep, room + r - NEAR, FREE)
            used = 0
        r = 0
        while r < min(used, NEAR) and ends[r] > start[i]:
            r += 1
        if r < NEAR:
            ends[r] = end[i]
        else:
            if used - NEAR == room:
                done[0], done[1] = i, used
                return True
            at = 1
            while at < room:
                at = 2 * at if deep[2 * at] <= start[i] else 2 * at + 1
            _set(deep, at, end[i])
            r = NEAR + at - room
        used = max(used, r + 1)
        row[i] = r
    return False


@_compiled
def _set(tree, at, value):  # pragma: no cover - compiled
    """Put a value at the bottom of a tree of least values."""
    tree[at] = value
    while at > 1:
        at >>= 1
        tree[at] = min(tree[2 * at], tree[2 * at + 1])


def fill_bins(*given: Any) -> int:
    """Sum events (row, start, dur, code, kind) shorter than a bin of 2^shift ticks (shift) by row and bin (into, bins,
    busy, count, top, most, longest), `top` by accounts, `most` by kinds; returns how many bins. Where `into` is empty
    they are counted only. Events in order of row and start, none of a row over another."""
    return _fill_bins(*given, np.zeros(CODES, np.int64), np.zeros(CODES + KINDS, np.int64))


@_compiled
def _fill_bins(
    row, start, dur, code, kind, shift, into, bins, busy, count, top, most, longest, sums, by_kind
):  # pragma: no cover - compiled
    fill = len(into) > 0
    width = np.int64(1) << shift
    n = np.int64(-1)
    last_row, last_bin = np.int64(-1), np.int64(-1)
    for i in range(len(start)):
        if dur[i] >= width:
            continue
        at, left = start[i], dur[i]
        first = True
        while first or left > 0:
            b = at >> shift
            part = min(left, ((b + 1) << shift) - at)
            if row[i] != last_row or b != last_bin:
                n += 1
                last_row, last_bin = row[i], b
                if fill:
                    into[n], bins[n], busy[n], count[n], top[n], longest[n] = row[i], b, 0, 0, code[i], i
                    most[n] = kind[i]
                    sums[:], by_kind[:] = 0, 0
            if fill:
                busy[n] += part
                if first:
                    count[n] += 1
                sums[code[i]] += part
                if sums[code[i]] > sums[top[n]]:
                    top[n] = code[i]
                by_kind[kind[i]] += part
                if by_kind[kind[i]] > by_kind[most[n]]:
                    most[n] = kind[i]
                if dur[i] > dur[longest[n]]:
                    longest[n] = i
            at, left, first = at + part, left - part, False
    return n + 1


@_compiled
def lengths_of(dur, lengths):  # pragma: no cover - compiled
    """Add to `lengths` how many durations have each number of bits."""
    for i in range(len(dur)):
        bits, left = 0, dur[i]
        while left > 0:
            left >>= 1
            bits += 1
        lengths[bits] += 1


@_compiled
def count_bins(row, start, dur, sizes):  # pragma: no cover - compiled
    """Add to `sizes`, of bins of each size, how many `fill_bins` fills."""
    for shift in range(len(sizes) - 1):
        width = np.int64(1) << shift
        found = np.int64(0)
        last_row, last_bin = np.int64(-1), np.int64(-1)
        for i in range(len(start)):
            if dur[i] >= width:
                continue
            low = start[i] >> shift
            high = max(start[i] + dur[i] - 1, start[i]) >> shift
            found += high - low + 1
            if row[i] == last_row and low == last_bin:
                found -= 1
            last_row, last_bin = row[i], high
        sizes[shift] += found

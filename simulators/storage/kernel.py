"""The walk over events: requests of files on each host, and steps that begin when every host has its batch.

Compiled once and kept (`runs/kernels.py`). Plain numbers and arrays alone, so that a test can walk the same in Python.
"""

from typing import NamedTuple

import numpy as np

from runs.compiled import compiler

_compiled = compiler(__package__)()

FIRST_BYTE, DONE = 0, 1  # kinds of events; an event is kept as 2 x file + kind


@_compiled
def _sift_down(times: np.ndarray, what: np.ndarray, n: int) -> None:
    """Put the root of a heap of `n` events in its place."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and times[child + 1] < times[child]:
            child += 1
        if times[i] <= times[child]:
            return
        times[i], times[child] = times[child], times[i]
        what[i], what[child] = what[child], what[i]
        i = child


@_compiled
def _push(times: np.ndarray, what: np.ndarray, n: int, time: float, event: int) -> None:
    """Add an event to a heap of `n`."""
    i = n
    times[i], what[i] = time, event
    while i > 0:
        above = (i - 1) // 2
        if times[above] <= times[i]:
            return
        times[i], times[above] = times[above], times[i]
        what[i], what[above] = what[above], what[i]
        i = above


class Hosts(NamedTuple):
    """Of each host: files of each batch that are not there yet, and when the last of them was; a heap of events (when,
    and what); how many files fly and were asked for; and until when it, its wire and its decoders are taken."""

    left: np.ndarray
    whole: np.ndarray
    times: np.ndarray
    what: np.ndarray
    flying: np.ndarray
    asked: np.ndarray
    now: np.ndarray
    wire: np.ndarray
    decoder: np.ndarray


def _fresh(hosts: int, batches: int, readers: int) -> Hosts:
    def per(*shape: int, kind: type = float) -> np.ndarray:
        return np.zeros((hosts, *shape), kind)

    left, what = per(batches, kind=np.int64), per(readers, kind=np.int64)
    return Hosts(left, per(batches), per(readers), what, per(kind=np.int64), per(kind=np.int64), per(), per(), per())


def walk(
    latency_s: np.ndarray,
    need: np.ndarray,
    of_batch: np.ndarray,
    transfer_s: float,
    wire_s: float,
    decode_s: float,
    readers: int,
    depth: int,
    step_s: float,
) -> np.ndarray:
    """When each step begins, in seconds from the first request.

    latency_s   (hosts, files): until the first byte of each file comes
    need        (batches,): files that must be there, from the first, before a batch is whole
    of_batch    (files,): the first batch that needs a file
    transfer_s  of a file at the rate of its own stream; wire_s: of a file on the host's wire, one after another
    decode_s    of a file by all decoders of a host, one after another
    depth       batches that may be fetched or held while a step runs; 0: a batch is asked for when the step before ends
    """
    begins = np.zeros(len(need))
    at = _fresh(len(latency_s), len(need), readers)
    seconds = float(transfer_s), float(wire_s), float(decode_s), float(step_s)
    _walk(latency_s, of_batch, *seconds, readers, depth, at, begins)
    return begins


@_compiled
def _walk(
    latency_s: np.ndarray,
    of_batch: np.ndarray,
    transfer_s: float,
    wire_s: float,
    decode_s: float,
    step_s: float,
    readers: int,
    depth: int,
    at: Hosts,
    begins: np.ndarray,
) -> None:
    hosts, files = latency_s.shape
    batches = len(begins)
    left, whole, times, what = at.left, at.whole, at.times, at.what
    flying, asked, now, wire, decoder = at.flying, at.asked, at.now, at.wire, at.decoder
    for h in range(hosts):
        for f in range(files):
            left[h, of_batch[f]] += 1
    for k in range(batches):
        told = k if depth == 0 else k - 1 + depth  # the last batch of which it is known when it may be asked for
        ready = 0.0
        for h in range(hosts):
            while True:
                while flying[h] < readers and asked[h] < files and of_batch[asked[h]] <= told:
                    file, b = asked[h], of_batch[asked[h]]
                    free = 0.0
                    if depth == 0:
                        free = begins[b - 1] + step_s if b > 0 else 0.0
                    elif b >= depth:
                        free = begins[b - depth]
                    _push(times[h], what[h], flying[h], max(now[h], free) + latency_s[h, file], 2 * file + FIRST_BYTE)
                    flying[h] += 1
                    asked[h] += 1
                if left[h, k] == 0:
                    break
                time, file, kind = times[h, 0], what[h, 0] // 2, what[h, 0] % 2
                now[h] = time
                if kind == FIRST_BYTE:
                    wire[h] = max(wire[h], time) + wire_s
                    times[h, 0], what[h, 0] = max(time + transfer_s, wire[h]), 2 * file + DONE
                    _sift_down(times[h], what[h], flying[h])
                    continue
                flying[h] -= 1
                times[h, 0], what[h, 0] = times[h, flying[h]], what[h, flying[h]]
                _sift_down(times[h], what[h], flying[h])
                decoder[h] = max(decoder[h], time) + decode_s
                b = of_batch[file]
                left[h, b] -= 1
                whole[h, b] = max(whole[h, b], decoder[h])
            if k > 0:
                whole[h, k] = max(whole[h, k], whole[h, k - 1])
            ready = max(ready, whole[h, k])
        begins[k] = max(ready, begins[k - 1] + step_s) if k > 0 else ready

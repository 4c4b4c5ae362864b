"""Requests that only generate are carried along together, so that a step costs what changes in it.

A request that has its whole prompt in the cache gets one token in each step until it is done: all that a step needs of
such requests are sums. They are kept by replica, and a heap says at which step one of them changes:

    tokens looked at     each sum grows by the requests that have not filled the window of their layers yet
    pages                a request takes one every `page` steps: the bytes taken are kept by the step modulo `page`
    last token           is known from the first

What is kept by request (state.py) is brought up to date when it is done, or when all go back (`disband`): where pages
run out, the scheduler puts requests back one by one. Sums are of whole numbers, so nothing is rounded: the times are
those that the loop over requests gives, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from simulators.serving.compiled import compiled

ABSENT = -1
SHORT, REST = 8, 8  # carried along for fewer steps than these: the next attempt waits so many steps
_KIND, _TICK = 1 << 24, 1 << 28  # a key of the heap: step, kind of change, request (traffic.MAX_REQUESTS fit)
DONE = 15  # kind: the last token; below it 2 s: fills the window of layers s, 2 s + 1: takes no more pages for them
MOST_SPANS = 7


class Cruise(NamedTuple):
    """One entry a replica. `tick`: its steps so far; `among`: requests carried along, ABSENT: none are, the scheduler
    sees to each; `began`: the step since when; `rest`: steps until the next attempt; `partial`: the request whose
    prompt is read in part, or ABSENT; `looked`, `growing`: by kind of layer; `taken`: bytes by step modulo page."""

    tick: np.ndarray
    among: np.ndarray
    began: np.ndarray
    rest: np.ndarray
    partial: np.ndarray
    looked: np.ndarray
    growing: np.ndarray
    taken: np.ndarray
    heap: np.ndarray
    heaped: np.ndarray


def fresh_cruise(replicas: int, seats: int, kinds: int, page: int) -> Cruise:
    def per(*shape: int, fill: int = 0, kind: type = np.int64) -> np.ndarray:
        return np.full((replicas, *shape), fill, dtype=kind)

    return Cruise(
        tick=per(),
        among=per(fill=ABSENT),
        began=per(),
        rest=per(),
        partial=per(fill=ABSENT),
        looked=per(kinds, kind=float),
        growing=per(kinds),
        taken=per(page, kind=float),
        heap=per(seats * (1 + 2 * kinds) + 1),
        heaped=per(),
    )


@compiled
def _push(c: Cruise, r: int, key: int) -> None:
    heap, at = c.heap[r], c.heaped[r]
    c.heaped[r] += 1
    while at > 0 and heap[(at - 1) >> 1] > key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key


@compiled
def _pop(c: Cruise, r: int) -> int:
    heap, first = c.heap[r], c.heap[r, 0]
    c.heaped[r] -= 1
    last, size, at = heap[c.heaped[r]], c.heaped[r], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@compiled
def join(
    c: Cruise,
    r: int,
    i: int,
    pages: np.ndarray,
    page: int,
    windows: np.ndarray,
    prompt: int,
    generated: int,
    output: int,
    since: np.ndarray,
) -> None:
    """Carry request `i` along from the next step on: it looks at prompt + generated tokens there."""
    tick = c.tick[r]
    since[i] = tick - generated
    context, end = prompt + generated, prompt + output - 1
    taken = (since[i] + 1 - prompt) % page
    c.among[r] += 1
    for s in range(pages.shape[0]):
        window, full = windows[s], (pages[s, 1] - 1) * page + 2
        c.looked[r, s] += min(float(context), window)
        if context < window:
            c.growing[r, s] += 1
            if window <= end:
                _push(c, r, (int(window) - prompt + since[i]) * _TICK + 2 * s * _KIND + i)
        if context < full:
            c.taken[r, taken] += pages[s, 0]
            if full <= end:
                _push(c, r, (int(full) - prompt + since[i]) * _TICK + (2 * s + 1) * _KIND + i)
    _push(c, r, (end - prompt + since[i]) * _TICK + DONE * _KIND + i)


@compiled
def change(c: Cruise, r: int, pages: np.ndarray, page: int, prompt: np.ndarray, since: np.ndarray) -> None:
    """What changes with the step to come: windows that are full, layers that take no more pages."""
    until = c.tick[r] * _TICK + DONE * _KIND
    while c.heaped[r] > 0 and c.heap[r, 0] < until:
        key = _pop(c, r) % _TICK
        kind, i = key // _KIND, key % _KIND
        if kind % 2 == 0:
            c.growing[r, kind // 2] -= 1
        else:
            c.taken[r, (since[i] + 1 - prompt[i]) % page] -= pages[kind // 2, 0]


@compiled
def finished(
    c: Cruise, r: int, pages: np.ndarray, page: int, windows: np.ndarray, prompt: np.ndarray, since: np.ndarray
) -> int:
    """The next request whose last token this step gives, no longer carried along; ABSENT: no more."""
    if c.heaped[r] == 0 or c.heap[r, 0] >= (c.tick[r] + 1) * _TICK:
        return ABSENT
    i = _pop(c, r) % _KIND
    context = prompt[i] + c.tick[r] - since[i]
    c.among[r] -= 1
    for s in range(pages.shape[0]):
        c.looked[r, s] -= min(float(context), windows[s])
        if context < windows[s]:
            c.growing[r, s] -= 1
        if context < (pages[s, 1] - 1) * page + 2:
            c.taken[r, (since[i] + 1 - prompt[i]) % page] -= pages[s, 0]
    return i


@compiled
def advance(c: Cruise, r: int) -> None:
    """The step is over."""
    c.tick[r] += 1
    for s in range(c.looked.shape[1]):
        c.looked[r, s] += c.growing[r, s]


@compiled
def steady(c: Cruise, r: int) -> bool:
    """Nothing changes with the step to come."""
    return c.heaped[r] > 0 and c.heap[r, 0] >= (c.tick[r] + 1) * _TICK


@compiled
def gather(c: Cruise, r: int) -> None:
    """Begin anew, with no request."""
    c.among[r] = c.heaped[r] = 0
    c.began[r] = c.tick[r]
    c.partial[r] = ABSENT
    c.looked[r, :] = 0.0
    c.growing[r, :] = 0
    c.taken[r, :] = 0.0


@compiled
def dissolve(c: Cruise, r: int) -> None:
    """No request is carried along."""
    c.among[r] = ABSENT
    c.rest[r] = REST if c.tick[r] - c.began[r] < SHORT else 0

"""The loop over events: requests arrive and are handed to a replica; replicas finish steps and schedule the next.

Where scheduling is asynchronous, a replica schedules one step while another runs: what arrives meanwhile waits for
the step after that, as in vLLM, whose records show it.
"""

import numpy as np

from simulators.serving.compiled import allocating, compiled
from simulators.serving.pages import release
from simulators.serving.scheduling import ROW, leave, push, schedule
from simulators.serving.state import Limits, Replicas, Requests, Step

_COLUMNS = len(ROW)


@allocating
def serve(
    lim: Limits, q: Requests, reps: Replicas, step: Step, scalars: np.ndarray, spans: np.ndarray, experts: np.ndarray,
    seed: int, record: bool, gaps: np.ndarray, gap_at: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Serve all requests. (record of steps, gaps that were not between successive steps, seconds by part).

    Where `record` is false the record stays empty, and only sums are kept.
    """
    np.random.seed(seed)
    n, replicas = len(q.prompt), len(reps.ready)
    rows = np.zeros((1024 if record else 1, _COLUMNS))
    late, lates = np.zeros(max(1024, 2 * lim.seats)), np.zeros(1, dtype=np.int64)
    parts = np.zeros(4)
    model = (scalars, spans, experts)
    steps = arrived = 0
    while True:
        r = int(np.argmin(reps.ready))
        now = reps.ready[r]
        if arrived < n and q.arrival[arrived] <= now and np.isfinite(q.arrival[arrived]):
            _route(lim, q, reps, arrived, q.arrival[arrived], replicas)
            arrived += 1
            continue
        if not np.isfinite(now):
            break
        while reps.flying[r] > 0 and reps.ends[r, 0] <= now:
            done = _land(lim, q, reps, r)
            for _ in range(done if lim.concurrency > 0 else 0):
                if arrived < n:
                    q.arrival[arrived] = now
                    _route(lim, q, reps, arrived, now, replicas)
                    arrived += 1
        if reps.flying[r] < lim.depth:
            if record and steps == rows.shape[0]:
                grown = np.zeros((2 * steps, _COLUMNS))
                grown[:steps] = rows
                rows = grown
            if lates[0] + lim.seats > late.size:
                late = np.concatenate((late, np.zeros(late.size)))
            row = rows[steps if record else 0]
            if schedule(lim, q, reps, r, step, model, now, row, late, lates, gaps, gap_at):
                steps += 1
                parts += row[14:18]
                reps.ready[r] = now if reps.flying[r] < lim.depth else reps.ends[r, 0]
                continue
        reps.ready[r] = reps.ends[r, 0] if reps.flying[r] > 0 else np.inf
    return rows[: steps if record else 0], late[: lates[0]], parts


@compiled
def _route(lim: Limits, q: Requests, reps: Replicas, i: int, now: float, replicas: int) -> None:
    """To the next replica in turn, or to the one with the fewest requests (where several have as few: of these, the one
    whose turn it is, else the first)."""
    r = i % replicas
    if lim.least_loaded:
        for k in range(replicas):
            if reps.running[k] + reps.waiting[k] < reps.running[r] + reps.waiting[r]:
                r = k
    push(q, reps, r, i, False)
    if not np.isfinite(reps.ready[r]):
        reps.ready[r] = now


@compiled
def _land(lim: Limits, q: Requests, reps: Replicas, r: int) -> int:
    """The oldest step in flight is over: its finished requests leave. How many they were."""
    done = reps.finishes[r, 0]
    for k in range(done):
        i = reps.finishing[r, 0, k]
        release(lim, q, reps, r, i)
        at = 0
        while reps.run[r, at] != i:
            at += 1
        leave(q, reps, r, at)
    reps.flying[r] -= 1
    if reps.flying[r] > 0:
        reps.ends[r, 0] = reps.ends[r, 1]
        reps.finishes[r, 0] = reps.finishes[r, 1]
        for k in range(reps.finishes[r, 0]):
            reps.finishing[r, 0, k] = reps.finishing[r, 1, k]
    return done

"""The loop over events: requests arrive and are handed to a replica; replicas finish steps and schedule the next.

Where scheduling is asynchronous, a replica schedules one step while another runs: what arrives meanwhile waits for
the step after that, as in vLLM, whose records show it.
"""

import numpy as np

from simulators.serving.chance import Chance, chance
from simulators.serving.coasting import coast
from simulators.serving.compiled import compiled
from simulators.serving.pages import release
from simulators.serving.scheduling import ROW, leave, push, schedule
from simulators.serving.state import Limits, Replicas, Requests, Step
from simulators.serving.step import StepModel

_COLUMNS = len(ROW)
FIRST_PART = ROW.index("compute_s")
LATES, STEPS, ARRIVED = range(3)  # what is counted; `schedule` knows the place of the first


def serve(
    lim: Limits,
    q: Requests,
    reps: Replicas,
    step: Step,
    scalars: np.ndarray,
    spans: np.ndarray,
    experts: np.ndarray,
    seed: int,
    record: bool,
    gaps: np.ndarray,
    gap_at: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Serve all requests. (record of steps, gaps that were not between successive steps, seconds by part).

    Where `record` is false the record stays empty, and only sums are kept.
    """
    rows = np.zeros((1024 if record else 1, _COLUMNS))
    late, counts = np.zeros(max(1024, 2 * lim.seats)), np.zeros(3, dtype=np.int64)
    parts, drawn, model = np.zeros(4), chance(seed), (scalars, spans, experts)
    while _serve(lim, q, reps, step, model, record, rows, late, counts, parts, gaps, gap_at, drawn):
        if record and counts[STEPS] == rows.shape[0]:
            rows = np.concatenate((rows, np.zeros(rows.shape)))
        if counts[LATES] + lim.seats > late.size:
            late = np.concatenate((late, np.zeros(late.size)))
    return rows[: counts[STEPS] if record else 0], late[: counts[LATES]], parts


@compiled
def _serve(
    lim: Limits,
    q: Requests,
    reps: Replicas,
    step: Step,
    model: StepModel,
    record: bool,
    rows: np.ndarray,
    late: np.ndarray,
    counts: np.ndarray,
    parts: np.ndarray,
    gaps: np.ndarray,
    gap_at: np.ndarray,
    drawn: Chance,
) -> bool:
    """Go on until all are served (False), or `rows` or `late` are full (True)."""
    n, replicas, arrived = len(q.prompt), len(reps.ready), counts[ARRIVED]
    while True:
        r = 0
        for k in range(1, replicas):
            if reps.ready[k] < reps.ready[r]:
                r = k
        now = reps.ready[r]
        if arrived < n and q.arrival[arrived] <= now and np.isfinite(q.arrival[arrived]):
            _route(lim, q, reps, arrived, q.arrival[arrived], replicas)
            arrived += 1
            continue
        if not np.isfinite(now):
            return False
        while reps.flying[r] > 0 and reps.ends[r, 0] <= now:
            done = _land(lim, q, reps, r)
            for _ in range(done if lim.concurrency > 0 else 0):
                if arrived < n:
                    q.arrival[arrived] = now
                    _route(lim, q, reps, arrived, now, replicas)
                    arrived += 1
        if reps.flying[r] < lim.depth:
            counts[ARRIVED] = arrived
            if record and counts[STEPS] == rows.shape[0] or counts[LATES] + lim.seats > late.size:
                return True
            if not record:
                until = q.arrival[arrived] if arrived < n else np.inf
                for k in range(replicas if lim.concurrency > 0 and arrived < n else 0):
                    if k != r:  # the next comes when one is done there, and may come here
                        until = min(until, reps.ready[k])
                now, coasted = coast(lim, reps, r, step, model, now, until, parts)
                counts[STEPS] += coasted
                if coasted > 0:
                    reps.ready[r] = now
                    continue
            row = rows[counts[STEPS] if record else 0]
            if schedule(lim, q, reps, r, step, model, now, row, late, counts, gaps, gap_at, drawn):
                counts[STEPS] += 1
                for k in range(parts.size):
                    parts[k] += row[FIRST_PART + k]
                reps.ready[r] = now if reps.flying[r] < lim.depth else reps.ends[r, 0]
                continue
        reps.ready[r] = reps.ends[r, 0] if reps.flying[r] > 0 else np.inf


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

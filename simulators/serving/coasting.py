"""Steps in which nothing is scheduled: requests that only generate go on together while nobody else can begin."""

import numpy as np

from simulators.serving import cruise
from simulators.serving.compiled import compiled
from simulators.serving.state import ABSENT, Limits, Replicas, Step
from simulators.serving.step import step_seconds


@compiled
def coast(
    lim: Limits,
    reps: Replicas,
    r: int,
    step: Step,
    model: tuple[np.ndarray, np.ndarray, np.ndarray],
    now: float,
    until: float,
    parts: np.ndarray,
) -> tuple[float, int]:
    """Steps of replica `r` in which the requests that are carried along generate and nothing else happens, one after
    the other while they begin before `until`: (when it can next be looked at, steps). Their seconds go to `parts`."""
    scalars, spans, experts = model
    c, n, steps = reps.cruise, reps.cruise.among[r], 0
    if n < 1 or c.partial[r] != ABSENT or (reps.head[r] != ABSENT and reps.running[r] < lim.seats):
        return now, 0
    if reps.flying[r] != lim.depth - 1 or (lim.depth == 2 and reps.finishes[r, 0] > 0):
        return now, 0
    while now < until and cruise.steady(c, r):
        need = c.taken[r, c.tick[r] % lim.page]
        if reps.used_bytes[r] + reps.idle_bytes[r] + need > lim.capacity_bytes + 0.5:
            break
        reps.used_bytes[r] += need
        for s in range(spans.shape[0]):
            step.looked[s], step.pairs[s], step.read[s] = c.looked[r, s], 0.0, 0.0
        end = max(now, reps.before[r]) + step_seconds(
            scalars,
            spans,
            experts,
            0.0,
            float(n),
            float(n),
            float(n),
            float(n),
            step.looked,
            step.pairs,
            step.read,
            1.0,
            step.parts,
        )
        now = reps.before[r] if lim.depth == 2 else end
        reps.before[r] = end
        cruise.advance(c, r)
        steps += 1
        for k in range(step.parts.shape[0]):
            parts[k] += step.parts[k]
    if lim.depth == 2:
        reps.ends[r, 0] = reps.before[r]
    return now, steps

"""One step is put together as vLLM's scheduler (v1) does it: what runs goes on first, then what waits, in order.

1. Running requests, oldest first: the next token (and draft tokens) of each, or the next chunk of its prompt, while
   tokens of the step's budget are left. Where pages run out, the latest arrival is put back to the head of the queue
   and its cache is dropped: it will be computed anew, generated tokens included.
2. Waiting requests, first come first served, while budget, seats and pages are left; none in a step that preempted.
   What the prefix cache holds of a prompt is not computed. The first that does not fit stops the others.
"""

import numpy as np

from simulators.serving.compiled import compiled
from simulators.serving.pages import find_prefix, release, share_blocks, take
from simulators.serving.state import ABSENT, Limits, Replicas, Requests, Step
from simulators.serving.step import SPAN_WINDOW, StepModel, positions, step_seconds

# Columns of a row of the record of steps.
ROW = (
    "replica", "start_s", "dur_s", "prefill_requests", "prefill_tokens", "recomputed_tokens", "decode_requests",
    "decode_tokens", "drafted_tokens", "accepted_tokens", "kv_usage", "running", "waiting", "preempted", "compute_s",
    "memory_s", "communication_s", "overhead_s", "gap_s", "gaps",
)  # fmt: skip


@compiled
def push(q: Requests, reps: Replicas, r: int, i: int, front: bool) -> None:
    """Into the waiting queue."""
    q.replica[i] = r
    if reps.head[r] == ABSENT:
        reps.head[r] = reps.tail[r] = i
        q.link[i] = ABSENT
    elif front:
        q.link[i] = reps.head[r]
        reps.head[r] = i
    else:
        q.link[i] = ABSENT
        q.link[reps.tail[r]] = i
        reps.tail[r] = i
    reps.waiting[r] += 1


@compiled
def leave(q: Requests, reps: Replicas, r: int, at: int) -> None:
    """Out of the list of running requests, whose order stays."""
    for k in range(at, reps.running[r] - 1):
        reps.run[r, k] = reps.run[r, k + 1]
    reps.running[r] -= 1


@compiled
def _preempt_latest(lim: Limits, q: Requests, reps: Replicas, r: int, at: int) -> int:
    """Put back the latest request from position `at` on that is not done; its position, ABSENT where there is none."""
    for k in range(reps.running[r] - 1, at - 1, -1):
        i = reps.run[r, k]
        if q.generated[i] < q.output[i]:
            release(lim, q, reps, r, i)
            q.before[i] = max(q.before[i], q.computed[i])
            q.computed[i] = 0
            q.preemptions[i] += 1
            leave(q, reps, r, k)
            push(q, reps, r, i, True)
            return k
    return ABSENT


@compiled
def _choose_running(lim: Limits, q: Requests, reps: Replicas, r: int, step: Step) -> tuple[int, int, int]:
    """(requests chosen, budget left, requests put back)."""
    chosen, left, preempted, k = 0, lim.budget, 0, 0
    prompt, output, generated, computed, cover = q.prompt, q.output, q.generated, q.computed, q.cover
    who, taken, run, running = step.who, step.tokens, reps.run[r], reps.running
    while k < running[r] and left > 0:
        i = run[k]
        if generated[i] >= output[i]:  # its last token is on the way
            k += 1
            continue
        new = prompt[i] + generated[i] - computed[i]
        if new == 1 and generated[i] > 0:
            new = 1 + min(lim.draft, output[i] - generated[i] - 1)
        tokens = min(new, left)
        fits = computed[i] + tokens <= cover[i] or take(lim, q, reps, r, i, computed[i] + tokens)
        while not fits:
            gone = _preempt_latest(lim, q, reps, r, k)
            preempted += 1
            if gone in (k, ABSENT):
                break
            fits = take(lim, q, reps, r, i, computed[i] + tokens)
        if not fits:
            break
        who[chosen], taken[chosen] = i, tokens
        chosen += 1
        left -= tokens
        k += 1
    return chosen, left, preempted


@compiled
def _choose_waiting(
    lim: Limits, q: Requests, reps: Replicas, r: int, step: Step, chosen: int, left: int, now: float
) -> int:
    """Requests chosen, with those of before."""
    while reps.head[r] != ABSENT and left > 0 and reps.running[r] < lim.seats:
        i = reps.head[r]
        found = find_prefix(lim, q, reps, r, i)
        new = q.prompt[i] + q.generated[i] - found
        tokens = min(new, left)
        if (tokens < new and not lim.chunked) or not take(lim, q, reps, r, i, found + tokens):
            release(lim, q, reps, r, i)
            break
        reps.head[r] = q.link[i]
        if reps.head[r] == ABSENT:
            reps.tail[r] = ABSENT
        reps.waiting[r] -= 1
        reps.run[r, reps.running[r]] = i
        reps.running[r] += 1
        q.computed[i] = found
        if np.isnan(q.scheduled[i]):
            q.scheduled[i] = now
            q.hits[i] = found
        step.who[chosen], step.tokens[chosen] = i, tokens
        chosen += 1
        left -= tokens
    return chosen


@compiled
def schedule(
    lim: Limits, q: Requests, reps: Replicas, r: int, step: Step, model: StepModel, now: float, row: np.ndarray,
    late: np.ndarray, lates: np.ndarray, gaps: np.ndarray, gap_at: np.ndarray,
) -> bool:  # fmt: skip
    """Put together the next step of replica `r` at `now`, and let it happen. False: there is nothing to do.

    `row` receives its record; `late`, from position `lates[0]` (which moves on), the gaps of tokens whose last one was
    not in the step before; `gaps`, unless empty, every gap, those of request i from position `gap_at[i]` on.
    """
    scalars, spans, experts = model
    prompt, generated, computed, first, last = q.prompt, q.generated, q.computed, q.first, q.last
    who, taken, looked, pairs, read = step.who, step.tokens, step.looked, step.pairs, step.read
    before = reps.before[r]
    chosen, left, preempted = _choose_running(lim, q, reps, r, step)
    if preempted == 0:
        chosen = _choose_waiting(lim, q, reps, r, step, chosen, left, now)
    if chosen == 0:
        return False
    looked[:] = 0.0
    pairs[:] = 0.0
    read[:] = 0.0
    prefills = prompt_tokens = again = decodes = decode_tokens = drafted = outputs = 0
    for c in range(chosen):
        i, tokens = who[c], taken[c]
        done = computed[i]
        known = prompt[i] + generated[i]
        if generated[i] > 0 and known - done == 1:
            decodes += 1
            decode_tokens += tokens
            drafted += tokens - 1
            outputs += tokens
            for s in range(spans.shape[0]):
                looked[s] += min(float(done + tokens), spans[s, SPAN_WINDOW])
            continue
        prefills += 1
        prompt_tokens += tokens
        again += max(min(q.before[i], done + tokens) - done, 0)
        if done + tokens == known:
            outputs += 1
        for s in range(spans.shape[0]):
            window = spans[s, SPAN_WINDOW]
            pairs[s] += positions(float(done + tokens), window) - positions(float(done), window)
            read[s] += min(float(done + tokens), window + tokens)
    verified = decode_tokens / decodes if decodes > 0 else 1.0
    seconds = step_seconds(
        scalars, spans, experts, float(prompt_tokens), float(decode_tokens), float(chosen), float(decodes),
        float(outputs), looked, pairs, read, verified, step.parts,
    )  # fmt: skip
    start = max(now, before)
    end = start + seconds
    slot = reps.flying[r]
    reps.finishes[r, slot] = 0
    usage = reps.used_bytes[r] / lim.capacity_bytes
    kept = accepted = regular = 0
    for c in range(chosen):
        i, tokens = who[c], taken[c]
        known = prompt[i] + generated[i]
        got = 0
        if generated[i] > 0 and known - computed[i] == 1:
            got = 1
            while got < tokens and np.random.random() < lim.acceptance:
                got += 1
            q.drafted[i] += tokens - 1
            q.accepted[i] += got - 1
            accepted += got - 1
            kept += got
            computed[i] += got
        else:
            computed[i] += tokens
            share_blocks(lim, q, reps, r, i)
            if computed[i] == known:
                got = 1
        if got == 0:
            continue
        if generated[i] <= lim.silent:
            first[i] = end
        if generated[i] > 0:
            gap = end - last[i]
            if last[i] == before:
                regular += 1
            else:
                late[lates[0]] = gap
                lates[0] += 1
            if gaps.size > 0:
                gaps[gap_at[i]] = gap
                gap_at[i] += 1
        last[i] = end
        generated[i] += got
        if generated[i] >= q.output[i]:
            reps.finishing[r, slot, reps.finishes[r, slot]] = i
            reps.finishes[r, slot] += 1
    row[0], row[1], row[2], row[3], row[4], row[5] = r, start, seconds, prefills, prompt_tokens, again
    row[6], row[7], row[8], row[9], row[10] = decodes, kept, drafted, accepted, usage
    row[11], row[12], row[13] = reps.running[r], reps.waiting[r], preempted
    for k in range(step.parts.shape[0]):
        row[14 + k] = step.parts[k]
    row[18], row[19] = end - before, regular
    reps.before[r] = end
    reps.ends[r, slot] = end
    reps.flying[r] += 1
    return True

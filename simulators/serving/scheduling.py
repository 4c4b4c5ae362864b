"""One step is put together as vLLM's scheduler (v1) does it: what runs goes on first, then what waits, in order.

1. Running requests, oldest first: the next token (and draft tokens) of each, or the next chunk of its prompt, while
   tokens of the step's budget are left. Where pages run out, the latest arrival is put back to the head of the queue
   and its cache is dropped: it will be computed anew, generated tokens included.
2. Waiting requests, first come first served, while budget, seats and pages are left; none in a step that preempted.
   What the prefix cache holds of a prompt is not computed. The first that does not fit stops the others.

Requests that only generate are carried along together while pages last (`cruise.py`): then 1 sees to the others only.
"""

import numpy as np

from simulators.serving import cruise
from simulators.serving.chance import Chance, draw
from simulators.serving.compiled import compiled
from simulators.serving.pages import find_prefix, memory_bytes, release, share_blocks, take
from simulators.serving.state import ABSENT, Limits, Replicas, Requests, Step
from simulators.serving.step import SPAN_WINDOW, positions, step_seconds

# Columns of a row of the record of steps.
ROW = (
    "replica",
    "start_s",
    "dur_s",
    "prefill_requests",
    "prefill_tokens",
    "recomputed_tokens",
    "decode_requests",
    "decode_tokens",
    "drafted_tokens",
    "accepted_tokens",
    "kv_usage",
    "running",
    "waiting",
    "preempted",
    "compute_s",
    "memory_s",
    "communication_s",
    "overhead_s",
    "gap_s",
    "gaps",
)


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
        i: int = run[k]
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
        share_blocks(lim, q, reps, r, i, computed[i] + tokens)
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
        share_blocks(lim, q, reps, r, i, found + tokens)
        if np.isnan(q.scheduled[i]):
            q.scheduled[i] = now
            q.hits[i] = found
        step.who[chosen], step.tokens[chosen] = i, tokens
        chosen += 1
        left -= tokens
    return chosen


@compiled
def _disband(lim: Limits, q: Requests, reps: Replicas, r: int) -> None:
    """What is kept by request of those that are carried along is brought up to date: the scheduler sees to each."""
    for k in range(reps.running[r]):
        i = reps.run[r, k]
        if q.generated[i] < q.output[i] and i != reps.cruise.partial[r]:
            _update(lim, q, i, reps.cruise.tick[r] - q.since[i], reps.before[r])
    cruise.dissolve(reps.cruise, r)


@compiled
def _update(lim: Limits, q: Requests, i: int, generated: int, last: float) -> None:
    """A request that generated so many tokens, the last one then."""
    q.generated[i] = generated
    q.computed[i] = q.prompt[i] + generated - 1
    q.cover[i] = (q.computed[i] + lim.page - 1) // lim.page * lim.page
    q.own_bytes[i] = max(memory_bytes(lim.pages, lim.page, q.computed[i]) - q.shared_bytes[i], 0.0)
    q.last[i] = last


@compiled
def _alike(lim: Limits) -> bool:
    """Whether all that a request does once it generates is one token a step: no drafts, no hashed blocks of answers,
    no token before the first that a client sees, whose times are kept."""
    return lim.draft == 0 and lim.block_tokens == 0 and lim.silent == 0


@compiled
def _gather(lim: Limits, q: Requests, reps: Replicas, r: int, windows: np.ndarray) -> None:
    """From the next step on, those that only generate are carried along, if no more than one, the last, does not."""
    c, latest = reps.cruise, ABSENT
    cruise.gather(c, r)
    for k in range(reps.running[r]):
        i = reps.run[r, k]
        if q.generated[i] >= q.output[i]:
            continue
        if latest != ABSENT:
            c.among[r] = ABSENT
            return
        if q.generated[i] > 0 and q.computed[i] == q.prompt[i] + q.generated[i] - 1:
            cruise.join(c, r, i, lim.pages, lim.page, windows, q.prompt[i], q.generated[i], q.output[i], q.since)
        else:
            latest = i
    c.partial[r] = latest


@compiled
def _choose_partial(lim: Limits, q: Requests, reps: Replicas, r: int, step: Step) -> tuple[int, int]:
    """(requests chosen beside those that are carried along, budget left); (ABSENT, 0): pages run out."""
    c, left = reps.cruise, lim.budget - reps.cruise.among[r]
    need, i = c.taken[r, c.tick[r] % lim.page], c.partial[r]
    if reps.used_bytes[r] + reps.idle_bytes[r] + need > lim.capacity_bytes + 0.5:
        return ABSENT, 0
    reps.used_bytes[r] += need
    if i == ABSENT or left == 0:
        return 0, left
    tokens = min(q.prompt[i] + q.generated[i] - q.computed[i], left)
    if not take(lim, q, reps, r, i, q.computed[i] + tokens):
        reps.used_bytes[r] -= need
        return ABSENT, 0
    step.who[0], step.tokens[0] = i, tokens
    return 1, left - tokens


@compiled
def schedule(
    lim: Limits,
    q: Requests,
    reps: Replicas,
    r: int,
    step: Step,
    model: tuple[np.ndarray, np.ndarray, np.ndarray],
    now: float,
    row: np.ndarray,
    late: np.ndarray,
    lates: np.ndarray,
    gaps: np.ndarray,
    gap_at: np.ndarray,
    drawn: Chance,
) -> bool:
    """Put together the next step of replica `r` at `now`, and let it happen. False: there is nothing to do.

    `row` receives its record; `late`, from position `lates[0]` (which moves on), the gaps of tokens whose last one was
    not in the step before; `gaps`, unless empty, every gap, those of request i from position `gap_at[i]` on.
    """
    scalars, spans, experts = model
    prompt, generated, computed, first, last = q.prompt, q.generated, q.computed, q.first, q.last
    who, taken, looked, pairs, read = step.who, step.tokens, step.looked, step.pairs, step.read
    before, c, windows = reps.before[r], reps.cruise, spans[:, SPAN_WINDOW]
    chosen = left = preempted = alike = 0
    if c.among[r] != ABSENT:
        cruise.change(c, r, lim.pages, lim.page, prompt, q.since)
        chosen, left = _choose_partial(lim, q, reps, r, step)
        if chosen == ABSENT:
            _disband(lim, q, reps, r)
    together = c.among[r] != ABSENT
    if together:
        alike = c.among[r]
        for s in range(looked.size):
            looked[s] = c.looked[r, s]
    else:
        chosen, left, preempted = _choose_running(lim, q, reps, r, step)
        looked[:] = 0.0
    if preempted == 0:
        chosen = _choose_waiting(lim, q, reps, r, step, chosen, left, now)
    if chosen + alike == 0:
        return False
    pairs[:] = 0.0
    read[:] = 0.0
    prefills = prompt_tokens = again = drafted = 0
    decodes = decode_tokens = outputs = alike
    for at in range(chosen):
        i, tokens = who[at], taken[at]
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
        scalars,
        spans,
        experts,
        float(prompt_tokens),
        float(decode_tokens),
        float(chosen + alike),
        float(decodes),
        float(outputs),
        looked,
        pairs,
        read,
        verified,
        step.parts,
    )
    start = max(now, before)
    end = start + seconds
    slot = reps.flying[r]
    reps.finishes[r, slot] = 0
    usage = reps.used_bytes[r] / lim.capacity_bytes
    kept, accepted, regular = alike, 0, alike
    if together:
        gone = cruise.finished(c, r, lim.pages, lim.page, windows, prompt, q.since)
        while gone != ABSENT:
            _update(lim, q, gone, q.output[gone], end)
            reps.finishing[r, slot, reps.finishes[r, slot]] = gone
            reps.finishes[r, slot] += 1
            gone = cruise.finished(c, r, lim.pages, lim.page, windows, prompt, q.since)
        c.partial[r] = ABSENT
        cruise.advance(c, r)
    for at in range(chosen):
        i, tokens = who[at], taken[at]
        known = prompt[i] + generated[i]
        got = 0
        if generated[i] > 0 and known - computed[i] == 1:
            got = 1
            while got < tokens and draw(drawn) < lim.acceptance:
                got += 1
            q.drafted[i] += tokens - 1
            q.accepted[i] += got - 1
            accepted += got - 1
            kept += got
            computed[i] += got
        else:
            computed[i] += tokens
            if computed[i] == known:
                got = 1
        if got == 0:
            c.partial[r] = i
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
        elif together:
            cruise.join(c, r, i, lim.pages, lim.page, windows, prompt[i], generated[i], q.output[i], q.since)
    if not together:
        c.tick[r] += 1
        if c.rest[r] > 0 or preempted > 0:
            c.rest[r] = max(c.rest[r] - 1, 0)
        elif _alike(lim) and gaps.size == 0 and spans.shape[0] <= cruise.MOST_SPANS:
            _gather(lim, q, reps, r, windows)
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

"""Pages of the key-value cache, and the prefix cache over them: who holds what, and what is evicted when it gets tight.

A sequence holds whole pages. Layers that look back W tokens keep ceil(W / page) + 1 pages of it at most. Where the
blocks of prompts are known, a full block belongs to the prefix cache as soon as it is scheduled: later prompts that
begin with the same blocks share it, and once nobody uses it, it stays until room is needed, the one unused longest
(of one request: the last of its prompt) going first.
"""

import numpy as np

from simulators.serving.compiled import compiled
from simulators.serving.state import ABSENT, Limits, Replicas, Requests


@compiled
def memory_bytes(pages: np.ndarray, page: int, tokens: int) -> float:
    """Pages of one sequence of `tokens`, in bytes on one chip."""
    whole, total = (tokens + page - 1) // page, 0.0
    for s in range(pages.shape[0]):
        total += min(whole, pages[s, 1]) * pages[s, 0]
    return total


@compiled
def take(lim: Limits, q: Requests, reps: Replicas, r: int, i: int, tokens: int) -> bool:
    """Give request `i` pages for `tokens` tokens, evicting unused blocks. False: there is no room; nothing changed
    but the evictions."""
    if tokens <= q.cover[i]:
        return True
    need = max(memory_bytes(lim.pages, lim.page, tokens) - q.shared_bytes[i] - q.own_bytes[i], 0.0)
    while reps.used_bytes[r] + reps.idle_bytes[r] + need > lim.capacity_bytes + 0.5 and reps.oldest[r] != ABSENT:
        block = reps.oldest[r]
        _unlink(reps, r, block)
        reps.refs[r, block] = ABSENT
        reps.idle_bytes[r] -= lim.block_bytes
    if reps.used_bytes[r] + reps.idle_bytes[r] + need > lim.capacity_bytes + 0.5:
        return False
    q.own_bytes[i] += need
    reps.used_bytes[r] += need
    q.cover[i] = (tokens + lim.page - 1) // lim.page * lim.page
    return True


@compiled
def find_prefix(lim: Limits, q: Requests, reps: Replicas, r: int, i: int) -> int:
    """Hold the blocks at the start of the prompt of `i` that are cached; the tokens found.

    At least one token is left to compute. Where the traffic states what was found, that counts.
    """
    known = q.prompt[i] + q.generated[i]
    if lim.block_tokens == 0:
        if lim.own_cache:  # it came with the request, and is lost where that is put back
            return min(q.given[i], q.prompt[i] - 1) if q.preemptions[i] == 0 else 0
        found = min(q.given[i], q.prompt[i] - 1)
        q.shared_bytes[i] = memory_bytes(lim.pages, lim.page, found) if found > 0 else 0.0
        return found
    most = min((known - 1) // lim.block_tokens, q.hash_start[i + 1] - q.hash_start[i])
    found = 0
    while found < most:
        at = q.hash_start[i] + found
        block = q.hash_ids[at]
        if reps.refs[r, block] == ABSENT:
            break
        if reps.refs[r, block] == 0:
            _unlink(reps, r, block)
            reps.idle_bytes[r] -= lim.block_bytes
            reps.used_bytes[r] += lim.block_bytes
        reps.refs[r, block] += 1
        q.held[at] = 1
        found += 1
    q.hashed[i] = found
    q.shared_bytes[i] = found * lim.block_bytes
    return found * lim.block_tokens


@compiled
def share_blocks(lim: Limits, q: Requests, reps: Replicas, r: int, i: int, computed: int) -> None:
    """Hand the full blocks of the prompt of `i`, of which `computed` tokens are scheduled by now, to the prefix cache:
    the next request of the same step finds them, since a layer writes its keys before any request looks at them."""
    if lim.block_tokens == 0:
        return
    most = min(min(computed, q.prompt[i]) // lim.block_tokens, q.hash_start[i + 1] - q.hash_start[i])
    for k in range(q.hashed[i], most):
        at = q.hash_start[i] + k
        block = q.hash_ids[at]
        if reps.refs[r, block] == ABSENT:
            reps.refs[r, block] = 1
            q.held[at] = 1
            q.own_bytes[i] -= lim.block_bytes
            q.shared_bytes[i] += lim.block_bytes
        q.hashed[i] = k + 1


@compiled
def release(lim: Limits, q: Requests, reps: Replicas, r: int, i: int) -> None:
    """Take back all that request `i` holds; its shared blocks stay to be found, the last of its prompt oldest."""
    reps.used_bytes[r] -= q.own_bytes[i]
    q.own_bytes[i] = 0.0
    q.shared_bytes[i] = 0.0
    q.cover[i] = 0
    if lim.block_tokens == 0:
        return
    for at in range(q.hash_start[i] + q.hashed[i] - 1, q.hash_start[i] - 1, -1):
        if q.held[at] == 1:
            q.held[at] = 0
            block = q.hash_ids[at]
            reps.refs[r, block] -= 1
            if reps.refs[r, block] == 0:
                _append(reps, r, block)
                reps.used_bytes[r] -= lim.block_bytes
                reps.idle_bytes[r] += lim.block_bytes
    q.hashed[i] = 0


@compiled
def _unlink(reps: Replicas, r: int, block: int) -> None:
    older, newer = reps.older[r, block], reps.newer[r, block]
    if older == ABSENT:
        reps.oldest[r] = newer
    else:
        reps.newer[r, older] = newer
    if newer == ABSENT:
        reps.newest[r] = older
    else:
        reps.older[r, newer] = older


@compiled
def _append(reps: Replicas, r: int, block: int) -> None:
    last = reps.newest[r]
    reps.older[r, block] = last
    reps.newer[r, block] = ABSENT
    if last == ABSENT:
        reps.oldest[r] = block
    else:
        reps.newer[r, last] = block
    reps.newest[r] = block

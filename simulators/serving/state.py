"""What the engine's loop works on: arrays by request, by replica and by block, in named tuples that Numba compiles."""

from typing import NamedTuple

import numpy as np

from simulators.serving.cruise import Cruise, fresh_cruise

ABSENT = -1  # of a block that a replica's prefix cache does not hold; of the end of a queue


class Limits(NamedTuple):
    """What does not change. `pages`: by kind of layer (bytes of one page on one chip, most pages of a sequence)."""

    seats: int
    budget: int
    page: int
    capacity_bytes: float
    chunked: bool
    depth: int  # steps that may be scheduled and not finished: 2 where scheduling is asynchronous
    draft: int
    acceptance: float
    silent: int  # tokens of an answer that come before the first that a client sees
    least_loaded: bool
    concurrency: int  # 0: requests come when they come
    own_cache: bool  # stated cache hits take room of their own, once
    block_tokens: int  # 0: blocks of prompts are not known
    block_bytes: float
    pages: np.ndarray


class Requests(NamedTuple):
    """One entry a request. Times in seconds. `known` tokens = prompt + generated; `computed` of them are in the cache.

    `cover`: tokens that the pages it holds can take; `own_bytes`: pages charged to it alone; `shared_bytes`: what it
    uses of the prefix cache; `held`: of each block of its prompt, whether it keeps it from being evicted.
    """

    arrival: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    given: np.ndarray  # prompt tokens found in the cache, where the traffic says so
    hash_start: np.ndarray
    hash_ids: np.ndarray
    held: np.ndarray
    hashed: np.ndarray
    generated: np.ndarray
    computed: np.ndarray
    before: np.ndarray  # tokens that were computed before a preemption
    cover: np.ndarray
    own_bytes: np.ndarray
    shared_bytes: np.ndarray
    link: np.ndarray  # the next in the waiting queue
    replica: np.ndarray
    scheduled: np.ndarray
    first: np.ndarray
    last: np.ndarray
    hits: np.ndarray
    preemptions: np.ndarray
    drafted: np.ndarray
    accepted: np.ndarray
    since: np.ndarray  # step of its replica less its generated tokens, while it is carried along (cruise.py)


class Replicas(NamedTuple):
    """One entry a replica. `used_bytes`: held by requests; `idle_bytes`: blocks that nobody uses but may be found."""

    run: np.ndarray
    running: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    waiting: np.ndarray
    used_bytes: np.ndarray
    idle_bytes: np.ndarray
    ends: np.ndarray  # of the steps in flight
    flying: np.ndarray
    finishing: np.ndarray
    finishes: np.ndarray
    ready: np.ndarray  # when it can next be looked at; infinite: nothing to do
    before: np.ndarray  # end of the step scheduled last
    refs: np.ndarray  # of each block: requests that hold it; ABSENT
    older: np.ndarray
    newer: np.ndarray
    oldest: np.ndarray
    newest: np.ndarray
    cruise: Cruise


class Step(NamedTuple):
    """The step that is being scheduled: who is in it, with how many tokens, and the sums that its time follows from."""

    who: np.ndarray
    tokens: np.ndarray
    looked: np.ndarray
    pairs: np.ndarray
    read: np.ndarray
    parts: np.ndarray


def fresh_requests(
    arrival: np.ndarray,
    prompt: np.ndarray,
    output: np.ndarray,
    given: np.ndarray,
    hash_start: np.ndarray,
    hash_ids: np.ndarray,
) -> Requests:
    n = len(prompt)
    times, counts = [np.full(n, np.nan) for _ in range(3)], [np.zeros(n, dtype=np.int64) for _ in range(10)]
    return Requests(
        arrival=arrival.astype(float),
        prompt=prompt.astype(np.int64),
        output=output.astype(np.int64),
        given=given.astype(np.int64),
        hash_start=hash_start.astype(np.int64),
        hash_ids=hash_ids.astype(np.int64),
        held=np.zeros(len(hash_ids), dtype=np.uint8),
        hashed=counts[0],
        generated=counts[1],
        computed=counts[2],
        before=counts[3],
        cover=counts[4],
        own_bytes=np.zeros(n),
        shared_bytes=np.zeros(n),
        link=np.full(n, ABSENT),
        replica=np.full(n, ABSENT),
        scheduled=times[0],
        first=times[1],
        last=times[2],
        hits=counts[5],
        preemptions=counts[6],
        drafted=counts[7],
        accepted=counts[8],
        since=counts[9],
    )


def fresh_replicas(replicas: int, seats: int, blocks: int, always_bytes: float, kinds: int, page: int) -> Replicas:
    def per(*shape: int, fill: float = 0, kind: type = np.int64) -> np.ndarray:
        return np.full((replicas, *shape), fill, dtype=kind)

    return Replicas(
        run=per(seats),
        running=per(),
        head=per(fill=ABSENT),
        tail=per(fill=ABSENT),
        waiting=per(),
        used_bytes=per(fill=always_bytes, kind=float),
        idle_bytes=per(kind=float),
        ends=per(2, kind=float),
        flying=per(),
        finishing=per(2, seats),
        finishes=per(2),
        ready=per(fill=np.inf, kind=float),
        before=per(fill=-np.inf, kind=float),
        refs=per(blocks, fill=ABSENT, kind=np.int32),
        older=per(blocks, fill=ABSENT, kind=np.int32),
        newer=per(blocks, fill=ABSENT, kind=np.int32),
        oldest=per(fill=ABSENT),
        newest=per(fill=ABSENT),
        cruise=fresh_cruise(replicas, seats, kinds, page),
    )


def fresh_step(seats: int, kinds: int, parts: int) -> Step:
    return Step(
        np.zeros(seats, dtype=np.int64),
        np.zeros(seats, dtype=np.int64),
        np.zeros(kinds),
        np.zeros(kinds),
        np.zeros(kinds),
        np.zeros(parts),
    )

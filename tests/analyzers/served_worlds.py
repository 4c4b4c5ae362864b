"""A small engine in a loop, for tests: requests arrive, wait, have their prompts read in chunks beside generating.

Every time it hands out follows from its own passes, so that what analyzers say of them can be checked against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from runs.tables import MemoryTables

START_NS = 1_770_000_000_000_000_000
BASE_S, PER_PROMPT_TOKEN_S, PER_SEQUENCE_S = 0.010, 60e-6, 150e-6  # of a pass


@dataclass
class World:
    """`requests`, `iterations`: columns of the tables. `truth`: what happened, by name."""

    requests: dict
    iterations: dict
    truth: dict = field(default_factory=dict)

    @property
    def tables(self) -> MemoryTables:
        return MemoryTables({"requests": self.requests, "iterations": self.iterations})

    @property
    def without_passes(self) -> MemoryTables:
        return MemoryTables({"requests": self.requests})


def world(
    n: int = 200,
    rate: float = 8.0,
    seed: int = 0,
    slots: int = 16,
    chunk: int = 512,
    slower: float = 1.0,
    fail_every: int = 0,
    preempt_every: int = 0,
    tenants: tuple[str, ...] = ("batch", "chat"),
    prompts: Sequence[int] = (),
) -> World:
    """Serve `n` requests, with prompts of these lengths in turn where some are given. Passes take `slower` times as
    long. Every `preempt_every`-th pass that only generates puts back the request that came last, for 40 passes."""
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1 / rate, n))
    prompt, output = rng.integers(50, 2000, n), rng.integers(1, 120, n)
    prompt = np.resize(prompts, n) if prompts else prompt
    fails = np.arange(n) % fail_every == fail_every - 1 if fail_every else np.zeros(n, dtype=bool)
    scheduled, times = np.full(n, np.nan), [[] for _ in range(n)]
    unread, preempted = prompt.astype(float).copy(), np.zeros(n, dtype=int)
    waiting, running, away = [], [], {}
    passes, now, nxt, alone = [], 0.0, 0, 0
    while nxt < n or waiting or running or away:
        while nxt < n and arrival[nxt] <= now:
            if not fails[nxt]:
                waiting.append(nxt)
            nxt += 1
        for i in [i for i, until in away.items() if until <= len(passes)]:
            running.append(i)
            del away[i]
        while waiting and len(running) + len(away) < slots:
            scheduled[waiting[0]] = now
            running.append(waiting.pop(0))
        if not running:
            now = arrival[nxt] if nxt < n and not away else now + 0.001
            if away:
                passes.append((now, 0.0005, 0, 0, 0, 0))
            continue
        budget, read, decoding = chunk, 0, [i for i in running if unread[i] == 0]
        for i in [i for i in running if unread[i] > 0]:
            part = min(budget, unread[i])
            unread[i], budget, read = unread[i] - part, budget - part, read + part
        alone += read == 0
        back = 0
        if preempt_every and read == 0 and len(decoding) > 1 and alone % preempt_every == 0:
            victim = decoding.pop()
            running.remove(victim)
            preempted[victim] += 1
            away[victim], back = len(passes) + 40, 1
        length = slower * (BASE_S + PER_PROMPT_TOKEN_S * read + PER_SEQUENCE_S * len(decoding))
        passes.append((now, length, int(read), len(decoding), len(running), back))
        now += length
        for i in [i for i in running if unread[i] == 0]:
            times[i].append(now)
            if len(times[i]) == output[i]:
                running.remove(i)
    return _columns(arrival, scheduled, times, prompt, output, fails, preempted, tenants, np.array(passes))


def _columns(arrival, scheduled, times, prompt, output, fails, preempted, tenants, passes) -> World:
    def ns(seconds):
        return [None if s != s else START_NS + round(s * 1e9) for s in seconds]

    n = len(arrival)
    first = [t[0] if t else float("nan") for t in times]
    last = [t[-1] if t else float("nan") for t in times]
    stamps = [np.array(ns(t), dtype=np.int64) for t in times]
    requests = {
        "id": [f"r{i}" for i in range(n)],
        "tenant": [tenants[i % len(tenants)] for i in range(n)],
        "arrival_ns": ns(arrival),
        "scheduled_ns": ns(scheduled),
        "first_token_ns": ns(first),
        "last_token_ns": ns(last),
        "prompt_tokens": prompt.tolist(),
        "output_tokens": [None if f else int(o) for f, o in zip(fails, output, strict=True)],
        "gaps_ns": [None if f else np.diff(s).tolist() for f, s in zip(fails, stamps, strict=True)],
        "preemptions": preempted.tolist(),
        "status": ["failed" if f else "completed" for f in fails],
        "error": [
            f"Traceback (most recent call last):\nTimeoutError: after {i} s" if f else None for i, f in enumerate(fails)
        ],
    }
    start, length, read, decoding, running, back = passes.T
    iterations = {
        "order": list(range(len(passes))),
        "start_ns": ns(start),
        "dur_ns": [round(x * 1e9) for x in length],
        "prefill_tokens": read.astype(int).tolist(),
        "decode_requests": decoding.astype(int).tolist(),
        "decode_tokens": decoding.astype(int).tolist(),
        "running": running.astype(int).tolist(),
        "preempted": back.astype(int).tolist(),
    }
    truth = {
        "arrival": arrival,
        "scheduled": scheduled,
        "times": times,
        "fails": fails,
        "prompt": prompt,
        "output": output,
        "preempted": preempted,
        "passes": passes,
    }
    return World(requests, iterations, truth)

"""The same engine as `simulators/serving` in plain Python, one object a request: what it is measured against.

Models whose layers all look back all the way; no identities of blocks and no speculation. Written from the rules, with
none of the simulator's own functions but the numbers of the machine and the model.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from catalog.inference import output_flops, prompt_token_flops
from simulators.serving.efficiency import Efficiency
from simulators.serving.memory import cache_spans, kv_capacity_bytes, read_bytes
from simulators.serving.setup import Setup


@dataclass
class Request:
    arrival: float
    prompt: int
    output: int
    generated: int = 0
    computed: int = 0
    pages: int = 0
    preemptions: int = 0
    scheduled: float = math.nan
    first: float = math.nan
    last: float = math.nan


@dataclass
class Engine:
    """One replica. `capacity` and `used` count pages; `preempted` counts how often a request was put back."""

    setup: Setup
    efficiency: Efficiency
    running: list[Request] = field(default_factory=list)
    waiting: deque[Request] = field(default_factory=deque)
    used: int = 0
    steps: int = 0
    preempted: int = 0

    def __post_init__(self) -> None:
        s, e, m = self.setup, self.efficiency, self.setup.machine
        ((size, _),) = cache_spans(s)
        self.token_bytes = size
        self.capacity = int(kv_capacity_bytes(s) // (size * s.page_tokens))
        self.flops, self.bytes = m.flops_per_s * e.compute, m.bytes_per_s * e.bandwidth
        kind, block, d = s.model.attention[0], s.model.feedforward[0], s.model.d_model
        layers, t = s.model.layers, s.tensor
        self.per_token, self.per_output = prompt_token_flops(s.model) / t, output_flops(s.model) / t
        self.weights = read_bytes(s)
        heads = 2 * kind.heads * kind.head_dim + 2 * kind.kv_heads * kind.head_dim
        self.through = 2 * layers * (4 * d + heads / t + 3 * block.d_ff / t)
        self.between = 2 * layers * (8 * d + 3 * block.d_ff / t)
        self.pair = layers * 4 * kind.heads * kind.head_dim / t
        self.comm_token = self.comm = 0.0
        if t > 1:
            rate = m.link_bytes_per_s * e.communication
            self.comm_token = 2 * layers * 2 * (t - 1) / t * 2 * d / rate
            self.comm = 2 * layers * 2 * (t - 1) * (m.hop_s if e.hop_s is None else e.hop_s)

    def grow(self, r: Request, tokens: int) -> bool:
        need = max(-(-tokens // self.setup.page_tokens) - r.pages, 0)
        if self.used + need > self.capacity:
            return False
        self.used += need
        r.pages += need
        return True

    def put_back(self, at: int) -> Request | None:
        """The latest request from position `at` on goes back to the queue, unless its last token is on the way."""
        for r in reversed(self.running[at:]):
            if r.generated < r.output:
                self.running.remove(r)
                self.used -= r.pages
                r.pages = r.computed = 0
                r.preemptions += 1
                self.preempted += 1
                self.waiting.appendleft(r)
                return r
        return None

    def choose(self, now: float) -> list[tuple[Request, int]]:
        left, at, before = self.setup.token_budget, 0, self.preempted
        chosen: list[tuple[Request, int]] = []
        while at < len(self.running) and left:
            r = self.running[at]
            if r.generated < r.output:
                tokens = min(r.prompt + r.generated - r.computed, left)
                while not (fits := self.grow(r, r.computed + tokens)):
                    if self.put_back(at) in (r, None):
                        break
                if not fits:
                    break
                chosen.append((r, tokens))
                left -= tokens
            at += 1
        return chosen if self.preempted > before else self.admit(chosen, left, now)

    def admit(self, chosen: list[tuple[Request, int]], left: int, now: float) -> list[tuple[Request, int]]:
        while self.waiting and left and len(self.running) < self.setup.max_sequences:
            r = self.waiting[0]
            tokens = min(r.prompt + r.generated, left)
            if not self.grow(r, tokens):
                break
            self.running.append(self.waiting.popleft())
            if math.isnan(r.scheduled):
                r.scheduled = now
            chosen.append((r, tokens))
            left -= tokens
        return chosen

    def step(self, now: float, free: float) -> tuple[float, list[Request]] | None:
        """(end of the step, requests whose last token comes then); None where there is nothing to do."""
        chosen = self.choose(now)
        if not chosen:
            return None
        tokens = sum(n for _, n in chosen)
        looked = pairs = read = outputs = 0
        for r, n in chosen:
            end = r.computed + n
            if r.generated and r.prompt + r.generated - r.computed == 1:
                looked += end
                outputs += 1
            else:
                pairs += (end * (end + 1) - r.computed * (r.computed + 1)) / 2
                read += end
                outputs += end == r.prompt + r.generated
        e = self.efficiency
        seconds = (
            max(
                (tokens * self.per_token + outputs * self.per_output) / self.flops,
                (self.weights + tokens * self.through) / self.bytes,
            )
            + tokens * self.between / self.bytes
            + max(looked * self.pair / self.flops, looked * self.token_bytes / self.bytes)
            + max(pairs * self.pair / self.flops, read * self.token_bytes / self.bytes)
            + tokens * self.comm_token
            + self.comm
            + e.step_s
            + e.sequence_s * len(chosen)
        )
        end, done = max(now, free) + seconds, []
        self.steps += 1
        for r, n in chosen:
            r.computed += n
            if r.computed == r.prompt + r.generated:
                r.generated += 1
                if r.generated == 1:
                    r.first = end
                r.last = end
                if r.generated == r.output:
                    done.append(r)
        return end, done


def serve(setup: Setup, efficiency: Efficiency, arrivals: list[tuple[float, int, int]]) -> tuple[list[Request], Engine]:
    """Serve requests of (arrival in seconds, prompt, output tokens), in order of arrival, on one replica."""
    engine = Engine(setup, efficiency)
    requests = [Request(*a) for a in arrivals]
    coming, flying = deque(requests), deque()
    now, free, depth = 0.0, -math.inf, 2 if setup.asynchronous else 1
    while coming or engine.waiting or engine.running:
        while coming and coming[0].arrival <= now:
            engine.waiting.append(coming.popleft())
        while flying and flying[0][0] <= now:
            for r in flying.popleft()[1]:
                engine.running.remove(r)
                engine.used -= r.pages
        made = engine.step(now, free) if len(flying) < depth else None
        if made:
            flying.append(made)
            free = made[0]
            continue
        if flying:
            now = flying[0][0]
        elif coming:
            now = max(now, coming[0].arrival)
        else:
            break
    return requests, engine

"""What the reference serving run is: sizes of model and engine, traffic, and what is done to the engine when."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ModelDims:
    """A decoder transformer on bytes; grouped queries, rotary positions, gated feed-forward, no weights in norms."""

    layers: int = 6
    d_model: int = 256
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 32
    d_ff: int = 768
    vocab: int = 256


@dataclass(frozen=True)
class EngineConfig:
    """Sizes of the engine. A batch is made of rows of `row` tokens of one sequence each: a prompt is cut into as many
    rows as it needs, and a generating sequence has one, its last token and `row - 1` draft tokens."""

    context: int = 512  # most tokens of a sequence, prompt and answer together
    page: int = 16  # tokens of a page of the KV cache
    pages: int = 360  # pages that sequences may use; one more is never given out, where padding is written to
    max_seqs: int = 16  # most requests running
    row: int = 4
    token_budget: int = 256  # most tokens of one iteration
    row_buckets: tuple[int, ...] = (4, 8, 16, 32, 64)  # rows that programs are compiled for
    page_buckets: tuple[int, ...] = (8, 16, 32)  # pages of context that programs are compiled for

    @property
    def draft_buckets(self) -> tuple[int, ...]:
        """Sequences that the draft program is compiled for."""
        return tuple(b for b in self.row_buckets if b < self.max_seqs) + (self.max_seqs,)


@dataclass(frozen=True)
class Tenant:
    """A class of traffic. Tokens are bytes; what a request asks itself is drawn log-normally around the medians."""

    name: str
    share: float  # of the requests
    shared_tokens: int  # its system prompt, the same in all its requests
    own_tokens: int  # median of what follows
    output_tokens: int  # median


@dataclass(frozen=True)
class Phase:
    """A stretch of traffic. Gaps between arrivals are gamma-distributed with coefficient of variation `cv`."""

    name: str
    seconds: float
    rate_per_s: float
    pages: int | None = None  # what is left of the KV cache; None: all of it
    cv: float = 3.0
    too_long: int = 0  # requests that exceed the context, spread over the phase
    aborted: int = 0  # requests whose client leaves after some tokens
    profile_s: float = 0.0  # seconds profiled, from the middle of the phase


TENANTS = (
    Tenant("support", 0.35, 192, 56, 120),
    Tenant("code", 0.25, 256, 72, 150),
    Tenant("search", 0.25, 96, 48, 60),
    Tenant("batch", 0.15, 0, 320, 80),
)


@dataclass(frozen=True)
class Plan:
    """One run. Both models are trained for so many steps before it."""

    name: str
    phases: tuple[Phase, ...]
    dims: ModelDims = field(default_factory=ModelDims)
    engine: EngineConfig = field(default_factory=EngineConfig)
    tenants: tuple[Tenant, ...] = TENANTS
    target_steps: int = 200
    draft_steps: int = 200
    temperature: float = 0.7  # of the answers
    seed: int = 0  # of weights and noise
    traffic_seed: int = 3
    log_every_s: float = 5.0
    scrape_every_s: float = 1.0
    drain_s: float = 120.0  # how long the last answers may take before the run counts as broken
    benchmark_round_s: float = 0.5

    @property
    def draft_dims(self) -> ModelDims:
        """One layer, otherwise alike: its keys and values fit the target's pages."""
        return dataclasses.replace(self.dims, layers=1)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Plan":
        raw = json.loads(path.read_text())
        engine = {k: tuple(v) if isinstance(v, list) else v for k, v in raw["engine"].items()}
        raw["dims"], raw["engine"] = ModelDims(**raw["dims"]), EngineConfig(**engine)
        raw["phases"] = tuple(Phase(**p) for p in raw["phases"])
        raw["tenants"] = tuple(Tenant(**t) for t in raw["tenants"])
        return cls(**raw)


BUNDLED = Plan(
    name="reference-serving",
    phases=(
        Phase("calm", 30, 1.2, aborted=2, too_long=1, profile_s=2.5),
        Phase("overloaded", 16, 8.0, aborted=2, too_long=1),
        Phase("draining", 30, 0.6),
        Phase("starved", 28, 1.5, pages=90, aborted=1, too_long=1),
        Phase("calm-again", 26, 1.2, too_long=1),
    ),
)

SMOKE = Plan(
    name="reference-serving-smoke",
    phases=(
        Phase("calm", 3.0, 4.0, aborted=1, too_long=1, cv=1.0, profile_s=1.5),
        Phase("starved", 1.5, 8.0, pages=24, cv=1.0),
    ),
    dims=ModelDims(layers=2, d_model=64, heads=4, head_dim=16, d_ff=128),
    engine=EngineConfig(context=256, pages=96, max_seqs=8, token_budget=64, row_buckets=(8, 16), page_buckets=(16,)),
    tenants=(Tenant("a", 0.5, 64, 30, 60), Tenant("b", 0.5, 0, 60, 40)),
    target_steps=4,
    draft_steps=4,
    log_every_s=1.0,
    traffic_seed=182,  # whose client leaves before its answer's last 200 tokens: the engine notices in time
    scrape_every_s=0.5,
    benchmark_round_s=0.05,
)

PLANS: dict[str, Plan] = {"bundled": BUNDLED, "smoke": SMOKE}

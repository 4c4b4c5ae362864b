"""What the reference runs for GPUs do and what is done to them."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Dims:
    """A decoder transformer on bytes; `batch_size` is sequences per step and rank. `mlp_dim` and `head_dim` fill no
    whole tile of a matrix unit: that is the padding that was planted."""

    layers: int = 2
    emb_dim: int = 256
    heads: int = 5
    head_dim: int = 50
    mlp_dim: int = 1000
    vocab_size: int = 250
    seq_len: int = 128
    batch_size: int = 2

    def products(self) -> list[tuple[int, int, int]]:
        """(m, k, n) of each matrix product of a forward pass, fused attention left out."""
        rows, inner = self.batch_size * self.seq_len, self.heads * self.head_dim
        layer = [
            (rows, self.emb_dim, 3 * inner),
            (rows, inner, self.emb_dim),
            (rows, self.emb_dim, self.mlp_dim),
            (rows, self.mlp_dim, self.emb_dim),
        ]
        return layer * self.layers + [(rows, self.emb_dim, self.vocab_size)]

    def flops(self) -> float:
        """Model FLOPs of one step of one rank: products three times (forward, and two gradients), attention likewise,
        under its causal mask half of all pairs."""
        products = sum(2.0 * m * k * n for m, k, n in self.products())
        pairs = self.batch_size * self.heads * self.seq_len**2 / 2
        return 3 * (products + self.layers * 4 * pairs * self.head_dim)

    @property
    def parameters(self) -> int:
        """Weights of the model, its norms included."""
        inner, d = self.heads * self.head_dim, self.emb_dim
        layer = d * 3 * inner + inner * d + 2 * d * self.mlp_dim + 4 * d
        return self.layers * layer + 2 * self.vocab_size * d + self.seq_len * d + 2 * d


@dataclass(frozen=True)
class Plan:
    """Steps are numbered from 0. The profiler records steps `profiled` (first, last); what is done in steps of it:

    stalled       the input of every rank waits `stall_s` in `next()`
    launch_bound  the host runs `small_calls` operations on a few numbers, besides the step itself
    straggler     rank `late_rank` hashes for `late_s` before its step
    """

    name: str = "reference-pytorch"
    ranks: int = 2
    steps: int = 28
    profiled: tuple[int, int] = (4, 25)
    stalled: tuple[int, int] = (8, 10)
    stall_s: float = 0.15
    launch_bound: tuple[int, int] = (13, 15)
    small_calls: int = 4000
    straggler: tuple[int, int] = (18, 20)
    late_rank: int = 1
    late_s: float = 0.12
    seed: int = 0
    learning_rate: float = 1e-3
    dims: Dims = field(default_factory=Dims)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Plan":
        told = json.loads(path.read_text())
        pairs = {name: tuple(told[name]) for name in ("profiled", "stalled", "launch_bound", "straggler")}
        return cls(**{**told, **pairs, "dims": Dims(**told["dims"])})


def within(step: int, steps: tuple[int, int]) -> bool:
    """Whether a step is one of them."""
    return steps[0] <= step <= steps[1]


PLANS = {
    "torch": Plan(),
    "jax": Plan(name="reference-jax-gpu", ranks=1, late_rank=0),
    "smoke": Plan(
        name="smoke",
        steps=8,
        profiled=(2, 6),
        stalled=(3, 3),
        launch_bound=(4, 4),
        straggler=(5, 5),
        small_calls=200,
        dims=Dims(layers=1, emb_dim=32, heads=2, head_dim=10, mlp_dim=50, vocab_size=50, seq_len=16, batch_size=2),
    ),
}

"""Memory of training a transformer, by formula: weights, gradients, optimiser state and saved activations.

The activation formulas are those of Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
Models" (arXiv 2205.05198): s tokens in a sequence, b sequences in a microbatch, h width, a heads, L layers, t devices
of tensor parallelism, p pipeline stages of m interleaved chunks, 16-bit activations. `activations` counts the same
tensors for any model of the catalogue; for the paper's own model (d_ff = 4h without a gate, as many key as query
heads, a x head_dim = h, dropout) it gives the paper's formulas.

These count what must be kept, not what a compiler allots: buffers of communication, temporaries of one layer's
backward pass, padding and fragmentation come on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from catalog.models import Attention, FeedForward, Model, parameters
from errors import QuestionError

Remat = Literal["none", "selective", "full"]
REMAT: dict[str, str] = {
    "none": "everything that the backward pass reads is kept, attention scores included",
    "selective": "attention scores are computed again, or never written (flash attention); the rest is kept",
    "full": "only the input of each layer is kept",
}

# Bytes per parameter. `mixed`: 18, the paper's; the others are usual in JAX and PyTorch programs.
RECIPES: dict[str, dict[str, int]] = {
    "mixed": {"weights": 2, "gradients": 4, "master_weights": 4, "moments": 8},
    "float32": {"weights": 4, "gradients": 4, "master_weights": 0, "moments": 8},
    "bfloat16": {"weights": 2, "gradients": 2, "master_weights": 0, "moments": 4},
}


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """How a model is spread. `fsdp` devices share weights, gradients and optimiser state; `data` repeat them.

    `expert` devices deal out the routed experts and repeat the rest; each has sequences of its own. `context` devices
    share each sequence and repeat all weights. `tensor` (t) splits matrices within a layer, with `sequence_parallel`
    also what lies between them; `pipeline` (p) splits layers, each stage in `interleave` (m) chunks.
    """

    data: int = 1
    fsdp: int = 1
    expert: int = 1
    context: int = 1
    tensor: int = 1
    pipeline: int = 1
    interleave: int = 1
    sequence_parallel: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "fsdp", "expert", "context", "tensor", "pipeline", "interleave"):
            if getattr(self, name) < 1:
                raise QuestionError(f"{name} = {getattr(self, name)}", expected="a whole number from 1")

    @property
    def chips(self) -> int:
        return self.data * self.fsdp * self.expert * self.context * self.tensor * self.pipeline


def interleave_factor(pipeline: int, interleave: int) -> float:
    """1 + (p - 1) / (p m) for m > 1 chunks of each stage, else 1: what interleaving adds on the first stage."""
    return 1 + (pipeline - 1) / (pipeline * interleave) if interleave > 1 else 1.0


def layer_activation_bytes(
    *, s: int, b: int, h: int, a: int, t: int = 1, remat: Remat = "none", sequence_parallel: bool = False
) -> float:
    """Bytes kept of one layer of the paper's model, on one device.

    none       s b h (10 + 24 / t + 5 a s / (h t)); with sequence parallelism s b h / t (34 + 5 a s / h)
    selective  s b h (10 + 24 / t);                 with sequence parallelism 34 s b h / t
    full       2 s b h;                             with sequence parallelism 2 s b h / t
    """
    whole = s * b * h
    apart = t if sequence_parallel else 1
    if remat == "full":
        return 2 * whole / apart
    scores = 5 * a * s / (h * t) if remat == "none" else 0.0
    return whole * (10 / apart + 24 / t + scores)


def activations(
    model: Model, sharding: Sharding, *, seq: int, batch: int, remat: Remat = "none", dropout: bool = False
) -> float:
    """Bytes of saved activations on a device of the first pipeline stage, where most are in flight.

    That stage holds L / p layers for each of p microbatches, so L layers' worth, times the interleave factor. `batch`
    is sequences of a microbatch on one device of the data, fsdp and expert axes, of which `context` devices hold a part
    each. Experts are taken to be visited alike. See `layer_bytes_per_token` for a layer.
    """
    per_token = sum(
        layer_bytes_per_token(model.d_model, attention, block, sharding, seq=seq, remat=remat, dropout=dropout)
        for attention, block in zip(model.attention, model.feedforward, strict=True)
    )
    return seq * batch / sharding.context * per_token * interleave_factor(sharding.pipeline, sharding.interleave)


def layer_bytes_per_token(
    h: int, attention: Attention, block: FeedForward, sharding: Sharding, *, seq: int, remat: Remat, dropout: bool
) -> float:
    """Bytes kept per token of one layer, 2 bytes an element.

    Between the matrices, split only by sequence parallelism: inputs of two norms, of the attention and of the
    feed-forward block, 8 h (with experts the input once for each that a token visits); two dropout masks, 2 h.
    Inside, split by tensor parallelism: queries, keys, values and their compressed forms, the output of attention, and
    the two (gated: three) hidden tensors of the feed-forward block, 2 bytes each. Scores of attention: 2 a s, with
    dropout 5 a s.
    """
    apart = sharding.tensor if sharding.sequence_parallel else 1
    if remat == "full":
        return 2 * h / apart
    visits = max(block.experts_per_token, 1)
    between = 6 * h + 2 * h * visits + (2 * h if dropout else 0)
    keys = attention.kv_heads * (attention.head_dim + (0 if attention.shared_kv else attention.value_head_dim))
    inside = 2 * (attention.heads * (attention.head_dim + attention.value_head_dim) + keys)
    inside += 2 * ((attention.q_lora_rank or 0) + (attention.kv_lora_rank or 0))
    hidden = block.d_ff * visits + block.shared_experts * block.d_ff_shared
    inside += 2 * (3 if block.gated else 2) * hidden
    scores = (5 if dropout else 2) * attention.heads * seq if remat == "none" else 0
    return between / apart + (inside + scores) / sharding.tensor


def logits_bytes(model: Model, sharding: Sharding, *, seq: int, batch: int) -> float:
    """4 s b (h + v) / t: inputs of the last norm and projection in 16 bits, logits in 32; of a part of the sequence
    where `context` devices share it. In the last stage only, so 0 with a pipeline, whose first stage holds most."""
    if sharding.pipeline > 1:
        return 0.0
    return 4 * seq * batch / sharding.context * (model.d_model + model.vocab) / sharding.tensor


def routed_parameters(model: Model) -> int:
    """Weights of all routed experts."""
    return sum((3 if f.gated else 2) * model.d_model * f.d_ff * f.experts for f in model.feedforward)


def state_bytes(params: float, sharding: Sharding, recipe: str = "mixed", routed: float = 0.0) -> dict[str, float]:
    """Weights, gradients, master weights and Adam's two moments on one device: bytes per parameter (RECIPES) times
    parameters / (t p fsdp), of which those of `routed` experts / expert. Raises QuestionError for an unknown recipe."""
    if recipe not in RECIPES:
        raise QuestionError(f"precision recipe {recipe!r}", expected=f"one of {', '.join(RECIPES)}")
    held = params - routed + routed / sharding.expert
    share = held / (sharding.tensor * sharding.pipeline * sharding.fsdp)
    return {name: size * share for name, size in RECIPES[recipe].items()}


def training_memory(
    model: Model,
    sharding: Sharding,
    *,
    seq: int,
    batch: int,
    remat: Remat = "none",
    recipe: str = "mixed",
    dropout: bool = False,
) -> Mapping[str, float]:
    """Bytes on one device by account: weights, gradients, master_weights, moments, activations, logits."""
    return state_bytes(parameters(model).total, sharding, recipe, routed_parameters(model)) | {
        "activations": activations(model, sharding, seq=seq, batch=batch, remat=remat, dropout=dropout),
        "logits": logits_bytes(model, sharding, seq=seq, batch=batch),
    }

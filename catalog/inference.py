"""What a model needs to generate text: the key-value cache, the weights read, and the FLOPs, all before any machine.

K key heads of d_k and values of d_v, L layers, T tokens of context, b bytes an element:

    cache of one token    (grouped queries) L K (d_k + d_v) b;   (latent attention) L (d_c + d_rope) b
    cache of a sequence   the same times T, or times min(T, W) in layers that look back W tokens only
    split over n chips    key heads are dealt out; with more chips than heads they are repeated, and a latent is
                          repeated on every chip
    weights met by B tokens   all but the experts, plus E (1 - (1 - k/E)^B) of the E experts in each such layer
    FLOPs of a token      2 for each weight it is multiplied with, plus 2 H (d_qk + d_v) for each token looked at

Weights count in the format that they are kept in, with its scales and the parts that stay wide (`formats.py`).

Sources: the scaling book (transformer inference), DeepSeek-V2 (latent attention). Counts are of the arithmetic, not
of an engine: pages of a paged cache, buckets and padding come on top.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from catalog.formats import Kept, format_named, kept
from catalog.models import Attention, FeedForward, Model, parameters
from errors import QuestionError

Tokens = float | np.ndarray

BYTES: dict[str, float] = {
    "float32": 4,
    "bf16": 2,
    "fp16": 2,
    "fp8": 1,
    "int8": 1,
    "fp4": 0.5,
    "int4": 0.5,
}


def element_bytes(precision: str) -> float:
    """Bytes of one element of a plain format: caches and activations. Raises QuestionError for one not in BYTES."""
    if precision not in BYTES:
        raise QuestionError(f"precision {precision!r}", expected=f"one of {', '.join(BYTES)}")
    return BYTES[precision]


@dataclass(frozen=True)
class Span:
    """Layers whose caches grow alike: bytes of one token on one chip, and how far back they look (None: all)."""

    name: str
    layers: int
    bytes_per_token: float
    window_tokens: int | None
    copies: float  # chips that hold the same piece, this one included: 1 where nothing is repeated

    def bytes(self, tokens: float) -> float:
        """Cache of one sequence of so many tokens on one chip."""
        return self.bytes_per_token * (tokens if self.window_tokens is None else min(tokens, self.window_tokens))


def layer_elements(attention: Attention) -> int:
    """Elements that one token leaves in the cache of one layer, on a chip that holds all heads.

    Keys and values are both kept where they share a projection: keys carry their position, values do not.
    """
    if attention.kv_lora_rank is not None:
        return attention.kv_lora_rank + (attention.rope_head_dim or 0)
    return attention.kv_heads * (attention.head_dim + attention.value_head_dim)


def spans(model: Model, precision: str = "bf16", tensor: int = 1) -> tuple[Span, ...]:
    """The cache of `model` on one of `tensor` chips, by kind of layer."""
    if tensor < 1:
        raise QuestionError(f"tensor parallelism over {tensor} chips", expected="a whole number from 1")
    size = element_bytes(precision)
    result: list[Span] = []
    for kind, layers in Counter(model.attention).items():
        heads = 1 if kind.kv_lora_rank is not None else kind.kv_heads
        here = -(-heads // tensor)  # heads that one chip holds
        result.append(
            Span(
                name=kind.name,
                layers=layers,
                bytes_per_token=layers * layer_elements(kind) / heads * here * size,
                window_tokens=None if kind.span == "full" else kind.window_tokens,
                copies=here * tensor / heads,
            )
        )
    return tuple(result)


def kv_bytes_per_token(model: Model, precision: str = "bf16") -> float:
    """Cache of one token over all layers, as if every layer kept it: the number that model cards quote."""
    return sum(span.bytes_per_token for span in spans(model, precision))


def kv_bytes(model: Model, tokens: float, precision: str = "bf16", tensor: int = 1) -> float:
    """Cache of one sequence of `tokens` on one of `tensor` chips."""
    return sum(span.bytes(tokens) for span in spans(model, precision, tensor))


def stated_token_bytes(model: Model, length: int, step_tokens: int, precision: str = "bf16", tensor: int = 1) -> float:
    """Cache on one chip of each of the tokens in which vLLM states a cache: of sequences of `length`, whose layers with
    a window of W keep W - 1 and the `step_tokens` of one step (SlidingWindowSpec.max_memory_usage_bytes). 0: as if
    every layer kept every token, as until 0.20."""
    return sum(
        span.bytes_per_token * min((span.window_tokens - 1 + step_tokens) / length, 1.0)
        if length and span.window_tokens is not None
        else span.bytes_per_token
        for span in spans(model, precision, tensor)
    )


def weight_bytes(precision: str) -> float:
    """Bytes of a weight in the narrow parts of a format, scales included. Raises QuestionError for an unknown one."""
    return format_named(precision).bytes


def part_params(model: Model) -> dict[str, int]:
    """Weights by part (`formats.PARTS`); together `parameters(model).total`."""
    counts, experts = parameters(model), routed_params(model)
    router = sum(model.d_model * f.experts for f in model.feedforward)
    return {
        "attention": counts.attention,
        "dense": counts.feedforward - experts - router,
        "experts": experts,
        "router": router,
        "embedding": counts.embedding * (1 if model.tied_embeddings else 2),
    }


def kept_bytes(model: Model, held: Kept) -> dict[str, float]:
    """Bytes of the weights by part."""
    return {part: count * held.bytes[part] for part, count in part_params(model).items()}


def weights_bytes(model: Model, precision: str = "bf16") -> float:
    """All weights, once."""
    return sum(kept_bytes(model, kept(model, precision)).values())


def chip_weights_bytes(model: Model, precision: str = "bf16", tensor: int = 1, split_attention: bool = True) -> float:
    """Weights on each of `tensor` chips that share them evenly, but for what no split by heads can share.

    A key head needs its projection wherever it is kept, so with more chips than key heads those are repeated; the
    projections into a latent are on every chip. `split_attention` False (data-parallel attention): all of attention is.
    """
    if tensor < 1:
        raise QuestionError(f"tensor parallelism over {tensor} chips", expected="a whole number from 1")
    counts = parameters(model)
    whole = sum(_unshared(a, model.d_model, tensor) for a in model.attention) if split_attention else counts.attention
    here = whole * kept(model, precision).bytes["attention"]
    return here + (weights_bytes(model, precision) - here) / tensor


def _unshared(a: Attention, d_model: int, tensor: int) -> float:
    """Weights of a layer's attention that each chip holds beyond its even part, as so many that all chips hold alike.

    x repeated parameters out of p count as p x (c - 1) / (t - 1), so that each chip holds c p / t of them.
    """
    if tensor == 1:
        return 0.0
    if a.kv_lora_rank is not None:
        return float(d_model * (a.kv_lora_rank + (a.rope_head_dim or 0) + (a.q_lora_rank or 0)))
    width = a.head_dim + (0 if a.shared_kv else a.value_head_dim)
    copies = -(-a.kv_heads // tensor) * tensor / a.kv_heads
    return d_model * a.kv_heads * width * (copies - 1) / (tensor - 1)


def experts_touched(block: FeedForward, tokens: float) -> float:
    """How many of a layer's routed experts some token visits, on average, where tokens choose at random."""
    if not block.experts:
        return 0.0
    return block.experts * (1 - (1 - block.experts_per_token / block.experts) ** tokens)


def always_read_bytes(model: Model, precision: str = "bf16") -> float:
    """Weights that every pass reads: all but routed experts and a table of embeddings that is only looked up."""
    return kept_always_read_bytes(model, kept(model, precision))


def kept_always_read_bytes(model: Model, held: Kept) -> float:
    """The same of weights kept in given formats."""
    parts = kept_bytes(model, held)
    table = 0 if model.tied_embeddings else parameters(model).embedding * held.bytes["embedding"]
    return sum(parts.values()) - table - parts["experts"]


def routed_params(model: Model) -> int:
    """Weights of all routed experts."""
    return sum(f.experts * expert_params(model, f) for f in model.feedforward)


def expert_params(model: Model, block: FeedForward) -> int:
    """Weights of one routed expert of this kind of block."""
    return (3 if block.gated else 2) * model.d_model * block.d_ff if block.experts else 0


def weights_read_bytes(model: Model, tokens: float, precision: str = "bf16") -> float:
    """Weights that one pass over `tokens` tokens reads, on average."""
    experts = sum(experts_touched(f, tokens) * expert_params(model, f) for f in model.feedforward)
    return always_read_bytes(model, precision) + experts * kept(model, precision).bytes["experts"]


def part_flops(model: Model) -> dict[str, float]:
    """FLOPs of one prompt token by the part of the weights that it is multiplied with: 2 for each weight met."""
    met = sum(f.experts_per_token * expert_params(model, f) for f in model.feedforward)
    return {
        part: 2.0 * (met if part == "experts" else count)
        for part, count in part_params(model).items()
        if part != "embedding"
    }


def token_flops(model: Model) -> float:
    """FLOPs of one generated token in matrices, output projection included, attention left out."""
    return 2.0 * parameters(model).active_matmul


def prompt_token_flops(model: Model) -> float:
    """The same for a prompt token, whose output projection is not needed (but for the last, see `output_flops`)."""
    return token_flops(model) - output_flops(model)


def output_flops(model: Model) -> float:
    """The output projection for one token."""
    return 2.0 * parameters(model).embedding


def attention_flops(model: Model, context: float) -> float:
    """FLOPs of one token that looks at `context` tokens: 2 H (d_qk + d_v) for each, windows respected.

    Latent attention is counted in its expanded form, as for training; its absorbed form, usual in decoding, does more.
    """
    total = 0.0
    for a in model.attention:
        seen = context if a.span == "full" or a.window_tokens is None else min(context, a.window_tokens)
        total += 2.0 * a.heads * (a.head_dim + a.value_head_dim) * seen
    return total


def decode_attention_flops(model: Model, context: float) -> float:
    """The same as an engine decodes: latent attention in its absorbed form, 2 H (2 d_c + d_rope) for each token."""
    total = 0.0
    for a in model.attention:
        seen = context if a.span == "full" or a.window_tokens is None else min(context, a.window_tokens)
        width = a.head_dim + a.value_head_dim
        if a.kv_lora_rank is not None:
            width = 2 * a.kv_lora_rank + (a.rope_head_dim or 0)
        total += 2.0 * a.heads * width * seen
    return total


def prefill_attention_flops(model: Model, tokens: Tokens, cached: Tokens = 0.0) -> Tokens:
    """FLOPs of attention over tokens `cached + 1` to `cached + tokens`, each looking at itself and all before.

    The exact sum with windows: a token at position p looks at min(p, W). Numbers, or arrays of one number a sequence.
    """
    total: Tokens = 0.0
    for a, layers in Counter(model.attention).items():
        window = None if a.span == "full" else a.window_tokens
        seen = _positions(cached + tokens, window) - _positions(cached, window)
        total = total + 2.0 * layers * a.heads * (a.head_dim + a.value_head_dim) * seen
    return total


def _positions(last: Tokens, window: int | None) -> Tokens:
    """Sum over positions 1 to `last` of min(position, window)."""
    if window is None:
        return last * (last + 1) / 2
    rising = np.minimum(last, window)
    return rising * (rising + 1) / 2 + (last - rising) * window


def speculation_speedup(acceptance: float, draft: int, cost: float) -> float:
    """How much faster generation is with `draft` proposed tokens, each accepted with probability `acceptance`.

    (1 - a^(k+1)) / ((1 - a) (k c + 1)), c: time of one draft step by that of one step of the model (Leviathan et al.,
    arXiv 2211.17192). Raises QuestionError for numbers that cannot be.
    """
    if not 0 <= acceptance <= 1:
        raise QuestionError(f"acceptance {acceptance}", expected="a share from 0 to 1")
    if draft < 0:
        raise QuestionError(f"{draft} draft tokens", expected="a whole number from 0")
    if cost < 0:
        raise QuestionError(f"draft cost {cost}", expected="the time of a draft step by that of a step: 0 or more")
    return accepted_length(acceptance, draft) / (draft * cost + 1)


def accepted_length(acceptance: float, draft: int) -> float:
    """Tokens of one step with speculation, the model's own included: 1 + a + a^2 + ... + a^k."""
    return draft + 1.0 if acceptance == 1 else (1 - acceptance ** (draft + 1)) / (1 - acceptance)


def critical_batch(flops_per_s: float, bytes_per_s: float, precision: str = "bf16") -> float:
    """Tokens in one pass from which multiplying with a weight takes longer than reading it: FLOP/s / bytes/s x b / 2.

    Of a model whose every weight meets every token; `precision` is that of the weights, b its bytes (scaling book).
    """
    if flops_per_s <= 0 or bytes_per_s <= 0:
        raise QuestionError("a chip without speed", expected="FLOP/s and bytes/s above 0")
    return flops_per_s / bytes_per_s * weight_bytes(precision) / 2


def decode_step_s(
    sequences: float,
    *,
    weights_bytes: float,
    kv_bytes: float,
    bytes_per_s: float,
    flops_per_token: float = 0.0,
    flops_per_s: float = float("inf"),
    tokens: float = 1.0,
) -> float:
    """Least time of one pass that verifies or generates `tokens` tokens of each sequence, s.

    B KV / BW + max(B t F / P, W / BW): the caches (`kv_bytes` of a sequence) are read once, whatever t; rates are of
    all chips together. Without FLOPs, what memory alone takes (scaling book).
    """
    maths = sequences * tokens * flops_per_token / flops_per_s
    return sequences * kv_bytes / bytes_per_s + max(maths, weights_bytes / bytes_per_s)

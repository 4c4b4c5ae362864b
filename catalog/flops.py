"""Model FLOPs of one token, by the conventions in which they are printed.

A multiply-add is two FLOPs. A token that meets a weight costs 2 FLOPs forward and 4 backward (the gradients of input
and weight), so 6 for each weight. Attention costs 2 H (d_qk + d_v) forward for each earlier token looked at, so 6.
What the conventions differ in is which weights and how many earlier tokens they count.
"""

from collections.abc import Callable
from dataclasses import dataclass

from catalog.lookup import shown
from catalog.models import Attention, FeedForward, Model, parameters
from errors import QuestionError

FORWARD, BACKWARD = 2, 4
TRAINING = FORWARD + BACKWARD


@dataclass(frozen=True, kw_only=True)
class FlopsPerToken:
    """FLOPs of one token of a sequence, on average over its `seq` tokens, and where they are.

    projections    weights of the attention layers (queries, keys, values, output)
    feedforward    feed-forward blocks: dense, or the experts that a token visits and the router
    output         output projection onto the vocabulary
    embedding      weights that are looked up or not visited, where a convention counts them all the same
    attention      scores and their product with the values
    mtp            multi-token-prediction layers, where counted
    recomputation  the forward pass done again, where counted
    """

    convention: str
    seq: int
    projections: float
    feedforward: float
    output: float
    attention: float
    embedding: float = 0.0
    mtp: float = 0.0
    recomputation: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.parts().values())

    @property
    def weights(self) -> float:
        """All that multiplies a weight of the main model."""
        return self.projections + self.feedforward + self.output + self.embedding

    def parts(self) -> dict[str, float]:
        """FLOPs by where they are; they sum to `total`."""
        names = ("projections", "feedforward", "output", "embedding", "attention", "mtp", "recomputation")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Convention:
    """A way to count: its name, how it is called in a sentence, the formula in words, who prints numbers by it."""

    name: str
    title: str
    formula: str
    used_by: str


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        "causal",
        "exact causal",
        "6 x weights met + 6 H (d_qk + d_v) x earlier tokens really seen: T/2 on "
        "average, W - W^2/2T in a sliding window W, half a chunk",
        "MaxText today; the headline here",
    ),
    Convention(
        "noncausal",
        "non-causal",
        "6 x weights met + 6 H (d_qk + d_v) T: as if every token saw all T",
        "MaxText before July 2025, torchtitan, most published GPU tables",
    ),
    Convention(
        "windows_halved",
        "windows-halved",
        "causal, but what a sliding window sees is halved once more",
        "MaxText for a time after July 2025",
    ),
    Convention(
        "megatron",
        "Megatron",
        "causal, with multi-token-prediction layers (block, 2 d^2 projection, second output), without the router",
        "Megatron-LM and Megatron Bridge today",
    ),
    Convention(
        "palm",
        "PaLM",
        "6 N + 12 L H Q T: N with the embedding table, of experts those visited; every token sees all T",
        "PaLM, nanoGPT, LLM Foundry",
    ),
    Convention("6n", "6N", "6 x weights met, no attention", "the scaling-law rule of thumb"),
    Convention(
        "6n_total",
        "6N of all parameters",
        "6 x all parameters, embedding table and unvisited experts included",
        "the rule of thumb on a model's advertised size",
    ),
    Convention(
        "hardware_full_remat",
        "full-recomputation hardware",
        "causal x 4/3: the whole forward pass done again",
        "hardware FLOPs (HFU) under full recomputation",
    ),
    Convention(
        "lora",
        "LoRA 4N",
        "4 x weights met: frozen weights need no gradient of their own",
        "Megatron Bridge for LoRA fine-tuning",
    ),
)
NAMES: tuple[str, ...] = tuple(c.name for c in CONVENTIONS)


def flops_per_token(model: Model, seq: int, convention: str = "causal") -> FlopsPerToken:
    """FLOPs of one token, forward and backward, in sequences of `seq` tokens.

    Raises QuestionError for a convention that does not exist and for a sequence without tokens.
    """
    if convention not in NAMES:
        raise QuestionError(f"no FLOP convention {shown(convention)}", expected=f"one of {', '.join(NAMES)}")
    if seq < 1:
        raise QuestionError(f"a sequence of {seq} tokens", expected="a whole number from 1")
    return _COUNTS[convention](model, seq)


def forward_flops_per_token(model: Model, seq: int, convention: str = "causal") -> float:
    """The forward pass alone: a third of forward and backward, recomputation left out (LoRA: half)."""
    counted = flops_per_token(model, seq, convention)
    passes = 2 if convention == "lora" else TRAINING / FORWARD
    return (counted.total - counted.recomputation) / passes


def seen_tokens(layer: Attention, seq: int) -> float:
    """Tokens that a token attends to, on average over a causal sequence of `seq`.

    Pairs are counted as areas, as the field does: T^2/2 in full, T W - W^2/2 in a window, the sum of chunk^2/2.
    """
    reach = layer.window_tokens
    if layer.span == "full" or reach is None or reach >= seq:
        return seq / 2
    if layer.span == "sliding":
        return reach - reach * reach / (2 * seq)
    chunks, rest = divmod(seq, reach)
    return (chunks * reach * reach + rest * rest) / (2 * seq)


def _seen_halved(layer: Attention, seq: int) -> float:
    reach = layer.window_tokens
    narrow = layer.span == "sliding" and reach is not None and reach < seq
    return seen_tokens(layer, seq) / (2 if narrow else 1)


def _seen_all(layer: Attention, seq: int) -> float:
    return float(seq)


def _attention(layers: tuple[Attention, ...], seq: int, seen: Callable[[Attention, int], float]) -> float:
    return sum(TRAINING * a.heads * (a.head_dim + a.value_head_dim) * seen(a, seq) for a in layers)


def _counted(
    convention: str, model: Model, seq: int, seen: Callable[[Attention, int], float], **more: float
) -> FlopsPerToken:
    """6 x the weights that a token meets, and attention to the tokens that `seen` says."""
    n = parameters(model)
    parts: dict[str, float] = {
        "projections": TRAINING * n.attention,
        "feedforward": TRAINING * n.feedforward_active,
        "output": TRAINING * n.embedding,
        "attention": _attention(model.attention, seq, seen),
        **more,
    }
    return FlopsPerToken(convention=convention, seq=seq, **{k: float(v) for k, v in parts.items()})


def _causal(model: Model, seq: int) -> FlopsPerToken:
    return _counted("causal", model, seq, seen_tokens)


def _noncausal(model: Model, seq: int) -> FlopsPerToken:
    return _counted("noncausal", model, seq, _seen_all)


def _windows_halved(model: Model, seq: int) -> FlopsPerToken:
    return _counted("windows_halved", model, seq, _seen_halved)


def _megatron(model: Model, seq: int) -> FlopsPerToken:
    def unrouted(block: FeedForward) -> int:
        return block.params(model.d_model)[1] - model.d_model * block.experts

    feedforward = TRAINING * sum(unrouted(block) for block in model.feedforward)
    last, block = model.attention[-1], model.feedforward[-1]
    weights = last.params(model.d_model) + unrouted(block) + 2 * model.d_model**2 + model.d_model * model.vocab
    extra = model.mtp_layers * (TRAINING * weights + _attention((last,), seq, seen_tokens))
    return _counted("megatron", model, seq, seen_tokens, feedforward=feedforward, mtp=extra)


def _palm(model: Model, seq: int) -> FlopsPerToken:
    looked_up = 0 if model.tied_embeddings else TRAINING * parameters(model).embedding
    attention = sum(2 * TRAINING * a.heads * a.head_dim * seq for a in model.attention)
    return _counted("palm", model, seq, _seen_all, embedding=looked_up, attention=attention)


def _six_n(model: Model, seq: int) -> FlopsPerToken:
    return _counted("6n", model, seq, seen_tokens, attention=0.0)


def _six_n_total(model: Model, seq: int) -> FlopsPerToken:
    n = parameters(model)
    unmet = TRAINING * (n.total - n.active_matmul)
    return _counted("6n_total", model, seq, seen_tokens, attention=0.0, embedding=unmet)


def _full_remat(model: Model, seq: int) -> FlopsPerToken:
    again = _causal(model, seq).total * FORWARD / TRAINING
    return _counted("hardware_full_remat", model, seq, seen_tokens, recomputation=again)


def _lora(model: Model, seq: int) -> FlopsPerToken:
    n = parameters(model)
    return FlopsPerToken(
        convention="lora",
        seq=seq,
        projections=4.0 * n.attention,
        feedforward=4.0 * n.feedforward_active,
        output=4.0 * n.embedding,
        attention=0.0,
    )


_COUNTS: dict[str, Callable[[Model, int], FlopsPerToken]] = {
    "causal": _causal,
    "noncausal": _noncausal,
    "windows_halved": _windows_halved,
    "megatron": _megatron,
    "palm": _palm,
    "6n": _six_n,
    "6n_total": _six_n_total,
    "hardware_full_remat": _full_remat,
    "lora": _lora,
}

"""A model with one dimension changed, as a designer would change it: what else has to follow, and what cannot be."""

from collections import Counter
from dataclasses import replace

from catalog.models import Attention, FeedForward, Model
from errors import QuestionError

DIMS: dict[str, str] = {
    "head_dim": "width of a query and key head; heads x head_dim stays, so twice the width means half the heads",
    "d_model": "width of the residual stream; heads stay as they are",
    "d_ff": "hidden width of the feed-forward block that most layers have, or of its experts",
    "vocab": "rows of the embedding table and of the output projection",
}
LARGEST = 1 << 24


def changed(model: Model, dims: dict[str, int]) -> Model:
    """The model with each of `dims` (keys of DIMS) put in place of its own.

    Raises QuestionError for a dimension below 1 and for a head_dim that does not divide heads x head_dim.
    """
    for name, value in dims.items():
        if not 1 <= value <= LARGEST:
            raise QuestionError(f"{name} {value}", expected=f"a whole number from 1 to {LARGEST:,}")
    for name in ("d_model", "vocab"):
        if name in dims:
            model = replace(model, **{name: dims[name]})
    if "vocab" in dims:
        model = replace(model, vocab_unpadded=min(model.vocab_unpadded, dims["vocab"]))
    if "head_dim" in dims:
        model = replace(model, attention=tuple(with_head_dim(a, dims["head_dim"]) for a in model.attention))
    if "d_ff" in dims:
        usual = main_block(model)
        model = replace(
            model, feedforward=tuple(with_d_ff(f, dims["d_ff"]) if f == usual else f for f in model.feedforward)
        )
    return model


def main_block(model: Model) -> FeedForward:
    """The feed-forward block that most layers have."""
    return Counter(model.feedforward).most_common(1)[0][0]


def with_d_ff(block: FeedForward, d_ff: int) -> FeedForward:
    """Shared experts that are as wide as the routed ones stay so."""
    shared = d_ff if block.d_ff_shared == block.d_ff else block.d_ff_shared
    return replace(block, d_ff=d_ff, d_ff_shared=shared)


def with_head_dim(a: Attention, head_dim: int) -> Attention:
    """The same attention with heads of another width.

    heads x head_dim and kv_heads x head_dim stay (at least one key head). In latent attention the widths of heads are
    free: the number of heads stays, and the part of a head without position takes up the difference.
    """
    if a.kv_lora_rank is not None:
        nope = head_dim - a.rope_head_dim
        if nope < 1:
            raise QuestionError(f"head_dim {head_dim}", expected=f"more than the {a.rope_head_dim} with position")
        return replace(a, head_dim=head_dim, nope_head_dim=nope)
    if a.heads * a.head_dim % head_dim:
        raise QuestionError(
            f"head_dim {head_dim} does not divide {a.heads} heads x {a.head_dim}",
            expected=f"a divisor of {a.heads * a.head_dim}",
        )
    heads = a.heads * a.head_dim // head_dim
    keys, rest = divmod(a.kv_heads * a.head_dim, head_dim)
    if keys and (rest or heads % keys):
        raise QuestionError(
            f"head_dim {head_dim} leaves {heads} query heads for {a.kv_heads * a.head_dim / head_dim:g} key heads",
            expected="whole key heads that divide the query heads",
        )
    value = head_dim if a.value_head_dim == a.head_dim else a.value_head_dim
    return replace(a, head_dim=head_dim, value_head_dim=value, heads=heads, kv_heads=max(keys, 1))

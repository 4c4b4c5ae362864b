"""The weights of a model's training step: shapes, and what each axis means for sharding. No JAX here.

A weight's axes are named: `embed` (width of the residual stream), `heads`, `kv_heads`, `ff` (hidden width), `vocab`,
`experts`, `rank` (compressed width of latent attention); None: never sharded. `mesh.py` says which mesh axis shards
which name.
"""

from collections import Counter
from dataclasses import dataclass

from catalog.models import Attention, FeedForward, Model


@dataclass(frozen=True)
class Weight:
    """`shape` of one layer's weight (elements) and the names of its axes."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]


@dataclass(frozen=True)
class Kind:
    """Layers of the same dimensions: compiled once, run `layers` times."""

    name: str
    attention: Attention
    feedforward: FeedForward
    layers: int


def kinds(model: Model) -> tuple[Kind, ...]:
    """The distinct kinds of layer, in the order in which they first appear."""
    counted = Counter(zip(model.attention, model.feedforward, strict=True))
    names = [f"{a.name}_{f.name}" for a, f in counted]
    return tuple(
        Kind(name if names.count(name) == 1 else f"{name}_{i}", a, f, layers)
        for i, (name, ((a, f), layers)) in enumerate(zip(names, counted.items(), strict=True))
    )


def outer_weights(model: Model) -> dict[str, Weight]:
    """Embedding table, last norm and, where it is not the embedding table, the output projection."""
    d, vocab = model.d_model, model.vocab
    result = {"embedding": Weight((vocab, d), ("vocab", "embed")), "final_norm": Weight((d,), (None,))}
    if not model.tied_embeddings:
        result["lm_head"] = Weight((d, vocab), ("embed", "vocab"))
    return result


def layer_weights(kind: Kind, d_model: int) -> dict[str, Weight]:
    """The weights of one layer of this kind."""
    norms = {f"{block}_norm": Weight((d_model,), (None,)) for block in ("attention", "feedforward")}
    return {**norms, **_attention(kind.attention, d_model), **_feedforward(kind.feedforward, d_model)}


def _attention(a: Attention, d: int) -> dict[str, Weight]:
    out = {"wo": Weight((a.heads, a.value_head_dim, d), ("heads", None, "embed"))}
    latent = a.latent
    if latent is None:
        queries = Weight((d, a.heads, a.head_dim), ("embed", "heads", None))
        key = Weight((d, a.kv_heads, a.head_dim), ("embed", "kv_heads", None))
        if a.shared_kv:
            return {"wq": queries, "wk": key} | out
        if a.value_head_dim == a.head_dim:  # one product for both
            both = Weight((d, 2, a.kv_heads, a.head_dim), ("embed", None, "kv_heads", None))
            return {"wq": queries, "wkv": both} | out
        value = Weight((d, a.kv_heads, a.value_head_dim), ("embed", "kv_heads", None))
        return {"wq": queries, "wk": key, "wv": value} | out
    wide = (a.heads, a.head_dim)
    if latent.q_rank:
        queries = {
            "wq_down": Weight((d, latent.q_rank), ("embed", None)),
            "wq_up": Weight((latent.q_rank, *wide), ("rank", "heads", None)),
        }
    else:
        queries = {"wq": Weight((d, *wide), ("embed", "heads", None))}
    return (
        queries
        | {
            "wkv_down": Weight((d, latent.kv_rank + latent.rope), ("embed", None)),
            "wkv_up": Weight((latent.kv_rank, a.heads, latent.nope + a.value_head_dim), ("rank", "heads", None)),
        }
        | out
    )


def _feedforward(f: FeedForward, d: int) -> dict[str, Weight]:
    if not f.experts:
        return _block("", d, f.d_ff, f.gated)
    result = {"router": Weight((d, f.experts), ("embed", None))}
    for name, w in _block("expert_", d, f.d_ff, f.gated).items():
        result[name] = Weight((f.experts, *w.shape), ("experts", *w.axes))
    if f.shared_experts:
        result |= _block("shared_", d, f.shared_experts * f.d_ff_shared, f.gated)
    return result


def _block(prefix: str, d: int, width: int, gated: bool) -> dict[str, Weight]:
    """Gate and up projection are one product, as keys and values are: fewer, larger matmuls."""
    up = Weight((d, 2, width), ("embed", None, "ff")) if gated else Weight((d, width), ("embed", "ff"))
    return {f"{prefix}{'gate_up' if gated else 'up'}": up, f"{prefix}down": Weight((width, d), ("ff", "embed"))}

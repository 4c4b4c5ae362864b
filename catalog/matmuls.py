"""The matrix products of one forward pass of a model on one device, with their dimensions.

A pass takes `batch` sequences of `seq` tokens: T = batch x seq tokens. With tensor parallelism `tp`, a device has
1/tp of the query heads, of every feed-forward width and of the vocabulary; what cannot be divided stays whole on
every device: the router, the down-projections of latent attention, and a key head that several devices share.
"""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil

from catalog.flops import seen_tokens
from catalog.models import Attention, FeedForward, Model
from errors import QuestionError


@dataclass(frozen=True, kw_only=True)
class Matmul:
    """`count` products of m x k by k x n, on one device, in one forward pass.

    `pairs_fraction`: part of the product that is asked for at all, as causality or a window leaves it; a kernel skips
    the rest, so it counts neither as useful nor as padding. `m` is not whole where it is a mean (tokens per expert).
    """

    name: str
    m: float
    k: int
    n: int
    count: int
    pairs_fraction: float = 1.0

    @property
    def useful_flops(self) -> float:
        """2 m k n x count x pairs_fraction: a multiply-add is two."""
        return 2.0 * self.m * self.k * self.n * self.count * self.pairs_fraction


def matmuls(model: Model, seq: int, tp: int = 1, batch: int = 1) -> tuple[Matmul, ...]:
    """Every matrix product of one forward pass over `batch` sequences of `seq` tokens, on one of `tp` devices.

    Alike products of several layers are one row; rows stand in the order in which the first layer uses them:

        q, k, v       T x d x (heads x head_dim) / tp; a device holds at least one whole key head
        q_a, q_b      latent attention: T x d x q_rank, then T x q_rank x (heads x head_dim) / tp
        kv_a, kv_b    T x d x (kv_rank + rope), then T x kv_rank x heads (nope + value) / tp
        qk_*, pv_*    seq x head_dim x seq and seq x seq x value_head_dim, once for each head and sequence
        o             T x (heads x value_head_dim) / tp x d
        mlp_up        T x d x d_ff / tp, twice where gated; mlp_down T x d_ff / tp x d
        router        T x d x experts; moe_up, moe_down, once per expert: T experts_per_token / experts tokens each
        shared_*      all shared experts as one block
        lm_head       T x d x vocab / tp (rounded up: the last device's part is filled up)

    `pairs_fraction` of qk and pv: full attention 1/2 (`_global`, and a window that spans the sequence), a sliding
    window W (seq W - W^2/2) / seq^2 (`_local`), chunks of C tokens the sum of C^2/2 / seq^2, the last chunk as long as
    it is (`_chunk`).
    Raises QuestionError where a dimension is below 1 or tp does not divide heads or a feed-forward width.
    """
    for name, value in (("seq", seq), ("tp", tp), ("batch", batch)):
        if value < 1:
            raise QuestionError(f"{name} {value}", expected="a whole number from 1")
    tokens = seq * batch
    rows: list[Matmul] = []
    for attention, feedforward in zip(model.attention, model.feedforward, strict=True):
        rows += _attention(attention, model.d_model, seq, tp, batch)
        rows += _feedforward(feedforward, model.d_model, tokens, tp)
    width = ceil(model.vocab / tp)
    rows.append(
        Matmul(name="lm_head", m=tokens, k=model.d_model, n=width, count=1, pairs_fraction=model.vocab / (tp * width))
    )
    alike: Counter[Matmul] = Counter()
    for row in rows:
        alike[replace(row, count=0)] += row.count
    return tuple(replace(row, count=count) for row, count in alike.items())


def valid_tp(model: Model, tp: int) -> bool:
    """Whether `tp` divides the heads and feed-forward widths of the model as `matmuls` wants it."""
    try:
        for a in set(model.attention):
            _key_heads(a, tp)
            _part(a.heads, tp, "heads")
        for f in set(model.feedforward):
            _part(f.d_ff, tp, "d_ff")
            _part(f.shared_experts * f.d_ff_shared, tp, "d_ff_shared")
    except QuestionError:
        return False
    return True


def pairs_fraction(attention: Attention, seq: int) -> tuple[str, float]:
    """(kind of span, part of the seq x seq pairs of query and key that attention wants)."""
    window = attention.window_tokens or seq
    part = seen_tokens(attention, seq) / seq
    if attention.span == "chunked":
        return "chunk", part
    return ("local" if attention.span == "sliding" and window < seq else "global"), part


def _attention(a: Attention, d: int, seq: int, tp: int, batch: int) -> list[Matmul]:
    tokens = seq * batch
    heads = _part(a.heads, tp, "heads")
    wide, values = heads * a.head_dim, heads * a.value_head_dim

    def one(name: str, k: int, n: int) -> Matmul:
        return Matmul(name=name, m=tokens, k=k, n=n, count=1)

    if a.kv_lora_rank is None:
        key_heads = _key_heads(a, tp)
        rows = [one("q", d, wide), one("k", d, key_heads * a.head_dim)]
        if not a.shared_kv:
            rows.append(one("v", d, key_heads * a.value_head_dim))
    else:
        rank = a.q_lora_rank
        rows = [one("q_a", d, rank), one("q_b", rank, wide)] if rank else [one("q", d, wide)]
        rows.append(one("kv_a", d, a.kv_lora_rank + (a.rope_head_dim or 0)))
        rows.append(one("kv_b", a.kv_lora_rank, heads * ((a.nope_head_dim or 0) + a.value_head_dim)))
    span, part = pairs_fraction(a, seq)
    times = heads * batch
    rows.append(Matmul(name=f"qk_{span}", m=seq, k=a.head_dim, n=seq, count=times, pairs_fraction=part))
    rows.append(Matmul(name=f"pv_{span}", m=seq, k=seq, n=a.value_head_dim, count=times, pairs_fraction=part))
    return [*rows, one("o", values, d)]


def _feedforward(f: FeedForward, d: int, tokens: int, tp: int) -> list[Matmul]:
    width = _part(f.d_ff, tp, "d_ff")
    if not f.experts:
        return _block("mlp", tokens, d, width, f.gated, 1)
    rows = [Matmul(name="router", m=tokens, k=d, n=f.experts, count=1)]
    rows += _block("moe", tokens * f.experts_per_token / f.experts, d, width, f.gated, f.experts)
    if f.shared_experts:
        shared = _part(f.shared_experts * f.d_ff_shared, tp, "d_ff_shared")
        rows += _block("shared", tokens, d, shared, f.gated, 1)
    return rows


def _block(name: str, m: float, d: int, width: int, gated: bool, count: int) -> list[Matmul]:
    return [
        Matmul(name=f"{name}_up", m=m, k=d, n=width, count=count * (2 if gated else 1)),
        Matmul(name=f"{name}_down", m=m, k=width, n=d, count=count),
    ]


def _key_heads(a: Attention, tp: int) -> int:
    """Key heads of one device: its share, or one that it has in common with others."""
    if a.kv_heads % tp and tp % a.kv_heads:
        raise QuestionError(
            f"{a.kv_heads} key heads do not divide over tp={tp}", expected="a divisor or a multiple of them"
        )
    return max(a.kv_heads // tp, 1)


def _part(whole: int, tp: int, name: str) -> int:
    if whole % tp:
        raise QuestionError(f"{name} of {whole} does not divide over tp={tp}", expected=f"a tp that divides {whole}")
    return whole // tp

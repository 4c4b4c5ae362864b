"""Attention of every kind of the catalogue, in JAX.

Shapes are written with B sequences, T tokens, D width, H query heads, K key heads, G = H / K. Imported by the worker
only.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from catalog.models import Attention, Latent
from simulators.tpu_compile.blocks import fitting_block, reach
from simulators.tpu_compile.layers import Placement, Weights, multiply, rotate


def attention(x: jax.Array, w: Weights, a: Attention, place: Placement, blockwise: bool) -> jax.Array:
    """[B, T, D] -> [B, T, D]."""
    q, k, v = _projected(x, w, a) if a.latent is None else _latent(x, w, a.latent)
    if a.kv_heads % place.axes.ways("heads"):  # each device needs the keys of its own query heads
        k, v = (jnp.repeat(one, a.heads // one.shape[2], axis=2) for one in (k, v))
    q = place.put(q, "batch", "seq", "heads", None)
    k, v = (place.put(one, "batch", None, "heads", None) for one in (k, v))
    mixed = (_in_blocks if blockwise else _at_once)(q, k, v, a, place)
    return place.put(multiply("wo", "bthv,hvd->btd", mixed, w), "batch", "seq", None)


def _projected(x: jax.Array, w: Weights, a: Attention) -> tuple[jax.Array, ...]:
    q = rotate(multiply("wq", "btd,dnh->btnh", x, w))
    if "wkv" in w:
        k, v = multiply("wkv", "btd,dcnh->cbtnh", x, w)
        return q, rotate(k), v
    k = rotate(multiply("wk", "btd,dnh->btnh", x, w))
    return q, k, k if a.shared_kv else multiply("wv", "btd,dnh->btnh", x, w)


def _latent(x: jax.Array, w: Weights, m: Latent) -> tuple[jax.Array, ...]:
    compressed = multiply("wq_down", "btd,dr->btr", x, w) if m.q_rank else x
    q = multiply("wq_up" if m.q_rank else "wq", "btr,rnh->btnh", compressed, w)
    kv = multiply("wkv_down", "btd,dr->btr", x, w)
    latent, position = kv[..., : m.kv_rank], rotate(kv[:, :, None, m.kv_rank :])
    q = jnp.concatenate([q[..., : m.nope], rotate(q[..., m.nope :])], axis=-1)
    plain, v = jnp.split(multiply("wkv_up", "btr,rnh->btnh", latent, w), [m.nope], axis=-1)
    shared = jnp.broadcast_to(position, (*plain.shape[:3], m.rope))
    return q, jnp.concatenate([plain, shared], axis=-1), v


def _at_once(q: jax.Array, k: jax.Array, v: jax.Array, a: Attention, place: Placement) -> jax.Array:
    """All scores of all heads together: q [B, T, H, h], k [B, T, K, h], v [B, T, K, v] -> [B, T, H, v]."""
    b, t, heads, width = q.shape
    grouped = q.reshape(b, 1, t, k.shape[2], heads // k.shape[2], width)
    mixed = mix(Cut(a, t, t), grouped, k, v, jnp.arange(t)[None], jnp.zeros((), jnp.int32))
    return mixed.reshape(b, t, heads, v.shape[-1])


def _in_blocks(q: jax.Array, k: jax.Array, v: jax.Array, a: Attention, place: Placement) -> jax.Array:
    """The same, one sequence, one key head and one block of queries after the other on each device.

    A block meets every key of the sequence, masked, or with a window only the stretch of keys that it can reach.
    Devices work side by side: of each axis that the mesh cuts into W parts, W stretches are taken at once.
    """
    b, t, heads, width = q.shape
    kv_heads, value_width = k.shape[2], v.shape[-1]
    per_key = heads // kv_heads
    side_b, side_t, side_k = (place.axes.ways(name) for name in ("batch", "seq", "heads"))
    block = fitting_block(a, per_key, t, t // side_t)
    blocks, turns_b, turns_k = t // side_t // block, b // side_b, kv_heads // side_k
    cut = Cut(a, block, reach(a, t, block))
    begins = jnp.arange(side_t) * (t // side_t)

    def in_turns(x: jax.Array) -> jax.Array:
        """[B, T, K, h] -> [turns, side_b, T, side_k, h]"""
        x = x.reshape(side_b, turns_b, t, side_k, turns_k, x.shape[-1])
        x = x.transpose(1, 4, 0, 2, 3, 5).reshape(turns_b * turns_k, side_b, t, side_k, x.shape[-1])
        return place.put(x, None, "batch", None, "heads", None)

    q = q.reshape(side_b, turns_b, side_t, blocks, block, side_k, turns_k, per_key, width)
    q = q.transpose(1, 6, 3, 0, 2, 4, 5, 7, 8)  # [turns_b, turns_k, blocks, side_b, side_t, block, side_k, G, h]
    q = q.reshape(turns_b * turns_k, *q.shape[2:])
    q = place.put(q, None, None, "batch", "seq", None, "heads", None, None)

    def one_head(_: None, turn: tuple[jax.Array, ...]) -> tuple[None, jax.Array]:
        queries, keys, values = turn

        def one_block(_: None, step: tuple[jax.Array, jax.Array]) -> tuple[None, jax.Array]:
            mine, i = step
            at = begins[:, None] + i * block + jnp.arange(block)  # [side_t, block]
            return None, mix(cut, mine, keys, values, at, i)

        return None, jax.lax.scan(one_block, None, (queries, jnp.arange(blocks)))[1]

    _, mixed = jax.lax.scan(one_head, None, (q, in_turns(k), in_turns(v)))
    mixed = mixed.reshape(turns_b, turns_k, *mixed.shape[1:]).transpose(3, 0, 4, 2, 5, 6, 1, 7, 8)
    return place.put(mixed.reshape(b, t, heads, value_width), "batch", "seq", "heads", None)


@dataclass(frozen=True)
class Cut:
    """Blocks of `block` queries, each of which meets `length` keys of the sequence."""

    attention: Attention
    block: int
    length: int

    def near(self, x: jax.Array, first: jax.Array) -> jax.Array:
        """The keys or values [B, T, K, h] that a block meets, from position `first` on."""
        return x if self.length == x.shape[1] else jax.lax.dynamic_slice_in_dim(x, first, self.length, axis=1)

    def back(self, x: jax.Array, first: jax.Array, tokens: int) -> jax.Array:
        """The gradient of `near`."""
        whole = jnp.zeros((x.shape[0], tokens, *x.shape[2:]), x.dtype)
        return x if self.length == tokens else jax.lax.dynamic_update_slice_in_dim(whole, x, first, axis=1)

    def scores(self, q: jax.Array, k: jax.Array, at: jax.Array, first: jax.Array) -> jax.Array:
        """Scaled and masked, [B, K, P, G, Q, S] in float32."""
        with jax.named_scope("scores"):
            scores = jnp.einsum("bpqkgh,bskh->bkpgqs", q, k, preferred_element_type=jnp.float32)
        seen = _seen(self.attention, at[:, :, None], first + jnp.arange(self.length))  # [P, Q, S]
        return jnp.where(seen[None, None, :, None], scores * q.shape[-1] ** -0.5, -1e30)


def _mix(cut: Cut, q: jax.Array, k: jax.Array, v: jax.Array, at: jax.Array, i: jax.Array) -> jax.Array:
    """Values weighted by the softmax of masked scores, for block `i` of queries.

    q [B, P, Q, K, G, h] with positions `at` [P, Q], k [B, T, K, h], v [B, T, K, v] -> [B, P, Q, K, G, v]. As
    hand-written kernels do it, nothing but the result and one number for each query is kept for the backward pass,
    which makes the scores again (Dao et al., FlashAttention, 2022).
    """
    return _mix_forward(cut, q, k, v, at, i)[0]


def _mix_forward(
    cut: Cut, q: jax.Array, k: jax.Array, v: jax.Array, at: jax.Array, i: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    first = _first_key(cut, i, k.shape[1])
    scores = cut.scores(q, cut.near(k, first), at, first)
    top = jnp.max(scores, axis=-1, keepdims=True)
    weights = jnp.exp(scores - top)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    with jax.named_scope("values"):
        mixed = jnp.einsum("bkpgqs,bskv->bkpgqv", weights.astype(v.dtype), cut.near(v, first))
    mixed = jnp.transpose(mixed / total, (0, 2, 4, 1, 3, 5)).astype(q.dtype)
    return mixed, (q, k, v, at, i, mixed, top + jnp.log(total))


def _mix_backward(cut: Cut, kept: tuple[jax.Array, ...], d: jax.Array) -> tuple[jax.Array | None, ...]:
    q, k, v, at, i, mixed, log_total = kept
    first, tokens = _first_key(cut, i, k.shape[1]), k.shape[1]
    near_k, near_v = cut.near(k, first), cut.near(v, first)
    weights = jnp.exp(cut.scores(q, near_k, at, first) - log_total)
    with jax.named_scope("values"):
        d_weights = jnp.einsum("bpqkgv,bskv->bkpgqs", d, near_v, preferred_element_type=jnp.float32)
        d_v = jnp.einsum("bkpgqs,bpqkgv->bskv", weights.astype(v.dtype), d)
    mean = jnp.sum(d.astype(jnp.float32) * mixed.astype(jnp.float32), axis=-1)  # [B, P, Q, K, G]
    mean = jnp.transpose(mean, (0, 3, 1, 4, 2))[..., None]
    d_scores = (weights * (d_weights - mean) * q.shape[-1] ** -0.5).astype(q.dtype)
    with jax.named_scope("scores"):
        d_q = jnp.einsum("bkpgqs,bskh->bpqkgh", d_scores, near_k)
        d_k = jnp.einsum("bkpgqs,bpqkgh->bskh", d_scores, q)
    return d_q, cut.back(d_k, first, tokens), cut.back(d_v, first, tokens), None, None


mix = jax.custom_vjp(_mix, nondiff_argnums=(0,))
mix.defvjp(_mix_forward, _mix_backward)


def _first_key(cut: Cut, i: jax.Array, tokens: int) -> jax.Array:
    """The first of the keys that block `i` of queries meets."""
    if cut.length == tokens:
        return jnp.zeros((), jnp.int32)
    begin = i * cut.block
    if cut.attention.span == "chunked":
        first = begin // cut.attention.window * cut.attention.window
    else:
        first = begin + cut.block - cut.length
    return jnp.clip(first, 0, tokens - cut.length)


def _seen(a: Attention, query: jax.Array, key: jax.Array) -> jax.Array:
    causal = key <= query
    if a.span == "sliding":
        return causal & (query - key < a.window)
    if a.span == "chunked":
        return causal & (query // a.window == key // a.window)
    return causal

"""Parts of a decoder layer in JAX: norms, rotary positions, dense and routed feed-forward blocks.

Shapes are written with B sequences, T tokens, D width, E experts, C slots of an expert. Imported by the worker only.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from catalog.models import FeedForward
from simulators.tpu_compile.mesh import MeshAxes

ROPE_BASE = 10_000.0
EPSILON = 1e-6
Weights = dict[str, Any]


@dataclass(frozen=True)
class Placement:
    """Where values lie. Without a mesh everything stays on one device and constraints do nothing."""

    axes: MeshAxes
    mesh: Mesh | None = None

    def spec(self, names: tuple[str | None, ...]) -> PartitionSpec:
        return PartitionSpec(*(self.axes.sharding(name) or None for name in names))

    def put(self, x: jax.Array, *names: str | None) -> jax.Array:
        """`x` with its axes, named as in `mesh.py`, sharded as they are there."""
        if self.mesh is None:
            return x
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, self.spec(names)))


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """RMS norm over the width, in float32."""
    wide = x.astype(jnp.float32)
    rms = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + EPSILON)
    return (wide * rms * scale.astype(jnp.float32)).astype(x.dtype)


def rotate(x: jax.Array) -> jax.Array:
    """Rotary positions over the last axis of [B, T, heads, width]."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * ROPE_BASE ** (-jnp.arange(half) / half)
    cos, sin = (f(angle)[None, :, None, :].astype(jnp.float32) for f in (jnp.cos, jnp.sin))
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)


def multiply(name: str, how: str, x: jax.Array, w: Weights, **more: Any) -> jax.Array:
    """`einsum(how, x, w[name])` under the weight's name, so that profiles and tables can tell the products apart."""
    with jax.named_scope(name):
        return jnp.einsum(how, x, w[name], **more)


def feedforward(x: jax.Array, w: Weights, f: FeedForward, place: Placement) -> jax.Array:
    """[B, T, D] -> [B, T, D]."""
    if not f.experts:
        return _dense(x, w, "", f, place)
    y = _routed(x, w, f, place)
    return y + _dense(x, w, "shared_", f, place) if f.shared_experts else y


def _dense(x: jax.Array, w: Weights, prefix: str, f: FeedForward, place: Placement) -> jax.Array:
    if f.gated:
        both = place.put(multiply(f"{prefix}gate_up", "btd,dcf->cbtf", x, w), None, "batch", "seq", "ff")
        hidden = jax.nn.silu(both[0]) * both[1]
    else:
        hidden = jax.nn.gelu(place.put(multiply(f"{prefix}up", "btd,df->btf", x, w), "batch", "seq", "ff"))
    return place.put(multiply(f"{prefix}down", "btf,fd->btd", hidden, w), "batch", "seq", None)


def slots_of(tokens: int, f: FeedForward) -> int:
    """Slots of each expert for one sequence: every choice has one where the router is balanced; the rest is dropped."""
    return -(-tokens * f.experts_per_token // f.experts)


def _routed(x: jax.Array, w: Weights, f: FeedForward, place: Placement) -> jax.Array:
    """Each expert takes from each sequence the first C choices that fell on it (capacity factor 1)."""
    b, t, d = x.shape
    slots = slots_of(t, f)
    logits = multiply("router", "btd,de->bte", x, w, preferred_element_type=jnp.float32)
    gates, chosen = _top(logits, f.experts_per_token)  # [B, T, k]
    gates = jax.nn.softmax(gates, axis=-1).astype(x.dtype)
    slot, token = jax.vmap(lambda c: _dispatch(c, f.experts, slots))(chosen)  # [B, T, k], [B, E * C]
    routed = jnp.take_along_axis(x, token[..., None], axis=1).reshape(b, f.experts, slots, d)
    routed = place.put(routed, "expert_batch", "experts", None, None)  # with an expert axis: the all-to-all
    if f.gated:
        both = multiply("expert_gate_up", "becd,edgf->gbecf", routed, w)
        both = place.put(both, None, "expert_batch", "experts", None, "ff")
        hidden = jax.nn.silu(both[0]) * both[1]
    else:
        hidden = multiply("expert_up", "becd,edf->becf", routed, w)
        hidden = jax.nn.gelu(place.put(hidden, "expert_batch", "experts", None, "ff"))
    out = multiply("expert_down", "becf,efd->becd", hidden, w)
    out = place.put(out, "expert_batch", "experts", None, None).reshape(b, f.experts * slots, d)
    out = place.put(out, "batch", None, None)
    back = jax.vmap(lambda o, i: o.at[i].get(mode="fill", fill_value=0))(out, slot)  # [B, T, k, D]
    return place.put(jnp.sum(back * gates[..., None], axis=2), "batch", "seq", None)


def _top(logits: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The `count` largest of the last axis and their places; a loop, because sorts compile for many seconds."""

    def one(left: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        at = jnp.argmax(left, axis=-1)
        taken = jnp.arange(left.shape[-1]) == at[..., None]
        return jnp.where(taken, -jnp.inf, left), (jnp.max(left, axis=-1), at)

    _, (values, places) = jax.lax.scan(one, logits, None, length=count)
    return jnp.moveaxis(values, 0, -1), jnp.moveaxis(places, 0, -1)


def _dispatch(chosen: jax.Array, experts: int, slots: int) -> tuple[jax.Array, jax.Array]:
    """Slots of one sequence's choices, and the token in each slot.

    chosen [T, k] -> slot [T, k] (experts x slots where the expert is full), token [experts x slots] (0 where empty).
    """
    flat = chosen.reshape(-1)
    mine = flat[:, None] == jnp.arange(experts)
    rank = jnp.sum(jnp.cumsum(mine, axis=0, dtype=jnp.int32) * mine, axis=1) - 1  # of those that chose the same
    slot = jnp.where(rank < slots, flat * slots + rank, experts * slots)
    tokens = jnp.arange(flat.size, dtype=jnp.int32) // chosen.shape[1]
    token = jnp.zeros(experts * slots, jnp.int32).at[slot].set(tokens, mode="drop")
    return slot.reshape(chosen.shape), token

"""The training step that is compiled: forward, backward and the optimiser's update of a decoder of the catalogue.

Layers of one kind are one `lax.scan` over stacked weights: the compiler sees each kind once and the trip count says how
often it runs, while memory is that of all layers. Layers of several kinds run kind after kind, not in their own order;
shapes, FLOPs and bytes are the same. Norms have scales; biases, dropout and prediction layers are left out.
Imported by the worker only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from catalog.models import Model
from simulators.tpu_compile.attention import attention
from simulators.tpu_compile.layers import Placement, Weights, feedforward, multiply, norm
from simulators.tpu_compile.weights import Kind, Weight, kinds, layer_weights, outer_weights

LEARNING_RATE, BETA_1, BETA_2, EPSILON, WEIGHT_DECAY = 3e-4, 0.9, 0.95, 1e-8, 0.1
WEIGHT_TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
REMAT: dict[str, Callable[..., Any]] = {
    "full": partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable),
    "dots": partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable),
    "none": lambda layer: layer,
}


@dataclass(frozen=True)
class Program:
    """`blockwise`: attention in blocks of queries. `weights`: type of weights and optimiser state, f32 or bf16."""

    model: Model
    place: Placement
    remat: str = "full"
    blockwise: bool = True
    weights: str = "f32"
    optimizer: str = "adamw"

    def shapes(self) -> dict[str, Any]:
        """The weights as shapes with their shardings: nothing is allocated. Layers of a kind are stacked in front."""
        model = self.model
        shapes: dict[str, Any] = {name: self._shape(w) for name, w in outer_weights(model).items()}
        shapes["layers"] = {
            kind.name: {
                name: self._shape(Weight((kind.layers, *w.shape), (None, *w.axes)))
                for name, w in layer_weights(kind, model.d_model).items()
            }
            for kind in kinds(model)
        }
        return shapes

    def state_shapes(self) -> dict[str, Any]:
        """Weights and what the optimiser keeps, as shapes."""
        weights = self.shapes()
        if self.optimizer == "sgd":
            return {"params": weights}
        count = self._shape(Weight((), ()), jnp.int32)
        return {"params": weights, "mean": weights, "square": weights, "count": count}

    def batch_shapes(self, batch: int, seq: int) -> jax.ShapeDtypeStruct:
        """Token numbers [batch, seq]; the last token of a sequence has no target."""
        return self._shape(Weight((batch, seq), ("batch", "seq")), jnp.int32)

    def _shape(self, weight: Weight, dtype: Any = None) -> jax.ShapeDtypeStruct:
        mesh, axes = self.place.mesh, list(weight.axes)
        for i, (size, name) in enumerate(zip(weight.shape, weight.axes, strict=True)):
            if name == "kv_heads" and size % self.place.axes.ways(name):
                axes[i] = None  # fewer key heads than devices of the axis: each holds them all
        sharding = NamedSharding(mesh, self.place.spec(tuple(axes))) if mesh is not None else None
        return jax.ShapeDtypeStruct(weight.shape, dtype or WEIGHT_TYPES[self.weights], sharding=sharding)

    def loss(self, params: Weights, tokens: jax.Array) -> jax.Array:
        """Mean cross entropy of the next token; tokens [B, T]."""
        place = self.place
        x = place.put(params["embedding"].astype(jnp.bfloat16)[tokens], "batch", "seq", None)
        for kind in kinds(self.model):
            layer = REMAT[self.remat](partial(self._layer, kind))
            with jax.named_scope(kind.name):
                x, _ = jax.lax.scan(layer, x, params["layers"][kind.name])
        x = norm(x, params["final_norm"])
        table = params["embedding"].T if self.model.tied_embeddings else params["lm_head"]
        head = {"lm_head": table.astype(jnp.bfloat16)}
        logits = multiply("lm_head", "btd,dv->btv", x, head, preferred_element_type=jnp.float32)
        return _cross_entropy(place.put(logits, "batch", "seq", "vocab"), tokens)

    def _layer(self, kind: Kind, x: jax.Array, w: Weights) -> tuple[jax.Array, None]:
        w = {name: value.astype(jnp.bfloat16) for name, value in w.items()}
        normed = norm(x, w["attention_norm"])
        with jax.named_scope("attention"):
            x = x + attention(normed, w, kind.attention, self.place, self.blockwise)
        with jax.named_scope("feedforward"):
            x = x + feedforward(norm(x, w["feedforward_norm"]), w, kind.feedforward, self.place)
        return self.place.put(x, "batch", "seq", None), None

    def step(self, state: dict[str, Any], tokens: jax.Array) -> tuple[dict[str, Any], jax.Array]:
        """One training step: (new state, loss). The state's memory is used again for the new one."""
        loss, gradients = jax.value_and_grad(self.loss)(state["params"], tokens)
        with jax.named_scope("optimizer"):
            return (_sgd if self.optimizer == "sgd" else _adamw)(state, gradients), loss


def _cross_entropy(logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """-log p of each next token, averaged; float32 [B, T, V]. A comparison instead of a gather keeps V sharded."""
    targets = jnp.roll(tokens, -1, axis=1)
    top = jax.nn.logsumexp(logits, axis=-1)
    right = jnp.sum(jnp.where(targets[..., None] == jnp.arange(logits.shape[-1]), logits, 0.0), axis=-1)
    counted = jnp.arange(tokens.shape[1]) < tokens.shape[1] - 1
    return jnp.sum((top - right) * counted) / (tokens.shape[0] * (tokens.shape[1] - 1))


def _sgd(state: dict[str, Any], gradients: Weights) -> dict[str, Any]:
    def one(p: jax.Array, g: jax.Array) -> jax.Array:
        return (p - LEARNING_RATE * g.astype(jnp.float32)).astype(p.dtype)

    return {"params": jax.tree.map(one, state["params"], gradients)}


def _adamw(state: dict[str, Any], gradients: Weights) -> dict[str, Any]:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019), reckoned in float32."""
    count = state["count"] + 1
    t = count.astype(jnp.float32)

    def one(p: jax.Array, m: jax.Array, v: jax.Array, g: jax.Array) -> tuple[jax.Array, ...]:
        p32, m32, v32, g32 = (x.astype(jnp.float32) for x in (p, m, v, g))
        m32 = BETA_1 * m32 + (1 - BETA_1) * g32
        v32 = BETA_2 * v32 + (1 - BETA_2) * g32 * g32
        update = m32 / (1 - BETA_1**t) / (jnp.sqrt(v32 / (1 - BETA_2**t)) + EPSILON)
        p32 = p32 - LEARNING_RATE * (update + WEIGHT_DECAY * p32)
        return p32.astype(p.dtype), m32.astype(m.dtype), v32.astype(v.dtype)

    new = jax.tree.map(one, state["params"], state["mean"], state["square"], gradients)
    params, mean, square = jax.tree.transpose(jax.tree.structure(gradients), jax.tree.structure((0, 0, 0)), new)
    return {"params": params, "mean": mean, "square": square, "count": count}

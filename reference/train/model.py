"""A decoder transformer in plain JAX, its sharding and its Adam."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from reference.train.plan import ModelDims

BATCH = P("data", None)


def parameter_shapes(dims: ModelDims) -> dict:
    """{name: (shape, how it is split over the mesh)}. Weights of all layers are stacked, and the norms have none:
    each array costs an all-reduce of its own for its gradient."""
    n, d, h, e, f = dims.layers, dims.emb_dim, dims.heads, dims.head_dim, dims.mlp_dim
    return {
        "embedding": ((dims.vocab_size, d), P()),
        "position": ((dims.seq_len, d), P()),
        "qkv": ((n, d, 3, h, e), P(None, None, None, "model", None)),
        "out": ((n, h, e, d), P(None, "model", None, None)),
        "wi": ((n, d, f), P(None, None, "model")),
        "wo": ((n, f, d), P(None, "model", None)),
        "unembedding": ((d, dims.vocab_size), P(None, "model")),
    }


def state_shardings(dims: ModelDims, mesh: Mesh) -> dict:
    """Where each leaf of the training state lives: weights and both Adam moments alike, the step count everywhere."""
    weights = {name: NamedSharding(mesh, spec) for name, (_, spec) in parameter_shapes(dims).items()}
    return {"params": weights, "m": weights, "v": weights, "step": NamedSharding(mesh, P())}


def init_state(dims: ModelDims, seed: int, mesh: Mesh) -> dict:
    """A fresh state on the mesh: normal weights of deviation 0.02, moments 0."""
    shardings = state_shardings(dims, mesh)

    def place(value: np.ndarray, sharding: NamedSharding):
        return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])

    rng = np.random.default_rng(seed)
    params = {name: rng.normal(0.0, 0.02, shape) for name, (shape, _) in parameter_shapes(dims).items()}
    state = {"params": params, "m": jax.tree.map(np.zeros_like, params), "v": jax.tree.map(np.zeros_like, params)}
    state = jax.tree.map(lambda x: x.astype(np.float32), state) | {"step": np.zeros((), np.int32)}
    return jax.tree.map(place, state, shardings)


def abstract_state(dims: ModelDims, mesh: Mesh) -> dict:
    """The state's shapes, types and places, for a restore."""
    weights = {
        name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
        for name, (shape, spec) in parameter_shapes(dims).items()
    }
    step = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, P()))
    return {"params": weights, "m": weights, "v": weights, "step": step}


def _norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def logits_of(params: dict, tokens, dims: ModelDims):
    """Next-byte logits `[batch, time, vocab]` of `tokens` `[batch, time]`."""
    x = params["embedding"][tokens] + params["position"]
    causal = jnp.tril(jnp.ones((dims.seq_len, dims.seq_len), bool))
    for layer in range(dims.layers):  # unrolled, so that each op of each layer has its own name in a profile
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dshe->btshe", _norm(x), params["qkv"][layer]), 2, 0)
        scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / dims.head_dim**0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        x = x + jnp.einsum("bqhe,hed->bqd", jnp.einsum("bhqk,bkhe->bqhe", weights, v), params["out"][layer])
        x = x + jax.nn.gelu(_norm(x) @ params["wi"][layer]) @ params["wo"][layer]
    return _norm(x) @ params["unembedding"]


def loss_of(params: dict, inputs, targets, dims: ModelDims):
    """Mean cross-entropy, nats per byte."""
    logits = logits_of(params, inputs, dims)
    hit = jnp.sum(logits * jax.nn.one_hot(targets, dims.vocab_size), axis=-1)
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - hit)


def train_step(state: dict, inputs, targets, *, dims: ModelDims, learning_rate: float, loss_of: Callable = loss_of):
    """One Adam step (b1 0.9, b2 0.95, no decay): the new state and the loss before it."""
    loss, grads = jax.value_and_grad(loss_of)(state["params"], inputs, targets, dims)
    step = state["step"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, state["v"], grads)
    rate = learning_rate * jnp.sqrt(1 - 0.95**step) / (1 - 0.9**step)
    params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), state["params"], m, v)
    return {"params": params, "m": m, "v": v, "step": step}, loss


def compiled_step(dims: ModelDims, mesh: Mesh, learning_rate: float, loss_of: Callable = loss_of):
    """`train_step`, jitted over the mesh; the old state is donated."""
    state, batch = state_shardings(dims, mesh), NamedSharding(mesh, BATCH)
    return jax.jit(
        partial(train_step, dims=dims, learning_rate=learning_rate, loss_of=loss_of),
        in_shardings=(state, batch, batch),
        out_shardings=(state, NamedSharding(mesh, P())),
        donate_argnums=0,
    )


def parameters(dims: ModelDims) -> int:
    """Number of weights."""
    return sum(math.prod(shape) for shape, _ in parameter_shapes(dims).values())

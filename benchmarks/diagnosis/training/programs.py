"""The program of a step as the case has it: the reference's, or one that a fault made worse."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.training.sizes import RATE, SIZES
from reference.train import model
from reference.train.plan import ModelDims

Step = Callable[..., tuple[Any, Any]]
PADDED = 256
"""What a vocabulary is rounded up to a multiple of, once for each of the fault's amount."""


def dims_of(case: Case) -> ModelDims:
    """The sizes that the program computes with."""
    dims = SIZES[case.sizes]
    for p in case.planted:
        if p.cause == "dims_padding":
            dims = dataclasses.replace(dims, vocab_size=dims.vocab_size + PADDED * p.amount)
    return dims


def wide(case: Case) -> bool:
    return any(p.cause == "precision" for p in case.planted)


def initial(case: Case, mesh: Mesh) -> dict:
    """The state to begin with: float32, or float64 where that is the fault."""
    state = model.init_state(dims_of(case), case.seed % 1000, mesh)
    if not wide(case):
        return state
    widen = jax.jit(lambda tree: jax.tree.map(lambda x: x.astype(jnp.float64), tree))
    return {"step": state["step"]} | widen({k: v for k, v in state.items() if k != "step"})


def steps_of(case: Case, mesh: Mesh) -> Callable[[int], Step]:
    """Which program runs in a step, by its number."""
    dims = dims_of(case)
    plain = model.compiled_step(dims, mesh, RATE)
    for p in case.planted:
        if p.cause == "recomputation":
            again = model.compiled_step(dims, mesh, RATE, _loss_of)
            return lambda step: again
        if p.cause == "recompile_constant":
            # the rate follows a schedule that Python computes, so that each value is a program of its own
            programs = {s: model.compiled_step(dims, mesh, RATE * (1 - 1e-4 * (i + 1))) for i, s in enumerate(p.steps)}
            return lambda step: programs.get(step, plain)
        if p.cause == "excess_collectives":
            sync = _sync(mesh, p.amount)
            return lambda step: partial(_step_and_sync, plain, sync)
    return lambda step: plain


def rows_of(case: Case, step: int) -> int:
    """How many more rows than usual each process has in this step: dynamic shapes, each new to the compiler."""
    for p in case.planted:
        if p.cause == "recompile_shape" and p.hits(step):
            return 1 + p.steps.index(step)
    return 0


def padding_of(case: Case) -> int:
    """Empty rows for each real one."""
    return next((p.amount for p in case.planted if p.cause == "batch_padding"), 0)


def _loss_of(params, inputs, targets, dims: ModelDims):
    """The loss, whose forward pass runs anew as a whole in the backward pass, and there once more in each layer."""
    causal = jnp.tril(jnp.ones((dims.seq_len, dims.seq_len), bool))

    @jax.checkpoint
    def layer(x, qkv, out, wi, wo):
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dshe->btshe", model._norm(x), qkv), 2, 0)
        scores = jnp.einsum("bqhe,bkhe->bhqk", q, k) / dims.head_dim**0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        x = x + jnp.einsum("bqhe,hed->bqd", jnp.einsum("bhqk,bkhe->bqhe", weights, v), out)
        return x + jax.nn.gelu(model._norm(x) @ wi) @ wo

    @jax.checkpoint
    def loss(params, inputs, targets):
        x = params["embedding"][inputs] + params["position"]
        for n in range(dims.layers):
            x = layer(x, *(params[name][n] for name in ("qkv", "out", "wi", "wo")))
        logits = model._norm(x) @ params["unembedding"]
        hit = jnp.sum(logits * jax.nn.one_hot(targets, dims.vocab_size), axis=-1)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - hit)

    return loss(params, inputs, targets)


def _sync(mesh: Mesh, megabytes: int) -> Callable[[Any], Any]:
    """An all-reduce of so many megabytes over all processes, that nothing needs."""
    everywhere = NamedSharding(mesh, P(("data", "model")))
    count = mesh.devices.size
    local = np.ones((1, megabytes << 18), np.float32)
    array = jax.make_array_from_process_local_data(everywhere, local, (count, megabytes << 18))
    reduce = jax.jit(lambda x: jnp.sum(x, axis=0), out_shardings=NamedSharding(mesh, P()))
    return lambda _: reduce(array)


def _step_and_sync(plain: Step, sync: Callable[[Any], Any], state: Any, *batch: Any) -> tuple[Any, Any]:
    state, loss = plain(state, *batch)
    jax.block_until_ready(sync(loss))
    return state, loss

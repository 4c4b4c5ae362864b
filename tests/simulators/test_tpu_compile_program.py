"""The training step that is compiled, with real numbers on a CPU: its maths, its FLOPs, and that it learns."""

import json
import os
import subprocess
import sys
from functools import partial
from math import prod
from pathlib import Path

import numpy as np
import pytest

from catalog import models, parameters
from tests.simulators import tiny

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'chipledger[tpu]'")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax.numpy as jnp  # noqa: E402

from simulators.tpu_compile import attention, blocks, layers  # noqa: E402
from simulators.tpu_compile.layers import Placement  # noqa: E402
from simulators.tpu_compile.matmuls import matmuls  # noqa: E402
from simulators.tpu_compile.mesh import MeshAxes  # noqa: E402
from simulators.tpu_compile.program import Program  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ALONE = Placement(MeshAxes(()))
SEQ = 64


def quick(function):
    """Jitted without the optimisations that cost most of the compile time on a CPU."""
    options = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    }
    return jax.jit(function, compiler_options=options)


def program(model, **given) -> Program:
    return Program(model, ALONE, **given)


@pytest.fixture(autouse=True)
def small_blocks(request, monkeypatch):
    """Several blocks also in short sequences."""
    if "catalogue" not in request.node.name:
        monkeypatch.setattr(blocks, "MOST_QUERIES", 16)
        monkeypatch.setattr(blocks, "LEAST_QUERIES", 8)


def started(p: Program, seed: int = 0) -> dict:
    """State with random weights (norm scales 1) and an empty optimiser: one program, not one for each shape."""
    shapes = p.state_shapes()

    def one(key, path, leaf):
        name = path[-1].key
        if leaf.ndim == 0 or "params" not in path[0].key:
            return jnp.zeros(leaf.shape, leaf.dtype)
        if name.endswith("norm"):
            return jnp.ones(leaf.shape, leaf.dtype)
        folded = jax.random.fold_in(key, hash(str(path)) % 1000)
        return (jax.random.normal(folded, leaf.shape) * 0.05).astype(leaf.dtype)

    return quick(lambda key: jax.tree_util.tree_map_with_path(partial(one, key), shapes))(jax.random.key(seed))


def tokens(seed: int = 0, batch: int = 4) -> jax.Array:
    """Sequences that count upwards from a random start: learnable."""
    start = np.random.default_rng(seed).integers(0, 128, (batch, 1))
    return jnp.asarray((start + 3 * np.arange(SEQ)) % 128, jnp.int32)


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_it_learns(kind):
    p = program(tiny.MODELS[kind], remat="full" if kind != "dense" else "dots")
    state, step, losses = started(p), quick(p.step), []
    for i in range(12):
        state, loss = step(state, tokens(i % 2))
        losses.append(float(loss))
    assert losses[0] == pytest.approx(np.log(128), rel=0.05)  # it knows nothing
    assert losses[-1] < losses[0] - 0.15 and all(np.isfinite(losses))


@pytest.mark.parametrize("kind, given", [("dense", {"remat": "full"}), ("windows", {"remat": "dots"})])
def test_options_change_no_number_but_rounding(kind, given):
    """Remat and blocks change what is kept and when, not what is computed."""
    model = tiny.MODELS[kind]
    state = started(program(model))
    plain = program(model, blockwise=False, remat="none")
    loss, grads = quick(jax.value_and_grad(plain.loss))(state["params"], tokens())
    other, other_grads = quick(jax.value_and_grad(program(model, **given).loss))(state["params"], tokens())
    assert float(other) == pytest.approx(float(loss), rel=1e-3)
    for a, b in zip(jax.tree.leaves(grads), jax.tree.leaves(other_grads), strict=True):
        assert float(jnp.linalg.norm(a - b)) <= 0.05 * float(jnp.linalg.norm(a)) + 1e-6


@pytest.mark.parametrize("a", [tiny.FULL, tiny.SLIDING, tiny.CHUNKED], ids=lambda a: a.name)
@pytest.mark.parametrize("axes", [(), (("data", 2), ("model", 2)), (("context", 4),)], ids=str)
@pytest.mark.parametrize("how", [attention._in_blocks, attention._at_once])
def test_attention_is_attention(a, how, axes):
    """Also where devices would take heads, sequences and stretches of a sequence side by side."""
    if a.span != "full" and "context" in dict(axes):
        return  # windows are not compiled with a context axis
    rng = np.random.default_rng(1)
    q, weight = (rng.standard_normal((2, SEQ, a.heads, a.head_dim)).astype(np.float32) for _ in range(2))
    k, v = (rng.standard_normal((2, SEQ, a.kv_heads, a.head_dim)).astype(np.float32) for _ in range(2))
    place = Placement(MeshAxes(axes))
    q, k, v = map(jnp.asarray, (q, k, v))
    i, j = np.arange(SEQ)[:, None], np.arange(SEQ)[None]
    seen = j <= i
    if a.span == "sliding":
        seen &= i - j < a.window_tokens
    if a.span == "chunked":
        seen &= i // a.window_tokens == j // a.window_tokens

    def plain(q, k, v):
        k, v = (jnp.repeat(x, a.heads // a.kv_heads, axis=2) for x in (k, v))
        scores = jnp.where(seen, jnp.einsum("bqnh,bknh->bnqk", q, k) / np.sqrt(a.head_dim), -jnp.inf)
        return jnp.einsum("bnqk,bknh->bqnh", jax.nn.softmax(scores), v)

    def with_gradients(f):
        def weighed(q, k, v):
            value = f(q, k, v)
            return jnp.sum(value * weight), value

        (_, value), gradients = quick(jax.value_and_grad(weighed, argnums=(0, 1, 2), has_aux=True))(q, k, v)
        return value, gradients

    got, ours = with_gradients(lambda *x: how(*x, a, place))
    expected, theirs = with_gradients(plain)
    np.testing.assert_allclose(got, expected, atol=2e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)


def test_experts_take_the_first_tokens_that_choose_them():
    f, d = tiny.MOE, 64
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, SEQ, d)).astype(np.float32)
    w = {
        "router": rng.standard_normal((d, f.experts)) * 0.1,
        "expert_gate_up": rng.standard_normal((f.experts, d, 2, f.d_ff)) * 0.1,
        "expert_down": rng.standard_normal((f.experts, f.d_ff, d)) * 0.1,
    }
    w = {name: value.astype(np.float32) for name, value in w.items()}
    got = quick(lambda x, w: layers._routed(x, w, f, ALONE))(jnp.asarray(x), {n: jnp.asarray(v) for n, v in w.items()})
    expected, slots, dropped = np.zeros_like(x), SEQ * f.experts_per_token // f.experts, 0
    for b in range(2):
        taken = [0] * f.experts
        for t in range(SEQ):
            logits = x[b, t] @ w["router"]
            chosen = np.argsort(-logits)[: f.experts_per_token]
            gates = np.exp(logits[chosen]) / np.exp(logits[chosen]).sum()
            for e, gate in zip(chosen, gates, strict=True):
                if taken[e] == slots:
                    dropped += 1
                    continue
                taken[e] += 1
                gated, up = (x[b, t] @ w["expert_gate_up"][e][:, i] for i in (0, 1))
                expected[b, t] += gate * ((gated / (1 + np.exp(-gated)) * up) @ w["expert_down"][e])
    assert dropped  # the case is there
    np.testing.assert_allclose(got, expected, atol=1e-4)


def executed(p: Program, batch: int, seq: int) -> int:
    traced = jax.jit(p.step).trace(p.state_shapes(), p.batch_shapes(batch, seq))
    return sum(2 * prod(r[k] for k in ("m", "k", "n", "batch", "count")) for r in matmuls(traced.jaxpr))


@pytest.mark.parametrize("name", models())
def test_flops_of_every_model_of_the_catalogue(name):
    """Matmul FLOPs of the traced step: 6 x weights met + 6 H (d_qk + d_v) keys + 2 H d_qk keys, scores made again.

    A block of queries meets all keys, or with a window as many as window and block are long.
    """
    m, batch, seq, block = models()[name], 2, 3072, 512  # so many that every expert of the catalogue gets whole slots
    assert not any(f.experts and seq * f.experts_per_token % f.experts for f in m.feedforward)
    attention = 0
    for a in m.attention:
        reach = min(seq, a.window_tokens + block) if a.span == "sliding" else seq
        if a.span == "chunked":
            reach = min(seq, a.window_tokens)
        attention += a.heads * reach * (6 * (a.head_dim + a.value_head_dim) + 2 * a.head_dim)
    met = 6 * parameters(m).active_matmul + attention
    assert executed(Program(m, ALONE, remat="none"), batch, seq) == met * batch * seq
    # with everything made again: the forward pass once more but for the last product of each layer
    layers = sum(a.params(m.d_model) + f.params(m.d_model)[1] for a, f in zip(m.attention, m.feedforward, strict=True))
    forward = 2 * layers + attention / 3
    again = executed(Program(m, ALONE, remat="full"), batch, seq) / (batch * seq) - met
    assert 0.6 * forward < again <= forward


SHARDED = """
import functools, json, sys
import jax, jax.numpy as jnp, numpy as np
sys.path.insert(0, {root!r})
from simulators.tpu_compile import blocks
from simulators.tpu_compile.layers import Placement
from simulators.tpu_compile.mesh import MeshAxes
from simulators.tpu_compile.program import Program
from tests.simulators import tiny
from tests.simulators.test_tpu_compile_program import quick, started, tokens

blocks.MOST_QUERIES, blocks.LEAST_QUERIES, losses = 16, 8, {{}}
def measured(p, state, batch):
    def measure(params, batch):
        loss, grads = jax.value_and_grad(p.loss)(params, batch)
        return jnp.stack([loss, sum(jnp.sum(g * g) for g in jax.tree.leaves(grads))])
    return quick(measure)(state["params"], batch).tolist()

@functools.cache
def on_one(kind):
    p = Program(tiny.MODELS[kind], Placement(MeshAxes(())))
    return measured(p, started(p), tokens(batch=8))

for kind, axes in {cases!r}:
    axes = MeshAxes(tuple(axes))
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(axes.shape), axes.names)
    p = Program(tiny.MODELS[kind], Placement(axes, mesh))
    state = jax.device_put(started(p), jax.tree.map(lambda s: s.sharding, p.state_shapes()))
    batch = jax.device_put(tokens(batch=8), p.batch_shapes(8, 64).sharding)
    losses[f"{{kind}} {{axes.names}}"] = [on_one(kind), measured(p, state, batch)]
print(json.dumps(losses))
"""


@pytest.mark.slow
def test_sharding_changes_no_number_but_rounding():
    """Loss and gradients on four devices under every kind of mesh axis against those on one."""
    cases = [
        ("dense", [("model", 4)]),  # two key heads on four devices
        ("dense", [("fsdp", 2), ("context", 2)]),
        ("latent", [("fsdp", 2), ("expert", 2)]),
        ("experts", [("data", 2), ("tensor", 2)]),
    ]
    quickly = (
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_backend_optimization_level=0",
        "--xla_cpu_use_fusion_emitters=false",
    )  # a third of the CPU that it takes else
    flags = " ".join(("--xla_force_host_platform_device_count=4", *quickly))
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    code = SHARDED.format(root=str(ROOT), cases=cases)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    losses = json.loads(done.stdout.splitlines()[-1])
    assert len(losses) == len(cases)
    for case, (alone, sharded) in losses.items():
        assert sharded == pytest.approx(alone, rel=1e-2), case

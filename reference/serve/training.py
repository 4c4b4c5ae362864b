"""Makes the two models: `python -m reference.serve.training PLAN OUT`. Some hundred steps of Adam on English text.

The target learns the help texts that every Python carries; the draft learns to say what the target would say next
(the target's probabilities are its labels), so that speculation has something to gain. Nothing of this is bundled.
"""

import sys
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np

from reference.serve.model import init, logits_of
from reference.serve.plan import ModelDims, Plan

_ROWS, _LENGTH, _RATE = 8, 192, 2e-3


def corpus() -> bytes:
    """About 700 kB of English."""
    return "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")


def _loss(weights, inputs, labels, dims: ModelDims):
    """Mean cross-entropy against `labels` `[batch, time, vocab]`, probabilities; nats a byte."""
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits_of(weights, inputs, dims)), axis=-1))


def _step(state, inputs, labels, rate, dims: ModelDims):
    """One step of Adam (b1 0.9, b2 0.95): the new state and the loss before it."""
    weights, m, v, t = state
    loss, grads = jax.value_and_grad(_loss)(weights, inputs, labels, dims)
    t, m = t + 1, jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, grads)
    rate = rate * jnp.sqrt(1 - 0.95**t) / (1 - 0.9**t)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, m, v)
    return (weights, m, v, t), loss


def train(dims: ModelDims, steps: int, seed: int, labels_of) -> tuple[dict, float]:
    """Weights after so many steps, and the last loss. `labels_of(inputs, targets)` gives the probabilities."""
    text, rng = np.frombuffer(corpus(), np.uint8), np.random.default_rng((seed, 1))
    weights = jax.tree.map(jnp.asarray, init(dims, seed))
    state = (weights, *(jax.tree.map(jnp.zeros_like, weights) for _ in range(2)), 0.0)
    step = jax.jit(partial(_step, dims=dims), donate_argnums=0)
    for n in range(steps):
        starts = rng.integers(0, len(text) - _LENGTH - 1, _ROWS)
        window = np.stack([text[s : s + _LENGTH + 1] for s in starts]).astype(np.int32)
        labels = labels_of(window[:, :-1], window[:, 1:])
        rate = _RATE * min(1.0, 2.0 * (1 - n / steps))  # falls linearly in the second half
        state, loss = step(state, window[:, :-1], labels, rate)
        loss = float(loss)
    return jax.tree.map(np.asarray, state[0]), loss


def main(argv: list[str]) -> None:
    plan, out = Plan.load(Path(argv[0])), Path(argv[1])
    target, loss = train(
        plan.dims, plan.target_steps, plan.seed, lambda _, targets: jax.nn.one_hot(targets, plan.dims.vocab)
    )
    print(f"target: {plan.target_steps} steps, loss {loss:.2f} nats a byte", flush=True)
    teacher = jax.tree.map(jnp.asarray, target)
    teach = jax.jit(lambda inputs: jax.nn.softmax(logits_of(teacher, inputs, plan.dims)))
    draft, loss = train(plan.draft_dims, plan.draft_steps, plan.seed + 1, lambda inputs, _: teach(inputs))
    print(f"draft: {plan.draft_steps} steps, loss {loss:.2f} nats a byte", flush=True)
    np.savez(out, **{f"{who}.{k}": w for who, ws in (("target", target), ("draft", draft)) for k, w in ws.items()})


def load(path: Path) -> tuple[dict, dict]:
    """The weights of target and draft."""
    with np.load(path) as file:
        return tuple({k.split(".")[1]: file[k] for k in file if k.startswith(who)} for who in ("target.", "draft."))


if __name__ == "__main__":
    main(sys.argv[1:])

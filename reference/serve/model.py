"""The two models in plain JAX: one pass over pages of keys and values, drafting, and the same without any cache.

Rows are pieces of sequences: `tokens[r, q]` stands at position `start[r] + q` of the sequence whose pages are
`table[r]`. Rows of one sequence may follow one another in a batch, since each layer writes before it reads. Page 0
belongs to nobody: what only fills up a shape is written there.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from reference.serve.plan import ModelDims

_BASE = 10_000.0  # of the rotary positions
_BY_LAYER = ("qkv", "out", "wi", "wo")


def shapes(dims: ModelDims) -> dict[str, tuple[int, ...]]:
    """Weights, those of all layers stacked."""
    n, d, inner = dims.layers, dims.d_model, dims.heads * dims.head_dim
    return {
        "embedding": (dims.vocab, d),
        "qkv": (n, d, inner + 2 * dims.kv_heads * dims.head_dim),
        "out": (n, inner, d),
        "wi": (n, d, 2 * dims.d_ff),
        "wo": (n, dims.d_ff, d),
        "unembedding": (d, dims.vocab),
    }


def parameters(dims: ModelDims) -> int:
    return sum(math.prod(shape) for shape in shapes(dims).values())


def init(dims: ModelDims, seed: int) -> dict[str, np.ndarray]:
    """Normal weights of deviation 0.02, float32."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0.0, 0.02, shape).astype(np.float32) for name, shape in shapes(dims).items()}


def noise(positions: int, dims: ModelDims, temperature: float, seed: int) -> np.ndarray:
    """What is added to the logits at each position, `[positions, vocab]`: Gumbel noise times the temperature.

    The largest sum is then a sample at that temperature; since the noise goes by position alone, target and draft,
    and any way of batching, draw the same.
    """
    return np.random.default_rng((seed, 2)).gumbel(0.0, temperature, (positions, dims.vocab)).astype(np.float32)


def choose(logits, noise, position):
    """The token after each position, from its logits `[..., vocab]`."""
    return jnp.argmax(logits + noise[position], axis=-1).astype(jnp.int32)


def empty_pages(dims: ModelDims, pages: int, page: int) -> list[jax.Array]:
    """One array a layer, `[pages, page, 2 * kv_heads * head_dim]`: keys, then values."""
    return [jnp.zeros((pages, page, 2 * dims.kv_heads * dims.head_dim)) for _ in range(dims.layers)]


def _norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _rotate(x, position):
    """`x` `[..., heads, head_dim]` turned by its position."""
    half = x.shape[-1] // 2
    angle = position[..., None, None] * _BASE ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], axis=-1)


def _project(weights, x, position, dims: ModelDims):
    """Queries `[..., heads, head_dim]`, and keys and values side by side `[..., 2 * kv_heads, head_dim]`."""
    h, g = dims.heads, dims.kv_heads
    parts = (_norm(x) @ weights).reshape(*x.shape[:-1], h + 2 * g, dims.head_dim)
    q, k, v = jnp.split(parts, [h, h + g], axis=-2)
    return _rotate(q, position), jnp.concatenate([_rotate(k, position), v], axis=-2)


def _attend(q, kv, seen, dims: ModelDims):
    """Attention of `q` `[b, t, heads, e]` over `kv` `[b, s, 2 * kv_heads, e]` where `seen` `[b, t, s]`."""
    b, t, g = q.shape[0], q.shape[1], dims.kv_heads
    q = q.reshape(b, t, g, dims.heads // g, dims.head_dim)
    scores = jnp.einsum("btgme,bsge->bgtms", q, kv[:, :, :g]) / dims.head_dim**0.5
    weights = jax.nn.softmax(jnp.where(seen[:, None, :, None, :], scores, -1e9), axis=-1)
    return jnp.einsum("bgtms,bsge->btgme", weights, kv[:, :, g:]).reshape(b, t, dims.heads * dims.head_dim)


def _feed_forward(weights, x):
    gate, up = jnp.split(_norm(x) @ weights["wi"], 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ weights["wo"]


def logits_of(params, tokens, dims: ModelDims):
    """Next-byte logits `[batch, time, vocab]` of whole sequences, no cache: for training, and to check the engine."""
    t = tokens.shape[1]
    position, causal = jnp.arange(t)[None, :], jnp.tril(jnp.ones((1, t, t), bool))

    def layer(x, weights):
        q, kv = _project(weights["qkv"], x, position, dims)
        return _feed_forward(weights, x + _attend(q, kv, causal, dims) @ weights["out"]), None

    x, _ = jax.lax.scan(layer, params["embedding"][tokens], {name: params[name] for name in _BY_LAYER})
    return _norm(x) @ params["unembedding"]


def _places(start, valid, table, width: int, page: int):
    """Positions, which of them are real, and the slot of each in a layer's pages: `[rows, width]`."""
    position = start[:, None] + jnp.arange(width)
    real = (jnp.arange(width) < valid[:, None]) & (position < table.shape[1] * page)
    mine = jnp.take_along_axis(table, jnp.minimum(position // page, table.shape[1] - 1), axis=1)
    return position, jnp.where(real, mine * page + position % page, 0)


def _write(pages, slot, kv):
    flat = pages.reshape(-1, pages.shape[-1])
    return flat.at[slot.reshape(-1)].set(kv.reshape(-1, pages.shape[-1])).reshape(pages.shape)


def _paged(params, noise, pages, tokens, start, valid, table, dims: ModelDims):
    """The pages with these tokens written, and the token chosen after each, `[rows, width]`."""
    rows, width = tokens.shape
    page = pages[0].shape[1]
    position, slot = _places(start, valid, table, width, page)
    seen = jnp.arange(table.shape[1] * page) <= position[:, :, None]
    x, written = params["embedding"][tokens], []
    for layer in range(dims.layers):  # unrolled, so that each operation of each layer has its own name in a profile
        weights = {name: params[name][layer] for name in _BY_LAYER}
        q, kv = _project(weights["qkv"], x, position, dims)
        written.append(_write(pages[layer], slot, kv))
        context = written[-1][table].reshape(rows, -1, 2 * dims.kv_heads, dims.head_dim)
        x = _feed_forward(weights, x + _attend(q, context, seen, dims) @ weights["out"])
    return written, choose(_norm(x) @ params["unembedding"], noise, position)


def forward(target, draft, noise, pages, tokens, start, valid, table, dims: ModelDims):
    """One pass of the target over a batch; the draft's keys and values of the same tokens are written on the way.

    The draft has one layer, so its keys and values depend on token and position alone. Its pages are the last.
    """
    width, page = tokens.shape[1], pages[0].shape[1]
    written, following = _paged(target, noise, pages[:-1], tokens, start, valid, table, dims)
    position, slot = _places(start, valid, table, width, page)
    _, kv = _project(draft["qkv"][0], draft["embedding"][tokens], position, dims)
    return [*written, _write(pages[-1], slot, kv)], following


def propose(draft, noise, pages, last, start, valid, table, dims: ModelDims, count: int):
    """The draft's `count` tokens after `last` `[sequences]`, and its pages: `[sequences, count]`."""

    def step(carry, _):
        pages, tokens, position = carry
        (pages,), following = _paged(draft, noise, [pages], tokens[:, None], position, valid, table, dims)
        return (pages, following[:, 0], position + 1), following[:, 0]

    (pages, _, _), drafts = jax.lax.scan(step, (pages, last, start), None, length=count)
    return pages, drafts.T

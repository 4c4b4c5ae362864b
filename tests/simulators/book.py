"""What the book "How to Scale Your Model" asks of a training job, by the planner's own bytes, seconds and state.

Its layer is one block of two matrices, D x F and F x D, without attention. Each condition is read off what the planner
counts for that model on a chip of C FLOP/s and W bytes/s of links: nothing here knows a formula of the book.
"""

from dataclasses import replace

import numpy as np

from catalog import model
from catalog.training_memory import Sharding, state_bytes
from simulators.training.cost import Held, cost
from simulators.training.cost import Work as Job
from simulators.training.layout import layouts
from simulators.training.machine import Machine
from simulators.training.sent import sent
from simulators.training.sizes import sizes
from simulators.training.step import at_peaks
from simulators.training.work import work
from simulators.training.written import XLA

MANY, SEQ = 1 << 20, 1 << 20


def terms(d: int, f: int):
    """One layer of the book's, with nothing beside it."""
    like = model("gpt3-175b")
    none = replace(like.attention[0], heads=0, kv_heads=0)
    block = replace(like.feedforward[0], d_ff=f, gated=False)
    of = replace(like, layers=1, d_model=d, vocab=0, tied_embeddings=True, attention=(none,), feedforward=(block,))
    return work(of, SEQ)


def forward_bytes(axis: str, d: int, f: int, tokens: int = SEQ, **cut: int) -> float:
    """Bytes that a chip sends along an axis in a forward pass of one block: of a layer's two blocks of tensor
    parallelism one is attention, of which the book's layer has none."""
    terms_of = terms(d, f)
    at = sizes(
        replace(terms_of, seq=tokens), layouts(**cut), int(np.prod([n for a, n in cut.items() if a != "tensor"]))
    )
    told = sum(float(np.sum(one.forward * one.chip_bytes)) for one in _layer(terms_of, at) if one.axis == axis)
    ways = cut[axis]
    return told / (2 if axis == "tensor" else 1) * ways / (ways - 1)


def _layer(terms_of, at):
    return [one for one in sent(terms_of, at, replace(XLA, tokens_looked_up=False)) if one.account != "vocabulary"]


def forward_flops(d: int, f: int, tokens: float) -> float:
    return terms(d, f).weight_flops * tokens


def alpha(c: float, w: float) -> float:
    """Tokens of a chip beyond which gathering weights along one axis hides behind their products."""
    d, f = 8192, 32_768
    return forward_bytes("fsdp", d, f, fsdp=MANY) / w / (forward_flops(d, f, 1) / c)


def tensor_ways(c: float, w: float, f: int) -> float:
    """Ways of tensor parallelism up to which its activations hide behind the block's products."""
    d, y = 4096, 2
    return y * (forward_flops(d, f, SEQ) / y / c) / (forward_bytes("tensor", d, f, tensor=y) / w)


def best_fsdp(tokens: float, chips: int, f: int, axes: tuple[int, int]) -> float:
    """Ways of fsdp at which weights and activations take least together, the rest being tensor parallelism, on so many
    axes of each: where the two are equal, since one grows as the other falls."""
    weights, activations = _mixed(tokens, chips, f, axes)
    return float(np.sqrt(activations / weights))


def mixed_tokens(c: float, w: float, f: int, axes: tuple[int, int]) -> float:
    """Tokens of a chip from which both together hide behind the products, at the best mixture."""
    tokens, chips = 1e6, 4096
    weights, activations = _mixed(tokens, chips, f, axes)
    products = forward_flops(8192, f, tokens) / chips / c
    return (2 * np.sqrt(weights * activations) / w / products) ** 2 * tokens / chips


def _mixed(tokens: float, chips: int, f: int, axes: tuple[int, int]) -> tuple[float, float]:
    """Bytes by axes of weights for each way of fsdp, and of activations times it."""
    d, x, y = 8192, 2, 2
    weights = forward_bytes("fsdp", d, f, fsdp=x, tensor=y) * y / chips
    here = 1 << 16
    activations = forward_bytes("tensor", d, f, tokens=here, fsdp=x, tensor=y) / here * tokens
    return weights / axes[0], activations / axes[1]


def state(params: float) -> float:
    """Bytes of weights in 16 bits and two moments in 32."""
    told = state_bytes(params, Sharding())
    return told["weights"] + told["moments"]


def days(flops_per_token: float, tokens: float, chips: int, peak: float, mfu: float) -> float:
    return cost(
        Job(flops_per_token=flops_per_token, tokens=tokens), Held(chips=chips, peak_flops_per_s=peak, mfu=mfu)
    ).days


def hidden_from(c: float, w: float) -> float:
    """The same as `alpha`, by the seconds of a step: forward, backward and the scatter of gradients against three
    forward passes, on a chip whose links join any number."""
    d, f, tokens = 16_384, 65_536, 4096
    on = Machine("book", c, c, 1e12, 1e12, MANY * 64, w, w)
    laid = layouts(fsdp=1024, micro=1)
    peaks = at_peaks(
        replace(terms(d, f), seq=tokens), laid, np.zeros(1), 1024, on, replace(XLA, tokens_looked_up=False)
    )
    weights = peaks.weights[0] - 3 * on.latency_s
    return weights / (3 * peaks.products[0]) * tokens * 1024 / 1023

"""The time of a training step of every layout at once, by what it goes to.

One device holds L / (p v) layers in each of v chunks of a stage and runs m microbatches of T = micro x seq / c tokens.
Forward, of one microbatch on one stage:

    products   FLOPs of weights T / (t p) at peak x `products`, and no faster than their operands come from memory
    experts    the same of routed experts; an expert sees T e k / E tokens of its group at once
    attention  causal FLOPs of attention at the BF16 peak x `attention`
    sweeps     bytes of norms, residuals, activations at the memory's rate x `memory`
    launches   `launch_s` a layer, where the device waits for its host
    tensor     4 collectives of T h a layer (2 before, 2 after a block), which is waited for but for `hidden`
    context    keys and values around the ring, beyond what attention hides; a key head is not cut by t, nor are
               compressed keys and values
    expert     2 all-to-alls of the T k h / t a layer that has experts

backward: products, experts, sweeps twice, attention 2.5 times (scores are computed again), the collectives once more
(around the ring twice the bytes: gradients of keys and values go beside them), and the forward pass of those layers
that are computed again. Then, for a step:

    step     = m (forward + backward) + bubble + sends + exposed + update + vocabulary
    bubble     (p - 1) / v x (forward + backward) of a microbatch
    sends      2 m v sends of T h / t, of which `hidden` runs beside
    exposed    weights gathered (forward and backward of each microbatch) and gradients scattered over fsdp, gradients
               over data, expert and context: what is beyond `overlap` of the products' time
    update     the optimiser reads and writes its state, 18 bytes a parameter twice over
    vocabulary products of the output projection, forward and backward

Sources: Narayanan et al. 2021 (bubble), Korthikanti et al. 2022 (sequence parallelism), Dao et al. 2022 (attention's
backward pass), and the terms of `simulators.placement.traffic`, which counts the same bytes.
"""

from dataclasses import dataclass

import numpy as np

from simulators.training.efficiency import Efficiency
from simulators.training.layout import Layouts
from simulators.training.machine import Floats, Machine
from simulators.training.work import ELEMENT, Work

BACKWARD, ATTENTION_BACKWARD = 2.0, 2.5
SWEPT = 0.4  # of what a layer keeps: outputs of norms and activation functions, which a sweep makes again
STATE_BYTES, GRADIENT_BYTES = 36.0, 4.0
ACCOUNTS = (
    "products",
    "experts",
    "attention",
    "sweeps",
    "launches",
    "vocabulary",
    "recomputed",
    "tensor",
    "context",
    "expert",
    "bubble",
    "sends",
    "exposed",
    "update",
)


@dataclass(frozen=True)
class Steps:
    """Seconds of a step by account, an entry for each layout: they add up to `seconds`."""

    parts: dict[str, Floats]
    seconds: Floats


@dataclass(frozen=True)
class _Pass:
    """Seconds of a forward pass of one microbatch on one stage, by account."""

    products: Floats
    experts: Floats
    attention: Floats
    sweeps: Floats
    launches: Floats
    tensor: Floats
    context: Floats
    expert: Floats

    @property
    def seconds(self) -> Floats:
        return sum(vars(self).values(), np.zeros(1))


def steps(work: Work, layouts: Layouts, again: Floats, batch: int, machine: Machine, eff: Efficiency) -> Steps:
    """The time of one step of `batch` sequences for every layout, `again` the part of the layers computed twice."""
    at = _Sizes(work, layouts, batch)
    ring_s = _ring_s(work, at, machine, eff)
    one = _forward(work, at, ring_s, machine, eff)
    m = at.microbatches
    both = {
        "products": 1 + BACKWARD,
        "experts": 1 + BACKWARD,
        "attention": 1 + ATTENTION_BACKWARD,
        "sweeps": 1 + BACKWARD,
        "launches": 1 + BACKWARD,
        "tensor": 2.0,
        "expert": 2.0,
    }
    parts = {name: m * factor * getattr(one, name) for name, factor in both.items()}
    parts["context"] = m * (one.context + _waited(at, 2 * ring_s, ATTENTION_BACKWARD * one.attention))
    cheap, dear = np.minimum(again / SWEPT, 1.0), np.maximum(again - SWEPT, 0.0) / (1 - SWEPT)
    parts["recomputed"] = m * (cheap * (1 - dear) * one.sweeps + dear * one.seconds)
    stage = sum(parts.values()) / m
    parts["bubble"] = (at.p - 1) / at.v * stage
    parts["sends"] = _sends(work, at, machine, eff)
    parts["vocabulary"] = (
        m * (1 + BACKWARD) * work.output_flops * at.tokens / at.t / at.p / (machine.bf16_flops_per_s * eff.products)
    )
    beside = parts["products"] + parts["experts"] + parts["attention"]
    parts["exposed"] = np.maximum(_weights_s(work, at, machine, eff) - eff.overlap * beside, 0.0)
    parts["update"] = at.updated * STATE_BYTES / (machine.hbm_bytes_per_s * eff.memory)
    ordered = {name: parts[name] + np.zeros(len(layouts)) for name in ACCOUNTS}
    return Steps(ordered, sum(ordered.values(), np.zeros(len(layouts))))


class _Sizes:
    """Sizes of the axes as floats, and what a device has by them."""

    def __init__(self, work: Work, layouts: Layouts, batch: int):
        names = ("tensor", "context", "pipeline", "interleave", "expert", "fsdp", "data", "micro")
        self.t, self.c, self.p, self.v, self.e, self.f, self.d, self.micro = (
            getattr(layouts, name).astype(float) for name in names
        )
        self.tokens = self.micro * work.seq / self.c
        self.microbatches = batch / (layouts.replicas * self.micro)
        self.layers = np.ceil(work.layers / (self.p * self.v)) * self.v  # of the fullest stage
        self.share = self.layers / work.layers  # of the model's layers
        self.shard = (work.dense + work.routed / self.e) / (self.t * self.p)
        copies = (
            self.e * self.f * self.d * self.c
        )  # over which the optimiser's state is dealt out; of an expert e fewer
        self.updated = (work.dense + work.routed) / (self.t * self.p * copies)


def _forward(work: Work, at: _Sizes, ring_s: Floats, machine: Machine, eff: Efficiency) -> _Pass:
    tokens, share = at.tokens, at.share
    attention = work.attention_flops * tokens * share / at.t / (machine.bf16_flops_per_s * eff.attention)
    swept = (work.swept_whole + eff.dealt * work.dealt + work.swept_cut + eff.scores * ELEMENT * work.scores) / at.t
    sweeps = swept * tokens * share / (machine.hbm_bytes_per_s * eff.memory)
    blocks = at.layers * 2
    across = machine.gather_s(ELEMENT * work.width * tokens, at.t, np.ones_like(at.t), inner=True) / eff.network
    tensor = np.where(at.t > 1, 2 * blocks * across * (1 - eff.hidden), 0.0)
    dealt = machine.exchange_s(ELEMENT * work.width * work.visits * tokens / at.t, at.e, at.t * at.c) / eff.network
    expert = np.where(at.e > 1, 2 * work.moe_layers * share * dealt * (1 - eff.hidden_experts), 0.0)
    return _Pass(
        products=_products(work, at, machine, eff),
        experts=_experts(work, at, machine, eff),
        attention=attention,
        sweeps=sweeps,
        launches=eff.launch_s * at.layers * (1 + work.moe_layers / work.layers * eff.expert_launches),
        tensor=tensor,
        context=_waited(at, ring_s, attention),
        expert=expert,
    )


def _ring_s(work: Work, at: _Sizes, machine: Machine, eff: Efficiency) -> Floats:
    """Seconds in which keys and values of a stage's layers go around the ring."""
    array = ELEMENT * work.keys_held(at.t) * at.tokens * at.c
    return at.layers * machine.gather_s(array, at.c, at.t, inner=True) / eff.network


def _waited(at: _Sizes, ring_s: Floats, attention_s: Floats) -> Floats:
    return np.where(at.c > 1, np.maximum(ring_s - attention_s, 0.0), 0.0)


def _products(work: Work, at: _Sizes, machine: Machine, eff: Efficiency) -> Floats:
    """At the peak's share, and no faster than weights and activations come from memory."""
    flops = work.weight_flops * at.tokens * at.share / at.t
    weights = work.weight_flops / 2 * at.share / at.t * ELEMENT
    moved = weights + at.tokens * at.layers * ELEMENT * work.width * 8 / at.t**0.5
    return np.maximum(
        flops / (machine.peak_flops_per_s * eff.products * _full(at, work, machine, eff)),
        moved / machine.hbm_bytes_per_s,
    )


def _full(at: _Sizes, work: Work, on: Machine, eff: Efficiency) -> Floats:
    """How near a product of T x (h / t) comes to its best rate.

    By peak P and memory's rate M it takes 2 T k w (1 / P + (1 / w + 1 / T) / M) in BF16, were its operands never read
    beside its work: w / (w + P / M) and T / (T + P / M) of the peak; `narrow` and `few` say how much is not hidden.
    """
    narrow = work.width / at.t
    return narrow / (narrow + eff.narrow * on.intensity) * at.tokens / (at.tokens + eff.few * on.intensity)


def _experts(work: Work, at: _Sizes, machine: Machine, eff: Efficiency) -> Floats:
    if not work.experts:
        return np.zeros_like(at.t)
    flops = work.expert_flops * at.tokens * at.share / at.t
    each = at.tokens * at.e * work.visits / work.experts
    weights = work.routed / at.e * at.share / at.t * ELEMENT
    width = work.expert_width / at.t
    rate = (
        machine.peak_flops_per_s
        * eff.products
        * eff.grouped
        * width
        / (width + eff.narrow * machine.intensity)
        * each
        / (each + eff.few * machine.intensity)
    )
    return np.maximum(flops / rate, weights / machine.hbm_bytes_per_s)


def _sends(work: Work, at: _Sizes, machine: Machine, eff: Efficiency) -> Floats:
    stride = at.t * at.c * at.e * at.f * at.d
    one = machine.send_s(ELEMENT * work.width * at.tokens / at.t, stride) / eff.network
    return np.where(at.p > 1, 2 * at.microbatches * at.v * one * (1 - eff.hidden), 0.0)


def _weights_s(work: Work, at: _Sizes, machine: Machine, eff: Efficiency) -> Floats:
    """Seconds of a step in which weights are gathered and gradients summed, hidden or not."""
    inner = at.t * at.c * at.e
    gather = machine.gather_s(ELEMENT * at.shard, at.f, inner)
    scatter = machine.gather_s(GRADIENT_BYTES * at.shard, at.f, inner)
    sharded = np.where(at.f > 1, at.microbatches * 2 * gather + scatter, 0.0)
    copies = at.d * at.c
    summed = machine.gather_s(GRADIENT_BYTES * at.shard / at.f, copies, inner * at.f) + machine.gather_s(
        ELEMENT * at.shard / at.f, copies, inner * at.f
    )
    dense = work.dense / (at.t * at.p * at.f)  # the same on all devices that share the experts
    apart = machine.gather_s((GRADIENT_BYTES + ELEMENT) * dense, at.e, at.t * at.c)
    return (sharded + np.where(copies > 1, summed, 0.0) + np.where(at.e > 1, apart, 0.0)) / eff.network

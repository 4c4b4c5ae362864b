"""The time of a training step of every layout at once, by what it goes to.

One device holds L / (p v) layers in each of v chunks of a stage and runs m microbatches of T = micro x seq / c tokens.
Forward, of one microbatch on one stage:

    products   FLOPs of weights T / (t p) at peak x `products`, and no faster than their operands come from memory;
               what fills up a matrix unit's sides counts too
    experts    the same of routed experts; an expert sees T e k / E tokens of its group at once
    attention  causal FLOPs of attention at the BF16 peak x `attention`, more of heads that fill no matrix unit
    sweeps     bytes of norms, residuals, activations at the memory's rate x `memory`
    launches   `launch_s` a layer, where the device waits for its host; a TPU's whole step is one program, and waits
               for none
    tensor     4 collectives of T h a layer (2 before, 2 after a block), which is waited for but for `hidden`
    context    keys and values around the ring, beyond what attention hides; a key head is not cut by t, nor are
               compressed keys and values
    expert     2 all-to-alls of the T k h / t a layer that has experts

backward: products, experts, sweeps twice, attention 2.5 times (scores are computed again), the collectives once more
(around the ring twice the bytes: gradients of keys and values go beside them), and the forward pass of those layers
that are computed again; of these a compiler drops what nobody reads (`written`). What is sent is counted in `sent`.
Then, for a step:

    step     = m (forward + backward) + bubble + sends + exposed + update + vocabulary
    bubble     (p - 1) / v x (forward + backward) of a microbatch
    sends      2 m v sends of T h / t, of which `hidden` runs beside
    exposed    weights gathered (forward and backward) and gradients scattered over fsdp in each microbatch, gradients
               over data, expert and context: what is beyond `overlap` of the products' time
    update     the optimiser reads and writes its state, 18 bytes a parameter twice over
    vocabulary products of the output projection, forward and backward

Sources: Narayanan et al. 2021 (bubble), Korthikanti et al. 2022 (sequence parallelism), Dao et al. 2022 (attention's
backward pass), and the terms of `simulators.placement.traffic`, which counts the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from simulators.training.efficiency import Efficiency
from simulators.training.layout import Layouts
from simulators.training.machine import Floats, Machine
from simulators.training.sent import SWEPT, Sent, dear, sent
from simulators.training.sizes import Sizes, sizes
from simulators.training.work import ELEMENT, Work
from simulators.training.written import Written, written_for

BACKWARD, ATTENTION_BACKWARD = 2.0, 2.5
STATE_BYTES = 36.0
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
class AtPeaks:
    """What every layout asks for, in seconds at the peaks of its chip: all that no share of a peak touches.

    Of a forward pass of one microbatch on one stage: `products` and `experts` (with the seconds in which their weights
    come from memory, `products_floor`, `experts_floor`, and their widths and tokens in units of the FLOPs that a byte
    of memory is worth), `attention`, `swept` at the memory's rate, `dealt` and `scores` for each time that these are
    read or written, `layers` and `moe_layers`, `unread` (the part of the products that is not computed again). Of the
    network: `tensor`, `expert`, `sends`, `tables` forward and backward, `tensor_again`, `expert_again`, `ring` forward;
    `weights` of a step; `beside`: 1 where what goes to experts runs beside another microbatch's products. `output`:
    products with the vocabulary, three times the forward pass; `update` of a step.
    """

    microbatches: Floats
    stages: Floats
    chunks: Floats
    cheap: Floats
    dear: Floats
    products: Floats
    products_floor: Floats
    width: Floats
    tokens: Floats
    unread: Floats
    experts: Floats
    experts_floor: Floats
    expert_width: Floats
    expert_tokens: Floats
    attention: Floats
    swept: Floats
    dealt: Floats
    scores: Floats
    layers: Floats
    moe_layers: Floats
    tensor: Floats
    tensor_again: Floats
    expert: Floats
    expert_again: Floats
    beside: Floats
    sends: Floats
    tables: Floats
    ring: Floats
    weights: Floats
    output: Floats
    update: Floats

    @classmethod
    def joined(cls, many: Sequence["AtPeaks"]) -> "AtPeaks":
        """Layouts of several jobs, one after another."""
        return cls(*(np.concatenate([getattr(one, f.name) for one in many]) for f in fields(cls)))

    def timed(self, eff: Efficiency) -> Steps:
        """The time of a step at shares of the peaks, each one number or one for each layout."""
        m = self.microbatches
        products = np.maximum(self.products / (eff.products * _full(self.width, self.tokens, eff)), self.products_floor)
        grouped = eff.products * eff.grouped * _full(self.expert_width, self.expert_tokens, eff)
        experts = np.maximum(self.experts / grouped, self.experts_floor)
        attention = self.attention / eff.attention
        sweeps = (self.swept + eff.dealt * self.dealt + eff.scores * self.scores) / eff.memory
        launches = eff.launch_s * (self.layers + eff.expert_launches * self.moe_layers)
        waited = (1 - eff.hidden) / eff.network
        dealt_out = (1 - eff.hidden_experts) / eff.network
        ring = self.ring / eff.network
        ahead = np.maximum(ring - attention, 0.0)
        computed = products + experts + attention
        parts = {
            "products": m * (1 + BACKWARD) * products,
            "experts": m * (1 + BACKWARD) * experts,
            "attention": m * (1 + ATTENTION_BACKWARD) * attention,
            "sweeps": m * (1 + BACKWARD) * sweeps,
            "launches": m * (1 + BACKWARD) * launches,
            "tensor": m * self.tensor * waited,
            "expert": m * self._waited(self.expert * dealt_out, self.expert / eff.network, 3 * computed),
            "context": m * (ahead + np.maximum(2 * ring - ATTENTION_BACKWARD * attention, 0.0)),
        }
        repeated = products * (1 - self.unread) + experts + attention + sweeps + launches + ahead
        exchanged = self._waited(self.expert_again * dealt_out, self.expert_again / eff.network, computed)
        repeated = repeated + self.tensor_again * waited + exchanged
        parts["recomputed"] = m * (self.cheap * (1 - self.dear) * sweeps + self.dear * repeated)
        parts["bubble"] = (self.stages - 1) / self.chunks * sum(parts.values()) / m
        parts["sends"] = m * self.sends * waited
        parts["vocabulary"] = m * (self.output / eff.products + self.tables * waited)
        beside = parts["products"] + parts["experts"] + parts["attention"]
        parts["exposed"] = np.maximum(self.weights / eff.network - eff.overlap * beside, 0.0)
        parts["update"] = self.update / eff.memory
        ordered = {name: parts[name] for name in ACCOUNTS}
        return Steps(ordered, sum(ordered.values(), np.zeros_like(m)))

    def _waited(self, usual: Floats, whole: Floats, computed: Floats) -> Floats:
        """What is waited for of an exchange: as usual, or what lasts longer than what is computed beside it."""
        return np.where(self.beside > 0, np.maximum(whole - computed, 0.0), usual)


def _full(width: Floats, tokens: Floats, eff: Efficiency) -> Floats:
    """How near a product of T x w comes to its best rate, both beside P / M.

    By peak P and memory's rate M it takes 2 T k w (1 / P + (1 / w + 1 / T) / M) in BF16, were its operands never read
    beside its work: w / (w + P / M) and T / (T + P / M) of the peak; `narrow` and `few` say how much is not hidden.
    """
    return width / (width + eff.narrow) * tokens / (tokens + eff.few)


def steps(
    work: Work,
    layouts: Layouts,
    again: Floats,
    batch: int,
    machine: Machine,
    eff: Efficiency,
    written: Written | None = None,
) -> Steps:
    """The time of one step of `batch` sequences for every layout, `again` the part of the layers computed twice."""
    return at_peaks(work, layouts, again, batch, machine, written).timed(eff)


def at_peaks(
    work: Work, layouts: Layouts, again: Floats, batch: int, machine: Machine, written: Written | None = None
) -> AtPeaks:
    """What every layout asks for; `written` None: as such chips are usually programmed."""
    written = written or written_for(machine.torus)
    at = sizes(work, layouts, batch, written)
    network = _Network(work, at, machine, written)
    here = at.tokens * at.share / at.t  # tokens and layers of a device, beside all of the model's
    activations = at.tokens * at.layers * ELEMENT * work.width * 8 / at.t**0.5
    weights = work.weight_flops / 2 * at.share / at.t * ELEMENT
    each = at.tokens * at.e * work.visits / max(work.experts, 1)  # tokens of an expert
    filled, filled_experts = work.padding(machine.unit)
    swept = work.swept_cut + work.swept_whole * (1.0 if written.sequence_parallel else at.t)
    dear_part, none, launched = dear(again), np.zeros_like(at.t), not machine.torus
    told = {
        "microbatches": at.microbatches,
        "stages": at.p,
        "chunks": at.v,
        "cheap": np.minimum(again / SWEPT, 1.0),
        "dear": dear_part,
        "products": work.weight_flops * filled * here / machine.peak_flops_per_s,
        "products_floor": (weights + activations) / machine.hbm_bytes_per_s,
        "width": work.width / at.t / machine.intensity,
        "tokens": at.tokens / machine.intensity,
        "unread": work.unread_flops / work.weight_flops if written.pruned else 0.0,
        "experts": work.expert_flops * filled_experts * here / machine.peak_flops_per_s,
        "experts_floor": work.routed / at.e * at.share / at.t * ELEMENT / machine.hbm_bytes_per_s,
        "expert_width": work.expert_width / at.cut / machine.intensity if work.experts else 1.0,
        "expert_tokens": each / machine.intensity if work.experts else 1.0,
        "attention": work.attention_effort(machine.unit) * here / machine.bf16_flops_per_s,
        "swept": swept * here / machine.hbm_bytes_per_s,
        "dealt": work.dealt * here / machine.hbm_bytes_per_s,
        "scores": ELEMENT * work.scores * here / machine.hbm_bytes_per_s,
        "layers": at.layers if launched else none,
        "moe_layers": work.moe_layers * at.share if launched else none,
        "tensor": network.both("tensor"),
        "tensor_again": network.again("tensor"),
        "expert": network.both("expert"),
        "expert_again": network.again("expert"),
        "beside": float(written.exchange_beside),
        "sends": network.both("sends"),
        "tables": network.both("vocabulary"),
        "ring": network.ring,
        "weights": network.weights,
        "output": (1 + BACKWARD) * work.output_flops * at.tokens / at.t / at.p / machine.bf16_flops_per_s,
        "update": _updated(work, at) * STATE_BYTES / machine.hbm_bytes_per_s,
    }
    return AtPeaks(**{name: values + none for name, values in told.items()})


def _updated(work: Work, at: Sizes) -> Floats:
    """Parameters that a device updates: the optimiser's state is dealt out over all copies, of an expert e fewer."""
    return (work.dense + work.routed) / (at.t * at.p * at.e * at.f * at.d * at.c)


class _Network:
    """Seconds of what is sent at the networks' peaks, of a microbatch but for `weights`."""

    def __init__(self, work: Work, at: Sizes, machine: Machine, written: Written):
        self.at, self.machine, self.copies = at, machine, max(work.visits, 1)
        self.all = [(one, self._seconds(one)) for one in sent(work, at, written)]

    def _seconds(self, one: Sent) -> Floats:
        """Of one of them; none where the axis has one chip."""
        if one.kind == "exchange":
            copies = self.copies if one.axis == "expert" else 1
            took = self.machine.exchange_s(one.array_bytes, one.size, one.stride, copies, self.at.slice)
        elif one.kind == "send":
            took = self.machine.send_s(one.array_bytes, one.stride)
        else:
            inner = one.axis in ("tensor", "context")
            took = self.machine.gather_s(one.array_bytes, one.size, one.stride, inner, self.at.slice)
        return np.where(one.size > 1, took, 0.0)

    def both(self, account: str) -> Floats:
        """Forward and backward."""
        return sum((s * (o.forward + o.backward) for o, s in self.all if o.account == account), np.zeros(1))

    def again(self, account: str) -> Floats:
        """What a forward pass that is done again sends."""
        return sum((s * o.again for o, s in self.all if o.account == account), np.zeros(1))

    @property
    def ring(self) -> Floats:
        """Keys and values around the ring, forward."""
        return sum((s * o.forward for o, s in self.all if o.account == "context"), np.zeros(1))

    @property
    def weights(self) -> Floats:
        """Of a step: weights gathered and gradients summed."""
        m = self.at.microbatches
        of = ((o, s) for o, s in self.all if o.account == "exposed")
        return sum((s * (m * (o.forward + o.backward) + o.once) for o, s in of), np.zeros(1))

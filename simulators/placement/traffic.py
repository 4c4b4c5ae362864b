"""What a training step of a transformer sends along each logical axis, whichever way the mesh is laid.

One step: forward, backward, update. B sequences of S tokens; d, f, t, e, c, p the sizes of data, fsdp, tensor, expert,
context and pipeline axes; the batch is cut by d, f and e, sequences by c. a bytes of an activation, w of a weight, g of
a gradient; D the width, L layers. `array_bytes` V is the whole array over the devices of the axis, as in
`simulators.collectives.rings`; P are weights, P_dense without routed experts, P_routed of those.

    shard   = P_dense / (t p) + P_routed / (e t p)              weights that a device works with
    fsdp    2 all-gathers of w shard (forward, backward), 1 reduce-scatter of g shard
    data    1 all-reduce of g shard / f: after fsdp's reduce-scatter each device has its part
    tensor  per layer and pass 2 all-gathers and 2 reduce-scatters (before and after attention, before and after the
            feed-forward block), sequence parallelism between them. V = a D B S / (d f e c), for a feed-forward block
            with experts times the experts that a token visits
    expert  per layer with experts and pass 2 all-to-alls (to the experts, back), V = a k D B S / (d f c t), k experts
            per token; and 1 all-reduce of g P_dense / (t p f): those weights are the same on all of its devices
    context per layer: K and V go around the ring forward; K, V and their gradients backward. A ring of permutes moves
            what an all-gather moves: 2 all-gathers and 1 reduce-scatter, V = a K_dims B S / (d f e), heads cut by t;
            and 1 all-reduce of g shard / f
    pipeline per pass 1 send of all activations of the boundary, a D B S / (d f e c t) a device; V is p times that

A pipeline stage has L / p layers; its all-gathers and all-reduces are of its own weights (the shard above).
Sources: Shoeybi et al. 2019 and Korthikanti et al. 2022 (tensor and sequence parallelism), Rajbhandari et al. 2020
(ZeRO, which fsdp is), Lepikhin et al. 2020 (experts), Liu et al. 2023 (ring attention), Narayanan et al. 2021
(pipelines), and How to Scale Your Model, "Training". Left out: the loss over the vocabulary, norms, the router's
statistics, weights gathered again for each micro-batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.flops import flops_per_token
from catalog.models import Model, parameters
from errors import QuestionError
from simulators.placement.mesh import LogicalAxis, ways

DTYPES: dict[str, int] = {"bf16": 2, "fp8": 1, "fp32": 4}
"""Bytes of weights and activations in collectives; gradients are never sent in less than 2."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A training step. `microbatches`: of one pipeline."""

    model: Model
    batch: int
    seq: int
    dtype: str = "bf16"
    microbatches: int = 1

    @property
    def tokens(self) -> int:
        return self.batch * self.seq

    @property
    def flops(self) -> float:
        """Of one step, forward and backward, by the causal convention."""
        return flops_per_token(self.model, self.seq, "causal").total * self.tokens


@dataclass(frozen=True)
class Traffic:
    """`times` collectives of `kind` a step along `axis`, each on an array of `array_bytes` over the axis's devices.

    `waited`: of activations, so that what comes next needs the result; weights and gradients can be sent meanwhile.
    """

    axis: str
    kind: str
    array_bytes: float
    times: float
    what: str
    waited: bool = True


def traffic(axes: Sequence[LogicalAxis], work: Work) -> tuple[Traffic, ...]:
    """All that one device takes part in, axis by axis. Raises QuestionError for a mesh that the model cannot take."""
    _check(axes, work)
    step = _Step(axes, work)
    return tuple(t for a in axes if a.size > 1 for t in _OF_ROLE[a.role](step, a))


class _Step:
    """The sizes that several roles need."""

    def __init__(self, axes: Sequence[LogicalAxis], work: Work):
        model, self.work = work.model, work
        self.act = DTYPES[work.dtype]
        self.grad = max(self.act, 2)
        self.d, self.f, self.t = (ways(axes, r) for r in ("data", "fsdp", "tensor"))
        self.e, self.c, self.p = (ways(axes, r) for r in ("expert", "context", "pipeline"))
        routed = sum(b.experts * (3 if b.gated else 2) * model.d_model * b.d_ff for b in model.feedforward)
        self.dense_weights = (parameters(model).total - routed) / (self.t * self.p)
        self.shard_weights = self.dense_weights + routed / (self.e * self.t * self.p)
        self.layers = model.layers / self.p
        self.moe = sum(1 for b in model.feedforward if b.experts) / self.p
        self.visits = sum(max(b.experts_per_token, 1) + bool(b.shared_experts) for b in model.feedforward) / self.p
        self.width_bytes = self.act * model.d_model
        self.tokens = work.tokens / (self.d * self.f * self.e * self.c)  # on one device, before tensor cuts them


def _gradients(step: _Step, axis: LogicalAxis, weights: float, what: str) -> Traffic:
    return Traffic(axis.name, "all_reduce", step.grad * weights / step.f, 1, f"gradients of {what}", False)


def _data(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    return [_gradients(step, axis, step.shard_weights, "the weights")]


def _fsdp(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    return [
        Traffic(axis.name, "all_gather", step.act * step.shard_weights, 2, "weights, forward and backward", False),
        Traffic(axis.name, "reduce_scatter", step.grad * step.shard_weights, 1, "gradients of the weights", False),
    ]


def _tensor(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    whole = step.width_bytes * step.tokens
    blocks = step.layers + step.visits  # attention once, the feed-forward block once for each expert visited
    return [
        Traffic(axis.name, "all_gather", whole, 2 * blocks, "activations before a block, forward and backward"),
        Traffic(axis.name, "reduce_scatter", whole, 2 * blocks, "activations after a block, forward and backward"),
    ]


def _expert(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    visits = max((b.experts_per_token for b in step.work.model.feedforward), default=0)
    sent = step.width_bytes * visits * step.tokens * step.e / step.t
    return [
        Traffic(axis.name, "all_to_all", sent, 4 * step.moe, "tokens to their experts and back, forward and backward"),
        _gradients(step, axis, step.dense_weights, "weights outside of experts"),
    ]


def _context(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    def dims(a) -> float:
        heads = max(a.kv_heads / step.t, 1.0)  # heads that cannot be cut further lie on several devices
        return a.kv_lora_rank + a.rope_head_dim if a.kv_lora_rank else heads * (a.head_dim + a.value_head_dim)

    attention = step.work.model.attention
    keys = step.act * sum(map(dims, attention)) / len(attention) * step.tokens * step.c
    return [
        Traffic(axis.name, "all_gather", keys, 2 * step.layers, "keys and values around the ring, both passes"),
        Traffic(axis.name, "reduce_scatter", keys, step.layers, "gradients of keys and values around the ring"),
        _gradients(step, axis, step.shard_weights, "the weights"),
    ]


def _pipeline(step: _Step, axis: LogicalAxis) -> list[Traffic]:
    one = step.width_bytes * step.tokens / step.t
    return [Traffic(axis.name, "permute", one * axis.size, 2, "activations to the next stage, their gradients back")]


_OF_ROLE = {
    "data": _data,
    "fsdp": _fsdp,
    "tensor": _tensor,
    "expert": _expert,
    "context": _context,
    "pipeline": _pipeline,
}


def _check(axes: Sequence[LogicalAxis], work: Work) -> None:
    model = work.model
    expert, pipeline, batch = ways(axes, "expert"), ways(axes, "pipeline"), ways(axes, "data", "fsdp", "expert")
    experts = max((b.experts for b in model.feedforward), default=0)
    if expert > 1 and (experts == 0 or experts % expert):
        have = f"{experts} experts a layer" if experts else "no experts"
        raise QuestionError(
            f"an expert axis of {expert}: {model.name} has {have}",
            where="mesh",
            expected="a size that divides the experts" if experts else "a model with experts",
            advice="Name another with --model",
        )
    if pipeline > model.layers:
        raise QuestionError(
            f"{pipeline} pipeline stages: {model.name} has {model.layers} layers",
            where="mesh",
            expected=f"at most {model.layers}",
        )
    if work.batch < batch:
        raise QuestionError(
            f"{work.batch} sequences are to be spread over {batch} parts of the mesh",
            where="batch",
            expected=f"at least {batch}, the data, fsdp and expert axes together",
        )


def unevenness(axes: Sequence[LogicalAxis], work: Work) -> tuple[str, ...]:
    """Sentences on what does not divide: counted as if it did."""
    model, found = work.model, []
    cuts = (
        (work.batch, ways(axes, "data", "fsdp", "expert"), "sequences of the batch", "parts"),
        (work.seq, ways(axes, "context"), "tokens of a sequence", "parts"),
        (model.layers, ways(axes, "pipeline"), "layers", "stages"),
        (min(a.heads for a in model.attention), ways(axes, "tensor"), "query heads", "parts"),
        (min(a.kv_heads for a in model.attention), ways(axes, "tensor"), "key and value heads", "parts"),
    )
    for have, parts, what, into in cuts:
        if have % parts:
            found.append(f"{have:,} {what} do not divide into {parts:,} {into}: counted as if they did.")
    return tuple(found)

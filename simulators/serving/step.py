"""How long one step of a serving engine takes, on one chip of a replica, and what bounds it.

A step multiplies `n` tokens (chunks of prompts, and one or more tokens of each sequence that generates) with the
weights, and lets each token look at its context. Matrices run at the slower of two roofs, attention at the slower of
its two, and exchanges between chips and the engine's own time come on top:

    matrices       max(FLOPs / (peak e_c), (weights met by n tokens + what goes in and out) / (bandwidth e_b)), each
                   part of the weights at the peak of the format that multiplies it
    between them   norms, residual sums and activation functions: 8 d + 3 d_ff elements a token and layer, bandwidth
    attention      generating: max(FLOPs, cache read);  reading a prompt: max(FLOPs of the exact sum, cache read);
                   in 16 bits
    communication  tensor n: two all-reduces a layer, 2 (n-1)/n tokens d bytes / (link e_l) + 2 (n-1) hop each;
                   experts over m chips: two all-to-alls a layer, (m-1)/m tokens/m k d bytes / (link e_l) + hop each
    own time       s_0 + s_1 for each sequence
    drafting       k c of the time of generating, where tokens are proposed

All sums, nothing overlapped: engines that overlap do better, and a calibration then finds a larger share. Sampling is
part of the own time. Which experts are met is taken as random: E (1 - (1 - k/E)^n).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catalog.formats import WIDE
from catalog.inference import expert_params, output_flops, part_flops
from catalog.models import Attention
from simulators.serving.compiled import compiled
from simulators.serving.efficiency import TYPICAL, Efficiency
from simulators.serving.memory import cache_spans, read_bytes
from simulators.serving.setup import Setup

ACTIVATION_BYTES = 2  # of one element that chips exchange
# Positions in the array of scalars that the compiled loop reads.
(
    FLOPS_PER_TOKEN,
    FLOPS_PER_OUTPUT,
    READ_BYTES,
    MATRIX_BYTES_PER_TOKEN,
    BETWEEN_BYTES_PER_TOKEN,
    FLOPS_PER_S,
    BYTES_PER_S,
    COMM_S_PER_TOKEN,
    COMM_S,
    STEP_S,
    SEQUENCE_S,
    DRAFT_COST,
    GROUPS,
    WIDE_FLOPS_PER_S,
) = range(14)
# Columns of the array of kinds of attention layers: the sums are over one chip.
SPAN_BYTES, SPAN_WINDOW, SPAN_DECODE_FLOPS, SPAN_PREFILL_FLOPS = range(4)
# Columns of the array of kinds of layers with experts.
EXPERTS, EXPERTS_PER_TOKEN, EXPERT_BYTES = range(3)
# What a step's time is made of, in the order of the array that `step_seconds` fills; sums that it is given.
PARTS = ("compute", "memory", "communication", "overhead")
COMPUTE, MEMORY, COMMUNICATION, OVERHEAD = range(4)
BOUNDS = dict(enumerate(PARTS))


@dataclass(frozen=True)
class StepModel:
    """Numbers from which a step's time follows; made by `step_model`. Arrays as laid out above."""

    scalars: np.ndarray
    spans: np.ndarray
    experts: np.ndarray


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step, and the parts that make it up by what bounds them. `bound`: the largest part."""

    seconds: float
    compute_s: float
    memory_s: float
    communication_s: float
    overhead_s: float

    @property
    def bound(self) -> str:
        parts = (self.compute_s, self.memory_s, self.communication_s, self.overhead_s)
        return PARTS[int(np.argmax(parts))]


def step_model(setup: Setup, efficiency: Efficiency = TYPICAL) -> StepModel:
    """The step model of `setup`. Raises QuestionError where the catalogue lacks a number of its chip."""
    model, machine, chips, tensor = setup.model, setup.machine, setup.replica_chips, setup.split
    peak, bandwidth = machine.flops_per_s * efficiency.compute, machine.bytes_per_s * efficiency.bandwidth
    scalars = np.zeros(14)
    slower = {f: machine.flops_per_s / rate for f, rate in machine.peaks.items()}  # FLOPs count as at flops_per_s
    by = setup.kept.multiplies
    scalars[FLOPS_PER_TOKEN] = sum(flops * slower[by[part]] for part, flops in part_flops(model).items()) / chips
    scalars[FLOPS_PER_OUTPUT] = output_flops(model) * slower[by["embedding"]] / chips
    scalars[READ_BYTES] = read_bytes(setup)
    scalars[MATRIX_BYTES_PER_TOKEN], scalars[BETWEEN_BYTES_PER_TOKEN] = _activations(setup)
    scalars[FLOPS_PER_S], scalars[BYTES_PER_S] = peak, bandwidth
    scalars[COMM_S_PER_TOKEN], scalars[COMM_S] = _communication(setup, efficiency)
    scalars[STEP_S], scalars[SEQUENCE_S] = efficiency.step_s, efficiency.sequence_s
    if setup.speculation:
        scalars[DRAFT_COST] = setup.speculation.draft * setup.speculation.cost
    scalars[GROUPS] = setup.groups
    scalars[WIDE_FLOPS_PER_S] = machine.peaks[WIDE] * efficiency.compute
    size = setup.kept.bytes["experts"]
    experts = [
        (f.experts, f.experts_per_token, layers * f.experts * expert_params(model, f) * size / chips)
        for f, layers in Counter(model.feedforward).items()
        if f.experts
    ]
    spans = []
    for (size_, window), (kind, layers) in zip(cache_spans(setup), Counter(model.attention).items(), strict=True):
        spans.append(
            (
                size_,
                window,
                layers * _decode_flops(kind) / tensor,
                layers * 2.0 * kind.heads * (kind.head_dim + kind.value_head_dim) / tensor,
            )
        )
    return StepModel(scalars, np.array(spans), np.array(experts, dtype=float).reshape(-1, 3))


def _activations(setup: Setup) -> tuple[float, float]:
    """Bytes of one token on one chip, all layers: (into and out of matrices, through what lies between them).

    Every chip of a tensor group holds the whole residual stream, and its share of heads and of the feed-forward block.
    """
    d, tensor = setup.model.d_model, setup.split
    matrices = between = 0.0
    for a, f in zip(setup.model.attention, setup.model.feedforward, strict=True):
        heads = a.heads * a.head_dim + a.kv_heads * (a.head_dim + a.value_head_dim) + a.heads * a.value_head_dim
        paths = f.experts_per_token + f.shared_experts if f.experts else 1
        wide = f.d_ff * (f.experts_per_token or 1) + f.shared_experts * f.d_ff_shared
        matrices += 2 * d + heads / tensor + 2 * d * paths + (3 if f.gated else 2) * wide / tensor
        between += 8 * d + (3 if f.gated else 2) * wide / tensor
    return matrices * ACTIVATION_BYTES / setup.groups, between * ACTIVATION_BYTES / setup.groups


def _decode_flops(kind: Attention) -> float:
    """FLOPs of one layer for one token that looks at one other; latent attention in its absorbed form, on the latent:
    2 H ((d_c + d_rope) + d_c)."""
    if kind.kv_lora_rank is not None:
        return 2.0 * kind.heads * (2 * kind.kv_lora_rank + (kind.rope_head_dim or 0))
    return 2.0 * kind.heads * (kind.head_dim + kind.value_head_dim)


def _communication(setup: Setup, efficiency: Efficiency) -> tuple[float, float]:
    """(seconds for each token of the replica's batch, seconds for each step) of the exchanges between its chips."""
    model, machine = setup.model, setup.machine
    rate = machine.link_bytes_per_s * efficiency.communication
    hop = machine.hop_s if efficiency.hop_s is None else efficiency.hop_s
    size = model.d_model * ACTIVATION_BYTES
    per_token = per_step = 0.0
    if (n := setup.split) > 1:
        reduces = 2 * model.layers
        per_token += reduces * 2 * (n - 1) / n * size / setup.groups / rate
        per_step += reduces * 2 * (n - 1) * hop
    if (m := setup.expert) > 1:
        rate = machine.spread_bytes_per_s * efficiency.communication
        for f in model.feedforward:
            if f.experts:
                per_token += 2 * (m - 1) / m * f.experts_per_token * size / m / rate
                per_step += 2 * hop
    return per_token, per_step


@compiled
def positions(last: float, window: float) -> float:
    """Sum over positions 1 to `last` of min(position, window)."""
    if last <= window:
        return last * (last + 1.0) / 2.0
    return window * (window + 1.0) / 2.0 + (last - window) * window


@compiled
def step_seconds(
    scalars: np.ndarray,
    spans: np.ndarray,
    experts: np.ndarray,
    prompt_tokens: float,
    decode_tokens: float,
    sequences: float,
    generating: float,
    outputs: float,
    looked: np.ndarray,
    pairs: np.ndarray,
    read: np.ndarray,
    verified: float,
    parts: np.ndarray,
) -> float:
    """Seconds of one step; `parts` receives what it is made of.

    `generating` of the `sequences` generate, `decode_tokens` in all (draft tokens included, `verified` of each), and
    `outputs` tokens need their logits. Per kind of layer: `looked`, context tokens of the generating sequences;
    `pairs`, the sum over prompt tokens of the tokens that each looks at; `read`, context tokens of the prompts.
    """
    tokens, groups = prompt_tokens + decode_tokens, scalars[GROUPS]
    weights = scalars[READ_BYTES]
    for k in range(experts.shape[0]):
        met = 1.0 - (1.0 - experts[k, EXPERTS_PER_TOKEN] / experts[k, EXPERTS]) ** tokens
        weights += experts[k, EXPERT_BYTES] * met
    parts[:] = 0.0
    compute = (tokens * scalars[FLOPS_PER_TOKEN] + outputs * scalars[FLOPS_PER_OUTPUT]) / scalars[FLOPS_PER_S]
    memory = (weights + tokens * scalars[MATRIX_BYTES_PER_TOKEN]) / scalars[BYTES_PER_S]
    parts[COMPUTE if compute > memory else MEMORY] += max(compute, memory)
    parts[MEMORY] += tokens * scalars[BETWEEN_BYTES_PER_TOKEN] / scalars[BYTES_PER_S]
    decode_flops = decode_bytes = prompt_flops = prompt_bytes = 0.0
    for s in range(spans.shape[0]):
        decode_flops += looked[s] * spans[s, SPAN_DECODE_FLOPS] * verified
        decode_bytes += looked[s] * spans[s, SPAN_BYTES]
        prompt_flops += pairs[s] * spans[s, SPAN_PREFILL_FLOPS]
        prompt_bytes += read[s] * spans[s, SPAN_BYTES]
    decode_compute = decode_flops / groups / scalars[WIDE_FLOPS_PER_S]
    decode_memory = decode_bytes / groups / scalars[BYTES_PER_S]
    parts[COMPUTE if decode_compute > decode_memory else MEMORY] += max(decode_compute, decode_memory)
    prompt_compute = prompt_flops / groups / scalars[WIDE_FLOPS_PER_S]
    prompt_memory = prompt_bytes / groups / scalars[BYTES_PER_S]
    parts[COMPUTE if prompt_compute > prompt_memory else MEMORY] += max(prompt_compute, prompt_memory)
    parts[COMMUNICATION] += tokens * scalars[COMM_S_PER_TOKEN] + scalars[COMM_S]
    own = scalars[STEP_S] + scalars[SEQUENCE_S] * sequences
    if generating > 0.0:
        own += scalars[DRAFT_COST] * (memory + max(decode_compute, decode_memory) + scalars[COMM_S] + own)
    parts[OVERHEAD] += own
    return parts.sum()


def step_time(
    model: StepModel,
    contexts: Sequence[float] | np.ndarray = (),
    chunks: Sequence[tuple[float, float]] = (),
    verified: int = 1,
) -> StepTime:
    """Time of a step in which a sequence generates at each of `contexts` tokens (the new one included), and in which
    each of `chunks` = (tokens of a prompt, tokens of it computed or found before) is read to its end.

    `verified`: tokens of each generating sequence in this step, draft tokens included.
    """
    windows = model.spans[:, SPAN_WINDOW]
    at, new = np.asarray(contexts, dtype=float), np.asarray(chunks, dtype=float).reshape(-1, 2)
    looked = np.array([np.minimum(at, w).sum() for w in windows])
    pairs = np.array([sum(positions(c + t, w) - positions(c, w) for t, c in new) for w in windows], dtype=float)
    read = np.array([np.minimum(new.sum(axis=1), w + new[:, 0]).sum() for w in windows], dtype=float)
    parts = np.zeros(len(PARTS))
    sequences = len(at) + len(new)
    seconds = step_seconds(
        model.scalars,
        model.spans,
        model.experts,
        float(new[:, 0].sum()),
        float(len(at) * verified),
        float(sequences),
        float(len(at)),
        float(len(at) * verified + len(new)),
        looked,
        pairs,
        read,
        float(verified),
        parts,
    )
    return StepTime(seconds, *parts.tolist())


def prefill_s(model: StepModel, tokens: int, cached: int = 0, budget: int | None = None) -> float:
    """Time to read one prompt of `tokens`, `cached` of them found, in steps of at most `budget` tokens, alone."""
    total, done = 0.0, cached
    while done < tokens:
        chunk = min(tokens - done, budget or tokens)
        total += step_time(model, chunks=((chunk, done),)).seconds
        done += chunk
    return total


def decode_s(model: StepModel, batch: int, context: float) -> float:
    """Time of a step in which `batch` sequences of `context` tokens each generate."""
    return step_time(model, np.full(batch, context)).seconds

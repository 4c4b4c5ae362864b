"""What a transformer asks of its chips, per token or per layer: the terms that the step's time is made of."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.flops import flops_per_token, seen_tokens
from catalog.matmuls import Matmul, matmuls
from catalog.models import Attention, Model, parameters
from catalog.training_memory import routed_parameters

Floats = NDArray[np.float64]
TRAINING = 3  # a backward pass costs twice the forward
ELEMENT = 2  # bytes of an activation
USUAL_HEAD, SCORE_COST = 128, 64  # dimensions of a head; dimensions whose products take as long as a score's softmax


@dataclass(frozen=True)
class Work:
    """All layers of a model together unless said otherwise; FLOPs and bytes are of one forward pass and one token.

    weight_flops     products with weights of the layers, routed experts apart
    expert_flops     products with the weights of the experts that a token visits
    attention_flops  scores and their product with the values, causal, over `seq` tokens
    output_flops     the projection onto the vocabulary
    unread_flops     of weight_flops those of a layer's last product, whose result no backward pass reads: dense blocks
    swept_whole      bytes that norms, residuals and casts read and write and that only sequence parallelism cuts:
                     2 norms and 2 residuals a layer, 10 h elements
    swept_cut        bytes that activations, rotary embeddings and gates read and write, which tensor parallelism cuts:
                     3 elements a hidden unit and 4 a query, key or value
    dense, routed    parameters; `embedding`: those of the tables of tokens in and out
    """

    model: Model
    seq: int
    layers: int
    moe_layers: int
    experts: int
    visits: int
    width: int
    weight_flops: float
    expert_flops: float
    attention_flops: float
    output_flops: float
    unread_flops: float
    swept_whole: float
    dealt: float
    swept_cut: float
    scores: float
    expert_width: float
    dense: float
    routed: float
    embedding: float

    @property
    def flops_per_token(self) -> float:
        """Forward and backward, by the causal convention: what MFU counts."""
        forward = self.weight_flops + self.expert_flops + self.attention_flops + self.output_flops
        return TRAINING * forward

    @property
    def tied(self) -> bool:
        return self.model.tied_embeddings

    def attention_effort(self, unit: int) -> float:
        """FLOPs of attention as so many would take of heads of 128, of which the shares of peaks are.

        A matrix unit of side `unit` is fed whole sides: queries times keys of d dimensions are padded to them, and so
        are values. On GPUs (0) each score costs an exponential beside 4 d FLOPs: the rate goes as d / (d + 64), as
        FlashAttention-3 has it for 64, 128 and 256 (arXiv 2407.08608, figure 5).
        """
        counts = Counter(self.model.attention)
        return sum(n * _attention(a, self.seq) * _effort(a, unit) for a, n in counts.items())

    def padding(self, unit: int) -> tuple[float, float]:
        """FLOPs that a matrix unit of side `unit` is fed beside those asked for: of products with the layers' weights,
        and of routed experts; both dimensions of a weight are filled up to whole sides, before they are cut. 1 where
        there is no such unit."""
        found: list[float] = []
        for routed in (False, True) if unit else ():
            rows = [r for r in matmuls(self.model, self.seq) if r.name.startswith("moe_") == routed and _of_weights(r)]
            asked = sum(r.useful_flops for r in rows)
            fed = sum(r.useful_flops * _filled(r.k, unit) * _filled(r.n, unit) for r in rows)
            found.append(fed / asked if asked else 1.0)
        return (found[0], found[1]) if found else (1.0, 1.0)

    def keys_around(self, tensor: Floats, context: Floats) -> Floats:
        """Elements of keys and values of a token and a layer that go around a ring of so many: of full attention all
        that are held, of a window those that reach from one device's tokens into those before.

        A device takes in T (c - 1) / c tokens of a sequence; a window asks for its own length of them, and chunks that
        end where a device's tokens end for none.
        """
        whole = self.seq * (context - 1) / np.maximum(context, 1.0)
        told = np.zeros_like(context)
        for a, n in Counter(self.model.attention).items():
            held = a.latent.kv_rank + a.latent.rope if a.latent else 0.0
            heads = np.maximum(a.kv_heads / tensor, 1.0) * (a.head_dim + a.value_head_dim)
            needed = np.minimum(whole, _reach(a, self.seq, context))
            told = told + n / self.layers * (held or heads) * needed / np.maximum(whole, 1.0)
        return told

    def keys_held(self, tensor: Floats) -> Floats:
        """Elements of keys and values of a token and a layer on each of so many ways of tensor parallelism: a head is
        not cut further, nor are compressed keys and values."""
        ways, which = np.unique(tensor, return_inverse=True)
        kinds = Counter(self.model.attention)
        return np.array([sum(n * _keys(a, t) for a, n in kinds.items()) / self.layers for t in ways])[which]


def work(model: Model, seq: int) -> Work:
    """The terms of a model at a length of sequence."""
    told = flops_per_token(model, seq, "causal")
    all_parameters = parameters(model)
    routed = float(routed_parameters(model))
    blocks = model.feedforward
    experts = sum(
        2.0 * (3 if b.gated else 2) * model.d_model * b.d_ff * b.experts_per_token for b in blocks if b.experts
    )
    hidden = sum(b.d_ff * max(b.experts_per_token, 1) + b.shared_experts * b.d_ff_shared for b in blocks)
    heads = sum(a.heads * (a.head_dim + a.value_head_dim) + _keys(a) for a in model.attention)
    visits = sum(max(b.experts_per_token, 1) - 1 for b in blocks)  # copies of a token, dealt out and gathered
    return Work(
        model=model,
        seq=seq,
        layers=model.layers,
        moe_layers=sum(1 for b in blocks if b.experts),
        experts=max((b.experts for b in blocks), default=0),
        visits=max((b.experts_per_token for b in blocks), default=0),
        width=model.d_model,
        weight_flops=(told.projections + told.feedforward) / TRAINING - experts,
        expert_flops=experts,
        attention_flops=told.attention / TRAINING,
        output_flops=told.output / TRAINING,
        unread_flops=sum(2.0 * model.d_model * b.d_ff for b in blocks if not b.experts),
        swept_whole=ELEMENT * model.d_model * 10.0 * model.layers,
        dealt=ELEMENT * model.d_model * visits,
        swept_cut=ELEMENT * (3.0 * hidden + 4.0 * heads),
        scores=float(sum(a.heads for a in model.attention) * seq),
        expert_width=float(min((min(b.d_ff, model.d_model) for b in blocks if b.experts), default=0)),
        dense=all_parameters.total - routed,
        routed=routed,
        embedding=float(model.vocab * model.d_model * (1 if model.tied_embeddings else 2)),
    )


def _of_weights(product: Matmul) -> bool:
    """Of the layers, the router left out: it is too narrow to count."""
    return not product.name.startswith(("qk_", "pv_", "lm_head", "router"))


def _filled(dimension: int, unit: int) -> float:
    return -(-dimension // unit) * unit / dimension


def _attention(a: Attention, seq: int) -> float:
    """Forward FLOPs of a token and a layer, causal."""
    return 2.0 * a.heads * (a.head_dim + a.value_head_dim) * seen_tokens(a, seq)


def _effort(a: Attention, unit: int) -> float:
    both = a.head_dim + a.value_head_dim
    if not unit:
        return (both / 2 + SCORE_COST) / (both / 2) / ((USUAL_HEAD + SCORE_COST) / USUAL_HEAD)
    padded = sum(-(-d // unit) * unit for d in (a.head_dim, a.value_head_dim))
    usual = 2 * (-(-USUAL_HEAD // unit) * unit)
    return padded / both / (usual / (2 * USUAL_HEAD))


def _reach(a: Attention, seq: int, context: Floats) -> Floats:
    """Tokens before its own that a device of a ring needs."""
    window = a.window_tokens
    if a.span == "full" or window is None or window >= seq:
        return np.full_like(context, float(seq))
    if a.span == "chunked":
        return np.where((seq / context) % window == 0, 0.0, float(window))
    return np.full_like(context, float(window))


def _keys(a: Attention, tensor: float = 1.0) -> float:
    """Elements of keys and values per token that are kept or sent on."""
    if a.latent:
        return a.latent.kv_rank + a.latent.rope
    return max(a.kv_heads / tensor, 1.0) * (a.head_dim + a.value_head_dim)

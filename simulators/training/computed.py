"""FLOPs that a program of a step computes: the products, masked scores and layers computed again included.

For every layout, of a chip and a step:

    layers    products with weights: forward, 2 backward, and forward again of what is recomputed, without a dense
              layer's last product where nobody reads its result
    attention 2 H (d_qk + d_v) for each pair of tokens, forward; again; and 2.5 times backward, which makes the scores
              once more. Pairs are those that the mask leaves, or, in plain products, those of each block of queries
              with all keys that it can reach
    output    the projection onto the vocabulary, 3 times; 4 where the compiler makes the logits twice
"""

from catalog.flops import seen_tokens
from catalog.models import Attention
from simulators.training.layout import Layouts
from simulators.training.machine import Floats
from simulators.training.sent import dear
from simulators.training.step import ATTENTION_BACKWARD, BACKWARD
from simulators.training.work import Work
from simulators.training.written import Written


def step_flops(work: Work, layouts: Layouts, again: Floats, batch: int, written: Written) -> Floats:
    """FLOPs of matrix products of a chip in a step of `batch` sequences, `again` the part of the layers computed
    twice. Those of norms, softmax and the optimiser come on top: less than a hundredth."""
    whole = dear(again)
    weights = work.weight_flops + work.expert_flops
    layers = weights * (1 + BACKWARD + whole) - whole * (work.unread_flops if written.pruned else 0.0)
    attention = sum(
        2.0 * a.heads * (a.head_dim + a.value_head_dim) * _met(a, work.seq, written) for a in work.model.attention
    )
    output = work.output_flops * (1 + BACKWARD + written.logits_again)
    one = layers + attention * (1 + ATTENTION_BACKWARD + whole) + output
    return one * batch * work.seq / layouts.chips


def _met(a: Attention, seq: int, written: Written) -> float:
    """Keys that a query is multiplied with, on average."""
    if not written.all_pairs:
        return seen_tokens(a, seq)
    window = a.window_tokens or seq
    if a.span == "sliding":
        return float(min(seq, window + written.block))
    return float(window if a.span == "chunked" and window < seq and window % written.block == 0 else seq)

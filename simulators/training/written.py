"""How a framework writes the training step, where frameworks differ in what is computed, sent and kept.

The planner times GPUs as Megatron-LM writes it and TPUs as XLA compiles JAX (`written_for`). Variants of XLA's, such as
`replace(XLA, scattered="windowed")`, say what the compiler chose for one program: tests hold them to the compiler's own
tables.
"""

from dataclasses import dataclass
from typing import Literal

Scatter = Literal["ring", "windowed", "summed"]
"""How gradients of weights that `fsdp` deals out get there, of an array V over n chips: a ring sends V (n - 1) / n; a
product that is cut into turns, of which each sends its part on both ways (XLA's windowed einsum), V (n + 1) / n; an
all-reduce, of which each chip keeps its part, 2 V (n - 1) / n."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A program's way of doing a step.

    recipe             bytes of weights, gradients and the optimiser's state, by catalog.training_memory.RECIPES
    dealt_state        the optimiser's state is dealt out over all copies (ZeRO-1), not over fsdp alone
    sequence_parallel  tensor parallelism cuts what lies between its blocks too
    folded             routed experts lie whole over tensor parallelism too, where that divides their number
    pruned             of a layer computed again, what its backward pass never reads is left out: XLA drops it, PyTorch
                       runs the whole layer
    all_pairs          attention's scores are computed for pairs that the mask hides: plain products over stretches of
                       `block` queries, each with the keys that it can reach; a kernel skips them
    logits_again       the compiler makes the logits a second time, as one that is short of memory does
    exchange_beside    tokens go to experts and back while another microbatch is computed (DualPipe), so that only what
                       takes longer than its products is waited for
    gradient_bytes     of an element when gradients of the layers are summed; `head_gradient_bytes` of the output
                       projection's
    head_width_bytes   of an element of the gradient that the output projection hands back to the layers
    scattered          see Scatter; `experts_scattered` the same of routed experts, `head_scattered` of the projection
    tokens_looked_up   rows of the table of tokens go to who needs them, and the table itself is never gathered
    """

    recipe: str = "mixed"
    dealt_state: bool = True
    sequence_parallel: bool = True
    folded: bool = True
    pruned: bool = False
    all_pairs: bool = False
    block: int = 512
    logits_again: bool = False
    exchange_beside: bool = False
    gradient_bytes: float = 4.0
    head_gradient_bytes: float = 4.0
    head_width_bytes: float = 2.0
    scattered: Scatter = "ring"
    experts_scattered: Scatter = "ring"
    head_scattered: Scatter = "ring"
    tokens_looked_up: bool = False


MEGATRON = Written()
XLA = Written(folded=False, pruned=True, gradient_bytes=2.0, head_gradient_bytes=2.0, tokens_looked_up=True)


def written_for(torus: int) -> Written:
    """What steps are timed as: a torus is a TPU's."""
    return XLA if torus else MEGATRON

"""Bytes on a device of every layout at once: `catalog.training_memory`, column by column, of the fullest stage.

The optimiser's state and master weights are dealt out over all copies of what they belong to (ZeRO-1, Megatron's
distributed optimiser), as Megatron-LM and MaxText can where they are told to; TorchTitan repeats them in each replica.
Those of routed experts are dealt out over fsdp, data and context, the rest over the expert axis too; weights and
gradients over `fsdp` alone. Where whole layers are computed again, `part` of them, their inputs are kept and the rest
of their activations is not.

    state        of n = ceil(L / (p v)) v layers, or of the table of tokens and the layers beside it, if that is more:
                 where slots for layers are left over, each of the two tables takes half of them
    activations  A: on the first stage of min(p, m) microbatches in flight, L / p layers each; on the last stage of one
    logits       G: on the last stage alone; bytes = state + max(A, A / p + G)
"""

from dataclasses import dataclass

import numpy as np

from catalog.models import Model
from catalog.training_memory import RECIPES, Remat, Sharding, layer_bytes_per_token, parameters, routed_parameters
from simulators.training.layout import REMATS, Layouts
from simulators.training.machine import Floats
from simulators.training.written import MEGATRON, Written

BUFFERS = 1.05  # what communication, a layer's temporaries and fragmentation take on top


@dataclass(frozen=True)
class Memory:
    """Bytes by account, an entry for each layout.

    `again`: the part of all layers that is computed again, which for `part` is as much as the memory asks for.
    `activations` are those of the first stage, of which the last stage, that has the logits, holds the part `last`.
    """

    state: Floats
    activations: Floats
    logits: Floats
    again: Floats
    last: Floats

    @property
    def bytes(self) -> Floats:
        return BUFFERS * (self.state + np.maximum(self.activations, self.activations * self.last + self.logits))


def memory(
    model: Model,
    layouts: Layouts,
    seq: int,
    hbm_bytes: float,
    batch: int | None = None,
    written: Written = MEGATRON,
) -> Memory:
    """What a device of the fullest stage holds, on chips of so much memory; `batch` None: enough that p microbatches
    are in flight."""
    state = _state(model, layouts, written)
    tokens = layouts.micro * seq / layouts.context
    flying = np.where(layouts.interleave > 1, 1 + (layouts.pipeline - 1) / (layouts.pipeline * layouts.interleave), 1.0)
    if batch is not None:
        flying = flying * np.minimum(batch / (layouts.replicas * layouts.micro) / layouts.pipeline, 1.0)
    logits = 4 * tokens * (model.d_model + model.vocab) / layouts.tensor
    kept, least = (
        tokens * flying * _per_token(model, layouts, seq, remat, written.sequence_parallel)
        for remat in ("selective", "full")
    )
    last = 1 / (layouts.pipeline * flying)
    room = hbm_bytes / BUFFERS - state
    lacks = kept - np.minimum(room, (room - logits) / last)
    part = np.clip(lacks / np.maximum(kept - least, 1.0), 0.0, 1.0)
    again = np.select([layouts.remat == REMATS.index("full"), layouts.remat == REMATS.index("part")], [1.0, part], 0.0)
    return Memory(state, kept * (1 - again) + least * again, logits, again, last)


def _state(model: Model, layouts: Layouts, written: Written) -> Floats:
    """Weights and gradients, master weights and moments of the fullest stage."""
    bytes_ = RECIPES[written.recipe]
    routed = routed_parameters(model)
    dense, apart = parameters(model).total - routed, routed / layouts.expert
    held, own = bytes_["weights"] + bytes_["gradients"], bytes_["master_weights"] + bytes_["moments"]
    fullest = _fullest(model, layouts) / layouts.tensor
    if not written.dealt_state:
        return fullest * (dense + apart) * (held + own) / layouts.fsdp
    dealt = layouts.fsdp * layouts.data * layouts.context
    return fullest * ((dense + apart) * held / layouts.fsdp + (dense / layouts.expert + apart) * own / dealt)


def _fullest(model: Model, layouts: Layouts) -> Floats:
    """The part of all parameters that the fullest stage holds: 1 / p, were it even."""
    total, p, v = parameters(model).total, layouts.pipeline, layouts.interleave
    table = model.vocab * model.d_model
    layer = (total - table * (1 if model.tied_embeddings else 2)) / model.layers
    slots = -(-model.layers // (p * v)) * v
    beside = np.maximum(slots - (slots * p - model.layers) // 2, 0)
    return np.where(p > 1, np.maximum(slots * layer, beside * layer + table) / total, 1.0)


def _per_token(model: Model, layouts: Layouts, seq: int, remat: Remat, sequence_parallel: bool) -> Floats:
    """Bytes kept per token of all layers: it depends on tensor parallelism alone, of which there are few."""
    ways, which = np.unique(layouts.tensor, return_inverse=True)
    kinds = list(zip(model.attention, model.feedforward, strict=True))
    counts = {kind: kinds.count(kind) for kind in set(kinds)}

    def one(tensor: int) -> float:
        sharding = Sharding(tensor=int(tensor), sequence_parallel=sequence_parallel)
        return sum(
            n * layer_bytes_per_token(model.d_model, a, f, sharding, seq=seq, remat=remat, dropout=False)
            for (a, f), n in counts.items()
        )

    return np.array([one(t) for t in ways])[which]

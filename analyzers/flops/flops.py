"""Model FLOPs of one token by every convention, and where in the model they are."""

from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts, with_options
from analyzers.subject import MODEL, SEQ, need_model, sequence_of
from catalog.flops import CONVENTIONS, FlopsPerToken, flops_per_token, forward_flops_per_token
from catalog.models import Parameters, parameters
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (MODEL, SEQ)
USUAL_SEQ = 8192


@dataclass(frozen=True, kw_only=True)
class FlopsResult:
    """`counts`: FLOPs of one token, forward and backward, by convention, split into where they are.

    `forward`: the forward pass alone, causal. `seq`: tokens in a sequence. `parameters`: the weights they follow from.
    """

    model: str
    seq: int
    counts: tuple[FlopsPerToken, ...]
    forward: float
    parameters: Parameters
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "seq": self.seq,
            "flops_per_token": {c.convention: c.total for c in self.counts},
            "forward_flops_per_token": self.forward,
            "parts": {c.convention: c.parts() for c in self.counts},
            "total_params": self.parameters.total,
            "active_matmul_params": self.parameters.active_matmul,
            "notes": list(self.notes),
        }


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> FlopsResult:
    """FLOPs per token. Raises QuestionError where nothing tells which model it is, or its dimensions cannot be."""
    facts = with_options(facts, options, ("model", "seq"))
    model = need_model(facts)
    seq = sequence_of(facts)
    notes = [] if seq else [f"Nothing says how long a sequence is: {USUAL_SEQ:,} tokens are taken. Ask with seq=N."]
    seq = seq or USUAL_SEQ
    return FlopsResult(
        model=model.name,
        seq=seq,
        parameters=parameters(model),
        forward=forward_flops_per_token(model, seq),
        counts=tuple(flops_per_token(model, seq, c.name) for c in CONVENTIONS),
        notes=(*notes, *model.notes),
    )

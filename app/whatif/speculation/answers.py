"""What drafting tokens ahead is worth, by its length, and up to how many sequences at a time it pays."""

from dataclasses import dataclass
from typing import Any

from analyzers.serving.speculation.model import (
    Draft,
    Machine,
    at_any,
    best,
    by_draft,
    greatest_cost,
    least_acceptance,
    machine,
    ranges_told,
    still_rising,
)
from app.whatif.speculation.asked import Asked
from catalog.chips import chip
from catalog.inference import accepted_length, speculation_speedup
from catalog.models import model
from errors import QuestionError


@dataclass(frozen=True, kw_only=True)
class Worth:
    """`acceptance`: chance that a token is accepted where all before it were; `cost`: a draft step by a step.

    `machine`: the model on the chip, where both are named; batches are sequences at a time.
    """

    acceptance: float
    draft: int
    cost: float
    drafts: tuple[Draft, ...]
    machine: Machine | None
    chip: str | None
    context: int

    @property
    def asked(self) -> Draft:
        length = accepted_length(self.acceptance, self.draft)
        return Draft(self.draft, length, speculation_speedup(self.acceptance, self.draft, self.cost))

    def to_dict(self) -> dict[str, Any]:
        asked, most = self.asked, best(self.drafts)
        return {
            "speedup": asked.speedup,
            "acceptance": self.acceptance,
            "draft": self.draft,
            "cost": self.cost,
            "mean_accepted_length": asked.length,
            "best_draft": most.tokens,
            "best_speedup": most.speedup,
            "least_acceptance": least_acceptance(self.draft, self.cost),
            "greatest_cost": greatest_cost(asked.length, self.draft),
            **self.batches(),
            "by_draft": [{"draft": d.tokens, "length": d.length, "speedup": d.speedup} for d in self.drafts],
            "notes": list(self.notes()),
        }

    def batches(self) -> dict[str, Any]:
        """free_batch (None: not known, or of a model with experts, whose drafts are never free to verify; 0: at none),
        break_even_batch (None: not known, or no end: see pays_between_batches), pays_at_any_batch."""
        if self.machine is None:
            names = ("free_batch", "break_even_batch", "pays_at_any_batch", "pays_between_batches")
            return dict.fromkeys(names)
        pays = self.pays
        free = self.machine.free_batch(self.draft)
        limit = pays[-1][1] if pays else 0.0
        return {
            "free_batch": None if free == float("inf") else free,
            "break_even_batch": None if limit == float("inf") else limit,
            "pays_at_any_batch": at_any(pays),
            "pays_between_batches": ranges_told(pays),
        }

    @property
    def pays(self) -> tuple[tuple[float, float], ...]:
        """Between which sequences at a time it pays; none without a machine."""
        return self.machine.pays(self.asked.length, self.draft, self.cost) if self.machine else ()

    @property
    def routed(self) -> bool:
        return self.machine is not None and self.machine.routed

    def notes(self) -> tuple[str, ...]:
        cost = (
            "Verifying drafts reads experts of their own, which many sequences meet anyway: the speed-ups by length "
            "leave that out, the batches at which it pays count it."
            if self.routed
            else "Verifying more tokens costs nothing while steps are bound by memory."
        )
        notes = [f"Tokens are taken to be accepted independently and alike. {cost}"]
        if still_rising(self.drafts):
            notes.append(
                f"At this cost each further draft token gains: {self.drafts[-1].tokens:,} are as far as was tried."
            )
        if self.machine is None:
            return (*notes, "Name --model and --chip to learn up to how many sequences it pays.")
        return (
            *notes,
            f"The batches at which it pays are by a roofline of {self.machine.model.name} on {self.chip} "
            f"with {self.context:,} tokens of context, at BF16 peak and full bandwidth.",
        )


def worth(asked: Asked) -> Worth:
    """Raises QuestionError where a number is missing or cannot be."""
    if asked.acceptance is None:
        raise QuestionError("no chance of acceptance", expected="--acceptance, a share from 0 to 1")
    if (asked.model is None) != (asked.chip is None):
        raise QuestionError("the batch up to which it pays needs both", expected="--model and --chip")
    drafts = by_draft(asked.acceptance, asked.cost)
    if asked.draft and asked.draft >= len(drafts):
        drafts = by_draft(asked.acceptance, asked.cost, asked.draft)
    found = chip(asked.chip) if asked.chip else None
    return Worth(
        acceptance=asked.acceptance,
        draft=asked.draft or max(best(drafts).tokens, 1),
        cost=asked.cost,
        drafts=drafts,
        machine=machine(model(asked.model), found, asked.context) if found else None,
        chip=found.name if found else None,
        context=asked.context,
    )

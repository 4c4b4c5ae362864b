"""What is drafting tokens ahead worth, which length is best, and up to how many sequences does it pay?"""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from errors import QuestionError
from errors.numbers import COST, FROM_ZERO

if TYPE_CHECKING:
    from analyzers.serving.speculation.model import Draft, Machine
    from app.whatif.base import Words
    from app.workspace import Workspace

NAME = "speculation"
HELP = "what drafting tokens ahead is worth, the best length of a draft, and the batch up to which it pays"


@dataclass(frozen=True, kw_only=True)
class Worth:
    """`acceptance`: chance that a token is accepted where all before it were; `cost`: a draft step by a step.

    `machine`: the model on the chip, where both are named; batches are sequences at a time.
    """

    acceptance: float
    draft: int
    cost: float
    drafts: "tuple[Draft, ...]"
    machine: "Machine | None"
    chip: str | None
    context: int

    @property
    def asked(self) -> "Draft":
        from analyzers.serving.speculation.model import Draft
        from catalog.inference import accepted_length, speculation_speedup

        length = accepted_length(self.acceptance, self.draft)
        return Draft(self.draft, length, speculation_speedup(self.acceptance, self.draft, self.cost))

    def to_dict(self) -> dict[str, Any]:
        from analyzers.serving.speculation.model import best, greatest_cost, least_acceptance

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
        """free_batch, break_even_batch (None: not known, or any: see pays_at_any_batch), pays_at_any_batch."""
        if self.machine is None:
            return {"free_batch": None, "break_even_batch": None, "pays_at_any_batch": None}
        limit = self.machine.break_even(self.asked.length, self.draft, self.cost)
        free = self.machine.critical_tokens() / (self.draft + 1)
        endless = limit == float("inf")
        return {
            "free_batch": None if free == float("inf") else free,
            "break_even_batch": None if endless else limit,
            "pays_at_any_batch": endless,
        }

    def notes(self) -> tuple[str, ...]:
        notes = [
            "Tokens are taken to be accepted independently and alike; verifying more tokens costs nothing while "
            "steps are bound by memory."
        ]
        if self.machine is None:
            return (*notes, "Name --model and --chip to learn up to how many sequences it pays.")
        return (
            *notes,
            f"The batch up to which it pays is by a roofline of {self.machine.model.name} on {self.chip} "
            f"with {self.context:,} tokens of context, at BF16 peak and full bandwidth.",
        )


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--acceptance",
        type=float,
        metavar="SHARE",
        help="chance that a draft token is accepted where all before it were, 0 to 1",
    )
    parser.add_argument("--draft", type=int, metavar="K", help="draft tokens (default: the best number)")
    parser.add_argument(
        "--cost",
        type=float,
        default=0.05,
        metavar="RATIO",
        help="time of a draft step by that of a step of the model (default: 0.05)",
    )
    parser.add_argument("--model", metavar="NAME", help="a model of the catalogue, for the batch up to which it pays")
    parser.add_argument("--chip", metavar="NAME", help="a chip of the catalogue")
    parser.add_argument(
        "--context", type=int, default=0, metavar="TOKENS", help="tokens that a sequence holds at a step (default: 0)"
    )


def answer(args: argparse.Namespace, place: "Workspace | None") -> Worth:
    """Raises QuestionError where a number is missing or cannot be."""
    from analyzers.serving.speculation.model import MOST_DRAFT, best, by_draft, machine
    from catalog.chips import chip
    from catalog.models import model

    if args.acceptance is None:
        raise QuestionError("no chance of acceptance", expected="--acceptance, a share from 0 to 1")
    if args.draft is not None and not 1 <= args.draft <= 1000:
        raise QuestionError(f"{args.draft} draft tokens", expected="a whole number from 1 to 1,000")
    if (args.model is None) != (args.chip is None):
        raise QuestionError("the batch up to which it pays needs both", expected="--model and --chip")
    COST.read(args.cost, "cost")
    FROM_ZERO.read(args.context, "context")
    drafts = by_draft(args.acceptance, args.cost, max(MOST_DRAFT, args.draft or 0))
    found = chip(args.chip) if args.chip else None
    return Worth(
        acceptance=args.acceptance,
        draft=args.draft or max(best(drafts).tokens, 1),
        cost=args.cost,
        drafts=drafts,
        machine=machine(model(args.model), found, args.context) if found else None,
        chip=found.name if found else None,
        context=args.context,
    )


def words(result: Worth) -> "Words":
    from app import format as fmt
    from app.whatif.base import Words
    from app.words import Table

    told, asked = result.to_dict(), result.asked
    text = (
        f"{fmt.count(asked.tokens, 'draft token')} give {fmt.number(asked.length)} tokens a step: "
        f"{asked.speedup:.2f} times as fast where steps are bound by memory."
    )
    if told["best_draft"] not in (0, asked.tokens) and told["best_speedup"] > 1.01 * asked.speedup:
        text += f" {fmt.count(told['best_draft'], 'draft token')} would be best: {told['best_speedup']:.2f} times."
    if asked.speedup <= 1:
        text += " It does not pay."
    if told["pays_at_any_batch"]:
        text += " It pays at any batch: reading the caches stays the bound."
    elif told["break_even_batch"] is not None:
        text += f" It pays up to about {told['break_even_batch']:,.0f} sequences at a time"
        text += f"; verifying is free up to {told['free_batch']:,.0f}." if told["free_batch"] else "."
    rows = tuple((str(d.tokens), fmt.number(d.length), f"{d.speedup:.4f}") for d in result.drafts)
    return Words(text, Table(("draft tokens", "tokens of a step", "speed-up"), rows, right=(0, 1, 2)), result.notes())

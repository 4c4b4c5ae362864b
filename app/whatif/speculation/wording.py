"""The answer about drafting in words: what a terminal says."""

from typing import TYPE_CHECKING, Any

from analyzers.serving.speculation.model import best, still_rising
from app.questions.speculation.words import batches, best_told
from app.whatif.base import Words
from app.words import Table, headline
from errors import format as fmt

if TYPE_CHECKING:
    from app.whatif.speculation.answers import Worth


def words(result: "Worth") -> Words:
    """The verdict, then the speed-up by the number of draft tokens."""
    told, asked = result.to_dict(), result.asked
    where = "if verifying cost no more than a plain step" if result.routed else "where steps are bound by memory"
    text = (
        f"{fmt.count(asked.tokens, 'draft token')} give {fmt.number(asked.length)} tokens a step: "
        f"{asked.speedup:.2f} times as fast {where}."
    )
    said = [text]
    if told["best_draft"] not in (0, asked.tokens) and told["best_speedup"] > 1.01 * asked.speedup:
        said.append(best_told(best(result.drafts), still_rising(result.drafts)))
    if asked.speedup <= 1:
        said.append("It does not pay.")
    if result.machine is not None:
        said.append(f"It {batches(result.pays, result.machine.caches_bound(asked.tokens))}{_free(told)}.")
        if result.routed:
            said.append("Verifying drafts reads experts of their own, most of all at few sequences.")
    rows = tuple((str(d.tokens), fmt.number(d.length), f"{d.speedup:.4f}") for d in result.drafts)
    return Words(
        headline(*said), Table(("draft tokens", "tokens of a step", "speed-up"), rows, right=(0, 1, 2)), result.notes()
    )


def _free(told: dict[str, Any]) -> str:
    """Up to how many sequences verifying is free, where drafting pays at some."""
    if told["free_batch"] == 0 and told["pays_between_batches"]:
        return "; verifying is free at none, as its attention is bound by computing"
    if told["free_batch"] is None or told["pays_at_any_batch"] or not told["pays_between_batches"]:
        return ""
    return f"; verifying is free up to {told['free_batch']:,.0f}"

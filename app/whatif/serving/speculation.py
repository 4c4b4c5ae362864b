"""The drafting of a run that speculates: a run fitted as if it had not would be credited with a faster machine."""

from typing import TYPE_CHECKING, Any

from analyzers.serving.kv_cache.setting import whole_fact
from analyzers.serving.speculation import DRAFT_FACTS
from analyzers.serving.speculation.data import observed
from analyzers.serving.speculation.model import needed_chance
from app.whatif.serving.asked import Asked
from errors import QuestionError
from simulators.serving.setup import Speculation

if TYPE_CHECKING:
    from runs.run import Run

SAID = ("draft", "acceptance", "cost")
"""What --ran may say of it, and the options of the same names of what is asked."""


def of_run(run: "Run", corrected: dict[str, Any]) -> Speculation | None:
    """As the run tells it and `corrected` says; None where it does not speculate.

    Raises QuestionError where it does, and nobody says how many of its tokens were kept.
    """
    draft = corrected.get("draft") or whole_fact(run.manifest.facts, DRAFT_FACTS)
    seen = observed(run.tables, draft, None)
    if seen is not None and seen.drafted is not None and not seen.drafted:
        seen = None  # its counters say that nothing was proposed
    if draft is None and seen is not None and seen.draft:
        draft = max(round(seen.draft), 1)
    if draft is None:
        if seen is None and "acceptance" not in corrected:
            return None
        raise QuestionError(
            f"{run.manifest.name} speculates, and does not say how many tokens ahead",
            advice="Say it with --ran draft=K, for example --ran draft=3.",
        )
    chance = corrected.get("acceptance")
    if chance is None and seen is not None and seen.length is not None:
        chance = needed_chance(seen.length, draft)
    if chance is None:
        raise QuestionError(
            f"{run.manifest.name} speculates {draft} tokens ahead, and does not say what share of them was kept",
            advice=f"Say it with --ran, for example --ran draft={draft},acceptance=0.7.",
        )
    return Speculation(draft, chance, corrected.get("cost", 0.0))


def asked(given: Asked, like: Speculation | None) -> Speculation | None:
    """As the options say; what they leave out is as in the run, `like`. Raises QuestionError where something lacks."""
    said = [n for n in SAID if getattr(given, n) is not None]
    if not said:
        return like
    draft = given.draft or (like and like.draft)
    if draft is None:
        what = f"--{said[0]}"
        raise QuestionError(f"{what} says nothing where no tokens are proposed ahead", expected="--draft")
    chance, cost = given.acceptance, given.cost
    if chance is None and like:
        chance = like.acceptance
    if chance is None:
        raise QuestionError("a draft without the share of its tokens that is kept", expected="--acceptance")
    if cost is None:
        cost = like.cost if like else 0.0
    return Speculation(draft, chance, cost)

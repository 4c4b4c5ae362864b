"""Prefix cache: what share of prompts it finds, what caches of other sizes would find, and what that saves."""

from analyzers.serving.prefix_cache import ENOUGH, PrefixResult
from app.components.figures_row import Figure
from app.components.question_page import question_page
from app.questions.prefix_cache import PREFIX_CACHE
from app.questions.prefix_cache.controls import controls
from app.questions.prefix_cache.view import pictures
from app.questions.prefix_cache.words import size_words
from errors import format as fmt


def page() -> None:
    question_page(PREFIX_CACHE, "Replaying the prompts", figures, pictures, options=controls, apart=True)


def figures(result: PrefixResult) -> list[Figure]:
    """Measured, attainable, at the asked size, the size that is enough, and what is saved."""
    shown = []
    if result.measured.hit_rate is not None:
        shown.append(
            Figure(
                "The engine found",
                fmt.share(result.measured.hit_rate),
                PREFIX_CACHE.meaning("The engine's own"),
                "measured",
                result.measured.hit_rate,
                "more",
            )
        )
    if result.replayed:
        shown += [
            Figure("Without end", fmt.share(result.attainable, 4), PREFIX_CACHE.meaning("Without end"), "derived"),
            Figure(
                "At this size",
                fmt.share(result.found),
                f"{size_words(result, result.size_blocks)}, {result.size_source}. {PREFIX_CACHE.meaning('By size')}",
                "modelled",
            ),
            Figure(
                "Enough",
                size_words(result, result.enough_blocks).split(" (")[0],
                f"The least size that finds {fmt.whole_share(ENOUGH)} of what a cache without end finds.",
                "modelled",
            ),
        ]
    saving = result.saved["measured"] or result.saved["size"]
    if saving and saving["flops_share"] is not None:
        basis = "derived" if result.saved["measured"] else "modelled"
        shown.append(
            Figure("Saved of reading prompts", fmt.share(saving["flops_share"]), PREFIX_CACHE.meaning("Saves"), basis)
        )
    return shown[:5]


if __name__ == "__main__":
    page()

"""Speculation: how many draft tokens are accepted, what that is worth, and up to how many sequences it pays."""

from analyzers.serving.speculation import SpeculationResult
from app.components.figures_row import Figure
from app.components.question_page import subject_page
from app.questions.speculation import SPECULATION
from app.questions.speculation.controls import controls
from app.questions.speculation.view import pictures
from app.questions.speculation.words import limit, times
from errors import format as fmt


def page() -> None:
    subject_page(SPECULATION, "Weighing drafts", figures, pictures, options=controls)


def figures(result: SpeculationResult) -> list[Figure]:
    """Accepted, tokens of a step, worth, best length, break-even."""
    basis = "modelled" if result.observed.source == "asked" else "measured"
    shown = [
        Figure(
            "Accepted",
            fmt.share(result.observed.rate),
            SPECULATION.meaning("Accepted"),
            basis,
            result.observed.rate,
            "more",
        ),
        Figure(
            "Tokens of a step",
            fmt.number(result.length),
            SPECULATION.meaning("Tokens of a step"),
            basis,
            result.length,
            "more",
        ),
        Figure("Speed-up", times(result.speedup), SPECULATION.meaning("Speed-up"), "modelled"),
    ]
    if result.measured_speedup is not None:
        shown.append(
            Figure(
                "Measured speed-up",
                times(result.measured_speedup),
                SPECULATION.meaning("Measured speed-up"),
                "measured",
            )
        )
    else:
        shown.append(
            Figure(
                "Best draft",
                f"{result.best.tokens} tokens",
                "The length with the greatest speed-up: by the measured positions, else by Leviathan's rule."
                + " It is the longest that was tried: more would gain yet." * result.still_rising,
                "modelled",
            )
        )
    if result.break_even_batch is not None:
        shown.append(
            Figure("Break-even batch", limit(result.pays), SPECULATION.meaning("Break-even batch"), "modelled")
        )
    return shown


if __name__ == "__main__":
    page()

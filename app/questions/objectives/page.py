"""The run's objectives (SLO): which requests came in time, and why not the others?"""

from analyzers.serving.objective_causes import CAUSES
from analyzers.serving.objectives import SloResult
from app.components.figures_row import Figure
from app.components.question_page import question_page
from app.questions.objectives import OBJECTIVES
from app.questions.objectives import figure as draw
from app.questions.objectives.controls import loads, options
from app.questions.objectives.view import explore
from app.questions.objectives.words import SERVER
from errors import format as fmt


def page() -> None:
    question_page(OBJECTIVES, "Judging requests", figures, explore, options=options, beside=loads)


def figures(result: SloResult) -> list[Figure]:
    """Attainment, goodput, the share of completed requests, and what most missed for."""
    worst = max(result.misses.items(), key=lambda item: item[1]) if result.misses else None
    best = fmt.number(result.best_goodput_per_s)
    low, high = fmt.share(result.attainment), fmt.share(result.attainment_high)
    by_server = result.load.tool == SERVER  # a range
    return [
        Figure(
            "Attainment",
            f"{low} to {high}" if by_server and low != high else low,
            OBJECTIVES.meaning("Attainment"),
            "derived",
        ),
        Figure(
            "Goodput (req/s)",
            fmt.number(result.goodput_per_s),
            f"{OBJECTIVES.meaning('Serving goodput')} All sent: {best} per second.",
            "derived",
        ),
        Figure(
            "Of completed", fmt.share(result.attainment_of_completed), OBJECTIVES.meaning("Of completed"), "derived"
        ),
        Figure("Most missed for", fmt.NO_VALUE, "Single requests would tell why one missed.", "derived")
        if by_server
        else Figure(
            "Most missed for",
            draw.CAUSE_NAMES[worst[0]] if worst else "nothing",
            f"{worst[1]:,} requests: {CAUSES[worst[0]]}." if worst else "No request missed.",
            "derived",
        ),
    ]


if __name__ == "__main__":
    page()

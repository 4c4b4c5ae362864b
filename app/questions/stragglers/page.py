"""The run's stragglers: does one rank make the others wait, which, why, since when, and at what cost?"""

from analyzers.ranks.stragglers import StragglersResult
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.question_page import question_page
from app.questions.stragglers import STRAGGLERS
from app.questions.stragglers.view import explore, wanted_pair
from app.questions.stragglers.words import VERDICTS
from errors import format as fmt


def page() -> None:
    question_page(STRAGGLERS, "Reading who waited for whom", figures, explore, options=_options)


def _options(about: About) -> dict[str, str]:
    """The two ranks that are compared, from the address."""
    return {"compare": ",".join(pair)} if (pair := wanted_pair()) else {}


def figures(result: StragglersResult) -> list[Figure]:
    """The verdict, the worst lateness, what it is worth to mend, how far ranks arrive apart, and what was compared."""
    named = result.ranks.iloc[0].to_dict() if len(result.ranks) else None
    sure = (
        f"{fmt.number(named['confidence'], 2)} of 1. {STRAGGLERS.meaning('Confidence')}"
        if named
        else "No rank is named."
    )
    compared = int(result.every["lag_s"].notna().sum())
    return [
        Figure("Verdict", VERDICTS[result.verdict], f"{STRAGGLERS.meaning('Straggler')} Confidence: {sure}", "derived"),
        Figure(
            "Latest rank is late by",
            fmt.duration(named["lag_s"] if named else None),
            STRAGGLERS.meaning("Late by"),
            "derived",
        ),
        _worth(result),
        Figure(
            "Ranks arrive within",
            fmt.duration(result.apart_s),
            "Median over steps of the longest wait less the shortest.",
            "derived",
            result.apart_s,
            "less",
        ),
        Figure(
            "Compared",
            f"{fmt.count(compared, 'rank')}, {fmt.count(len(result.steps), 'step')}",
            "Steps whose collectives were captured on all ranks of their groups; the first of each capture may be "
            "cut off and is left out.",
            "measured",
        ),
    ]


def _worth(result: StragglersResult) -> Figure:
    """The gain of mending the ranks named; where none is, what was lost to the rest."""
    if result.gain:
        return Figure(
            "Mending gives back", fmt.chip_time(result.gain.likely), STRAGGLERS.meaning("Gain of mending"), "derived"
        )
    return Figure("Cost", fmt.chip_time(result.cost_chip_seconds), STRAGGLERS.meaning("Cost"), "derived")


if __name__ == "__main__":
    page()

"""The run's goodput: which part of the time held went into kept steps, by our rules and by ml-goodput's."""

from analyzers.lost.goodput.query import EXACT
from analyzers.lost.goodput.terms import BUCKET_TERMS, DISRUPTIONS, IDEAL_STEP, PRODUCTIVE, TOTAL
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.price import price_of_run
from app.components.question_page import How, joint_page
from app.questions.goodput import GOODPUT
from app.questions.goodput.both import Both, both
from app.questions.goodput.controls import options
from app.questions.goodput.view import pictures
from app.questions.goodput.words import LIBRARY_MEANING, losses, meaning, verdict
from errors import format as fmt


def page() -> None:
    joint_page(
        GOODPUT,
        "Painting the calendar",
        figures,
        pictures,
        options=options,
        beside=price_of_run,
        asking=both,
        verdict=lambda answers: verdict(answers.result),
        how=_how,
    )


def _how(about: About, answers: Both | None) -> How:
    """The amounts that it has."""
    if answers is None:
        return How((), (), GOODPUT.inputs)
    told = dict.fromkeys((PRODUCTIVE, TOTAL, *(bucket for bucket, *_ in losses(answers.result))))
    return How([BUCKET_TERMS[bucket] for bucket in told], answers.result.notes, GOODPUT.inputs)


def figures(both: Both) -> list[Figure]:
    """The five figures: goodput by both rules, time held, disruptions, the ideal step."""
    result, other = both.result, both.other
    exact = result.rules == EXACT
    says = {True: meaning(PRODUCTIVE), False: LIBRARY_MEANING[PRODUCTIVE]}
    known = [r.goodput_share if r is not None and r.steps_read else None for r in (result, other)]
    part = f"Part of the time held. {says[exact]}"
    shown = [Figure("Goodput", fmt.share(known[0]), part, "derived", known[0], "more", alike=result.rules)]
    label = "By ml-goodput" if exact else "By the exact rules"
    if other is None:
        shown.append(Figure(label, fmt.NO_VALUE, "These rules have no answer for it.", "unattributed"))
    else:
        shown.append(Figure(label, fmt.share(known[1]), says[not exact], "derived"))
    chips = (
        f" On {fmt.count(result.chips, 'chip')}: {fmt.chip_time(result.total_s * result.chips)}."
        if result.chips
        else ""
    )
    held = meaning(TOTAL) if exact else LIBRARY_MEANING[TOTAL]
    return [
        *shown,
        Figure("Time held", fmt.duration(result.total_s), held + chips, "measured"),
        Figure(
            "Disruptions",
            f"{result.disruptions:,}",
            DISRUPTIONS.meaning if exact else "Step numbers that occur again.",
            "derived",
        ),
        Figure(
            "Ideal step",
            fmt.duration(result.ideal_step_s or None),
            IDEAL_STEP.meaning
            if exact
            else "The mean of steps of a second or more that take no longer than median + 3 MAD.",
            "derived",
        ),
    ]


if __name__ == "__main__":
    page()

"""The run's input: is it bound by its input, or does it stall now and then, and what does that cost?"""

import streamlit as st

from analyzers.device.input import InputResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.figures_row import Figure
from app.components.on_timeline import on_timeline
from app.components.question_page import SHOWN_ROWS, Told, question_page
from app.components.text import md
from app.figures.long_series import said_of
from app.questions.input import INPUT
from app.questions.input import figure as draw
from app.timeline.places import place_of_step
from errors import format as fmt


def page() -> None:
    question_page(INPUT, "Reading fetches and steps", figures, pictures)


def figures(result: InputResult) -> list[Figure]:
    """What was waited, what a usual fetch takes, what stalls cost, and how a longer fetch tells."""
    waited = fmt.chip_time(result.waited_s) if result.waited_s is not None else fmt.NO_VALUE
    slope = fmt.NO_VALUE
    if result.slope is not None:
        slope = f"{fmt.number(result.slope, 2)} ({fmt.number(result.slope_low, 2)}–{fmt.number(result.slope_high, 2)})"
    return [
        Figure("Waited for input", waited, INPUT.meaning("Waited for input"), "measured"),
        Figure(
            "Of step time",
            fmt.share(result.waited_share),
            "Waited over those steps' chip-seconds.",
            "derived",
            result.waited_share,
            "less",
        ),
        Figure(
            "Usual fetch",
            fmt.duration(result.median_fetch_s),
            f"Median. {INPUT.meaning('Fetch')}",
            "measured",
            result.median_fetch_s,
            "less",
        ),
        Figure("Stalls", f"{len(result.stalls):,}", INPUT.meaning("Input stall"), "derived"),
        Figure("Slope", slope, INPUT.meaning("Slope"), "derived"),
    ]


def pictures(told: Told[InputResult]) -> None:
    """Fetch against step, the strip over the steps, and the rows to take away."""
    result = told.result
    name, words = told.name, told.verdict
    if result.verdict == "unknown" and result.notes:
        st.info(md(result.notes[0]), icon=":material/info:")
    scatter, strip = draw.scatter(result), draw.strip(result)
    if scatter is not None:
        seen = "Along the dashed rise it does, second for second."
        if result.slope is None:
            seen = "Too few fetches differ from the usual one to see it here."
        st.markdown(f"**Does a longer fetch make a longer step?** {seen}")
        chart(scatter, "input scatter", name, words)
    if strip is not None:
        said = "**When did it wait?** Step durations, and the part of each that went into its input."
        st.markdown(f"{said} {md(said_of(strip))}")
        chart(strip, "input strip", f"{name}-steps", words)
    if not len(result.rows):
        return
    if len(result.stalls):
        row = result.stalls.iloc[int(result.stalls["extra_s"].astype(float).argmax())].to_dict()
        label = f"Step {int(row['step']):,}, which stalled longest, on the timeline"
        on_timeline(told.run, place_of_step(row), label)
    rows = result.stalls if len(result.stalls) else result.rows
    title = "the stalled steps" if len(result.stalls) else "all steps"
    with st.expander(f"Evidence: {title}", icon=":material/table:"):
        draw_table(rows.head(SHOWN_ROWS))
        told.downloads(result.rows, scatter if scatter is not None else strip, "input")


if __name__ == "__main__":
    page()

"""The run's input: is it bound by its input, or does it stall now and then, and what does that cost?"""

import streamlit as st

from analyzers.device.input import InputResult
from app import format as fmt
from app.components.answering import answering
from app.components.chart import chart
from app.components.current import current_run
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.input import INPUT
from app.questions.input import figure as draw
from app.questions.input.words import verdict as input_verdict
from runs.run import Run


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    with answering("Reading fetches and steps", lambda: howto(run, INPUT.terms, (), INPUT.inputs)):
        result = ask(INPUT, run, {}, place.registry)
    verdict(input_verdict(result))
    figures_row(figures(result))
    pictures(run, result)
    howto(run, INPUT.terms, result.notes, INPUT.inputs)


def figures(result: InputResult) -> list[Figure]:
    """What was waited, what a usual fetch takes, what stalls cost, and how a longer fetch tells."""
    waited = fmt.chip_time(result.waited_s) if result.waited_s is not None else fmt.NO_VALUE
    slope = fmt.NO_VALUE
    if result.slope is not None:
        slope = f"{fmt.number(result.slope, 2)} ({fmt.number(result.slope_low, 2)}–{fmt.number(result.slope_high, 2)})"
    return [
        Figure("Waited for input", waited, INPUT.meaning("Waited for input"), "measured"),
        Figure("Of step time", fmt.share(result.waited_share), "Waited over those steps' chip-seconds.", "derived"),
        Figure("Usual fetch", fmt.duration(result.median_fetch_s), f"Median. {INPUT.meaning('Fetch')}", "measured"),
        Figure("Stalls", f"{len(result.stalls):,}", INPUT.meaning("Stall"), "derived"),
        Figure("Slope", slope, INPUT.meaning("Slope"), "derived"),
    ]


def pictures(run: Run, result: InputResult) -> None:
    """Fetch against step, the strip over the steps, and the rows to take away."""
    name = f"{run.manifest.name}-input"
    words = input_verdict(result)
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
        st.markdown("**When did it wait?** Step durations, and the part of each that went into its input.")
        chart(strip, "input strip", f"{name}-steps", words)
    if not len(result.rows):
        return
    rows = result.stalls if len(result.stalls) else result.rows
    title = "the stalled steps" if len(result.stalls) else "all steps"
    with st.expander(f"Evidence: {title}", icon=":material/table:"):
        st.dataframe(rows.head(5000), hide_index=True)
        figure = scatter if scatter is not None else strip
        downloads(
            result.rows,
            name,
            f"/api/runs/{run.run_id}/show/input",
            lambda: standalone(figure, f"{run.manifest.name}: input", name) if figure else b"",
        )


if __name__ == "__main__":
    page()

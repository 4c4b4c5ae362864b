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
from app.questions.input import figure as draw
from app.questions.input.words import verdict as input_verdict
from runs.run import Run

INPUTS = ("captures", "lifecycle", "steps")
DEFINITIONS = (
    (
        "Waited for input",
        "Chip-seconds in which the host fetched data, or the device took it in, and the device "
        "neither computed nor communicated; of steps without a profile, stalls only.",
    ),
    ("Fetch", "The training loop loading a batch, on the slowest host. A fetch that the device's work covers is free."),
    (
        "Stall",
        "A step whose fetch and whose duration both exceed the usual by more than noise (5 % of a step and 3.5 "
        "robust standard deviations); it cost the smaller of the two.",
    ),
    (
        "Slope",
        "Seconds that a step gets longer per second of fetch beyond the median, with a 95 % bootstrap interval: "
        "1 is wholly exposed, 0 wholly hidden.",
    ),
    ("Bound by its input", "A usual step waits for input for 5 % of its time or more."),
)


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    with answering("Reading fetches and steps", lambda: howto(run, DEFINITIONS, (), INPUTS)):
        result = ask(run, "input", {}, place.registry)
    verdict(input_verdict(result))
    figures_row(figures(result))
    pictures(run, result)
    howto(run, DEFINITIONS, result.notes, INPUTS)


def figures(result: InputResult) -> list[Figure]:
    """What was waited, what a usual fetch takes, what stalls cost, and how a longer fetch tells."""
    waited = fmt.chip_time(result.waited_s) if result.waited_s is not None else fmt.NO_VALUE
    slope = fmt.NO_VALUE
    if result.slope is not None:
        slope = f"{fmt.number(result.slope, 2)} ({fmt.number(result.slope_low, 2)}–{fmt.number(result.slope_high, 2)})"
    return [
        Figure("Waited for input", waited, DEFINITIONS[0][1], "measured"),
        Figure("Of step time", fmt.share(result.waited_share), "Waited over those steps' chip-seconds.", "derived"),
        Figure("Usual fetch", fmt.duration(result.median_fetch_s), f"Median. {DEFINITIONS[1][1]}", "measured"),
        Figure("Stalls", f"{len(result.stalls):,}", DEFINITIONS[2][1], "derived"),
        Figure("Slope", slope, DEFINITIONS[3][1], "derived"),
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

"""The run's steps: how long did each take, which were kept, and how fast was the job?"""

import streamlit as st

from analyzers.time.steps import StepsResult
from app import format as fmt
from app.components.chart import chart
from app.components.current import current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.notice import notice
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask
from app.questions.steps import STEPS
from app.questions.steps.figure import best_scale, steps
from app.questions.steps.hosts import hosts
from app.questions.steps.words import verdict as steps_verdict
from errors import ChipledgerError
from runs.run import Run

SCALES = {"linear": "Linear", "log": "Logarithmic"}


def page() -> None:
    run, extras, place = current_run()
    header(run, extras)
    try:
        with st.spinner("Reading the steps"):
            result = ask(STEPS, run, {}, place.registry)
    except ChipledgerError as e:
        notice(e)
        howto(run, (), (), ("steps", "lifecycle", "captures"))
        return
    verdict(steps_verdict(result))
    figures_row(figures(result))
    picture(run, result)
    howto(run, STEPS.terms, result.notes, ("steps", "lifecycle", "captures"))


def figures(result: StepsResult) -> list[Figure]:
    """The five figures of a run's steps."""
    taken = f"Different step numbers; {fmt.count(len(result.rows), 'step')} were taken, those lost included."
    return [
        Figure("Steps", f"{result.steps:,}", taken, "measured"),
        Figure("Usual step", fmt.duration(result.median_step_s), STEPS.meaning("Usual step"), "derived"),
        Figure("Best step", fmt.duration(result.best_step_s), "The shortest of those.", "measured"),
        Figure(
            "Tokens/s per chip",
            fmt.number(result.tokens_per_s_per_chip),
            STEPS.meaning("Tokens per second and chip, TFLOP/s per chip"),
            "derived",
        ),
        Figure(
            "TFLOP/s per chip",
            fmt.number(result.tflops_per_s_per_chip),
            STEPS.meaning("Tokens per second and chip, TFLOP/s per chip") + " Model FLOPs by the job's own convention.",
            "derived",
        ),
    ]


@st.fragment
def picture(run: Run, result: StepsResult) -> None:
    """The durations, one small figure per host where hosts differ, and the rows to take away."""
    default = best_scale(result)
    with st.container(horizontal=True, horizontal_alignment="right"):
        scale = switch("Scale", "scale", SCALES, default)
    name = f"{run.manifest.name}-steps"
    figure = steps(result, scale)
    chart(figure, f"steps {scale}", name, steps_verdict(result))
    if spread := hosts(result):
        st.markdown("**Hosts differ.** Step duration per profiled host: median, and 10th to 90th percentile.")
        chart(spread, "hosts", f"{name}-hosts", "Step duration per host.")
    shown = result.rows
    with st.expander(f"Evidence: {fmt.count(len(shown), 'step')} as taken", icon=":material/table:"):
        st.dataframe(shown.head(5000), hide_index=True)
        if len(shown) > 5000:
            st.caption(f"The first 5,000 of {len(shown):,} are shown; the files below hold all.")
        downloads(
            shown,
            name,
            f"/api/runs/{run.run_id}/show/steps",
            lambda: standalone(figure, f"{run.manifest.name}: steps", name),
        )


if __name__ == "__main__":
    page()

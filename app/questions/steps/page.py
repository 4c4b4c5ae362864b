"""The run's steps: how long did each take, which were kept, and how fast was the job?"""

import streamlit as st

from analyzers.time.steps import StepsResult
from app.components.chart import chart
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.question_page import Told, question_page
from app.components.text import md
from app.figures.long_series import said_of
from app.questions.steps import STEPS
from app.questions.steps.figure import best_scale, steps
from app.questions.steps.hosts import hosts
from errors import format as fmt

SCALES = {"linear": "Linear", "log": "Logarithmic"}


def page() -> None:
    question_page(STEPS, "Reading the steps", figures, picture)


def figures(result: StepsResult) -> list[Figure]:
    """The five figures of a run's steps."""
    taken = f"Different step numbers; {fmt.count(len(result.rows), 'step')} were taken, those lost included."
    return [
        Figure("Steps", f"{result.steps:,}", taken, "measured"),
        Figure(
            "Usual step",
            fmt.duration(result.median_step_s),
            STEPS.meaning("Usual step"),
            "derived",
            result.median_step_s,
            "less",
        ),
        Figure(
            "Best step",
            fmt.duration(result.best_step_s),
            "The shortest of those.",
            "measured",
            result.best_step_s,
            "less",
        ),
        Figure(
            "Tokens/s per chip",
            fmt.number(result.tokens_per_s_per_chip),
            STEPS.meaning("Tokens per second and chip, TFLOP/s per chip"),
            "derived",
            result.tokens_per_s_per_chip,
            "more",
        ),
        Figure(
            "TFLOP/s per chip",
            fmt.number(result.tflops_per_s_per_chip),
            STEPS.meaning("Tokens per second and chip, TFLOP/s per chip") + " Model FLOPs by the job's own convention.",
            "derived",
        ),
    ]


@st.fragment
def picture(told: Told[StepsResult]) -> None:
    """The durations, one small figure per host where hosts differ, and the rows to take away."""
    result = told.result
    default = best_scale(result)
    with st.container(horizontal=True, horizontal_alignment="right"):
        scale = switch("Scale", "scale", SCALES, default)
    figure = steps(result, scale)
    if said := said_of(figure):
        st.markdown(f"**How long each step took.** {md(said)}")
    chart(figure, f"steps {scale}", told.name, told.verdict)
    if spread := hosts(result):
        st.markdown("**Hosts differ.** Step duration per profiled host: median, and 10th to 90th percentile.")
        chart(spread, "hosts", f"{told.name}-hosts", "Step duration per host.")
    told.evidence(result.rows, f"{fmt.count(len(result.rows), 'step')} as taken", figure, "steps")


if __name__ == "__main__":
    page()

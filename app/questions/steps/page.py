"""The run's steps: how long did each take, which were kept, and how fast was the job?"""

from typing import Any

import streamlit as st

from analyzers.time.steps import StepsResult
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.current import choose, switch
from app.components.figures_row import Figure
from app.components.on_timeline import on_timeline
from app.components.question_page import Told, question_page
from app.components.text import md
from app.figures.long_series import said_of
from app.questions.steps import STEPS
from app.questions.steps.figure import best_scale, steps
from app.questions.steps.hosts import hosts
from app.timeline.places import place_of_step
from errors import format as fmt

AT = "at"  # in the address: the step that was clicked
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


@fragment
def picture(told: Told[StepsResult]) -> None:
    """The durations, one small figure per host where hosts differ, and the rows to take away."""
    result = told.result
    default = best_scale(result)
    with st.container(horizontal=True, horizontal_alignment="right"):
        scale = switch("Scale", "scale", SCALES, default)
    figure = steps(result, scale)
    if said := said_of(figure):
        st.markdown(f"**How long each step took.** {md(said)}")
    key = f"steps {scale}"

    def clicked() -> None:
        if points := st.session_state[key].selection.points:
            choose(AT, str(round(points[0]["x"])))

    chart(figure, key, told.name, told.verdict, clicked)
    _opened(told)
    if spread := hosts(result):
        st.markdown("**Hosts differ.** Step duration per profiled host: median, and 10th to 90th percentile.")
        chart(spread, "hosts", f"{told.name}-hosts", "Step duration per host.")
    told.evidence(result.rows, f"{fmt.count(len(result.rows), 'step')} as taken", figure, "steps")


def _opened(told: Told[StepsResult]) -> None:
    """The step that was clicked, else the longest, with the way to its place on the timeline."""
    row = opened(told.result, st.query_params.get(AT, ""))
    if row is None:
        return
    usual, took = told.result.median_step_s, fmt.duration(float(row["dur_s"]))
    beside = f"; a usual one takes {fmt.duration(usual)}" if usual else ""
    chosen = str(int(row["step"])) == st.query_params.get(AT, "")
    said = f"took {took}{beside}." if chosen else f"took longest, {took}{beside}. Click another to choose it."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"Step {int(row['step']):,} {said}", width="content")
        on_timeline(told.run, place_of_step(row))


def opened(result: StepsResult, at: str) -> dict[Any, Any] | None:
    """The row of the step with this number, kept rather than lost; without one the longest of the usual ones."""
    rows = result.rows[result.rows["dur_s"].notna() & (result.rows["implausible"] == "")]
    if at.isascii() and at.isdigit() and len(at) < 16 and len(mine := rows[rows["step"] == int(at)]):
        return mine.sort_values("kept", kind="stable").iloc[-1].to_dict()
    usual = rows[rows["kept"].astype(bool) & ~rows["first"].fillna(False).astype(bool)]
    return usual.iloc[int(usual["dur_s"].astype(float).argmax())].to_dict() if len(usual) else None


if __name__ == "__main__":
    page()

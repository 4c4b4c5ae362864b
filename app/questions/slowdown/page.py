"""What-if slowdown: how much faster would a pipeline-parallel job be with even ranks, stages and micro-batches?"""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.ranks.slowdown import SlowdownResult
from app.components.chart import chart
from app.components.current import switch
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.questions.slowdown import SLOWDOWN
from app.questions.slowdown import figure as draw
from app.questions.slowdown.words import part, times
from errors import format as fmt

VIEWS = {"mesh": "Workers", "stages": "Stages", "types": "Operations", "steps": "Steps", "timeline": "One step"}
_OPTIONS = by_name(SLOWDOWN.options)


def page() -> None:
    question_page(SLOWDOWN, "Replaying the pipeline", figures, picture, options=_options)


def _options(about: About) -> dict[str, str]:
    """The step and the rank of the timeline, from the address."""
    return {name: st.query_params[name] for name in ("step", "dp_rank") if st.query_params.get(name)}


def figures(result: SlowdownResult) -> list[Figure]:
    """Time over ideal time, S, its cost, what explains it, and how far to trust it."""
    lost = (
        f"In {fmt.count(result.validity['steps'], 'step')} on {fmt.count(result.chips, 'chip')}. "
        + SLOWDOWN.meaning("Chip time lost")
    )
    error = result.validity["error_without_launch_delays"]
    return [
        Figure(
            "Time over ideal",
            times(result.over_ideal),
            f"Step time as measured, launch delays included, over the ideal step time. {SLOWDOWN.meaning('Ideal')}",
            "derived",
            result.over_ideal,
            "less",
        ),
        Figure(
            "Slowdown S",
            times(result.s),
            f"{SLOWDOWN.meaning('S')} {SLOWDOWN.meaning('Ideal')}",
            "derived",
            result.s,
            "less",
        ),
        Figure("Chip time lost", fmt.chip_time(result.cost_chip_seconds), lost, "derived"),
        Figure("By slowest workers", part(result.shares.worker), f"M_W. {SLOWDOWN.meaning('M_W, M_S')}", "derived"),
        Figure("By the last stage", part(result.shares.last_stage), f"M_S. {SLOWDOWN.meaning('M_W, M_S')}", "derived"),
        Figure(
            "Replay differs by",
            fmt.share(error),
            "Summed step times without launch delays against those measured; "
            f"with them: {fmt.share(result.validity['replay_error'])}. Beyond 5 % S is not trusted.",
            "derived",
        ),
    ]


def picture(told: Told[SlowdownResult]) -> None:
    """Where on the mesh, in which operations, in which steps, or one step along time; and the rows to take away."""
    result = told.result
    view, replicas = switch("View", "view", VIEWS, "mesh"), sorted(result.by_dp_rank)
    if view == "timeline":
        with st.container(horizontal=True):
            _pick("step", result.per_step["step"].astype(int).tolist(), result.step)
            _pick("dp_rank", replicas, result.dp_rank)
    name = f"{told.name}-{view}"
    words, figure, rows = _view(view, result)
    st.markdown(words)
    chart(figure, f"slowdown {view}", name, told.verdict)
    told.evidence(rows, fmt.count(len(rows), "row"), figure, "slowdown", view)


def _view(view: str, result: SlowdownResult) -> tuple[str, go.Figure, pd.DataFrame]:
    if view == "stages":
        stages = pd.DataFrame({"stage": list(result.by_stage), "s": list(result.by_stage.values())})
        return "**What each stage alone costs**, all other durations ideal.", draw.stages(result), stages
    if view == "types":
        words = "**What each type of operation alone costs**, all other durations ideal."
        return words, draw.types(result), result.types
    if view == "steps":
        return "**S of each step**: lasting, or now and then?", draw.steps(result), result.per_step
    if view == "timeline":
        return (
            (
                f"**Step {result.step:,} on data-parallel rank {result.dp_rank}**, as measured and below as it would "
                "run evenly; numbers are micro-batches. What is too short to show is left out."
            ),
            draw.timeline(result),
            result.timeline,
        )
    shown = ""
    if len(result.by_dp_rank) > draw.MAX_REPLICAS:
        shown = f" Of {len(result.by_dp_rank):,} data-parallel ranks the {draw.MAX_REPLICAS} slowest are drawn."
    return (
        "**What each worker alone costs**: step time over the ideal one with only its data-parallel rank uneven or "
        f"only its stage, whichever is less.{shown}",
        draw.mesh(result),
        result.workers,
    )


def _pick(name: str, values: list[int], now: int) -> None:
    control(_OPTIONS[name], now, texts={str(v): str(v) for v in values}, width=180)


if __name__ == "__main__":
    page()

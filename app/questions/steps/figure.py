"""Step durations: kept steps as a line, what was lost or cannot be true hollow, the median drawn in."""

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from analyzers.time.steps import StepsResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, each, layout, plain, reference_line
from app.figures.long_series import is_long, long_series, other_steps, steady
from app.figures.once import drawn_once
from app.figures.step_marks import kept_line, step_marks
from errors import format as fmt

HEIGHT = 440
MANY_RESTARTS = 12  # more lines than that would hide the steps; the hover still names the attempt
LOG_FROM = 8.0  # greatest over median: beyond it a linear scale shows one spike and a flat line


def best_scale(result: StepsResult) -> str:
    """`log` where a few long steps would flatten all others, else `linear`."""
    taken = result.rows["dur_s"].astype("Float64").max()
    if not result.median_step_s or pd.isna(taken):
        return "linear"
    return "log" if float(taken) > LOG_FROM * result.median_step_s else "linear"


@drawn_once
def steps(result: StepsResult, scale: str = "linear") -> go.Figure:
    """Duration over step number. `scale`: linear or log."""
    unit, factor = time_unit(result.median_step_s)
    rows = result.rows.reset_index(drop=True)
    rows = rows.assign(y=rows["dur_s"].astype("Float64") * factor)
    kept, first = rows["kept"].astype(bool), rows["first"].fillna(False).astype(bool)
    false = rows["implausible"].fillna("") != ""
    usual = kept & ~first & ~false
    figure = go.Figure()
    series = None
    if is_long(int(usual.sum())):
        series = long_series(rows[usual], unit, _hovers, scale == "log")
        series.draw(figure)
    else:
        figure.add_trace(kept_line(rows[usual], "dur_s", "kept", _hovers))
    marks = (
        ("first of its attempt", rows[first & kept & ~false], theme.COLOURS["program_startup"], "diamond"),
        ("lost and taken again", rows[~kept & ~false], theme.THIN["wasted_progress"], "circle-open"),
        ("cannot be true", rows[false], theme.GREY, "x-thin-open"),
    )
    for name, some, colour, symbol in marks:
        if series is not None and some["y"].notna().any():
            figure.add_trace(other_steps(series.found, some, name, colour, symbol, _hovers))
        elif len(some):
            figure.add_trace(step_marks(some, "dur_s", name, colour, symbol, _hovers))
    if result.median_step_s:
        reference_line(
            figure, result.median_step_s * factor, f"median {fmt.duration(result.median_step_s)}", scale == "log"
        )
    _restarts(figure, rows)
    layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": "step"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "title": {"text": f"step duration ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            **(_log_axis(rows["y"]) if scale == "log" else {"type": "linear", "rangemode": "tozero"}),
        },
        hovermode="closest",
        dragmode="zoom",
    )
    return steady(figure) if series is not None else figure


def _log_axis(values: pd.Series) -> dict[str, Any]:
    """A logarithmic axis with 1, 2 and 5 of each power of ten written out."""
    seen = values.dropna()
    seen = seen[seen > 0]
    if not len(seen):
        return {"type": "log"}
    powers = range(math.floor(math.log10(seen.min())), math.ceil(math.log10(seen.max())) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [fmt.number(t, 1) for t in ticks]}


def _hovers(rows: pd.DataFrame) -> list[str]:
    """What a hover says of each step."""
    said = []
    for r in each(rows):
        lines = [f"<b>Step {r.step:,}</b>: {fmt.exact_duration(float(r.dur_s))}"]
        if pd.notna(r.attempt):
            lines.append(f"attempt {r.attempt}")
        if pd.notna(r.tokens_per_s_per_chip):
            lines.append(f"{fmt.number(float(r.tokens_per_s_per_chip))} tokens/s per chip")
        if pd.notna(r.tflops_per_s_per_chip):
            lines.append(f"{fmt.number(float(r.tflops_per_s_per_chip))} TFLOP/s per chip")
        if pd.notna(r.loss):
            lines.append(f"loss {fmt.number(float(r.loss), 4)}")
        if not r.kept:
            lines.append("lost with an interruption, taken again later")
        if r.implausible:
            lines.append(f"cannot be true: {plain(r.implausible)}")
        said.append("<br>".join(lines))
    return said


def _restarts(figure: go.Figure, rows: pd.DataFrame) -> None:
    """A thin upright line where each later attempt took its first step."""
    began = rows[rows["attempt"].notna()].groupby("attempt", observed=True)["step"].first()
    if not 1 < len(began) <= MANY_RESTARTS:
        return
    for attempt, step in list(began.items())[1:]:
        figure.add_vline(
            x=float(step),
            line_dash="dot",
            line_color=theme.GREY,
            line_width=1,
            annotation_text=f"attempt {attempt}",
            annotation_position="bottom right",
            annotation_font_size=11,
        )

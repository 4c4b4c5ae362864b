"""Step durations: kept steps as a line, what was lost or cannot be true hollow, the median drawn in."""

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.time.steps import StepsResult
from app import format as fmt
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, MAX_POINTS, layout, plain, reduced, reference_line

HEIGHT = 440
MANY_RESTARTS = 12  # more lines than that would hide the steps; the hover still names the attempt
LOG_FROM = 8.0  # greatest over median: beyond it a linear scale shows one spike and a flat line


def best_scale(result: StepsResult) -> str:
    """`log` where a few long steps would flatten all others, else `linear`."""
    taken = result.rows["dur_s"].astype("Float64").max()
    if not result.median_step_s or pd.isna(taken):
        return "linear"
    return "log" if float(taken) > LOG_FROM * result.median_step_s else "linear"


def steps(result: StepsResult, scale: str = "linear") -> go.Figure:
    """Duration over step number. `scale`: linear or log."""
    unit, factor = time_unit(result.median_step_s)
    rows = result.rows.reset_index(drop=True)
    rows = rows.assign(y=rows["dur_s"].astype("Float64") * factor)
    kept, first = rows["kept"].astype(bool), rows["first"].fillna(False).astype(bool)
    false = rows["implausible"].fillna("") != ""
    usual = kept & ~first & ~false
    figure = go.Figure()
    figure.add_trace(_line(rows[usual], "kept"))
    marks = (
        ("first of its attempt", rows[first & kept & ~false], theme.COLOURS["program_startup"], "diamond"),
        ("lost and taken again", rows[~kept & ~false], theme.THIN["wasted_progress"], "circle-open"),
        ("cannot be true", rows[false], theme.GREY, "x-thin-open"),
    )
    for name, some, colour, symbol in marks:
        if len(some):
            figure.add_trace(_points(some, name, colour, symbol))
    if result.median_step_s:
        reference_line(
            figure, result.median_step_s * factor, f"median {fmt.duration(result.median_step_s)}", scale == "log"
        )
    _restarts(figure, rows)
    return layout(
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


def _log_axis(values: pd.Series) -> dict[str, Any]:
    """A logarithmic axis with 1, 2 and 5 of each power of ten written out."""
    seen = values.dropna()
    seen = seen[seen > 0]
    if not len(seen):
        return {"type": "log"}
    powers = range(math.floor(math.log10(seen.min())), math.ceil(math.log10(seen.max())) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [fmt.number(t, 1) for t in ticks]}


def _line(rows: pd.DataFrame, name: str) -> go.Scatter:
    """Reduced to what a screen can show, with a gap between attempts: nothing ran there."""
    rows = rows[rows["dur_s"].notna()]
    rows = rows.iloc[reduced(rows["dur_s"].to_numpy(dtype=float), MAX_POINTS)]
    x, y = rows["step"].to_numpy(dtype=float), rows["y"].to_numpy(dtype=float)
    said = _hovers(rows)
    attempts = rows["attempt"].fillna(0).to_numpy(dtype=np.int64)
    breaks = np.flatnonzero(np.diff(attempts)) + 1
    x, y = np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan)
    said = list(np.insert(np.array(said, dtype=object), breaks, ""))
    few = len(x) <= 400
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers" if few else "lines",
        connectgaps=False,
        line={"color": theme.THIN["useful_maths"], "width": 1.5},
        marker={"size": 4},
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _points(rows: pd.DataFrame, name: str, colour: str, symbol: str) -> go.Scatter:
    rows = rows[rows["dur_s"].notna()]
    rows = rows.iloc[reduced(rows["dur_s"].to_numpy(dtype=float), MAX_POINTS // 2)]
    return go.Scatter(
        x=rows["step"],
        y=rows["y"].to_numpy(dtype=float),
        name=name,
        mode="markers",
        marker={"color": colour, "symbol": symbol, "size": 9, "line": {"width": 1.8, "color": colour}},
        hovertext=_hovers(rows),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _hovers(rows: pd.DataFrame) -> list[str]:
    """What a hover says of each step."""
    said = []
    for r in rows.itertuples():
        lines = [f"<b>Step {r.step:,}</b>: {fmt.duration(float(r.dur_s))}"]
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

"""Waiting for input: does a longer fetch make a longer step, and when did it."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.input import InputResult
from app import theme
from app.figures.axes import log_ticks, time_unit
from app.figures.base import GRID, MAX_POINTS, layout, reduced, reference_line
from app.figures.long_series import is_long, long_series, steady
from app.figures.once import drawn_once
from errors import format as fmt

WAITING = theme.COLOURS["input_wait"]
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


@drawn_once
def scatter(result: InputResult) -> go.Figure | None:
    """Step duration over its fetch, stalls marked; dashed where a fetch is wholly exposed; None without both."""
    rows = result.rows.dropna(subset=["fetch_s", "dur_s"])
    rows = rows[rows["usual"]]
    if not len(rows) or not result.fed_step_s or result.median_fetch_s is None:
        return None
    if is_long(len(rows)) and rows["fetch_s"].max() == rows["fetch_s"].min():
        return None  # thousands of dots on one upright line tell nothing
    unit, factor = time_unit(result.fed_step_s)
    figure = go.Figure()
    kinds = ((~rows["stalled"], "other steps", theme.GREY, "circle"), (rows["stalled"], "stalled", WAITING, "diamond"))
    for which, words, colour, symbol in kinds:
        some = rows[which]
        some = some.iloc[reduced(some["fetch_s"].to_numpy(dtype=float), MAX_POINTS)]
        if len(some):
            figure.add_trace(
                go.Scatter(
                    x=some["fetch_s"].astype(float) * factor,
                    y=some["dur_s"].astype(float) * factor,
                    name=words,
                    mode="markers",
                    marker={"color": colour, "symbol": symbol, "size": 9, "opacity": 0.8},
                    hovertext=_hovers(some),
                    hovertemplate="%{hovertext}<extra></extra>",
                )
            )
    end = float(rows["fetch_s"].max())
    begin = result.median_fetch_s
    x = np.array([begin, max(end, begin)])
    figure.add_trace(
        go.Scatter(
            x=x * factor,
            y=(result.fed_step_s + x - begin) * factor,
            mode="lines",
            hoverinfo="skip",
            name="every second of fetch makes the step a second longer",
            line={"color": theme.GREY, "dash": "dash"},
        )
    )
    reference_line(figure, result.fed_step_s * factor, "fetch wholly hidden: median step")
    return layout(
        figure,
        400,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": f"fetch of the slowest host ({unit})"}, "gridcolor": GRID, "rangemode": "tozero"},
        yaxis={"title": {"text": f"step duration ({unit})"}, "gridcolor": GRID, "rangemode": "tozero"},
    )


@drawn_once
def strip(result: InputResult) -> go.Figure | None:
    """Over the steps: how long each took, and how much of it was a fetch or waiting for one; None without durations."""
    rows = result.rows[result.rows["dur_s"].notna() & result.rows["kept"]].sort_values("step", kind="stable")
    if not len(rows):
        return None
    unit, factor = time_unit(result.fed_step_s or float(rows["dur_s"].median()))
    waited = rows["waited_s"].notna().any()
    shown, words = ("waited_s", "devices waited for input") if waited else ("fetch_s", "fetch")
    part = rows[shown].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
    if is_long(len(rows)):
        return _long_strip(rows, part, words, unit, factor)
    at = reduced(rows["dur_s"].to_numpy(dtype=float), MAX_POINTS)
    at = np.union1d(at, reduced(part, MAX_POINTS))
    rows, part = rows.iloc[at], part[at]
    said = _hovers(rows)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=rows["step"],
            y=rows["dur_s"].astype(float) * factor,
            name="step",
            mode="lines",
            line={"color": theme.GREY, "width": 1.5, "shape": "hvh"},
            hovertext=said,
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.add_trace(
        go.Bar(
            x=rows["step"],
            y=part * factor,
            name=words,
            marker={"color": WAITING, "line": {"width": 0}},
            hovertext=said,
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    top = _top(rows["dur_s"].astype(float) * factor, result)
    return layout(
        figure,
        300,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        bargap=0,
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": "step"}, "showgrid": False},
        yaxis={"title": {"text": f"step duration ({unit})"}, "gridcolor": GRID, "range": [0, top]},
    )


def _long_strip(rows: pd.DataFrame, part: np.ndarray, words: str, unit: str, factor: float) -> go.Figure:
    """The same of very many steps: durations by stretches, and the longest fetches or waits as points."""
    figure = go.Figure()
    y = rows["dur_s"].astype(float) * factor
    log = bool(y.min() > 0 and y.max() > 8 * y.median())
    long_series(rows.assign(y=y), unit, _hovers, log).draw(figure)
    held = np.flatnonzero(np.nan_to_num(part) > 0)
    longest = np.sort(held[np.argsort(-part[held])[: MAX_POINTS // 2]])
    if len(longest):
        kept = "" if len(longest) == len(held) else f", the longest {len(longest):,} drawn"
        figure.add_trace(
            go.Scatter(
                x=rows["step"].iloc[longest],
                y=part[longest] * factor,
                name=f"{words} ({len(held):,}{kept})",
                mode="markers",
                marker={"color": WAITING, "symbol": "diamond", "size": 5, "opacity": 0.8},
                hovertext=_hovers(rows.iloc[longest]),
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    layout(
        figure,
        360,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": "step"}, "showgrid": False},
        yaxis={
            "title": {"text": f"time ({unit})"},
            "gridcolor": GRID,
            **(log_ticks(y[y > 0].min(), y.max()) if log else {"rangemode": "tozero"}),
        },
    )
    return steady(figure)


def _top(values: pd.Series, result: InputResult) -> float:
    """The axis ends where stalls fit; a first step that compiles for a minute would flatten all others."""
    usual = values[result.rows.loc[values.index, "usual"]]
    return float((usual if len(usual) else values).max()) * 1.08


def _hovers(rows: pd.DataFrame) -> list[str]:
    said = []
    for r in rows.itertuples():
        lines = [f"<b>Step {r.step:,}</b>: {fmt.duration(float(r.dur_s))}"]
        if pd.notna(r.fetch_s):
            lines.append(f"fetch {fmt.duration(float(r.fetch_s))}")
        if pd.notna(r.waited_s):
            lines.append(f"devices waited for it {fmt.duration(float(r.waited_s))}")
        if r.stalled:
            lines.append(f"{fmt.duration(float(r.extra_s))} longer than usual by its input")
        said.append("<br>".join(lines))
    return said

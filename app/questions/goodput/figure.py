"""Goodput over time, its buckets as bars, the steps against the ideal one, and the slices of elastic jobs."""

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.lost.goodput.buckets import ASYNC, BUCKETS, HEADING
from analyzers.lost.goodput.result import GoodputResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, MAX_POINTS, each, layout, plain, reduced, reference_line
from app.figures.long_series import is_long, long_series, steady
from app.figures.once import drawn_once
from app.questions.goodput.words import RULES, losses, title, worth
from errors import format as fmt

NS_PER_MS = 1_000_000  # plotly's dates are milliseconds since 1970
OVER_TIME = {"stretch": "Each stretch", "rolling": "Rolling", "cumulative": "From the start"}
STACK = ("productive", *(b for b in BUCKETS if b != ASYNC))
PATTERN_INK = "rgba(255,255,255,0.5)"
HAIR = 5e-4  # of the total: a bar below that cannot be seen
LABELLED = 0.06  # of the height: an area that reaches this somewhere is named there


def account(bucket: str) -> str:
    """The account whose colour a bucket has."""
    return HEADING.get(bucket, bucket)


def shares(over_time: pd.DataFrame, view: str, rolling_s: float | None) -> pd.DataFrame:
    """Parts of the held time by bucket, one row per stretch: of the stretch itself, of the time up to its end that
    `rolling_s` spans, or of all time up to its end. NaN where nothing was held."""
    seconds = over_time[[*STACK, "total_s"]].astype(float)
    if view == "cumulative":
        seconds = seconds.cumsum()
    elif view == "rolling" and rolling_s:
        width = float((over_time["end_ns"] - over_time["start_ns"]).iloc[0]) / 1e9
        seconds = seconds.rolling(max(1, round(rolling_s / width)), min_periods=1).sum()
    total = seconds.pop("total_s")
    return seconds.div(total.where(total > 0), axis=0)


def over_time(result: GoodputResult, view: str) -> go.Figure | None:
    """Goodput below, badput by bucket above it, as parts of the time held; None without times of day."""
    rows = result.over_time
    if not len(rows):
        return None
    parts = shares(rows, view, result.rolling_s)
    middle = (rows["start_ns"] + rows["end_ns"]) / 2 if view == "stretch" else rows["end_ns"]
    at = pd.to_datetime(middle.astype("int64"))
    figure = go.Figure()
    below = np.zeros(len(rows))
    for bucket in (b for b in STACK if parts[b].max() > 0):
        share, colour = parts[bucket].to_numpy() * 100, theme.colour([account(bucket)])
        name = "Kept steps" if bucket == "productive" else title(bucket)
        pattern = theme.pattern([account(bucket)])
        figure.add_trace(
            go.Scatter(
                x=at,
                y=share,
                name=plain(name),
                stackgroup="held",
                mode="lines",
                connectgaps=False,
                fillcolor=colour,
                line={"width": 0.5, "color": colour, "shape": "hvh" if view == "stretch" else "linear"},
                fillpattern={"shape": pattern, "bgcolor": colour, "fgcolor": PATTERN_INK, "size": 8}
                if pattern
                else None,
                hovertemplate=f"<b>{plain(name)}</b> %{{y:,.3r}} %<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
            )
        )
        _name_inside(figure, name, bucket, at, np.nan_to_num(share), below)
        below += np.nan_to_num(share)
    return layout(
        figure,
        380,
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "traceorder": "normal"},
        xaxis={"gridcolor": GRID, "type": "date"},
        yaxis={"title": {"text": "part of the time held (%)"}, "range": [0, 100], "gridcolor": GRID},
        hovermode="closest",
    )


def _name_inside(
    figure: go.Figure, name: str, bucket: str, at: pd.Series, share: np.ndarray, below: np.ndarray
) -> None:
    """A bucket's name inside its area, where the area is thick over the width of the text."""
    count = len(share)
    reach = max(1, int(count * 0.006 * len(name)))
    if count < 2 * reach + 1:
        return
    least = np.lib.stride_tricks.sliding_window_view(share, 2 * reach + 1).min(axis=1)
    here = int(least.argmax())
    if least[here] < 100 * LABELLED:
        return
    place = here + reach
    colour = theme.colour([account(bucket)])
    figure.add_annotation(
        x=at.iloc[place],
        y=float(below[place] + share[place] / 2),
        showarrow=False,
        text=f'<span style="color:{theme.text_on(colour)}">{plain(name)}</span>',
        font={"size": 12},
    )


def bars(result: GoodputResult, other: GoodputResult | None) -> go.Figure | None:
    """Badput by bucket in s, the largest first; a mark where the other rules put it. None without badput."""
    found = [x for x in losses(result) if x[2] >= HAIR * result.total_s]
    if not found:
        return None
    theirs = {(b, n): s for b, n, s in losses(other)} if other else {}
    unit, factor = ("h", 3600.0) if found[0][2] >= 3 * 3600 else ("min", 60.0) if found[0][2] >= 300 else ("s", 1.0)
    names = [f"{title(b)}: {n}" if n else title(b) for b, n, _ in found]
    rows = list(range(len(found)))
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=rows,
            x=[s / factor for *_, s in found],
            name=result.rules,
            marker={
                "color": [theme.colour([account(b)]) for b, *_ in found],
                "line": {"color": "rgba(128,128,128,0.55)", "width": 1},
                "pattern": {
                    "shape": [theme.pattern([account(b)]) for b, *_ in found],
                    "fgcolor": "rgba(90,90,90,0.4)",
                    "fillmode": "overlay",
                    "size": 8,
                },
            },
            hovertext=[f"<b>{plain(n)}</b><br>{worth(result, s)}" for n, (*_, s) in zip(names, found, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    if other:
        apart = [theirs.get((b, n), 0.0) for b, n, _ in found]
        figure.add_trace(
            go.Scatter(
                x=[s / factor for s in apart],
                y=rows,
                mode="markers",
                name=f"by {RULES[other.rules]}",
                marker={"symbol": "diamond-open", "size": 11, "color": theme.GREY, "line": {"width": 2}},
                hovertext=[f"{plain(n)}: {fmt.duration(s)}" for n, s in zip(names, apart, strict=True)],
                hovertemplate=f"%{{hovertext}} by {RULES[other.rules]}<extra></extra>",
                cliponaxis=False,
            )
        )
        top = max(*apart, found[0][2]) / factor
    else:
        top = found[0][2] / factor
    for row, (b, n, s) in enumerate(found):
        figure.add_annotation(
            x=max(s, theirs.get((b, n), 0.0) if other else 0.0) / factor,
            y=row,
            xanchor="left",
            xshift=10,
            showarrow=False,
            font={"size": 12},
            text=f"{fmt.share(s / result.total_s)} · {plain(worth(result, s))}",
        )
    return layout(
        figure,
        height=len(found) * 30 + 96,
        bargap=0.3,
        showlegend=other is not None,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        xaxis={
            "title": {"text": f"time ({unit})"},
            "range": [0, top * 1.55],
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": rows,
            "ticktext": [plain(n) for n in names],
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
        },
    )


@drawn_once
def deviation(result: GoodputResult) -> go.Figure | None:
    """Step times against the ideal step, spikes marked; None without a step."""
    rows = result.steps
    if not len(rows):
        return None
    unit, factor = time_unit(result.ideal_step_s or float(rows["step_s"].median()))
    took = rows["step_s"].to_numpy(dtype=float)
    greatest, usual = float(took.max()), result.ideal_step_s or float(np.median(took))
    log = usual > 0 and greatest > 8 * usual
    figure = go.Figure()
    spiky = rows[rows["spike"]]
    if is_long(len(rows)):
        long_series(rows.assign(y=rows["step_s"] * factor), unit, _step_texts, log).draw(figure)
        spiky = spiky.iloc[:0]  # the points are those furthest out, spikes or not
    else:
        drawn = rows.iloc[reduced(took, MAX_POINTS)]
        figure.add_trace(
            go.Scatter(
                x=drawn["step"],
                y=drawn["step_s"] * factor,
                mode="lines",
                name="step",
                line={"color": theme.THIN["useful_maths"], "width": 1.5},
                hovertext=_step_texts(drawn),
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    if len(spiky):
        spiky = spiky.iloc[reduced(spiky["step_s"].to_numpy(dtype=float), MAX_POINTS // 2)]
        figure.add_trace(
            go.Scatter(
                x=spiky["step"],
                y=spiky["step_s"] * factor,
                mode="markers",
                name="spike",
                marker={
                    "symbol": "diamond",
                    "size": 8,
                    "color": theme.COLOURS["program_startup"],
                    "line": {"width": 1, "color": theme.GREY},
                },
                hovertext=_step_texts(spiky),
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    if result.ideal_step_s:
        reference_line(figure, result.ideal_step_s * factor, f"ideal step {fmt.duration(result.ideal_step_s)}", log)
    layout(
        figure,
        320,
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={"title": {"text": "step"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "title": {"text": f"step time ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            **(_log_axis(took * factor) if log else {"rangemode": "tozero"}),
        },
    )
    return steady(figure) if is_long(len(rows)) else figure


def _log_axis(values: np.ndarray) -> dict[str, Any]:
    """A logarithmic axis with 1, 2 and 5 of each power of ten written out."""
    seen = values[values > 0]
    powers = range(math.floor(math.log10(seen.min())), math.ceil(math.log10(seen.max())) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [fmt.number(t, 1) for t in ticks]}


def _step_texts(rows: pd.DataFrame) -> list[str]:
    return [
        f"<b>Step {r.step:,}</b>: {fmt.exact_duration(float(r.step_s))}"
        f"<br>{fmt.duration(abs(float(r.deviation_s)))} from the ideal step" + ("<br>spike" if r.spike else "")
        for r in each(rows)
    ]


def slices(result: GoodputResult) -> go.Figure | None:
    """Slices in all, there and stepping, over time; None where nothing counts them."""
    rows = result.slice_counts
    if not len(rows) or result.end_ns is None:
        return None
    kept = np.unique(np.concatenate([reduced(rows[c].to_numpy(dtype=float)) for c in ("active", "available")]))
    rows = rows.iloc[kept]
    ends = pd.concat((rows, rows.iloc[-1:].assign(time_ns=max(result.end_ns, int(rows["time_ns"].iloc[-1])))))
    at = pd.to_datetime(ends["time_ns"].astype("int64"))
    figure = go.Figure()
    for column, name, colour, dash in (
        ("total", "in all", theme.GREY, "dot"),
        ("available", "there", theme.THIN["useful_maths"], "dash"),
        ("active", "stepping", theme.THIN["useful_maths"], "solid"),
    ):
        figure.add_trace(
            go.Scatter(
                x=at,
                y=ends[column],
                name=name,
                mode="lines",
                line={"shape": "hv", "color": colour, "dash": dash, "width": 2},
                hovertemplate=f"%{{y:.0f}} slices {name}<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
            )
        )
    return layout(
        figure,
        220,
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={"gridcolor": GRID, "type": "date"},
        yaxis={"title": {"text": "slices"}, "rangemode": "tozero", "gridcolor": GRID, "dtick": _tick(ends["total"])},
    )


def _tick(total: pd.Series) -> int:
    return max(1, round(float(total.max()) / 6))

"""An engine over time: what held requests back, what ran and waited, its cache, its tokens; and its iterations."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyzers.serving.engine import EngineResult
from analyzers.serving.engine.bounds import BOUNDS
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, reference_line
from app.questions.engine.words import TITLES, whole
from errors import format as fmt

BOUND_COLOURS = {
    "kv": theme.COLOURS["preemption_recompute"],
    "seats": theme.COLOURS["scheduling"],
    "tokens": theme.COLOURS["prefill"],
    "unknown": theme.COLOURS["unattributed"],
    "none": theme.COLOURS["decode"],
    "idle": theme.COLOURS["no_requests"],
    "untold": theme.COLOURS["unattributed"],
}
BOUND_PATTERNS = {"kv": "x", "seats": "\\", "tokens": ".", "unknown": "/"}
MAX_STRETCHES = 500
EDGE = 0.05  # of the axis: words there stand inwards, or they would be cut off
SMOOTH, SMOOTHER = 240, 80  # points of a rate, of a share: single iterations swing from nothing to all
PREFILL, DECODE = theme.COLOURS["prefill"], theme.COLOURS["decode"]
PANEL_PX = {"bound": 46, "requests": 190, "kv": 130, "tokens": 170, "shares": 150}
AXIS = {"gridcolor": GRID, "zeroline": False}
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def clock(result: EngineResult) -> tuple[str, float]:
    """The title of the axis of time, and how many seconds its unit has."""
    if not result.timed:
        return "sample, in the order of the log", 1.0
    span = result.span_s or 0.0
    unit, seconds = ("h", 3600.0) if span >= 3 * 3600 else ("min", 60.0) if span >= 300 else ("s", 1.0)
    begun = f", from {fmt.date(result.origin_ns)}" if result.origin_ns else ""
    return f"time ({unit}){begun}", seconds


def timeline(result: EngineResult) -> go.Figure:
    """Panels over one axis of time: bound, requests, KV cache (if known), tokens per second."""
    rows = result.windows
    panels = ["bound", "requests"]
    panels += ["kv"] if rows["kv_usage"].notna().any() or (rows["preemptions"] > 0).any() else []
    panels += ["tokens"] if rows[["prompt_tokens_per_s", "output_tokens_per_s"]].notna().any().any() else []
    figure, title, unit = _panels(result, panels)
    x = rows["t_s"] / unit
    _strip(figure, result, unit)
    at = panels.index("requests") + 1
    _trace(figure, at, x, rows["running"], "running", DECODE)
    _trace(figure, at, x, rows["waiting"], "waiting", theme.COLOURS["input_wait"], dash="dot")
    if result.seats and rows["replicas"].max() == 1 and rows["waiting"].max() < 20 * result.seats:
        _limit(figure, at, x, result.seats, f"at most {whole(result.seats)} may run")
    if "kv" in panels:
        at = panels.index("kv") + 1
        _trace(figure, at, x, rows["kv_usage"] * 100, "KV cache in use (%)", BOUND_COLOURS["kv"])
        _preemptions(figure, at, rows, x)
        figure.update_yaxes(title_text="KV cache (%)", range=[0, 105], row=at, col=1)
    if "tokens" in panels:
        at = panels.index("tokens") + 1
        smooth = smoothed(rows)
        _trace(figure, at, smooth["t_s"] / unit, smooth["prompt_tokens_per_s"], "prompt tokens/s", PREFILL, dash="dash")
        _trace(figure, at, smooth["t_s"] / unit, smooth["output_tokens_per_s"], "output tokens/s", DECODE)
        figure.update_yaxes(title_text="tokens/s", rangemode="tozero", row=at, col=1)
    figure.update_yaxes(title_text="requests", rangemode="tozero", row=panels.index("requests") + 1, col=1)
    figure.update_xaxes(title_text=title, row=len(panels), col=1)
    figure.update_xaxes(range=[0, float(x.iloc[-1])])
    return figure


def smoothed(rows: pd.DataFrame, most: int = SMOOTH) -> pd.DataFrame:
    """At most so many stretches: rates as means over time, shares as means over the tokens processed in them."""
    if len(rows) <= most:
        return rows
    group = np.arange(len(rows)) * most // len(rows)
    done = rows[["prompt_tokens_per_s", "output_tokens_per_s"]].sum(axis=1, min_count=1) * rows["dt_s"]
    tokens = done if done.notna().any() else rows["dt_s"]
    found = {"t_s": rows["t_s"].groupby(group).last()}
    for column, weight in (
        ("prompt_tokens_per_s", rows["dt_s"]),
        ("output_tokens_per_s", rows["dt_s"]),
        ("prompt_share", tokens),
        ("prefix_hit_rate", tokens),
        ("acceptance_rate", tokens),
        ("padded_share", tokens),
    ):
        known = weight.where(rows[column].notna())
        total = known.groupby(group).sum()
        found[column] = (rows[column] * known).groupby(group).sum() / total.where(total > 0)
    return pd.DataFrame(found).reset_index(drop=True)


def shares(result: EngineResult) -> go.Figure | None:
    """Over time, in per cent: prompt tokens in all processed, prefix hits, drafts accepted, padding."""
    rows = smoothed(result.windows, SMOOTHER)
    columns = (
        ("prompt_share", "prompt tokens of all processed", PREFILL, "solid"),
        ("prefix_hit_rate", "prompt tokens found in the prefix cache", theme.COLOURS["served"], "dash"),
        ("acceptance_rate", "draft tokens accepted", theme.COLOURS["rejected_speculation"], "dot"),
        ("padded_share", "padding of computed tokens", theme.COLOURS["bucket_padding"], "dashdot"),
    )
    told = [c for c in columns if rows[c[0]].notna().any()]
    if not told:
        return None
    title, unit = clock(result)
    figure = go.Figure()
    for column, words, colour, dash in told:
        figure.add_trace(
            go.Scatter(
                x=rows["t_s"] / unit,
                y=rows[column] * 100,
                mode="lines",
                name=words,
                connectgaps=False,
                line={"color": colour, "width": 1.8, "dash": dash},
                hovertemplate=f"%{{x:,.4r}}: %{{y:,.3r}} % {words}<extra></extra>",
            )
        )
    if rows["prompt_share"].notna().any():
        reference_line(figure, 50, "above: more prompt than generated tokens")
    return layout(
        figure,
        380,
        showlegend=True,
        legend=LEGEND,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 48, "b": 8},
        xaxis={"title": {"text": title}, **AXIS},
        yaxis={"title": {"text": "%"}, "range": [0, 102], **AXIS},
    )


def batch(result: EngineResult) -> go.Figure | None:
    """Share of the time at each number of running requests of a replica."""
    rows = result.batch
    if not len(rows):
        return None
    names = [
        f"{a:,.0f}" if a == b else f"{a:,.0f} to {b:,.0f}" for a, b in zip(rows["running"], rows["to"], strict=True)
    ]
    width = float(rows["to"].iloc[0] - rows["running"].iloc[0] + 1)
    figure = go.Figure(
        go.Bar(
            x=(rows["running"] + rows["to"]) / 2,
            y=rows["share"] * 100,
            width=width * 0.92,
            marker_color=DECODE,
            hovertext=[f"{n} running: {fmt.share(s)} of the time" for n, s in zip(names, rows["share"], strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    if result.seats:
        figure.add_vline(
            x=result.seats,
            line_dash="dash",
            line_color=theme.GREY,
            annotation_text="most that may run",
            annotation_position="top left",
        )
    return layout(
        figure,
        380,
        bargap=0,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        xaxis={"title": {"text": "requests running"}, **AXIS},
        yaxis={"title": {"text": "% of the time"}, **AXIS},
    )


def iterations(result: EngineResult) -> go.Figure | None:
    """Duration of an iteration over the tokens in it, with the line overhead + tokens x time per token."""
    rows = result.drawn
    if not len(rows):
        return None
    unit, factor = time_unit(float(rows["dur_s"].median()))
    figure = go.Figure()
    for words, some, colour, symbol in (
        ("only generates", rows[rows["prefill_tokens"] == 0], DECODE, "circle"),
        ("reads prompts too", rows[rows["prefill_tokens"] > 0], PREFILL, "diamond"),
    ):
        if len(some):
            figure.add_trace(
                go.Scattergl(
                    x=some["tokens"],
                    y=some["dur_s"] * factor,
                    mode="markers",
                    name=words,
                    marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.55},
                    hovertemplate=f"%{{x:,}} tokens: %{{y:,.4r}} {unit}<extra>{words}</extra>",
                )
            )
    if result.fit is not None:
        _fit_line(figure, result, rows, factor)
    top = float(rows["dur_s"].quantile(0.995)) * factor * 1.15
    return layout(
        figure,
        420,
        showlegend=True,
        legend=LEGEND,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 48, "b": 8},
        hovermode="closest",
        xaxis={"title": {"text": "tokens computed in the iteration"}, "rangemode": "tozero", **AXIS},
        yaxis={"title": {"text": f"duration ({unit})"}, "range": [0, top], **AXIS},
    )


def _fit_line(figure: go.Figure, result: EngineResult, rows: pd.DataFrame, factor: float) -> None:
    ends = np.array([0.0, float(rows["tokens"].max())])
    figure.add_trace(
        go.Scatter(
            x=ends,
            y=(result.fit.overhead_s + result.fit.per_token_s * ends) * factor,
            mode="lines",
            hoverinfo="skip",
            line={"color": theme.GREY, "dash": "dash", "width": 2},
            name=f"{fmt.duration(result.fit.overhead_s)} + {fmt.duration(result.fit.per_token_s)} per token",
        )
    )


def _panels(result: EngineResult, panels: list[str]) -> tuple[go.Figure, str, float]:
    heights = [PANEL_PX[p] for p in panels]
    total = sum(heights)
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        row_heights=[h / total for h in heights],
        vertical_spacing=18 / total,
    )
    layout(
        figure,
        total + 110,
        showlegend=True,
        barmode="overlay",
        dragmode="zoom",
        hovermode="closest",
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 56, "b": 8},
    )
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    title, unit = clock(result)
    return figure, title, unit


def stretches(result: EngineResult) -> pd.DataFrame:
    """Neighbouring windows with the same greatest bound, joined: bound, start_s, end_s; at most MAX_STRETCHES."""
    rows = result.windows
    group = np.arange(len(rows)) * min(MAX_STRETCHES, len(rows)) // max(len(rows), 1)
    told = rows[[f"share_{b}" for b in BOUNDS]].mul(rows["dt_s"], axis=0).groupby(group).sum()
    word = told.to_numpy().argmax(axis=1)
    ends = rows["t_s"].groupby(group).last().to_numpy()
    starts = (rows["t_s"] - rows["dt_s"]).groupby(group).first().to_numpy()
    new = np.concatenate(([True], word[1:] != word[:-1])) if len(word) else np.zeros(0, dtype=bool)
    last = np.concatenate((new[1:], [True])) if len(word) else new
    return pd.DataFrame({"bound": np.array(BOUNDS)[word[new]], "start_s": starts[new], "end_s": ends[last]})


def _strip(figure: go.Figure, result: EngineResult, unit: float) -> None:
    parts = stretches(result)
    for bound in BOUNDS:
        some = parts[parts["bound"] == bound]
        if not len(some):
            continue
        marker = {"color": BOUND_COLOURS[bound], "line": {"width": 0}}
        if pattern := BOUND_PATTERNS.get(bound):
            marker["pattern"] = {
                "shape": pattern,
                "fgcolor": "rgba(0,0,0,0.5)",
                "bgcolor": BOUND_COLOURS[bound],
                "size": 7,
                "solidity": 0.2,
            }
        spans = (some["end_s"] - some["start_s"]).to_numpy()
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=["limit"] * len(some),
                base=some["start_s"] / unit,
                x=spans / unit,
                marker=marker,
                width=0.9,
                name=f"{TITLES[bound]} {fmt.share(result.bound[bound], 2)}",
                legendgroup=bound,
                hovertext=[
                    f"{TITLES[bound]}: {fmt.duration(s) if result.timed else fmt.count(round(s), 'sample')}"
                    for s in spans
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            ),
            row=1,
            col=1,
        )
    figure.update_yaxes(showgrid=False, showticklabels=False, fixedrange=True, row=1, col=1)


def _trace(
    figure: go.Figure, row: int, x: pd.Series, y: pd.Series, words: str, colour: str, dash: str = "solid"
) -> None:
    if not y.notna().any():
        return
    known = np.flatnonzero(y.notna().to_numpy())
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines" if len(known) > 1 else "markers",
            name=words,
            connectgaps=False,
            showlegend=False,
            line={"color": colour, "width": 1.8, "dash": dash},
            marker={"color": colour, "size": 7},
            hovertemplate=f"%{{x:,.4r}}: %{{y:,.4r}} {words}<extra></extra>",
        ),
        row=row,
        col=1,
    )
    top = known[int(np.argmax(y.to_numpy(dtype=float)[known]))]
    along = float(x.iloc[top]) / (float(x.iloc[-1]) or 1.0)
    figure.add_annotation(
        x=float(x.iloc[top]),
        y=float(y.iloc[top]),
        text=words,
        showarrow=False,
        yanchor="bottom",
        xanchor="left" if along < EDGE else "right" if along > 1 - EDGE else "center",
        font_size=11,
        row=row,
        col=1,
    )


def _limit(figure: go.Figure, row: int, x: pd.Series, y: float, words: str) -> None:
    figure.add_hline(y=y, line_dash="dash", line_color=theme.GREY, line_width=1.2, row=row, col=1)
    figure.add_annotation(
        x=float(x.iloc[-1]),
        y=y,
        text=words,
        showarrow=False,
        xanchor="right",
        yanchor="bottom",
        font_size=11,
        row=row,
        col=1,
    )


def _preemptions(figure: go.Figure, row: int, rows: pd.DataFrame, x: pd.Series) -> None:
    hit = (rows["preemptions"] > 0).to_numpy()
    if not hit.any():
        return
    figure.add_trace(
        go.Scatter(
            x=x[hit],
            y=np.full(hit.sum(), 101.0),
            mode="markers",
            name="preemptions",
            marker={"symbol": "triangle-down", "size": 9, "color": theme.THIN["wasted_progress"]},
            hovertext=[f"{fmt.count(round(p), 'preemption')}" for p in rows.loc[hit, "preemptions"]],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
        row=row,
        col=1,
    )

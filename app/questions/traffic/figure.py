"""Traffic drawn: its rate over time, how counts vary by window, and how long prompts and answers are."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.serving.traffic import WorkloadResult
from app import theme
from app.figures.base import GRID, layout, reduced, reference_line
from app.questions.traffic.words import MIX, span
from app.questions.traffic.words import tokens as number_of
from errors import format as fmt

RATE, PROMPT, OUTPUT = theme.COLOURS["served"], theme.COLOURS["prefill"], theme.COLOURS["decode"]
BAND = "rgba(128,128,128,0.22)"
HEIGHT = 360
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def time_axis(seconds: float) -> tuple[str, float]:
    """(unit, seconds in it) of an axis that spans so long."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 3 * size:
            return unit, size
    return "seconds", 1.0


def arrivals(result: WorkloadResult) -> go.Figure | None:
    """Requests per second in small windows, with the mean and what a Poisson model of it would reach."""
    rates = result.rates
    if not len(rates):
        return None
    figure = go.Figure()
    y = rates["requests_per_s"].to_numpy(dtype=float)
    unit, size = time_axis(float(result.duration_s))
    y = np.append(y, y[-1])  # the last window lasts as long as the others
    kept = reduced(y)
    x = np.append(rates["start_s"], rates["start_s"].iloc[-1] + result.rate_window_s)[kept] / size
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y[kept],
            mode="lines",
            line={"color": RATE, "width": 1.5, "shape": "hv"},
            name="requests/s",
            hovertemplate=f"%{{x:,.3r}} {unit}: %{{y:,.3r}} requests/s<extra></extra>",
        )
    )
    if result.request_rate_per_s is not None:  # of loads one after another no mean is told
        reference_line(figure, float(result.request_rate_per_s), f"mean {fmt.number(result.request_rate_per_s)}")
    top = max(float(y.max()), 0.0)
    if result.rate_chance is not None:
        dip, peak = result.rate_chance
        figure.add_hrect(y0=dip, y1=peak, line_width=0, fillcolor=BAND, layer="below")
        figure.add_annotation(
            xref="paper",
            yref="paper",
            x=0,
            y=1,
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font_size=12,
            text=f"grey: a Poisson process of this mean, {fmt.number(dip)} to {fmt.number(peak)}",
        )
        top = max(top, peak)
    return layout(
        figure,
        HEIGHT,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        xaxis={"title": {"text": f"time since the first request ({unit})"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "title": {"text": f"requests/s, over {span(result.rate_window_s)} each"},
            "gridcolor": GRID,
            "range": [0, 1.12 * top],
        },
    )


def tokens(result: WorkloadResult) -> go.Figure | None:
    """Tokens asked for per second, prompts and answers stacked."""
    rates = result.rates
    if not len(rates):
        return None
    figure = go.Figure()
    unit, size = time_axis(float(result.duration_s))
    both = (rates["prompt_tokens_per_s"] + rates["output_tokens_per_s"]).to_numpy(dtype=float)
    kept = reduced(both)
    parts = (("prompts", "prompt_tokens_per_s", PROMPT), ("answers", "output_tokens_per_s", OUTPUT))
    for name, column, colour in parts:
        figure.add_trace(
            go.Scatter(
                x=rates["start_s"].to_numpy()[kept] / size,
                y=rates[column].to_numpy(dtype=float)[kept],
                name=name,
                mode="lines",
                line={"color": colour, "width": 0.5},
                stackgroup="one",
                hovertemplate=f"%{{x:,.3r}} {unit}: %{{y:,.0f}} tokens/s of {name}<extra></extra>",
            )
        )
    return layout(
        figure,
        HEIGHT,
        dragmode="zoom",
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": f"time since the first request ({unit})"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "title": {"text": f"tokens/s asked for, over {span(result.rate_window_s)} each"},
            "gridcolor": GRID,
            "rangemode": "tozero",
        },
    )


def dispersion(result: WorkloadResult) -> go.Figure | None:
    """Index of dispersion over window length, against what chance has: log-log; None where too little is known."""
    curve = result.curve[result.curve["dispersion"] > 0]
    if len(curve) < 3:
        return None
    x = curve["window_s"].to_numpy(dtype=float)
    low, high = (curve[c].to_numpy(dtype=float) for c in ("chance_low", "chance_high"))
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=np.concatenate([x, x[::-1]]),
            y=np.concatenate([high, np.maximum(low, 1e-3)[::-1]]),
            fill="toself",
            fillcolor=BAND,
            line={"width": 0},
            hoverinfo="skip",
            name="chance: 99 of 100 Poisson processes",
        )
    )
    y = curve["dispersion"].to_numpy(dtype=float)
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            name="this traffic",
            line={"color": RATE, "width": 2},
            marker={"size": 6},
            hovertext=[
                f"windows of {fmt.duration(w)}: {fmt.number(v)}<br>chance {fmt.number(a)} to {fmt.number(b)}"
                for w, v, a, b in zip(x, y, low, high, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.add_annotation(
        x=math.log10(x[-1]),
        y=math.log10(y[-1]),
        text=fmt.number(float(y[-1])),
        showarrow=False,
        yanchor="middle",
        xanchor="left",
        xshift=8,
        font_size=12,
    )
    values = np.concatenate([y, high, np.maximum(low, 0.2)])
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": "length of the windows"}, "gridcolor": GRID, **_durations(x)},
        yaxis={
            "title": {"text": "variance of counts by their mean"},
            "gridcolor": GRID,
            "type": "log",
            "range": [math.log10(values.min()) - 0.1, math.log10(values.max()) + 0.15],
            "tickvals": (ticks := _decades(values)),
            "ticktext": [fmt.number(t, 1) for t in ticks],
        },
    )


def _durations(x: np.ndarray) -> dict:
    ticks = [t for t in (0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800) if x[0] <= t * 1.01 and t <= x[-1] * 1.01]
    return {
        "type": "log",
        "tickvals": ticks,
        "ticktext": [fmt.duration(t).replace(".00", "").replace(".0", "") for t in ticks],
    }


def _decades(values: np.ndarray) -> list[float]:
    powers = range(math.floor(math.log10(values.min())), math.ceil(math.log10(values.max())) + 1)
    within = (1, 2, 5) if len(powers) <= 3 else (1,)
    return [m * 10.0**p for p in powers for m in within]


def lengths(result: WorkloadResult) -> go.Figure | None:
    """Share of requests whose prompt, and whose answer, is at most so long: logarithmic in tokens."""
    figure, ends = go.Figure(), []
    for name, column, colour, dash in (
        ("prompts", "prompt_tokens", PROMPT, "solid"),
        ("answers", "output_tokens", OUTPUT, "dash"),
    ):
        x = result.lengths[column].to_numpy(dtype=float)
        if np.isnan(x).all():
            continue
        shown = np.maximum(x, 0.8)  # a logarithmic axis has no place for 0
        figure.add_trace(
            go.Scatter(
                x=shown,
                y=result.lengths["q"] * 100,
                name=name,
                mode="lines",
                line={"color": colour, "width": 2.5, "dash": dash},
                hovertext=[
                    f"{fmt.number(q * 100)} % of {name} have at most {fmt.number(v)} tokens"
                    for q, v in zip(result.lengths["q"], x, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
        middle = float(np.interp(0.5, result.lengths["q"], x))
        figure.add_annotation(
            x=math.log10(max(middle, 0.8)),
            y=50,
            text=f"{name} {number_of(middle)}",
            showarrow=False,
            xanchor="right",
            yanchor="bottom",
            xshift=-6,
            font_size=12,
        )
        ends += [shown.min(), shown.max()]
    if not ends:
        return None
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={
            "title": {"text": "tokens"},
            "gridcolor": GRID,
            "type": "log",
            "range": [math.log10(min(ends)) - 0.6, math.log10(max(ends)) + 0.1],
            "tickvals": (ticks := [10.0**p for p in range(0, 8)]),
            "ticktext": [f"{t:,.0f}" for t in ticks],
        },
        yaxis={"title": {"text": "requests of at most so many (%)"}, "gridcolor": GRID, "range": [0, 103]},
    )


def joint(result: WorkloadResult) -> go.Figure | None:
    """Requests by length of prompt and answer, both in powers of two; the four kinds of traffic told in the corners."""
    if not len(result.joint):
        return None
    grid = result.joint.pivot(index="output_from", columns="prompt_from", values="requests")
    x, y = (_places(v.to_numpy(dtype=float)) for v in (grid.columns, grid.index))
    share = grid.to_numpy(dtype=float) / result.joint["requests"].sum()
    hover = [
        [
            f"prompt {_range(p)}, answer {_range(o)} tokens<br>{fmt.share(s)} of requests" if s == s else ""
            for p, s in zip(grid.columns, row, strict=True)
        ]
        for o, row in zip(grid.index, share, strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            x=x,
            y=y,
            z=np.sqrt(share),
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
            colorscale=[[0, "rgba(44,111,166,0.12)"], [1, PROMPT]],
            showscale=False,
            hoverongaps=False,
        )
    )
    split = math.log2(result.heavy_prompt) - 0.5, math.log2(result.heavy_output) - 0.5
    figure.add_vline(x=split[0], line_dash="dash", line_color=theme.GREY, line_width=1.5)
    figure.add_hline(y=split[1], line_dash="dash", line_color=theme.GREY, line_width=1.5)
    corners = {
        "short_both": (0, 0, "left", "bottom"),
        "heavy_prompt": (1, 0, "right", "bottom"),
        "heavy_output": (0, 1, "left", "top"),
        "heavy_both": (1, 1, "right", "top"),
    }
    for kind, (cx, cy, ax, ay) in corners.items():
        figure.add_annotation(
            xref="paper",
            yref="paper",
            x=cx,
            y=cy,
            xanchor=ax,
            yanchor=ay,
            showarrow=False,
            font_size=12,
            text=f"<b>{fmt.share((result.mix or {}).get(kind), 2)}</b> " + MIX[kind].replace(": ", "<br>"),
            align=ax,
        )
    bare = {"showgrid": False, "zeroline": False}
    return layout(
        figure,
        HEIGHT + 80,
        xaxis={"title": {"text": "prompt (tokens, from)"}, **bare, **_powers(x, split[0])},
        yaxis={"title": {"text": "answer (tokens, from)"}, **bare, **_powers(y, split[1])},
    )


def _places(lower: np.ndarray) -> np.ndarray:
    """Position of each cell: the exponent of its lower bound, -1 for nothing."""
    return np.where(lower > 0, np.log2(np.maximum(lower, 1)), -1)


def _range(low: float) -> str:
    return "0" if not low else f"{low:,.0f} to {2 * low - 1:,.0f}" if low > 1 else "1"


def _powers(places: np.ndarray, split: float) -> dict:
    """Every other power of two written out; room for the corners' words beyond the outermost cells."""
    low, high = min(places.min(), split) - 1.6, max(places.max(), split) + 1.6
    ticks = [p for p in range(math.ceil(low), math.floor(high) + 1) if p % 2 == 0 and p >= 0]
    return {"range": [low, high], "tickvals": ticks, "ticktext": [f"{2**p:,}" for p in ticks]}


def flight(result: WorkloadResult) -> go.Figure | None:
    """Requests in flight over time, where somebody served them."""
    rows = result.flight
    if not len(rows):
        return None
    unit, size = time_axis(float(rows["start_s"].iloc[-1]))
    y = rows["in_flight"].to_numpy(dtype=float)
    kept = reduced(y)
    figure = go.Figure(
        go.Scatter(
            x=rows["start_s"].to_numpy(dtype=float)[kept] / size,
            y=y[kept],
            mode="lines",
            line={"color": theme.COLOURS["served"], "width": 1.5, "shape": "hv"},
            hovertemplate=f"%{{x:,.3r}} {unit}: %{{y:,.0f}} in flight<extra></extra>",
        )
    )
    reference_line(figure, result.concurrency["mean"], f"mean {fmt.number(result.concurrency['mean'])}")
    return layout(
        figure,
        HEIGHT,
        dragmode="zoom",
        xaxis={"title": {"text": f"time since the first request ({unit})"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"title": {"text": "requests in flight"}, "gridcolor": GRID, "rangemode": "tozero"},
    )


def evidence(result: WorkloadResult) -> pd.DataFrame:
    """Windows as rows: what the page shows and what is exported."""
    return pd.DataFrame(
        [
            {
                "window_s": w.window_s,
                "windows": w.windows,
                "mean_per_s": w.mean_per_s,
                "peak_per_s": w.peak_per_s,
                "peak_to_mean": w.peak_to_mean,
                "peak_at_s": w.peak_at_s,
                "empty_share": w.empty_share,
                "dispersion": w.dispersion,
                "chance_low": w.chance_low,
                "chance_high": w.chance_high,
                "chance_peak_per_s": w.chance_peak_per_s,
            }
            for w in result.windows
        ]
    )

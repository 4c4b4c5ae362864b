"""Interruptions compared: causes beside a published fleet, rates beside all of them, and the times between two."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.lost.interruptions import InterruptionsResult
from app import theme
from app.figures.base import GRID, layout, plain, reduced
from errors import format as fmt

MOST_CAUSES = 18
MINE = theme.COLOURS["infrastructure_recovery"]
CURVE = 200


def causes(shares: pd.DataFrame, title: str | None) -> go.Figure:
    """Share of interruptions by cause; beside it, hollow, that of the fleet called `title` where one is given.

    `shares`: as analyzers.lost.interruptions.fleet_rates.shares gives it.
    """
    if title is None:
        shares = shares[shares["count"] > 0]
    rest = len(shares) - MOST_CAUSES
    shares = shares.head(MOST_CAUSES)
    names = [plain(t) for t in shares["title"]]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=shares["share"] * 100,
            name="this run",
            offsetgroup="run",
            marker={
                "color": MINE,
                "pattern": {
                    "shape": ["/" if f == "unknown" else "" for f in shares["family"]],
                    "fgcolor": "rgba(255,255,255,0.6)",
                    "fillmode": "overlay",
                    "size": 7,
                },
            },
            text=_labels(shares["share"], shares["count"]),
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}, this run: %{text}<extra></extra>",
        )
    )
    if title is not None:
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=names,
                x=shares["fleet_share"] * 100,
                name=plain(title),
                offsetgroup="fleet",
                marker={"color": "rgba(128,128,128,0.18)", "line": {"color": theme.GREY, "width": 1.5}},
                text=_labels(shares["fleet_share"], shares["fleet_count"]),
                textposition="outside",
                cliponaxis=False,
                hovertemplate="%{y}, published: %{text}<extra></extra>",
            )
        )
    top = max(float(shares["share"].max()), float(shares["fleet_share"].max()) if title else 0.0, 0.01)
    if rest > 0:
        figure.add_annotation(
            xref="paper",
            yref="paper",
            x=1,
            y=0,
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            text=f"{rest} rarer not shown",
            font_size=12,
        )
    return layout(
        figure,
        len(shares) * (40 if title else 28) + 120,
        barmode="group",
        showlegend=title is not None,
        bargap=0.25,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={
            "title": {"text": "share of all interruptions (%)"},
            "range": [0, top * 118],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False},
    )


def _labels(share: pd.Series, count: pd.Series) -> list[str]:
    return [f"{fmt.share(s)} ({n:,})" if n else "none" for s, n in zip(share, count, strict=True)]


def rates(result: InterruptionsResult, fleets: list[dict[str, Any]]) -> go.Figure | None:
    """Unplanned interruptions per 1,000 node-days, with intervals where counts are known; None for a run without."""
    if result.rate.mean is None:
        return None
    mine = {
        "title": "this run",
        "per_1000_node_days": result.rate.mean,
        "low": result.rate.low,
        "high": result.rate.high,
        "mark": "derived",
        "note": result.nodes.words,
    }
    rows = [mine, *fleets]
    floor = min(r["per_1000_node_days"] for r in rows if r["per_1000_node_days"] > 0) / 20
    x = [max(r["per_1000_node_days"], floor) for r in rows]
    low = [v - max(r["low"], floor) if r["low"] is not None else 0.0 for v, r in zip(x, rows, strict=True)]
    high = [max(r["high"] - v, 0.0) if r["high"] is not None else 0.0 for v, r in zip(x, rows, strict=True)]
    names = [plain(r["title"]) for r in rows]
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=names,
            mode="markers+text",
            textposition="top center",
            textfont={"size": 12},
            text=[fmt.number(r["per_1000_node_days"]) for r in rows],
            cliponaxis=False,
            marker={
                "size": 11,
                "color": [MINE] + [theme.GREY] * len(fleets),
                "symbol": ["circle"] + ["diamond" if f["mark"] == "published" else "diamond-open" for f in fleets],
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high,
                "arrayminus": low,
                "color": theme.GREY,
                "thickness": 1.5,
                "width": 4,
            },
            hovertext=[
                f"<b>{n}</b><br>{fmt.number(r['per_1000_node_days'])} per 1,000 node-days{_interval(r)}<br>"
                f"{plain(r['mark'])}"
                for n, r in zip(names, rows, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    return layout(
        figure,
        len(rows) * 46 + 70,
        margin={"l": 8, "r": 24, "t": 24, "b": 8},
        xaxis={
            "type": "log",
            "title": {"text": "unplanned interruptions per 1,000 node-days"},
            "gridcolor": GRID,
            "tickvals": _ticks(min(x) / 2, max(x) * 2),
        },
        yaxis={"autorange": "reversed", "automargin": True, "gridcolor": GRID},
    )


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade, or its beginning alone where there are many."""
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [float(f"{s}e{int(d)}") for d in decades for s in steps]


def _interval(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return ", no interval can be told"
    return f"<br>95 % interval {fmt.number(row['low'])} to {fmt.number(row['high'])}"


def between(result: InterruptionsResult) -> go.Figure | None:
    """How many of the times between interruptions were longer than x, with the exponential of the same mean and the
    band of its 95 % interval; None below two interruptions."""
    m = result.mttf
    if len(result.gaps_s) < 2 or not m.mean_s:
        return None
    gaps = np.sort(result.gaps_s)
    longer = 100 * (1 - np.arange(1, len(gaps) + 1) / len(gaps))
    unit, scale = ("hours", 3600.0) if m.mean_s >= 3600 else ("minutes", 60.0) if m.mean_s >= 60 else ("seconds", 1.0)
    at = np.linspace(0, max(float(gaps[-1]), 2 * m.mean_s), CURVE)
    drawn = reduced(gaps)
    colour = theme.COLOURS["exposed_communication"]
    figure = go.Figure(
        [
            go.Scatter(
                x=at / scale,
                y=100 * np.exp(-at / m.high_s),
                mode="lines",
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            ),
            go.Scatter(
                x=at / scale,
                y=100 * np.exp(-at / m.low_s),
                mode="lines",
                line={"width": 0},
                fill="tonexty",
                fillcolor="rgba(128,128,128,0.22)",
                name="95 % interval of the mean",
                hoverinfo="skip",
            ),
            go.Scatter(
                x=at / scale,
                y=100 * np.exp(-at / m.mean_s),
                mode="lines",
                name="at random, at this mean",
                line={"color": theme.GREY, "dash": "dash", "width": 2},
                hoverinfo="skip",
            ),
            go.Scatter(
                x=np.insert(gaps[drawn], 0, 0.0) / scale,
                y=np.insert(longer[drawn], 0, 100.0),
                name="this run",
                mode="lines",
                line={"color": colour, "shape": "hv", "width": 2},
                hovertemplate=f"%{{y:,.3r}} % lasted longer than %{{x:,.3r}} {unit}<extra></extra>",
            ),
        ]
    )
    figure.add_vline(x=m.mean_s / scale, line_dash="dot", line_color=theme.GREY, line_width=1.5)
    figure.add_annotation(
        x=m.mean_s / scale,
        y=1,
        yref="paper",
        yanchor="top",
        xanchor="left",
        xshift=6,
        showarrow=False,
        text=f"mean {fmt.duration(m.mean_s)}",
        font_size=12,
    )
    return layout(
        figure,
        380,
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={
            "title": {"text": f"{unit} from one interruption to the next, held time"},
            "gridcolor": GRID,
            "zeroline": False,
            "rangemode": "tozero",
        },
        yaxis={"title": {"text": "lasted longer (%)"}, "gridcolor": GRID, "zeroline": False, "range": [0, 103]},
    )

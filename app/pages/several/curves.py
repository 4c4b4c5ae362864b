"""Several runs: their curves on one picture, each in its colour, with what is set apart hollow."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from analyzers.several.curves import Curve
from analyzers.several.differing import Member
from app.figures.axes import PLAIN, time_unit
from app.figures.base import layout, plain
from app.figures.run_colours import looks
from app.words import short
from errors import format as fmt

MOST_BANDS = 4  # runs whose bands are drawn: more lie over one another
TITLES = {"step_time": "Step time", "loss": "Loss", "throughput": "Tokens/s", "mfu": "MFU"}
OVERS = {"step": "Step number", "time": "Hours", "tokens": "Tokens"}
ALONG = {"step": "step", "time": "hours since the first step", "tokens": "tokens so far"}
UNITS = {"loss": "loss", "throughput": "tokens/s, all chips", "mfu": "MFU (%)"}
ROOM = 0.06


def overlaid(
    curves: Mapping[str, Curve], members: Mapping[str, Member], ids: list[str], of: str, over: str
) -> go.Figure:
    """`curves`: by run; `ids`: all runs of the page, by which each has its colour."""
    unit, scale = _unit(curves, of)
    title = f"step time ({unit})" if of == "step_time" else unit
    styles, figure = looks(ids), go.Figure()
    for run_id, found in curves.items():
        colour, dash = styles[run_id]
        name = plain(short(members[run_id].name, 34))
        if found.width > 1 and len(curves) <= MOST_BANDS:
            figure.add_scatter(
                x=np.concatenate([found.x, found.x[::-1]]),
                y=np.concatenate([found.high, found.low[::-1]]) * scale,
                fill="toself",
                fillcolor=_faint(colour),
                line={"width": 0},
                hoverinfo="skip",
                legendgroup=run_id,
                showlegend=False,
            )
        figure.add_scatter(
            x=found.x,
            y=found.y * scale,
            mode="lines" if len(found.x) > 1 else "markers",
            name=name,
            legendgroup=run_id,
            line={"color": colour, "dash": dash, "width": 2},
            hovertemplate=f"<b>{name}</b><br>{ALONG[over]} %{{x:,.4~g}}: %{{y:,.4~g}} {unit}<extra></extra>",
        )
        if len(found.apart_x):
            figure.add_scatter(
                x=found.apart_x,
                y=found.apart_y * scale,
                mode="markers",
                legendgroup=run_id,
                showlegend=False,
                opacity=0.6,
                marker={"color": colour, "symbol": "circle-open", "size": 6},
                hovertemplate=f"<b>{name}</b>, set apart<br>{ALONG[over]} %{{x:,.4~g}}: %{{y:,.4~g}} {unit}"
                "<extra></extra>",
            )
    return layout(
        figure,
        440,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": ALONG[over]}, **PLAIN},
        yaxis={
            "title": {"text": title},
            **_range(curves, scale),
            **PLAIN,
        },
        hovermode="closest",
        dragmode="zoom",
    )


def _unit(curves: Mapping[str, Curve], of: str) -> tuple[str, float]:
    if of == "step_time":
        return time_unit(max(float(np.median(c.y)) for c in curves.values()))
    return UNITS[of], 100.0 if of == "mfu" else 1.0


def _range(curves: Mapping[str, Curve], scale: float) -> dict:
    """From the least to the greatest of the curves: what is set apart may lie beyond."""
    low, high = (float(f(v)) * scale for f, v in zip((min, max), _ends(curves), strict=True))
    room = ROOM * (high - low or abs(high) or 1.0)
    return {"range": [low - room, high + room]}


def _ends(curves: Mapping[str, Curve]) -> tuple[list[float], list[float]]:
    return [float(c.low.min()) for c in curves.values()], [float(c.high.max()) for c in curves.values()]


def beyond(curves: Mapping[str, Curve]) -> int:
    """Steps set apart that lie above or below the picture, of those that are drawn."""
    low, high = (f(v) for f, v in zip((min, max), _ends(curves), strict=True))
    return sum(int(((c.apart_y > high) | (c.apart_y < low)).sum()) for c in curves.values())


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def said(curves: Mapping[str, Curve], of: str, smooth: int) -> str:
    """What is seen: above the picture."""
    widths = sorted({c.width for c in curves.values()})
    parts = list[str]()
    if widths[-1] > 1:
        stretch = f"{widths[-1]:,}" if len(widths) == 1 else f"{widths[0]:,} to {widths[-1]:,}"
        band = ", its band from the least to the greatest" if len(curves) <= MOST_BANDS else ""
        parts.append(f"Each point is the median of {stretch} steps{band}.")
    if smooth > 1:
        parts.append(f"Smoothed: each step is the mean of {2 * (smooth // 2) + 1:,} neighbours.")
    if apart := sum(c.apart for c in curves.values()):
        out = beyond(curves)
        more = f"; {out:,} of them lie beyond the picture" if out else ""
        parts.append(f"{fmt.count(apart, 'step')} set apart (warm-up, stalls, impossible ones) are hollow{more}.")
    return " ".join(parts)

"""Efficiency over chips: points, and the curve with its range as far as it may be asked."""

import math

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout, reference_line
from app.whatif.scaling.answers import ScalingAnswer
from errors import format as fmt
from simulators.training.scaling import FARTHEST, SURE, Curve, Point, Predicted

LINE, RANGE = theme.COLOURS["served"], "rgba(0,158,115,0.16)"
ASKED = theme.COLOURS["padding"]
STEPS = 30


def efficiency(result: ScalingAnswer) -> go.Figure:
    """Per cent of the ideal. The curve is dotted from twice the most chips that were measured, and ends at four times:
    beyond, what is asked stands as a line without a value."""
    figure = go.Figure()
    chips = [r.point.chips for r in result.rows]
    far = chips[-1]
    if result.curve is not None:
        far = int(FARTHEST * chips[-1])
        _curve(figure, result.curve, result.smallest, chips[0], far)
        figure.add_vline(x=far, line={"color": theme.GREY, "dash": "dot"})
        place = {"x": math.log10(far), "xanchor": "right", "yref": "paper", "y": 0, "yanchor": "bottom"}
        told = f"no curve beyond {fmt.count(far, 'chip')}"
        figure.add_annotation(text=told, showarrow=False, font_size=12, **place)
    reference_line(figure, 100, "ideal")
    figure.add_scatter(
        x=chips,
        y=[100 * r.efficiency for r in result.rows],
        mode="markers",
        name="measured",
        marker={"color": LINE, "size": 11},
        hovertext=[
            f"<b>{fmt.count(r.point.chips, 'chip')}</b><br>{fmt.share(r.efficiency)} in {fmt.duration(r.point.seconds)}"
            for r in result.rows
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    _predicted(figure, result.predicted)
    return layout(
        figure,
        height=380,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "chips"}, "gridcolor": GRID, "fixedrange": True} | log_ticks(chips[0], far),
        yaxis={"title": {"text": "% of the ideal"}, "gridcolor": GRID, "fixedrange": True, "rangemode": "tozero"},
    )


def _curve(figure: go.Figure, curve: Curve, first: Point, least: int, far: int) -> None:
    """The curve and its range, from the fewest chips that were measured as far as it may be asked."""
    along = np.unique(np.round(np.geomspace(least, far, STEPS))).astype(int)
    told = [curve.predicted(int(n), first) for n in along]
    low, high = ([100 * t.efficiency * t.seconds / end for t, end in _ends(told, of)] for of in ("high", "low"))
    fill = {"fill": "toself", "fillcolor": RANGE, "line": {"width": 0}, "mode": "lines", "hoverinfo": "skip"}
    figure.add_scatter(x=[*along, *along[::-1]], y=[*low, *high[::-1]], name="nine of ten fits", **fill)
    mid = np.array([100 * t.efficiency for t in told])
    sure = along <= SURE * curve.most_chips
    bend = int(sure.sum()) - 1
    for part, dash, name in ((slice(0, bend + 1), "solid", "curve"), (slice(bend, None), "dot", "far from any point")):
        line = {"color": LINE, "width": 2, "dash": dash}
        figure.add_scatter(x=along[part], y=mid[part], mode="lines", line=line, name=name, hoverinfo="skip")


def _ends(told: list[Predicted], of: str):
    return [(t, getattr(t, of)) for t in told]


def _predicted(figure: go.Figure, predicted: tuple[Predicted, ...]) -> None:
    """What was asked of the curve, hollow, with its range."""
    if not predicted:
        return
    mid, low, high = (
        np.array([100 * p.efficiency * p.seconds / getattr(p, of) for p in predicted])
        for of in ("seconds", "high", "low")
    )
    figure.add_scatter(
        x=[p.chips for p in predicted],
        y=mid,
        error_y={"type": "data", "array": high - mid, "arrayminus": mid - low, "thickness": 1, "width": 4},
        mode="markers",
        name="asked",
        marker={"color": ASKED, "size": 11, "symbol": "circle-open", "line": {"width": 2}},
        hovertext=[
            f"<b>{fmt.count(p.chips, 'chip')}</b><br>{fmt.share(p.efficiency)} in {fmt.duration(p.seconds)} "
            f"({fmt.duration(p.low)} to {fmt.duration(p.high)})"
            for p in predicted
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )

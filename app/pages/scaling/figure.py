"""Efficiency over chips: points, and the curve with its range as far as it may be asked."""

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout
from app.whatif.scaling.answers import ScalingAnswer
from errors import format as fmt
from simulators.training.scaling import SURE

LINE, RANGE = theme.COLOURS["served"], "rgba(0,158,115,0.16)"
STEPS = 30


def efficiency(result: ScalingAnswer) -> go.Figure:
    """Per cent of the ideal. The curve ends at twice the most chips that were measured."""
    figure = go.Figure()
    chips = [r.point.chips for r in result.rows]
    far = chips[-1]
    if result.curve is not None:
        far = int(SURE * chips[-1])
        along = np.unique(np.round(np.geomspace(chips[0], far, STEPS))).astype(int)
        told = [result.curve.predicted(int(n), result.rows[0].point) for n in along]
        mid = [100 * t.efficiency for t in told]
        ends = [(100 * t.efficiency * t.seconds / t.high, 100 * t.efficiency * t.seconds / t.low) for t in told]
        outline = [low for low, _ in ends], [high for _, high in reversed(ends)]
        fill = {"fill": "toself", "fillcolor": RANGE, "line": {"width": 0}, "mode": "lines", "hoverinfo": "skip"}
        figure.add_scatter(x=[*along, *along[::-1]], y=[*outline[0], *outline[1]], **fill)
        figure.add_scatter(x=along, y=mid, mode="lines", line={"color": LINE, "width": 2}, hoverinfo="skip")
    figure.add_hline(y=100, line={"color": theme.GREY, "dash": "dash"})
    figure.add_scatter(
        x=chips,
        y=[100 * r.efficiency for r in result.rows],
        mode="markers",
        marker={"color": LINE, "size": 11},
        hovertext=[
            f"<b>{fmt.count(r.point.chips, 'chip')}</b><br>{fmt.share(r.efficiency)} in {fmt.duration(r.point.seconds)}"
            for r in result.rows
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    return layout(
        figure,
        height=380,
        xaxis={"title": {"text": "chips"}, "gridcolor": GRID, "fixedrange": True} | log_ticks(chips[0], far),
        yaxis={"title": {"text": "% of the ideal"}, "gridcolor": GRID, "fixedrange": True, "rangemode": "tozero"},
    )

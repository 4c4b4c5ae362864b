"""Hops before and after failures, side by side."""

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout
from errors import format as fmt
from simulators.topology.report import Report

STRIPES = {"fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.6)", "size": 6}
BEFORE, AFTER = theme.GREY, theme.COLOURS["infrastructure_recovery"]


def before_and_after(before: Report, after: Report) -> go.Figure:
    """Share of ordered pairs of living chips by hops: whole in grey, after the failures hatched."""
    figure = go.Figure()
    for report, name, colour, pattern in ((before, "before", BEFORE, ""), (after, "after", AFTER, "/")):
        counts = report.hops.counts[1:].astype(float)
        if not counts.sum():
            continue
        hops, shares = np.arange(1, len(counts) + 1), 100 * counts / counts.sum()
        figure.add_bar(
            x=hops,
            y=shares,
            name=f"{name}: mean {fmt.number(report.hops.mean, 5)}, at most {report.hops.diameter}",
            marker={"color": colour, "pattern": STRIPES | {"shape": pattern}},
            customdata=[f"{int(c):,}" for c in counts],
            hovertemplate=f"{name}, %{{x}} hops: %{{y:,.4r}} % of pairs (%{{customdata}})<extra></extra>",
        )
    return layout(
        figure,
        320,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        bargap=0.18,
        bargroupgap=0.05,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        xaxis={"title": {"text": "hops on a shortest path"}, "showgrid": False, "zeroline": False},
        yaxis={"title": {"text": "ordered pairs of chips (%)"}, "gridcolor": GRID, "zeroline": False},
    )

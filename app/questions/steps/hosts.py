"""Step durations per host: whether one of them is slower than the others."""

import numpy as np
import plotly.graph_objects as go

from analyzers.time.steps import StepsResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from errors import format as fmt

MAX_HOSTS = 40  # the slowest of more are shown; the median of all stays
DIFFERENT = 1.05  # slowest over fastest median; below it the figure would answer nothing
ROW_PX = 24


def hosts(result: StepsResult) -> go.Figure | None:
    """Median and 10th to 90th percentile of the step duration per host, slowest first; None where they do not differ.

    Ranks that wait for each other finish a step together, so equal durations say nothing about which is slow.
    """
    rows = result.hosts[result.hosts["dur_s"].notna()]
    spread = rows.groupby("host", observed=True)["dur_s"].quantile([0.1, 0.5, 0.9]).unstack().astype(float)
    if len(spread) < 2 or spread[0.5].max() <= DIFFERENT * spread[0.5].min():
        return None
    unit, factor = time_unit(float(np.median(spread[0.5])))
    middle = float(np.median(spread[0.5]))
    spread = spread.sort_values(0.5, ascending=False).head(MAX_HOSTS)
    low, mid, high = (spread[q].to_numpy() for q in (0.1, 0.5, 0.9))
    left, middle_x, right = low * factor, mid * factor, high * factor
    figure = go.Figure(
        go.Scatter(
            x=middle_x,
            y=[plain(h) for h in spread.index],
            mode="markers",
            marker={"size": 9, "color": theme.COLOURS["useful_maths"]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": right - middle_x,
                "arrayminus": middle_x - left,
                "color": theme.GREY,
                "thickness": 1.5,
                "width": 3,
            },
            hovertext=[
                f"<b>{plain(h)}</b><br>median {fmt.duration(m)}<br>10th to 90th percentile {fmt.duration(a)} to "
                f"{fmt.duration(b)}"
                for h, a, m, b in zip(spread.index, low, mid, high, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.add_vline(x=middle * factor, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    return layout(
        figure,
        len(spread) * ROW_PX + 64,
        xaxis={"title": {"text": f"step duration ({unit})"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "type": "category"},
    )

"""Models side by side: what padding adds to the work of each."""

from collections.abc import Mapping

import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from errors import format as fmt

ROW_PX = 20


def taxes(bands: Mapping[str, tuple[float, float]]) -> go.Figure:
    """A bar per model, most padding first: solid up to the tax at best, hatched from there to the tax as printed.

    `bands`: model name to (at best, as printed), as shares of the useful FLOPs.
    """
    names = sorted(bands, key=lambda name: -bands[name][1])
    low = [100 * bands[n][0] for n in names]
    high = [100 * bands[n][1] for n in names]
    labels = [plain(n) for n in names]
    hover = [
        f"<b>{plain(n)}</b><br>at best {fmt.share(a / 100)}<br>as printed {fmt.share(b / 100)}"
        for n, a, b in zip(names, low, high, strict=True)
    ]
    common = {"y": labels, "orientation": "h", "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>"}
    colour = theme.COLOURS["padding"]
    figure = go.Figure(
        [
            go.Bar(x=low, name="padding either way", marker_color=colour, **common),
            go.Bar(
                x=[b - a for a, b in zip(low, high, strict=True)],
                name="only as printed",
                **common,
                marker={
                    "color": colour,
                    "pattern": {"shape": "/", "fillmode": "overlay", "fgcolor": "#FFFFFF", "size": 6},
                },
                text=[fmt.share(b / 100) if b >= 0.05 else "none" for b in high],
                textposition="outside",
                cliponaxis=False,
            ),
        ]
    )
    return layout(
        figure,
        len(names) * ROW_PX + 90,
        barmode="stack",
        bargap=0.25,
        showlegend=True,
        legend={"traceorder": "normal", "orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        xaxis={
            "title": {"text": "more FLOPs than useful (%)"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, max([*high, 1.0]) * 1.12],
        },
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "type": "category"},
    )

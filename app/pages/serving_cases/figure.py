"""A worked case as pictures: ours by the published figures, and the line on which two machines cost the same."""

from collections.abc import Sequence
from math import log10

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.whatif.cases.base import Row
from errors import format as fmt

OURS, RANGE = theme.COLOURS["prefill"], "rgba(44,111,166,0.45)"
ROW_PX = 46
COARSE, FINE = (0.1, 0.2, 0.5, 1, 2, 5, 10), (0.1, 0.2, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 2, 5, 10)  # ticks
WIDE = 0.6  # powers of ten; where so many are drawn, fine ticks would stand on one another


def beside(rows: Sequence[Row]) -> go.Figure:
    """One line a quantity that was published: a mark at ours / published, its range, and the published value at 1."""
    told = [r for r in rows if r.ratio is not None]
    figure = go.Figure()
    for y, row in enumerate(told):
        if row.low is not None and row.high is not None:
            figure.add_shape(
                type="line",
                x0=row.low / row.stated,
                x1=row.high / row.stated,
                y0=y,
                y1=y,
                line={"color": RANGE, "width": 8},
            )
    hollow = ["circle-open" if r.basis == "modelled" else "circle" for r in told]
    figure.add_trace(
        go.Scatter(
            x=[r.ratio for r in told],
            y=list(range(len(told))),
            mode="markers+text",
            marker={"size": 13, "color": OURS, "symbol": hollow, "line": {"width": 2, "color": OURS}},
            text=[f"{fmt.number(r.computed)} {r.unit}, published {fmt.number(r.stated)}" for r in told],
            textposition="top center",
            textfont={"size": 12},
            hovertext=[f"<b>{plain(r.what)}</b><br>{plain(r.basis)}. {plain(r.note)}" for r in told],
            hovertemplate="%{hovertext}<extra></extra>",
            cliponaxis=False,
        )
    )
    figure.add_vline(x=1, line={"color": theme.GREY, "width": 1, "dash": "dot"})
    figure.add_annotation(x=0, y=-1.1, text="published", showarrow=False, font={"color": theme.GREY})
    edges = [v for r in told for v in (r.ratio, (r.low or r.computed) / r.stated, (r.high or r.computed) / r.stated)]
    low, high = log10(min([*edges, 0.8])), log10(max([*edges, 1.25]))
    ticks = [t for t in (COARSE if high - low > WIDE else FINE) if low - 0.1 <= log10(t) <= high + 0.1]
    return layout(
        figure,
        height=ROW_PX * len(told) + 110,
        xaxis={
            "title": {"text": "ours / published, logarithmic"},
            "type": "log",
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
            "tickvals": ticks,
            "ticktext": [f"{t:g}×" for t in ticks],
            "range": [low - 0.12 * (high - low), high + 0.12 * (high - low)],
        },
        yaxis={
            "tickvals": list(range(len(told))),
            "ticktext": [plain(r.what) for r in told],
            "automargin": True,
            "range": [len(told) - 0.4, -1.4],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
    )


def break_even(slopes: Sequence[tuple[str, float]], one: str, other: str, highest_usd: float = 5.0) -> go.Figure:
    """Prices at which two machines give tokens at the same cost: `other` = slope x `one`, a line for each slope.

    `slopes`: (by whose figures, price of `other` by price of `one`), the first drawn boldest. Below the line `other` is
    the cheaper.
    """
    figure = go.Figure()
    x = np.array([0.0, highest_usd])
    top = max(s for _, s in slopes) * highest_usd
    for i, (name, slope) in enumerate(slopes):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=slope * x,
                mode="lines",
                hoverinfo="skip",
                line={
                    "color": OURS if i == 0 else theme.GREY,
                    "width": 3 if i == 0 else 1.5,
                    "dash": "solid" if i == 0 else "dash",
                },
            )
        )
        figure.add_annotation(
            x=highest_usd,
            y=slope * highest_usd,
            text=f"{plain(name)}: {slope:.2f}×",
            xanchor="right",
            showarrow=False,
            yshift=12,
        )
    bold = slopes[0][1]
    for text, y in ((f"{one} is the cheaper", 0.92 * top), (f"{other} is the cheaper", 0.06 * top)):
        at = 0.25 * highest_usd if y > bold * 0.3 * highest_usd else 0.75 * highest_usd
        figure.add_annotation(x=at, y=y, text=plain(text), showarrow=False, font={"color": theme.GREY, "size": 14})
    return layout(
        figure,
        height=380,
        xaxis={
            "title": {"text": f"{one}, dollars per chip-hour"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, highest_usd],
            "fixedrange": True,
        },
        yaxis={
            "title": {"text": f"{other}, dollars per chip-hour"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top * 1.05],
            "fixedrange": True,
        },
    )

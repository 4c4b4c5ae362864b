"""The steady part of a load drawn: from ramp-up to drain."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyzers.serving.load import LoadResult
from app import theme
from app.figures.base import GRID, layout
from errors import format as fmt

HEIGHT = 460
COLOUR = theme.COLOURS["served"]
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def steady(result: LoadResult) -> go.Figure | None:
    """Requests in flight and output tokens/s over time, the steady window shaded; None without times."""
    along = result.along
    if not len(along):
        return None
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    found = result.steady
    counted = found.counted if found else "in flight"
    for row, column, words, colour in (
        (1, "in_flight", counted, theme.COLOURS["held"]),
        (1, "generating", "generating", theme.COLOURS["decode"]),
        (2, "output_tokens_per_s", "output tokens/s", COLOUR),
    ):
        figure.add_trace(
            go.Scatter(
                x=along["t_s"],
                y=along[column],
                mode="lines",
                name=words,
                line={"color": colour, "width": 1.8},
                hovertemplate=f"%{{x:,.4r}} s: %{{y:,.4r}} {words}<extra></extra>",
            ),
            row=row,
            col=1,
        )
    if found is not None:
        level = "steady" if found.is_steady else "no steady state"
        figure.add_vrect(
            x0=found.start_s, x1=found.end_s, fillcolor=COLOUR, opacity=0.13, line_width=0, row="all", col="all"
        )
        figure.add_vrect(
            x0=found.start_range_s[0],
            x1=max(found.start_range_s[1], found.start_range_s[0]),
            fillcolor=theme.GREY,
            opacity=0.35,
            line_width=0,
            row="all",
            col="all",
        )
        figure.add_annotation(
            x=(found.start_s + found.end_s) / 2,
            y=1,
            yref="y domain",
            yanchor="bottom",
            showarrow=False,
            text=f"{level}: {fmt.number(found.in_flight)} {counted}",
        )
        if found.is_steady:
            figure.add_trace(
                go.Scatter(
                    x=[found.start_s, found.end_s],
                    y=[found.output_tokens_per_s] * 2,
                    mode="lines",
                    hoverinfo="skip",
                    line={"color": theme.GREY, "dash": "dash", "width": 1.5},
                    showlegend=False,
                ),
                row=2,
                col=1,
            )
            figure.add_annotation(
                x=found.end_s,
                y=found.output_tokens_per_s,
                xref="x2",
                yref="y2",
                xanchor="right",
                yanchor="bottom",
                showarrow=False,
                text=f"{fmt.number(found.output_tokens_per_s)} tokens/s",
            )
    axes = {"gridcolor": GRID, "zeroline": False}
    layout(
        figure,
        HEIGHT,
        showlegend=True,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 52, "b": 8},
        legend=LEGEND | {"y": 1.08},
    )
    figure.update_xaxes(**axes)
    figure.update_yaxes(**axes, rangemode="tozero")
    figure.update_xaxes(title_text="time since the first arrival (s)", row=2, col=1)
    figure.update_yaxes(title_text="requests", row=1, col=1)
    figure.update_yaxes(title_text="output tokens/s", row=2, col=1)
    return figure


def shade(n: int) -> str:
    return COLOUR if n == 0 else theme.GREY

"""A serving plan as pictures: what each setup costs, and what two pools would bear."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from errors import format as fmt
from simulators.serving.disaggregated import Comparison
from simulators.serving.planner import Choice

BEST, OTHER = theme.COLOURS["useful_maths"], theme.COLOURS["below_roofline"]
SHOWN, ROW_PX = 12, 34


def costs(choices: Sequence[Choice]) -> go.Figure:
    """One bar a feasible setup, the best first: dollars an hour where all have a price, else chips. Hollow: reckoned,
    not simulated. Whiskers: over the efficiencies assumed."""
    shown = [c for c in choices if c.feasible][:SHOWN]
    priced = all(c.usd_per_hour is not None for c in shown)
    per_chip = [c.usd_per_hour / c.chips if priced else 1.0 for c in shown]
    values = [c.chips * p for c, p in zip(shown, per_chip, strict=True)]
    rows = list(range(len(shown)))
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=rows,
            x=values,
            marker={
                "color": [
                    BEST if i == 0 else OTHER if c.basis == "simulated" else "rgba(0,0,0,0)"
                    for i, c in enumerate(shown)
                ],
                "line": {"color": OTHER, "width": 1.5},
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "color": theme.GREY,
                "thickness": 1.5,
                "array": [((c.chips_high or c.chips) - c.chips) * p for c, p in zip(shown, per_chip, strict=True)],
                "arrayminus": [(c.chips - (c.chips_low or c.chips)) * p for c, p in zip(shown, per_chip, strict=True)],
            },
            hovertext=[f"<b>{plain(c.name)}</b>, {plain(c.basis)}<br>{plain(c.why)}" for c in shown],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    top = max([*values, *((c.chips_high or 0) * p for c, p in zip(shown, per_chip, strict=True))], default=1.0)
    for y, c, value, p in zip(rows, shown, values, per_chip, strict=True):
        label = f"{fmt.usd(value)} · {fmt.count(c.chips, 'chip')}" if priced else fmt.count(c.chips, "chip")
        figure.add_annotation(
            x=max(value, (c.chips_high or 0) * p),
            y=y,
            text=label,
            showarrow=False,
            xanchor="left",
            xshift=8,
            font={"size": 12},
        )
    return layout(
        figure,
        height=ROW_PX * len(shown) + 70,
        bargap=0.35,
        xaxis={
            "title": {"text": "dollars an hour" if priced else "chips"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top * 1.25],
            "fixedrange": True,
        },
        yaxis={
            "tickvals": rows,
            "ticktext": [plain(c.name) for c in shown],
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
        },
    )


def pools(found: Comparison) -> go.Figure:
    """Requests per second by way of splitting, and the line of one pool."""
    names = [name for name, _ in found.splits]
    rates = [bears.rate_per_s for _, bears in found.splits]
    figure = go.Figure(
        go.Bar(
            x=names,
            y=rates,
            marker={"color": theme.COLOURS["prefill"]},
            text=[f"{fmt.number(r)}/s" for r in rates],
            textposition="inside",
            insidetextanchor="middle",
            hoverinfo="skip",
        )
    )
    one = found.aggregate.rate_per_s
    figure.add_hline(
        y=one,
        line={"color": theme.GREY, "dash": "dash"},
        annotation_text=f"one pool: {fmt.number(one)}/s",
        annotation_position="top left",
    )
    return layout(
        figure,
        height=320,
        bargap=0.5,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        xaxis={"title": {"text": "prefill and decode replicas"}, "type": "category", "fixedrange": True},
        yaxis={
            "title": {"text": "requests per second within the objectives"},
            "gridcolor": GRID,
            "fixedrange": True,
            "range": [0, 1.2 * max([*rates, one, 1e-9])],
        },
    )

"""Hops and link loads drawn: how far pairs of chips are apart, systems overlaid, and how loaded links are."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.topologies.words import ROUTED, pairs
from errors import format as fmt
from simulators.topology.report import KindLoad, Report

SYSTEMS = tuple(theme.COLOURS[n] for n in ("served", "padding", "straggler_wait", "exposed_communication"))
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def histogram(reports: Sequence[Report]) -> go.Figure:
    """Share of ordered pairs by hops, one line for each system; its mean and its diameter are marked."""
    figure = go.Figure()
    top, farthest = 0.0, max([r.hops.diameter or 1 for r in reports] + [4])
    for number, report in enumerate(reports):
        counts = report.hops.counts[1:].astype(float)
        if not counts.sum():
            continue
        shares, hops = 100 * counts / counts.sum(), np.arange(1, len(counts) + 1)
        within = np.cumsum(shares)
        top = max(top, float(shares.max()))
        colour, name = SYSTEMS[number], report.spec.text
        figure.add_trace(_columns(hops, shares, counts, within, name, colour, number, len(reports)))
        _marks(figure, report, f"{plain(name)}: " if len(reports) > 1 else "", colour, number)
    return layout(
        figure,
        380,
        bargap=0.12,
        barmode="overlay",
        hovermode="closest",
        xaxis={
            "title": {"text": "hops on a shortest path"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, 1.16 * farthest],
            "dtick": max(1, -(-farthest // 16)),
        },
        yaxis={
            "title": {"text": "ordered pairs of chips (%)"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top * (1.12 + 0.09 * len(reports))],
            "tickvals": list(range(0, 101, 20)) if top > 60 else None,
        },
    )


def _columns(hops, shares, counts, within, name: str, colour: str, number: int, systems: int) -> go.Bar | go.Scatter:
    hover = [
        f"<b>{plain(name)}</b><br>{h} hops: {fmt.share(s / 100)} of pairs ({c:,.0f})<br>within {h} hops: "
        f"{fmt.share(w / 100)}"
        for h, s, c, w in zip(hops, shares, counts, within, strict=True)
    ]
    shared = {
        "x": hops,
        "y": shares,
        "name": plain(name),
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    if systems == 1:
        return go.Bar(**shared, marker={"color": colour})
    return go.Scatter(
        **shared,
        mode="lines+markers",
        line={"color": colour, "width": 2.5},
        marker={"symbol": SYMBOLS[number], "size": 8},
    )


def _marks(figure: go.Figure, report: Report, name: str, colour: str, number: int) -> None:
    """A bar from the mean to the diameter above the curves, with both numbers; a dotted line down from the mean."""
    mean, diameter = report.hops.mean, report.hops.diameter
    y = 0.97 - 0.07 * number
    line = {"color": colour, "width": 1.5}
    figure.add_shape(type="line", x0=mean, x1=mean, yref="paper", y0=0, y1=y, line=line | {"dash": "dot"})
    figure.add_shape(type="line", x0=mean, x1=diameter, yref="paper", y0=y, y1=y, line=line | {"width": 3})
    figure.add_shape(type="line", x0=diameter, x1=diameter, yref="paper", y0=y - 0.02, y1=y + 0.02, line=line)
    figure.add_annotation(
        x=mean,
        yref="paper",
        y=y,
        yanchor="middle",
        xanchor="right",
        showarrow=False,
        font_size=12,
        text=f"{name}mean {fmt.number(mean)} ",
    )
    figure.add_annotation(
        x=diameter,
        yref="paper",
        y=y,
        yanchor="middle",
        xanchor="left",
        showarrow=False,
        text=f" diameter {diameter}",
        font_size=12,
    )


def link_loads(report: Report) -> go.Figure:
    """Least, mean and greatest load of each kind of link under all-to-all, by routing; the cut's bound drawn in."""
    figure = go.Figure()
    routings = list(dict.fromkeys(row.routing for row in report.loads))
    for number, routing in enumerate(routings):
        rows = [row for row in report.loads if row.routing == routing]
        figure.add_trace(_ranges(rows, routing, number))
    top = max([row.most for row in report.loads] + [report.cut_bound or 0])
    if report.cut_bound:
        figure.add_vline(x=report.cut_bound, line={"color": theme.GREY, "width": 1.5, "dash": "dash"})
        text = f"no routing's busiest link below {pairs(report.cut_bound)} "
        figure.add_annotation(
            x=report.cut_bound,
            yref="paper",
            y=1,
            yanchor="bottom",
            xanchor="right",
            font_size=12,
            showarrow=False,
            text=text,
        )
    kinds = len({row.kind for row in report.loads})
    return layout(
        figure,
        130 + 44 * kinds * len(routings),
        showlegend=len(routings) > 1,
        legend={**LEGEND, "y": 1.12},
        margin={"l": 8, "r": 16, "t": 26 + 24 * (len(routings) > 1), "b": 8},
        scattermode="group",
        scattergap=0.3,
        xaxis={
            "title": {"text": "ordered pairs of chips on one direction of a link"},
            "range": [0, top * 1.18],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={"autorange": "reversed"},
    )


def _ranges(rows: Sequence[KindLoad], routing: str, number: int) -> go.Scatter:
    mean = np.array([row.mean for row in rows])
    return go.Scatter(
        x=mean,
        y=[row.kind for row in rows],
        mode="markers+text",
        name=ROUTED[routing],
        orientation="h",
        marker={"size": 12, "color": SYSTEMS[number], "symbol": SYMBOLS[number]},
        textposition="top center",
        text=[_told(row) for row in rows],
        cliponaxis=False,
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [row.most - row.mean for row in rows],
            "arrayminus": [row.mean - row.least for row in rows],
            "color": SYSTEMS[number],
            "thickness": 3,
            "width": 7,
        },
        hovertext=[
            f"<b>{row.kind}</b>, {row.links:,} links, {ROUTED[routing]}<br>least {row.least:,.1f}<br>mean "
            f"{row.mean:,.1f}<br>busiest {row.most:,.1f} ordered pairs"
            for row in rows
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _told(row: KindLoad) -> str:
    """What stands at the mark of a kind of link, which is its mean."""
    return f"{pairs(row.most)} each" if row.least == row.most else f"mean {pairs(row.mean)}, at most {pairs(row.most)}"

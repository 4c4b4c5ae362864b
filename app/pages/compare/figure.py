"""A or B: every difference with its interval on one axis of ratios, and both distributions of a latency."""

import numpy as np
import plotly.graph_objects as go

from analyzers.serving.ab import AbResult
from analyzers.serving.latency.anatomy import cumulative
from analyzers.serving.served import Served
from app import theme
from app.comparing.words import NAMES, how_much, name, value
from app.figures.axes import PLAIN, log_axis
from app.figures.base import layout, plain
from app.figures.latencies import COLOURS
from errors import format as fmt

BETTER, WORSE, OPEN = theme.COLOURS["served"], theme.COLOURS["lost_work"], theme.GREY


def differences(result: AbResult) -> go.Figure | None:
    """B over A for every figure, with its 95 % interval; 1 is no difference. Hollow: chance is enough to explain it."""
    rows = [d for d in result.differences if d.ratio is not None and d.ratio > 0]
    if not rows:
        return None
    figure = go.Figure()
    kinds = (
        ("B is better", [d for d in rows if d.better == "B"], BETTER, "circle"),
        ("A is better", [d for d in rows if d.better == "A"], WORSE, "diamond"),
        (
            "no difference can be told",
            [d for d in rows if not d.clear and d.ratio_low is not None],
            OPEN,
            "circle-open",
        ),
        ("no interval", [d for d in rows if d.ratio_low is None], OPEN, "x-thin-open"),
    )
    for title, some, colour, symbol in kinds:
        if not some:
            continue
        ratio = np.array([d.ratio for d in some])
        low, high = (np.array([max(getattr(d, n) or d.ratio, 1e-3) for d in some]) for n in ("ratio_low", "ratio_high"))
        figure.add_trace(
            go.Scatter(
                x=ratio,
                y=[name(d) for d in some],
                mode="markers",
                name=title,
                marker={"size": 11, "color": colour, "symbol": symbol, "line": {"width": 2, "color": colour}},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "visible": title != "no interval",
                    "array": high - ratio,
                    "arrayminus": ratio - low,
                    "color": colour,
                    "thickness": 2,
                    "width": 5,
                },
                hovertext=[
                    f"<b>{name(d)}</b><br>A {value(d.metric, d.a)}, B {value(d.metric, d.b)}<br>B's is {how_much(d)}"
                    + (f"<br>no interval: {plain(d.why)}" if d.why else "")
                    for d in some
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    figure.add_vline(x=1, line_color=theme.GREY, line_width=1.5, line_dash="dash")
    reach = [v for d in rows for v in (d.ratio, d.ratio_low, d.ratio_high) if v is not None and v > 1e-3]
    low, high = min([*reach, 0.9]), max([*reach, 1.1])
    ticks = [
        t
        for t in (0.1, 0.2, 0.25, 0.33, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20)
        if low / 1.2 < t < high * 1.2
    ]
    return layout(
        figure,
        110 + 30 * len(rows),
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={
            "title": {"text": "B over A (1: no difference)"},
            "type": "log",
            "tickvals": ticks,
            "ticktext": [fmt.number(t, 2) for t in ticks],
            "range": [np.log10(low / 1.08), np.log10(high * 1.08)],
            **PLAIN,
        },
        yaxis={
            "autorange": "reversed",
            "automargin": True,
            "type": "category",
            "showgrid": False,
            "categoryorder": "array",
            "categoryarray": [name(d) for d in rows],
        },
    )


def distributions(a: Served, b: Served, metric: str, names: tuple[str, str]) -> go.Figure | None:
    """Both cumulative distributions of one latency: A dotted grey, B in the colour of the latency."""
    tables = [cumulative(of.timed[metric].to_numpy(dtype=float)) for of in (a, b)]
    tables = [t[t["value"] > 0] for t in tables]
    if not all(len(t) for t in tables):
        return None
    figure = go.Figure()
    for side, table, title, line in zip(
        "AB",
        tables,
        names,
        ({"color": theme.GREY, "width": 2.5, "dash": "dot"}, {"color": COLOURS[metric], "width": 2.5}),
        strict=True,
    ):
        figure.add_trace(
            go.Scatter(
                x=table["value"],
                y=table["share"] * 100,
                mode="lines",
                name=f"{side}: {plain(title)}",
                line={**line, "shape": "hv"},
                hovertext=[f"{side} within {fmt.duration(v)}" for v in table["value"]],
                hovertemplate="%{y:.3~g} %: %{hovertext}<extra></extra>",
            )
        )
    low = min(float(t.loc[t["share"] >= 0.005, "value"].min()) for t in tables)
    high = max(float(t["value"].max()) for t in tables)
    return layout(
        figure,
        380,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": NAMES[metric]}, **log_axis(low, high)},
        yaxis={"title": {"text": "requests (%)"}, "range": [0, 101], **PLAIN},
    )

"""An operation's neighbourhood: what feeds it to the left, who uses it to the right, each box with what it makes."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.program.graph import GraphResult
from app import theme
from app.figures.base import layout, plain
from app.figures.op_categories import look
from errors import format as fmt

BOX = 0.42  # half the width of a box, of the distance between columns
HALF = 0.36  # half its height, of the distance between boxes
ROW_PX = 46
LEAST_PX = 96
LEGEND_PX = 40
CURVE = 8  # points of a bend
LETTERS = 168  # of a line of all boxes across the page
WIRE = "rgba(128,128,128,0.55)"


def graph(result: GraphResult) -> go.Figure:
    """Boxes in columns. A line from box to box is the value that the first one says below its name."""
    nodes = result.nodes
    columns = int(nodes["row"].max()) + 1
    letters = max(LETTERS // columns, 12)
    figure = go.Figure()
    _wires(figure, result)
    colours = [look(c).colour for c in nodes["category"]]
    for x, y, colour, op in zip(nodes["row"], nodes["x"], colours, nodes["op"], strict=True):
        mine = op == result.op
        figure.add_shape(
            type="rect",
            x0=x - BOX,
            x1=x + BOX,
            y0=y - HALF,
            y1=y + HALF,
            fillcolor=colour,
            line={"width": 3 if mine else 0, "color": theme.GREY},
            layer="below",
        )
    figure.add_scatter(
        x=nodes["row"],
        y=nodes["x"],
        mode="markers+text",
        marker={"size": 26, "symbol": "square", "opacity": 0},
        text=[_label(r, letters) for r in nodes.to_dict("records")],
        textfont={"size": 11, "color": [theme.text_on(c) for c in colours]},
        customdata=nodes["op"],
        hovertext=[hover(r) for r in nodes.to_dict("records")],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    for category in dict.fromkeys(nodes["category"]):
        marker = {"size": 10, "symbol": "square", "color": look(category).colour}
        figure.add_scatter(
            x=[None], y=[None], mode="markers", marker=marker, name=plain(category), showlegend=True, hoverinfo="skip"
        )
    span = float(nodes["x"].max() - nodes["x"].min())
    edge = {"visible": False, "fixedrange": True}
    return layout(
        figure,
        max(int((span + 1.4) * ROW_PX), LEAST_PX) + LEGEND_PX,
        xaxis={"range": [-0.55, columns - 0.45], **edge},
        yaxis={"range": [float(nodes["x"].max()) + 0.7, float(nodes["x"].min()) - 0.7], **edge},
        clickmode="event+select",
        showlegend=True,
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "itemclick": False, "itemdoubleclick": False},
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
    )


def _wires(figure: go.Figure, result: GraphResult) -> None:
    """The lines, and in the middle of each a place to point at."""
    place = {
        op: (row, x) for op, row, x in zip(result.nodes["op"], result.nodes["row"], result.nodes["x"], strict=True)
    }
    xs: list[float | None] = []
    ys: list[float | None] = []
    middle: list[tuple[float, float, str]] = []
    for edge in result.edges.to_dict("records"):
        path = list(_curve([place[edge["maker"]], *edge["corners"], place[edge["user"]]]))
        xs += [p[0] for p in path] + [None]
        ys += [p[1] for p in path] + [None]
        middle.append((*path[len(path) // 2], _said(edge)))
    figure.add_scatter(x=xs, y=ys, mode="lines", line={"color": WIRE, "width": 1.4}, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=[m[0] for m in middle],
        y=[m[1] for m in middle],
        mode="markers",
        marker={"size": 6, "color": WIRE, "line": {"width": 0}},
        hovertext=[m[2] for m in middle],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=[""] * len(middle),
        showlegend=False,
    )


def _curve(stops: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """From the right side of the first box to the left side of the last, level at each stop."""
    last = len(stops) - 1
    t = np.linspace(0, 1, CURVE)
    ease = t * t * (3 - 2 * t)
    for i, ((x0, y0), (x1, y1)) in enumerate(zip(stops, stops[1:], strict=False)):
        a, b = x0 + BOX * (i == 0), x1 - BOX * (i + 1 == last)
        yield from zip(a + (b - a) * t, y0 + (y1 - y0) * ease, strict=True)


def _said(edge: dict) -> str:
    made = f"{plain(edge['maker'])} → {plain(edge['user'])}, operand {edge['operand']}"
    return f"<b>{plain(_cut(edge['shape'], 120))}</b><br>{fmt.size(_known(edge['bytes']))}<br>{made}"


def _label(row: dict, letters: int) -> str:
    """Name and time, and below it what the operation makes."""
    name = row["op"]
    if pd.notna(row["seconds"]):
        name = f"{_cut(name, letters - 11)} · {fmt.duration(row['seconds'])}"
    size = "" if pd.isna(row["result_bytes"]) else f" · {fmt.size(float(row['result_bytes']))}"
    made = _cut(row["shape"], letters - len(size) + 3) + size
    return f"<b>{plain(_cut(name, letters))}</b><br><span style='font-size:9px'>{plain(made)}</span>"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 1)] + "…"


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def hover(row: dict) -> str:
    """What is known of an operation, line by line."""
    lines = [f"<b>{plain(row['op'])}</b>, {plain(row['opcode'])}", plain(_cut(row["shape"], 160))]
    if row["fusion_kind"]:
        lines[0] += f" {plain(row['fusion_kind'])}"
    if pd.notna(row["flops"]) or pd.notna(row["bytes"]):
        lines.append(f"{fmt.flops(_known(row['flops']))}, {fmt.size(_known(row['bytes']))} moved, one execution")
    if pd.notna(row["count"]):
        lines.append(f"{fmt.count(int(row['count']), 'execution')} in one run of the program")
    if pd.notna(row["trip_count"]):
        lines.append(f"its body runs {fmt.count(int(row['trip_count']), 'time')}")
    if pd.notna(row["seconds"]):
        lines.append(f"{fmt.duration(row['seconds'])}, all devices and captures added")
    for text in (row["op_name"], row["source"]):
        if text:
            lines.append(plain(_cut(text, 140)))
    left = [f"{row[f'{side}_left']:,} {side} not drawn" for side in ("operands", "users") if row[f"{side}_left"]]
    return "<br>".join([*lines, *([", ".join(left)] if left else [])])

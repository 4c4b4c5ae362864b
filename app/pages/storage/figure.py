"""Time per batch over readers or the size of files, with the step's time as the line that it must stay below; and
published rates over the size of files, measured and modelled."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_axis, log_ticks, size_unit
from app.figures.base import GRID, layout, plain
from errors import format as fmt
from simulators.storage.waiting import NOBODY

BATCH, WAIT = theme.COLOURS["input_wait"], "rgba(142,107,191,0.18)"
LEAST_S = 1e-9  # that an axis shows
HUES = ("served", "padding", "exposed_communication", "straggler_wait", "input_wait")
X = {"readers": "readers a host"}


def batches(rows: Sequence[Mapping[str, float]], over: str, step_s: float, now: float) -> go.Figure:
    """Over `over`: a batch's time; the band above a step is what chips wait. Filled marks: somebody waits; `now`: what
    is asked about."""
    size, byte = size_unit(max(row[over] for row in rows)) if over == "file_bytes" else ("", 1.0)
    x, batch = [row[over] / byte for row in rows], [max(row["batch_s"], LEAST_S) for row in rows]
    figure = go.Figure()
    band = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(y=[step_s] * len(x), **band)
    figure.add_scatter(y=[step_s + row["wait_s"] for row in rows], fill="tonexty", fillcolor=WAIT, **band)
    figure.add_hline(y=step_s, line={"color": theme.GREY, "dash": "dash"})
    figure.add_scatter(
        x=x,
        y=batch,
        mode="lines+markers",
        line={"color": BATCH, "width": 2},
        marker={
            "size": [17 if row[over] == now else 10 for row in rows],
            "symbol": ["circle" if _waits(row, step_s) else "circle-open" for row in rows],
            "line": {"width": 2},
            "opacity": 1,
        },
        hovertext=[_told(row, over, step_s) for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    _label(figure, f"a step: {fmt.duration(step_s)}", step_s, x=0.01, xref="paper", yanchor="top")
    _label(figure, "a batch", batch[-1], x=math.log10(x[-1]), xref="x", yanchor="middle", xshift=12)
    most = max(rows, key=lambda row: row["wait_s"])
    if _waits(most, step_s):
        middle = math.sqrt(step_s * (step_s + most["wait_s"]))
        _label(figure, "wait", middle, x=math.log10(most[over] / byte), xref="x", yanchor="middle", xshift=12)
    times = [*batch, step_s, *(step_s + row["wait_s"] for row in rows)]
    return layout(
        figure,
        height=400,
        margin={"l": 8, "r": 70, "t": 8, "b": 8},
        xaxis=_axis(f"a file, {size}" if size else X[over]) | log_ticks(min(x), max(x)),
        yaxis=_axis("time") | log_axis(min(times), max(times)),
    )


def _label(figure: go.Figure, text: str, y: float, **place: Any) -> None:
    """On a logarithmic axis a note takes the exponent."""
    figure.add_annotation(text=text, y=math.log10(y), showarrow=False, xanchor="left", **place)


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "gridcolor": GRID, "fixedrange": True}


def _waits(row: Mapping[str, float], step_s: float) -> bool:
    return row["wait_s"] > NOBODY * step_s


def _told(row: Mapping[str, float], over: str, step_s: float) -> str:
    what = fmt.size(row[over]) + " a file" if over == "file_bytes" else fmt.count(int(row[over]), "reader")
    waits = f"a step waits {fmt.duration(row['wait_s'])}" if _waits(row, step_s) else "nobody waits"
    return f"<b>{what}</b><br>a batch takes {fmt.duration(row['batch_s'])}<br>{waits}"


def readings(cases: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Published rates over the size of files: marks are measured, lines what a latency and a bandwidth make of them."""
    figure = go.Figure()
    shown = [case for case in cases if len({row["file_bytes"] for row in case["rows"]}) > 1]
    for hue, case in zip(HUES, shown, strict=False):
        rows, name = case["rows"], plain(case["title"])
        x, colour = [row["file_bytes"] / 1e6 for row in rows], theme.COLOURS[hue]
        same = {"legendgroup": name, "x": x}
        line = {"color": colour, "width": 2, "dash": "solid" if case["explained"] else "dot"}
        modelled = [row["modelled_bytes_per_s"] / 1e9 for row in rows]
        figure.add_scatter(y=modelled, mode="lines", line=line, name=name, hoverinfo="skip", **same)
        figure.add_scatter(
            y=[row["measured_bytes_per_s"] / 1e9 for row in rows],
            mode="markers",
            marker={"color": colour, "size": 10},
            hovertext=[_reading(name, row) for row in rows],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
            **same,
        )
    every = [row for case in shown for row in case["rows"]]
    sizes, rates = [row["file_bytes"] / 1e6 for row in every], [row["measured_bytes_per_s"] / 1e9 for row in every]
    return layout(
        figure,
        height=400,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={"title": {"text": "a file, MB"}, "gridcolor": GRID, "fixedrange": True}
        | log_ticks(min(sizes), max(sizes)),
        yaxis={"title": {"text": "GB/s, all readers"}, "gridcolor": GRID, "fixedrange": True}
        | log_ticks(min(rates), max(rates)),
    )


def _reading(name: str, row: Mapping[str, Any]) -> str:
    rates = f"{fmt.size(row['measured_bytes_per_s'])}/s measured, {fmt.size(row['modelled_bytes_per_s'])}/s modelled"
    return f"<b>{name}</b><br>{fmt.size(row['file_bytes'])} a file<br>{rates}"

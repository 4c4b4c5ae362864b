"""Memory over the program's events with its peak, and under it the largest buffers from where to where they live."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyzers.program.heap import HeapResult
from app import theme
from app.figures.axes import size_unit
from app.figures.base import GRID, layout, plain, reduced
from errors import format as fmt

BARS = 30
ROW_PX = 17
AREA_PX = 300
AXIS_PX = 90
LIVE, ALWAYS = theme.COLOURS["useful_maths"], theme.COLOURS["below_roofline"]
AT_PEAK, OTHER = theme.COLOURS["useful_maths"], theme.GREY
LETTERS = 40


def over_program(result: HeapResult) -> go.Figure | None:
    """None where no trace tells when buffers live."""
    if result.peak_event is None:
        return None
    rows = _drawn(result)
    height = AREA_PX + ROW_PX * len(rows) + AXIS_PX
    area = AREA_PX / (AREA_PX + ROW_PX * len(rows))
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.04, row_heights=[area, 1 - area])
    _area(figure, result)
    _bars(figure, rows)
    figure.add_vline(x=result.peak_event, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    layout(figure, height, margin={"l": 8, "r": 12, "t": 34, "b": 8}, showlegend=True)
    figure.update_layout(
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}, bargap=0.25
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, fixedrange=True, range=[0, result.events])
    title = {"text": "event of the compiler's trace: values begin and end to be needed, in the program's order"}
    figure.update_xaxes(title=title, row=2, col=1)
    names = [plain(_cut(n)) for n in rows["name"]]
    ticks = {"tickvals": list(range(len(rows))), "ticktext": names, "automargin": True, "showgrid": False}
    edges = [len(rows) - 0.5, -0.5]
    figure.update_yaxes(**ticks, range=edges, fixedrange=True, tickfont={"size": 11}, row=2, col=1)
    return figure


def _drawn(result: HeapResult):
    """The largest buffers that come and go, in the order in which they begin."""
    rows = result.buffers[result.buffers["first_event"].notna()]
    return rows.nlargest(BARS, "bytes", keep="first").sort_values(["first_event", "bytes"], ascending=[True, False])


def _area(figure: go.Figure, result: HeapResult) -> None:
    unit, factor = size_unit(float(result.peak_bytes))
    kept = reduced(result.curve.astype(float))
    ops = [result.event_ops[n - 1] if n else None for n in kept]
    held = result.curve[kept] / factor
    hover = [
        f"<b>after event {n:,}</b>{f', {plain(op)}' if op else ''}<br>{fmt.size(float(result.curve[n]))}"
        for n, op in zip(kept, ops, strict=True)
    ]
    base = np.full(len(kept), result.always_bytes / factor)
    figure.add_scatter(
        x=kept, y=base, mode="lines", line={"width": 0, "shape": "hv"}, fill="tozeroy", fillcolor=ALWAYS,
        name="held all the time", hoverinfo="skip", row=1, col=1,
    )  # fmt: skip
    figure.add_scatter(
        x=kept, y=held, mode="lines", line={"width": 1.5, "shape": "hv", "color": LIVE}, fill="tonexty", fillcolor=LIVE,
        name="temporaries alive", hovertext=hover, hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
    )  # fmt: skip
    peak = result.peak_bytes / factor
    above: dict[str, Any] = {"row": 1, "col": 1}
    figure.add_hline(y=peak, line_dash="dot", line_color=theme.GREY, line_width=1.5, **above)
    left = (result.peak_event or 0) > result.events / 2
    figure.add_annotation(
        x=result.peak_event,
        y=peak,
        xanchor="right" if left else "left",
        yanchor="bottom",
        showarrow=False,
        text=f"peak {fmt.size(result.peak_bytes)}"
        + (f", {fmt.size(result.room_bytes)} room" if result.room_bytes else ""),
        row=1,
        col=1,
    )
    axis = {"title": {"text": f"held by one device ({unit})"}, "gridcolor": GRID, "zeroline": False}
    figure.update_yaxes(**axis, range=[0, peak * 1.14], fixedrange=True, row=1, col=1)


def _bars(figure: go.Figure, rows) -> None:
    places = np.arange(len(rows))
    for alive, name, colour in ((True, "at the peak", AT_PEAK), (False, "not at the peak", OTHER)):
        mine = rows["at_peak"].to_numpy(dtype=bool) == alive
        told = rows[mine]
        if not len(told):
            continue
        first = told["first_event"].to_numpy(dtype=float)
        figure.add_bar(
            orientation="h",
            y=places[mine],
            base=first,
            x=told["last_event"].to_numpy(dtype=float) + 1 - first,
            name=f"buffer {name}",
            marker={"color": colour, "line": {"width": 0}, "opacity": 1 if alive else 0.55},
            hovertext=[hover(r) for r in told.to_dict("records")],
            hovertemplate="%{hovertext}<extra></extra>",
            row=2,
            col=1,
        )


def hover(row: dict) -> str:
    """What is known of a buffer."""
    lines = [
        f"<b>{plain(_cut(row['name'], 110))}</b>",
        f"{fmt.size(float(row['bytes']))}, events {int(row['first_event']):,} to {int(row['last_event']):,}",
    ]
    for key in ("op", "shape", "source"):
        if row[key]:
            lines.append(plain(_cut(row[key], 120)))
    return "<br>".join(lines)


def _cut(text: object, most: int = LETTERS) -> str:
    text = str(text)
    return text if len(text) <= most else "…" + text[-(most - 1) :]

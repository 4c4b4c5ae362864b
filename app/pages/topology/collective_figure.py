"""Collectives drawn: time over the size of the array, for up to four systems."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.pages.topology.hops_figure import SYMBOLS, SYSTEMS
from errors import format as fmt
from simulators.collectives import Collective

HEIGHT = 460
POINTS = 121
LEAST_BYTES, MOST_BYTES = 2.0**10, 2.0**36
LABEL_PX = 19  # between two labels at the right edge
_TINTS = tuple(f"rgba({int(c[1:3], 16)},{int(c[3:5], 16)},{int(c[5:7], 16)},0.18)" for c in SYSTEMS)


def over_size(results: Sequence[Collective]) -> go.Figure:
    """One line for each system with its band; of the first both asymptotes and where they cross."""
    figure = go.Figure()
    asked = results[0].bytes
    sizes = np.geomspace(min(LEAST_BYTES, asked / 4), max(MOST_BYTES, asked * 4), POINTS)
    drawn = []
    for number, result in enumerate(results):
        value = _line(figure, result, sizes, number)
        drawn.append(value[-1])
    low = min(float(r.low.seconds(sizes[0] / r.shards)) for r in results)
    high = max(float(r.high.seconds(sizes[-1] / r.shards)) for r in results)
    span = (math.log10(max(low, 1e-9) / 5), math.log10(max(high, 1e-8) * 2))
    _asymptotes(figure, results[0], sizes, 10 ** span[0])
    for number, result in enumerate(results):
        _crossover(figure, result, number, named=number == 0)
        _asked(figure, result, number)
    _labels(figure, results, drawn, span)
    return layout(
        figure,
        HEIGHT,
        margin={"l": 8, "r": 168, "t": 12, "b": 8},
        dragmode="zoom",
        hovermode="closest",
        xaxis=_decades("array (bytes, all of it)", (math.log10(sizes[0]), math.log10(sizes[-1])), fmt.size),
        yaxis=_decades("time", span, fmt.duration),
    )


def _line(figure: go.Figure, result: Collective, sizes: np.ndarray, number: int) -> np.ndarray:
    """The band, then the line; gives the line's seconds."""
    moved = sizes / result.shards
    low, value, high = (np.maximum(c.seconds(moved), 1e-12) for c in (result.low, result.cost, result.high))
    figure.add_scatter(
        x=np.concatenate((sizes, sizes[::-1])),
        y=np.concatenate((high, low[::-1])),
        fill="toself",
        mode="lines",
        fillcolor=_TINTS[number],
        line={"width": 0},
        hoverinfo="skip",
        name=f"{plain(result.spec)} band",
    )
    figure.add_scatter(
        x=sizes,
        y=value,
        mode="lines",
        name=plain(result.spec),
        line={"color": SYSTEMS[number], "width": 2.5},
        hovertext=[
            f"<b>{plain(result.spec)}</b><br>{fmt.size(s)}: {fmt.duration(v)}<br>{fmt.duration(a)} to "
            f"{fmt.duration(b)}, bound by {result.cost.bound(m)}"
            for s, m, a, v, b in zip(sizes, moved, low, value, high, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    return value


def _asymptotes(figure: go.Figure, result: Collective, sizes: np.ndarray, least_s: float) -> None:
    """The hops alone, dotted, and the bytes alone, dashed: each ends a little beyond where they cross."""
    hops, each = result.cost.latency_s, result.cost.seconds_per_byte / result.shards
    if not hops or not each:
        return
    cross = hops / each
    for x, y, dash, name in (
        (sizes[sizes <= cross * 300], lambda s: np.full(len(s), hops), "dot", "hops alone"),
        (sizes[sizes * each >= least_s * 1.2], lambda s: s * each, "dash", "bytes alone"),
    ):
        if len(x):
            figure.add_scatter(
                x=x,
                y=y(x),
                mode="lines",
                name=name,
                hovertemplate=f"{name}<extra></extra>",
                line={"color": theme.GREY, "width": 1.3, "dash": dash},
            )
            end = -1 if dash == "dot" else 0
            figure.add_annotation(
                x=math.log10(x[end]),
                y=math.log10(y(x)[end]),
                text=name,
                showarrow=False,
                font_size=11,
                xanchor="right",
                yanchor="top" if end else "bottom",
            )


def _crossover(figure: go.Figure, result: Collective, number: int, named: bool) -> None:
    x = result.crossover_bytes
    if not x or not result.cost.latency_s:
        return
    y = result.cost.latency_s
    text = f"{plain(result.spec)}: from {fmt.size(x)} on its bytes take longer than its hops"
    figure.add_scatter(
        x=[x],
        y=[y],
        mode="markers",
        name="crossover",
        hovertext=[text],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "color": SYSTEMS[number],
            "symbol": "x-thin-open",
            "size": 11,
            "line": {"width": 2.5, "color": SYSTEMS[number]},
        },
    )
    if named:
        figure.add_annotation(
            x=math.log10(x),
            y=math.log10(y),
            text=f"crossover {fmt.size(x)}",
            showarrow=True,
            arrowhead=0,
            arrowcolor=theme.GREY,
            ax=28,
            ay=44,
            font_size=12,
            xanchor="left",
        )


def _asked(figure: go.Figure, result: Collective, number: int) -> None:
    """The size that is asked about."""
    figure.add_scatter(
        x=[result.bytes],
        y=[max(result.seconds, 1e-12)],
        mode="markers",
        name="asked",
        marker={"color": SYSTEMS[number], "symbol": SYMBOLS[number], "size": 12},
        hovertext=[f"<b>{plain(result.spec)}</b><br>{fmt.size(result.bytes)}: {fmt.duration(result.seconds)}"],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _labels(figure: go.Figure, results: Sequence[Collective], ends: Sequence[float], span: tuple[float, float]) -> None:
    """Names at the right edge, pushed apart where lines end close together."""
    step = LABEL_PX * (span[1] - span[0]) / (HEIGHT - 60)
    at = -math.inf
    for number in sorted(range(len(results)), key=lambda n: ends[n]):
        at = max(math.log10(max(ends[number], 1e-12)), at + step)
        figure.add_annotation(
            xref="paper",
            x=1,
            xanchor="left",
            yref="y",
            y=at,
            showarrow=False,
            font_size=12,
            xshift=4,
            text=f'<span style="color:{SYSTEMS[number]}">━</span> {plain(_short(results[number].spec))}',
        )


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"


def _decades(title: str, span: tuple[float, float], told) -> dict:
    """A logarithmic axis with a tick at every, second or third power of ten."""
    powers = range(math.ceil(span[0]), math.floor(span[1]) + 1)
    ticks = [10.0**p for p in powers][:: max(1, len(powers) // 8)]
    return {
        "type": "log",
        "range": list(span),
        "tickvals": ticks,
        "ticktext": [_tick(told(t)) for t in ticks],
        "gridcolor": GRID,
        "zeroline": False,
        "title": {"text": title},
    }


def _tick(text: str) -> str:
    """`1.00 GB` as `1 GB`: the digits behind say nothing at a power of ten."""
    number, _, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"

"""Published runs as a scatter: how well each used its chips, over the number of chips or the size of the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from analyzers.flops.published import HARDWARE, Reviewed
from app import theme
from app.figures.base import GRID, layout, plain
from errors import format as fmt

HEIGHT = 480
SYMBOLS = {
    "bf16": "circle",
    "fp16": "triangle-up",
    "fp8": "square",
    "int8": "triangle-down",
    "fp4": "diamond",
    None: "cross",
}
SIZE, OWN_SIZE = 9, 17


@dataclass(frozen=True, kw_only=True)
class Own:
    """The user's run among them: how its FLOPs are counted and where it lies (None: not known)."""

    name: str
    convention: str
    chip: str | None
    precision: str | None
    chips: float | None
    parameters: float | None
    utilisation: float | None
    bf16_utilisation: float | None
    flops_per_s_per_chip: float | None


def y_of(row: Reviewed | Own, measure: str) -> float | None:
    """The height of a point. `measure`: mfu, emfu (both in per cent) or tflops."""
    if measure == "tflops":
        rate = row.flops_per_s_per_chip if isinstance(row, Own) else row.run.flops_per_s_per_chip
        return None if rate is None else rate / 1e12
    share = row.utilisation if measure == "mfu" else row.bf16_utilisation
    return None if share is None else share * 100


def x_of(row: Reviewed | Own, over: str) -> float | None:
    """Where a point stands. `over`: chips or parameters."""
    if over == "parameters":
        return row.parameters
    return row.chips if isinstance(row, Own) else row.run.chips


TITLES = {
    "mfu": "model FLOP/s over the peak of the precision that ran (%)",
    "emfu": "model FLOP/s over the BF16 peak (%)",
    "tflops": "model TFLOP/s per chip",
    "chips": "chips",
    "parameters": "parameters of the model",
}


def scatter(rows: Sequence[Reviewed], measure: str, over: str, own: Own | None = None, at: str = "") -> go.Figure:
    """One mark per run, its form by precision, hollow where its figures contradict themselves; `at`: the one chosen.

    The user's run is a star in colour; the published ones are then grey.
    """
    figure = go.Figure()
    shade = theme.THIN["useful_maths"] if own is None else theme.GREY
    for precision, symbol in SYMBOLS.items():
        some = [r for r in rows if r.run.precision == precision and placed(r, measure, over)]
        if some:
            figure.add_trace(_marks(some, measure, over, precision, symbol, shade, at))
    if own is not None and placed(own, measure, over):
        figure.add_trace(_star(own, measure, over))
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        hovermode="closest",
        legend={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
        },
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={
            "type": "log",
            "title": {"text": TITLES[over]},
            "gridcolor": GRID,
            "zeroline": False,
            "dtick": 1,
            **_ticks(rows, own, over),
        },
        yaxis={"title": {"text": TITLES[measure]}, "gridcolor": GRID, "zeroline": False, "rangemode": "tozero"},
    )


def placed(row: Reviewed | Own, measure: str, over: str) -> bool:
    """Whether both of a point's coordinates are known."""
    return y_of(row, measure) is not None and x_of(row, over) is not None


def _marks(
    some: Sequence[Reviewed], measure: str, over: str, precision: str | None, symbol: str, shade: str, at: str
) -> go.Scatter:
    symbols = [f"{symbol}-open" if r.contradictions else symbol for r in some]
    return go.Scatter(
        mode="markers",
        name=precision.upper() if precision else "precision not stated",
        x=[x_of(r, over) for r in some],
        y=[y_of(r, measure) for r in some],
        customdata=[r.run.id for r in some],
        marker={
            "symbol": symbols,
            "color": shade,
            "opacity": 0.65,
            "size": [SIZE * 1.8 if r.run.id == at else SIZE for r in some],
            "line": {
                "width": [2.5 if r.contradictions or r.run.id == at else 0.6 for r in some],
                "color": [theme.GREY if r.run.id == at else shade for r in some],
            },
        },
        selected={"marker": {"opacity": 0.65}},
        unselected={"marker": {"opacity": 0.65}},
        hovertext=[hover(r) for r in some],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _star(own: Own, measure: str, over: str) -> go.Scatter:
    return go.Scatter(
        mode="markers+text",
        name="this run",
        x=[x_of(own, over)],
        y=[y_of(own, measure)],
        text=[f" {plain(own.name)}"],
        textposition="middle right",
        marker={
            "symbol": "star",
            "size": OWN_SIZE,
            "color": theme.THIN["useful_maths"],
            "line": {"width": 1, "color": theme.GREY},
        },
        hovertext=[f"<b>{plain(own.name)}</b><br>{said(own, measure)}"],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def said(row: Reviewed | Own, measure: str) -> str:
    """The height of a point in words."""
    value = y_of(row, measure)
    if value is None:
        return fmt.NO_VALUE
    return f"{fmt.number(value)} TFLOP/s per chip" if measure == "tflops" else f"{fmt.number(value)} %"


def hover(row: Reviewed) -> str:
    """What a hover says of a published run, as plotly text."""
    run = row.run
    name = "HFU" if run.convention == HARDWARE else "MFU"
    lines = [f"<b>{plain(run.model)}</b> on {fmt.count(run.chips, 'chip')}, {plain(run.chip)}"]
    if row.utilisation is not None:
        lines.append(f"{name} {fmt.share(row.utilisation)} of the {run.precision or ''} peak")
    lines.append(f"{said(row, 'tflops')}, convention: {run.convention or 'not stated'}")
    lines += [plain(line) for reason in row.contradictions for line in _wrapped(reason)]
    return "<br>".join(lines)


def _wrapped(text: str, width: int = 70) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _ticks(rows: Sequence[Reviewed], own: Own | None, over: str) -> dict[str, Any]:
    """Powers of two for chips, 1-2-5 steps with a unit for parameters: those within what is drawn."""
    values = [v for r in [*rows, *([own] if own else [])] if (v := x_of(r, over))]
    if not values:
        return {}
    if over == "chips":
        ticks = [2.0**p for p in range(0, 20, 2)]
        texts = [f"{t:,.0f}" for t in ticks]
    else:
        ticks = [m * 10.0**p for p in range(6, 14) for m in (1, 3)]
        texts = [_size(t) for t in ticks]
    kept = [(t, s) for t, s in zip(ticks, texts, strict=True) if min(values) / 4 <= t <= max(values) * 4]
    return {"tickvals": [t for t, _ in kept], "ticktext": [s for _, s in kept]}


def _size(parameters: float) -> str:
    for factor, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if parameters >= factor:
            return f"{parameters / factor:g}{unit}"
    return f"{parameters:g}"

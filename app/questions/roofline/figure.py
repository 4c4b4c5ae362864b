"""The roofline drawn: operations by FLOP/byte and FLOP/s under the roofs, and those without FLOPs by bandwidth."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.roofline import RooflineResult
from analyzers.device.roofs import Roof
from app import theme
from app.figures.base import GRID, layout, plain
from app.figures.op_categories import LOOKS, look
from app.questions.roofline.words import TITLES, byte_rate, named, shares
from errors import format as fmt

MAX_POINTS = 400  # the longest of more; the rest together is told below the figure
LARGEST_PX, LEAST_PX = 46, 6
LABELS = 3  # of the longest operations
ROOM = 2.5  # axes end this factor beyond the outermost point or ridge
EDGE = 1000  # times the ridge: operations that move next to nothing would stretch the axis without end
LABEL_ROOM = 4.0  # to the right of all points, for the labels of the flat roofs
SLOPE_LABEL = 0.4  # of the way up a slope its label stands
LEAST_DECADES = 2.0  # of an axis
SEEN = 0.999  # of the time of all points: those of the rest would only stretch the axes
BOUND_COLOURS = {
    "compute": theme.COLOURS["useful_maths"],
    "memory": theme.COLOURS["below_roofline"],
    "neither": theme.COLOURS["padding"],
    "above": theme.COLOURS["straggler_wait"],
    "communication": theme.COLOURS["exposed_communication"],
    "asynchronous": theme.COLOURS["checkpoint_restore"],
    "host": theme.COLOURS["input_wait"],
    "unknown": theme.COLOURS["unattributed"],
}
WORDS = {"spec": "specified", "reached": "reached"}
BOUND_PATTERNS = {"neither": "x", "above": "+", "host": "\\", "unknown": "/"}


def key_of(row: dict) -> str:
    """What the address says of an operation: its module and name."""
    return f"{row['module'] or ''}/{row['op'] or ''}"


def drawn(result: RooflineResult) -> pd.DataFrame:
    """The points of the scatter: with FLOPs and bytes, at what they reached, else (nothing timed) on the roof."""
    points = result.points[(result.points["flops"] > 0) & (result.points["bytes"] > 0)]
    if result.device_seconds is None:
        points = points.assign(flops_per_s=points["flops"] * points["count"] / points["roof_seconds"])
    points = points[points["flops_per_s"].notna() & (points["share"] > 0)]
    edge = EDGE * result.roof.ridge if result.roof.ridge else math.inf
    points = points.assign(x=points["flops_per_byte"].clip(upper=edge))
    before = points["share"].cumsum().shift(fill_value=0.0)
    return points[before < SEEN * points["share"].sum()].head(MAX_POINTS)


def bandwidth_only(result: RooflineResult) -> pd.DataFrame:
    """Operations that move bytes and compute nothing: a scatter with logarithmic axes has no place for them."""
    points = result.points[(result.points["flops"] == 0) & result.points["roof_seconds"].notna()]
    return points[points["share"] > 0].head(MAX_POINTS)


def roofline(result: RooflineResult, chosen: str = "") -> go.Figure | None:
    """Log-log scatter, marker area = time; None where no operation has both FLOPs and bytes."""
    points = drawn(result)
    if not len(points):
        return None
    figure = go.Figure()
    ends = _ends(result, points)
    _draw_roofs(figure, result, ends)
    timed = result.device_seconds is not None
    for category, some in _by_category(points):
        figure.add_trace(_markers(some, category, result, some["x"], some["flops_per_s"]))
    _name_longest(figure, points, result)
    if (points["x"] < points["flops_per_byte"]).any():
        figure.add_annotation(
            xref="paper",
            yref="paper",
            x=1,
            y=0.02,
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            font_size=11,
            text=f"at this edge: {EDGE:,} times the ridge and more, hardly any bytes",
        )
    at = points[[key_of(r) == chosen for r in points.to_dict("records")]] if chosen else points.head(0)
    if len(at):
        figure.add_scatter(
            x=at["x"],
            y=at["flops_per_s"],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={
                "symbol": "circle-open",
                "size": sizes(at["share"], _largest(result)) + 12,
                "color": theme.COLOURS["infrastructure_recovery"],
                "line": {"width": 3},
            },
        )
    title = "FLOP/s of a device while it runs" if timed else "most FLOP/s that a device could reach (modelled)"
    return layout(
        figure,
        520,
        showlegend=True,
        dragmode="zoom",
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "itemsizing": "constant"},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={
            **_axis(*ends[0], _plain),
            "title": {"text": "operational intensity (FLOP per byte of device memory)"},
        },
        yaxis={**_axis(*ends[1], lambda v: _unit(v, "FLOP/s")), "title": {"text": title}},
    )


def _axis(low: float, high: float, words: Callable[[float], str]) -> dict:
    """A logarithmic axis with a tick at every decade; of a short one also at 2 and 5."""
    a, b = math.log10(low), math.log10(high)
    steps = (1, 2, 5) if b - a < 3 else (1,)
    at = [m * 10.0**d for d in range(math.floor(a), math.ceil(b) + 1) for m in steps if low <= m * 10.0**d <= high]
    if len(at) > 12:
        at = at[:: math.ceil(len(at) / 12)]
    return {
        "type": "log",
        "range": [a, b],
        "tickvals": at,
        "ticktext": [words(v) for v in at],
        "gridcolor": GRID,
        "zeroline": False,
    }


def _plain(value: float) -> str:
    """A round number without an exponent: `0.5`, `1,000,000`."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _unit(value: float, unit: str) -> str:
    """`200 TFLOP/s` of a round number."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.999 * factor:
            return f"{value / factor:g} {prefix}{unit}"
    return f"{_plain(value)} {unit}"


def _by_category(points: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The points of each category, in the order of legends; those of none under `unknown`."""
    parts = [(c, points[points["category"] == c]) for c in LOOKS]
    parts.append(("unknown", points[~points["category"].isin(LOOKS)]))
    return [(c, some) for c, some in parts if len(some)]


def _name_longest(figure: go.Figure, points: pd.DataFrame, result: RooflineResult) -> None:
    """Labels at the longest operations, where there is room between them."""
    named_at: list[tuple[float, float]] = []
    for row in points.head(LABELS * 3).to_dict("records"):
        x, y = math.log10(row["x"]), math.log10(row["flops_per_s"])
        if len(named_at) == LABELS or any(abs(x - a) < 0.5 and abs(y - b) < 0.35 for a, b in named_at):
            continue
        named_at.append((x, y))
        radius = sizes(pd.Series([row["share"]]), _largest(result))[0] / 2
        figure.add_annotation(
            x=x,
            y=y,
            text=plain(row["op"]),
            ax=0,
            ay=radius + 16,
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=theme.GREY,
            standoff=radius,
            font_size=11,
        )


def _roofs(result: RooflineResult) -> list[tuple[Roof, str]]:
    """The specified roof solid, the one that was reached dashed."""
    found = {r.name: r for r in result.roofs}
    return [(found[n], dash) for n, dash in (("spec", "solid"), ("reached", "dash")) if n in found]


def _ends(result: RooflineResult, points: pd.DataFrame) -> tuple[tuple[float, float], tuple[float, float]]:
    """First and last of both axes, so that all points and the ridges of the roofs are seen."""
    xs, ys = list(points["x"]), list(points["flops_per_s"])
    for roof, _ in [*_roofs(result), (result.roof, "")]:
        xs += [roof.ridge] if roof.ridge else []
        ys += [roof.flops.per_s] if roof.flops else []
    x0, x1 = _widened(min(xs), max(xs))
    return (x0, x1 * LABEL_ROOM), _widened(min(ys), max(ys))


def _widened(low: float, high: float) -> tuple[float, float]:
    more = max(LEAST_DECADES - math.log10(high / low), 0.0) / 2
    return low / ROOM / 10**more, high * ROOM * 10**more


def _draw_roofs(figure: go.Figure, result: RooflineResult, ends: tuple) -> None:
    """Each roof as a line with its rates; what one lacks is the other's, so its line is drawn but not labelled."""
    roofs = _roofs(result)
    (x0, x1), (y0, y1) = ends
    for roof, dash in roofs:
        other = next((r for r, _ in roofs if r is not roof), None)
        line = roof.filled(other)
        flat = line.flops.per_s if line.flops else math.inf
        slope = line.bytes.per_s if line.bytes else math.inf
        turn = [flat / slope] if line.ridge and x0 < flat / slope < x1 else []
        x = np.array([x0, *turn, x1])
        figure.add_scatter(
            x=x,
            y=np.minimum(slope * x, flat),
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            line={"dash": dash, "color": theme.GREY, "width": 2},
        )
        word = WORDS[roof.name]
        if roof.flops:
            higher = not (other and other.flops) or flat >= other.flops.per_s
            figure.add_annotation(
                x=math.log10(x1),
                y=math.log10(flat),
                xanchor="right",
                yanchor="bottom" if higher else "top",
                showarrow=False,
                text=f"{word} {fmt.flops_rate(flat)}",
                font_size=12,
            )
        if roof.bytes:
            left, right = max(x0, y0 / slope), min(x1, y1 / slope, flat / slope)
            at = left * (right / left) ** SLOPE_LABEL
            higher = not (other and other.bytes) or slope >= other.bytes.per_s
            aside = -1 if higher else 1
            figure.add_annotation(
                x=math.log10(at),
                y=math.log10(slope * at),
                showarrow=False,
                font_size=12,
                yanchor="middle",
                text=f"{word} {byte_rate(slope)}",
                xanchor="right" if higher else "left",
                xshift=8 * aside,
                yshift=-8 * aside,
            )


def _markers(points: pd.DataFrame, category: str, result: RooflineResult, x: pd.Series, y: Any) -> go.Scatter:
    """One category's points, hollow where nothing was timed."""
    style, hollow = look(category), result.device_seconds is None
    rows = points.to_dict("records")
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        name=plain(category),
        customdata=[key_of(r) for r in rows],
        hovertext=[hover(r, result) for r in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "size": sizes(points["share"], _largest(result)),
            "color": style.colour,
            "symbol": style.symbol + ("-open" if hollow else ""),
            "opacity": 1.0 if hollow else 0.75,
            "line": {"width": 2 if hollow else 1, "color": style.colour if hollow else "#FFFFFF"},
        },
    )


def _largest(result: RooflineResult) -> float:
    """The largest share of time of an operation that has a roof: the widest marker of both scatters."""
    return float(result.points.loc[result.points["roof_seconds"].notna(), "share"].max())


def sizes(share: pd.Series, largest: float) -> np.ndarray:
    """Marker widths in pixels whose areas go with time; the least stay visible."""
    return np.maximum(LARGEST_PX * np.sqrt(share.to_numpy(dtype=float) / (largest or 1.0)), LEAST_PX)


def hover(row: dict, result: RooflineResult) -> str:
    """What is known of an operation, line by line."""
    timed = result.device_seconds is not None
    kind = f"{row['category'] or 'unknown'}, {row['module'] or 'no module'}"
    lines = [f"<b>{plain(named(row))}</b>", plain(kind)]
    if timed:
        lines.append(
            f"{fmt.share(row['share'])} of device time: {fmt.count(int(row['count']), 'execution')}, "
            f"{fmt.duration(row['self_seconds'] / max(row['count'], 1))} each"
        )
        lines.append(
            f"{fmt.flops_rate(row['flops_per_s'])}, {byte_rate(row['bytes_per_s'])}, "
            f"{fmt.number(row['flops_per_byte'])} FLOP/byte"
        )
        lines.append(f"{fmt.share(row['roof_share'])} of its roof; {TITLES[row['bound']]}")
    else:
        lines.append(f"at least {fmt.duration(row['roof_seconds'])} in {fmt.count(int(row['count']), 'execution')}")
        lines.append(f"{fmt.number(row['flops_per_byte'])} FLOP/byte; {TITLES[row['bound']]}")
    return "<br>".join(lines)


def bandwidth(result: RooflineResult) -> go.Figure | None:
    """Operations without FLOPs by the memory bandwidth they reach, area = time; None without any or without times."""
    points = bandwidth_only(result)
    points = points[points["bytes_per_s"] > 0]
    if not len(points):
        return None
    figure, kinds = go.Figure(), _by_category(points)
    for category, some in kinds:
        figure.add_trace(_markers(some, category, result, some["bytes_per_s"], [category] * len(some)))
    values = [points["bytes_per_s"].min(), points["bytes_per_s"].max()]
    lines = [(r, dash) for r, dash in _roofs(result) if r.bytes]
    for roof, dash in lines:
        values.append(roof.bytes.per_s)
        figure.add_vline(x=roof.bytes.per_s, line_dash=dash, line_color=theme.GREY, line_width=2)
        figure.add_annotation(
            x=math.log10(roof.bytes.per_s),
            y=1,
            yref="paper",
            yanchor="bottom",
            showarrow=False,
            font_size=12,
            xanchor="right" if len(lines) > 1 and roof.name == "reached" else "left",
            text=f"{WORDS[roof.name]} {byte_rate(roof.bytes.per_s)}",
        )
    low, high = _widened(min(values), max(values))
    return layout(
        figure,
        110 + 56 * len(kinds),
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        xaxis={**_axis(low, high, lambda v: _unit(v, "B/s")), "title": {"text": "bytes/s of device memory"}},
        yaxis={"type": "category", "automargin": True, "showgrid": False, "fixedrange": True},
    )


def strip(result: RooflineResult) -> go.Figure:
    """One bar: the time by what binds."""
    figure = go.Figure()
    for bound, share in shares(result).items():
        colour, shape = BOUND_COLOURS[bound], BOUND_PATTERNS.get(bound, "")
        words = f"{TITLES[bound]} {fmt.whole_share(share)}"
        pattern = {"shape": shape, "size": 6, "solidity": 0.2, "fillmode": "overlay", "fgcolor": theme.text_on(colour)}
        figure.add_bar(
            orientation="h",
            x=[share * 100],
            y=[""],
            name=words,
            showlegend=True,
            marker={"color": colour, "line": {"width": 0}, "pattern": pattern if shape else {}},
            text=[words if share >= 0.14 else ""],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": theme.text_on(colour), "size": 12},
            hovertemplate=f"{words}<extra></extra>",
        )
    return layout(
        figure,
        104,
        barmode="stack",
        showlegend=True,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        legend={"orientation": "h", "y": -0.1, "yanchor": "top", "x": 0, "traceorder": "normal"},
        xaxis={"range": [0, 100], "visible": False, "fixedrange": True},
        yaxis={"visible": False, "fixedrange": True},
    )

"""Top operations drawn: bars by self time with the part at the roof inside, and one strip of all categories."""

import pandas as pd
import plotly.graph_objects as go

from analyzers.device.operations import OpsResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.figures.op_categories import look
from app.questions.operations.words import MOST, label, roof_text, time_of
from app.questions.roofline.words import byte_rate
from errors import format as fmt

BARS = 25
ROW_PX = 26
NAME_LETTERS = 48
TEXT_FROM = 0.08  # of the strip: a narrower part holds no text
STEPPED = "#FFFFFF"


def bars(result: OpsResult) -> go.Figure | None:
    """Self time of the longest rows; solid: what the roof would take, hatched: beyond it, dotted: no roof is known."""
    rows = result.rows[result.rows["share"] > 0].head(BARS).to_dict("records")
    if not rows:
        return None
    each = 1 / (result.device_steps or result.devices or 1)
    seconds = [time_of(r, result) * each for r in rows]
    unit, factor = time_unit(max(seconds))
    y = list(range(len(rows)))
    figure = go.Figure()
    for name, shape, lengths in _parts(result, rows, seconds, each):
        if not any(lengths[1]):
            continue
        base, width = lengths
        figure.add_bar(
            orientation="h",
            y=y,
            base=[b * factor for b in base],
            x=[w * factor for w in width],
            name=name,
            showlegend=False,
            hovertext=[hover(r, result, s) for r, s in zip(rows, seconds, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
            marker={
                "color": [look(r["category"]).colour for r in rows],
                "line": {"width": 0},
                "opacity": 1.0 if not shape else 0.6,
                "pattern": {"shape": shape, "fgcolor": STEPPED, "fillmode": "overlay", "size": 6, "solidity": 0.3},
            },
        )
    figure.add_scatter(
        x=[s * factor for s in seconds],
        y=y,
        mode="text",
        text=[f"  {_said(r)}" for r in rows],
        cliponaxis=False,
        textposition="middle right",
        textfont_size=12,
        hoverinfo="skip",
        showlegend=False,
    )
    what = "self time in a step" if result.device_steps else "self time"
    if result.device_seconds is None:
        what = "least time, modelled"
    return layout(
        figure,
        len(rows) * ROW_PX + 70,
        barmode="overlay",
        bargap=0.25,
        xaxis={
            "title": {"text": f"{what}, mean of a device ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, max(seconds) * factor * 1.28],
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": y,
            "ticktext": [plain(_short(label(r, result.by))) for r in rows],
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
    )


def _parts(result: OpsResult, rows: list[dict], seconds: list[float], each: float) -> list:
    """(name, pattern, (start, length) of each bar): at the roof, beyond it, without one. Together each row's time."""
    timed = result.device_seconds is not None
    roofed = [_number(r["roofed_seconds"]) * each if timed else s for r, s in zip(rows, seconds, strict=True)]
    roof = [min(_number(r["roof_seconds"]) * each, w) for r, w in zip(rows, roofed, strict=True)]
    zero = [0.0] * len(rows)
    return [
        ("at the roof", "", (zero, roof)),
        ("beyond the roof", "/", (roof, [w - r for w, r in zip(roofed, roof, strict=True)])),
        ("no roof known", ".", (roofed, [max(s - w, 0.0) for s, w in zip(seconds, roofed, strict=True)])),
    ]


def _number(value: float) -> float:
    return 0.0 if pd.isna(value) else float(value)


def _said(row: dict) -> str:
    """`14 % · 9 % of its roof`: behind a bar."""
    text = fmt.share(row["share"], 2)
    if pd.notna(row["roof_share"]) and not row["roofed_seconds"] < MOST * row["self_seconds"]:
        text += f" · {roof_text(row, 2)} of its roof"
    return text


def _short(name: str) -> str:
    return name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 20]}…{name[-19:]}"


def hover(row: dict, result: OpsResult, seconds: float) -> str:
    """What is known of a row, line by line."""
    per = "a step, mean of a device" if result.device_steps else "mean of a device"
    kind = row["category"] or "several categories"
    lines = [
        f"<b>{plain(label(row, result.by))}</b>",
        plain(f"{kind}, {row['module'] or 'several modules or none'}"),
        f"{fmt.duration(seconds)} ({per}), {fmt.share(row['share'])}",
        f"{fmt.count(int(row['ops']), 'operation')}, {fmt.count(int(row['count']), 'execution')}",
    ]
    if pd.notna(row["flops_per_s"]) or pd.notna(row["bytes_per_s"]):
        lines.append(f"{fmt.flops_rate(row['flops_per_s'])}, {byte_rate(row['bytes_per_s'])}")
    if pd.notna(row["roof_share"]):
        lines.append(f"{roof_text(row)} of its roof")
    return "<br>".join(lines)


def strip(result: OpsResult) -> go.Figure:
    """One stacked bar: the share of time of each category."""
    figure = go.Figure()
    for row in result.by_category[result.by_category["share"] > 0].to_dict("records"):
        colour, name = look(row["category"]).colour, str(row["category"] or "unknown")
        words = f"{name} {fmt.whole_share(row['share'])}"
        figure.add_bar(
            orientation="h",
            x=[row["share"] * 100],
            y=[""],
            name=plain(words),
            showlegend=True,
            marker={"color": colour, "line": {"width": 0}},
            text=[words if row["share"] >= TEXT_FROM else ""],
            textposition="inside",
            textangle=0,
            insidetextanchor="middle",
            insidetextfont={"color": theme.text_on(colour), "size": 12},
            hovertemplate=f"{plain(words)}<extra></extra>",
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

"""Padding drawn: each product's part of the matrix unit and what of it is useful; its dimensions; what advice gains."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.flops.padding import PaddingResult
from app import theme
from app.figures.base import GRID, layout, plain
from app.questions.padding.words import band, dim, unit_words
from errors import format as fmt

MAX_BARS, MAX_ROWS = 30, 24
LABELLED = 0.045  # a narrower bar has no room for its name
USEFUL, PADDING = theme.COLOURS["useful_maths"], theme.COLOURS["padding"]
ROW_PX = 28


def largest(result: PaddingResult, most: int) -> pd.DataFrame:
    """The rows to draw: all, or those with most padded FLOPs."""
    return result.rows if len(result.rows) <= most else result.rows.nlargest(most, "padded_flops")


def labels(rows: pd.DataFrame) -> list[str]:
    """A name for each row; rows that share one are told apart by their dimensions."""
    twice = rows["name"].duplicated(keep=False)
    told = zip(rows["name"], rows["m"], rows["k"], rows["n"], twice, strict=True)
    return [f"{name} ({dim(m)} x {dim(k)} x {dim(n)})" if again else str(name) for name, m, k, n, again in told]


def shares(result: PaddingResult) -> go.Figure:
    """Width: a product's part of the matrix unit's FLOPs, padding included (A). Height: what of it is useful.

    So areas are FLOPs: below, useful ones; hatched, padding only if products run as printed (between A and B); above,
    padding either way.
    """
    rows = largest(result, MAX_BARS)
    rows = rows.assign(label=labels(rows))
    rest = 1 - float(rows["padded_share"].sum())
    width = rows["padded_share"].to_numpy(dtype=float)
    left = np.cumsum(width) - width
    low, high = rows["efficiency"].to_numpy(dtype=float), rows["efficiency_optimistic"].to_numpy(dtype=float)
    hover = [_hover(r) for r in rows.to_dict("records")]
    figure = go.Figure()
    for name, base, height, colour, shape in (
        ("useful", 0 * low, low, USEFUL, ""),
        ("padding as printed, avoidable at best", low, high - low, PADDING, "/"),
        ("padding either way", high, 1 - high, PADDING, ""),
    ):
        figure.add_bar(
            x=(left + width / 2) * 100,
            width=width * 100,
            y=height * 100,
            base=base * 100,
            name=name,
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=True,
            marker={
                "color": colour,
                "line": {"color": "rgba(255,255,255,0.75)", "width": 1},
                "pattern": {"shape": shape, "fgcolor": "#FFFFFF", "fillmode": "overlay", "size": 7, "solidity": 0.35},
            },
        )
    wide = width >= LABELLED
    told = zip(rows["name"][wide], width[wide], low[wide], strict=True)
    figure.add_scatter(
        x=(left + width / 2)[wide] * 100,
        y=np.full(wide.sum(), 100.5),
        mode="text",
        showlegend=False,
        hoverinfo="skip",
        text=[f"{plain(_short(n, w))}<br><b>{fmt.share(e)}</b>" for n, w, e in told],
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
    )
    at = result.efficiency * 100
    figure.add_hline(y=at, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    figure.add_annotation(
        xref="paper",
        x=1.0,
        xanchor="left",
        y=at,
        yanchor="middle",
        showarrow=False,
        font_size=12,
        align="left",
        text=f" all: {fmt.share(result.efficiency)}",
    )
    title = f"share of the matrix unit's FLOPs, padding included (%), {plain(unit_words(result.unit))}"
    if rest > 1e-6:
        title += f"; {fmt.share(rest)} in smaller products not drawn"
    return layout(
        figure,
        420,
        barmode="overlay",
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 92, "t": 8, "b": 8},
        xaxis={"title": {"text": title}, "range": [0, 100], "gridcolor": GRID, "zeroline": False, "fixedrange": True},
        yaxis={
            "title": {"text": "useful part (%)"},
            "range": [0, 118],
            "gridcolor": GRID,
            "fixedrange": True,
            "tickvals": [0, 20, 40, 60, 80, 100],
            "zeroline": False,
        },
    )


def heat(result: PaddingResult) -> go.Figure:
    """Products by m, k, n and whole: how much of the matrix unit each dimension alone leaves useful."""
    rows = largest(result, MAX_ROWS)
    columns = ("efficiency_m", "efficiency_k", "efficiency_n", "efficiency", "efficiency_optimistic")
    values = rows[list(columns)].to_numpy(dtype=float)
    names = [plain(n) for n in labels(rows)]
    dims = [[dim(r.m), dim(r.k), dim(r.n), "", ""] for r in rows.itertuples(index=False)]
    text = [
        [f"{d} · {fmt.share(v)}" if d else fmt.share(v) for d, v in zip(ds, vs, strict=True)]
        for ds, vs in zip(dims, values, strict=True)
    ]
    heads = ["m (rows)", "k (contracted)", "n (columns)", "whole (A)", "whole (B, at best)"]
    figure = go.Figure(
        go.Heatmap(
            x=heads,
            y=list(range(len(rows))),
            z=values,
            zmin=0,
            zmax=1,
            colorscale=[[0, PADDING], [1, USEFUL]],
            showscale=False,
            xgap=3,
            ygap=3,
            hovertext=[[_hover(r)] * len(heads) for r in rows.to_dict("records")],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    flat = values.ravel()
    figure.add_scatter(
        x=heads * len(rows),
        y=np.repeat(np.arange(len(rows)), len(heads)),
        mode="text",
        hoverinfo="skip",
        text=[t for line in text for t in line],
        textfont={"color": [_ink(v) for v in flat], "size": 12},
    )
    return layout(
        figure,
        len(rows) * ROW_PX + 40,
        xaxis={"side": "top", "fixedrange": True, "showgrid": False, "type": "category"},
        yaxis={
            "autorange": "reversed",
            "tickvals": list(range(len(rows))),
            "ticktext": names,
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
    )


def bands(entries: list[tuple[str, float, float]]) -> go.Figure:
    """One bar from B to A for each (what, tax at best, tax as printed): the truth lies within, or below."""
    names = [plain(n) for n, _, _ in entries]
    low, high = (np.array([e[i] for e in entries]) * 100 for i in (1, 2))
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=low,
            marker={"color": PADDING},
            hoverinfo="skip",
        )
    )
    figure.add_bar(
        orientation="h",
        y=names,
        x=high - low,
        base=low,
        hoverinfo="skip",
        marker={
            "color": PADDING,
            "pattern": {"shape": "/", "fgcolor": "#FFFFFF", "fillmode": "overlay", "size": 7, "solidity": 0.35},
        },
    )
    words = [band(a, b) for _, a, b in entries]
    figure.add_scatter(
        x=high,
        y=names,
        mode="text",
        text=[f"  {w}" for w in words],
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
    )
    most = max(float(high.max(initial=0.0)), 1.0)
    return layout(
        figure,
        max(len(entries) * ROW_PX + 72, 140),
        barmode="overlay",
        bargap=0.35,
        xaxis={
            "title": {"text": "padding tax (% more FLOPs)"},
            "range": [0, most * 1.4],
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "fixedrange": True, "type": "category"},
    )


def gains(result: PaddingResult) -> go.Figure | None:
    """What each advised change would save of the padded matmul FLOPs, at best and as printed; None without advice."""
    if not result.advice:
        return None
    entries = [(f"{a.dim} {a.now:,} → {a.then:,}", a) for a in result.advice]
    names = [plain(n) for n, _ in entries]
    sure = np.array([max(min(a.gain, a.gain_optimistic), 0.0) for _, a in entries]) * 100
    most = np.array([max(a.gain, a.gain_optimistic) for _, a in entries]) * 100
    figure = go.Figure(go.Bar(orientation="h", y=names, x=sure, marker={"color": USEFUL}, hoverinfo="skip"))
    figure.add_bar(
        orientation="h",
        y=names,
        x=most - sure,
        base=sure,
        hoverinfo="skip",
        marker={
            "color": USEFUL,
            "pattern": {"shape": "/", "fgcolor": "#FFFFFF", "fillmode": "overlay", "size": 7, "solidity": 0.35},
        },
    )
    words = [band(a / 100, b / 100, 2) for a, b in zip(sure, most, strict=True)]
    figure.add_scatter(
        x=most,
        y=names,
        mode="text",
        text=[f"  {w}" for w in words],
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
    )
    return layout(
        figure,
        max(len(entries) * ROW_PX + 72, 140),
        barmode="overlay",
        bargap=0.35,
        xaxis={
            "title": {"text": "fewer padded FLOPs for the same useful maths (%)"},
            "gridcolor": GRID,
            "range": [0, float(most.max()) * 1.35],
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "fixedrange": True, "type": "category"},
    )


def _hover(row: dict) -> str:
    lines = [
        f"<b>{plain(row['name'])}</b>",
        f"{dim(row['m'])} x {dim(row['k'])} x {dim(row['n'])}, {row['count'] * row['batch']:,.0f} times",
        f"{fmt.share(row['share'])} of useful FLOPs, {fmt.share(row['padded_share'])} of padded FLOPs",
        f"useful: {fmt.share(row['efficiency'])} as printed (A), {fmt.share(row['efficiency_optimistic'])} at best (B)",
    ]
    if row.get("op"):
        lines.append(plain(row["op"]) + (f" and {row['ops'] - 1:,} alike" if row["ops"] > 1 else ""))
    return "<br>".join(lines)


def _short(name: str, width: float) -> str:
    """As much of a name as fits a bar of this share of the figure; of a line of a file, at least its number."""
    room = max(int(width * 140), 6)
    if len(name) > room and name.rpartition(":")[2].isdigit():
        name = f"line {name.rpartition(':')[2]}"
    return name if len(name) <= room + 1 else name[:room] + "…"


def _ink(value: float) -> str:
    """Text that reads on the heat map's colour at this value."""
    parts = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (PADDING, USEFUL)]
    value = min(max(value, 0.0), 1.0)
    mixed = [round(a + (b - a) * value) for a, b in zip(*parts, strict=True)]
    return theme.text_on("#" + "".join(f"{c:02X}" for c in mixed))

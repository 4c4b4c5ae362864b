"""Collectives: bus bandwidth over size against the link, and time by kind and axis."""

import math
from typing import cast

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.ranks.collectives import CollectivesResult, bus_factor
from analyzers.ranks.latency import sizes_differ
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.questions.collectives.words import kind_name, name, rate
from errors import format as fmt

MAX_ROWS = 400  # points; of more, those that took longest
MAX_BARS = 24
SYMBOLS = {
    "all-reduce": "circle",
    "all-gather": "square",
    "reduce-scatter": "diamond",
    "all-to-all": "triangle-up",
    "permute": "cross",
    "broadcast": "star",
}
MOVING, WAITING = theme.COLOURS["exposed_communication"], theme.COLOURS["straggler_wait"]


def bandwidth(result: CollectivesResult) -> go.Figure | None:
    """Log-log scatter, area by time spent, hollow where latency bounds it; None where no rate is known."""
    rows = result.rows[result.rows["busbw_bytes_per_s"].notna() & (result.rows["message_bytes"] > 0)].head(MAX_ROWS)
    if not len(rows):
        return None
    figure = go.Figure()
    most = float(rows["total_s"].max()) or 1.0
    for kind, some in rows.groupby("kind", sort=False):
        hollow = some["latency_bound"].fillna(False).astype(bool)
        symbol = SYMBOLS.get(str(kind), "circle")
        figure.add_trace(
            go.Scatter(
                x=some["message_bytes"].astype(float),
                y=some["busbw_bytes_per_s"].astype(float),
                name=plain(kind_name(str(kind))),
                mode="markers",
                marker={
                    "color": MOVING,
                    "symbol": [symbol + ("-open" if h else "") for h in hollow],
                    "opacity": 0.85,
                    "size": [9 + 25 * math.sqrt(t / most) for t in some["total_s"]],
                    "line": {"width": 1.5, "color": MOVING if hollow.any() else "rgba(128,128,128,0.7)"},
                },
                hovertext=[_hover(r) for r in some.to_dict("records")],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    _floor(figure, rows)
    tops = [float(rows["busbw_bytes_per_s"].max())]
    for value, words in _limits(result, rows):
        figure.add_hline(y=value, line_dash="dash", line_color=theme.GREY, line_width=1.5)
        figure.add_annotation(
            x=0,
            xref="paper",
            xanchor="left",
            y=math.log10(value),
            yanchor="bottom",
            text=words,
            showarrow=False,
            font_size=12,
        )
        tops.append(value)
    low = float(rows["busbw_bytes_per_s"].min())
    return layout(
        figure,
        440,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": "message (bytes)"}, "gridcolor": GRID, **_decades(rows["message_bytes"], fmt.size)},
        yaxis={
            "title": {"text": "bus bandwidth (bytes/s)"},
            "gridcolor": GRID,
            **_decades(pd.Series([low, *tops]), rate),
        },
    )


def _decades(values: pd.Series, words) -> dict:
    """A logarithmic axis with each power of ten written with its unit, a little wider than the values."""
    low, high = math.log10(float(values.min())) - 0.3, math.log10(float(values.max())) + 0.3
    within = (1, 2, 5) if high - low < 2 else (1,)
    powers = range(math.floor(low), math.floor(high) + 1, 1 if high - low < 8 else 2)
    ticks = [m * 10.0**p for p in powers for m in within]
    said = [words(t).replace(".00", "").replace(".0", "") for t in ticks]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": said}


def _limits(result: CollectivesResult, rows: pd.DataFrame) -> list[tuple[float, str]]:
    """The lines that rates are held against: what a device can send over each network, and one link."""
    known = rows[rows["link_bytes_per_s"].notna()].drop_duplicates(["network", "link_bytes_per_s"])
    lines = [
        (float(r.link_bytes_per_s), f"{r.network}, all links: {rate(r.link_bytes_per_s)}") for r in known.itertuples()
    ]
    one = result.one_link_bytes_per_s
    if one and (known["network"] == "scale-up").any():
        lines.append((one, f"one link: {rate(one)}"))
    return lines


def _floor(figure: go.Figure, rows: pd.DataFrame) -> None:
    """What a collective would reach if it took as long as the quickest of its kind and group: the latency floor."""
    for (kind, size), some in rows.groupby(["kind", "group_size"]):
        told = some[some["latency_bound"].notna()]  # else the quickest may have waited, and its time is a bound
        told = told if len(told) else some[some["transfer_median_s"].notna() & (some["bytes"] > 0)]
        if not sizes_differ(told["bytes"].astype(float)):
            continue
        quickest, factor = float(told["transfer_median_s"].min()), bus_factor(str(kind), float(size))
        if not factor or quickest <= 0:
            continue
        x = np.array([float(some["message_bytes"].min()), float(some["message_bytes"].max())])
        figure.add_trace(
            go.Scatter(
                x=x,
                y=x * factor / quickest,
                mode="lines",
                line={"color": theme.GREY, "dash": "dot", "width": 1.5},
                name=f"latency floor, {plain(kind_name(str(kind)))} of {cast(int, size):.0f}: {fmt.duration(quickest)}",
                hoverinfo="skip",
            )
        )


def _hover(r: dict) -> str:
    lines = [
        f"<b>{plain(name(r))}</b>",
        plain(r["ops"]),
        f"{fmt.count(int(r['count']), 'execution')}, {fmt.duration(r['total_s'])} in all",
        f"{fmt.duration(r['transfer_median_s'])} each" + ("" if r["matched"] else ", waiting included"),
        f"algorithm bandwidth {rate(r['algbw_bytes_per_s'])}, bus bandwidth {rate(r['busbw_bytes_per_s'])}",
    ]
    if not pd.isna(r["share_of_link"]):
        lines.append(f"{fmt.share(r['share_of_link'])} of what a device can send")
    if r["latency_bound"] is True or r["latency_bound"] == 1:
        lines.append("bound by latency")
    return "<br>".join(lines)


def time_by_axis(result: CollectivesResult) -> go.Figure | None:
    """Device-seconds by kind and axis: moving data, waiting for the last rank, and what could not be told apart; of a
    program the link's bound, or bytes where no link is known."""
    rows = result.rows.assign(label=[_label(r) for r in result.rows.to_dict("records")])
    if result.measured:
        rows["undivided_s"] = rows["total_s"].where(rows["transfer_s"].isna(), 0.0)
        parts = (
            ("transfer_s", "moving data", MOVING),
            ("wait_s", "waiting for the last rank", WAITING),
            ("undivided_s", "moving data or waiting, not told apart", MOVING),
        )
        title, words = "device-seconds", fmt.duration
    else:
        timed = rows["bound_s"].notna().any()
        count = rows["count"].astype(float)
        rows["amount"] = rows["bound_s"] * count if timed else rows["bytes"].astype("Float64").astype(float) * count
        parts = (("amount", "least time by the link" if timed else "bytes", MOVING),)
        title = "least time in one run on one device" if timed else "bytes in one run on one device"
        words = fmt.duration if timed else fmt.size
    sums = rows.groupby("label", sort=False)[[p[0] for p in parts]].sum()
    sums = sums.loc[sums.sum(axis=1).sort_values(ascending=False).index].head(MAX_BARS)
    if not len(sums) or not sums.to_numpy(dtype=float).any():
        return None
    whole = float(sums.sum(axis=1).max())
    unit, factor = time_unit(whole) if words is fmt.duration else ("bytes", 1.0)
    figure = go.Figure()
    for column, said, colour in parts:
        values = sums[column].to_numpy(dtype=float)
        if not values.any():
            continue
        hatched = {"shape": "/", "fgcolor": WAITING, "bgcolor": colour, "size": 8, "solidity": 0.3}
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=said,
                y=list(sums.index),
                x=values * factor,
                marker={"color": colour, "pattern": hatched if column == "undivided_s" else {}},
                text=[words(v) if v >= 0.08 * whole else "" for v in values],
                textposition="inside",
                insidetextanchor="middle",
                insidetextfont={"color": theme.text_on(colour)},
                textangle=0,
                hovertext=[f"<b>{n}</b><br>{said}: {words(v)}" for n, v in zip(sums.index, values, strict=True)],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        len(sums) * 34 + 112,
        barmode="stack",
        showlegend=len(parts) > 1,
        bargap=0.25,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": f"{title} ({unit})" if unit != "s" else title}, "gridcolor": GRID, "fixedrange": True},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def _label(r: dict) -> str:
    axis = f" over {r['axis']}" if isinstance(r["axis"], str) else ""
    ranks = "" if pd.isna(r["group_size"]) else f", {int(r['group_size'])} ranks"
    return plain(f"{kind_name(r['kind'])}{axis}{ranks}")

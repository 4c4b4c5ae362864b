"""The prefix cache drawn: what caches of every size find, when blocks come again, and what the engine found."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.serving.prefix_cache import ENOUGH, PrefixResult
from app import theme
from app.figures.axes import size_unit
from app.figures.base import GRID, layout, plain, reduced, reference_line
from app.questions.prefix_cache.words import size_words
from errors import format as fmt

FOUND, AGAIN = theme.COLOURS["prefill"], theme.COLOURS["below_roofline"]
MOST_TENANTS = 20
SEEN = 0.1  # per cent of blocks: less cannot be seen
NEAR_END = 0.7  # of the axis: beyond it a label stands to the left of its line


def by_size(result: PrefixResult) -> go.Figure:
    """Share of blocks found against the size of the cache; the size that is enough, the asked one, the attainable."""
    rows = result.by_size
    unit, factor = ("blocks", 1.0) if result.block_bytes is None else size_unit(float(rows["bytes"].max()))
    scale = 1.0 if result.block_bytes is None else result.block_bytes / factor
    sizes = rows["blocks"].to_numpy(dtype=float) * scale
    low, high = np.log10(sizes[0]), np.log10(max(sizes[-1], sizes[0] * 10))
    figure = go.Figure(
        go.Scatter(
            x=sizes,
            y=rows["hit_rate"] * result.tokens_by_block * 100,
            mode="lines",
            line={"color": FOUND, "width": 3},
            customdata=[f"{b:,.0f} blocks" for b in rows["blocks"]],
            hovertemplate="%{customdata}: %{y:,.3r} % found<extra></extra>",
        )
    )
    most = result.attainable or 0.0
    reference_line(figure, most * 100, f"without end {fmt.share(most, 4)}")
    if result.measured.hit_rate is not None:
        share = result.measured.hit_rate * 100
        figure.add_hline(y=share, line_dash="dot", line_color=theme.GREY, line_width=1.5)
        figure.add_annotation(
            xref="paper",
            x=0.01,
            xanchor="left",
            y=share,
            yanchor="top",
            showarrow=False,
            text=f"the engine's own {fmt.share(result.measured.hit_rate)} of tokens",
        )
    marks = (
        (result.enough_blocks, f"{fmt.whole_share(ENOUGH)} of it", 0.02),
        (result.size_blocks, result.size_source, 0.12),
    )
    for blocks, text, y in marks:
        if blocks is not None:
            x = np.log10(blocks * scale)
            figure.add_vline(x=10**x, line_dash="dash", line_color=theme.GREY, line_width=1.5)
            side = "left" if x < low + NEAR_END * (high - low) else "right"
            below = result.hit_rate < 0.5 * result.infinite_hit_rate  # the curve runs below the middle there
            y = 0.62 if side == "right" and below and blocks == result.size_blocks else y
            figure.add_annotation(
                x=x,
                y=y,
                yref="paper",
                yanchor="bottom",
                xanchor=side,
                showarrow=False,
                align=side,
                text=f" {plain(text)}: {size_words(result, blocks)} ",
            )
    ticks = [10.0**p for p in range(int(np.floor(low)), int(np.ceil(high)) + 1)]
    of = "one cache" if result.caches > 1 else "the cache"
    return layout(
        figure,
        400,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 12, "b": 8},
        xaxis={
            "title": {"text": f"size of {of} ({unit})"},
            "type": "log",
            "range": [low, high + 0.05],
            "tickvals": ticks,
            "ticktext": [fmt.number(t, 1) for t in ticks],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={
            "title": {"text": ("tokens" if result.in_tokens else "blocks") + " found (%)"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, max(most, result.measured.hit_rate or 0) * 112],
        },
    )


def reuse(result: PrefixResult) -> go.Figure | None:
    """Found blocks by how long before they had been touched; None where no time is known."""
    rows = result.reuse
    if not len(rows):
        return None
    share = rows["blocks"] / rows["blocks"].sum() * 100
    labels = [fmt.duration(float(t)) for t in rows["to_s"]]
    figure = go.Figure(
        go.Bar(
            x=list(range(len(rows))),
            y=share,
            marker={"color": AGAIN, "line": {"color": theme.GREY, "width": 0.5}},
            customdata=[
                f"{fmt.duration(float(a)) if a else 'at once'} to {fmt.duration(float(b))}: {n:,} blocks"
                for a, b, n in zip(rows["from_s"], rows["to_s"], rows["blocks"], strict=True)
            ],
            hovertemplate="%{customdata}, %{y:,.3r} %<extra></extra>",
        )
    )
    middle = int(np.searchsorted(np.cumsum(share.to_numpy()), 50))
    figure.add_annotation(
        x=middle,
        y=float(share.iloc[middle]),
        yanchor="bottom",
        showarrow=False,
        text="half by here",
    )
    step = max(len(rows) // 9, 1)
    at = list(range(0, len(rows), step))
    return layout(
        figure,
        320,
        bargap=0.06,
        margin={"l": 8, "r": 8, "t": 16, "b": 8},
        xaxis={
            "title": {"text": "time since the block was last touched (up to)"},
            "tickvals": at,
            "ticktext": [labels[i] for i in at],
            "showgrid": False,
        },
        yaxis={"title": {"text": "found blocks (%)"}, "gridcolor": GRID, "zeroline": False},
    )


def tenants(result: PrefixResult) -> go.Figure | None:
    """What each tenant's prompts find, and what they could; None where tenants are not told."""
    rows = result.tenants.head(MOST_TENANTS)
    if not len(rows):
        return None
    names = [plain(t) for t in rows["tenant"]]
    figure = go.Figure()
    figure.add_bar(
        x=rows["hit_rate"] * 100,
        y=names,
        orientation="h",
        name="found",
        marker={"color": FOUND},
        hovertemplate="%{y}: %{x:,.3r} % found<extra></extra>",
    )
    more = (rows["infinite_hit_rate"] - rows["hit_rate"]) * 100
    if more.max() > SEEN:
        figure.add_bar(
            x=more,
            y=names,
            orientation="h",
            name="a cache without end would find besides",
            marker={"color": AGAIN, "pattern": {"shape": "/", "fgcolor": theme.DARK_TEXT, "fgopacity": 0.35}},
            hovertemplate="%{y}: %{x:,.3r} % besides<extra></extra>",
        )
    return layout(
        figure,
        84 + 26 * len(rows),
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 32, "b": 8},
        xaxis={"title": {"text": "blocks found (%)"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "showgrid": False},
    )


def over_time(result: PrefixResult) -> go.Figure | None:
    """What the engine found over time; None where fewer than two stretches tell."""
    rows: pd.DataFrame = result.measured.over_time
    rows = rows[rows["ts_ns"].notna()]
    if len(rows) < 2:
        return None
    at = rows["ts_ns"].to_numpy(dtype=np.int64)
    seconds = (at - at[0]) / 1e9
    shares = rows["hit_rate"].to_numpy(dtype=float) * 100
    kept = reduced(shares)
    figure = go.Figure(
        go.Scatter(
            x=seconds[kept],
            y=shares[kept],
            mode="lines",
            line={"color": FOUND, "width": 1.5},
            hovertemplate="%{x:,.4r} s: %{y:,.3r} % found<extra></extra>",
        )
    )
    reference_line(figure, result.measured.hit_rate * 100, f"all together {fmt.share(result.measured.hit_rate)}")
    return layout(
        figure,
        300,
        xaxis={"title": {"text": "time since the first sample (s)"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"title": {"text": "prompt tokens found (%)"}, "gridcolor": GRID, "zeroline": False, "range": [0, 104]},
    )

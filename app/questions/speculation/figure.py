"""Speculation drawn: acceptance by position, what each draft length is worth, and the batch up to which it pays."""

import numpy as np
import plotly.graph_objects as go

from analyzers.serving.speculation import SpeculationResult
from app import theme
from app.figures.base import GRID, layout, reduced, reference_line
from errors import format as fmt

MEASURED, THEORY = theme.COLOURS["decode"], theme.GREY
BATCHES = np.unique(np.round(np.geomspace(1, 4096, 120)))
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0}


def by_position(result: SpeculationResult) -> go.Figure:
    """Share of drafts accepted at each position with its 95 % interval, against a^i."""
    rows = result.positions
    measured = rows["acceptance"].to_numpy(dtype=float) * 100
    figure = go.Figure()
    if np.isfinite(measured).any():
        low, high = (rows[c].to_numpy(dtype=float) * 100 for c in ("low", "high"))
        known = np.isfinite(low)
        figure.add_bar(
            x=rows["position"],
            y=measured,
            name="measured",
            marker={"color": MEASURED},
            width=0.6,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": np.where(known, high - measured, 0),
                "arrayminus": np.where(known, measured - low, 0),
                "color": theme.GREY,
                "thickness": 1.5,
            },
            text=[f"{v:.3g} %" for v in measured],
            textposition="inside",
            insidetextanchor="start",
            insidetextfont={"color": theme.text_on(MEASURED)},
            hovertext=[
                f"<b>position {int(r.position)}</b><br>accepted in {fmt.share(r.acceptance)} of drafts"
                + (f"<br>95 % interval {fmt.share(r.low)} to {fmt.share(r.high)}" if r.low == r.low else "")
                + f"<br>where all before were: {fmt.share(r.conditional)}"
                for r in rows.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.add_scatter(
        x=rows["position"],
        y=rows["theory"] * 100,
        mode="lines+markers",
        line={"color": THEORY, "dash": "dash"},
        name=f"if tokens were alike: {fmt.number(result.acceptance)} to the power of the position",
        marker={"symbol": "diamond", "size": 8},
        hovertemplate="position %{x}: %{y:,.3r} % if tokens were alike<extra></extra>",
    )
    return layout(
        figure,
        360,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        xaxis={"title": {"text": "position in the draft"}, "dtick": 1 if len(rows) <= 16 else None, "showgrid": False},
        yaxis={
            "title": {"text": "drafts accepted so far (%)"},
            "range": [0, 104],
            "gridcolor": GRID,
            "zeroline": False,
        },
    )


def by_draft(result: SpeculationResult) -> go.Figure:
    """Speed-up against draft length: by Leviathan's rule, and with the measured positions where there are some."""
    figure = go.Figure()
    lengths = [d.tokens for d in result.drafts]
    figure.add_scatter(
        x=lengths,
        y=[d.speedup for d in result.drafts],
        mode="lines+markers",
        name="by Leviathan's rule",
        line={"color": THEORY, "dash": "dash"},
        marker={"size": 6},
        customdata=[fmt.number(d.length) for d in result.drafts],
        hovertemplate="%{x} draft tokens: %{y:.3f} times, %{customdata} tokens a step<extra></extra>",
    )
    known = len(result.observed.positions) + 1
    for part, name, style, most in (
        (result.expected[known - 1 :], "if the last chance held on", {"color": MEASURED, "width": 2, "dash": "dot"}, 4),
        (result.expected[:known], "with the measured positions", {"color": MEASURED, "width": 3}, 8),
    ):
        if len(part) > 1:
            figure.add_scatter(
                x=[d.tokens for d in part],
                y=[d.speedup for d in part],
                mode="lines+markers",
                name=name,
                line=style,
                marker={"size": most},
                hovertemplate="%{x} draft tokens: %{y:.3f} times<extra></extra>",
            )
    best = result.best
    figure.add_annotation(
        x=best.tokens,
        y=best.speedup,
        text=f"best{' of those tried' * result.still_rising}: {best.tokens} ({best.speedup:.2f} times)",
        showarrow=True,
        arrowhead=0,
        ay=-28,
        ax=0,
        arrowcolor=theme.GREY,
    )
    reference_line(figure, 1.0, "without drafts")
    figure.add_scatter(
        x=[result.draft],
        y=[result.speedup],
        mode="markers",
        hoverinfo="skip",
        name="as asked" if result.observed.source == "asked" else "as it is",
        marker={
            "symbol": "circle-open",
            "size": 16,
            "color": theme.COLOURS["infrastructure_recovery"],
            "line": {"width": 3},
        },
    )
    top = max([*(d.speedup for d in (*result.drafts, *result.expected)), result.speedup, 1.0]) * 1.18
    return layout(
        figure,
        360,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        xaxis={
            "title": {"text": "draft tokens"},
            "dtick": 2 if lengths[-1] <= 24 else None,
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={
            "title": {"text": "speed by speed without drafts"},
            "range": [0, top],
            "gridcolor": GRID,
            "zeroline": False,
        },
    )


def by_batch(result: SpeculationResult) -> go.Figure | None:
    """Speed-up against sequences at a time; None without a model and a chip."""
    if result.machine is None:
        return None
    values = [result.machine.speedup(float(b), result.length, result.draft, result.cost) for b in BATCHES]
    figure = go.Figure(
        go.Scatter(
            x=BATCHES,
            y=values,
            mode="lines",
            line={"color": MEASURED, "width": 3},
            hovertemplate="%{x:,.0f} sequences: %{y:.3f} times<extra></extra>",
        )
    )
    reference_line(figure, 1.0, "without drafts")
    marks = (
        (result.free_batch, "verifying turns<br>compute-bound", 0.02, "bottom", "left"),
        *((at, "break-even", 0.98, "top", "left") for ends in result.pays for at in ends if at > 1),
        (result.batch, "the run's batch", 0.5, "middle", "right"),
    )
    for at, text, y, anchor, side in marks:
        if at is not None and 1 <= at <= BATCHES[-1]:
            figure.add_vline(x=at, line_dash="dot", line_color=theme.GREY, line_width=1.5)
            figure.add_annotation(
                x=np.log10(at),
                y=y,
                yref="paper",
                yanchor=anchor,
                xanchor=side,
                showarrow=False,
                text=f" {text}: {at:,.0f} ",
                align=side,
            )
    ticks = [4.0**i for i in range(7)]
    return layout(
        figure,
        340,
        margin={"l": 8, "r": 8, "t": 12, "b": 8},
        xaxis={
            "title": {"text": "sequences that generate at a time"},
            "type": "log",
            "range": [0, np.log10(4096)],
            "tickvals": ticks,
            "ticktext": [f"{t:,.0f}" for t in ticks],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={
            "title": {"text": "speed by speed without drafts"},
            "range": [0, max(*values, 1.0) * 1.12],
            "gridcolor": GRID,
            "zeroline": False,
        },
    )


def over_time(result: SpeculationResult) -> go.Figure | None:
    """Acceptance over time; None where fewer than three stretches tell."""
    rows = result.observed.over_time
    if rows is None or len(rows) < 3 or rows["ts_ns"].isna().any():
        return None
    shares = rows["acceptance_rate"].to_numpy(dtype=float) * 100
    seconds = (rows["ts_ns"] - rows["ts_ns"].min()).to_numpy(dtype=float) / 1e9
    kept = reduced(shares)
    figure = go.Figure(
        go.Scatter(
            x=seconds[kept],
            y=shares[kept],
            mode="lines",
            line={"color": MEASURED, "width": 1.5},
            hovertemplate="%{x:,.4r} s: %{y:,.3r} % accepted<extra></extra>",
        )
    )
    reference_line(figure, result.observed.rate * 100, f"all together {fmt.share(result.observed.rate)}")
    return layout(
        figure,
        260,
        xaxis={"title": {"text": "time since the first sample (s)"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"title": {"text": "draft tokens accepted (%)"}, "gridcolor": GRID, "zeroline": False, "range": [0, 104]},
    )

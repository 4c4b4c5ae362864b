"""Objectives: attainment against each threshold, over TTFT and TPOT at once, and misses by cause."""

import numpy as np
import plotly.graph_objects as go

from analyzers.serving.objective_causes import CAUSES
from analyzers.serving.objectives import SloResult
from app import theme
from app.figures.axes import PLAIN, log_axis
from app.figures.base import GRID, layout, plain
from app.figures.latencies import COLOURS
from app.questions.objectives.words import OBJECTIVES
from errors import format as fmt

HEIGHT = 400
CAUSE_COLOURS = {
    "failed": theme.COLOURS["failed_requests"],
    "queue": theme.COLOURS["scheduling"],
    "prefill": theme.COLOURS["prefill"],
    "first_token": theme.COLOURS["held"],
    "preempted": theme.COLOURS["preemption_recompute"],
    "stalled_by_prefill": theme.COLOURS["exposed_copies"],
    "decode": theme.COLOURS["decode"],
    "length": theme.COLOURS["custom"],
    "unknown": theme.COLOURS["unattributed"],
}
CAUSE_NAMES = {
    "failed": "failed",
    "queue": "queue",
    "prefill": "prefill",
    "first_token": "first token",
    "preempted": "preempted",
    "stalled_by_prefill": "stalled by prefill",
    "decode": "slow decode",
    "length": "length",
    "unknown": "unknown",
}
GOOD = theme.COLOURS["served"]
DASHES = {"ttft_s": "solid", "tpot_s": "dash", "e2e_s": "dashdot", "itl_s": "dot"}


def curves(result: SloResult) -> go.Figure:
    """Attainment (left) and goodput (right) as each threshold alone is moved; the chosen ones as points."""
    figure = go.Figure()
    for name, rows in result.curves.groupby("objective", sort=False):
        most = result.objectives[name]
        colour = COLOURS[name] if name != "itl_s" else theme.COLOURS["preemption_recompute"]
        figure.add_trace(
            go.Scatter(
                x=rows["threshold_s"],
                y=rows["attainment"] * 100,
                name=OBJECTIVES[name],
                mode="lines",
                line={"color": colour, "width": 2.5, "dash": DASHES[name], "shape": "hv"},
                hovertext=[
                    f"<b>{OBJECTIVES[name]}</b> within {fmt.duration(t)}{_rate(result, a)}"
                    for t, a in zip(rows["threshold_s"], rows["attainment"], strict=True)
                ],
                hovertemplate="%{y:.3~g} % with %{hovertext}<extra></extra>",
            )
        )
        figure.add_trace(
            go.Scatter(
                x=[most],
                y=[result.attainment * 100],
                mode="markers+text",
                showlegend=False,
                marker={"size": 11, "color": colour, "line": {"width": 1.5, "color": theme.GREY}},
                text=[f"{OBJECTIVES[name]} {fmt.duration(most)}"],
                textposition="top center",
                cliponaxis=False,
                hovertemplate=f"chosen: {fmt.duration(most)}<extra></extra>",
            )
        )
    x = result.curves["threshold_s"].to_numpy(dtype=float)
    high = max(float(x.max()), *result.objectives.values())
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        xaxis={
            "title": {"text": "threshold of one objective, the others held"},
            **log_axis(max(float(x[x > 0].min()), high * 1e-4), high),
        },
        yaxis={"title": {"text": "requests that keep all objectives (%)"}, "range": [0, 104], **PLAIN},
    )


def _rate(result: SloResult, attainment: float) -> str:
    best = result.best_goodput_per_s
    return "" if best is None else f"<br>{fmt.number(attainment * best)} good requests per second"


def surface(result: SloResult) -> go.Figure | None:
    """Attainment over thresholds of TTFT and TPOT at once; the chosen point, and lines at 50, 90 and 99 %."""
    table = result.surface
    if table is None:
        return None
    x, y = np.log10(table.index.to_numpy(dtype=float)), np.log10(table.columns.to_numpy(dtype=float))
    z = table.to_numpy().T * 100
    figure = go.Figure(
        go.Heatmap(
            x=x,
            y=y,
            z=np.round(z, 2),
            zmin=0,
            zmax=100,
            colorscale=SCALE,
            hovertext=[[f"TTFT within {fmt.duration(10**a)}, TPOT within {fmt.duration(10**b)}" for a in x] for b in y],
            hovertemplate="%{z:.3~g} % keep %{hovertext}<extra></extra>",
            colorbar={"title": {"text": "kept (%)", "side": "right"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    figure.add_trace(
        go.Contour(
            x=x,
            y=y,
            z=z,
            showscale=False,
            hoverinfo="skip",
            line={"color": "#1A1A1A", "width": 1.2},
            contours={
                "coloring": "none",
                "start": 90,
                "end": 90,
                "size": 1,
                "showlabels": True,
                "labelfont": {"size": 12, "color": "#1A1A1A"},
            },
        )
    )
    chosen = [result.objectives.get(n) for n in ("ttft_s", "tpot_s")]
    if None not in chosen:
        right = np.log10(chosen[0]) > x.mean()
        figure.add_trace(
            go.Scatter(
                x=[np.log10(chosen[0])],
                y=[np.log10(chosen[1])],
                mode="markers+text",
                marker={"size": 13, "symbol": "circle-open", "color": "#1A1A1A", "line": {"width": 2.5}},
                text=[f" {fmt.share(result.attainment)} "],
                textposition="bottom left" if right else "bottom right",
                hoverinfo="skip",
                textfont={"color": "#1A1A1A", "size": 13},
            )
        )
    axes = []
    for title, values in (("TTFT within", table.index), ("TPOT within", table.columns)):
        scale = log_axis(float(values.min()), float(values.max()))
        axes.append(
            {
                "title": {"text": title},
                "tickvals": np.log10(scale["tickvals"]),
                "ticktext": scale["ticktext"],
                "range": [np.log10(float(values.min())), np.log10(float(values.max()))],
                "showgrid": False,
            }
        )
    return layout(figure, 460, xaxis=axes[0], yaxis=axes[1])


SCALE = [(0, "#E9C9CE"), (0.5, "#F3F1EC"), (0.9, "#A8D3C6"), (1, "#5FB3A1")]  # light: lines and labels on it are dark


def misses(result: SloResult) -> go.Figure:
    """All sent requests as one bar: good, and missed by cause."""
    sent = result.judged or 1
    parts = [("in time", round(result.attainment * sent), GOOD, "kept all objectives")]
    parts += [
        (CAUSE_NAMES[c], n, CAUSE_COLOURS[c], CAUSES[c])
        for c, n in sorted(result.misses.items(), key=lambda item: -item[1])
    ]
    figure = go.Figure()
    for name, count, colour, meaning in parts:
        if not count:
            continue
        share = count / sent
        figure.add_trace(
            go.Bar(
                orientation="h",
                x=[share * 100],
                y=[""],
                name=plain(name),
                text=[f"{name}<br>{fmt.whole_share(share)}"],
                textposition="inside" if share > 0.06 else "none",
                insidetextanchor="middle",
                textangle=0,
                textfont={"color": theme.text_on(colour)},
                marker={
                    "color": colour,
                    "line": {"width": 1, "color": "rgba(128,128,128,0.6)"},
                    "pattern": {"shape": "/" if name == "unknown" else ""},
                },
                hovertemplate=f"<b>{name}</b>: {count:,} requests {meaning}<extra></extra>",
            )
        )
    return layout(
        figure,
        150,
        barmode="stack",
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.05, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={
            "title": {"text": "requests (%)"},
            "range": [0, 100.5],
            "dtick": 20,
            "gridcolor": GRID,
            "fixedrange": True,
        },
        yaxis={"showticklabels": False, "fixedrange": True},
        uniformtext={"minsize": 11, "mode": "hide"},
    )

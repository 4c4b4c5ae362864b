"""Latency: TTFT split into queue and prefill, distributions, latency over time, gaps between tokens, tenants, loads."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analyzers.serving.latency import ServingResult
from analyzers.serving.latency.anatomy import cumulative
from app import theme
from app.figures.axes import PLAIN, log_axis, time_unit
from app.figures.base import layout, plain, reduced
from app.figures.latencies import COLOURS, PREFILL, QUEUE
from app.questions.latency.words import NAMES
from errors import format as fmt

HEIGHT = 430
LABELS = {"ttft_s": 64, "queue_s": 22, "prefill_s": 42, "tpot_s": 74, "itl_s": 32, "e2e_s": 36}  # at which per cent
MOST_TENANTS, MOST_LOADS = 12, 40


def ttft_split(result: ServingResult) -> go.Figure | None:
    """Requests in order of TTFT: how much of it was queue, how much prefill; TTFT alone where that is not told."""
    rows = result.split
    if not len(rows):
        return None
    unit, factor = time_unit(float(rows["ttft_s"].max()))
    x = np.insert(rows["share"].to_numpy() * 100, 0, 0.0)  # each group is drawn as a step up to its share
    figure = go.Figure()
    told = rows["queue_s"].notna().all() and rows["prefill_s"].notna().all()
    parts = (
        [("queue", "queue_s", QUEUE), ("prefill", "prefill_s", PREFILL)]
        if told
        else [("TTFT", "ttft_s", COLOURS["ttft_s"])]
    )
    base = np.zeros(len(rows))
    for name, column, colour in parts:
        y = rows[column].to_numpy()
        base = base + y
        figure.add_trace(
            go.Scatter(
                x=x,
                y=np.insert(base, 0, base[0]) * factor,
                name=name,
                mode="lines",
                line={"width": 1, "color": colour, "shape": "vh"},
                fill="tozeroy" if base is y or len(figure.data) == 0 else "tonexty",
                fillcolor=colour,
                hovertext=[
                    "",
                    *(f"{name} {fmt.duration(v)} of {fmt.duration(t)}" for v, t in zip(y, rows["ttft_s"], strict=True)),
                ],
                hovertemplate="the fastest %{x:.0f} %: %{hovertext}<extra></extra>",
            )
        )
    for which in ("p50", "p99"):
        if (value := result.load.statistic("ttft_s", which)) is not None:
            figure.add_annotation(
                x=50 if which == "p50" else 99,
                y=value * factor,
                text=f"{which} {fmt.duration(value)}",
                arrowhead=0,
                arrowcolor=theme.GREY,
                ax=-46,
                ay=-26,
                font_size=12,
            )
    return layout(
        figure,
        HEIGHT,
        showlegend=bool(told),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={
            "title": {"text": "requests in order of their time to first token (%)"},
            "range": [0, 100.5],
            "dtick": 20,
            **PLAIN,
        },
        yaxis={"title": {"text": f"time to first token ({unit})"}, "rangemode": "tozero", **PLAIN},
    )


def distributions(result: ServingResult) -> go.Figure | None:
    """Cumulative distributions of all latencies on one logarithmic axis of time; p50 and p99 as lines across."""
    tables = dict(result.distributions)
    if result.gaps:
        tables["itl_s"] = result.gaps.distribution
    tables = {n: t[t["value"] > 0] for n, t in tables.items()}
    tables = {n: tables[n] for n in NAMES if n in tables and len(tables[n])}
    if not tables:
        return None
    figure = go.Figure()
    dashes = {
        "ttft_s": "solid",
        "queue_s": "dash",
        "prefill_s": "dashdot",
        "tpot_s": "solid",
        "itl_s": "dot",
        "e2e_s": "solid",
    }
    for name, table in tables.items():
        figure.add_trace(
            go.Scatter(
                x=table["value"],
                y=table["share"] * 100,
                name=NAMES[name],
                mode="lines",
                line={"color": COLOURS[name], "width": 2, "dash": dashes[name], "shape": "hv"},
                hovertext=[f"<b>{NAMES[name]}</b> within {fmt.duration(v)}" for v in table["value"]],
                hovertemplate="%{y:.3~g} %: %{hovertext}<extra></extra>",
            )
        )
        at = table[table["share"] * 100 >= LABELS[name]].iloc[0]
        figure.add_annotation(
            x=np.log10(at["value"]),
            y=at["share"] * 100,
            text=f"<b>{NAMES[name]}</b>",
            xanchor="right" if name == "queue_s" else "left",
            yanchor="bottom" if name == "queue_s" else "top",
            showarrow=False,
            font_size=13,
        )
    for share, text in ((50, "p50"), (99, "p99")):
        figure.add_hline(y=share, line_dash="dash", line_color=theme.GREY, line_width=1)
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=share, yanchor="top", text=text, showarrow=False, font_size=12
        )
    low = min(_low(t) for t in tables.values())
    high = max(float(t["value"].max()) for t in tables.values())
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        xaxis={"title": {"text": "time"}, **log_axis(low, high)},
        yaxis={"title": {"text": "requests (%); of ITL: gaps"}, "range": [0, 101], **PLAIN},
    )


def _low(table: pd.DataFrame) -> float:
    """Where a distribution begins to matter: a queue that was empty for most would stretch the axis to microseconds."""
    return float(table.loc[table["share"] >= 0.01, "value"].min()) or float(table["value"].min())


def over_time(result: ServingResult, metric: str) -> go.Figure | None:
    """One latency by time of arrival: every request (extremes kept where there are many), median and p99 as lines."""
    rows = result.rows[result.rows["arrival_s"].notna() & result.rows[metric].notna()]
    rows = rows[rows[metric].astype(float) > 0]
    if not len(rows):
        return None
    some = rows.iloc[reduced(rows[metric].to_numpy(dtype=float))]
    figure = go.Figure(
        go.Scattergl(
            x=some["arrival_s"],
            y=some[metric].astype(float),
            mode="markers",
            name="request",
            marker={"size": 5, "color": COLOURS[metric], "opacity": 0.55},
            hovertext=[
                f"<b>{plain(r.id)}</b><br>{fmt.duration(float(r.y))}<br>{r.prompt_tokens:,} tokens in, "
                f"{r.output_tokens:,} out"
                for r in some.assign(y=some[metric])[["id", "y", "prompt_tokens", "output_tokens"]]
                .fillna({"prompt_tokens": 0, "output_tokens": 0})
                .itertuples()
            ],
            hovertemplate="%{hovertext}<br>arrived at %{x:.2f} s<extra></extra>",
        )
    )
    table = result.windows
    if f"{metric}_p50" in table:
        middle = (table["start_s"] + table["end_s"]) / 2
        for which, dash in (("p50", "solid"), ("p99", "dot")):
            figure.add_trace(
                go.Scatter(
                    x=middle,
                    y=table[f"{metric}_{which}"],
                    mode="lines",
                    name=f"{which} of a stretch of time",
                    line={"color": theme.GREY, "width": 2, "dash": dash},
                    hoverinfo="skip",
                )
            )
    values = rows[metric].to_numpy(dtype=float)
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": "arrival, since the first (s)"}, **PLAIN},
        yaxis={"title": {"text": NAMES[metric]}, **log_axis(float(np.quantile(values, 0.005)), float(values.max()))},
    )


def gap_heat(result: ServingResult, dark: bool = False) -> go.Figure | None:
    """Gaps between tokens over time: brightness is how many, on a logarithmic scale; the threshold of a stall drawn."""
    found = result.gaps
    if found is None or found.heat is None:
        return None
    heat = found.heat
    x = (heat.time_edges_s[:-1] + heat.time_edges_s[1:]) / 2
    y = np.sqrt(heat.gap_edges_s[:-1] * heat.gap_edges_s[1:])
    counts = heat.counts.T.astype(float)
    shown = np.where(counts > 0, np.log10(np.maximum(counts, 1)), np.nan)
    most = int(np.ceil(np.nanmax(shown))) if np.isfinite(shown).any() else 0
    figure = go.Figure(
        go.Heatmap(
            x=x,
            y=np.log10(y),
            z=np.round(shown, 2),
            customdata=counts,
            colorscale=SCALE_DARK if dark else SCALE,
            zmin=0,
            zmax=max(float(np.nanmax(shown)), 0.5),
            hovertext=[[f"{fmt.duration(g)}"] * len(x) for g in y],
            hovertemplate="about %{hovertext} at %{x:.3~g} s: %{customdata:,} gaps<extra></extra>",
            colorbar={
                "title": {"text": "gaps", "side": "right"},
                "thickness": 12,
                "outlinewidth": 0,
                "tickvals": list(range(most + 1)),
                "ticktext": [f"{10**p:,}" for p in range(most + 1)],
            },
        )
    )
    marks = ((found.threshold_s, "longer is a stall"), (found.usual_s, "median"), (found.p99_s, "p99"))
    for at, (value, text) in enumerate(marks):
        if heat.gap_edges_s[0] <= value <= heat.gap_edges_s[-1]:
            figure.add_hline(
                y=float(np.log10(value)), line_dash=("dash", "dot", "dot")[at], line_width=1.5, line_color=theme.GREY
            )
            figure.add_annotation(
                x=1,
                xref="paper",
                xanchor="right",
                y=float(np.log10(value)),
                yanchor="bottom",
                showarrow=False,
                text=f"{text} {fmt.duration(value)}",
                font_size=12,
            )
    scale = log_axis(float(heat.gap_edges_s[0]), float(heat.gap_edges_s[-1]))
    return layout(
        figure,
        HEIGHT,
        xaxis={"title": {"text": "time, since the first arrival (s)"}, "showgrid": False},
        yaxis={
            "title": {"text": "gap between pieces of output"},
            "tickvals": np.log10(scale["tickvals"]),
            "ticktext": scale["ticktext"],
            "range": scale["range"],
            "showgrid": False,
        },
    )


SCALE = [(0, "#D5EBDF"), (0.35, "#4FA37A"), (0.7, "#1F6B4C"), (1, "#0B2E20")]
SCALE_DARK = [(0, "#173A2C"), (0.35, "#2F7A59"), (0.7, "#6FC39A"), (1, "#E4F6EC")]


def tenants(result: ServingResult, metric: str) -> go.Figure | None:
    """One small distribution for each tenant, all requests' in grey behind it."""
    if not len(result.tenants):
        return None
    names = result.tenants["tenant"].head(MOST_TENANTS).tolist()
    tenant = result.rows["tenant"].astype(str).where(result.rows["tenant"].notna(), "not told")
    every = cumulative(result.rows[metric].astype(float), 120)
    every = every[every["value"] > 0]
    if not len(every):
        return None
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.16 / rows,
        subplot_titles=[plain(n) for n in names],
    )
    for i, name in enumerate(names):
        own = cumulative(result.rows.loc[(tenant == name).to_numpy(), metric].astype(float), 120)
        own = own[own["value"] > 0]
        place = {"row": i // columns + 1, "col": i % columns + 1}
        figure.add_trace(
            go.Scatter(
                x=every["value"],
                y=every["share"] * 100,
                mode="lines",
                hoverinfo="skip",
                line={"color": theme.GREY, "width": 1.5, "dash": "dot"},
            ),
            **place,
        )
        figure.add_trace(
            go.Scatter(
                x=own["value"],
                y=own["share"] * 100,
                mode="lines",
                line={"color": COLOURS[metric], "width": 2.5},
                hovertext=[f"<b>{plain(name)}</b> within {fmt.duration(v)}" for v in own["value"]],
                hovertemplate="%{y:.3~g} %: %{hovertext}<extra></extra>",
            ),
            **place,
        )
    figure.update_xaxes(**log_axis(_low(every), float(every["value"].max())))
    figure.update_xaxes(nticks=5, tickangle=0)
    figure.update_yaxes(range=[0, 101], **PLAIN)
    figure.update_yaxes(title_text="requests (%)", col=1)
    return layout(figure, 60 + 190 * rows, margin={"l": 8, "r": 8, "t": 28, "b": 8})


def loads(result: ServingResult, metric: str) -> go.Figure | None:
    """Each load of a load test: from the median to the p99 of one latency, in the order of the inputs."""
    known = [x for x in result.loads if x.statistic(metric, "p50") and x.stage is not None]
    if len(known) < 2:
        return None
    known = known[:MOST_LOADS]
    middle = np.array([x.statistic(metric, "p50") for x in known])
    high = np.array([x.statistic(metric, "p99") or np.nan for x in known])
    names = [plain(x.stage) for x in known]
    figure = go.Figure()
    for name, values, symbol in (("p50", middle, "circle"), ("p99", high, "diamond-open")):
        figure.add_trace(
            go.Scatter(
                x=values,
                y=names,
                mode="markers",
                name=name,
                marker={"size": 10, "symbol": symbol, "color": COLOURS[metric], "line": {"width": 1.8}},
                hovertext=[
                    f"<b>{n}</b><br>{name} {fmt.duration(v)}<br>{fmt.number(x.output_tokens_per_s)} output tokens/s"
                    for n, v, x in zip(names, values, known, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    for n, a, b in zip(names, middle, high, strict=True):
        figure.add_trace(
            go.Scatter(
                x=[a, b],
                y=[n, n],
                mode="lines",
                line={"color": theme.GREY, "width": 1.5},
                hoverinfo="skip",
                showlegend=False,
            )
        )
    return layout(
        figure,
        90 + 24 * len(known),
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": NAMES[metric]}, **log_axis(float(middle.min()), float(np.nanmax([high, middle])))},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "showgrid": False},
    )

"""Load curves: asked against answered, latency over load, and what speed costs; several runs in one figure."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.serving.load import LoadResult
from analyzers.serving.load.knee import AXES, Knee
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.questions.load.steady_figure import HEIGHT, LEGEND, shade
from app.questions.load.words import level
from errors import format as fmt

METRICS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "End to end"}
METRIC_NAMES = {"ttft": "time to first token", "tpot": "time per output token", "e2e": "end-to-end latency"}
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
LABEL_ROOM = 130
LINE_PX = 15  # between two labels
WIDE = 0.2  # of the axis: what a label covers to the right
NEAR = 0.03  # of the axes: labels of nearer marks would cover one another
STATISTICS = (("p99", "solid", 2.5), ("mean", "dash", 2.0), ("p50", "dot", 2.0))
Named = tuple[str, LoadResult]  # a run's name and its loads


def short(stage: str, result: LoadResult) -> str:
    """A load as a label: where it stands on its axis."""
    load = result.row(stage)["load"]
    return level(result.axis, load) if load == load else stage


def curve(runs: Sequence[Named]) -> go.Figure:
    """Asked against answered, with the line of a server that keeps up; by concurrency: tokens/s against it."""
    first = runs[0][1]
    open_loop = first.axis == "rate"
    y = "request_rate_per_s" if open_loop else "output_tokens_per_s"
    figure, ends = go.Figure(), []
    for n, (name, result) in enumerate(runs):
        if result.axis == first.axis:
            figure.add_trace(_line(result, name, n, result.rows["load"], result.rows[y], len(runs)))
            ends.append(_end(result.rows["load"], result.rows[y], name if len(runs) > 1 else "answered"))
    ends += _ideal(figure, first, y)
    _knee(figure, first.knee)
    if first.knee and first.knee.capacity_per_s:
        mid = first.knee.capacity_per_s[1] if open_loop else first.knee.capacity_output_tokens_per_s
        unit = "requests/s" if open_loop else "tokens/s"
        if mid:
            figure.add_hline(y=mid, line_dash="dash", line_color=theme.GREY, line_width=1.5)
            figure.add_annotation(
                xref="paper",
                x=0,
                y=mid,
                xanchor="left",
                yanchor="bottom",
                showarrow=False,
                text=f"capacity {fmt.number(mid)} {unit}",
                font_size=12,
            )
    words = "requests/s answered" if open_loop else "output tokens/s"
    return _laid(figure, AXES[first.axis], words, ends)


def latency(runs: Sequence[Named], metric: str) -> go.Figure:
    """p99, mean and median over load, logarithmic; of further runs p99 alone."""
    first = runs[0][1]
    figure, ends = go.Figure(), []
    drawn = pd.concat([r.rows[[f"{metric}_{s}_s" for s, *_ in STATISTICS]] for _, r in runs], ignore_index=True)
    unit, factor = time_unit(float(np.nanmedian(drawn))) if drawn.notna().any().any() else ("s", 1.0)
    for n, (name, result) in enumerate(r for r in runs if r[1].axis == first.axis):
        for statistic, dash, width in STATISTICS if n == 0 else STATISTICS[:1]:
            values = result.rows[f"{metric}_{statistic}_s"]
            if values.notna().any():
                figure.add_trace(
                    _line(
                        result,
                        f"{name} {statistic}",
                        n,
                        result.rows["load"],
                        values * factor,
                        len(runs),
                        dash=dash if n == 0 else None,
                        width=width,
                    )
                )
                label = {"p50": "median"}.get(statistic, statistic)
                ends.append(_end(result.rows["load"], values * factor, f"{name} {label}" if len(runs) > 1 else label))
    if limit := first.objectives.get(metric):
        figure.add_hline(y=limit * factor, line_dash="dash", line_color=theme.THIN["wasted_progress"], line_width=2)
        figure.add_annotation(
            xref="paper",
            x=0,
            y=math.log10(limit * factor),
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            text=f"objective {fmt.duration(limit)}",
            font_size=12,
        )
    _knee(figure, first.knee)
    return _laid(figure, AXES[first.axis], f"{METRIC_NAMES[metric]} ({unit})", ends, log=True)


def pareto(runs: Sequence[Named]) -> go.Figure | None:
    """Output tokens/s per chip (of the whole where chips are unknown) against tokens/s of one user."""
    per_chip = all(r.chips for _, r in runs)
    y = "tokens_per_s_per_chip" if per_chip else "output_tokens_per_s"
    title = "output tokens/s per chip" if per_chip else "output tokens/s of the whole (chips unknown)"
    return _front(runs, "tokens_per_s_per_user", y, "pareto", "output tokens/s of one user (1 / mean TPOT)", title)


def cost(runs: Sequence[Named]) -> go.Figure | None:
    """Dollars per million output tokens against p99 TTFT (of end-to-end latency where TTFT is unknown)."""
    by_ttft = any(r.rows["ttft_p99_s"].notna().any() for _, r in runs)
    x = "ttft_p99_s" if by_ttft else "e2e_p99_s"
    words = f"p99 {'time to first token' if by_ttft else 'end-to-end latency'} (s)"
    return _front(runs, x, "usd_per_m_output_tokens", "pareto_cost", words, "dollars per million output tokens", True)


def _front(
    runs: Sequence[Named], x: str, y: str, front: str, x_words: str, y_words: str, log: bool = False
) -> go.Figure | None:
    figure = go.Figure()
    for n, (name, result) in enumerate(runs):
        rows = result.rows[result.rows[x].notna() & result.rows[y].notna()]
        if not len(rows):
            continue
        on = rows[rows[front]].sort_values(x)
        figure.add_trace(
            go.Scatter(
                x=on[x],
                y=on[y],
                mode="lines",
                hoverinfo="skip",
                showlegend=False,
                line={"color": shade(n), "width": 2, "dash": DASHES[n % 5]},
            )
        )
        figure.add_trace(
            go.Scatter(
                x=rows[x],
                y=rows[y],
                mode="markers+text",
                name=plain(name),
                text=_apart(rows, x, y, [short(s, result) for s in rows["stage"]]),
                textposition="top right",
                textfont_size=11,
                marker={
                    "color": shade(n),
                    "size": 10,
                    "line": {"width": 2, "color": shade(n)},
                    "symbol": [SYMBOLS[n % 5] + ("" if f else "-open") for f in rows[front]],
                },
                hovertext=_hovers(result, rows, name, len(runs)),
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    if not figure.data:
        return None
    _laid(figure, x_words, y_words, [], log, log_x=log)
    more = {"t": 52} if len(runs) > 1 else {}
    return figure.update_layout(showlegend=len(runs) > 1, legend=LEGEND, margin=more)


def _apart(rows: pd.DataFrame, x: str, y: str, texts: list[str]) -> list[str]:
    """Labels of marks that do not lie upon one another: of such only the first, in order of the load, has one."""
    at = rows[[x, y]].to_numpy(dtype=float)
    spread = np.ptp(at, axis=0)
    at = at / np.where(spread > 0, spread, 1)
    kept: list[int] = []
    for i, place in enumerate(at):
        if all(np.abs(place - at[k]).max() > NEAR for k in kept):
            kept.append(i)
    return [t if i in kept else "" for i, t in enumerate(texts)]


def _line(
    result: LoadResult,
    name: str,
    n: int,
    x: pd.Series,
    y: pd.Series,
    runs: int,
    dash: str | None = None,
    width: float = 2.5,
) -> go.Scatter:
    known = (x.notna() & y.notna() & np.isfinite(x)).to_numpy()
    rows = result.rows[known]
    symbol = [
        SYMBOLS[n % 5] + ("-open" if beyond else "") for beyond in rows["falls_behind"] | rows["out_of_proportion"]
    ]
    return go.Scatter(
        x=x[known],
        y=y[known],
        mode="lines+markers",
        name=plain(name),
        line={"color": shade(n), "width": width, "dash": dash or DASHES[n % 5]},
        marker={"symbol": symbol, "size": 9, "color": shade(n), "line": {"width": 2, "color": shade(n)}},
        hovertext=_hovers(result, rows, name, runs),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _hovers(result: LoadResult, rows: pd.DataFrame, name: str, runs: int) -> list[str]:
    said = []
    for _, r in rows.iterrows():
        lines = [f"<b>{plain(r['stage'])}</b>" + (f" · {plain(name)}" if runs > 1 else "")]
        lines.append(
            f"{level(result.axis, r['load'])} {AXES[result.axis]}, {fmt.number(r['request_rate_per_s'])} answered/s"
        )
        lines.append(f"{fmt.number(r['output_tokens_per_s'])} output tokens/s, {fmt.number(r['in_flight'])} in flight")
        for m in METRICS:
            mean, p50, p99 = (fmt.duration(r[f"{m}_{s}_s"]) for s in ("mean", "p50", "p99"))
            lines += [f"{METRICS[m]} mean {mean}, p50 {p50}, p99 {p99}"] if mean != fmt.NO_VALUE else []
        if r["usd_per_m_output_tokens"] == r["usd_per_m_output_tokens"]:
            lines.append(f"{fmt.usd(r['usd_per_m_output_tokens'])} per million output tokens")
        if r["roofline_share"] == r["roofline_share"]:
            lines.append(f"decode step at {fmt.share(r['roofline_share'], 2)} of its roofline")
        said.append("<br>".join(lines))
    return said


def _end(x: pd.Series, y: pd.Series, text: str) -> tuple[float, float, str] | None:
    """Where a line ends, and what it is called there."""
    known = (x.notna() & y.notna() & np.isfinite(x)).to_numpy()
    return (float(x[known].iloc[-1]), float(y[known].iloc[-1]), text) if known.any() else None


def _end_labels(figure: go.Figure, ends: list, seen: list[float], log: bool, log_x: bool) -> None:
    """Lines named where they end, moved apart where they would cover one another."""

    def scaled(v: float) -> float:
        return math.log10(v) if log and v > 0 else v

    ends = sorted((e for e in ends if e), key=lambda e: e[1])
    low, high = (scaled(v) for v in (min(seen, default=0.0) if log else 0.0, max(seen, default=1.0)))
    per_unit = (HEIGHT - 90) / (high - low) if high > low else 0.0
    wide = WIDE * (max((e[0] for e in ends), default=0.0))
    put: list[tuple[float, float]] = []
    for x, y, text in ends:
        at = (scaled(y) - low) * per_unit
        shown = max([at, *(other + LINE_PX for place, other in put if abs(place - x) < wide)])
        put.append((x, shown))
        figure.add_annotation(
            x=math.log10(x) if log_x and x > 0 else x,
            y=scaled(y),
            xanchor="left",
            yanchor="middle",
            showarrow=False,
            xshift=10,
            yshift=shown - at,
            text=plain(text)[:40],
            font_size=12,
        )


def _ideal(figure: go.Figure, result: LoadResult, y: str) -> list[tuple[float, float, str]]:
    """Answered = asked; by concurrency: in proportion to the lightest load. Returns where it ends."""
    rows = result.rows[result.rows["load"].notna() & result.rows[y].notna() & np.isfinite(result.rows["load"])]
    if len(rows) < 2 or result.axis == "answered":
        return []
    low, high = float(rows["load"].min()), float(rows["load"].max())
    slope = 1.0 if result.axis == "rate" else float(rows[y].iloc[0]) / low
    words = "answered = asked" if result.axis == "rate" else "in proportion"
    figure.add_trace(
        go.Scatter(
            x=[low, high],
            y=[slope * low, slope * high],
            mode="lines",
            hoverinfo="skip",
            line={"color": theme.GREY, "dash": "dot", "width": 1.5},
        )
    )
    return [(high, slope * high, words)]


def _knee(figure: go.Figure, knee: Knee | None) -> None:
    """A band from the last load below the knee to the first beyond."""
    if knee is None or knee.low_load is None or not knee.low_load < knee.high_load:
        return
    figure.add_vrect(
        x0=knee.low_load, x1=knee.high_load, fillcolor=theme.COLOURS["scheduling"], opacity=0.18, line_width=0
    )
    figure.add_annotation(
        x=(knee.low_load + knee.high_load) / 2,
        yref="paper",
        y=1,
        yanchor="bottom",
        showarrow=False,
        text="knee",
    )


def _laid(figure: go.Figure, x: str, y: str, ends: list, log: bool = False, log_x: bool = False) -> go.Figure:
    def axis(words: str, on: bool, values: list[float]) -> dict[str, Any]:
        kind = {"type": "log", **_ticks(values)} if on else {"type": "linear", "rangemode": "tozero"}
        return {"title": {"text": words}, "gridcolor": GRID, "zeroline": False, **kind}

    seen = [[float(v) for t in figure.data for v in (t[k] if t[k] is not None else ()) if v == v] for k in ("x", "y")]
    _end_labels(figure, ends, [v for v in seen[1] if v > 0 or not log], log, log_x)
    return layout(
        figure,
        HEIGHT,
        hovermode="closest",
        dragmode="zoom",
        margin={"l": 8, "r": LABEL_ROOM, "t": 32, "b": 8},
        xaxis=axis(x, log_x, seen[0]),
        yaxis=axis(y, log, seen[1]),
    )


def _ticks(values: list[float]) -> dict[str, Any]:
    """1, 2 and 5 of each power of ten within what is drawn."""
    values = [v for v in values if v > 0 and math.isfinite(v)]
    if not values:
        return {}
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    ticks = [m * 10.0**p for p in powers for m in steps]
    return {"tickvals": ticks, "ticktext": [fmt.number(t, 1) for t in ticks]}

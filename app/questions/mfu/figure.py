"""MFU over the steps, MFU beside HFU and EMFU, and what a token costs by each convention."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from analyzers.flops.fingerprint import SAME
from analyzers.flops.mfu import MfuResult
from app import theme
from app.figures.base import GRID, each, layout, plain
from app.figures.long_series import is_long, long_series, other_steps, steady
from app.figures.once import drawn_once
from app.figures.step_marks import kept_line, step_marks
from app.questions.mfu.words import TITLES
from catalog.flops import FlopsPerToken
from errors import format as fmt

HEIGHT, SMALL = 420, 300
USEFUL = theme.COLOURS["useful_maths"]
HEADROOM = 1.18  # above the best step, where impossible ones are drawn at the edge


def tint(colour: str, strength: float) -> str:
    """A colour let through to the page by so much; unlike plotly's opacity the legend shows it too."""
    return f"rgba({','.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))},{strength})"


PARTS = (  # of a token's FLOPs: key, label, colour, pattern
    ("feedforward", "feed-forward", USEFUL, ""),
    ("projections", "attention weights", tint(USEFUL, 0.7), ""),
    ("output", "output projection", tint(USEFUL, 0.45), ""),
    ("attention", "scores and values", theme.COLOURS["below_roofline"], "/"),
    ("mtp", "prediction layers", theme.COLOURS["custom"], "."),
    ("embedding", "not multiplied", theme.COLOURS["other"], "x"),
    ("recomputation", "recomputation", theme.COLOURS["recomputation"], ""),
)


@drawn_once
def over_steps(result: MfuResult) -> go.Figure:
    """MFU (TFLOP/s where no peak is known) of each step over its number, with the best step and the run's average."""
    share = result.mfu is not None
    rows = result.rows.reset_index(drop=True)
    y = rows["mfu"] * 100 if share else rows["tflops_per_s_per_chip"]
    false, kept = rows["implausible"] != "", rows["kept"].astype(bool)
    first = rows["first"].astype(bool)
    usual = kept & ~first & ~false & y.notna()
    highest = float(y[~false].max()) if y[~false].notna().any() else 1.0
    rows = rows.assign(y=y.clip(upper=highest * HEADROOM), true=y)
    figure = go.Figure()
    series = None
    if is_long(int(usual.sum())):
        series = long_series(rows[usual], "%" if share else "TFLOP/s per chip", _hovers)
        series.draw(figure)
    else:
        figure.add_trace(kept_line(rows[usual], "y", "kept", _hovers))
    for name, some, colour, symbol in (
        ("first of its attempt", first & kept & ~false, theme.COLOURS["program_startup"], "diamond"),
        ("lost and taken again", ~kept & ~false, theme.THIN["wasted_progress"], "circle-open"),
        ("cannot be true", false, theme.GREY, "triangle-up-open"),
    ):
        if not (some & y.notna()).any():
            continue
        if series is not None:
            figure.add_trace(other_steps(series.found, rows[some & y.notna()], name, colour, symbol, _hovers))
        else:
            figure.add_trace(step_marks(rows[some & y.notna()], "true", name, colour, symbol, _hovers))
    if share and result.best and result.average:
        _level(figure, result.best * 100, f"best step {fmt.share(result.best)}", "bottom")
        _level(figure, result.average * 100, f"average over the wall time {fmt.share(result.average)}", "top")
    layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        hovermode="closest",
        dragmode="zoom",
        xaxis={"title": {"text": "step"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "title": {"text": "MFU (%)" if share else "TFLOP/s per chip"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, highest * (HEADROOM + 0.02)],
        },
    )
    return steady(figure) if series is not None else figure


def _hovers(rows: pd.DataFrame) -> list[str]:
    said = []
    for r in each(rows):
        mfu = f"MFU {fmt.share(r.mfu)}, " if pd.notna(r.mfu) else ""
        lines = [
            f"<b>Step {r.step:,}</b>: {mfu}{fmt.flops_rate(r.tflops_per_s_per_chip * 1e12)} per chip",
            fmt.exact_duration(r.dur_s) + (f", attempt {r.attempt}" if pd.notna(r.attempt) else ""),
        ]
        if pd.notna(r.tokens_per_s_per_chip):
            lines.append(f"{fmt.number(float(r.tokens_per_s_per_chip))} tokens/s per chip")
        if not r.kept:
            lines.append("lost with an interruption, taken again later")
        if r.implausible:
            lines.append(f"cannot be true: {plain(r.implausible)}")
        said.append("<br>".join(lines))
    return said


def _level(figure: go.Figure, y: float, text: str, anchor: str) -> None:
    """A dashed line across, its label above it or below."""
    figure.add_hline(y=y, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    figure.add_annotation(
        xref="paper",
        x=1,
        xanchor="right",
        yref="y",
        y=y,
        yanchor=anchor,
        showarrow=False,
        text=plain(text),
        font_size=12,
    )


def utilisations(result: MfuResult) -> go.Figure:
    """MFU, HFU, EMFU, best and average side by side; what is not known is named and has no bar."""
    bars = (
        ("average", result.average, tint(USEFUL, 0.6)),
        ("best step", result.best, tint(USEFUL, 0.6)),
        ("EMFU", result.emfu, tint(USEFUL, 0.6)),
        ("HFU", None if result.hfu is None else result.mfu, USEFUL),
        ("MFU", result.mfu, USEFUL),
    )
    names = [name for name, *_ in bars]
    figure = go.Figure(
        go.Bar(
            x=[100 * (v or 0) for _, v, _ in bars],
            y=names,
            orientation="h",
            marker={"color": [c for *_, c in bars]},
            hoverinfo="skip",
        )
    )
    again = 100 * (result.hfu - result.mfu) if result.hfu and result.mfu else 0.0
    if again:
        figure.add_trace(
            go.Bar(
                x=[again],
                y=["HFU"],
                orientation="h",
                hoverinfo="skip",
                marker={"color": theme.COLOURS["recomputation"]},
            )
        )
    for name, value in (*((n, v) for n, v, _ in bars if n != "HFU"), ("HFU", result.hfu)):
        text = "not known" if value is None else fmt.share(value)
        text += " with recomputation" if name == "HFU" and again else ""
        figure.add_annotation(x=100 * (value or 0), y=name, text=text, showarrow=False, xanchor="left", xshift=4)
    top = 100 * max((v for v in (*(v for _, v, _ in bars), result.hfu) if v is not None), default=1.0)
    return layout(
        figure,
        SMALL,
        barmode="stack",
        yaxis={"showgrid": False, "automargin": True},
        xaxis={
            "title": {"text": "share of the peak (%)"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top * (1.9 if again else 1.4)],
        },
    )


def conventions(counts: Sequence[FlopsPerToken], printed: float | None) -> go.Figure:
    """A token's FLOPs by each convention, split into where they are; the dashed line is what the job printed.

    Of conventions that count the same for this model the first stands for all.
    """
    counts = [c for i, c in enumerate(counts) if all(abs(c.total / b.total - 1) > SAME for b in counts[:i])]
    top = max(c.total for c in counts)
    factor, unit = next(((f, u) for f, u in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if top >= f), (1e3, "k"))
    names = [TITLES[c.convention] for c in counts][::-1]
    figure = go.Figure()
    for key, label, colour, pattern in PARTS:
        values = [c.parts()[key] / factor for c in counts][::-1]
        if any(values):
            figure.add_trace(
                go.Bar(
                    x=values,
                    y=names,
                    name=label,
                    orientation="h",
                    marker={"color": colour, "pattern": {"shape": pattern, "solidity": 0.25}},
                    hovertext=[
                        f"<b>{n}</b><br>{label}: {fmt.number(v)} {unit}FLOPs per token"
                        for n, v in zip(names, values, strict=True)
                    ],
                    hovertemplate="%{hovertext}<extra></extra>",
                )
            )
    for c, name in zip(counts[::-1], names, strict=True):
        figure.add_annotation(
            x=c.total / factor,
            y=name,
            text=fmt.number(c.total / factor, 4),
            showarrow=False,
            xanchor="left",
            xshift=4,
            font_size=12,
        )
    if printed:
        text = f"printed {fmt.number(printed / factor, 4)}"
        figure.add_vline(
            x=printed / factor,
            line_dash="dash",
            line_color=theme.GREY,
            line_width=1.5,
            annotation_text=text,
            annotation_position="top",
        )
    return layout(
        figure,
        max(SMALL, 38 * len(counts) + 110),
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": -0.22, "yanchor": "top", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        xaxis={
            "title": {"text": f"{unit}FLOPs per token, forward and backward"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top / factor * 1.12],
        },
        yaxis={"showgrid": False, "automargin": True},
    )

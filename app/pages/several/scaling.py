"""Several runs: what is left of the ideal with more chips, and which account eats the rest."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.several.scaling import Point, Series
from app import theme
from app.comparing.several.scaling_words import title
from app.figures.axes import PLAIN, log_ticks
from app.figures.base import layout, plain, reference_line
from app.words import short
from errors import format as fmt

COLOUR = theme.COLOURS["served"]
LEAST = 0.002  # of a step: accounts that take less on any number of chips are drawn as one
REST = "other"


def efficiency(series: Series) -> go.Figure:
    """Per cent of the ideal over chips, each point with its range."""
    points = series.points
    y = np.array([100 * p.efficiency for p in points])
    figure = go.Figure()
    reference_line(figure, 100, "ideal")
    figure.add_scatter(
        x=[p.chips for p in points],
        y=y,
        mode="lines+markers",
        line={"color": COLOUR, "width": 2},
        marker={"color": COLOUR, "size": 10},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [0.0 if p.high is None else 100 * p.high - v for p, v in zip(points, y, strict=True)],
            "arrayminus": [0.0 if p.low is None else v - 100 * p.low for p, v in zip(points, y, strict=True)],
            "color": COLOUR,
            "thickness": 1.5,
            "width": 5,
        },
        text=[fmt.share(p.efficiency) for p in points],
        textposition="bottom center",
        hovertext=[_told(p) for p in points],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    chips = [p.chips for p in points]
    ticks = log_ticks(chips[0], chips[-1]) | {
        "tickvals": sorted(set(chips)),
        "ticktext": [f"{n:,}" for n in sorted(set(chips))],
    }
    return layout(
        figure,
        340,
        xaxis={"title": {"text": "chips"}, **PLAIN, **ticks},
        yaxis={"title": {"text": "% of the ideal"}, "range": [0, max(108.0, 1.08 * float(y.max()))], **PLAIN},
    )


def _told(p: Point) -> str:
    ends = "" if p.low is None or p.high is None else f" ({fmt.share(p.low)} to {fmt.share(p.high)})"
    return (
        f"<b>{plain(short(p.name))}</b><br>{fmt.count(p.chips, 'chip')}, {fmt.duration(p.step_s)} a step"
        f"<br>efficiency {fmt.share(p.efficiency)}{ends}"
    )


def accounts(series: Series) -> go.Figure | None:
    """Of a profiled step on one chip, per cent by account, a bar a run; None where fewer than two have a profile."""
    points = [p for p in series.points if p.accounts]
    if len(points) < 2:
        return None
    rows = pd.DataFrame([p.accounts for p in points]).fillna(0.0)
    shares = rows.div(rows.sum(axis=1), axis=0) * 100
    large = [n for n in shares.columns if shares[n].max() >= 100 * LEAST]
    order = sorted(large, key=lambda n: list(theme.COLOURS).index(n) if n in theme.COLOURS else len(theme.COLOURS))
    small = shares.drop(columns=large).sum(axis=1)
    figure = go.Figure()
    bars = [f"{p.chips:,} chips<br>{plain(short(p.name, 18))}" for p in points]
    for name in order:
        figure.add_bar(
            x=bars,
            y=shares[name],
            name=title(name),
            marker={"color": theme.colour([name]), "pattern": {"shape": theme.pattern([name])}},
            hovertemplate=f"<b>{plain(title(name))}</b><br>%{{y:.3~g}} % of a step<extra></extra>",
        )
    if small.max() > 0:
        figure.add_bar(x=bars, y=small, name="the others", marker_color=theme.COLOURS[REST])
    return layout(
        figure,
        380,
        barmode="stack",
        bargap=0.45,
        showlegend=True,
        legend={"orientation": "v", "traceorder": "reversed"},
        xaxis={"type": "category"},
        yaxis={"title": {"text": "% of a step on a chip"}, "range": [0, 100], **PLAIN},
    )


def rows(series: Series) -> pd.DataFrame:
    """A row a run: chips, step, efficiency with its range, and what each account takes and eats."""
    found = []
    for p in series.points:
        told = {
            "series": series.kind,
            "run": p.name,
            "chips": p.chips,
            "step_s": p.step_s,
            "efficiency": p.efficiency,
            "low_efficiency": p.low,
            "high_efficiency": p.high,
        }
        told |= {f"{n}_s": v for n, v in (p.accounts or {}).items()}
        told |= {f"{n}_more_share": v for n, v in (p.eaten or {}).items()}
        found.append(told)
    return pd.DataFrame(found)

"""Checkpoints drawn: goodput over the interval between saves, and what each cure would give back."""

import math

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.whatif.checkpoint.plan import Plan
from app.whatif.checkpoint.wording import TITLES, points
from errors import format as fmt
from simulators.checkpointing import curve, goodput, with_mttf

HEIGHT = 430
TICKS_S = (
    1e-3,
    1e-2,
    0.1,
    0.3,
    1,
    3,
    10,
    30,
    60,
    120,
    300,
    600,
    1200,
    1800,
    3600,
    7200,
    14400,
    28800,
    57600,
    86400,
    172800,
    432000,
    864000,
    2592000,
    8640000,
    31536000,
)
MOST_TICKS = 11
ROW_PX = 46
SYMBOLS = {"young": "triangle-up", "daly": "diamond"}
BAND = "rgba(62,147,139,0.18)"  # of kept steps, thinned
LINE = theme.THIN["useful_maths"]
MINE, BEST = theme.COLOURS["input_wait"], theme.COLOURS["padding"]


def over_interval(plan: Plan) -> go.Figure:
    """Goodput over seconds of work between saves: the curve, its band, Young, Daly, the best, and where the job is."""
    tau, share = curve(plan.job, plan.measured.interval_s)
    figure = go.Figure()
    _band(figure, plan, tau)
    figure.add_scatter(
        x=tau,
        y=share * 100,
        mode="lines",
        name="goodput",
        line={"color": LINE, "width": 2.5},
        showlegend=False,
        hovertext=[f"a save every {fmt.duration(t)}: {fmt.share(s, 4)}" for t, s in zip(tau, share, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    at = {n: (s, float(goodput(plan.job, s)) * 100) for n in plan.intervals for s in (plan.saved_at(n),)}
    for name, symbol in SYMBOLS.items():
        said = f"{name.title()}: every {fmt.duration(plan.intervals[name])}"
        _mark(figure, *at[name], said, theme.GREY, symbol, 10)
    _mark(figure, *at["optimal"], f"best: every {fmt.duration(at['optimal'][0])}", BEST, "star", 15)
    _label(
        figure,
        *at["optimal"],
        f"best: every {fmt.duration(at['optimal'][0])}<br>{fmt.number(at['optimal'][1])} %",
        -1 if "yours" in at and at["yours"][0] > at["optimal"][0] else 1,
        up=True,
    )
    if "yours" in at:
        mine = f"as it is: every {fmt.duration(at['yours'][0])}"
        _mark(figure, *at["yours"], mine, MINE, "circle", 13)
        _label(
            figure,
            *at["yours"],
            f"{mine}<br>{fmt.number(at['yours'][1])} %",
            -1 if at["yours"][0] > at["optimal"][0] else 1,
            up=False,
        )
        if plan.observed is not None:
            seen = f"what this run had: {fmt.share(plan.observed)}"
            _mark(figure, at["yours"][0], plan.observed * 100, seen, MINE, "circle-open", 13)
    return layout(
        figure,
        HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis=_axis(float(tau[0]), float(tau[-1])),
        yaxis={"title": {"text": "goodput (% of time that becomes kept work)"}, "gridcolor": GRID, "zeroline": False},
        dragmode="zoom",
        hovermode="closest",
    )


def _band(figure: go.Figure, plan: Plan, tau: np.ndarray) -> None:
    """Between the curves at both ends of the mean time to failure; without a failure up to none at all."""
    low, high = plan.measured.mttf_low_s, plan.measured.mttf_high_s
    if plan.bound:
        least, most = goodput(plan.job, tau), tau / (tau + plan.job.blocking_s)
    elif low is None or high is None:
        return
    else:
        least, most = goodput(with_mttf(plan.job, low), tau), goodput(with_mttf(plan.job, high), tau)
    figure.add_scatter(
        x=np.concatenate((tau, tau[::-1])),
        y=np.concatenate((most, least[::-1])) * 100,
        fill="toself",
        fillcolor=BAND,
        line={"width": 0},
        hoverinfo="skip",
        name="95 % interval of the mean time to failure",
    )


def _mark(figure: go.Figure, x: float, y: float, words: str, colour: str, symbol: str, size: int) -> None:
    figure.add_scatter(
        x=[x],
        y=[y],
        mode="markers",
        name=words.split(":")[0],
        hovertext=[f"{words}: {fmt.number(y, 4)} %"],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={"color": colour, "symbol": symbol, "size": size, "line": {"width": 2, "color": colour}},
    )


def _label(figure: go.Figure, x: float, y: float, text: str, side: int, up: bool) -> None:
    """A direct label beside a point; `side`: -1 to its left, 1 to its right."""
    figure.add_annotation(
        x=math.log10(x),
        y=y,
        text=text,
        showarrow=True,
        arrowhead=0,
        arrowcolor=theme.GREY,
        ax=70 * side,
        ay=-34 if up else 44,
        align="left" if side > 0 else "right",
        font_size=12,
        xanchor="left" if side > 0 else "right",
    )


def _axis(low: float, high: float) -> dict:
    """A logarithmic axis of durations, with ticks where a clock has them."""
    at = [t for t in TICKS_S if low <= t <= high]
    at = at[:: math.ceil(len(at) / MOST_TICKS)] if at else [low, high]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": at,
        "zeroline": False,
        "ticktext": [fmt.duration(t) if t >= 60 else f"{t:g} s" for t in at],
        "gridcolor": GRID,
        "title": {"text": "work between two saves"},
    }


def given_back(plan: Plan) -> go.Figure | None:
    """What each cure would give back, the most first: bars with their range. None where no cure can be told."""
    offered = plan.cures.offered
    if not offered:
        return None
    top = max([c.high for c in offered] + [0.001]) * 100
    colours = [theme.colour((c.account,)) if c.gain > 0 else theme.GREY for c in offered]
    gains = np.array([c.gain * 100 for c in offered])
    shown = np.maximum(gains, -top / 2)  # what costs far more than others give would flatten them; its label says it
    low, high = np.array([c.low * 100 for c in offered]), np.array([c.high * 100 for c in offered])
    figure = go.Figure(
        go.Bar(
            x=shown,
            y=[TITLES[c.name] for c in offered],
            orientation="h",
            marker={"color": colours, "pattern": {"shape": [theme.pattern((c.account,)) for c in offered]}},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.maximum(high - shown, 0),
                "color": theme.GREY,
                "arrayminus": np.maximum(shown - np.maximum(low, -top / 2), 0),
            },
            hovertext=[
                f"<b>{TITLES[c.name]}</b><br>{points(c.gain)} of the time, {points(c.low)} to {points(c.high)}<br>"
                + "<br>".join(_wrapped(plain(c.assumption)))
                for c in offered
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    for c in offered:
        figure.add_annotation(
            x=1,
            xref="paper",
            xanchor="right",
            y=TITLES[c.name],
            yanchor="middle",
            showarrow=False,
            font_size=12,
            text=_size(c.gain, c.chip_hours, c.usd),
        )
    figure.add_vline(x=0, line_color=theme.GREY, line_width=1)
    return layout(
        figure,
        len(offered) * ROW_PX + 70,
        xaxis={
            "title": {"text": "given back (% of the time; line: range)"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [min(0.0, max(float(low.min()), -top / 2)) * 1.05, top * 1.45],
        },
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "type": "category"},
    )


def _size(gain: float, chip_hours: float | None, usd: float | None) -> str:
    parts = [points(gain)]
    if chip_hours is not None:
        parts.append(("−" if chip_hours < 0 else "") + fmt.chip_time(abs(chip_hours) * 3600))
    if usd is not None:
        parts.append(("−" if usd < 0 else "") + fmt.usd(abs(usd)))
    return " · ".join(parts)


def _wrapped(text: str, width: int = 70) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines

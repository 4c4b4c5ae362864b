"""Figures of the goodput planner: where the time goes, goodput over intervals and chips, and when elastic pays."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_axis, log_ticks
from app.figures.base import GRID, layout
from app.whatif.goodput.answers import GoodputPlan
from app.whatif.goodput.curves import Along
from app.whatif.goodput.wording import TITLES
from errors import format as fmt
from simulators.training.claim import GAIN, Gains
from simulators.training.lives import Lives

ACCOUNTS = {  # of a life, as the ledger of a run that failed so would have them
    "kept": "productive",
    "saving": "checkpoint_save",
    "lost_work": "wasted_progress",
    "restarting": "program_startup",
    "waiting": "infrastructure_recovery",
    "slices_away": "elastic_slice_down",
}
LINE, BAND = theme.THIN["useful_maths"], "rgba(62,147,139,0.18)"
MINE = theme.COLOURS["input_wait"]
POINTS, RATIO = theme.COLOURS["padding"], theme.COLOURS["exposed_copies"]


def where_it_goes(plan: GoodputPlan) -> go.Figure:
    """Shares of all time, a bar for the job; for an elastic one another for the same job that restarts the whole."""
    bars = {"elastic": plan.lives, "restarting the whole": plan.whole} if plan.whole else {"this job": plan.lives}
    shown = list(bars.items())[::-1]
    figure = go.Figure()
    for account, as_ledger in ACCOUNTS.items():
        shares = [_share(lives, account) for _, lives in shown if lives is not None]
        if not any(shares):
            continue
        title = "kept work" if account == "kept" else TITLES[account]
        figure.add_bar(
            y=[name for name, _ in shown],
            x=[100 * s for s in shares],
            orientation="h",
            name=title,
            marker={"color": theme.COLOURS[as_ledger]},
            text=[fmt.share(s) if s >= 0.06 else "" for s in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertext=[f"{name}<br>{title}: {fmt.share(s)}" for (name, _), s in zip(shown, shares, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    return layout(
        figure,
        height=120 + 50 * len(shown),
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "share of the job's time (%)"}, "gridcolor": GRID, "range": [0, 100]},
        yaxis={"automargin": True},
    )


def _share(lives: Lives, account: str) -> float:
    return float(lives.seconds[account].mean()) / lives.span_s


def over_interval(plan: GoodputPlan, closed: Along, lives: Along) -> go.Figure:
    """Goodput over the work between two saves: the closed form as a line, lives as bars, the job as it is."""
    figure = go.Figure()
    y = [100 * b.likely for b in closed.bands]
    line = {"color": LINE, "width": 2.5}
    if closed.at:
        figure.add_scatter(x=closed.at, y=y, mode="lines", line=line, name="by formula", hoverinfo="skip")
    _lives(figure, lives, fmt.duration)
    _mine(figure, plan, plan.life.interval_s, fmt.duration(plan.life.interval_s))
    return _laid(figure, "work between two saves", log_axis(lives.at[0], lives.at[-1]), lives)


def over_chips(plan: GoodputPlan, lives: Along) -> go.Figure:
    """Goodput over the number of chips, with the range of lives."""
    figure = go.Figure()
    x = [*lives.at, *lives.at[::-1]]
    y = [100 * b.low for b in lives.bands] + [100 * b.high for b in reversed(lives.bands)]
    fill = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0}, "mode": "lines", "hoverinfo": "skip"}
    figure.add_scatter(x=x, y=y, showlegend=False, **fill)
    _lives(figure, lives, lambda n: fmt.count(int(n), "chip"), "lines+markers")
    _mine(figure, plan, plan.asked.chips or 1, fmt.count(plan.asked.chips or 1, "chip"))
    return _laid(figure, "chips", log_ticks(lives.at[0], lives.at[-1]), lives)


def _lives(figure: go.Figure, lives: Along, worded, mode: str = "markers") -> None:
    likely = np.array([100 * b.likely for b in lives.bands])
    low, high = (np.array([100 * getattr(b, end) for b in lives.bands]) for end in ("low", "high"))
    figure.add_scatter(
        x=lives.at,
        y=likely,
        error_y={"type": "data", "array": high - likely, "arrayminus": likely - low, "thickness": 1, "width": 3},
        mode=mode,
        name="lives",
        line={"color": LINE, "width": 2},
        marker={"color": LINE, "size": 7},
        hovertext=[
            f"{worded(at)}: {fmt.share(b.likely)} ({fmt.share(b.low)} to {fmt.share(b.high)})"
            for at, b in zip(lives.at, lives.bands, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _mine(figure: go.Figure, plan: GoodputPlan, x: float, words: str) -> None:
    figure.add_scatter(
        x=[x],
        y=[100 * plan.goodput],
        mode="markers",
        name="as asked",
        marker={"color": MINE, "symbol": "circle", "size": 13},
        hovertext=[f"as asked, {words}: {fmt.share(plan.goodput)}"],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _laid(figure: go.Figure, title: str, axis: dict, lives: Along) -> go.Figure:
    top = max(100 * b.high for b in lives.bands)
    return layout(
        figure,
        height=360,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": title}, "gridcolor": GRID, "fixedrange": True} | axis,
        yaxis={
            "title": {"text": "goodput (%)"},
            "gridcolor": GRID,
            "fixedrange": True,
            "range": [0, min(104, top * 1.1)],
        },
        hovermode="closest",
    )


def when_elastic_pays(plan: GoodputPlan, found: Gains) -> go.Figure:
    """What elastic training gains, in points, over failures and waits; lines where it is as much as was claimed."""
    x, y = found.wait_s, found.mttf_chip_s / 3600
    figure = go.Figure()
    figure.add_contour(
        x=x,
        y=y,
        z=100 * found.points,
        colorscale=[[0, "rgba(62,147,139,0.02)"], [1, "rgba(62,147,139,0.75)"]],
        contours={"coloring": "heatmap", "showlines": False},
        line={"width": 0},
        colorbar={"title": {"text": "points"}, "thickness": 12},
        hovertemplate="a wait of %{x:.3g} s, a chip fails every %{y:,.0f} h: %{z:.3g} points<extra></extra>",
    )
    for values, colour, name in (
        (100 * found.points, POINTS, f"+{100 * GAIN:g} points"),
        (100 * np.minimum(found.ratio, 10), RATIO, f"+{100 * GAIN:g} % of the other's"),
    ):
        _line(figure, x, y, values, colour, name)
    figure.add_scatter(
        x=[max(plan.life.job.wait_s, x[0])],
        y=[plan.asked.mttf_chip_h],
        mode="markers",
        name="as asked",
        marker={"color": MINE, "size": 13},
        hovertemplate="as asked<extra></extra>",
    )
    return layout(
        figure,
        height=430,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": "until a replacement is there"}, "fixedrange": True}
        | log_axis(float(x[0]), float(x[-1])),
        yaxis={"title": {"text": "hours between failures of a chip"}, "fixedrange": True}
        | log_ticks(float(y[0]), float(y[-1])),
    )


def _line(figure: go.Figure, x: np.ndarray, y: np.ndarray, z: np.ndarray, colour: str, name: str) -> None:
    """One level of a surface as a line."""
    level = 100 * GAIN
    figure.add_contour(
        x=x,
        y=y,
        z=z,
        contours={"start": level, "end": level, "size": 1, "coloring": "none"},
        line={"color": colour, "width": 3},
        showscale=False,
        showlegend=True,
        name=name,
        hoverinfo="skip",
    )


def rows(shown: Sequence[tuple[str, Along]]) -> list[dict[str, float | str]]:
    """What the pictures show, as a table."""
    return [
        {"along": what, "at": at, "low": b.low, "goodput": b.likely, "high": b.high}
        for what, along in shown
        for at, b in zip(along.at, along.bands, strict=True)
    ]

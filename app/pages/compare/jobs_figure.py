"""Two jobs: what each account takes more or less of a step, and how long the steps of both took."""

import numpy as np
import plotly.graph_objects as go

from analyzers.difference import DifferenceResult
from analyzers.difference.accounts import AccountChange
from analyzers.difference.step_time import StepTimes
from app import theme
from app.comparing.job_words import doubt, seconds
from app.figures.axes import PLAIN, time_unit
from app.figures.base import MAX_POINTS, layout, plain
from errors import format as fmt

MOST = 12  # accounts that are drawn; the table has all


def by_account(result: DifferenceResult) -> go.Figure | None:
    """B less A of a step and chip, the largest change on top; pale: not sure, as `pale` says."""
    rows = [c for c in result.ledger if c.change][:MOST]
    if not rows:
        return None
    unit, scale = time_unit(max(abs(v) for c in rows for v in (c.change, c.a, c.b)))
    figure = go.Figure()
    figure.add_bar(
        y=[c.title for c in rows],
        x=[c.change * scale for c in rows],
        orientation="h",
        marker={
            "color": [theme.COLOURS.get(c.account, theme.GREY) for c in rows],
            "opacity": [1.0 if result.sure(c) else 0.4 for c in rows],
            "pattern": {"shape": [theme.PATTERNS.get(c.account, "") for c in rows]},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_reach(c, "high") * scale for c in rows],
            "arrayminus": [_reach(c, "low") * scale for c in rows],
            "color": theme.GREY,
            "thickness": 1,
            "width": 4,
        },
        hovertext=[_told(c, doubt(result, c)) for c in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.add_vline(x=0, line_color=theme.GREY, line_width=1.5)
    return layout(
        figure,
        90 + 32 * len(rows),
        xaxis={"title": {"text": f"B less A, of a step and chip ({unit})"}, **PLAIN},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "showgrid": False},
    )


def _reach(c: AccountChange, end: str) -> float:
    """How far the range goes beyond the bar, drawn no farther than twice what the account holds: beyond is chance."""
    bound = getattr(c, end)
    return 0.0 if bound is None else min(abs(bound - c.change), 2 * max(c.a, c.b))


def pale(result: DifferenceResult) -> str:
    """What it means that bars are pale."""
    less = any(c.change and c.clear and not result.sure(c) for c in result.ledger)
    return f"Pale bars may be chance{', or one of the two tells less of them' if less else ''}."


def _told(c: AccountChange, why: str) -> str:
    between = "" if c.low is None or c.high is None else f"<br>range {seconds(c.low)} to {seconds(c.high)}"
    change = f"A {fmt.duration(c.a)}, B {fmt.duration(c.b)}: {seconds(c.change)}"
    return f"<b>{plain(c.title)}</b><br>{change}{between}{why and f'<br>{why}'}"


def both_steps(a: StepTimes, b: StepTimes, names: tuple[str, str]) -> go.Figure:
    """Cumulative distribution of the settled steps of both: the curve further left is the quicker."""
    unit, scale = time_unit(max(float(np.median(s.seconds)) for s in (a, b)))
    figure = go.Figure()
    lines = ({"color": theme.GREY, "width": 2.5, "dash": "dot"}, {"color": theme.COLOURS["served"], "width": 2.5})
    for side, times, name, line in zip("AB", (a, b), names, lines, strict=True):
        share = np.linspace(0, 1, min(MAX_POINTS // 4, len(times.seconds) + 1))
        figure.add_scatter(
            x=np.quantile(times.seconds, share) * scale,
            y=share * 100,
            mode="lines",
            name=f"{side}: {plain(name)}",
            line=line,
            hovertemplate=f"{side}: %{{y:.3~g}} % within %{{x:.4~g}} {unit}<extra></extra>",
        )
    return layout(
        figure,
        340,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        xaxis={"title": {"text": f"time of a settled step ({unit})"}, **PLAIN},
        yaxis={"title": {"text": "steps (%)"}, "range": [0, 101], **PLAIN},
    )

"""Figures of the training planner: time over chips with its range, and where the chip time of a step goes."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout, plain
from app.whatif.training.answers import Choice
from app.whatif.training.wording import axes, takes, what
from errors import format as fmt

HUES = ("served", "padding", "straggler_wait", "exposed_communication", "prefill", "input_wait", "lost_work")
ACCOUNTS = (
    "useful_maths",
    "below_roofline",
    "recomputation",
    "exposed_communication",
    "device_idle",
    "idle_launching",
)
BARS = 8  # steps that are drawn


def over_chips(firsts: Sequence[Choice], deadline_d: float | None) -> go.Figure:
    """Days of the job, or seconds of a step without tokens, over the number of chips; bars are the range."""
    figure = go.Figure()
    timed = firsts[0].days is not None
    for hue, name in zip(HUES * len(firsts), dict.fromkeys(c.planned.chip for c in firsts), strict=False):
        mine = sorted((c for c in firsts if c.planned.chip == name), key=lambda c: c.planned.chips)
        ends = [_ends(c) for c in mine]
        figure.add_scatter(
            x=[c.planned.chips for c in mine],
            y=[likely for _, likely, _ in ends],
            error_y={
                "type": "data",
                "array": [high - likely for _, likely, high in ends],
                "arrayminus": [likely - low for low, likely, _ in ends],
                "thickness": 1,
                "width": 3,
            },
            mode="lines+markers",
            name=plain(name),
            line={"color": theme.COLOURS[hue], "width": 2},
            marker={"size": 8},
            hovertext=[_told(c) for c in mine],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    values = [v for c in firsts for v in _ends(c)]
    held = [c.planned.chips for c in firsts]
    if deadline_d is not None and timed:
        figure.add_hline(y=deadline_d, line={"color": theme.GREY, "dash": "dash"})
        place = {"xref": "paper", "x": 1, "xanchor": "right", "y": math.log10(deadline_d), "yanchor": "bottom"}
        figure.add_annotation(text=f"deadline: {fmt.duration(deadline_d * 86_400)}", showarrow=False, **place)
    return layout(
        figure,
        height=400,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "chips"}, "gridcolor": GRID, "fixedrange": True} | log_ticks(min(held), max(held)),
        yaxis={"title": {"text": "days" if timed else "seconds of a step"}, "gridcolor": GRID, "fixedrange": True}
        | log_ticks(min(values), max(values)),
    )


def _ends(choice: Choice) -> tuple[float, float, float]:
    p = choice.planned
    return choice.days or (p.low_s, p.step_s, p.high_s)


def _told(choice: Choice) -> str:
    return f"<b>{plain(what(choice))}</b><br>{axes(choice)}<br>{takes(choice)}<br>{fmt.share(choice.planned.mfu)} MFU"


def where_it_goes(firsts: Sequence[Choice]) -> go.Figure:
    """Shares of a step's chip time, a bar for the best layout of each chip and number of chips."""
    leading = list({c.planned.chip: c for c in reversed(firsts)}.values())[::-1]
    shown = [*leading, *(c for c in firsts if c not in leading)][:BARS][::-1]
    figure = go.Figure()
    for account in dict.fromkeys((*ACCOUNTS, *(name for c in shown for name in c.planned.accounts))):
        shares = [c.planned.accounts.get(account, 0.0) / c.planned.step_s for c in shown]
        title = theme.title(account)
        figure.add_bar(
            y=[f"{plain(what(c))}<br>{axes(c)}" for c in shown],
            x=[100 * s for s in shares],
            orientation="h",
            name=title,
            marker={"color": theme.colour([account])},
            text=[fmt.share(s) if s >= 0.06 else "" for s in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertext=[f"{plain(what(c))}<br>{title}: {fmt.share(s)}" for c, s in zip(shown, shares, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    return layout(
        figure,
        height=110 + 46 * len(shown),
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "share of the step's chip time (%)"}, "gridcolor": GRID, "range": [0, 100]},
        yaxis={"automargin": True},
    )

"""Figures of the training planner: time over chips with its range, and where the chip time of a step goes."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout, plain
from app.whatif.training import amounts
from app.whatif.training.answers import Choice
from app.whatif.training.phrases import axes, takes, what
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
    for hue, name in zip(HUES * len(firsts), sorted({c.planned.chip for c in firsts}), strict=False):
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
        figure.add_annotation(text=f"deadline: {amounts.time(deadline_d)}", showarrow=False, **place)
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


def days_and_dollars(
    firsts: Sequence[Choice], here: Choice, deadline_d: float | None, budget_usd: float | None
) -> go.Figure:
    """Dollars over days, a mark for each chip and number of chips with its range; a line joins the front, and dashed
    ones are the limits. `here`: the choice that is told."""
    figure = go.Figure()
    told = [c for c in firsts if c.days and c.usd]
    front = sorted((c.days[1], c.usd[1]) for c in told if c.front and c.days and c.usd)
    figure.add_scatter(
        x=[d for d, _ in front],
        y=[u for _, u in front],
        mode="lines",
        name="front",
        line={"color": theme.GREY, "width": 1.5, "dash": "dot", "shape": "hv"},
        hoverinfo="skip",
    )
    for hue, name in zip(HUES * len(told), sorted({c.planned.chip for c in told}), strict=False):
        _marks(figure, [c for c in told if c.planned.chip == name], theme.COLOURS[hue])
    if here.days and here.usd:
        ring = {"size": 20, "symbol": "circle-open", "color": theme.GREY, "line": {"width": 2}}
        figure.add_scatter(
            x=[here.days[1]], y=[here.usd[1]], mode="markers", marker=ring, name="the answer", hoverinfo="skip"
        )
    days = [d for c in (*told, here) for d in c.days or ()] + [d for d in (deadline_d,) if d]
    usd = [u for c in (*told, here) for u in c.usd or ()] + [u for u in (budget_usd,) if u]
    _limits(figure, deadline_d, budget_usd)
    return layout(
        figure,
        height=420,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "days"}, "gridcolor": GRID, "fixedrange": True}
        | log_ticks(min(days), max(days))
        | _padded(min(days), max(days)),
        yaxis={"title": {"text": "dollars"}, "gridcolor": GRID, "fixedrange": True, "tickprefix": "$"}
        | _dollar_ticks(min(usd), max(usd))
        | _padded(min(usd), max(usd)),
    )


def _marks(figure: go.Figure, mine: Sequence[Choice], colour: str) -> None:
    """One chip: filled marks are on the front, open ones are not. Days and dollars of a choice go together, so that its
    range is a line from the one end of both to the other."""
    mine = sorted(mine, key=lambda c: c.planned.chips)
    name, told = plain(mine[0].planned.chip), [(c.days, c.usd) for c in mine if c.days and c.usd]
    figure.add_scatter(
        x=[x for days, _ in told for x in (days[0], days[2], None)],
        y=[y for _, usd in told for y in (usd[0], usd[2], None)],
        mode="lines",
        line={"color": f"rgba({_rgb(colour)},0.5)", "width": 3},
        legendgroup=name,
        showlegend=False,
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[days[1] for days, _ in told],
        y=[usd[1] for _, usd in told],
        mode="markers+text",
        name=name,
        legendgroup=name,
        marker={"size": 11, "color": colour, "symbol": [_symbol(c) for c in mine], "line": {"width": 2}},
        text=[f"{c.planned.chips:,}" if c.front else "" for c in mine],
        textposition="bottom right",
        textfont={"size": 11},
        hovertext=[_told(c) for c in mine],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _symbol(choice: Choice) -> str:
    return "circle" if choice.front else "circle-open"


def _rgb(colour: str) -> str:
    return ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))


def _limits(figure: go.Figure, deadline_d: float | None, budget_usd: float | None) -> None:
    """Dashed lines with their words; on a logarithmic axis a note takes the exponent."""
    dashed = {"color": theme.GREY, "dash": "dash", "width": 1.5}
    if deadline_d is not None:
        figure.add_vline(x=deadline_d, line=dashed)
        text = f"deadline {amounts.time(deadline_d)}"
        figure.add_annotation(
            text=text, x=math.log10(deadline_d), y=1, yref="paper", xanchor="left", yanchor="top", showarrow=False
        )
    if budget_usd is not None:
        figure.add_hline(y=budget_usd, line=dashed)
        text = f"budget {amounts.dollars(budget_usd)}"
        figure.add_annotation(
            text=text, x=1, xref="paper", y=math.log10(budget_usd), xanchor="right", yanchor="bottom", showarrow=False
        )


def _padded(low: float, high: float) -> dict[str, Any]:
    """A logarithmic range with room at both ends, for marks and their words."""
    room = 0.06 * max(math.log10(high / low), 0.5)
    return {"range": [math.log10(low) - room, math.log10(high) + room]}


def _dollar_ticks(low: float, high: float) -> dict[str, Any]:
    """1, 2 and 5 of each power of ten, in words; more of them where the range is narrow."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    parts = (1, 2, 5) if high / low > 10 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    ticks = [m * 10.0**p for p in powers for m in parts]
    return {"type": "log", "tickvals": ticks, "ticktext": [amounts.dollars(t).removeprefix("$") for t in ticks]}


def _ends(choice: Choice) -> tuple[float, float, float]:
    p = choice.planned
    return choice.days or (p.low_s, p.step_s, p.high_s)


def _told(choice: Choice) -> str:
    return f"<b>{plain(what(choice))}</b><br>{axes(choice)}<br>{takes(choice)}<br>{fmt.share(choice.planned.mfu)} MFU"


def where_it_goes(firsts: Sequence[Choice]) -> go.Figure:
    """Shares of a step's chip time, a bar for the best layout of each chip and number of chips."""
    leading = [c for i, c in enumerate(firsts) if c.planned.chip not in {o.planned.chip for o in firsts[:i]}]
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

"""What days cost, and what equal days take: dollars over days with both limits, and lines of equal time."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout, plain
from app.pages.cost_planner.figure import HUES
from app.whatif.cost.answers import Choice, CostPlan
from app.whatif.cost.contours import Line
from errors import format as fmt
from simulators.training.cost import DAY_S

LEGEND = {"showlegend": True, "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}}
MARGIN = {"margin": {"l": 8, "r": 8, "t": 40, "b": 8}}
SIDES = ("top right", "bottom left", "top left", "bottom right")  # where labels stand, so that near marks keep theirs
LINES = (  # the fewest days first: of one hue that reads on light and dark, the middle one solid
    ("#5FB0A6", "dot"),
    ("#5FB0A6", "dash"),
    ("#3E938B", "solid"),
    ("#3A877F", "dash"),
    ("#3A877F", "dot"),
)


def dollars(plan: CostPlan) -> go.Figure:
    """Dollars over days of every choice that has a price, with their ranges, the front, deadline and budget."""
    figure = go.Figure()
    priced = [c for c in plan.choices if c.likely.usd is not None]
    front = plan.front
    line = {"color": theme.GREY, "width": 2, "dash": "dot"}
    x, y = [c.likely.days for c in front], [c.likely.usd for c in front]
    figure.add_scatter(x=x, y=y, mode="lines", line={**line, "shape": "hv"}, name="Pareto front", hoverinfo="skip")
    names = list(dict.fromkeys(c.chip.name for c in plan.choices))
    for hue, name, side in zip(HUES * len(names), names, SIDES * len(names), strict=False):
        if mine := [c for c in priced if c.chip.name == name]:
            _chip(figure, mine, front, theme.COLOURS[hue], side)
    spans = [(c.best.days, c.worst.days, c.best.usd or 0.0, c.worst.usd or 0.0) for c in priced]
    days = [v for low, high, _, _ in spans for v in (low, high)]
    usd = [v for _, _, low, high in spans for v in (low, high)]
    if plan.asked.days is not None:
        figure.add_vline(x=plan.asked.days, line={"color": theme.GREY, "dash": "dash"})
        _note(figure, f"deadline: {fmt.duration(plan.asked.days * DAY_S)}", x=math.log10(plan.asked.days), y=1)
        days.append(plan.asked.days)
    if plan.asked.usd is not None:
        figure.add_hline(y=plan.asked.usd, line={"color": theme.GREY, "dash": "dash"})
        _note(figure, f"budget: {fmt.usd(plan.asked.usd)}", x=1, y=math.log10(plan.asked.usd))
        usd.append(plan.asked.usd)
    return layout(
        figure,
        height=380,
        **LEGEND,
        **MARGIN,
        xaxis={"title": {"text": "days"}, "gridcolor": GRID, "fixedrange": True} | _axis(days),
        yaxis={"title": {"text": "dollars"}, "gridcolor": GRID, "fixedrange": True} | _axis(usd),
    )


def _axis(values: Sequence[float]) -> dict:
    """A logarithmic axis with room around what it shows."""
    low, high = min(values) / 1.3, max(values) * 1.3
    return log_ticks(low, high) | {"range": [math.log10(low), math.log10(high)]}


def _note(figure: go.Figure, text: str, x: float, y: float) -> None:
    """At a line: its place along the line is of the paper, that across it of the axis."""
    upright = y == 1
    refs = {"xref": "x", "yref": "paper"} if upright else {"xref": "paper", "yref": "y"}
    anchors = {"xanchor": "left", "yanchor": "top"} if upright else {"xanchor": "right", "yanchor": "bottom"}
    figure.add_annotation(text=text, x=x, y=y, showarrow=False, font_size=12, **refs, **anchors)


def _chip(figure: go.Figure, mine: Sequence[Choice], front: Sequence[Choice], colour: str, side: str) -> None:
    def bars(take) -> dict:
        likely = [take(c.likely) for c in mine]
        return {
            "type": "data",
            "array": [take(c.worst) - v for c, v in zip(mine, likely, strict=True)],
            "arrayminus": [v - take(c.best) for c, v in zip(mine, likely, strict=True)],
            "thickness": 1,
            "width": 3,
            "color": colour,
        }

    figure.add_scatter(
        x=[c.likely.days for c in mine],
        y=[c.likely.usd for c in mine],
        error_x=bars(lambda cost: cost.days),
        error_y=bars(lambda cost: cost.usd),
        mode="markers+text",
        text=[f"{c.chips:,}" for c in mine],
        textposition=side,
        name=plain(mine[0].chip.name),
        marker={"color": colour, "size": 11, "symbol": ["circle" if c in front else "circle-open" for c in mine]},
        hovertext=[
            f"<b>{c.chips:,} {plain(c.chip.name)}</b><br>{fmt.duration(c.likely.days * DAY_S)}, {fmt.usd(c.likely.usd)}"
            for c in mine
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def equal_time(plan: CostPlan, lines: Sequence[Line], best: Choice, of: str) -> go.Figure:
    """Lines of equal time of the best choice's chip over chips and `of`: its MFU, or the goodput at the likely MFU; its
    choices marked, with the range of published MFU."""
    figure = go.Figure()
    shown = [line for line in lines if line.chip == best.chip.name]
    for (colour, dash), line in zip(LINES[-len(shown) :], shown, strict=False):
        values = line.mfu if of == "mfu" else line.goodput
        held = [(n, 100 * v) for n, v in zip(line.chips, values, strict=True) if v is not None]
        if not held:
            continue
        x, y = zip(*held, strict=True)
        told = fmt.duration(line.days * DAY_S)
        what = "MFU" if of == "mfu" else "goodput"
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": dash},
            name=told,
            hovertemplate=f"%{{x:,}} chips, {what} %{{y:.3g}} %: {told}<extra></extra>",
        )
    mine = [c for c in plan.choices if c.chip is best.chip]
    _marks(figure, mine, of, plan.asked.goodput or 1.0)
    chips = [n for line in shown for n in line.chips] or [c.chips for c in mine]
    title = "MFU (%)" if of == "mfu" else "goodput (%)"
    return layout(
        figure,
        height=360,
        **LEGEND,
        **MARGIN,
        xaxis={"title": {"text": f"chips, {plain(best.chip.name)}"}, "gridcolor": GRID, "fixedrange": True}
        | log_ticks(min(chips), max(chips)),
        yaxis={"title": {"text": title}, "gridcolor": GRID, "fixedrange": True, "range": [0, 104]},
    )


def _marks(figure: go.Figure, mine: Sequence[Choice], of: str, goodput: float) -> None:
    likely = [100 * (c.mfu[1] if of == "mfu" else goodput) for c in mine]
    spread = {}
    if of == "mfu":
        spread["error_y"] = {
            "type": "data",
            "array": [100 * (c.mfu[2] - c.mfu[1]) for c in mine],
            "arrayminus": [100 * (c.mfu[1] - c.mfu[0]) for c in mine],
            "thickness": 1,
            "width": 3,
        }
    figure.add_scatter(
        x=[c.chips for c in mine],
        y=likely,
        mode="markers",
        name="tried",
        marker={"color": theme.COLOURS["padding"], "size": 11},
        hovertext=[f"{c.chips:,} chips: {fmt.duration(c.likely.days * DAY_S)}" for c in mine],
        hovertemplate="%{hovertext}<extra></extra>",
        **spread,
    )

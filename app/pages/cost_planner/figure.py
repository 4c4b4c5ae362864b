"""Days over chips: one band a chip, from the low to the high end of its MFU, and the deadline."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.axes import log_ticks
from app.figures.base import GRID, layout, plain
from app.whatif.cost.answers import Choice
from errors import format as fmt

HUES = ("served", "padding", "straggler_wait", "exposed_communication", "prefill", "input_wait", "lost_work")
SPAN = 4.0  # lines reach to a quarter of the fewest chips and to so many times the most
POINTS = 40


def days(choices: Sequence[Choice], deadline_d: float | None) -> go.Figure:
    """Days of the work over the number of chips, at the same MFU; a mark at each number that was tried."""
    figure = go.Figure()
    least, most = min(c.chips for c in choices) / SPAN, max(c.chips for c in choices) * SPAN
    ends = [c.published_chips for c in choices if c.published_chips is not None and least < c.published_chips < most]
    held = np.unique(np.round([*np.geomspace(max(1.0, least), most, POINTS), *ends]))
    for hue, name in zip(HUES * len(choices), dict.fromkeys(c.chip.name for c in choices), strict=False):
        _band(figure, [c for c in choices if c.chip.name == name], held, theme.COLOURS[hue])
    if deadline_d is not None:
        figure.add_hline(y=deadline_d, line={"color": theme.GREY, "dash": "dash"})
        text = f"deadline: {fmt.duration(deadline_d * 86_400)}"
        place = {"xref": "paper", "x": 1, "xanchor": "right", "y": math.log10(deadline_d), "yanchor": "bottom"}
        figure.add_annotation(text=text, showarrow=False, **place)  # of a logarithmic axis a note takes the exponent
    return layout(
        figure,
        height=420,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={"title": {"text": "chips"}, "gridcolor": GRID, "fixedrange": True} | log_ticks(held[0], held[-1]),
        yaxis={"title": {"text": "days"}, "gridcolor": GRID, "fixedrange": True} | log_ticks(*_ends(choices, held)),
    )


def _ends(choices: Sequence[Choice], held: np.ndarray) -> tuple[float, float]:
    """The fewest and the most days that are drawn."""
    chip_days = [(c.best.days * c.chips, c.worst.days * c.chips) for c in choices]
    return float(min(low for low, _ in chip_days) / held[-1]), float(max(high for _, high in chip_days) / held[0])


def _band(figure: go.Figure, mine: Sequence[Choice], held: np.ndarray, colour: str) -> None:
    """One chip: its band, its line, and its marks. Time is inverse to the number of chips while the MFU is the same."""
    one, name = mine[0], plain(mine[0].chip.name)
    fast, likely, slow = (c.days * one.chips / held for c in (one.best, one.likely, one.worst))
    same = {"legendgroup": name, "hoverinfo": "skip"}
    most = one.published_chips or held[-1]
    if one.best.days < one.worst.days:
        fill = f"rgba({','.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))},0.16)"
        outline = {"x": [*held, *held[::-1]], "y": [*fast, *slow[::-1]], "fill": "toself", "fillcolor": fill}
        figure.add_scatter(**outline, line={"width": 0}, mode="lines", showlegend=False, **same)
    for part, dash in ((held <= most, "solid"), (held >= most, "dot")):
        line = {"color": colour, "width": 2, "dash": dash}
        figure.add_scatter(
            x=held[part], y=likely[part], mode="lines", line=line, name=name, showlegend=dash == "solid", **same
        )
    figure.add_scatter(
        x=[c.chips for c in mine],
        y=[c.likely.days for c in mine],
        mode="markers",
        marker={"color": colour, "size": 11},
        hovertext=[_told(c) for c in mine],
        hovertemplate="%{hovertext}<extra></extra>",
        legendgroup=name,
        showlegend=False,
    )


def _told(choice: Choice) -> str:
    ends = f"{fmt.duration(choice.best.days * 86_400)} to {fmt.duration(choice.worst.days * 86_400)}"
    paid = "" if choice.likely.usd is None else f"<br>{fmt.usd(choice.likely.usd)}"
    took = fmt.duration(choice.likely.days * 86_400)
    return f"<b>{choice.chips:,} {plain(choice.chip.name)}</b><br>{took}, {ends}{paid}"

"""The history of a metric: a mark a run with its range, the level between changes, and each change as a triangle."""

import itertools

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.axes import PLAIN, time_unit
from app.figures.base import layout, plain
from app.history.told import TIME, Told
from app.history.words import amount
from app.words import short
from errors import format as fmt

HEIGHT = 420
MOST_TICKS, TICK = 7, 14  # names along the axis, and characters of one
LINE, BETTER, WORSE = "#4AA3D8", theme.COLOURS["served"], theme.COLOURS["lost_work"]
ROOM, WHISKER = 0.12, 1.0  # of what the marks span: beyond them, and how far a whisker may widen the picture


def over_runs(told: Told) -> go.Figure:
    """In the order of the runs, equally far apart: as they are judged."""
    unit, scale = _unit(told)
    figure = go.Figure()
    colour = theme.COLOURS.get(told.metric.name, LINE)
    values = np.array([p.value for p in told.result.points]) * scale
    figure.add_scatter(
        x=list(range(len(values))),
        y=values,
        mode="lines+markers",
        line={"color": colour, "width": 1},
        marker={"color": colour, "size": 8 if len(values) <= 200 else 4},
        error_y=_whiskers(told, values, scale, colour),
        hovertext=[_hover(told, n) for n in range(len(values))],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    _levels(figure, told, scale)
    _changes(figure, told, scale)
    places = sorted({round(p) for p in np.linspace(0, len(values) - 1, min(MOST_TICKS, len(values)))})
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": [_tick(told, n) for n in places]}
    return layout(
        figure,
        HEIGHT,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis={"title": {"text": _along(told)}, "showgrid": False, "zeroline": False, **ticks},
        yaxis={
            "title": {"text": f"{told.metric.title} ({unit})"},
            "range": _range(told, values, scale),
            "tickformat": ",",
            **PLAIN,
        },
        hovermode="closest",
        dragmode="zoom",
    )


def _unit(told: Told) -> tuple[str, float]:
    if told.metric.unit == "s":
        return time_unit(float(np.median([p.value for p in told.result.points])))
    return ("%", 100.0) if told.metric.of_shares else (told.metric.unit, 1.0)


def _along(told: Told) -> str:
    return "runs, in order of time" if told.by == TIME else f"{plain(short(told.by))}, in order of its first run"


def _tick(told: Told, n: int) -> str:
    point = told.result.points[n]
    return fmt.date(point.at_ns)[:10] if told.by == TIME else plain(short(point.label, TICK))


def _whiskers(told: Told, values: np.ndarray, scale: float, colour: str) -> dict:
    points = told.result.points
    ends = [[(p.value if e is None else e) * scale for p in points for e in (getattr(p, end),)] for end in ENDS]
    return {
        "type": "data",
        "symmetric": False,
        "array": np.array(ends[1]) - values,
        "arrayminus": values - np.array(ends[0]),
        "color": colour,
        "thickness": 1,
        "width": 3 if len(points) <= 200 else 0,
    }


ENDS = ("low", "high")


def _range(told: Told, values: np.ndarray, scale: float) -> list[float]:
    """Of all marks; whiskers widen it by no more than the marks span, lest one run of few steps makes the rest flat."""
    low, high = float(values.min()), float(values.max())
    whiskers = [e * scale for p in told.result.points for e in (p.low, p.high) if e is not None]
    most = WHISKER * (high - low) if high > low else float("inf")
    low, high = (
        min([low, *(max(w, low - most) for w in whiskers)]),
        max([high, *(min(w, high + most) for w in whiskers)]),
    )
    room = ROOM * (high - low or abs(high) or 1.0)
    return [low - room, high + room]


def _levels(figure: go.Figure, told: Told, scale: float) -> None:
    """A line along each stretch between two changes."""
    changes = told.result.changes
    if not changes:
        return
    cuts = [0, *told.places, len(told.result.points)]
    levels = [changes[0].before, *(c.after for c in changes)]
    x, y = list[float | None](), list[float | None]()
    for (first, after), level in zip(itertools.pairwise(cuts), levels, strict=True):
        x += [first - 0.5, after - 0.5, None]
        y += [level * scale, level * scale, None]
    figure.add_scatter(x=x, y=y, mode="lines", line={"color": theme.GREY, "width": 2, "dash": "dot"}, hoverinfo="skip")


def _changes(figure: go.Figure, told: Told, scale: float) -> None:
    """A triangle at each, the way that it went, with its number; who cannot see colours has its sentence on hover."""
    changes = told.result.changes
    if not changes:
        return
    x = [at - 0.5 for at in told.places]
    for place in x:
        figure.add_vline(x=place, line_color=theme.GREY, line_width=1, line_dash="dot")
    figure.add_scatter(
        x=x,
        y=[(c.before + c.after) / 2 * scale for c in changes],
        mode="markers+text",
        marker={
            "symbol": ["triangle-up" if c.change > 0 else "triangle-down" for c in changes],
            "size": 15,
            "color": [_colour(told, c.change) for c in changes],
            "line": {"width": 1, "color": theme.GREY},
        },
        text=[
            f"{n}: {amount(told.metric, c.change, True)}" if len(changes) <= 6 else str(n)
            for n, c in enumerate(changes, 1)
        ],
        textposition="middle right",
        cliponaxis=False,
        hovertext=[f"<b>{n}</b> {plain(said)}" for n, said in enumerate(told.sentences, 1)],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _colour(told: Told, change: float) -> str:
    if told.metric.more is None:
        return theme.GREY
    return WORSE if (change > 0) == told.metric.more else BETTER


def _hover(told: Told, n: int) -> str:
    point, shown = told.result.points[n], told.metric.shown
    runs = "" if len(point.runs) == 1 else f"<br>mean of {len(point.runs):,} runs"
    ends = "" if point.low is None or point.high is None else f"<br>{shown(point.low)} to {shown(point.high)}"
    return f"<b>{plain(short(point.label))}</b><br>{fmt.date(point.at_ns)}<br>{shown(point.value)}{ends}{runs}"

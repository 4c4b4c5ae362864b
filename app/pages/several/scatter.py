"""Several runs: any two numbers against each other with the front and lines of what their product or quotient means,
or several numbers beside one another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from analyzers.several.against import Better
from analyzers.several.differing import Line
from analyzers.several.front import front, iso_line, iso_values
from app import theme
from app.comparing.several import words
from app.comparing.several.answer import Several
from app.comparing.several.figures import ORDER, better, iso
from app.figures.axes import PLAIN, log_ticks
from app.figures.base import layout, plain
from app.figures.run_colours import COLOURS, DASHES, looks
from app.words import short
from errors import format as fmt

LOG_FROM = 5.0  # greatest over least: beyond it an axis is logarithmic
MOST_COLOURS = 10  # values of a fact that have a colour each
NAMED_UP_TO = 12  # runs that carry their name in the picture
SYMBOLS = ("circle", "diamond", "square")
NONE, RUN = "", "run"


@dataclass(frozen=True)
class Axis:
    """A number of every run: NaN where it is not told. `usual`: what it is multiplied by to be read."""

    name: str
    title: str
    values: np.ndarray
    better: Better

    @property
    def log(self) -> bool:
        some = self.values[np.isfinite(self.values)]
        return bool(len(some) and some.min() > 0 and some.max() > LOG_FROM * some.min())


def numbers(found: Several) -> dict[str, str]:
    """Settings and figures that are numbers in at least two runs, figures first: name and title."""
    lines = [*found.table.differs, *found.table.some]
    some = [x for x in lines if len(x.told) > 1 and all(_is_number(v) for v in x.told)]
    some.sort(key=lambda x: ORDER.index(x.name) if x.figure else len(ORDER))
    return {x.name: words.title(x.name) for x in some}


def facts(found: Several) -> dict[str, str]:
    """What points can have their colour by: settings that differ."""
    return {x.name: words.setting(x.name).capitalize() for x in found.table.settings}


def axis(found: Several, name: str) -> Axis:
    line = _line(found, name)
    values = np.array([np.nan if v is None else float(v) for v in line.values])
    shown = 100.0 if name in ("mfu", "goodput") else 1.0
    unit = " (%)" if shown == 100 else " (s)" if name == "step_time" else ""
    return Axis(name, words.title(name) + unit, values * shown, better(name))


def _line(found: Several, name: str) -> Line:
    return next(x for x in (*found.table.differs, *found.table.some) if x.name == name)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scatter(found: Several, x: Axis, y: Axis, by: str) -> tuple[go.Figure, str]:
    """The picture, and what is to be said above it."""
    there = np.isfinite(x.values) & np.isfinite(y.values)
    figure = go.Figure()
    said = [_isos(figure, x, y, there), _front(figure, found, x, y, there)]
    for title, which, look in _groups(found, by, np.flatnonzero(there)):
        figure.add_scatter(
            x=x.values[which],
            y=y.values[which],
            mode="markers+text" if there.sum() <= NAMED_UP_TO else "markers",
            text=[plain(short(found.members[n].name, 22)) for n in which],
            textposition="top center",
            textfont_size=11,
            name=plain(title),
            marker={"size": 11, **look},
            hovertext=[_told(found, n, x, y) for n in which],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=bool(by),
        )
    if missing := int((~there).sum()):
        said.append(f"{fmt.count(missing, 'run')} that {'does' if missing == 1 else 'do'} not tell both are not drawn.")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    layout(
        figure,
        460,
        showlegend=bool(by),
        legend=legend,
        margin={"l": 8, "r": 8, "t": 40 if by else 8, "b": 8},
        xaxis={"title": {"text": x.title}, **_scale(x, there)},
        yaxis={"title": {"text": y.title}, **_scale(y, there)},
        hovermode="closest",
    )
    return figure, " ".join(s for s in said if s)


def _scale(a: Axis, there: np.ndarray) -> dict:
    """Room around what is drawn, on a logarithmic axis where it spans much."""
    some = a.values[there]
    if not len(some):
        return dict(PLAIN)
    low, high = float(some.min()), float(some.max())
    if a.log:
        edge = 0.08 * max(np.log10(high / low), 0.1)
        return {**PLAIN, **log_ticks(low, high), "range": [np.log10(low) - edge, np.log10(high) + edge]}
    room = 0.1 * ((high - low) or abs(high) or 1.0)
    return {**PLAIN, "range": [low - room, high + room]}


def _groups(found: Several, by: str, at: np.ndarray) -> list[tuple[str, list[int], dict]]:
    """(value, runs, look) by the fact that gives the colour: numbers of many values on a scale, others one each."""
    if not by:
        styles = looks([m.run_id for m in found.members])
        colours = [styles[found.members[n].run_id][0] for n in at]
        marks = [SYMBOLS[DASHES.index(styles[found.members[n].run_id][1])] for n in at]
        return [("run", list(at), {"color": colours, "symbol": marks})]
    line = _line(found, by)
    values = list(dict.fromkeys(line.values[n] for n in at))
    if len(values) > MOST_COLOURS and all(_is_number(v) for v in line.told):
        told = [n for n in at if line.values[n] is not None]
        scale = {"color": [float(line.values[n]) for n in told], "colorscale": "Viridis", "showscale": True}
        return [(words.setting(by), told, scale | {"colorbar": {"title": plain(words.setting(by)), "thickness": 12}})]
    values.sort(key=lambda v: (v is None, not _is_number(v), v if _is_number(v) else str(v)))
    groups = []
    for place, value in enumerate(values[:MOST_COLOURS]):
        colour = theme.GREY if value is None else COLOURS[place]
        title = "not told" if value is None else words.value(line, value)
        which = [n for n in at if line.values[n] == value]
        groups.append((short(title, 30), which, {"color": colour, "symbol": SYMBOLS[place % 3]}))
    if rest := [n for n in at if line.values[n] in values[MOST_COLOURS:]]:
        groups.append(("others", rest, {"color": theme.GREY, "symbol": "x"}))
    return groups


def _told(found: Several, n: int, x: Axis, y: Axis) -> str:
    each = "<br>".join(f"{plain(a.title)}: {fmt.number(float(a.values[n]))}" for a in (x, y))
    return f"<b>{plain(short(found.members[n].name))}</b><br>{each}"


def _front(figure: go.Figure, found: Several, x: Axis, y: Axis, there: np.ndarray) -> str:
    """The runs that no other beats in both, joined; only among runs of one kind and model."""
    if not x.better or not y.better:
        return ""
    at = np.flatnonzero(there)
    if len({(m.kind, m.simulated, m.model) for m in (found.members[n] for n in at)}) > 1:
        return "The runs are not all of one kind and model: which of them no other beats is not told."
    best = [int(at[n]) for n in front(x.values[at], y.values[at], x.better, y.better)]
    if not best:
        return ""
    figure.add_scatter(
        x=x.values[best],
        y=y.values[best],
        mode="lines+markers",
        line={"color": theme.GREY, "width": 1.5, "dash": "dot", "shape": "linear"},
        marker={"size": 20, "symbol": "circle-open", "color": theme.GREY, "line": {"width": 1.5}},
        hoverinfo="skip",
        showlegend=False,
    )
    ways = " and ".join(map(_way, (x, y)))
    return f"Ringed: of the {len(at):,} runs, the {len(best):,} of which no other has both {ways}."


def _way(a: Axis) -> str:
    """`lower step time`, `fewer chips`."""
    if a.name == "chips":
        return "fewer chips"
    return f"{'higher' if a.better == 'more' else 'lower'} {words.named(a.name)}"


def _isos(figure: go.Figure, x: Axis, y: Axis, there: np.ndarray) -> str:
    """Dotted lines on which what the two make is the same."""
    means, some = iso(x.name, y.name), there & (x.values > 0) & (y.values > 0)
    if means is None or not some.any():
        return ""
    product = means.of == "product"
    turned = not product and means.y != y.name  # a quotient of x over y: lines through the origin all the same
    made = x.values * y.values if product else x.values / y.values if turned else y.values / x.values
    low, high = float(x.values[some].min()) / 1.3, float(x.values[some].max()) * 1.3
    along = np.geomspace(low, high, 60)
    for value in iso_values(made[some]):
        slope = value if product or not turned else 1 / value
        drawn = iso_line(slope, along, product)
        figure.add_scatter(
            x=along,
            y=drawn,
            mode="lines",
            line={"color": theme.GREY, "width": 1, "dash": "dash"},
            opacity=0.6,
            hoverinfo="skip",
            showlegend=False,
        )
        _label(figure, x, y, along, drawn, there, f"{fmt.number(value, 2)} {means.unit}")
    return f"Dashed: the same {means.means} ({means.unit})."


def _label(
    figure: go.Figure, x: Axis, y: Axis, along: np.ndarray, drawn: np.ndarray, there: np.ndarray, text: str
) -> None:
    """At the last point of a line that lies among the points."""
    inside = (drawn >= y.values[there].min()) & (drawn <= y.values[there].max()) & (along <= x.values[there].max())
    if not inside.any():
        return
    at = int(np.flatnonzero(inside)[-1])
    place = [float(np.log10(v[at])) if a.log else float(v[at]) for a, v in ((x, along), (y, drawn))]
    figure.add_annotation(x=place[0], y=place[1], text=plain(text), showarrow=False, font_size=11, xanchor="right")


def parallel(found: Several, axes: Sequence[Axis], by: str) -> go.Figure:
    """One line a run over several numbers; a run that does not tell all of them has none."""
    there = np.all([np.isfinite(a.values) for a in axes], axis=0)
    colour: dict = {"color": COLOURS[0]}
    if by:
        line = _line(found, by)
        values = list(dict.fromkeys(v for v in line.values if v is not None))
        if all(_is_number(v) for v in values):
            codes = np.array([np.nan if v is None else float(v) for v in line.values])
            there &= np.isfinite(codes)
            colour = {"color": codes[there], "colorscale": "Viridis", "showscale": True}
        else:
            codes = np.array([-1.0 if v is None else float(values.index(v)) for v in line.values])
            steps = max(len(values) - 1, 1)
            scale = [[n / steps, COLOURS[n % len(COLOURS)]] for n in range(len(values))]
            colour = {"color": codes[there], "colorscale": scale if len(values) > 1 else "Viridis"}
    figure = go.Figure(
        go.Parcoords(
            line=colour,
            dimensions=[{"label": plain(a.title), "values": a.values[there]} for a in axes],
            labelfont={"size": 13},
        )
    )
    return layout(figure, 420, margin={"l": 70, "r": 70, "t": 60, "b": 24})

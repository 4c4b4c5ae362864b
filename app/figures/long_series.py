"""A series of very many steps as a screen can show it: how they lie, their quantiles, and the steps that stand out.

A line over hundreds of thousands of steps becomes a solid band from the least to the greatest, which tells of the few
and hides the many. Here each stretch of equally many step numbers is one column: shaded by how many of its steps took
each value, with its 5th, 25th, 50th, 75th and 95th percentile, and only what stands out is drawn step by step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import theme
from app.figures.base import plain

LONG = 5000  # more steps than this are drawn so
STRETCHES = 480  # columns at most: with a thousand points of width each is two of them
CELLS = 72  # rows of shading
MOST = 800  # points of steps that stand out: two or three to each column of the picture
PERCENTILES = (5, 25, 50, 75, 95)
BEYOND = 3.0  # times the width of the middle half that a step must lie outside of it to stand out
MARGINS = {"l": 72, "b": 52}  # pixels: room for ticks of six characters, and a title
SAID = "said"  # among the figure's own data: the words for above it
LEAST_WIDTH = 0.01  # of the median: a middle half narrower than this counts as so wide
SOLID, SHADE = theme.THIN["useful_maths"], "31,154,147"
Hovers = Callable[[pd.DataFrame], list[str]]


def is_long(count: int) -> bool:
    return count > LONG


@dataclass(frozen=True)
class Stretches:
    """Values over step numbers, by stretches of `width` step numbers from `first` on.

    counts       values in each stretch; those without one have NaN for percentiles
    percentiles  of each stretch, a row for each of PERCENTILES, interpolated linearly
    low, high    beyond which a value of the stretch stands out: BEYOND times the width of the middle half (at least
                 LEAST_WIDTH of the median) below the 25th or above the 75th percentile
    edges, cells how many values of each stretch lie between two edges; those that stand out are in none
    """

    first: int
    width: int
    counts: np.ndarray
    percentiles: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edges: np.ndarray
    cells: np.ndarray

    def of(self, steps: np.ndarray) -> np.ndarray:
        """The stretch of each step."""
        return np.clip((steps - self.first) // self.width, 0, len(self.counts) - 1)

    def excess(self, steps: np.ndarray, values: np.ndarray) -> np.ndarray:
        """How far each value lies beyond what is usual in its stretch: 0 where it does not, or where none is known."""
        at = self.of(steps)
        return np.nan_to_num(np.maximum(np.maximum(values - self.high[at], self.low[at] - values), 0.0))

    @property
    def steps(self) -> np.ndarray:
        """The middle of each stretch."""
        return self.first + self.width * (np.arange(len(self.counts)) + 0.5) - 0.5


def stretches(steps: np.ndarray, values: np.ndarray, log: bool = False) -> Stretches:
    """Reduce values, none of them NaN, over their step numbers. `log`: cells are alike on a logarithmic axis."""
    first, span = int(steps.min()), int(steps.max()) - int(steps.min()) + 1
    width = -(-span // STRETCHES)
    at = (steps - first) // width
    counts = np.bincount(at, minlength=-(-span // width))
    found = _percentiles(at, values, counts)
    middle = np.maximum(found[3] - found[1], LEAST_WIDTH * np.abs(found[2]))
    low, high = found[1] - BEYOND * middle, found[3] + BEYOND * middle
    usual = (values >= low[at]) & (values <= high[at])
    edges = _edges(values[usual], log)
    level = np.clip(np.searchsorted(edges, values[usual], side="right") - 1, 0, CELLS - 1)
    cells = np.bincount(level * len(counts) + at[usual], minlength=CELLS * len(counts))
    return Stretches(first, width, counts, found, low, high, edges, cells.reshape(CELLS, len(counts)))


def _percentiles(at: np.ndarray, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Those of each stretch; NaN where it holds nothing."""
    ordered = values[np.lexsort((values, at))]
    begin = np.cumsum(counts) - counts
    found = np.full((len(PERCENTILES), len(counts)), np.nan)
    some = counts > 0
    for row, percentile in enumerate(PERCENTILES):
        place = percentile / 100 * (counts[some] - 1)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, counts[some] - 1)
        a, b = ordered[begin[some] + below], ordered[begin[some] + above]
        found[row, some] = a + (b - a) * (place - below)
    return found


def _edges(values: np.ndarray, log: bool) -> np.ndarray:
    """Of the cells, from the least to the greatest value."""
    low, high = float(values.min()), float(values.max())
    if log and low > 0:
        return np.geomspace(low * 0.999, high * 1.001, CELLS + 1)
    room = max((high - low) * 1e-3, abs(high) * 1e-3, 1e-12)
    return np.linspace(low - room, high + room, CELLS + 1)


def steady(figure: go.Figure) -> go.Figure:
    """With margins for its ticks and titles of their own: a figure that fits them itself is drawn twice, and thousands
    of points take a second to draw."""
    figure.update_xaxes(automargin=False, title_standoff=None)
    figure.update_yaxes(automargin=False)
    return figure.update_layout(margin=MARGINS)


def said_of(figure: go.Figure) -> str:
    """The words that stand above a figure with a long series; empty where it holds none."""
    return (getattr(figure.layout, "meta", None) or {}).get(SAID, "")


@dataclass(frozen=True)
class LongSeries:
    """Traces of a long series, and the words that say what they are."""

    traces: tuple[go.Scatter | go.Heatmap, ...]
    found: Stretches
    words: str

    def draw(self, figure: go.Figure) -> None:
        """Into a figure, which then knows its words."""
        figure.add_traces(self.traces)
        figure.update_layout(meta={SAID: self.words})


def long_series(rows: pd.DataFrame, unit: str, hovers: Hovers, log: bool = False) -> LongSeries:
    """Column `y` of `rows`, in `unit`, over column `step`: shading, percentiles, and the steps that stand out."""
    rows = rows[rows["y"].notna()]
    steps, values = _numbers(rows)
    found = stretches(steps, values, log)
    shown, beyond = standing_out(found, rows)
    traces = [_shading(found, unit), *_lines(found, unit)]
    if len(shown):
        traces.append(_points(shown, f"stands out ({beyond:,})", SOLID, "circle", hovers, {"size": 4, "opacity": 0.7}))
    return LongSeries(tuple(traces), found, _said(found, len(shown), beyond))


def standing_out(found: Stretches, rows: pd.DataFrame, most: int = MOST) -> tuple[pd.DataFrame, int]:
    """Those of the steps that stand out among their stretch's, the furthest out where there are more than `most`; and
    how many there are in all."""
    rows = rows[rows["y"].notna()]
    excess = found.excess(*_numbers(rows))
    at = np.flatnonzero(excess > 0)
    kept = at if len(at) <= most else at[np.argpartition(-excess[at], most)[:most]]
    return rows.iloc[np.sort(kept)], len(at)


def other_steps(
    found: Stretches, rows: pd.DataFrame, name: str, colour: str, symbol: str, hovers: Hovers
) -> go.Scatter | None:
    """Steps that the series leaves out (lost, first, impossible ones): those that stand out of it, each as a mark; the
    legend counts all. None where there are none."""
    rows = rows[rows["y"].notna()]
    if not len(rows):
        return None
    shown, beyond = standing_out(found, rows, MOST // 2)
    drawn = f"; {beyond:,} stand out" if beyond < len(rows) else ""
    drawn += f"; the {len(shown):,} furthest out are drawn" if len(shown) < beyond else ""
    return _points(shown, f"{name} ({len(rows):,}{drawn})", colour, symbol, hovers, {"size": 7, "opacity": 0.75})


def _numbers(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return rows["step"].to_numpy(dtype=np.int64), rows["y"].to_numpy(dtype=float)


def _shading(found: Stretches, unit: str) -> go.Heatmap:
    """Cells by how many steps they hold, on a logarithmic scale; empty ones let the page through."""
    most = max(int(found.cells.max()), 2)
    scale = [(0.0, f"rgba({SHADE},0)")]
    for strength in np.linspace(0, 1, 9):  # of colour: from one step in a cell to the most there are
        scale.append((float(most**strength / most), f"rgba({SHADE},{0.10 + 0.5 * strength:.3f})"))
    return go.Heatmap(
        x=found.first + found.width * np.arange(len(found.counts) + 1) - 0.5,
        y=found.edges,
        z=found.cells.astype(np.min_scalar_type(most)),
        zmin=0,
        zmax=most,
        colorscale=scale,
        showscale=False,
        hovertemplate=f"<b>%{{z:,}} steps</b> of a stretch of {found.width:,}<br>at about %{{y:,.5r}} {plain(unit)}, "
        "near step %{x:,.0f}<extra></extra>",
    )


def _lines(found: Stretches, unit: str) -> list[go.Scatter]:
    """The percentiles, the median over the others, with all of them in its hover."""
    looks = ((0, "dot", 1.0, 0.9), (1, "solid", 1.0, 0.9), (3, "solid", 1.0, 0.9), (4, "dot", 1.0, 0.9))
    names = {1: "middle half of the steps", 0: "5th and 95th percentile"}
    lines = [
        go.Scatter(
            x=found.steps,
            y=found.percentiles[row],
            mode="lines",
            name=names.get(row, ""),
            showlegend=row in names,
            line={"color": SOLID, "width": width, "dash": dash},
            opacity=opacity,
            hoverinfo="skip",
        )
        for row, dash, width, opacity in looks
    ]
    median = go.Scatter(
        x=found.steps,
        y=found.percentiles[2],
        mode="lines",
        name="median",
        line={"color": SOLID, "width": 2.5},
        customdata=_told_by_hover(found),
        hovertemplate="<b>Steps %{customdata[0]:,d} to %{customdata[1]:,d}</b>: %{customdata[2]:,d} drawn<br>"
        f"median %{{customdata[5]:,.5r}} {plain(unit)}"
        "<br>middle half %{customdata[4]:,.5r} to %{customdata[6]:,.5r}"
        "<br>5th to 95th percentile %{customdata[3]:,.5r} to %{customdata[7]:,.5r}<extra></extra>",
    )
    return [*lines, median]


def _told_by_hover(found: Stretches) -> np.ndarray:
    """First and last step of each stretch, how many are drawn, and the percentiles."""
    begin = found.first + found.width * np.arange(len(found.counts))
    return np.column_stack([begin, begin + found.width - 1, found.counts, *found.percentiles])


def _points(rows: pd.DataFrame, name: str, colour: str, symbol: str, hovers: Hovers, marker: dict) -> go.Scatter:
    return go.Scatter(
        x=rows["step"].to_numpy(dtype=np.int64),
        y=rows["y"].to_numpy(dtype=float),
        name=name,
        mode="markers",
        marker={"color": colour, "symbol": symbol, **marker},
        hovertext=hovers(rows),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _said(found: Stretches, shown: int, beyond: int) -> str:
    """What is seen: to stand above the picture."""
    text = (
        f"Each column is a stretch of {found.width:,} steps: the thick line is its median, the thin lines hold its "
        "middle half, the dotted ones nine tenths of it, and the shade says how many steps lie there."
    )
    if not beyond:
        return f"{text} No step stands out."
    rule = "outside the middle half of {} stretch by more than three times its width"
    which = f"all {shown:,}" if shown == beyond else f"the {shown:,} furthest out of {beyond:,}"
    if beyond == 1:
        return f"{text} The one point is a step {rule.format('its')}."
    return f"{text} Points are steps {rule.format('their')}: {which}."

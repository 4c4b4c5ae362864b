"""A placement drawn: which chips a logical axis runs over, layer by layer, and what each way costs a step."""

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.whatif.placement.answers import Answer
from errors import format as fmt
from simulators.placement import jax_order
from simulators.placement.machine import closed_walk, closure
from simulators.placement.search import Placement

MOST_CELLS, NUMBERED = 16_384, 260
SHADES = ((0.0, "#CFE3E1"), (0.5, "#5FA9A2"), (1.0, "#0B4F4B"))  # useful maths, lighter to darker
PATH = "#D55E00"
HATCHES = ("", "/", "x", ".", "\\", "+")
ROW_PX = 46
CELL_PX, WIDE_PX, TALL_PX = 34, 1200, 560


def layers(answer: Answer, placement: Placement, logical: int) -> go.Figure:
    """Every chip of a slice, coloured by its place along one logical axis; the chips of one group are joined."""
    machine = answer.machine
    places = positions(answer, placement)
    grid = _Grid(machine.dims, [a.kind for a in machine.axes], machine.levels)
    size = answer.axes[logical].size
    gap = 2 if grid.cell_px > 14 else 0.5
    drawn = places[grid.cells]  # (cells, logical)
    values = np.full(grid.shape, np.nan)
    values[grid.rows, grid.columns] = drawn[:, logical]
    hover = np.full(grid.shape, "", object)
    hover[grid.rows, grid.columns] = [
        "<br>".join(f"{plain(a.name)} {k}" for a, k in zip(answer.axes, row, strict=True)) for row in drawn
    ]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=max(size - 1, 1),
            colorscale=SHADES,
            showscale=False,
            xgap=gap,
            ygap=gap,
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            hoverongaps=False,
            **(
                {
                    "text": np.where(np.isnan(values), "", np.nan_to_num(values).astype(int).astype(str)),
                    "texttemplate": "%{text}",
                }
                if len(grid.cells) <= NUMBERED
                else {}
            ),
        )
    )
    _path(figure, answer, placement, logical, grid)
    for text, row, column in grid.titles(machine):
        figure.add_annotation(
            x=column - 0.5,
            y=row - 0.5,
            text=plain(text),
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font_size=12,
        )
    cell = min(CELL_PX, WIDE_PX / grid.shape[1])
    sides = f"{machine.axes[grid.across].name} →"
    if grid.down is not None:
        sides += f"   {machine.axes[grid.down].name} ↓"
    figure.add_annotation(
        x=-0.5, y=grid.shape[0] - 0.4, text=plain(sides), showarrow=False, xanchor="left", yanchor="top", font_size=12
    )
    return layout(
        figure,
        int(min(max(cell * grid.shape[0], 60), TALL_PX)) + 60,
        margin={"l": 8, "r": 8, "t": 30, "b": 30},
        xaxis={"visible": False, "fixedrange": True, "constrain": "domain"},
        yaxis={
            "visible": False,
            "autorange": "reversed",
            "fixedrange": True,
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )


def positions(answer: Answer, placement: Placement) -> np.ndarray:
    """Place of every device along each logical axis, int (devices, logical axes)."""
    order = jax_order.order(answer.machine.dims, placement.shares, placement.nesting)
    found = np.empty((answer.machine.devices, len(answer.axes)), np.int64)
    found[order.ravel()] = np.indices(order.shape).reshape(len(answer.axes), -1).T
    return found


class _Grid:
    """Where devices stand on the page: two axes of a layer, the longer across; layers of the rest side by side.

    `cells`: devices drawn, of the first slice and the first core, at `rows` and `columns`.
    """

    def __init__(self, dims: Sequence[int], kinds: Sequence[str], levels: bool):
        at = np.stack(np.unravel_index(np.arange(prod(dims)), dims), axis=1)
        inside = [i for i, k in enumerate(kinds) if k not in ("dcn", "core")]
        outside = [i for i in range(len(dims)) if i not in inside]
        if levels:
            inside = inside[::-1]  # the two innermost levels make a layer
        if len(inside) > 1 and dims[inside[1]] > dims[inside[0]]:
            inside[:2] = inside[1::-1]  # the longer one across
        across, down, *self.rest = [*inside, *[None] * max(2 - len(inside), 0)]
        self.across, self.down = across, down
        self.width = dims[across]
        self.height = dims[down] if down is not None else 1
        in_layer = self.width * self.height
        self.layers = min(prod(dims[i] for i in self.rest), max(MOST_CELLS // in_layer, 1))
        self.dims = dims
        layer = np.zeros(len(at), int)
        for i in self.rest:
            layer = layer * dims[i] + at[:, i]
        kept = (at[:, outside] == 0).all(axis=1) & (layer < self.layers)
        self.cells = np.nonzero(kept)[0]
        self.gap = max(1, min(self.width, self.height) // 6)
        widest = max(range(1, self.layers + 1), key=lambda n: (self._cell_px(n), n))
        self.per_row = ceil(self.layers / ceil(self.layers / widest))  # as many in each row
        self.cell_px = self._cell_px(self.per_row)
        y = at[:, down] if down is not None else np.zeros(len(at), int)
        self.row_of = layer // self.per_row * (self.height + self.gap) + y
        self.column_of = layer % self.per_row * (self.width + self.gap) + at[:, across]
        self.rows, self.columns = self.row_of[kept], self.column_of[kept]
        self.shape = self._shape(self.per_row)

    def _shape(self, per_row: int) -> tuple[int, int]:
        """Rows and columns with so many layers side by side."""
        return (
            ceil(self.layers / per_row) * (self.height + self.gap) - self.gap,
            per_row * (self.width + self.gap) - self.gap,
        )

    def _cell_px(self, per_row: int) -> float:
        """How large a cell can then be."""
        rows, columns = self._shape(per_row)
        return min(CELL_PX, TALL_PX / rows, WIDE_PX / columns)

    def titles(self, machine) -> list[tuple[str, int, int]]:
        """(text, row, column) above each layer."""
        names = [machine.axes[i].name for i in self.rest]
        if not names or self.layers == 1:
            return []  # nothing to tell apart
        sizes = [self.dims[i] for i in self.rest]
        found = []
        for layer in range(self.layers):
            where = " ".join(f"{n} {k}" for n, k in zip(names, np.unravel_index(layer, sizes), strict=True))
            found.append(
                (
                    where,
                    layer // self.per_row * (self.height + self.gap),
                    layer % self.per_row * (self.width + self.gap),
                )
            )
        return found


def _path(figure: go.Figure, answer: Answer, placement: Placement, logical: int, grid: _Grid) -> None:
    """One group of the logical axis, its devices joined in order: whole lines between neighbours, dashed what closes.

    A block without wraps is walked as a ring. Where a group leaves the layers drawn, only its part is shown.
    """
    machine, pieces = answer.machine, placement.pieces[logical]
    if not pieces:
        return
    order = np.moveaxis(jax_order.order(machine.dims, placement.shares, placement.nesting), logical, -1)
    group = order.reshape(-1, answer.axes[logical].size)[0]
    how = closure(pieces, machine)
    if how == "fold" and all(machine.axes[p.axis].kind == "link" for p in pieces):
        group = group[closed_walk([p.count for p in pieces])]
        group = np.append(group, group[0])
    group = group[np.isin(group, grid.cells)]
    x, y = grid.column_of[group], grid.row_of[group]
    lines = "lines+markers" if len(pieces) == 1 or how == "fold" else "markers"
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode=lines,
            line={"color": PATH, "width": 2},
            hoverinfo="skip",
            marker={
                "symbol": "square-open",
                "size": 0.65 * grid.cell_px,
                "color": PATH,
                "line": {"color": PATH, "width": 2},
            },
        )
    )
    if lines != "markers" and how == "wrap" and len(group) > 2:
        figure.add_trace(
            go.Scatter(
                x=[x[-1], x[0]],
                y=[y[-1] + 0.28, y[0] + 0.28],
                mode="lines",
                hoverinfo="skip",
                line={"color": PATH, "width": 2, "dash": "dot"},
            )
        )


def costs(answer: Answer, placements: Sequence[Placement]) -> go.Figure:
    """One bar a placement: maths, bubble, and what each logical axis sends, end to end as if nothing overlapped.

    A line marks the step under the stated overlap; a thin one how short it could be with full overlap.
    """
    figure = go.Figure()
    rows = list(range(len(placements)))
    parts = [
        ("maths", theme.COLOURS["useful_maths"], "", [answer.compute_s or 0.0] * len(rows)),
        ("pipeline bubble", theme.COLOURS["device_idle"], "", [answer.bubble_s] * len(rows)),
    ]
    parts += [
        (
            f"sent by {a.name}",
            theme.COLOURS["exposed_communication"],
            HATCHES[q % len(HATCHES)],
            [p.by_axis_s[q] for p in placements],
        )
        for q, a in enumerate(answer.axes)
    ]
    top = max((p.high_s for p in placements), default=1.0) or 1.0
    for name, colour, hatch, values in parts:
        if not any(values):
            continue
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=rows,
                x=values,
                name=plain(name),
                marker={
                    "color": colour,
                    "line": {"width": 1, "color": "rgba(255,255,255,0.6)"},
                    "pattern": {"shape": hatch, "bgcolor": colour, "fgcolor": "rgba(255,255,255,0.75)", "size": 7},
                },
                hovertext=[f"<b>{plain(name)}</b><br>{fmt.duration(v)}" for v in values],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    for y, p in zip(rows, placements, strict=True):
        for at, width in ((p.low_s, 1.5), (p.step_s, 3)):
            figure.add_shape(
                type="line",
                x0=at,
                x1=at,
                y0=y - 0.45,
                y1=y + 0.45,
                layer="above",
                line={"color": PATH, "width": width, "dash": "solid" if width > 2 else "dot"},
            )
        mark = " · JAX" if answer.found.jax is p else ""
        figure.add_annotation(
            x=p.high_s,
            y=y,
            text=f"step {fmt.duration(p.step_s)}{mark}",
            showarrow=False,
            xanchor="left",
            xshift=8,
            font_size=12,
        )
    return layout(
        figure,
        ROW_PX * len(rows) + 100,
        barmode="stack",
        bargap=0.4,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={
            "title": {"text": "seconds, one after another"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, top * 1.18],
            "fixedrange": True,
        },
        yaxis={
            "tickvals": rows,
            "ticktext": [plain(label(answer, p)) for p in placements],
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
        },
    )


def label(answer: Answer, placement: Placement) -> str:
    """`fsdp z · model x × y`, short enough for the side of a bar."""
    return " · ".join(f"{n} {' × '.join(p)}" for n, p in answer.held(placement).items() if p)

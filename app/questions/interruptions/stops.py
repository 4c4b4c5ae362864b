"""A job's attempts over time, wrapped into rows as a text is, with its interruptions marked; and one of them opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.intervals import Spans, overlap_with, spans
from analyzers.lost.interruptions import InterruptionsResult
from analyzers.lost.stops import STARTUP
from analyzers.time.calendar import HEADINGS
from app import theme
from app.figures.base import GRID, layout, plain
from app.questions.interruptions.words import cause_title
from errors import format as fmt

S = 1_000_000_000
PER_ROW = 16  # interruptions that a row of the strip can show apart
MOST_ROWS, CELLS, MOST_BARS, MOST_MARKS = 28, 1000, 4000, 2000
ROW_PX = 30
ROWS_S = (
    60,
    300,
    900,
    3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86_400,
    2 * 86_400,
    4 * 86_400,
    7 * 86_400,
    14 * 86_400,
    28 * 86_400,
    56 * 86_400,
    112 * 86_400,
)
GLYPHS: dict[str, str] = {
    "hardware": "x",
    "network": "triangle-up",
    "storage": "square",
    "software": "diamond",
    "out_of_memory": "pentagon",
    "maintenance": "cross",
    "preemption": "star",
    "hang": "hourglass",
    "scheduler": "hexagon",
    "user": "circle",
    "unknown": "circle-open",
}
WAIT = theme.COLOURS["infrastructure_recovery"]


@dataclass(frozen=True)
class Grid:
    """Rows of `row_s` seconds from `start_ns` on."""

    start_ns: int
    row_s: float
    rows: int

    @property
    def unit(self) -> tuple[str, float]:
        """Unit of the horizontal axis, and seconds in it."""
        return next(
            (u, s)
            for u, s in (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
            if self.row_s >= 3 * s or s == 1.0
        )

    def place(self, ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row, position along it in the axis' unit)."""
        at = (np.asarray(ns, dtype=np.int64) - self.start_ns) / S
        row = np.minimum((at // self.row_s).astype(np.int64), self.rows - 1)
        return row, (at - row * self.row_s) / self.unit[1]


def grid_of(result: InterruptionsResult) -> Grid:
    """As many rows as its interruptions need to be told apart, of a length that a person can count in."""
    start, end = int(result.phases["start_ns"].iloc[0]), int(result.phases["end_ns"].iloc[-1])
    whole = max((end - start) / S, 1e-9)
    wanted = min(max(-(-len(result.rows) // PER_ROW), 1), MOST_ROWS)
    if wanted == 1:
        return Grid(start, whole, 1)
    row_s = next((r for r in ROWS_S if r * wanted >= whole), whole / wanted)
    if row_s >= 86_400:
        start -= start % (86_400 * S)
    return Grid(start, row_s, int(-(-(end - start) // int(row_s * S))))


def strip(result: InterruptionsResult, chosen: int | None = None) -> go.Figure | None:
    """The attempts, wrapped; a mark above its row for each interruption, by family. None without times of day.

    `customdata` of a mark is the number of its interruption; `chosen` is ringed.
    """
    if not len(result.phases):
        return None
    grid = grid_of(result)
    bars = _bars(result.phases, grid)
    figure = go.Figure()
    for heading in [h for h in HEADINGS if h != "outside" and (bars["heading"] == h).any()]:
        figure.add_trace(_trace(bars[bars["heading"] == heading], heading, grid))
    _marks(figure, result, grid, chosen)
    unit, _ = grid.unit
    begins = grid.start_ns + (np.arange(grid.rows) * grid.row_s * S).astype(np.int64)
    title = f"{unit} since {fmt.date(grid.start_ns)}" if grid.rows == 1 else f"{unit} since the start of the row (UTC)"
    return layout(
        figure,
        grid.rows * ROW_PX + 130,
        barmode="overlay",
        showlegend=True,
        bargap=0,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "itemclick": False},
        margin={"l": 8, "r": 8, "t": 60, "b": 8},
        clickmode="event+select",
        xaxis={
            "title": {"text": title},
            "range": [0, grid.row_s / grid.unit[1]],
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "range": [grid.rows - 0.4, -0.75],
            "tickvals": list(range(grid.rows)),
            "fixedrange": True,
            "ticktext": _row_names(begins, grid),
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        },
    )


def _row_names(begins: np.ndarray, grid: Grid) -> list[str]:
    if grid.rows == 1:
        return [""]
    long = grid.rows * grid.row_s > 300 * 86_400  # a day and month would come twice
    form = "%Y-%m-%d" if long else "%b %d" if grid.row_s >= 86_400 else "%b %d %H:%M"
    return [datetime.fromtimestamp(int(b) / S, UTC).strftime(form) for b in begins]


def _bars(phases: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """What lies where: each cell of a row has the heading that fills most of it, neighbours merged; row, from, to
    (seconds in the row), heading. At most MOST_BARS of them, so that a long job is drawn coarser, not slower."""
    cells = CELLS
    while True:
        bars = _cells(phases, grid, cells)
        if len(bars) <= MOST_BARS or cells <= 60:
            return bars
        cells //= 2


def _cells(phases: pd.DataFrame, grid: Grid, cells: int) -> pd.DataFrame:
    edges = grid.start_ns + np.round(np.arange(grid.rows * cells + 1) * (grid.row_s * S / cells)).astype(np.int64)
    windows = Spans(edges[:-1], edges[1:])
    heading = phases["heading"].cat.codes.to_numpy()
    begin, end = phases["start_ns"].to_numpy(dtype=np.int64), phases["end_ns"].to_numpy(dtype=np.int64)
    amount = np.stack(
        [overlap_with(spans(begin[heading == k], end[heading == k]), windows) for k in range(len(HEADINGS))]
    )
    won = np.where(amount.sum(axis=0) > 0, amount.argmax(axis=0), -1)
    row = np.repeat(np.arange(grid.rows), cells)
    turns = np.flatnonzero((np.diff(won, prepend=-2) != 0) | (np.diff(row, prepend=-1) != 0))
    length = np.diff(np.append(turns, len(won)))
    step = grid.row_s / cells
    bars = pd.DataFrame(
        {
            "row": row[turns],
            "from_s": (turns % cells) * step,
            "to_s": (turns % cells + length) * step,
            "heading": np.array([*HEADINGS, ""], dtype=object)[won[turns]],
        }
    )
    return bars[~bars["heading"].isin(["", "outside"])]


def _trace(bars: pd.DataFrame, heading: str, grid: Grid) -> go.Bar:
    account = "productive" if heading == "kept" else heading
    title = "steps that were kept" if heading == "kept" else theme.title(heading).lower()
    begin = grid.start_ns + ((bars["row"] * grid.row_s + bars["from_s"]) * S).astype("int64")
    scale = grid.unit[1]
    return go.Bar(
        orientation="h",
        name=title,
        y=bars["row"],
        base=bars["from_s"] / scale,
        x=(bars["to_s"] - bars["from_s"]) / scale,
        width=0.52,
        marker={"color": theme.colour([account]), "line": {"width": 0}, "pattern": _hatch(account)},
        hovertext=[
            f"<b>{plain(title)}</b><br>{fmt.date(int(b))}<br>about {fmt.duration(d)}"
            for b, d in zip(begin, bars["to_s"] - bars["from_s"], strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hatch(account: str) -> dict[str, object]:
    return {
        "shape": theme.pattern([account]),
        "fgcolor": "rgba(90,90,90,0.25)",
        "fillmode": "overlay",
        "size": 6,
        "solidity": 0.2,
    }


def _marks(figure: go.Figure, result: InterruptionsResult, grid: Grid, chosen: int | None) -> None:
    """A glyph per family above the row; of too many the most costly are marked."""
    rows = result.rows
    if len(rows) > MOST_MARKS:
        rows = rows.nlargest(MOST_MARKS, "lost_s")
    row, x = grid.place(rows["last_sign_ns"].to_numpy(dtype=np.int64))
    rows = rows.assign(row=row, x=x)
    for family in [f for f in GLYPHS if (rows["family"] == f).any()]:
        some = rows[rows["family"] == family]
        figure.add_trace(
            go.Scatter(
                x=some["x"],
                y=some["row"] - 0.45,
                mode="markers",
                name=_family(family),
                customdata=some["number"],
                marker={
                    "symbol": GLYPHS[family],
                    "size": 9,
                    "line": {"width": 1.5, "color": theme.GREY},
                    "color": theme.GREY if some["planned"].iloc[0] or family == "unknown" else WAIT,
                },
                hovertext=[hover(r) for r in some.to_dict("records")],
                hovertemplate="%{hovertext}<extra></extra>",
                selected={"marker": {"opacity": 1}},
                unselected={"marker": {"opacity": 1}},
            )
        )
    here = rows[rows["number"] == chosen]
    if len(here):
        figure.add_trace(
            go.Scatter(
                x=here["x"],
                y=here["row"] - 0.45,
                mode="markers",
                hoverinfo="skip",
                name=f"open below: {chosen}",
                marker={"symbol": "circle-open", "size": 19, "color": theme.COLOURS["padding"], "line": {"width": 3}},
            )
        )


def _family(family: str) -> str:
    return family.replace("_", " ")


def hover(row: dict) -> str:
    """An interruption as its mark tells it."""
    where = f" on {plain(row['host'])}" if row["host"] else ""
    lines = [
        f"<b>{row['number']}: {plain(cause_title(row['cause']))}</b>{where} ({row['confidence']})",
        fmt.date(int(row["last_sign_ns"])),
    ]
    if row["lost_s"] == row["lost_s"]:
        chips = row["chip_hours"]
        lines.append(
            f"lost {fmt.duration(row['lost_s'])}{f': {fmt.chip_time(chips * 3600)}' if chips == chips else ''}"
        )
    if row["lost_steps"]:
        lines.append(f"{fmt.count(int(row['lost_steps']), 'step')} to take again")
    return "<br>".join(lines)


def parts(row: dict) -> list[tuple[str, str, float]]:
    """What followed an interruption, in order: (label, account, seconds). They add up to what it cost."""
    down, detect = row["down_s"], row["detect_s"]
    known = down == down
    out: list[tuple[str, str, float]] = []
    if known and detect == detect and 0 < detect <= down:
        out += [
            ("until it was noticed", "infrastructure_recovery", detect),
            ("waiting for the next start", "infrastructure_recovery", down - detect),
        ]
    elif known:
        until = "until it was given up" if row["kind"] == "final" else "until the next start"
        out.append((until, "infrastructure_recovery", down))
    out += [(theme.title(name).lower(), name, row[f"{name}_s"]) for name in STARTUP]
    out.append(("steps to take again", "wasted_progress", row["wasted_s"]))
    return [(label, account, float(s)) for label, account, s in out if s == s and s > 0]


def opened(row: dict) -> go.Figure | None:
    """One interruption as a waterfall of seconds, from the last sign of life on; None where nothing is known."""
    found = parts(row)
    if not found:
        return None
    total = sum(s for *_, s in found)
    unit, scale = ("hours", 3600.0) if total >= 7200 else ("minutes", 60.0) if total >= 120 else ("seconds", 1.0)
    begin = np.cumsum([0.0, *(s for *_, s in found)])[:-1]
    names = [plain(label) for label, *_ in found] + ["<b>together</b>"]
    accounts = [a for _, a, _ in found] + ["badput"]
    values = [s for *_, s in found] + [total]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=list(range(len(names))),
            x=np.array(values) / scale,
            base=[*(begin / scale), 0.0],
            marker={"color": [theme.colour([a]) for a in accounts], "pattern": {**_hatch(""), "shape": _shapes(found)}},
            hovertext=[f"<b>{n}</b><br>{fmt.duration(v)}" for n, v in zip(names, values, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    for at, (start, value) in enumerate(zip([*begin, 0.0], values, strict=True)):
        figure.add_annotation(
            x=(start + value) / scale,
            y=at,
            text=fmt.duration(value),
            showarrow=False,
            xanchor="left",
            xshift=5,
            font_size=12,
        )
    return layout(
        figure,
        len(names) * 28 + 60,
        bargap=0.25,
        xaxis={
            "title": {"text": f"{unit} lost"},
            "range": [0, total / scale * 1.18],
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "automargin": True,
            "showgrid": False,
            "fixedrange": True,
        },
    )


def _shapes(found: Sequence[tuple[str, str, float]]) -> list[str]:
    """Waiting is hatched, since it shares its colour with what came before it was noticed."""
    return ["/" if label.startswith("waiting") else theme.pattern([a]) for label, a, _ in found] + [""]

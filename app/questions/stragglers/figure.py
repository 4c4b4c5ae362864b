"""Stragglers: lateness of ranks over steps, blame, causes, clocks' offsets, and the step time with its changes."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.ranks.stragglers import StragglersResult
from analyzers.ranks.stragglers.rank_causes import CAUSES, UNKNOWN
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain, reduced
from app.questions.stragglers.words import CAUSES as WORDS
from errors import format as fmt

MOST_ROWS, MOST_COLUMNS = 128, 320  # cells that a screen can show; more are drawn as blocks
BARS = 16
LATE, EARLY, MIDDLE = ("#7A1F55", "#CC79A7"), ("#0B5F5B", "#7FB7A8"), "#F3F1EC"
MISSING = "#9A9A9A"
STYLES: dict[str, tuple[str, str]] = {  # cause: colour, pattern
    "compute": (theme.COLOURS["below_roofline"], ""),
    "other_communication": (theme.COLOURS["exposed_communication"], ""),
    "copies": (theme.COLOURS["exposed_copies"], "."),
    "input": (theme.COLOURS["input_wait"], ""),
    "garbage_collection": (theme.COLOURS["custom"], "x"),
    "launch": (theme.COLOURS["program_startup"], "\\"),
    "idle": (theme.COLOURS["device_idle"], ""),
    UNKNOWN: (theme.COLOURS["unattributed"], "/"),
}


def blocks(ranks: int) -> list[tuple[int, int]]:
    """Stretches of ranks, as [first, last], that are drawn as one row each; each rank its own where they fit."""
    size = -(-ranks // MOST_ROWS)
    return [(a, min(a + size, ranks) - 1) for a in range(0, ranks, size)]


def lateness(result: StragglersResult, first: int = 0, last: int | None = None) -> go.Figure:
    """Heat map ranks x steps, of the ranks at positions `first` to `last`; a cell of several shows the latest."""
    last = len(result.every) - 1 if last is None else last
    values = result.lateness.to_numpy()[first : last + 1]
    rows = [(a + first, b + first) for a, b in blocks(len(values))]
    cells = _latest(values, np.array([a - first for a, _ in rows]), 0)
    cells = _latest(cells, _edges(values.shape[1], MOST_COLUMNS), 1)
    labels = result.every["rank"].astype(str).to_numpy()
    unit, factor = time_unit(_reach(cells, result))
    reach = _reach(cells, result) * factor
    names = [plain(labels[a]) if a == b else plain(f"{labels[a]} to {labels[b]}") for a, b in rows]
    taken = _taken(result.steps["step"].to_numpy()[_edges(values.shape[1], MOST_COLUMNS)])
    figure = go.Figure(
        go.Heatmap(
            z=np.round(cells.astype(float) * factor, 3),
            x=taken,
            y=names,
            zmin=-reach,
            zmax=reach,
            ygap=1 if len(rows) <= 32 else 0,
            colorscale=[(0, EARLY[0]), (0.25, EARLY[1]), (0.5, MIDDLE), (0.75, LATE[1]), (1, LATE[0])],
            hovertemplate=f"rank %{{y}}, step %{{x}}<br>%{{z:.3~g}} {unit} later than its peers<extra></extra>",
            colorbar={"title": {"text": f"later ({unit})", "side": "right"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    return layout(
        figure,
        int(np.clip(len(rows) * 26, 150, 460)) + 64,
        plot_bgcolor=MISSING,
        margin={"l": 8, "r": 8, "t": 8, "b": 8, "pad": 0},
        xaxis={
            "title": {"text": "step"},
            "type": "category",
            "nticks": 14,
            "tickangle": 0,
            "showgrid": False,
            "range": [-0.5, len(taken) - 0.5],
        },
        yaxis={
            "title": {"text": "rank"},
            "type": "category",
            "automargin": True,
            "showgrid": False,
            "nticks": 16,
            "range": [len(names) - 0.5, -0.5],
        },
    )


def _taken(steps: np.ndarray) -> list[str]:
    """Step numbers as names; one taken again after a restart says so."""
    seen: dict[int, int] = {}
    names = []
    for step in steps.tolist():
        seen[step] = seen.get(step, 0) + 1
        names.append(f"{step:,}" + ("" if seen[step] == 1 else f" (taken {seen[step]} times)"))
    return names


def _edges(n: int, most: int) -> np.ndarray:
    """Where each of at most `most` equal blocks of `n` begins."""
    return np.linspace(0, n, min(n, most), endpoint=False).astype(np.int64)


def _reach(cells: np.ndarray, result: StragglersResult) -> float:
    """The lateness at which colours end: what nearly all cells stay below, and 5 % of a step at least."""
    known = np.abs(cells[~np.isnan(cells)])
    least = 0.05 * (result.step_s or 0.0) or 1e-6
    return max(float(np.quantile(known, 0.995)) if len(known) else 0.0, least)


def _latest(values: np.ndarray, edges: np.ndarray, axis: int) -> np.ndarray:
    """Greatest value of each block along an axis, NaN where all are."""
    filled = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), edges, axis=axis)
    return np.where(np.isinf(filled), np.nan, filled)


def blame(result: StragglersResult, first: int = 0, last: int | None = None) -> go.Figure | None:
    """Blame per rank with its 95 % interval, the most blamed first; None where nobody is blamed."""
    rows = result.every.iloc[first : None if last is None else last + 1]
    rows = rows[rows["blame_all_s"] > 0].sort_values("blame_all_s", ascending=False, kind="stable").head(BARS)
    if not len(rows):
        return None
    unit, factor = time_unit(float(rows["blame_all_s"].max()))
    value, low, high = (
        rows[n].to_numpy(dtype=float) * factor for n in ("blame_all_s", "blame_all_low_s", "blame_all_high_s")
    )
    named = rows["rank"].isin(result.ranks["rank"]).to_numpy()
    colour = theme.COLOURS["straggler_wait"]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            x=value,
            y=[_row_name(r) for r in rows.to_dict("records")],
            marker={"color": [colour if n else theme.GREY for n in named], "line": {"width": 0}},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high - value,
                "arrayminus": value - low,
                "color": theme.GREY,
                "thickness": 1.5,
                "width": 4,
            },
            hovertext=[
                f"<b>{_row_name(r)}</b><br>{fmt.duration(r['blame_all_s'])} saved if only it were mended<br>95 %: "
                f"{fmt.duration(r['blame_all_low_s'])} to {fmt.duration(r['blame_all_high_s'])}<br>late in "
                f"{fmt.share(r['share_of_steps'])} of its steps"
                for r in rows.to_dict("records")
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    return layout(
        figure,
        len(rows) * 26 + 64,
        bargap=0.35,
        xaxis={"title": {"text": f"blame ({unit})"}, "gridcolor": GRID, "rangemode": "tozero", "fixedrange": True},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def _row_name(row: dict) -> str:
    label, host = str(row["rank"]), str(row["host"] or "")
    return plain(f"{label} · {host}" if host and not label.startswith(host) else label)


def causes(result: StragglersResult) -> go.Figure | None:
    """Excess over the peers per step by cause, stacked, one bar per rank; None where nothing was traced."""
    rows = result.causes.head(BARS)
    return (
        _causes(
            rows, [plain(str(r)) + (" (named)" if n else "") for r, n in zip(rows["rank"], rows["named"], strict=True)]
        )
        if len(rows)
        else None
    )


def compare(result: StragglersResult, pair: tuple[str, str]) -> go.Figure | None:
    """The same for two ranks side by side."""
    rows = result.causes[result.causes["rank"].isin(pair)].drop_duplicates("rank").set_index("rank").reindex(pair)
    rows = rows.dropna(subset=["steps"]).reset_index()
    return _causes(rows, [plain(f"rank {r}") for r in rows["rank"]]) if len(rows) else None


def _causes(rows: pd.DataFrame, names: list[str]) -> go.Figure:
    amounts = rows[[*CAUSES, UNKNOWN]].astype(float)
    unit, factor = time_unit(float(amounts.abs().to_numpy().max()) or 1e-6)
    figure = go.Figure()
    for cause in (*CAUSES, UNKNOWN):
        value = amounts[cause].to_numpy() * factor
        if not (np.abs(value) > 1e-3 * np.abs(amounts.to_numpy() * factor).max()).any():
            continue
        colour, pattern = STYLES[cause]
        figure.add_trace(
            go.Bar(
                orientation="h",
                x=value,
                y=names,
                name=WORDS[cause],
                marker={
                    "color": colour,
                    "line": {"width": 0},
                    "pattern": {
                        "shape": pattern,
                        "size": 7,
                        "solidity": 0.25,
                        "fgcolor": "rgba(0,0,0,0.6)",
                        "bgcolor": colour,
                    }
                    if pattern
                    else {},
                },
                hovertext=[
                    f"<b>{n}</b><br>{WORDS[cause]}: {fmt.duration(v / factor)} a step beyond its peers"
                    for n, v in zip(names, value, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    figure.add_vline(x=0, line_color=theme.GREY, line_width=1.5)
    return layout(
        figure,
        len(names) * 34 + 110,
        barmode="relative",
        bargap=0.3,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        xaxis={
            "title": {"text": f"beyond the median of its peers, mean per step ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def step_time(result: StragglersResult) -> go.Figure | None:
    """Duration of each step by the job's own log, with the level of each stretch between changes."""
    rows = result.changes.rows
    if not len(rows):
        return None
    unit, factor = time_unit(float(rows["dur_s"].median()))
    some = rows.iloc[reduced(rows["dur_s"].to_numpy(dtype=float))]
    figure = go.Figure(
        go.Scatter(
            x=some["step"],
            y=some["dur_s"] * factor,
            mode="lines",
            name="step",
            line={"color": theme.COLOURS["productive"], "width": 1.2},
            hovertemplate=f"step %{{x:,}}: %{{y:.3~g}} {unit}<extra></extra>",
        )
    )
    for s in result.changes.stretches.to_dict("records"):
        figure.add_trace(
            go.Scatter(
                x=[s["first_step"], s["last_step"]],
                y=[s["median_s"] * factor] * 2,
                mode="lines",
                showlegend=False,
                line={"color": theme.COLOURS["straggler_wait"], "width": 3},
                hoverinfo="skip",
            )
        )
        figure.add_annotation(
            x=s["first_step"],
            y=s["median_s"] * factor,
            text=fmt.duration(s["median_s"]),
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font_size=12,
        )
    return layout(
        figure,
        320,
        xaxis={"title": {"text": "step"}, "gridcolor": GRID},
        yaxis={"title": {"text": f"duration ({unit})"}, "gridcolor": GRID, "rangemode": "tozero"},
    )

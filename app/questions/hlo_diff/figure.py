"""Two programs: how much of each is unchanged, changed or alone, and the largest differences as diverging bars."""

import pandas as pd
import plotly.graph_objects as go

from analyzers.program.difference import STATUSES, DifferenceResult
from app import theme
from app.figures.axes import size_unit, time_unit
from app.figures.base import GRID, layout, plain
from app.questions.hlo_diff.words import status
from errors import format as fmt

BARS = 24
ROW_PX = 26
LETTERS = 46
COLOURS = {
    "unchanged": theme.COLOURS["below_roofline"],
    "changed": theme.COLOURS["padding"],
    "only_a": theme.COLOURS["straggler_wait"],
    "only_b": theme.COLOURS["exposed_communication"],
}
SHORT = {"unchanged": "unchanged", "changed": "changed", "only_a": "only in the first", "only_b": "only in the second"}
MORE, LESS = theme.COLOURS["accelerator_initialization"], theme.COLOURS["useful_maths"]


def strips(result: DifferenceResult) -> go.Figure:
    """One bar for FLOPs and one for bytes of each side, by status."""
    rows = result.by_status
    bars = [(k, s) for k in ("flops", "bytes") for s in "ab" if result.totals[f"{k}_{s}"]]
    flops = {s: "FLOPs that are told" if result.untold[s] else "FLOPs" for s in "ab"}
    labels = [f"{flops[s] if k == 'flops' else 'bytes'}, {'first' if s == 'a' else 'second'}" for k, s in bars]
    figure = go.Figure()
    for place, name in enumerate(STATUSES):
        values = [float(rows[f"{k}_{s}"].fillna(0.0).to_numpy(dtype=float)[place]) for k, s in bars]
        shares = [v / float(result.totals[f"{k}_{s}"] or 1) * 100 for v, (k, s) in zip(values, bars, strict=True)]
        if not any(shares):
            continue
        words = [fmt.flops(v) if k == "flops" else fmt.size(v) for v, (k, _) in zip(values, bars, strict=True)]
        figure.add_bar(
            orientation="h",
            y=labels,
            x=shares,
            name=SHORT[name],
            marker={"color": COLOURS[name], "line": {"width": 0}},
            hovertext=[
                f"<b>{SHORT[name]}</b><br>{w}, {fmt.share(s / 100)}" for w, s in zip(words, shares, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    return layout(
        figure,
        len(bars) * 30 + 80,
        barmode="stack",
        bargap=0.3,
        showlegend=True,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={
            "range": [0, 100],
            "title": {"text": "share of the program"},
            "ticksuffix": " %",
            "gridcolor": GRID,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "fixedrange": True},
    )


def measure(result: DifferenceResult) -> str:
    """By what operations are held against each other: seconds where both were timed, else bytes."""
    timed = all(result.totals[f"seconds_{s}"] for s in "ab")
    return "seconds" if timed else "bytes"


def differences(result: DifferenceResult) -> go.Figure | None:
    """The operations that differ most, one bar each: more in the second to the right; None where nothing differs."""
    key = measure(result)
    gaps = result.pairs[f"{key}_b"].fillna(0.0) - result.pairs[f"{key}_a"].fillna(0.0)
    rows = result.pairs.assign(gap=gaps)[gaps != 0].head(BARS)
    if not len(rows):
        return None
    unit, factor = _unit(key, float(rows["gap"].abs().max()))
    told = rows.to_dict("records")
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        y=list(range(len(rows))),
        x=rows["gap"] * factor,
        marker={"color": [MORE if g > 0 else LESS for g in rows["gap"]], "line": {"width": 0}},
        hovertext=[hover(r, key) for r in told],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    edge = float(rows["gap"].abs().max()) * factor * 1.05
    what = "self time" if key == "seconds" else "bytes moved in one run"
    return layout(
        figure,
        len(rows) * ROW_PX + 60,
        bargap=0.3,
        xaxis={
            "title": {"text": f"{what}, second less first ({unit})"},
            "range": [-edge if (rows["gap"] < 0).any() else 0, edge if (rows["gap"] > 0).any() else 0],
            "gridcolor": GRID,
            "zerolinecolor": theme.GREY,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": list(range(len(rows))),
            "ticktext": [plain(_cut(_label(r), LETTERS)) for r in told],
            "automargin": True,
            "showgrid": False,
            "fixedrange": True,
        },
    )


def _unit(key: str, most: float) -> tuple[str, float]:
    if key == "seconds":
        return time_unit(most)
    unit, size = size_unit(most)
    return unit, 1 / size


def _label(row: dict) -> str:
    a, b = (row[k] if isinstance(row[k], str) else None for k in ("op_a", "op_b"))
    return f"{a} → {b}" if a and b and a != b else str(a or b)


def hover(row: dict, key: str) -> str:
    """What is known of a pair."""
    words = fmt.duration if key == "seconds" else fmt.size
    lines = [f"<b>{plain(_label(row))}</b>", plain(status(row))]
    lines.append(f"{words(_known(row[f'{key}_a']))} → {words(_known(row[f'{key}_b']))}")
    for side in "ab":
        if isinstance(row[f"shape_{side}"], str):
            lines.append(plain(_cut(row[f"shape_{side}"], 110)))
    if isinstance(row["op_name"], str):
        lines.append(plain(_cut(row["op_name"], 120)))
    return "<br>".join(lines)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)

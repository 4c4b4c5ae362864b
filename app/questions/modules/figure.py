"""The model as an icicle: the whole at the top, modules below it to scale, each with a band of what its time was."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from analyzers.device.modules.modules import ModulesResult
from app import theme
from app.figures.base import layout, plain
from app.questions.modules.words import dicts
from errors import format as fmt

ROW_PX = 58
WIDTH_PX = 1100  # about the width of the page; labels are chosen for it
CHARACTER_PX = 7.4
MOST_ROWS = 9  # of modules within modules that are drawn; opening one shows what lies deeper
LEAST = 5e-4  # of the width: narrower boxes are not drawn, the space stays empty
BAND = 0.26  # of a row's height
PARTS = (  # column, words, account whose colour it has
    ("at_roof_seconds", "needed at the roof", "useful_maths"),
    ("wasted_seconds", "beyond the roof: wasted", "below_roofline"),
    ("communication_seconds", "collectives", "exposed_communication"),
    ("unknown_seconds", "no roof known", "unattributed"),
)
PASSES = (
    ("forward_seconds", "forward", "useful_maths"),
    ("backward_seconds", "backward", "decode"),
    ("recompute_seconds", "computed again", "recomputation"),
    ("other_pass_seconds", "pass not told", "unattributed"),
)
VIEWS = {"waste": PARTS, "pass": PASSES}
FACE = "rgba(128,128,128,0.16)"
EDGE = "rgba(128,128,128,0.6)"


@dataclass(frozen=True)
class Box:
    """One module: its row of the answer, on which row of the picture, and its extent in seconds."""

    row: dict[str, Any]
    level: int
    start: float
    width: float


def opened(rows: pd.DataFrame, at: str) -> list[dict[str, Any]]:
    """The rows from the whole down to the module at path `at`, as far as there are such."""
    known = {r["path"]: r for r in dicts(rows)}
    chain, path = [], at if at in known else ""
    while isinstance(path, str):
        chain.append(known[path])
        path = known[path]["parent"]
    return chain[::-1]


def boxes(rows: pd.DataFrame, at: str = "") -> list[Box]:
    """The rectangles, opened at a path: what is around it full width, it, and all below; own time is empty space to
    the right of the modules in it."""
    chain = opened(rows, at)
    whole = chain[-1]["seconds"]
    drawn = [Box(row, i, 0.0, whole) for i, row in enumerate(chain)]
    within: dict[str, list[dict[str, Any]]] = {}
    for row in dicts(rows):
        within.setdefault(row["parent"], []).append(row)
    waiting = [drawn[-1]]
    while waiting:
        box = waiting.pop()
        start = box.start
        for row in within.get(box.row["path"], ()) if box.level < len(chain) + MOST_ROWS else ():
            if row["seconds"] >= LEAST * whole > 0:
                child = Box(row, box.level + 1, start, row["seconds"])
                drawn.append(child)
                waiting.append(child)
            start += row["seconds"]
    return drawn


def icicle(result: ModulesResult, view: str, at: str = "") -> go.Figure | None:
    """The icicle opened at a path; `view`: which band each module has (see VIEWS)."""
    drawn = boxes(result.rows, at)
    shown = drawn[0].width
    if not shown > 0:
        return None
    unit, factor = _unit(shown)
    figure = go.Figure()
    figure.add_bar(**_faces(drawn, result, factor))
    for column, words, account in VIEWS[view]:
        if any(b.row[column] > 0 for b in drawn):
            figure.add_bar(**_band(drawn, VIEWS[view], column, words, account, factor))
    figure.add_scatter(**_names(drawn, shown, factor))
    what = "self time, over all devices" if result.timed else "least time, modelled"
    return layout(
        figure,
        height=(max(b.level for b in drawn) + 1) * ROW_PX + 92,
        barmode="overlay",
        bargap=0,
        showlegend=True,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis={
            "title": {"text": f"{what} ({unit})"},
            "range": [0, shown * factor],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "visible": False, "fixedrange": True},
    )


def _unit(seconds: float) -> tuple[str, float]:
    return next(((u, f) for u, f in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)) if seconds * f >= 1), ("ns", 1e9))


def _faces(drawn: list[Box], result: ModulesResult, factor: float) -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": [b.width * factor for b in drawn],
        "base": [b.start * factor for b in drawn],
        "y": [b.level for b in drawn],
        "width": 0.94,
        "name": "module",
        "showlegend": False,
        "customdata": [b.row["path"] for b in drawn],
        "hovertext": [hover(b.row, result) for b in drawn],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": FACE,
            "line": {"color": EDGE, "width": 1},
            "pattern": {
                "shape": ["" if b.row["told"] else "/" for b in drawn],
                "fgcolor": "rgba(128,128,128,0.35)",
                "size": 12,
                "solidity": 0.12,
                "fillmode": "overlay",
            },
        },
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def _names(drawn: list[Box], shown: float, factor: float) -> dict[str, Any]:
    """Names above the bands, in the ink of the page."""
    texts = [_label(b, shown) for b in drawn]
    some = [(b, text) for b, text in zip(drawn, texts, strict=True) if text]
    return {
        "mode": "text",
        "x": [(b.start + b.width / 2) * factor for b, _ in some],
        "y": [b.level - BAND / 2 for b, _ in some],
        "text": [text for _, text in some],
        "textposition": "middle center",
        "textfont": {"size": 13},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _band(drawn: list[Box], parts: tuple, column: str, words: str, account: str, factor: float) -> dict[str, Any]:
    """One part of the time of every module, in the band at the foot of its box."""
    before = [c for c, *_ in parts[: [c for c, *_ in parts].index(column)]]
    some = [b for b in drawn if b.row[column] > 0]
    fill, name = theme.COLOURS[account], words
    return {
        "orientation": "h",
        # bands stand for the box's own extent: of one that is opened from within, the same shares
        "x": [b.row[column] * _scale(b) * factor for b in some],
        "base": [(b.start + sum(_n(b.row[c]) for c in before) * _scale(b)) * factor for b in some],
        "y": [b.level + 0.47 - BAND / 2 for b in some],
        "width": BAND,
        "name": name,
        "hoverinfo": "skip",
        "marker": {
            "color": fill,
            "line": {"width": 0},
            "pattern": {"shape": theme.PATTERNS.get(account, ""), "fgcolor": "rgba(90,90,90,0.35)", "size": 7},
        },
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def _scale(box: Box) -> float:
    return box.width / box.row["seconds"] if box.row["seconds"] > 0 else 0.0


def _n(value: float) -> float:
    return 0.0 if pd.isna(value) else float(value)


def _label(box: Box, shown: float) -> str:
    """Name with its share, the name, or nothing, by the room there is; above the band."""
    room = box.width / shown * WIDTH_PX / CHARACTER_PX - 1
    name, share = str(box.row["name"]), fmt.share(box.row["share"])
    text = f"{name}  {share}" if len(name) + len(share) + 2 <= room else name if len(name) <= room else ""
    if not text and room >= 6:
        text = name[: int(room) - 1] + "…"
    return plain(text)


def hover(row: dict[str, Any], result: ModulesResult) -> str:
    """What is known of a module, line by line."""
    lines = [f"<b>{plain(row['name'])}</b>" + (f", {row['copies']:,} alike" if row["copies"] > 1 else "")]
    lines.append(
        f"{fmt.duration(row['seconds'])}, {fmt.share(row['share'])}; its own {fmt.duration(row['own_seconds'])}"
    )
    passes = [f"{words} {fmt.duration(row[column])}" for column, words, _ in PASSES if row[column] > 0]
    lines.append(", ".join(passes))
    if result.timed:
        lines.append(", ".join(f"{words} {fmt.duration(row[column])}" for column, words, _ in PARTS if row[column] > 0))
    if row["exposed_communication_seconds"] > 0:
        lines.append(f"exposed communication {fmt.duration(row['exposed_communication_seconds'])}")
    if pd.notna(row["flops"]):
        again = f", and {fmt.flops(row['recomputed_flops'])} again" if row["recomputed_flops"] > 0 else ""
        lines.append(f"{fmt.flops(row['flops'])}{again}")
    if row["copies"] > 1:
        least, most = fmt.duration(row["least_copy_seconds"]), fmt.duration(row["longest_copy_seconds"])
        lines.append(f"a copy takes {least} to {most}, {fmt.duration(row['median_copy_seconds'])} at the median")
    return "<br>".join(line for line in lines if line)

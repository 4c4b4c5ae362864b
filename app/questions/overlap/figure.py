"""Computing, communication and idle time: per device, per step, and along one step."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.overlap import AS_THE_LEDGER, OverlapResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.questions.overlap.words import label
from errors import format as fmt

MAX_DEVICES = 48  # of more, those that compute least are shown
MAX_STEPS = 300  # bars; of more, neighbours are drawn together as their mean
ROW_PX = 26
HAIR = 5e-4  # of the time: a part that no bar could show
TEXT_FROM = 0.06  # of the bar: a narrower part holds no text
COMPUTE, COMMUNICATION = theme.COLOURS["productive"], theme.COLOURS["exposed_communication"]
PARTS: tuple[tuple[str, str, str, str], ...] = (  # kind in the timeline, legend, colour, pattern
    ("compute", "computing", COMPUTE, ""),
    ("overlapped", "computing over communication", COMPUTE, "/"),
    ("exposed", "exposed communication", COMMUNICATION, ""),
    ("waiting", "waiting for other ranks", theme.COLOURS["straggler_wait"], ""),
    ("untold", "communication or waiting", theme.COLOURS["unattributed"], "."),
    ("copies", "copies alone", theme.COLOURS["below_roofline"], "."),
    ("input", "waiting for input", theme.COLOURS["input_wait"], ""),
    ("idle", "idle", theme.COLOURS["device_idle"], ""),
)
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def amounts(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Seconds by kind of the timeline; together the window."""
    over = rows["overlapped_s"].to_numpy(dtype=float)
    return {
        "compute": rows["compute_s"].to_numpy(dtype=float) - over,
        "overlapped": over,
        "exposed": rows["exposed_communication_s"].to_numpy(dtype=float),
        "waiting": rows["straggler_wait_s"].to_numpy(dtype=float),
        "untold": rows["communication_or_wait_s"].to_numpy(dtype=float),
        "copies": rows["copies_s"].to_numpy(dtype=float),
        "input": rows["input_wait_s"].to_numpy(dtype=float),
        "idle": rows["device_idle_s"].to_numpy(dtype=float),
    }


def _marker(colour: str, pattern: str) -> dict:
    marker: dict = {"color": colour, "line": {"width": 0}}
    if pattern:
        drawn, solidity = (COMMUNICATION, 0.4) if pattern == "/" else ("rgba(0,0,0,0.35)", 0.12)
        marker["pattern"] = {"shape": pattern, "fgcolor": drawn, "bgcolor": colour, "size": 8, "solidity": solidity}
    return marker


def devices(result: OverlapResult) -> go.Figure:
    """One bar per device: what share of its time went where."""
    rows = result.devices
    if len(rows) > MAX_DEVICES:
        rows = rows.loc[(rows["compute_s"] / rows["window_s"]).nsmallest(MAX_DEVICES).index].sort_index()
    names = [plain(label(h, d, result)) for h, d in zip(rows["host"], rows["device"], strict=True)]
    whole = rows["window_s"].to_numpy(dtype=float)
    figure = go.Figure()
    for kind, words, colour, pattern in PARTS:
        seconds = amounts(rows)[kind]
        share = seconds / np.where(whole > 0, whole, 1)
        if share.max() < HAIR:
            continue
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=names,
                x=share * 100,
                marker=_marker(colour, pattern),
                text=[fmt.whole_share(s) if s >= TEXT_FROM else "" for s in share],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": theme.text_on(colour if pattern != "/" else COMMUNICATION), "size": 12},
                hovertext=[
                    f"<b>{n}</b><br>{words}: {fmt.duration(s)}, {fmt.share(p)}"
                    for n, s, p in zip(names, seconds, share, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        len(rows) * ROW_PX + 124,
        barmode="stack",
        bargap=0.22,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 44, "b": 8},
        xaxis={"title": {"text": f"% of {_window(result)}"}, "range": [0, 100], "gridcolor": GRID, "fixedrange": True},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def _window(result: OverlapResult) -> str:
    return {
        "steps": "time in steps",
        "operations": "time from first to last operation",
        "capture": "captured time",
    }.get(result.window, "time")


def steps(result: OverlapResult) -> go.Figure | None:
    """Mean over devices of what each step was spent on, in the order they were taken; None without steps."""
    rows = result.steps
    if not len(rows):
        return None
    last = rows.sort_values("taken").drop_duplicates("step", keep="last").sort_values("step")
    group = np.arange(len(last)) * min(MAX_STEPS, len(last)) // len(last)
    columns = ["step", "window_s", "compute_s", "overlapped_s", "copies_s", *AS_THE_LEDGER]
    drawn = last[columns].astype(float).groupby(group).mean()
    first, until = last.groupby(group)["step"].first(), last.groupby(group)["step"].last()
    names = [f"step {a:,}" if a == b else f"steps {a:,} to {b:,}, mean" for a, b in zip(first, until, strict=True)]
    unit, factor = time_unit(float(drawn["window_s"].median()))
    figure = go.Figure()
    for kind, words, colour, pattern in PARTS:
        seconds = amounts(drawn)[kind]
        if (seconds < HAIR * drawn["window_s"].to_numpy()).all():
            continue
        figure.add_trace(
            go.Bar(
                name=words,
                x=drawn["step"],
                y=seconds * factor,
                marker=_marker(colour, pattern),
                hovertext=[f"<b>{n}</b><br>{words}: {fmt.duration(s)}" for n, s in zip(names, seconds, strict=True)],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        320,
        barmode="stack",
        bargap=0,
        showlegend=True,
        legend=LEGEND,
        hovermode="closest",
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        xaxis={"title": {"text": "step"}, "showgrid": False},
        yaxis={"title": {"text": f"mean per device ({unit})"}, "gridcolor": GRID},
    )


def timeline(result: OverlapResult) -> go.Figure | None:
    """One step along time, a row per device; None where nothing can be drawn."""
    rows = result.timeline
    if not len(rows):
        return None
    names = [plain(label(h, d, result)) for h, d in zip(rows["host"], rows["device"], strict=True)]
    rows = rows.assign(name=names)
    unit, factor = time_unit(float((rows["start_s"] + rows["dur_s"]).max()))
    figure = go.Figure()
    for kind, words, colour, pattern in PARTS:
        some = rows[rows["kind"] == kind]
        if not len(some):
            continue
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=some["name"],
                base=some["start_s"] * factor,
                x=some["dur_s"] * factor,
                marker=_marker(colour, pattern),
                width=0.86,
                hovertext=[
                    f"<b>{n}</b><br>{words}: {fmt.duration(d)} from {fmt.duration(s)} on"
                    for n, s, d in zip(some["name"], some["start_s"], some["dur_s"], strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    order = list(dict.fromkeys(names))
    return layout(
        figure,
        len(order) * ROW_PX + 100,
        barmode="overlay",
        showlegend=True,
        legend=LEGEND,
        dragmode="zoom",
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        xaxis={
            "title": {"text": f"time since the device's own start of it ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            "rangemode": "tozero",
        },
        yaxis={
            "autorange": "reversed",
            "categoryorder": "array",
            "categoryarray": order,
            "automargin": True,
            "type": "category",
            "fixedrange": True,
        },
    )

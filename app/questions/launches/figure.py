"""Idle time by reason: per device, and by the operation that ended it."""

import numpy as np
import plotly.graph_objects as go

from analyzers.device.host_work import HOST_CODE
from analyzers.device.launches.feeding import BETWEEN_KERNELS
from analyzers.device.launches.launches import DELAYED, INPUT, KINDS, UNEXPLAINED, LaunchesResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.questions.launches.words import SHORT, label
from errors import format as fmt

MAX_DEVICES = 48  # of more, those that are idle most are shown
ROW_PX = 30
HAIR = 5e-4  # of the longest bar: a part that none could show
ACCOUNTS = {  # kinds whose account has another name than `idle_<kind>`
    DELAYED: "idle_launching",
    INPUT: "input_wait",
    UNEXPLAINED: "idle_unexplained",
    "waiting": "idle_unexplained",
    "compilation": "compilation",
}
DOTTED = (DELAYED, "waiting")  # parts that share the colour of another
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
PARTS = (("late_s", "host late", HOST_CODE), ("delay_s", "launch to start", DELAYED))
BETWEEN = ("between_s", "between kernels", BETWEEN_KERNELS)
LONGEST = 46  # characters of an operation's name beside its bar


def colour(kind: str) -> str:
    return theme.COLOURS[ACCOUNTS.get(kind, f"idle_{kind}")]


def _marker(kind: str) -> dict:
    marker: dict = {"color": colour(kind), "line": {"width": 0}}
    if kind in DOTTED:
        marker["pattern"] = {"shape": ".", "fgcolor": "rgba(0,0,0,0.35)", "bgcolor": colour(kind), "size": 7}
    return marker


def devices(result: LaunchesResult) -> go.Figure:
    """One bar per device: what share of its time it was idle, by reason."""
    rows = result.devices
    if len(rows) > MAX_DEVICES:
        rows = rows.loc[(rows["idle_s"] / rows["window_s"]).nlargest(MAX_DEVICES).index].sort_index()
    names = [plain(label(h, d, result)) for h, d in zip(rows["host"], rows["device"], strict=True)]
    whole = np.maximum(rows["window_s"].to_numpy(dtype=float), 1e-12)
    parts = {kind: rows[f"{kind}_s"].to_numpy(dtype=float) for kind in KINDS}
    longest = float((rows["idle_s"].to_numpy(dtype=float) / whole).max(initial=0.0))
    figure = go.Figure()
    for kind in sorted(KINDS, key=lambda k: -parts[k].sum()):
        share = parts[kind] / whole
        if share.max(initial=0.0) < HAIR * max(longest, HAIR):
            continue
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=SHORT[kind],
                y=names,
                x=share * 100,
                marker=_marker(kind),
                hovertext=[
                    f"<b>{n}</b><br>{SHORT[kind]}: {fmt.duration(s)}, {fmt.share(p)}"
                    for n, s, p in zip(names, parts[kind], share, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        len(rows) * ROW_PX + 110,
        barmode="stack",
        bargap=0.3,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 52, "b": 8},
        xaxis={
            "title": {"text": f"idle, % of {'step time' if result.window == 'steps' else 'the time'}"},
            "rangemode": "tozero",
            "gridcolor": GRID,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def waited(result: LaunchesResult) -> go.Figure | None:
    """What ended the most idle time, one bar an operation; None where no device was idle."""
    rows = result.waited[result.waited["idle_s"] > 0]
    if not len(rows):
        return None
    told, places = rows.to_dict("records"), np.arange(len(rows))
    unit, factor = time_unit(float(rows["idle_s"].max()))
    figure = go.Figure()
    for column, words, kind in (*PARTS, BETWEEN):
        seconds = rows[column].to_numpy(dtype=float)
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=places,
                x=seconds * factor,
                marker=_marker(kind),
                hovertext=[_hover(row, words, s) for row, s in zip(told, seconds, strict=True)],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    texts = [plain(_short(str(name), LONGEST)) for name in rows["operation"].fillna("of no name")]
    return layout(
        figure,
        len(rows) * 24 + 110,
        barmode="stack",
        bargap=0.25,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 52, "b": 8},
        xaxis={"title": {"text": f"device idle before it ({unit})"}, "gridcolor": GRID, "fixedrange": True},
        yaxis={
            "autorange": "reversed",
            "automargin": True,
            "tickvals": places,
            "ticktext": texts,
            "fixedrange": True,
        },
    )


def _hover(row: dict, words: str, seconds: float) -> str:
    source = f"<br>{plain(row['source'])}" if isinstance(row["source"], str) else ""
    name, times = plain(_short(row["operation"], 120)), fmt.count(int(row["gaps"]), "gap")
    return f"<b>{name}</b><br>{words}: {fmt.duration(seconds)}, in {times}{source}"


def _short(text: object, most: int) -> str:
    text = str(text)
    return text if len(text) <= most else text[: most - 1] + "…"


CALLS = {
    "call": "call",
    "launches": "launches",
    "executions": "executions",
    "shorter_executions": "shorter than their call",
    "call_s": "in calls",
    "call_median_s": "a call, median",
    "call_max_s": "a call, longest",
    "delay_median_s": "then to start, median",
    "delay_p99_s": "then to start, 99 %",
    "execution_s": "executing",
    "execution_median_s": "an execution, median",
}
STREAMS = {
    "host": "host",
    "device": "device",
    "line": "stream",
    "executions": "executions",
    "host_wait_s": "host wait",
    "kernel_wait_s": "kernel wait",
    "other_s": "other",
    "queue_mean": "queue, mean",
    "queue_median": "queue, median",
    "queue_max": "queue, longest",
}

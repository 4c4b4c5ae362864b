"""The critical path drawn: one step's chain over the lines of who held it, time by kind, operations on and off it."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.critical_path.critical_path import CriticalPathResult
from analyzers.device.critical_path.example import DEVICE, HOST, LAUNCHING, PLACES
from analyzers.device.critical_path.kinds import KINDS
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain
from app.questions.critical_path.words import SHORT, label
from errors import format as fmt

MAX_DEVICES = 48
MAX_STEPS = 300  # bars
ROW_PX = 30
LINE_PX = 58
HAIR = 5e-4  # of the time: a part that no bar could show
TEXT_FROM = 0.06  # of the bar: a narrower part holds no text
LONGEST = 46  # characters of an operation's name beside its bar
NAMED = 7  # pieces of the chain, the longest, that have their name written at them
ACCOUNTS = {  # kinds whose account has another name than `idle_<kind>`
    "computing": "productive",
    "communication": "exposed_communication",
    "communication_or_wait": "unattributed",
    "copies": "below_roofline",
    "launch_delay": "idle_launching",
    "return_delay": "idle_launching",
    "waiting": "idle_unexplained",
    "compilation": "compilation",
    "input_wait": "input_wait",
    "not_told": "unattributed",
}
MARKS = {"launch_delay": ".", "return_delay": "/", "waiting": ".", "communication_or_wait": ".", "not_told": "/"}
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
_LINES = {HOST: "host thread", LAUNCHING: "launch, return", DEVICE: "device"}


def colour(kind: str) -> str:
    return theme.COLOURS[ACCOUNTS.get(kind, f"idle_{kind}")]


def _marker(kind: str) -> dict:
    marker: dict = {"color": colour(kind), "line": {"width": 0}}
    if kind in MARKS:
        drawn = "rgba(0,0,0,0.35)"
        marker["pattern"] = {"shape": MARKS[kind], "fgcolor": drawn, "bgcolor": colour(kind), "size": 7}
    return marker


def kinds(result: CriticalPathResult) -> go.Figure:
    """One bar per device: what its paths consist of."""
    rows = result.devices.head(MAX_DEVICES)
    names = [plain(label(h, d, result)) for h, d in zip(rows["host"], rows["device"], strict=True)]
    whole = np.maximum(rows["path_s"].to_numpy(dtype=float), 1e-12)
    figure = go.Figure()
    for kind in KINDS:
        seconds = rows[f"{kind}_s"].to_numpy(dtype=float)
        share = seconds / whole
        if share.max(initial=0.0) < HAIR:
            continue
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=SHORT[kind],
                y=names,
                x=share * 100,
                marker=_marker(kind),
                text=[fmt.whole_share(s) if s >= TEXT_FROM else "" for s in share],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": theme.text_on(colour(kind)), "size": 12},
                hovertext=[
                    f"<b>{n}</b><br>{SHORT[kind]}: {fmt.duration(s)}, {fmt.share(p)}"
                    for n, s, p in zip(names, seconds, share, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        len(rows) * ROW_PX + 120,
        barmode="stack",
        bargap=0.25,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 60, "b": 8},
        xaxis={"title": {"text": "% of the critical path"}, "range": [0, 100], "gridcolor": GRID, "fixedrange": True},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def steps(result: CriticalPathResult) -> go.Figure | None:
    """What the path of each step consists of, as means over devices, in the order they were taken; of more than
    MAX_STEPS, neighbours are drawn together as their mean. None without steps."""
    rows = result.steps
    if not len(rows):
        return None
    group = np.arange(len(rows)) * min(len(rows), MAX_STEPS) // len(rows)
    names = rows["step"].groupby(group).first().astype(int).astype(str).tolist()
    unit, factor = time_unit(float(rows["path_s"].max()))
    least = HAIR * float(rows["path_s"].sum())
    figure = go.Figure()
    for kind in KINDS:
        if rows[f"{kind}_s"].sum() < least:
            continue
        seconds = rows[f"{kind}_s"].groupby(group).mean().to_numpy(dtype=float)
        figure.add_trace(
            go.Bar(
                name=SHORT[kind],
                x=np.arange(len(seconds)),
                y=seconds * factor,
                marker=_marker(kind),
                hovertext=[
                    f"<b>step {n}</b><br>{SHORT[kind]}: {fmt.duration(s)}" for n, s in zip(names, seconds, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    shown = np.unique(np.linspace(0, len(names) - 1, min(len(names), 12)).astype(int))
    return layout(
        figure,
        420,
        barmode="stack",
        bargap=0.15,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 60, "b": 8},
        xaxis={"title": {"text": "step"}, "tickvals": shown, "ticktext": [names[n] for n in shown], "fixedrange": True},
        yaxis={"title": {"text": f"critical path ({unit})"}, "gridcolor": GRID, "fixedrange": True},
    )


RANKS = {"host": "host", "device": "device", "held_s": "held", "held_share": "of all", "for_others_s": "for others"}
RULES = {"says": "rule", "told": "told by the profile", "links": "links", "path_s": "time"}


def chain(result: CriticalPathResult) -> go.Figure:
    """One path, each of its pieces on the line of who held it; lines lead from each to what came after it."""
    rows = result.chain
    lines = _lines(rows)
    unit, factor = time_unit(float((rows["start_s"] + rows["dur_s"]).max()))
    place = [lines.index(x) for x in zip(rows["host"], rows["device"], rows["place"], strict=True)]
    figure = go.Figure(_steps(rows, np.array(place), factor))
    for kind in KINDS:
        mine = (rows["kind"] == kind).to_numpy()
        if not mine.any():
            continue
        part = rows[mine]
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=SHORT[kind],
                y=np.array(place)[mine],
                base=part["start_s"] * factor,
                x=part["dur_s"] * factor,
                width=0.52,
                marker=_marker(kind),
                hovertext=[_hover(r) for r in part.to_dict("records")],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    figure.update_layout(annotations=_names(rows, place, factor))
    several = rows[["host", "device"]].drop_duplicates().shape[0] > 1 or len(result.devices) > 1
    texts = [plain(f"{label(h, d, result)}: {_LINES[p]}" if several else _LINES[p]) for h, d, p in lines]
    return layout(
        figure,
        len(lines) * LINE_PX + 120,
        barmode="overlay",
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 60, "b": 60},
        xaxis={"title": {"text": f"along the path ({unit})"}, "gridcolor": GRID, "zeroline": False},
        yaxis={
            "range": [len(lines) - 0.5, -0.5],
            "automargin": True,
            "tickvals": list(range(len(lines))),
            "ticktext": texts,
            "fixedrange": True,
            "gridcolor": GRID,
        },
    )


def _lines(rows: pd.DataFrame) -> list[tuple[str, int, str]]:
    """The lines that hold any of it: ranks in order, of each the host above its device."""
    ranks = sorted(set(zip(rows["host"], rows["device"], strict=True)))
    held = set(zip(rows["host"], rows["device"], rows["place"], strict=True))
    return [(*rank, place) for rank in ranks for place in PLACES if (*rank, place) in held]


def _steps(rows: pd.DataFrame, place: np.ndarray, factor: float) -> list[go.Scatter]:
    """The way of the chain over the lines."""
    x = np.repeat(np.append(rows["start_s"], [rows["start_s"].iloc[-1] + rows["dur_s"].iloc[-1]]) * factor, 2)[1:-1]
    line = {"color": theme.GREY, "width": 1}
    return [go.Scatter(x=x, y=np.repeat(place, 2), mode="lines", line=line, hoverinfo="skip", showlegend=False)]


def _hover(row: dict) -> str:
    name = f"<b>{plain(_short(row['operation'], 120))}</b><br>" if isinstance(row["operation"], str) else ""
    return f"{name}{SHORT[row['kind']]}: {fmt.duration(row['dur_s'])}"


def _names(rows: pd.DataFrame, place: list[int], factor: float) -> list[dict]:
    """The names of the longest pieces, where they leave room for one another."""
    whole = float(rows["dur_s"].sum())
    taken: dict[int, list[tuple[float, float]]] = {}
    out = []
    for n in np.argsort(-rows["dur_s"].to_numpy(), kind="stable")[: 4 * NAMED].tolist():
        row = rows.iloc[n]
        text = _short(row["operation"], 22) if isinstance(row["operation"], str) else SHORT[row["kind"]]
        text = f"{text}, {fmt.duration(row['dur_s'])}"
        middle, half = float(row["start_s"] + row["dur_s"] / 2), whole * 0.0042 * len(text)
        middle = min(max(middle, half), whole - half)
        line = place[n]
        if len(out) >= NAMED or any(a < middle + half and middle - half < b for a, b in taken.get(line, [])):
            continue
        taken.setdefault(line, []).append((middle - half, middle + half))
        out.append(
            {
                "x": middle * factor,
                "y": line,
                "text": plain(text),
                "showarrow": False,
                "yshift": 0.26 * LINE_PX + 8,
                "font": {"size": 11},
            }
        )
    return out


def operations(result: CriticalPathResult) -> go.Figure | None:
    """What devices executed: time on the path, and off it; None where nothing was executed."""
    rows = result.operations[result.operations["ran_s"] > 0].head(20)
    if not len(rows):
        return None
    unit, factor = time_unit(float(rows["ran_s"].max()))
    places = np.arange(len(rows))
    on = (rows["ran_s"] - rows["off_path_s"]).to_numpy(dtype=float)
    figure = go.Figure()
    for words, seconds, marker in (
        ("on a critical path", on, {"color": colour("computing"), "line": {"width": 0}}),
        ("off it", rows["off_path_s"].to_numpy(dtype=float), {"color": theme.COLOURS["other"], "line": {"width": 0}}),
    ):
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=places,
                x=seconds * factor,
                marker=marker,
                hovertext=[
                    f"<b>{plain(_short(name, 120))}</b><br>{words}: {fmt.duration(s)}"
                    for name, s in zip(rows["operation"], seconds, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return layout(
        figure,
        len(rows) * 24 + 110,
        barmode="stack",
        bargap=0.25,
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 52, "b": 8},
        xaxis={"title": {"text": f"executing on all devices ({unit})"}, "gridcolor": GRID, "fixedrange": True},
        yaxis={
            "autorange": "reversed",
            "automargin": True,
            "tickvals": places,
            "ticktext": [plain(_short(name, LONGEST)) for name in rows["operation"]],
            "fixedrange": True,
        },
    )


def shorten(result: CriticalPathResult) -> go.Figure | None:
    """What operations give at most: ranges from low to high, alone and together; None where none is on the path."""
    rows = result.shorten
    if not len(rows):
        return None
    whole = max(result.totals["path_s"] or 0.0, 1e-12)
    figure = go.Figure()
    places = np.arange(len(rows))
    for words, what, at, kind in (
        ("alone", "alone", -0.17, "computing"),
        ("with those above", "together", 0.17, "input_wait"),
    ):
        low, high = (rows[f"{what}_{end}_s"].to_numpy(dtype=float) for end in ("low", "high"))
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=places + at,
                base=low / whole * 100,
                x=np.maximum(high - low, whole * HAIR) / whole * 100,
                width=0.28,
                marker={"color": colour(kind), "line": {"width": 0}},
                text=[_span(a, b, whole) for a, b in zip(low, high, strict=True)],
                textposition="outside",
                cliponaxis=False,
                hovertext=[
                    f"<b>{plain(_short(name, 120))}</b><br>{words}: {fmt.duration(a)} to {fmt.duration(b)}"
                    for name, a, b in zip(rows["operation"], low, high, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    most = float(rows["together_high_s"].max()) / whole * 100
    return layout(
        figure,
        len(rows) * 62 + 110,
        barmode="overlay",
        showlegend=True,
        legend=LEGEND,
        margin={"l": 8, "r": 28, "t": 52, "b": 8},
        xaxis={
            "title": {"text": "saved if it took no time, % of the critical path (modelled)"},
            "range": [0, max(most * 1.25, 0.1)],
            "gridcolor": GRID,
            "fixedrange": True,
        },
        yaxis={
            "autorange": "reversed",
            "automargin": True,
            "tickvals": places,
            "ticktext": [plain(_short(name, LONGEST)) for name in rows["operation"]],
            "fixedrange": True,
        },
    )


def _span(low: float, high: float, whole: float) -> str:
    a, b = fmt.share(low / whole), fmt.share(high / whole)
    return a if a == b else f"{a} to {b}"


def _short(text: object, most: int) -> str:
    text = str(text)
    return text if len(text) <= most else text[: most - 1] + "…"

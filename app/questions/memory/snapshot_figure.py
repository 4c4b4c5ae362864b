"""A recorded history of device memory drawn: who held the peak, by line and callers, and what was held over time."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.memory import MemoryResult
from analyzers.device.snapshot.answer import Snapshot, dicts
from app import theme
from app.figures.axes import PLAIN, size_unit, time_unit
from app.figures.base import layout, plain, reduced
from app.questions.memory.snapshot_words import PHASES
from errors import format as fmt

HEIGHT = 340
MAX_POINTS = 6000
MAX_LINES = 60  # lines of one phase drawn on their own; the rest of a phase is one tile
MAX_CALLERS = 8
MAX_SIZES = 12
FAR = 2.5  # a limit further than that above what was reserved would press the rest flat: it is told in words
COLOURS: dict[str, str] = {
    "forward": theme.COLOURS["productive"],
    "backward": theme.COLOURS["below_roofline"],
    "optimizer": theme.COLOURS["held"],
    "communication": theme.COLOURS["exposed_communication"],
    "elsewhere": theme.COLOURS["custom"],
    "unrecorded": theme.COLOURS["unattributed"],
}
PATTERNS = {"unrecorded": "/"}


def tiles(history: Snapshot) -> pd.DataFrame:
    """Rows of a treemap: phase, line, callers; id, parent, label, size, phase, hover. Children add up to parents."""
    rows: list[tuple[str, str, str, int, str, str]] = []
    for phase, group in history.tree.groupby("phase", sort=False):
        _phase(rows, str(phase), group, history.peak_bytes)
        if phase == "unrecorded":
            _sizes(rows, history)
    return pd.DataFrame(rows, columns=["id", "parent", "label", "size", "phase", "hover"])


def _phase(rows: list, phase: str, group: pd.DataFrame, whole: int) -> None:
    total = int(group["bytes"].sum())
    words = PHASES.get(phase, phase)
    rows.append((phase, "", f"{words}, {fmt.size(total)}", total, phase, _hover(words, total, group, whole)))
    if phase == "unrecorded":
        return
    lines = group.groupby("where", sort=False)["bytes"].sum().sort_values(ascending=False, kind="stable")
    for number, (where, held) in enumerate(lines.head(MAX_LINES).items()):
        mine = group[group["where"] == where]
        key = f"{phase}/{number}"
        rows.append((key, phase, plain(where), int(held), phase, _hover(str(where), int(held), mine, whole)))
        _callers(rows, key, phase, mine, whole)
    rest = lines.iloc[MAX_LINES:]
    if len(rest):
        label = f"{fmt.count(len(rest), 'more line')}"
        rows.append((f"{phase}/rest", phase, label, int(rest.sum()), phase, fmt.size(int(rest.sum()))))


def _sizes(rows: list, history: Snapshot) -> None:
    """Blocks that nobody recorded, by size."""
    shown, rest = history.sizes.head(MAX_SIZES), history.sizes.iloc[MAX_SIZES:]
    for number, row in enumerate(dicts(shown)):
        label, held = f"{fmt.count(row['blocks'], 'block')} of {fmt.size(row['each_bytes'])}", int(row["bytes"])
        share = fmt.share(held / max(history.peak_bytes, 1))
        hover = f"<b>{label}</b><br>{fmt.size(held)}, {share} of the peak<br>nobody recorded the calls"
        rows.append((f"unrecorded/{number}", "unrecorded", label, held, "unrecorded", hover))
    if len(rest):
        held = int(rest["bytes"].sum())
        rows.append(("unrecorded/rest", "unrecorded", "of other sizes", held, "unrecorded", fmt.size(held)))


def _callers(rows: list, key: str, phase: str, mine: pd.DataFrame, whole: int) -> None:
    """What called a line, where several lines did."""
    if len(mine) < 2:
        return
    shown, rest = mine.head(MAX_CALLERS), mine.iloc[MAX_CALLERS:]
    for number, row in enumerate(dicts(shown)):
        label = f"from {row['callers'][0]}" if row["callers"] else "called by no line of one's own"
        hover = _hover(label, row["bytes"], mine.iloc[number : number + 1], whole)
        rows.append((f"{key}/{number}", key, plain(label), row["bytes"], phase, hover))
    if len(rest):
        held = int(rest["bytes"].sum())
        rows.append((f"{key}/rest", key, f"from {len(rest):,} more", held, phase, fmt.size(held)))


def _hover(words: str, held: int, of: pd.DataFrame, whole: int) -> str:
    lines = [f"<b>{plain(words)}</b>", f"{fmt.size(held)}, {fmt.share(held / max(whole, 1))} of the peak"]
    lines.append(fmt.count(int(of["blocks"].sum()), "block"))
    if len(of) == 1:
        lines += [f"called from {plain(c)}" for c in of["callers"].iloc[0]]
    return "<br>".join(lines)


def treemap(history: Snapshot) -> go.Figure:
    """Who held the peak: area by bytes; phases, lines of one's own code, and what called them."""
    drawn = tiles(history)
    colours = [COLOURS.get(p, theme.COLOURS["other"]) for p in drawn["phase"]]
    figure = go.Figure(
        go.Treemap(
            ids=drawn["id"],
            parents=drawn["parent"],
            labels=drawn["label"],
            values=drawn["size"],
            branchvalues="total",
            marker={
                "colors": colours,
                "line": {"width": 1, "color": theme.GREY},
                "cornerradius": 0,
                "pattern": {
                    "shape": [PATTERNS.get(p, "") for p in drawn["phase"]],
                    "fgcolor": theme.DARK_TEXT,
                    "fgopacity": 0.2,
                    "solidity": 0.15,
                    "fillmode": "overlay",
                },
            },
            textfont={"color": [theme.text_on(c) for c in colours], "size": 13},
            tiling={"pad": 2},
            customdata=drawn["hover"],
            hovertemplate="%{customdata}<extra></extra>",
            pathbar={"visible": False},
            text=[fmt.size(s) for s in drawn["size"]],
            textinfo="label+text",
        )
    )
    return layout(figure, 460, uniformtext={"minsize": 9, "mode": "hide"})


def over_time(result: MemoryResult, history: Snapshot) -> go.Figure | None:
    """What was in use over time on the device that held most, the peak, what was reserved, and what failed."""
    device = history.devices.iloc[0]
    samples = _of(device, result.samples)
    if len(samples) < 2:
        return None
    ns = samples["ts_ns"].to_numpy(dtype=np.int64)
    used = samples["used_bytes"].to_numpy(dtype=float)
    start, window = int(ns.min()), (int(ns.max()) - int(ns.min())) / 1e9
    time_name, per_s = time_unit(window)
    reserved = history.reserved_bytes or 0
    top = max(float(used.max()), float(reserved))
    limit = result.limit_bytes if result.limit_bytes and result.limit_bytes <= FAR * top else None
    unit, factor = size_unit(top)
    kept = reduced(used, MAX_POINTS)
    figure = go.Figure()
    figure.add_scatter(
        x=(ns[kept] - start) / 1e9 * per_s,
        y=used[kept] / factor,
        mode="lines",
        line_shape="hv",
        fill="tozeroy",
        fillcolor="rgba(31,154,147,0.18)",
        line={"color": theme.THIN["useful_maths"], "width": 1.5},
        hovertemplate=f"%{{x:,.4r}} {time_name}: %{{y:,.4r}} {unit} in use<extra></extra>",
    )
    high = max(top, limit or 0) / factor * 1.2
    at = None if history.peak_ns is None else (history.peak_ns - start) / 1e9 * per_s
    lines = {"reserved at the peak": reserved, "limit": limit or 0}
    _marks(figure, history.peak_bytes, at, at is None or at < 0.7 * window * per_s, lines, factor, high)
    _failures(figure, history, device, start, per_s)
    return layout(
        figure,
        HEIGHT,
        xaxis={"title": {"text": f"time since the recorded history begins ({time_name})"}, **PLAIN},
        yaxis={"title": {"text": f"bytes in use ({unit})"}, "range": [0, high], **PLAIN},
    )


def _of(device: pd.Series, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of one device in one snapshot: names of files may give two snapshots the same host."""
    return rows[(rows["capture"] == device["capture"]) & (rows["device"] == device["device"])]


def _marks(
    figure: go.Figure, peak: int, at: float | None, right: bool, lines: dict[str, int], factor: float, high: float
) -> None:
    """The lines with their words at one end (`right`), and the peak with its own beside the other."""
    drawn = {words: size for words, size in lines.items() if size}
    side = {"x": 1, "xanchor": "right"} if right else {"x": 0, "xanchor": "left"}
    for words, size in drawn.items():
        y, text = size / factor, f"{words} {fmt.size(size)}"
        figure.add_hline(y=y, line_dash="dash", line_color=theme.GREY, line_width=1.5)
        figure.add_annotation(xref="paper", y=y, yanchor="bottom", showarrow=False, text=text, font_size=12, **side)
    if at is not None:
        figure.add_annotation(
            x=at,
            y=peak / factor,
            text=f"peak {fmt.size(peak)}",
            showarrow=True,
            arrowhead=0,
            ay=-_above([size / factor for size in drawn.values()], peak / factor, high),
            ax=40 if right else -40,
            arrowcolor=theme.GREY,
        )


def _above(lines: list[float], peak: float, high: float) -> int:
    """Pixels from the peak up to its words, which shall stand on none of the lines."""
    pixel = high / (HEIGHT - 60)
    places = (32, 50, 68, 20)
    free = (p for p in places if all(abs(peak + p * pixel - line) > 14 * pixel for line in lines))
    return next(free, places[0])


def _failures(figure: go.Figure, history: Snapshot, device: pd.Series, start: int, per_s: float) -> None:
    """A mark at each allocation that failed."""
    rows = _of(device, history.refused)
    rows = rows[rows["ts_ns"].notna()]
    for at in rows["ts_ns"].head(20).astype("int64").tolist():
        figure.add_vline(
            x=(at - start) / 1e9 * per_s,
            line_color=theme.COLOURS["infrastructure_recovery"],
            line_width=1.5,
        )
    if len(rows):
        first = rows.iloc[0]
        figure.add_annotation(
            x=(int(first["ts_ns"]) - start) / 1e9 * per_s,
            y=1,
            yref="paper",
            xanchor="right",
            yanchor="top",
            showarrow=False,
            text=f"{fmt.size(int(first['asked_bytes']))} refused ",
        )

"""Device memory drawn: what fills it against its limit, the buffers at the peak, and samples over time."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.device.memory import MemoryResult
from app import theme
from app.figures.axes import size_unit
from app.figures.base import GRID, layout, plain, reduced
from app.questions.memory.words import title
from errors import format as fmt

MAX_TILES = 120  # buffers drawn on their own; the rest of a category is one tile
MAX_LINES = 12  # devices drawn over time, the fullest
MAX_POINTS = 12_000  # of all lines together
WIDE = 0.09  # of the figure; a narrower segment is named in the legend
DISTANT = 12  # a limit further than so many times what is held is told in words
FAR = 2.5  # a limit further than that above the data would press the data flat: it is told in words
COLOURS: dict[str, str] = {  # what a ledger's account does to time, its bytes do to memory
    "argument": theme.COLOURS["held"],
    "weights": theme.COLOURS["held"],
    "output": theme.COLOURS["below_roofline"],
    "gradients": theme.COLOURS["below_roofline"],
    "temporary": theme.COLOURS["productive"],
    "activations": theme.COLOURS["productive"],
    "constant": theme.COLOURS["other"],
    "master_weights": theme.COLOURS["other"],
    "moments": theme.COLOURS["device_idle"],
    "logits": theme.COLOURS["custom"],
    "fragmentation": theme.COLOURS["unattributed"],
    "untold": theme.COLOURS["unattributed"],
    "padding": theme.COLOURS["padding"],
    "saved": theme.COLOURS["recomputation"],
}
PATTERNS = {"fragmentation": "/", "untold": "/", "padding": "x"}


def segments(result: MemoryResult) -> list[tuple[str, float]]:
    """(category, bytes) without padding, largest first, what is needed and not told, then padding."""
    parts = result.parts
    logical = parts["bytes"].where(parts["category"] != "fragmentation").fillna(parts["padded_bytes"])
    sums = logical.astype(float).groupby(parts["category"].astype(str)).sum().sort_values(ascending=False)
    padding = float(result.parts_bytes - sums.sum())
    told = [(str(name), float(size)) for name, size in sums.items() if size > 0]
    rest = (("untold", float(result.untold_bytes or 0)), ("padding", padding))
    return told + [(name, size) for name, size in rest if size > 0]


def fill(rows: dict[str, MemoryResult]) -> go.Figure:
    """One bar each: what a device holds by category, the padded part hatched, against the limit they share."""
    drawn = {label: dict(segments(result)) for label, result in rows.items()}
    total = max(sum(sizes.values()) for sizes in drawn.values())
    limit = next(iter(rows.values())).limit_bytes
    near = limit is not None and limit <= DISTANT * total
    end = max(total, limit if near else 0) * 1.02
    unit, factor = size_unit(end)
    figure = go.Figure()
    for name in sorted({n for sizes in drawn.values() for n in sizes}, key=lambda n: _order(n, drawn)):
        sizes = [sizes.get(name, 0.0) for sizes in drawn.values()]
        colour = COLOURS.get(name, theme.COLOURS["other"])
        words = "Padding" if name == "padding" else title(name)
        figure.add_bar(
            x=[size / factor for size in sizes],
            y=list(drawn),
            orientation="h",
            name=words,
            showlegend=max(sizes) > 0.001 * total and (len(rows) > 1 or max(sizes) <= WIDE * end),
            text=[f"{words}<br>{fmt.size(size)}" if size > WIDE * end else "" for size in sizes],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": theme.text_on(colour), "size": 13},
            marker={
                "color": colour,
                "line": {"color": theme.GREY, "width": 0.5},
                "pattern": {
                    "shape": PATTERNS.get(name, ""),
                    "fgcolor": theme.DARK_TEXT,
                    "fgopacity": 0.35,
                    "fillmode": "overlay",
                },
            },
            hovertext=[
                f"<b>{words}</b><br>{fmt.size(size)}, {fmt.share(size / max(sum(all_.values()), 1))} of it all"
                for size, all_ in zip(sizes, drawn.values(), strict=True)
            ],
            hovertemplate="%{hovertext}<extra>%{y}</extra>",
        )
    if limit:
        words = f"limit {fmt.size(limit)}" + ("" if near else f", {fmt.number(limit / total)} times as much")
        figure.add_annotation(
            x=limit / factor if near else end / factor,
            y=1.0,
            yref="paper",
            yanchor="bottom",
            xanchor="right",
            showarrow=False,
            text=words,
        )
    if near:
        figure.add_vline(x=limit / factor, line_dash="dash", line_color=theme.GREY, line_width=2)
    return layout(
        figure,
        118 + 50 * len(rows),
        barmode="stack",
        margin={"l": 8, "r": 12, "t": 26, "b": 8},
        showlegend=True,
        legend={"orientation": "h", "y": -62 / (50 * len(rows) + 14), "yanchor": "top", "x": 0, "traceorder": "normal"},
        xaxis={
            "title": {"text": f"device memory ({unit})"},
            "range": [0, end / factor],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={"showticklabels": len(rows) > 1, "showgrid": False, "autorange": "reversed", "automargin": True},
    )


def _order(name: str, drawn: dict[str, dict[str, float]]) -> tuple[bool, float]:
    """Padding last; else the largest first, by the fullest bar."""
    return name == "padding", -max(sizes.get(name, 0.0) for sizes in drawn.values())


def tiles(parts: pd.DataFrame, whole_is: str = "the peak") -> pd.DataFrame:
    """Rows of a treemap: id, parent, label, size, category (of colour), hover. Sizes of children add up to parents'.

    `whole_is`: what all parts together are, as the hovers name it.
    """
    whole = float(parts["padded_bytes"].sum())
    rows = []
    for category, group in parts.groupby("category", sort=False):
        total = float(group["padded_bytes"].sum())
        rows.append((category, "", f"{title(category)}, {fmt.size(total)}", total, category, ""))
        share = max(int(MAX_TILES * total / whole), 5)
        shown, rest = group.head(share), group.iloc[share:]
        for number, row in enumerate(shown.itertuples(index=False)):
            held = float(row.padded_bytes)
            lost = 0.0 if pd.isna(row.bytes) or category == "fragmentation" else held - float(row.bytes)
            key, words = f"{category}/{number}", _hover(row, held, whole, whole_is)
            rows.append((key, category, plain(short(row.name)), held, category, words))
            if lost > 0.002 * whole:
                rows.append((f"{key}/data", key, "elements", held - lost, category, words))
                rows.append((f"{key}/padding", key, "padding", lost, "padding", words))
        if len(rest):
            size = float(rest["padded_bytes"].sum())
            rows.append((f"{category}/rest", category, f"{len(rest):,} smaller", size, category, fmt.size(size)))
    return pd.DataFrame(rows, columns=["id", "parent", "label", "size", "category", "hover"])


def short(name: object) -> str:
    """A framework's name without the function it stands in, and of a long one the end: `jvp(layer0)/mlp/tanh`."""
    steps = str(name).split("/")
    if len(steps) > 1 and steps[0].startswith("jit("):
        steps = steps[1:]
    return "/".join(steps[-3:])


def _hover(row, held: float, whole: float, whole_is: str) -> str:
    lines = [f"<b>{plain(row.name)}</b>", f"{fmt.size(held)}, {fmt.share(held / whole)} of {whole_is}"]
    if pd.notna(row.bytes) and held > float(row.bytes):
        lines.append(f"of it padding {fmt.size(held - float(row.bytes))}")
    if pd.notna(row.copies):
        copies = int(row.copies)
        lines.append(f"the same on {copies:,} devices" if copies > 1 else "sharded: no other device holds it")
    lines += [plain(v) for v in (row.shape, row.op, row.source) if isinstance(v, str)]
    return "<br>".join(lines)


def treemap(result: MemoryResult) -> go.Figure:
    """The buffers at the peak, area by bytes as placed; what is padding is hatched."""
    drawn = tiles(result.parts, "the inputs" if result.inputs_only else "the peak")
    colours = [COLOURS.get(c, theme.COLOURS["other"]) for c in drawn["category"]]
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
                    "shape": [PATTERNS.get(c, "") for c in drawn["category"]],
                    "fgcolor": theme.DARK_TEXT,
                    "fgopacity": 0.35,
                    "solidity": 0.2,
                    "fillmode": "overlay",
                },
            },
            textfont={"color": [theme.text_on(c) for c in colours], "size": 13},
            tiling={"pad": 2},
            customdata=drawn["hover"],
            hovertemplate="%{customdata}<extra>%{label}</extra>",
            pathbar={"visible": False},
            text=[fmt.size(s) for s in drawn["size"]],
            textinfo="label+text",
        )
    )
    return layout(figure, 460, uniformtext={"minsize": 9, "mode": "hide"})


def over_time(result: MemoryResult) -> go.Figure | None:
    """Bytes in use over time of the fullest devices; None where no allocator was sampled."""
    samples = result.samples
    if not len(samples):
        return None
    start = int(samples["ts_ns"].min())
    top = result.devices[result.devices["peak_ns"].notna()].head(MAX_LINES)
    unit, factor = size_unit(float(samples["used_bytes"].max()))
    figure = go.Figure()
    for number, device in enumerate(top.iloc[::-1].itertuples(index=False)):
        first = number == len(top) - 1
        same = pd.Series(True, index=samples.index)
        for column in ("host", "device", "allocator"):
            value = getattr(device, column)
            same &= samples[column].isna() if pd.isna(value) else samples[column].eq(value).fillna(False)
        mine = samples[same.astype(bool)]
        used = mine["used_bytes"].to_numpy(dtype=float)
        kept = reduced(used, max(MAX_POINTS // len(top), 100))
        seconds = (mine["ts_ns"].to_numpy(dtype=np.int64) - start)[kept] / 1e9
        name = _name(device.host, device.device)
        figure.add_scatter(
            x=seconds,
            y=used[kept] / factor,
            mode="lines",
            line_shape="hv",
            name=plain(name),
            line={"color": theme.THIN["useful_maths"] if first else theme.GREY, "width": 2.5 if first else 1},
            opacity=1 if first else 0.55,
            hovertemplate=f"<b>{plain(name)}</b><br>%{{x:,.4r}} s: %{{y:,.4r}} {unit}<extra></extra>",
        )
    peak = top.iloc[0]
    figure.add_annotation(
        x=(int(peak["peak_ns"]) - start) / 1e9,
        y=float(peak["peak_bytes"]) / factor,
        text=f"peak {fmt.size(int(peak['peak_bytes']))}",
        showarrow=True,
        arrowhead=0,
        ay=-22,
        ax=36,
        arrowcolor=theme.GREY,
    )
    limit = result.limit_bytes
    high = float(samples["used_bytes"].max()) / factor * 1.18
    if limit and limit / factor <= high / 1.18 * FAR:
        high = max(high, limit / factor * 1.08)
        figure.add_hline(y=limit / factor, line_dash="dash", line_color=theme.GREY, line_width=1.5)
        figure.add_annotation(
            xref="paper",
            x=1,
            xanchor="right",
            y=limit / factor,
            yanchor="bottom",
            showarrow=False,
            text=f"limit {fmt.size(limit)}",
        )
    return layout(
        figure,
        320,
        xaxis={"title": {"text": "time since the first sample (s)"}, "gridcolor": GRID, "zeroline": False},
        yaxis={"title": {"text": f"bytes in use ({unit})"}, "gridcolor": GRID, "zeroline": False, "range": [0, high]},
    )


def _name(host: Any, device: Any) -> str:
    """`host 0, device 3`, as far as both are told."""
    told = ("" if pd.isna(host) else str(host), "" if pd.isna(device) else f"device {device}")
    return ", ".join(text for text in told if text)

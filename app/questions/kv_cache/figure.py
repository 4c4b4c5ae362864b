"""The KV cache drawn: one chip's memory, sequences against their length, and how full the cache was over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go

from analyzers.serving.kv_cache import KvResult
from analyzers.serving.kv_cache.room import Room, Setting, curve, tensor_choices
from app import theme
from app.figures.base import GRID, layout, plain, reduced, reference_line
from app.questions.kv_cache.words import memory_parts
from catalog.inference import BYTES
from catalog.models import Model
from errors import format as fmt

COLOURS = {
    "weights": theme.COLOURS["held"],
    "activations": theme.COLOURS["below_roofline"],
    "cache": theme.COLOURS["prefill"],
    "repeated": theme.COLOURS["exposed_copies"],
    "pages": theme.COLOURS["bucket_padding"],
    "left": theme.COLOURS["unattributed"],
    "kept_back": theme.COLOURS["device_idle"],
}
PATTERNS = {"repeated": "/", "pages": "x", "left": "."}
WIDE = 0.085  # of the figure; a narrower part is named in the legend
LENGTHS = tuple(int(n) for n in np.unique(np.round(np.geomspace(128, 1 << 20, 40))))
DASHES = ("solid", "dash", "dot", "dashdot")
MOST_LINES = 4  # of each precision
LEAST_LENGTH = 128


def memory(rooms: dict[str, Room]) -> go.Figure:
    """One bar for each room: what one chip holds, in GB, the engine's share of its memory marked."""
    end = max(max(r.setting.hbm_bytes, r.chip_weights_bytes + r.setting.activations_bytes) for r in rooms.values())
    parts = {label: {key: (name, size) for key, name, size in memory_parts(r)} for label, r in rooms.items()}
    figure = go.Figure()
    for key, colour in COLOURS.items():
        sizes = [found[key][1] for found in parts.values()]
        name = next(iter(parts.values()))[key][0]
        figure.add_bar(
            x=[size / 1e9 for size in sizes],
            y=[plain(label) for label in rooms],
            orientation="h",
            name=name,
            showlegend=max(sizes) > 0.0005 * end,
            text=[f"{name}<br>{fmt.size(size)}" if size > WIDE * end else "" for size in sizes],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": theme.text_on(colour), "size": 13},
            marker={
                "color": colour,
                "line": {"color": theme.GREY, "width": 0.5},
                "pattern": {
                    "shape": PATTERNS.get(key, ""),
                    "fgcolor": theme.DARK_TEXT,
                    "fgopacity": 0.35,
                    "fillmode": "overlay",
                },
            },
            hovertext=[
                f"<b>{name}</b><br>{fmt.size(size)}, {fmt.share(size / r.setting.hbm_bytes)} of the chip's memory"
                for size, r in zip(sizes, rooms.values(), strict=True)
            ],
            hovertemplate="%{hovertext}<extra>%{y}</extra>",
        )
    first = next(iter(rooms.values()))
    figure.add_vline(x=first.usable_bytes / 1e9, line_dash="dash", line_color=theme.GREY, line_width=2)
    figure.add_annotation(
        x=first.usable_bytes / 1e9,
        y=1.0,
        yref="paper",
        yanchor="bottom",
        xanchor="right",
        showarrow=False,
        text=f"the engine's {fmt.size(first.usable_bytes)}",
    )
    height = 62 * len(rooms)
    return layout(
        figure,
        height + 124,
        barmode="stack",
        margin={"l": 8, "r": 12, "t": 26, "b": 8},
        showlegend=True,
        legend={"orientation": "h", "y": -66 / (height + 14), "yanchor": "top", "x": 0, "traceorder": "normal"},
        xaxis={
            "title": {"text": "memory of one chip (GB)"},
            "range": [0, end * 1.01 / 1e9],
            "gridcolor": GRID,
            "zeroline": False,
        },
        yaxis={"showticklabels": len(rooms) > 1, "showgrid": False, "autorange": "reversed", "automargin": True},
    )


@dataclass(frozen=True)
class Line:
    """A setting's sequences against length: name, precision of the cache, number among its precision, whether asked."""

    name: str
    precision: str
    rank: int
    asked: bool
    setting: Setting


def lines(model: Model, asked: Setting) -> list[Line]:
    """The setting asked about, other splits of the weights that hold it, and each with an 8-bit cache."""
    fits = [
        t
        for t in tensor_choices(model, asked.chips)
        if t == asked.tensor or curve(model, replace(asked, tensor=t), (LEAST_LENGTH,))[0] > 0
    ]
    near = sorted({*fits, asked.tensor}, key=lambda t: abs(np.log2(t / asked.tensor)))[:MOST_LINES]
    precisions = [asked.kv_precision] + (["fp8"] if BYTES[asked.kv_precision] > 1 else [])
    found = []
    for precision in precisions:
        for rank, tensor in enumerate(near):
            mine = tensor == asked.tensor and precision == asked.kv_precision
            name = f"{precision}, TP {tensor}" if len(near) > 1 else precision
            found.append(Line(name, precision, rank, mine, replace(asked, tensor=tensor, kv_precision=precision)))
    return found


def by_length(model: Model, found: Room) -> go.Figure:
    """Most sequences at a time against their length, both logarithmic; the one asked about marked."""
    asked = found.setting
    figure = go.Figure()
    ends: list[tuple[str, float]] = []
    most = 1.0
    for line in lines(model, asked):
        values = np.array(curve(model, line.setting, LENGTHS), dtype=float)
        some = values > 0
        if not some.any():
            continue
        most = max(most, values.max())
        colour = theme.COLOURS["prefill"] if line.precision == asked.kv_precision else theme.COLOURS["padding"]
        figure.add_scatter(
            x=np.array(LENGTHS)[some],
            y=values[some],
            mode="lines",
            name=plain(line.name),
            line_shape="linear",
            line={"color": colour, "width": 3 if line.asked else 1.5, "dash": DASHES[line.rank % len(DASHES)]},
            hovertemplate=f"<b>{plain(line.name)}</b><br>%{{x:,.0f}} tokens: %{{y:,.0f}} sequences<extra></extra>",
        )
        ends.append((line.name, float(values[some][0])))
    now = found.max_sequences
    if now:
        figure.add_scatter(
            x=[asked.seq],
            y=[now],
            mode="markers",
            showlegend=False,
            hoverinfo="skip",
            marker={
                "size": 13,
                "symbol": "circle-open",
                "color": theme.COLOURS["infrastructure_recovery"],
                "line": {"width": 3},
            },
        )
        figure.add_annotation(
            x=np.log10(asked.seq),
            y=np.log10(now),
            text=f"<b>{now:,}</b> of {asked.seq:,} tokens",
            showarrow=True,
            arrowhead=0,
            ax=46,
            ay=-34,
            xanchor="left",
            arrowcolor=theme.GREY,
        )
    return layout(
        figure,
        420,
        showlegend=True,
        dragmode="zoom",
        hovermode="closest",
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 16, "t": 36, "b": 8},
        xaxis={**_decades(LENGTHS[0], LENGTHS[-1]), "title": {"text": "tokens of a sequence, prompt and answer"}},
        yaxis={**_decades(1, most), "title": {"text": "sequences at a time, all chips"}},
    )


def _decades(low: float, high: float) -> dict:
    """A logarithmic axis with each power of ten written out, and powers of two of long sequences left to the hover."""
    a, b = np.log10(low), np.log10(max(high, low * 10))
    ticks = [10.0**p for p in range(int(np.floor(a)), int(np.ceil(b)) + 1)]
    return {
        "type": "log",
        "range": [a - 0.03, b + 0.06],
        "tickvals": ticks,
        "ticktext": [f"{t:,.0f}" for t in ticks],
        "gridcolor": GRID,
        "zeroline": False,
    }


def over_time(result: KvResult) -> go.Figure | None:
    """Share of the cache in use; None where fewer than two samples tell. Replicas are drawn one by one."""
    samples = result.measured.samples
    if len(samples) < 2:
        return None
    timed = samples["ts_ns"].notna().all()
    at = samples["ts_ns"].astype("Int64") if timed else samples["order"]
    start = int(at.min()) if timed and len(at) else 0
    seconds = (at - start).to_numpy(dtype=float) / (1e9 if timed else 1.0)
    names = samples["replica"].astype(object).where(samples["replica"].notna(), "").astype(str)
    known: Sequence[str] = list(dict.fromkeys(names))[:12]
    figure = go.Figure()
    for number, name in enumerate(known):
        mine = (names == name).to_numpy()
        used = samples["kv_usage"].to_numpy(dtype=float)[mine] * 100
        kept = reduced(used, max(2000 // len(known), 100))
        figure.add_scatter(
            x=seconds[mine][kept],
            y=used[kept],
            mode="lines",
            line_shape="hv",
            name=plain(name or "cache"),
            line={"color": theme.COLOURS["prefill"] if not number else theme.GREY, "width": 2 if not number else 1},
            hovertemplate=f"{plain(name)} %{{x:,.4r}}: %{{y:,.3r}} %<extra></extra>",
        )
    reference_line(figure, 100.0, "full: requests are put back or wait")
    title = "time since the first sample (s)" if timed else "sample"
    return layout(
        figure,
        300,
        showlegend=len(known) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 32, "b": 8},
        xaxis={"title": {"text": title}, "gridcolor": GRID, "zeroline": False},
        yaxis={"title": {"text": "cache in use (%)"}, "gridcolor": GRID, "zeroline": False, "range": [0, 109]},
    )

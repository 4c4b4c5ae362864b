"""A compiled step, or two beside each other: bytes against the limit, bounds, collectives, padding, cycles.

`Named` results keep one order in every figure; of two, the second is hatched wherever rows of both lie together.
"""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from analyzers.compiled.compiled import KINDS, CompiledResult
from app import theme
from app.figures.base import GRID, layout, plain
from app.questions.compiled.words import BYTES, PARTS, floor_parts
from errors import format as fmt

Named = tuple[str, CompiledResult]
HELD, PADDING = theme.COLOURS["held"], theme.COLOURS["padding"]
TINTS = {"arguments": HELD, "outputs": "#72818F", "temporaries": "#8FA0AE"}  # of what is held
PART_COLOURS = {  # of `floor_parts`
    "operations bound by computation": "useful_maths",
    "operations bound by memory bandwidth": "below_roofline",
    "padding": "padding",
    "collectives that no computation covers": "exposed_communication",
}
STACKED = ("arguments", "outputs", "temporaries")  # the peak; code lies beside it
HATCHED = {"shape": "/", "fgcolor": "rgba(0,0,0,0.55)", "fillmode": "overlay", "size": 8, "solidity": 0.25}
ROW_PX, GB = 30, 1e9
MOST = 15  # rows of a figure; more are in the table
LEAST_PADDING = 1e-3  # of the peak: less is no stripe that could be seen
LABEL = 46  # characters of an operation's or argument's name beside its bar


def memory(results: Sequence[Named]) -> go.Figure | None:
    """Padded bytes of a chip by kind, stacked against the limit; the padding of the arguments hatched."""
    rows = [(n, r, r.bytes_per_chip) for n, r in results if r.bytes_per_chip["peak"] is not None]
    if not rows:
        return None
    figure = go.Figure()
    names = [plain(n) for n, *_ in rows]
    for kind in STACKED:
        lost = [_argument_padding(r, held) if kind == "arguments" else 0 for _, r, held in rows]
        sizes = [(held[kind] or 0) - p for (_, _, held), p in zip(rows, lost, strict=True)]
        _stack(figure, names, sizes, BYTES[kind], TINTS[kind])
        if any(p >= LEAST_PADDING * (held["peak"] or 0) for p, (*_, held) in zip(lost, rows, strict=True)):
            _stack(figure, names, lost, "padding of the arguments", PADDING, HATCHED)
    whole = [held["peak"] if all(held[k] is None for k in KINDS) else 0 for *_, held in rows]
    if any(whole):  # out of memory: the compiler names one sum
        _stack(figure, names, whole, "needed, not broken down", theme.COLOURS["not_broken_down"])
    figure.add_trace(
        go.Scatter(
            x=[held["peak"] / GB for *_, held in rows],
            y=names,
            mode="markers",
            name="peak: the most at once",
            marker={"symbol": "diamond", "size": 12, "color": theme.GREY, "line": {"color": "white", "width": 1.5}},
            hovertext=[
                f"<b>peak</b><br>{fmt.size(held['peak'])}: arguments, outputs and the temporaries alive then"
                for *_, held in rows
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    limits = {held["limit"] for *_, held in rows if held["limit"]}
    for limit in limits:
        figure.add_vline(x=limit / GB, line_dash="dash", line_color=theme.GREY, line_width=2)
        figure.add_annotation(
            x=limit / GB, y=1.0, yref="paper", yanchor="bottom", showarrow=False, text=f"limit {fmt.size(limit)}"
        )
    stacked = (sum(held[k] or 0 for k in STACKED) for *_, held in rows)
    most = max([*(limits or {0}), *(held["peak"] for *_, held in rows), *stacked]) / GB
    return layout(
        figure,
        len(rows) * 60 + 150,
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        uniformtext={"minsize": 11, "mode": "hide"},
        legend={
            "orientation": "h",
            "yref": "container",
            "y": 0.01,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
        margin={"l": 8, "r": 8, "t": 28, "b": 90},
        xaxis={"title": {"text": "GB of one chip"}, "gridcolor": GRID, "zeroline": False, "range": [0, most * 1.08]},
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False},
    )


def _argument_padding(result: CompiledResult, held: dict[str, int | None]) -> int:
    """Bytes of padding in a chip's arguments, as the layouts have it; never more than the arguments."""
    if (both := result.argument_bytes) is None or not both[1]:
        return 0
    return int((held["arguments"] or 0) * (both[1] - both[0]) / both[1])


def _stack(
    figure: go.Figure, names: list[str], sizes: list[int], title: str, colour: str, pattern: dict | None = None
) -> None:
    if not any(sizes):
        return
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=names,
            x=[s / GB for s in sizes],
            name=title,
            text=[f"{title.partition(' (')[0]} {fmt.size(s)}" for s in sizes],
            textposition="inside",
            insidetextanchor="middle",
            textfont={"color": theme.text_on(colour)},
            marker={
                "color": colour,
                "line": {"color": theme.GREY, "width": 1},
                **({"pattern": pattern} if pattern else {}),
            },
            hovertext=[f"<b>{title}</b><br>{fmt.size(s)}" for s in sizes],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )


def least(results: Sequence[Named]) -> go.Figure | None:
    """The parts of the least time of a step, which add up to it."""
    told = [(name, result, result.floor) for name, result in results if result.floor]
    if not told:
        return None
    parts = {name: dict(floor_parts(floor)) for name, _, floor in told}
    there = [p for p in PART_COLOURS if any(one[p] > 0 for one in parts.values())]
    longest = max(s for one in parts.values() for s in one.values())
    unit, factor = ("s", 1.0) if longest >= 1 else ("ms", 1e3) if longest >= 1e-3 else ("µs", 1e6)
    figure = go.Figure()
    for number, (name, result, floor) in enumerate(told):
        alone = "<br>".join(
            f"{PARTS[p.name]} alone: {fmt.number(p.amount)} / {fmt.number(p.rate)} per second = "
            f"{fmt.duration(p.seconds)}"
            for p in result.bounds.parts
            if p.seconds is not None
        )
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=there,
                x=[parts[name][p] * factor for p in there],
                name=_legend(name, number),
                marker={
                    "color": [theme.COLOURS[PART_COLOURS[p]] for p in there],
                    "line": {"color": theme.GREY, "width": 1},
                    **({"pattern": HATCHED} if number else {}),
                },
                text=[fmt.duration(parts[name][p]) for p in there],
                textposition="outside",
                cliponaxis=False,
                hovertext=[
                    f"<b>{plain(name)}</b><br>{p}: {fmt.duration(parts[name][p])}, "
                    f"{fmt.share(parts[name][p] / floor.seconds)} of {fmt.duration(floor.seconds)}<br>{alone}"
                    for p in there
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return _rows(figure, len(there) * len(told), f"least time of a step ({unit})", longest * factor * 1.2)


def collectives(results: Sequence[Named]) -> go.Figure | None:
    """Operand bytes of a chip in a step by kind and mesh axis, with how often each runs."""
    summed = {}
    for name, result in results:
        rows = result.collectives.head(MOST)
        titles = rows["kind"].astype(str) + " over " + rows["axis"].fillna("an unknown axis").astype(str)
        summed[name] = {t: (float(b), int(c)) for t, b, c in zip(titles, rows["bytes"], rows["count"], strict=True)}
    titles = list(dict.fromkeys(t for one in summed.values() for t in one))
    if not titles:
        return None
    most = max(b for one in summed.values() for b, _ in one.values())
    factor, unit = next(((f, u) for f, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= f), (1.0, "bytes"))
    figure = go.Figure()
    for number, (name, one) in enumerate(summed.items()):
        there = [t for t in titles if t in one]
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=[plain(t) for t in there],
                x=[one[t][0] / factor for t in there],
                name=_legend(name, number),
                marker={
                    "color": theme.COLOURS["exposed_communication"],
                    "line": {"color": theme.GREY, "width": 1},
                    **({"pattern": HATCHED} if number else {}),
                },
                text=[f"{fmt.size(one[t][0])} in {one[t][1]:,}" for t in there],
                textposition="outside",
                cliponaxis=False,
                hovertext=[
                    f"<b>{plain(t)}</b><br>{plain(name)}<br>{fmt.size(one[t][0])} of operands on a chip in "
                    f"a step<br>{fmt.count(one[t][1], 'execution')}"
                    for t in there
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return _rows(figure, len(titles) * len(results), f"operands of one chip in a step ({unit})", most / factor * 1.25)


def arguments(result: CompiledResult) -> go.Figure | None:
    """The arguments that padding costs most, on one device: logical bytes, and the padding hatched."""
    rows = result.arguments.dropna(subset=["bytes", "padded_bytes"])
    rows = rows.assign(lost=rows["padded_bytes"] - rows["bytes"]).sort_values("lost", ascending=False)
    rows = rows[rows["lost"] > 0].head(MOST)
    if not len(rows):
        return None
    most = float(rows["padded_bytes"].max())
    factor, unit = next(((f, u) for f, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= f), (1.0, "bytes"))
    names = [
        f"{plain(_short(str(n)))} <span style='opacity:0.7'>{fmt.share(float(t), 2)}</span>"
        for n, t in zip(rows["name"], rows["tax"], strict=True)
    ]
    hovers = [
        f"<b>{plain(r.name)}</b><br>{plain(r.shape)}<br>{fmt.size(r.bytes)} become {fmt.size(r.padded_bytes)}"
        for r in rows.itertuples(index=False)
    ]
    figure = go.Figure()
    for column, title, colour, pattern in (("bytes", "logical", HELD, None), ("lost", "padding", PADDING, HATCHED)):
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=names,
                x=rows[column].astype(float) / factor,
                name=title,
                marker={
                    "color": colour,
                    "line": {"color": theme.GREY, "width": 1},
                    **({"pattern": pattern} if pattern else {}),
                },
                hovertext=hovers,
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return _rows(figure, len(rows), f"bytes of one device ({unit})", most / factor * 1.05, barmode="stack")


def cycles(result: CompiledResult) -> go.Figure | None:
    """The operations that the compiler gives most cycles, as shares of all that it estimates."""
    rows = result.ops[result.ops["cycles"].notna() & (result.ops["cycles"] > 0)].head(MOST)
    if not len(rows):
        return None
    colours = [theme.COLOURS["exposed_communication" if c == "collective" else "held"] for c in rows["category"]]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=[plain(_short(str(o))) for o in rows["op"]],
            x=rows["cycles_share"].astype(float) * 100,
            marker={"color": colours, "line": {"color": theme.GREY, "width": 1}},
            text=[fmt.share(float(s)) for s in rows["cycles_share"]],
            textposition="outside",
            cliponaxis=False,
            hovertext=[_op_hover(r) for r in rows.itertuples(index=False)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    return _rows(figure, len(rows), "share of all estimated cycles (%)", float(rows["cycles_share"].max()) * 125)


def _op_hover(row: tuple) -> str:
    lines = [
        f"<b>{plain(row.op)}</b> ({plain(row.category)})",
        f"{fmt.number(float(row.cycles), 4)} cycles in {fmt.count(int(row.count), 'execution')}",
    ]
    if pd.notna(row.flops):
        lines.append(fmt.flops(float(row.flops)))
    if pd.notna(row.source):
        lines.append(plain(row.source))
    return "<br>".join(lines)


def _legend(name: str, number: int) -> str:
    return f"{plain(name)} (hatched)" if number else plain(name)


def _short(text: str) -> str:
    return text if len(text) <= LABEL else f"…{text[-LABEL + 1 :]}"


def _rows(figure: go.Figure, count: int, title: str, most: float, barmode: str = "group") -> go.Figure:
    return layout(
        figure,
        count * ROW_PX + 90,
        barmode=barmode,
        bargap=0.3,
        showlegend=len(figure.data) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 32 if len(figure.data) > 1 else 8, "b": 8},
        xaxis={"title": {"text": title}, "gridcolor": GRID, "zeroline": False, "range": [0, most or 1]},
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "type": "category"},
    )

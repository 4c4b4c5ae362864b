"""What-if slowdown drawn: where on the mesh, by stage and type of operation, over steps, and along one step."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analyzers.ranks.slowdown import SlowdownResult
from app import theme
from app.figures.axes import time_unit
from app.figures.base import GRID, layout, plain, reduced, reference_line
from app.questions.slowdown.words import times, worker
from errors import format as fmt

MAX_REPLICAS = 64  # rows of the heat map; of more, the slowest are drawn
MAX_LABELS = 256  # cells with their number in them
MAX_BARS = 1200  # of the timeline: of more, the longest are drawn
ROW_PX = 30
HAIR = 1e-3  # of the step: a part that no bar could show
TEXT_FROM = 0.015  # of the step: a narrower bar holds no number
EVEN, SLOW = theme.COLOURS["productive"], theme.COLOURS["straggler_wait"]
TOP = 1.1  # the least that the top of the colour scale stands for: a hundredth must not look like a half
PARTS: tuple[tuple[str, tuple[str, ...], str], ...] = (  # legend, types of operation, colour
    ("forward", ("forward-compute",), theme.COLOURS["below_roofline"]),
    ("backward", ("backward-compute",), theme.COLOURS["useful_maths"]),
    ("optimiser", ("optimizer",), theme.COLOURS["custom"]),
    ("garbage collection", ("gc",), theme.COLOURS["infrastructure_recovery"]),
    ("communication", (), theme.COLOURS["exposed_communication"]),
)
WAITING = ("waiting for peers", SLOW)
LEGEND = {"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def mesh(result: SlowdownResult) -> go.Figure:
    """S of each worker: data-parallel ranks by pipeline stages."""
    grid = result.workers.pivot(index="dp_rank", columns="stage", values="s")
    if len(grid) > MAX_REPLICAS:
        grid = grid.loc[grid.max(axis=1).nlargest(MAX_REPLICAS).index.sort_values()]
    values = grid.to_numpy(dtype=float)
    top = max(TOP, float(np.nanmax(values)))
    rows, columns = ([str(v) for v in axis] for axis in (grid.index, grid.columns))
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=rows,
            z=values,
            zmin=1,
            zmax=top,
            colorscale=[[0, EVEN], [1, SLOW]],
            xgap=3,
            ygap=3,
            colorbar={"title": {"text": "S"}, "thickness": 12, "outlinewidth": 0},
            hovertext=[
                [f"<b>{worker((d, p))}</b><br>" + _alone(v) for p, v in zip(grid.columns, line, strict=True)]
                for d, line in zip(grid.index, values, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    if values.size <= MAX_LABELS:
        flat = values.ravel()
        figure.add_scatter(
            x=columns * len(rows),
            y=np.repeat(rows, len(columns)),
            mode="text",
            hoverinfo="skip",
            showlegend=False,
            text=[times(v) if v == v else "" for v in flat],
            textfont={"color": [_ink((v - 1) / (top - 1)) for v in flat], "size": 13},
        )
    return layout(
        figure,
        max(len(rows) * ROW_PX, 150) + 70,
        xaxis={"title": {"text": "pipeline stage"}, "type": "category", "showgrid": False, "fixedrange": True},
        yaxis={
            "title": {"text": "data-parallel rank"},
            "type": "category",
            "autorange": "reversed",
            "showgrid": False,
            "fixedrange": True,
        },
    )


def _alone(s: float) -> str:
    return "not in the trace" if s != s else f"alone: about {times(s)} times the ideal step time"


def _ink(at: float) -> str:
    """The text colour on the colour scale at 0 (even) to 1 (slow)."""
    at = min(max(at, 0.0), 1.0) if at == at else 0.0
    mixed = [
        round(int(a, 16) * (1 - at) + int(b, 16) * at)
        for a, b in zip((EVEN[1:3], EVEN[3:5], EVEN[5:7]), (SLOW[1:3], SLOW[3:5], SLOW[5:7]), strict=True)
    ]
    return theme.text_on("#" + "".join(f"{c:02X}" for c in mixed))


def stages(result: SlowdownResult) -> go.Figure:
    """What each stage alone costs, all else ideal."""
    return _bars({f"stage {stage}": s for stage, s in sorted(result.by_stage.items())}, result.s)


def types(result: SlowdownResult) -> go.Figure:
    """What each type of operation alone costs, all else ideal; the largest first."""
    return _bars(dict(sorted(result.by_op_type.items(), key=lambda item: -item[1])), result.s)


def _bars(values: dict[str, float], whole: float) -> go.Figure:
    """S - 1 in per cent: to the right what slows down, to the left what is better than even."""
    names = [plain(n) for n in values]
    more = np.array(list(values.values())) * 100 - 100
    total = whole * 100 - 100
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=more,
            marker={"color": [SLOW if m > 0 else EVEN for m in more]},
            hovertext=[
                f"<b>{n}</b><br>alone: {times(s)} times the ideal step time"
                for n, s in zip(names, values.values(), strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.add_scatter(
        x=np.maximum(more, 0),
        y=names,
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        text=["  0 %" if abs(m) < 0.05 else f"  {m:+.1f} %".replace("-", "−") for m in more],
    )
    figure.add_vline(x=total, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    figure.add_annotation(
        x=total,
        yref="paper",
        y=1,
        yanchor="bottom",
        showarrow=False,
        font_size=12,
        xanchor="right" if total > 0 else "left",
        text=f"all together: {total:+.1f} %",
    )
    high, low = max(float(more.max()), total, 1.0), min(float(more.min()), 0.0)
    return layout(
        figure,
        len(names) * ROW_PX + 90,
        bargap=0.3,
        margin={"l": 8, "r": 24, "t": 28, "b": 8},
        xaxis={
            "title": {"text": "longer step than ideal (%)"},
            "range": [low * 1.1, high * 1.18],
            "gridcolor": GRID,
            "zeroline": True,
            "zerolinecolor": theme.GREY,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def steps(result: SlowdownResult) -> go.Figure:
    """S of each step, with the S of all."""
    rows = result.per_step.sort_values("step").reset_index(drop=True)
    rows = rows.iloc[reduced(rows["s"].to_numpy(dtype=float))]
    figure = go.Figure(
        go.Scatter(
            x=rows["step"],
            y=rows["s"],
            mode="markers",
            marker={"size": 7, "color": SLOW},
            hovertext=[
                f"<b>step {r.step:,}</b><br>S {times(r.s)}<br>measured {fmt.duration(r.measured_s)}<br>without "
                f"launch delays {fmt.duration(r.t_s)}<br>ideal {fmt.duration(r.t_ideal_s)}"
                for r in rows.itertuples()
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    reference_line(figure, result.s, f"all steps: {times(result.s)}")
    reference_line(figure, 1.0, "ideal: 1")
    high = max(float(rows["s"].max()), TOP)
    low = min(float(rows["s"].min()), 1.0)
    left, right = float(rows["step"].min()), float(rows["step"].max())
    wide = max(right - left, 1.0)  # room at the right for the labels of the lines
    return layout(
        figure,
        340,
        dragmode="zoom",
        xaxis={"title": {"text": "step"}, "showgrid": False, "range": [left - 0.03 * wide, right + 0.14 * wide]},
        yaxis={
            "title": {"text": "S, times the ideal step time"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [low - 0.05 * (high - low), high + 0.12 * (high - low)],
        },
    )


def timeline(result: SlowdownResult) -> go.Figure:
    """One step on one data-parallel rank: the stages as measured, and below as they would run evenly."""
    bars, span, even_span = _timeline_bars(result.timeline)
    unit, factor = time_unit(span)
    names = list(dict.fromkeys(bars["row"]))
    figure = go.Figure()
    kinds = [(name, colour) for name, _, colour in PARTS] + [WAITING]
    for name, colour in kinds:
        some = bars[bars["part"] == name]
        if not len(some):
            continue
        wide = (some["dur_s"] >= TEXT_FROM * span) & (some["microbatch"] >= 0)
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=name,
                y=some["y"],
                base=some["start_s"] * factor,
                x=some["dur_s"] * factor,
                marker={"color": colour, "line": {"color": "rgba(255,255,255,0.55)", "width": 0.5}},
                width=0.8,
                text=[str(m) if w else "" for m, w in zip(some["microbatch"], wide, strict=True)],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                insidetextfont={"color": theme.text_on(colour), "size": 10},
                hovertext=some["words"],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    places = bars.drop_duplicates("row").set_index("row")["y"]
    _ends(figure, float(places.min()), float(places.max()), len(names), span * factor, even_span * factor, unit)
    return layout(
        figure,
        len(names) * 26 + 130,
        barmode="overlay",
        showlegend=True,
        legend=LEGEND,
        dragmode="zoom",
        margin={"l": 8, "r": 12, "t": 44, "b": 8},
        uniformtext={"minsize": 8, "mode": "hide"},
        xaxis={
            "title": {"text": f"time since the start of the step ({unit})"},
            "gridcolor": GRID,
            "zeroline": False,
            "range": [0, max(span, even_span) * factor * 1.01],
        },
        yaxis={
            "autorange": "reversed",
            "tickvals": places.tolist(),
            "ticktext": [plain(n) for n in places.index],
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
    )


def _ends(figure: go.Figure, top: float, bottom: float, rows: int, measured: float, even: float, unit: str) -> None:
    """Where the step ends, as measured and evenly, over the rows of each."""
    half = rows / 2
    for x, a, b, words in (
        (measured, top - 0.5, top + half - 0.5, "as measured"),
        (even, bottom - half + 0.5, bottom + 0.5, "all even"),
    ):
        figure.add_shape(type="line", x0=x, x1=x, y0=a, y1=b, line={"color": theme.GREY, "dash": "dash", "width": 1.5})
        figure.add_annotation(
            x=x,
            y=b,
            yanchor="top",
            xanchor="right",
            showarrow=False,
            font_size=12,
            text=f"{words}: {fmt.number(x)} {unit}",
        )


def _timeline_bars(ops: pd.DataFrame) -> tuple[pd.DataFrame, float, float]:
    """(bars with row, y, part, start_s, dur_s, microbatch and words; seconds as measured; seconds if even)."""
    part = ops["op_type"].map({t: name for name, of, _ in PARTS for t in of}).fillna("communication")
    several = ops["rank_of_stage"].max() > 0
    row = "stage " + ops["stage"].astype(str) + (", rank " + ops["rank_of_stage"].astype(str) if several else "")
    base = pd.DataFrame({"name": row, "part": part, "microbatch": ops["microbatch"], "op": ops["op_type"]})
    wait, spent = ops["wait_s"], ops["dur_s"] - ops["wait_s"]
    measured = pd.concat(
        [
            base.assign(
                part=base["part"].where(wait <= 0, WAITING[0]),
                start_s=ops["start_s"],
                dur_s=wait.where(wait > 0, ops["dur_s"]),
                even=False,
            ),
            base.assign(start_s=ops["start_s"] + wait, dur_s=spent, even=False)[wait > 0],
        ]
    )
    ideal = base.assign(start_s=ops["ideal_start_s"], dur_s=ops["ideal_dur_s"], even=True)
    bars = pd.concat([measured, ideal], ignore_index=True)
    span = float((ops["start_s"] + ops["dur_s"]).max())
    even_span = float((ops["ideal_start_s"] + ops["ideal_dur_s"]).max())
    order = {name: place for place, name in enumerate(dict.fromkeys(row))}
    bars["y"] = bars["name"].map(order) + np.where(bars["even"], len(order) + 1.0, 0.0)
    bars["row"] = bars["name"] + np.where(bars["even"], ", even", "")
    drawn = bars[bars["dur_s"] >= HAIR * max(span, even_span)]
    drawn = drawn.loc[drawn["dur_s"].nlargest(MAX_BARS).index].sort_values(["y", "start_s"])
    drawn["words"] = [
        f"<b>{plain(r.row)}</b><br>{plain(r.op)}{f', micro-batch {r.microbatch}' if r.microbatch >= 0 else ''}: "
        f"{r.part}<br>{fmt.duration(r.dur_s)} from {fmt.duration(r.start_s)} on"
        for r in drawn.itertuples()
    ]
    return drawn, span, even_span

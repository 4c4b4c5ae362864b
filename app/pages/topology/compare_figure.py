"""Several topologies side by side: one small chart for each figure, one bar for each system, ranges as whiskers."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app import theme
from app.figures.base import GRID, layout, plain
from app.pages.topology.hops_figure import SYSTEMS
from simulators.topology.report import Report

COLUMNS = 3


@dataclass(frozen=True)
class Bar:
    """Value of one system, its text, and how far it may be off: from `low` to `high`."""

    value: float | None
    text: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Small:
    """One small chart. `better`: "less" or "more"."""

    title: str
    better: str
    bars: tuple[Bar, ...]


def counted(reports: Sequence[Report]) -> list[Small]:
    """Diameter, mean hops, bisection with its bounds, busiest link from the cut's bound to the worst routing."""
    return [
        Small("Diameter (hops)", "less", tuple(Bar(r.hops.diameter, f"{r.hops.diameter or 0:,}") for r in reports)),
        Small("Mean (hops)", "less", tuple(Bar(r.hops.mean, f"{r.hops.mean or 0:.4f}") for r in reports)),
        Small("Bisection (links)", "more", tuple(_bisection(r) for r in reports)),
        Small("Busiest link, all-to-all (pairs)", "less", tuple(_busiest(r) for r in reports)),
    ]


def small_multiples(names: Sequence[str], charts: Sequence[Small]) -> go.Figure:
    """The charts in rows of three; every system keeps its colour and its place in each."""
    rows = -(-len(charts) // COLUMNS)
    titles = [f"{c.title}<br><span style='font-size:11px'>{c.better} is better</span>" for c in charts]
    figure = make_subplots(
        rows=rows,
        cols=COLUMNS,
        subplot_titles=titles,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.3 / rows,
    )
    labels = [plain(n) for n in names]
    for number, chart in enumerate(charts):
        row, column = divmod(number, COLUMNS)
        known = [b.value or 0 for b in chart.bars]
        figure.add_trace(
            go.Bar(
                x=known,
                y=labels,
                orientation="h",
                marker={"color": list(SYSTEMS[: len(labels)])},
                error_x=_whiskers(chart.bars),
                customdata=[_told(b) for b in chart.bars],
                hovertemplate=f"<b>%{{y}}</b><br>{chart.title}: %{{customdata}}<extra></extra>",
            ),
            row=row + 1,
            col=column + 1,
        )
        reach = max([max(b.value or 0, b.high or 0) for b in chart.bars] + [1e-30])
        for label, bar in zip(labels, chart.bars, strict=True):
            figure.add_annotation(
                x=max(bar.value or 0, bar.high or 0),
                y=label,
                text=f" {bar.text}",
                showarrow=False,
                xanchor="left",
                row=row + 1,
                col=column + 1,
            )
        figure.update_xaxes(
            range=[0, reach * 1.45],
            showticklabels=False,
            showgrid=False,
            zeroline=True,
            zerolinecolor=GRID,
            row=row + 1,
            col=column + 1,
        )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return layout(figure, rows * (92 + 38 * len(labels)), margin={"l": 8, "r": 8, "t": 52, "b": 8}, bargap=0.35)


def _bisection(report: Report) -> Bar:
    found = report.bisection
    if found.links is None:
        return Bar(found.low, f"≥ {found.low:,}" if found.low else "not known")
    if found.exact:
        return Bar(found.links, f"{found.links:,}")
    return Bar(found.links, f"≤ {found.links:,}", found.low, found.links)


def _busiest(report: Report) -> Bar:
    if not report.busiest:
        return Bar(None, "not known")
    least, most = min(report.busiest.values()), max(report.busiest.values())
    text = f"{least:,.0f}" + (f" / {most:,.0f}" if most - least >= 1 else "")
    return Bar(least, text, min(report.cut_bound or least, least), most)


def _whiskers(bars: Sequence[Bar]) -> dict:
    high = [(b.high or b.value or 0) - (b.value or 0) for b in bars]
    low = [(b.value or 0) - (b.low if b.low is not None else b.value or 0) for b in bars]
    return {
        "type": "data",
        "symmetric": False,
        "array": high,
        "arrayminus": low,
        "color": theme.GREY,
        "thickness": 1.5,
        "width": 4,
        "visible": any(high) or any(low),
    }


def _told(bar: Bar) -> str:
    if bar.low is None and bar.high is None:
        return bar.text
    return f"{bar.text}, from {bar.low or bar.value:,.6g} to {bar.high or bar.value:,.6g}"

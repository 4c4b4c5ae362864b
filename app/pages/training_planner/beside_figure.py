"""Two ledgers of a step beside each other: as it was measured and as carried over, and by what each account changes."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.figures.base import GRID, layout, plain
from app.whatif.training.beside_wording import change, title
from errors import format as fmt
from simulators.training.ported import Row

ROW_PX, LEAST = 64, 0.06  # of the longer step: a part as wide has room for its name
SCALES = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


def two_ledgers(rows: Sequence[Row], before: Sequence[str], after: Sequence[str]) -> go.Figure:
    """A bar each of the step's seconds, by account: the same colours as everywhere, to one scale. `before`, `after`:
    lines beside the bars."""
    labels = ["<br>".join(map(plain, lines)) for lines in (before, after)]
    whole = max(sum(r.measured_s for r in rows), sum(r.ported_s for r in rows))
    times, unit = _scale(whole)
    figure = go.Figure()
    for row in sorted(rows, key=lambda r: (r.path[0] != "useful_maths", -r.measured_s)):
        amounts = (row.measured_s, row.ported_s)
        name = plain(title(row))
        figure.add_bar(
            orientation="h",
            y=labels,
            x=[a * times for a in amounts],
            name=name,
            marker={
                "color": theme.colour(row.path),
                "line": {"color": theme.GREY, "width": 0.4},
                "pattern": {"shape": theme.pattern(row.path)},
            },
            text=[name if a > LEAST * whole else "" for a in amounts],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            customdata=[fmt.duration(a) for a in amounts],
            hovertemplate=f"<b>{name}</b><br>%{{customdata}}<extra>%{{y}}</extra>",
        )
    return layout(
        figure,
        height=2 * ROW_PX + 70,
        barmode="stack",
        showlegend=False,
        uniformtext={"minsize": 10, "mode": "hide"},
        xaxis={"title": f"a step, {unit} of each chip", "gridcolor": GRID, "fixedrange": True},
        yaxis={"autorange": "reversed", "fixedrange": True, "automargin": True},
    )


def differences(rows: Sequence[Row]) -> go.Figure:
    """What each account takes more or less than it did, the largest first."""
    shown = sorted(rows, key=lambda r: abs(r.change_s))
    times, unit = _scale(max((abs(r.change_s) for r in shown), default=0.0))
    figure = go.Figure()
    figure.add_bar(
        orientation="h",
        y=[plain(title(r)) for r in shown],
        x=[r.change_s * times for r in shown],
        marker={"color": [theme.colour(r.path) for r in shown], "line": {"color": theme.GREY, "width": 0.4}},
        text=[change(r.change_s) for r in shown],
        textposition="outside",
        cliponaxis=False,
        customdata=[[fmt.duration(r.measured_s), fmt.duration(r.ported_s), plain(r.rule)] for r in shown],
        hovertemplate="<b>%{y}</b><br>%{customdata[0]} to %{customdata[1]}<br>carried over by: %{customdata[2]}"
        "<extra></extra>",
    )
    return layout(
        figure,
        height=34 * len(shown) + 60,
        bargap=0.35,
        xaxis={"title": f"change, {unit} of each chip", "gridcolor": GRID, "zerolinecolor": theme.GREY}
        | {"range": _room([r.change_s * times for r in shown]), "fixedrange": True},
        yaxis={"fixedrange": True, "automargin": True},
    )


def _scale(seconds: float) -> tuple[float, str]:
    return next(((f, u) for f, u in SCALES if seconds * f >= 1), SCALES[-1])


def _room(values: Sequence[float]) -> list[float]:
    """Ends of an axis with room for what stands outside of bars."""
    low, high = min(0.0, *values), max(0.0, *values)
    beside = 0.22 * ((high - low) or 1.0)
    return [low - beside if low < 0 else -beside / 4, high + beside if high > 0 else beside / 4]

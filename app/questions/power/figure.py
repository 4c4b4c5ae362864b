"""Power drawn: the mean and the highest watts of each chip against its limit, and what held clocks down."""

import pandas as pd
import plotly.graph_objects as go

from analyzers.device.power.result import PowerResult
from app import theme
from app.figures.base import GRID, layout, plain
from app.questions.power.words import chip, watts

MOST_CHIPS = 64  # of more, those that draw the most and the least are shown
ROW_PX = 24
MEAN, HIGHEST = theme.COLOURS["productive"], theme.COLOURS["below_roofline"]


def watts_of_chips(result: PowerResult) -> go.Figure:
    """A bar a chip up to its mean, and a lighter one on to its highest sample."""
    rows = result.devices.dropna(subset=["mean_watts"])
    if len(rows) > MOST_CHIPS:
        by_mean = rows.sort_values("mean_watts", kind="stable")
        rows = pd.concat([by_mean.head(MOST_CHIPS // 2), by_mean.tail(MOST_CHIPS // 2)]).sort_index()
    names = [plain(chip(_host(h), int(d))) for h, d in zip(rows["host"], rows["device"], strict=True)]
    mean = rows["mean_watts"].to_numpy(dtype=float)
    highest = rows["highest_watts"].astype(float).fillna(rows["mean_watts"].astype(float)).to_numpy()
    figure = go.Figure()
    for words, x, colour in (("mean", mean, MEAN), ("highest", (highest - mean).clip(min=0), HIGHEST)):
        figure.add_trace(
            go.Bar(
                orientation="h",
                name=words,
                y=names,
                x=x,
                marker={"color": colour, "line": {"width": 0}},
                hovertext=[
                    f"<b>{n}</b><br>mean {watts(float(m))}, highest {watts(float(h))}"
                    for n, m, h in zip(names, mean, highest, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    if result.limit_watts:
        figure.add_vline(x=result.limit_watts, line_dash="dash", line_color=theme.GREY, line_width=1.5)
    return layout(
        figure,
        len(rows) * ROW_PX + 110,
        barmode="stack",
        bargap=0.3,
        showlegend=True,
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"l": 8, "r": 28, "t": 52, "b": 8},
        xaxis={
            "title": {
                "text": "power, W"
                + (f", dashed: the limit of {watts(result.limit_watts)}" if result.limit_watts else "")
            },
            "rangemode": "tozero",
            "gridcolor": GRID,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "type": "category", "fixedrange": True},
    )


def slowed_rows(result: PowerResult) -> pd.DataFrame:
    """What held clocks down, a row a reason."""
    rows = [one.to_dict() for one in result.slowed or ()]
    return pd.DataFrame(rows)


def _host(value: object) -> str | None:
    return value if isinstance(value, str) else None

"""What was said and what was given: a point a promise, its band as a bar, on the line where both are the same."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.figures.base import layout, plain
from app.promises import KEPT, Kept
from catalog.cures import WRONGS

HEIGHT = 360


def said_and_given(kept: Sequence[Kept]) -> go.Figure:
    """Shares of the chip time before, in per cent."""
    told = [k for k in kept if k.state == KEPT and k.receipt is not None and k.receipt.gave is not None]
    said = [100 * k.promise.likely_share for k in told]
    gave = [100 * (k.receipt.gave or 0.0) for k in told if k.receipt is not None]
    drawn = go.Figure()
    top = 1.1 * max([*said, *gave, *(100 * k.promise.high_share for k in told), 1.0])
    least = min([0.0, *gave])
    drawn.add_scatter(
        x=[0, top],
        y=[0, top],
        mode="lines",
        line={"dash": "dot", "width": 1, "color": theme.GREY},
        hoverinfo="skip",
        showlegend=False,
    )
    drawn.add_scatter(
        x=said,
        y=gave,
        mode="markers",
        marker={"size": 11, "color": theme.colour(["useful_maths"])},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [100 * (k.promise.high_share - k.promise.likely_share) for k in told],
            "arrayminus": [100 * (k.promise.likely_share - k.promise.low_share) for k in told],
            "thickness": 1,
            "color": theme.GREY,
        },
        customdata=[[plain(_title(k)), plain(k.promise.job)] for k in told],
        hovertemplate="%{customdata[0]}, %{customdata[1]}<br>said %{x:.2f} %, gave %{y:.2f} %<extra></extra>",
        showlegend=False,
    )
    drawn.update_xaxes(title="said, % of the chip time", range=[0, top])
    drawn.update_yaxes(title="gave, % of the chip time", range=[1.1 * least, top])
    return layout(drawn, HEIGHT)


def _title(kept: Kept) -> str:
    return WRONGS[kept.promise.cause].title if kept.promise.cause in WRONGS else kept.promise.cause

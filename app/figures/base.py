"""What all figures share: layout without clutter, escaped text, the toolbar, reduction of long series."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.cells import file_name
from app.theme import GREY

MAX_POINTS = 2000  # a browser draws these in a blink; more would not be seen on a screen anyway
GRID = "rgba(128,128,128,0.22)"


def plain(text: object) -> str:
    """Text for a plotly label or hover: plotly reads `<` and `&` as markup, so names from inputs are escaped."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def each(rows: pd.DataFrame) -> Iterator[Any]:
    """Its rows one by one, columns as attributes."""
    return rows.itertuples()


STANDOFF_PX = 10  # of an axis's title from its ticks


def layout(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    """One look for all figures. No background of its own: the page's light or dark shows through."""
    settings: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
        "dragmode": False,
        "showlegend": False,
        "font": {"size": 13},
    }
    figure.update_layout(settings | more)
    # where a figure is low, plotly lets a title run into the ticks unless it is told how far to stay off them
    figure.for_each_xaxis(
        lambda axis: axis.update(automargin=True, title_standoff=STANDOFF_PX if axis.title.text else None)
    )
    return figure


def toolbar(name: str) -> dict[str, Any]:
    """Plotly's own toolbar: save as PNG at twice the size; nothing that sends a figure anywhere. Plotly writes this
    into a page as it stands, where a name could end the script that it stands in."""
    return {
        "displaylogo": False,
        "showSendToCloud": False,
        "scrollZoom": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": file_name(name)},
    }


def standalone(figure: go.Figure, title: str, name: str) -> bytes:
    """The figure as one HTML page that needs no network; its camera button saves SVG."""
    copy = go.Figure(figure)
    copy.update_layout(
        title={"text": plain(title), "x": 0.01},
        margin={"t": 56},
        template="plotly_white",
        paper_bgcolor="white",
        font_color="#1A1A1A",
    )
    config = toolbar(name)
    config["toImageButtonOptions"] = {"format": "svg", "filename": file_name(name)}
    return copy.to_html(include_plotlyjs=True, config=config).encode()


def reduced(values: np.ndarray, points: int = MAX_POINTS) -> np.ndarray:
    """Positions to draw of a long series: the least and the greatest of each of `points / 2` equal stretches.

    Peaks and dips therefore stay; first and last positions too. NaN is skipped. Sorted, each position once. `points`
    is at least 4.
    """
    n = len(values)
    if n <= points:
        return np.arange(n)
    stretches = max(points // 2 - 1, 1)
    edges = np.linspace(0, n, stretches + 1).astype(np.int64)
    high = np.where(np.isnan(values), -np.inf, values)
    low = np.where(np.isnan(values), np.inf, values)
    kept = [0, n - 1]
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        kept += [a + int(np.argmax(high[a:b])), a + int(np.argmin(low[a:b]))]
    return np.unique(kept)


def reference_line(figure: go.Figure, y: float, text: str, log: bool = False) -> None:
    """A dashed horizontal line with its label at the right end."""
    figure.add_hline(y=y, line_dash="dash", line_color=GREY, line_width=1.5)
    figure.add_annotation(
        xref="paper",
        x=1,
        xanchor="right",
        yref="y",
        yanchor="bottom",
        showarrow=False,
        text=plain(text),
        y=math.log10(y) if log else y,  # on a logarithmic axis plotly places shapes by value, but labels by exponent
        font_size=12,
    )

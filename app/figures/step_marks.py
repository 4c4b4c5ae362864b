"""Steps over their number, alike on every page: kept ones as a line, all others as marks."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app import theme
from app.figures.base import MAX_POINTS, reduced

FEW = 400  # steps that are drawn with a dot each
Hovers = Callable[[pd.DataFrame], list[str]]


def kept_line(rows: pd.DataFrame, by: str, name: str, hovers: Hovers) -> go.Scatter:
    """Column `y` over `step`, reduced by column `by` to what a screen can show, with a gap between attempts: nothing
    ran there."""
    rows = _reduced(rows, by, MAX_POINTS)
    x, y = rows["step"].to_numpy(dtype=float), rows["y"].to_numpy(dtype=float)
    breaks = np.flatnonzero(np.diff(rows["attempt"].fillna(0).to_numpy(dtype=np.int64))) + 1
    x, y = np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan)
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        connectgaps=False,
        mode="lines+markers" if len(x) <= FEW else "lines",
        line={"color": theme.THIN["useful_maths"], "width": 1.5},
        marker={"size": 4},
        hovertext=list(np.insert(np.array(hovers(rows), dtype=object), breaks, "")),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def step_marks(rows: pd.DataFrame, by: str, name: str, colour: str, symbol: str, hovers: Hovers) -> go.Scatter:
    """Steps that the line leaves out, each as a mark."""
    rows = _reduced(rows, by, MAX_POINTS // 2)
    return go.Scatter(
        x=rows["step"],
        y=rows["y"].to_numpy(dtype=float),
        name=name,
        mode="markers",
        marker={"color": colour, "symbol": symbol, "size": 9, "line": {"width": 1.8, "color": colour}},
        hovertext=hovers(rows),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _reduced(rows: pd.DataFrame, by: str, most: int) -> pd.DataFrame:
    rows = rows[rows[by].notna()]
    return rows.iloc[reduced(rows[by].to_numpy(dtype=float), most)]

"""The evidence for the padding tax: every product, arrays that lose most in memory, a GPU's output tiles."""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.flops.padding import PaddingResult
from app.components.columns import draw_table
from app.components.question_page import SHOWN_ROWS, Told
from app.components.text import md
from errors import format as fmt


def evidence(told: Told[PaddingResult], picture: go.Figure) -> None:
    """The products as a table to sort and to take away; of a run also what its memory pads."""
    result, rows = told.result, told.result.rows
    names = [
        "name",
        "m",
        "k",
        "n",
        "batch",
        "count",
        "share",
        "padded_share",
        "efficiency",
        "efficiency_optimistic",
        "useful_flops",
        "padded_flops",
        "padded_flops_optimistic",
    ]
    shown = rows[names + [c for c in ("op", "dtype", "remat", "source") if c in rows]]
    with st.expander(f"Evidence: {fmt.count(len(rows), 'product')}", icon=":material/table:"):
        draw_table(shown.head(SHOWN_ROWS))
        told.downloads(shown, picture, "padding")
        if result.hbm and result.hbm.worst:
            st.markdown(f"**Arrays that lose most in device memory** ({md(result.hbm.counted)}).")
            draw_table(pd.DataFrame([vars(b) for b in result.hbm.worst]))
        if result.tiles:
            st.markdown("**Output tiles.** Libraries choose among these for each product.")
            draw_table(pd.DataFrame([vars(t) for t in result.tiles]))

"""A figure on a page: in the ink of the page's theme, with its toolbar, and with words for who cannot see it."""

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from app.figures.base import toolbar
from app.theme import GREY

INK = {"light": "#474B57", "dark": "#C8CAD0"}  # text; Streamlit's own grey does not reach 4.5 to 1 on white
PAPER = {"light": "#FFFFFF", "dark": "#262521"}  # of the hover


def chart(figure: go.Figure, key: str, name: str, words: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw it. `name`: of the files saved from the toolbar; `words`: what it shows; `on_select`: called on a click."""
    shade = "dark" if st.context.theme.type == "dark" else "light"
    ink = INK[shade]
    drawn = go.Figure(figure)
    drawn.update_layout(
        font_color=ink,
        legend_font_color=ink,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
        hoverlabel={"bgcolor": PAPER[shade], "bordercolor": GREY, "font": {"color": ink, "size": 13}},
    )
    for axes in (drawn.update_xaxes, drawn.update_yaxes):
        axes(tickfont_color=ink, title_font_color=ink)
    drawn.update_annotations(font_color=ink)
    more = {} if on_select is None else {"on_select": on_select, "selection_mode": "points"}
    st.plotly_chart(drawn, key=key, config=toolbar(name), alt=words, **more)

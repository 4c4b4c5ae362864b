"""A figure on a page: in the ink of the page's theme, with its toolbar, and with words for who cannot see it."""

import re
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from plotly.basedatatypes import BaseFigure

from app.figures.base import toolbar
from app.theme import GREY

INK = {"light": "#474B57", "dark": "#C8CAD0"}  # text; Streamlit's own grey does not reach 4.5 to 1 on white
PAPER = {"light": "#FFFFFF", "dark": "#262521"}  # of the hover
_AXIS = re.compile(r"[xy]axis\d*")


def chart(figure: go.Figure, key: str, name: str, words: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw it. `name`: of the files saved from the toolbar; `words`: what it shows; `on_select`: called on a click."""
    shade = "dark" if st.context.theme.type == "dark" else "light"
    more = {} if on_select is None else {"on_select": on_select, "selection_mode": "points"}
    st.plotly_chart(Ready(inked(figure, shade)), key=key, config=toolbar(name), alt=words, **more)


def inked(figure: go.Figure, shade: str) -> dict[str, Any]:
    """The figure's own specification in the ink of a theme; the figure stays as it is.

    Written into the specification, not by plotly's `update_...`: these make a copy whose every part is checked again,
    which takes ten times as long as all else that a server does of a figure that was drawn before.
    """
    spec, ink = figure.to_dict(), INK[shade]
    layout = spec["layout"]
    for what in ("font", "legend.font"):
        _part(layout, what)["color"] = ink
    _part(layout, "modebar").update(bgcolor="rgba(0,0,0,0)", color=GREY, activecolor=ink)
    _part(layout, "hoverlabel").update(bgcolor=PAPER[shade], bordercolor=GREY)
    _part(layout, "hoverlabel.font").update(color=ink, size=13)
    for axis in {"xaxis", "yaxis", *filter(_AXIS.fullmatch, layout)}:
        for what in ("tickfont", "title.font"):
            _part(layout, f"{axis}.{what}")["color"] = ink
    for note in layout.get("annotations", ()):
        _part(note, "font")["color"] = ink
    return spec


def _part(layout: dict[str, Any], path: str) -> dict[str, Any]:
    """The part of a layout at a path of names, made where there is none."""
    for name in path.split("."):
        layout = layout.setdefault(name, {})
    return layout


class Ready(BaseFigure):
    """A figure as its specification. Streamlit checks one that it is given as a dictionary by making a figure of it:
    this one was made as one."""

    _spec: dict[str, Any]

    def __init__(self, spec: dict[str, Any]):
        object.__setattr__(self, "_spec", spec)

    def to_dict(self) -> dict[str, Any]:
        return self._spec

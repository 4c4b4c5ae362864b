"""A figure on a page has the ink of its theme, and is else as it was made."""

import json

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import plotly.tools
import pytest
from plotly.subplots import make_subplots

from app.components.chart import INK, PAPER, Ready, inked
from app.figures.base import layout, reference_line
from app.theme import GREY

LINE = np.arange(10.0)


def lines() -> go.Figure:
    figure = layout(go.Figure([go.Scatter(x=LINE, y=LINE, name="a"), go.Scatter(x=LINE, y=-LINE)]), 300)
    figure.update_xaxes(title_text="time, s", tickfont_size=9)
    reference_line(figure, 3.0, "a peak")
    return figure


def several() -> go.Figure:
    figure = make_subplots(rows=2, cols=2, subplot_titles=("a", "b", "c", "d"))
    figure.add_trace(go.Bar(y=LINE), row=2, col=2)
    figure.update_yaxes(title_text="share", row=2, col=2)
    figure.add_annotation(text="a note", font={"size": 9, "color": "red"})
    return figure.update_layout(hoverlabel={"align": "left", "font": {"family": "mono"}}, legend={"font": {"size": 3}})


FIGURES = {
    "lines": lines,
    "several": several,
    "no axes": lambda: layout(go.Figure(go.Treemap(labels=["a", "b"], parents=["", "a"])), 200),
    "heat": lambda: layout(go.Figure(go.Heatmap(z=np.arange(12.0).reshape(3, 4))), 200, modebar={"orientation": "v"}),
    "empty": go.Figure,
}


def as_plotly_does(figure: go.Figure, shade: str) -> go.Figure:
    """The same ink by plotly's own updates, which check each part."""
    ink, drawn = INK[shade], go.Figure(figure)
    drawn.update_layout(
        font_color=ink,
        legend_font_color=ink,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
        hoverlabel={"bgcolor": PAPER[shade], "bordercolor": GREY, "font": {"color": ink, "size": 13}},
    )
    for axes in (drawn.update_xaxes, drawn.update_yaxes):
        axes(tickfont_color=ink, title_font_color=ink)
    drawn.update_annotations(font_color=ink)
    return drawn


def told(figure: object) -> dict:
    """What Streamlit sends of it."""
    spec = plotly.tools.return_figure_from_figure_or_data(figure, validate_figure=True)
    return json.loads(str(pio.to_json(spec, validate=False)))


@pytest.mark.parametrize("shade", INK)
@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_its_ink_is_what_plotly_would_make_of_it_and_the_figure_stays_as_it_was(make, shade):
    figure = make()
    before = json.loads(figure.to_json())
    assert told(Ready(inked(figure, shade))) == told(as_plotly_does(figure, shade))
    assert json.loads(figure.to_json()) == before
